#!/usr/bin/env python3
"""How far off fits are of shapes that they have not seen.

    tests/golden/held_out.py PIPECAST TABLE.csv... [--every 5] [--processors N] [--gpu NAME]

Of each table every fifth shape is left out (a shape: all of a row but its time, the versions and the source), fits are
made of the rest by `profile fit`, and judged by what was left out (`profile compare`). Prints a table in Markdown: fit,
rows that were left out, median and 95th percentile of the relative error, the part that the 95% interval held.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

NO_SHAPE = ("latency", "time", "seconds", "efficiency", "version", "source", "dispatch_us", "combine_us", "busbw", "algbw")


def shape_of(row):
    return tuple(value for name, value in row.items() if not any(part in name for part in NO_SHAPE))


def split(path, every, folder):
    """Writes the rest and what is left out, and returns their paths. Shapes are dealt out in sorted order, so that
    neighbours of every shape stay."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows, names = list(reader), reader.fieldnames
    shapes = sorted({shape_of(row) for row in rows})
    left_out = set(shapes[every // 2 :: every])
    paths = []
    for is_left_out in (False, True):
        paths.append(os.path.join(folder, ("left_out_" if is_left_out else "rest_") + os.path.basename(path)))
        with open(paths[-1], "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for row in rows if (shape_of(row) in left_out) == is_left_out)
    return paths


def profile_of(pipecast, table, options, folder):
    out = os.path.join(folder, os.path.basename(table) + ".h5")
    begun = os.times().children_user
    done = subprocess.run([pipecast, "profile", "fit", table, "-o", out, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{table}: {done.stderr.strip()}")
    return out, os.times().children_user - begun


def judge(pipecast, table, options, every):
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.join(temporary, os.path.basename(os.path.dirname(os.path.abspath(table))))
        os.mkdir(folder)  # a table that does not name its site is called for its folder
        rest, left_out = split(table, every, folder)
        fitted, seconds = profile_of(pipecast, rest, options, folder)
        judging, _ = profile_of(pipecast, left_out, options, folder)
        told = subprocess.run(
            [pipecast, "profile", "compare", fitted, judging, "--format", "json"], capture_output=True, text=True, check=True
        )
    return json.loads(told.stdout)["judged"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipecast")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--processors")
    parser.add_argument("--gpu")
    arguments = parser.parse_args()
    if arguments.every < 2:
        sys.exit("--every: expected at least 2")
    options = ["--processors", arguments.processors] if arguments.processors else []
    options += ["--gpu", arguments.gpu] if arguments.gpu else []
    print("| fit | left out | median | 95th percentile | held |\n|---|---|---|---|---|")
    for table in arguments.tables:
        judged, seconds = judge(arguments.pipecast, table, options, arguments.every)
        for fit in sorted(judged, key=lambda each: each["fit"]):
            print(
                f"| {fit['fit']} | {fit['measured']} | {100 * fit['median']:.1f}% | {100 * fit['p95']:.0f}% |"
                f" {100 * fit['held']:.0f}% |"
            )
        print(f"{table}: fitted in {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
