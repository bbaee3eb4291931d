"""`pipecast schedule NAME --making published` against the public generators' own rows: interleaved 1F1B, ZB-H1, ZB-H2,
ZB-1P, ZB-2P and ZB-V.

Every row of ../shared/data/schedules/reference.csv of these schedulers: the same span, makespan and peak. A row's times
are of one chunk, the command's of a stage. And the orders of ../shared/data/schedules/orders, pass by pass. A quick run
takes a part; tests/test_deployed_zb.c and test_generate.c take every row in any run, without the command.

usage: test_published_linear.py PIPECAST SOURCE_ROOT
"""
import csv
import json
import pathlib
import sys

sys.dont_write_bytecode = True
from command import IS_QUICK, IS_SLOWED, ROOT, run  # noqa: E402

SKIPPED = 77  # meson's exit status for a test that was not run
SAME = 1e-9   # relative
EVERY = 12 if IS_QUICK or IS_SLOWED else 1
NAMES = {"1F1B-I": "1f1b-interleaved", "ZB-H1": "zb-h1", "ZB-H2": "zb-h2", "ZB-1P": "zb-1p", "ZB-2P": "zb-2p", "ZB-V": "zb-v"}


def published(name, p, m, *options):
    done = run("schedule", name, "-p", str(p), "-m", str(m), "--making", "published", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options_of(row):
    chunks = int(row["chunks"])
    times = ",".join(repr(float(row[kind]) * chunks) for kind in "FBW")
    released = abs(float(row["mem_b"])) / float(row["mem_f"]) if row["mem_f"] else 0
    return ["--times", times, "--comm", row["comm"], "--release-b", repr(released), "--format", "json",
            *(["--chunks", row["chunks"]] if row["scheduler"] == "1F1B-I" else [])]


def expected_of(row):
    """Span, makespan, and peak in microbatches of a stage."""
    peak = float(row["peak_mem_model"]) / float(row["mem_f"]) if row["mem_f"] else float(row["peak_act_units"])
    return float(row["span"]), float(row["makespan"]), peak / int(row["chunks"])


def is_same(row):
    name = NAMES[row["scheduler"]]
    answer = json.loads(published(name, row["p"], row["m"], *options_of(row)))
    found = answer["span"], answer["makespan"], answer["max_peak_activation"]
    expected = expected_of(row)
    if all(abs(ours - theirs) <= SAME * theirs for ours, theirs in zip(found, expected, strict=True)):
        return True
    print(f"{name} -p {row['p']} -m {row['m']} {' '.join(options_of(row))}: {found}, reference {expected}")
    return False


def compare_rows(rows):
    """Prints a line a scheduler; how many rows differ."""
    differ = 0
    for scheduler, name in NAMES.items():
        own = [row for row in rows if row["scheduler"] == scheduler][::EVERY]
        same = sum(map(is_same, own))
        print(f"{name:16} {same} of {len(own)} rows the same")
        differ += len(own) - same
    return differ


def check_orders(folder):
    for scheduler, name in NAMES.items():
        path = folder / f"{scheduler}_p4_m8.txt"
        assert published(name, 4, 8, "--format", "text") == path.read_text(), path


def main():
    data = pathlib.Path(ROOT, "../shared/data/schedules")
    if not (data / "reference.csv").exists():
        print(f"skipped: {data / 'reference.csv'} is not there")
        return SKIPPED
    check_orders(data / "orders")
    assert compare_rows(list(csv.DictReader((data / "reference.csv").open()))) == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
