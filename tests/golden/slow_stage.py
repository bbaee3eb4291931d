"""The part of one slow stage's slowdown that the iteration takes over, by schedule: the table of docs/bad-days.md, from the
whole of scenarios/studies/slow_gpu.yaml. Made with the tables of compared.py."""
import csv
import subprocess

SCENARIO = "scenarios/studies/slow_gpu.yaml"
FACTORS = ("1.1", "1.5")


def passed_on(row):
    """(T' / T - 1) / (f - 1)"""
    return (float(row["slowdown_mean"]) - 1) / (float(row["slow_factor"]) - 1)


def cells_of(rows):
    """Of one schedule: its good day, and for each stage the parts at both factors."""
    stages = sorted({int(row["slow_stage"]) for row in rows})
    of = {(int(row["slow_stage"]), row["slow_factor"]): row for row in rows}
    return (f"{float(rows[0]['iteration_good_s']):.3f} s",
            *(", ".join(f"{passed_on(of[stage, factor]):.2f}" for factor in FACTORS) for stage in stages))


def lines_of(rows):
    """A line for each schedule; those of the same numbers share one."""
    names = {}
    for schedule in dict.fromkeys(row["schedule"] for row in rows):
        names.setdefault(cells_of([row for row in rows if row["schedule"] == schedule]), []).append(schedule)
    return [[", ".join(schedules), *cells] for cells, schedules in names.items()]


def slow(pipecast, root, jobs):
    done = subprocess.run([pipecast, "run", SCENARIO, "--format", "csv", "--quiet"], cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{SCENARIO}: {done.stderr.strip() or done.returncode}")
    header = ["", "good day", *(f"{stage}: `f` = {' and '.join(FACTORS)}" for stage in ("first stage", "fifth", "last"))]
    rows = [header, ["---"] * len(header), *lines_of(list(csv.DictReader(done.stdout.splitlines())))]
    return [f"| {' | '.join(row)} |" for row in rows]
