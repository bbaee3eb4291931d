"""The table of docs/import.md: published numbers of parameters beside those of the files of ../shared.

usage: imports.py PIPECAST SOURCE_ROOT [--update]
"""
import csv
import json
import pathlib
import subprocess
import sys

PIPECAST, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
FILES = ROOT.parent / "shared/data/imports/hf"
PAGE = ROOT / "docs/import.md"
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
        lines.append(f"| {row['file']} | {published:g} | {row['counts']} | {ours:.2f} | {100 * (ours / published - 1):+.2f}% | {row['source']} |\n")
    return HEAD + "".join(lines)


def main():
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
