"""Writes the library of models, machines, GPUs, software and precisions as C: every YAML file of their folders, and every
profile of measured kernels (CSV), as a text; and names.csv, which says what people call them (written_names.h), and
intervals.csv, how far off forecasts were (intervals.h), as tables.

The folders themselves are named in the depfile, so that a new file is built in without any list to be edited: adding one
changes its folder's time, and ninja looks at that.

usage: embed.py SCENARIOS_FOLDER OUTPUT.c DEPFILE
"""
import csv
import pathlib
import re
import sys

KINDS = [("PC_LIBRARY_MODELS", "models", "yaml"), ("PC_LIBRARY_MACHINES", "machines", "yaml"),
         ("PC_LIBRARY_GPUS", "machines/gpus", "yaml"), ("PC_LIBRARY_SOFTWARE", "software", "yaml"),
         ("PC_LIBRARY_PRECISIONS", "precision", "yaml"), ("PC_LIBRARY_PROFILES", "machines/profiles", "csv")]
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


QUANTITIES = {"time": "PC_INTERVAL_TIME", "memory": "PC_INTERVAL_MEMORY"}


def scale_of(row):
    """"on 9 to 64 GPUs", or nothing."""
    least, most = row["least_gpus"], row["most_gpus"]
    return "" if not least else f" on {least} to {most} GPUs" if most else f" on {least} GPUs and more"


def basis_of(row):
    """What the interval is learned from, in words."""
    kind = " ".join(row[part] for part in ("gpu", "software", "sharding") if row[part])
    count = f"{row['configurations']} configurations"
    if not kind:
        return f"the unknown: {count} of all {row['kinds']} kinds"
    return f"{count} of {kind}{scale_of(row)}" if row["software"] else f"{count} of {row['kinds']} kinds on {kind}"


def intervals_of(path):
    """The lines of C of intervals.csv; those behind a '#' are its words."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    lines = ["const pc_interval_line pc_interval_lines[] = {"]
    for row in rows:
        numbers = [row[name] or "0" for name in ("least_gpus", "most_gpus", "least_measured", "most_measured", "low",
                                                 "middle", "high", "doubling", "pair")]
        texts = [f'"{row[name]}"' for name in ("gpu", "software", "sharding")]
        lines.append(f"    {{{', '.join([QUANTITIES[row['quantity']], *texts, *numbers])},\n     \"{basis_of(row)}\"}},")
    return [*lines, "};", f"const int pc_interval_line_count = {len(rows)};", ""]


def write_if_changed(path, text):
    """Leaves the time of a file that is as it should be, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(folder, output, depfile):
    lines, inputs = [
        "/* Made by scenarios/embed.py. */", '#include "scenarios/library_private.h"',
        '#include "scenarios/intervals.h"', '#include "scenarios/written_names.h"', ""
    ], [folder / "names.csv", folder / "intervals.csv"]
    counts = []
    for kind, name, ending in KINDS:
        files = sorted((folder / name).glob(f"*.{ending}"), key=lambda path: path.stem)
        inputs += [folder / name, *files]
        lines.append(f"static const pc_library_file {kind.lower()}[] = {{")
        lines += [f'    {{"{path.stem}",\n{quoted(path.read_text(encoding="utf-8"))}}},' for path in files]
        lines += ["    {NULL, NULL},", "};", ""]
        counts.append(len(files))
    lines.append("const pc_library_file *const pc_library_embedded[PC_LIBRARY_KINDS] = {")
    lines += [f"    [{kind}] = {kind.lower()}," for kind, _, _ in KINDS] + ["};"]
    lines.append("const int pc_library_embedded_count[PC_LIBRARY_KINDS] = {")
    lines += [f"    [{kind}] = {count}," for (kind, _, _), count in zip(KINDS, counts)] + ["};", ""]
    lines += names_of(folder / "names.csv") + intervals_of(folder / "intervals.csv")
    write_if_changed(output, "\n".join(lines))
    depfile.write_text(f"{output}: " + " ".join(str(path).replace(" ", "\\ ") for path in inputs) + "\n")


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:]))
