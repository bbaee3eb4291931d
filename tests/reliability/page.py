#!/usr/bin/env python3
"""docs/reliability.md from what runs counted.

    page.py                  the page, from the committed records (recorded.tsv beside this script), on standard output
    page.py --record COUNTS  COUNTS, the file build/counts.txt that `./test --full` leaves, becomes the record, and the page is written
    page.py --check COUNTS   status 1 and a line each where a figure is missing there or under its bar

Counts are lines "key<TAB>number"; those of equal keys add up. Every figure of the page has its key, its bar and the command that
gives it in figures.py; findings are listed by hand in findings.tsv, each with what repeats it.
"""
import csv
import os
import pathlib
import sys

from figures import EXECUTIONS, FIGURES, SECTIONS, TARGETS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORD, FINDINGS, PAGE = HERE / "recorded.tsv", HERE / "findings.tsv", ROOT / "docs/reliability.md"
FUZZ = ROOT / "tests/fuzz/record.csv"


def read_counts(path):
    counts = {}
    for line in pathlib.Path(path).read_text().splitlines():
        key, number = line.split("\t")
        counts[key] = counts.get(key, 0) + int(number)
    return counts


def short_of(counts, totals):
    """What is missing or under its bar, a sentence each."""
    for figure in FIGURES:
        if figure.key not in counts:
            yield f"{figure.key}: not counted; expected at least {figure.least}"
        elif counts[figure.key] < figure.least:
            yield f"{figure.key}: {counts[figure.key]}; expected at least {figure.least}"
    for target in TARGETS:
        executions = totals[target][1] if target in totals else 0
        if executions < EXECUTIONS:
            yield f"{FUZZ.relative_to(ROOT)}: {target}: {executions} executions with sanitizers; expected at least {EXECUTIONS}"


def shown(figure, number):
    return f"{number / 100:.2f} %" if figure.percent else f"{number:,}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def figure_rows(section, counts):
    for figure in FIGURES:
        if figure.section == section:
            number = shown(figure, counts[figure.key]) if figure.key in counts else "not counted"
            yield figure.what, number, shown(figure, figure.least), f"`{figure.command}`"


def long_runs():
    """Target -> executions, those of them with sanitizers, seconds, findings: the long runs of tests/fuzz/record.csv."""
    with open(FUZZ, newline="") as file:
        return {row["target"]: [int(row[name]) for name in ("executions", "sanitized", "seconds", "findings")]
                for row in csv.DictReader(file)}


def fuzz_rows(totals):
    for target, (executions, sanitized, *others) in sorted(totals.items()):
        yield (target, f"{executions:,}", f"{sanitized:,}", f"{EXECUTIONS:,}", *(f"{number:,}" for number in others),
               f"`tests/fuzz/run --executions {EXECUTIONS} {target}`")


def findings():
    with open(FINDINGS, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def page(counts, totals):
    lines = ["# Reliability", ""]
    lines += (HERE / "introduction.md").read_text().splitlines()
    for section, words in SECTIONS.items():
        lines += ["", f"## {section}", "", *words.splitlines(), ""]
        lines += table(("what", "figure", "bar", "command"), figure_rows(section, counts))
        if section == "Fuzzing":
            lines += ["", "The long runs, all added up (tests/fuzz/record.csv, to which the command itself adds). Those without sanitizers are "
                          "three times as fast, and see what properties and crashes show:", ""]
            lines += table(("target", "executions", "of them with sanitizers", "bar", "seconds", "findings", "command"), fuzz_rows(totals))
    found = findings()
    lines += ["", "## Findings", "", f"{len(found)} faults of this program were found by these means and mended. Long fuzz runs have their own count above; a target's own tests found more.", ""]
    lines += table(("by", "what", "repeated by"), ((row["by"], row["what"], f"`{row['test']}`") for row in found))
    return "\n".join(lines) + "\n"


def main(arguments):
    totals = long_runs()
    match arguments:
        case []:
            print(page(read_counts(RECORD), totals), end="", flush=True)
        case ["--check", path]:
            missing = list(short_of(read_counts(path), totals))
            print(*missing, f"{len(FIGURES) + len(TARGETS) - len(missing)} passed, {len(missing)} failed", sep="\n")
            return 1 if missing else 0
        case ["--record", path]:
            counts = read_counts(path)
            RECORD.write_text("".join(f"{key}\t{number}\n" for key, number in sorted(counts.items())))
            PAGE.write_text(page(counts, totals))
        case _:
            raise ValueError("expected nothing, --record COUNTS or --check COUNTS")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a closed pipe did not take is not tried again
        sys.exit(f"page.py: {error}")
