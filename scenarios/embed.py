"""Writes the library of models, machines, GPUs and software as C: every YAML file of their folders as a text; and
names.csv, which says what people call them, as a table (written_names.h).

The folders themselves are named in the depfile, so that a new file is built in without any list to be edited: adding one
changes its folder's time, and ninja looks at that.

usage: embed.py SCENARIOS_FOLDER OUTPUT.c DEPFILE
"""
import csv
import pathlib
import re
import sys

KINDS = [("PC_LIBRARY_MODELS", "models"), ("PC_LIBRARY_MACHINES", "machines"), ("PC_LIBRARY_GPUS", "machines/gpus"),
         ("PC_LIBRARY_SOFTWARE", "software")]
LINE = 100  # bytes of a file a line of C


def quoted(text):
    """C literals, one below the other; octal escapes take three digits, so that no digit behind them joins in."""
    data = text.encode()
    plain = {c for c in range(0x20, 0x7f)} - set(b'"\\?')
    pieces = [data[i:i + LINE] for i in range(0, len(data), LINE)] or [b""]
    return "\n".join('     "' + "".join(chr(c) if c in plain else f"\\{c:03o}" for c in piece) + '"' for piece in pieces)


def squeezed(name):
    """As pc_written_squeeze has it: small letters, digits and points between digits alone."""
    return re.sub(r"(?<![0-9])\.|\.(?![0-9])|[^a-z0-9.]", "", name.lower())


def names_of(path):
    """The lines of C of names.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["const pc_written_name pc_written_names[] = {"]
    for row in rows:
        kind = f"PC_WRITTEN_{row['kind'].upper()}"
        lines.append(f'    {{{kind}, "{row["name"]}", "{squeezed(row["written"])}", "{row["settings"]}"}},')
    return [*lines, "};", f"const int pc_written_name_count = {len(rows)};", ""]


def write_if_changed(path, text):
    """Leaves the time of a file that is as it should be, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(folder, output, depfile):
    lines, inputs = [
        "/* Made by scenarios/embed.py. */", '#include "scenarios/library_private.h"',
        '#include "scenarios/written_names.h"', ""
    ], [folder / "names.csv"]
    counts = []
    for kind, name in KINDS:
        files = sorted((folder / name).glob("*.yaml"), key=lambda path: path.stem)
        inputs += [folder / name, *files]
        lines.append(f"static const pc_library_file {kind.lower()}[] = {{")
        lines += [f'    {{"{path.stem}",\n{quoted(path.read_text(encoding="utf-8"))}}},' for path in files]
        lines += ["    {NULL, NULL},", "};", ""]
        counts.append(len(files))
    lines.append("const pc_library_file *const pc_library_embedded[PC_LIBRARY_KINDS] = {")
    lines += [f"    [{kind}] = {kind.lower()}," for kind, _ in KINDS] + ["};"]
    lines.append("const int pc_library_embedded_count[PC_LIBRARY_KINDS] = {")
    lines += [f"    [{kind}] = {count}," for (kind, _), count in zip(KINDS, counts)] + ["};", ""]
    lines += names_of(folder / "names.csv")
    write_if_changed(output, "\n".join(lines))
    depfile.write_text(f"{output}: " + " ".join(str(path).replace(" ", "\\ ") for path in inputs) + "\n")


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:]))
