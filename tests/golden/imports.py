"""Tables of docs/import.md (published numbers of parameters beside those of the files of ../shared) and of
docs/megatron-arguments.md (scenarios/import/megatron.def).

usage: imports.py PIPECAST SOURCE_ROOT [--update]
"""
import csv
import json
import pathlib
import re
import subprocess
import sys

PIPECAST, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
FILES = ROOT.parent / "shared/data/imports/hf"
PAGE = ROOT / "docs/import.md"
ARGUMENTS = ROOT / "docs/megatron-arguments.md"
LINE = re.compile(r'^MEGATRON_(\w+)\("([^"]*)", "([^"]*)"(?:, "([^"]*)")?\)$', re.MULTILINE)
CLASSES = {"used": ("NUMBER", "FLAG", "FLAG_OFF", "WORD", "USED"), "not modelled": ("NOT",), "without effect": ("NONE",)}
HEAD = "| file | published [B] | of | ours [B] | | source |\n|---|---|---|---|---|---|\n"


def parameters_of(path, counts):
    """In billions, of a run that need not fit."""
    sets = ["--set", "setting.model.mtp_num_layers=0"] if counts == "main" else []
    command = [PIPECAST, "run", "--model", path, "--machine", "dgx-h100", "--gpus", "8", "--network", "closed", "--format", "json",
               "--columns", "parameters", "--global-batch", "8", *sets]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)
    return (rows["runs"] if isinstance(rows, dict) else rows)[0]["parameters"] / 1e9


def table():
    lines = []
    for row in csv.DictReader(open(ROOT / "tests/data/imports/published.csv")):
        ours, published = parameters_of(FILES / f"{row['file']}.json", row["counts"]), float(row["published_billions"])
        shown = {"weights": f"{published:g}", "rounded": f"{published:g} (rounded)", "computed": ""}[row["basis"]]
        apart = f"{100 * (ours / published - 1):+.2f}%" if shown else ""
        lines.append(f"| {row['file']} | {shown} | {row['counts']} | {ours:.2f} | {apart} | {row['source']} |\n")
    return HEAD + "".join(lines)


def meaning(kind, first, second):
    if kind in ("NUMBER", "WORD"):
        words = second.replace("|", ", ").replace("=", " is ") if second else ""
        return f"`{first}`" + (f": {words}" if words else "")
    if kind in ("FLAG", "FLAG_OFF"):
        return f"`{first}: {second}`" + (" if it is off" if kind == "FLAG_OFF" else "")
    return first


def arguments():
    text = (ROOT / "scenarios/import/megatron.def").read_text()
    page = ["# Arguments of Megatron-LM\n\nWhat `pipecast import megatron` and `run --megatron` make of each argument ([import.md](import.md)). "
            "Made of `scenarios/import/megatron.def` by\n`python3 tests/golden/imports.py build/cli/pipecast . --update`.\n"]
    for title, kinds in CLASSES.items():
        page.append(f"\n## Arguments that are {title}\n\n| arguments | |\n|---|---|\n")
        for kind, names, first, second in LINE.findall(text):
            if kind in kinds:
                page.append(f"| {', '.join(f'`{name}`' for name in names.split('|'))} | {meaning(kind, first, second)} |\n")
    return "".join(page)


def main():
    if "--update" in sys.argv:
        ARGUMENTS.write_text(arguments())
    elif ARGUMENTS.read_text() != arguments():
        sys.exit("docs/megatron-arguments.md differs; python3 tests/golden/imports.py build/cli/pipecast . --update")
    if not FILES.is_dir():
        print(f"skipped: no {FILES}")
        return
    text = PAGE.read_text()
    if "TABLE_HERE" in text:
        start, end = text.index("TABLE_HERE"), text.index("TABLE_HERE") + len("TABLE_HERE\n")
    else:
        start = text.index(HEAD)
        end = text.index("\n\n", start) + 1
    made = table()
    if "--update" in sys.argv:
        PAGE.write_text(text[:start] + made + text[end:])
    elif text[start:end] != made:
        sys.exit("docs/import.md differs; python3 tests/golden/imports.py build/cli/pipecast . --update")


if __name__ == "__main__":
    main()
