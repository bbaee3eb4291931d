"""Questions to `pipecast plan` that few ask: prime numbers of GPUs, a single layer, limits that are just kept, two answers in one.

usage: test_plan_odd.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import sys
import unittest

from command import IS_QUICK
from planning import PLAN, Plan

SCHEDULES = ["1f1b", "1f1b-interleaved", "zb-h1"]
# GPUs, batch, layers, heads; and more of the setting.
SPACES = ((1, 8, 4, 8, ""), (7, 14, 7, 7, ""), (8, 16, 1, 8, ""), (6, 17, 6, 8, ""), (13, 13, 12, 8, ""), (12, 24, 6, 12, "memory: 0.45 GiB"))


class Odd(Plan):
    def setting(self, gpus, batch, layers, heads, more):
        model = f"{{name: odd, layers: {layers}, hidden: {64 * heads}, heads: {heads}, seq_len: 256, vocab: 1003}}"
        return (f"scenario: odd\nsetting:\n  model: {model}\n  machine: dgx-a100\n  gpus: {gpus}\n  global_batch: {batch}\n"
                f"  offload: none\n  {more}\n")

    def fastest_run(self, gpus, batch, layers, *others):
        """Of all that `run` can have, whether the planner lists it or not. It interleaves nothing on a single stage."""
        whole, parts = (lambda most, n: [i for i in range(1, most + 1) if n % i == 0]), range(1, layers + 3)
        lists = {"tp": whole(8, gpus), "pp": whole(layers + 2, gpus), "chunks": [*parts], "schedule": SCHEDULES,
                 "microbatch_size": [n for n in (1, 2, 4, 8, 16) if batch % n == 0], "recompute": ["none", "selective:mlp", "full"],
                 "layout": ["even", "ends", "own", "balanced"], "zero": [0, 1, 2, 3]}
        sweep = "".join(f"  {key}: {json.dumps(values)}\n" for key, values in lists.items())
        path = self.write(self.setting(gpus, batch, layers, *others) + "sweep:\n" + sweep, "sweep.yaml")
        rows = [row for order in ("tp-dp-pp", "tp-pp-dp") for row in self.rows(path, "--set", f"setting.rank_order={order}")]
        return min(row["iteration_s"] for row in rows if row["status"] == "ok" and (row["pp"] > 1 or row["virtual_pp"] == 1))

    def test_spaces(self):
        for space in SPACES[:4] if IS_QUICK else SPACES:
            path = self.write(self.setting(*space) + f"plan:\n  schedule: [{', '.join(SCHEDULES)}]\n")
            found = {top: self.plan(path, "--top", str(top))["plans"] for top in (1, 50)}
            self.assertEqual(found[1][0]["iteration_s"], self.fastest_run(*space), space)
            self.assertEqual(found[1][0], found[50][0])

    def test_limits_that_are_just_kept(self):
        """At the best plan's own cost and time there is a plan, and a billionth below there is none."""
        path = self.write(PLAN)
        for option, objective, column, unit in (("--most-cost", "cost", "cost_per_million_tokens", ""),
                                                ("--most-iteration", "throughput", "iteration_s", " s")):
            ask = (path, "--price", "3/h", "--objective", objective, "--top", "1")
            best = self.plan(*ask)["plans"][0]
            self.assertEqual(self.plan(*ask, option, f"{best[column] * (1 + 1e-9):.17g}{unit}")["plans"], [best])
            self.assertEqual(self.plan(*ask, option, f"{best[column] * (1 - 1e-9):.17g}{unit}")["plans"], [])

    def test_goal_beside_each(self):
        """Rows of the goal and rows of --each are told apart in json, csv and a results file; the goal alone has them in both lists."""
        words = ("plan", self.write(PLAN), "--gpus", "4,8", "--tokens", "10B", "--deadline", "1000d", "--top", "1")
        alone = json.loads(self.good(*words, "--format", "json"))
        self.assertEqual(alone["goal"]["each"], alone["each"])
        file = self.path("both.h5")
        both = json.loads(self.good(*words, "--each", "machine,gpus", "--format", "json", "-o", file))
        wanted = [("goal.machine=dgx-a100,gpus=4", "goal"), ("each.machine=dgx-a100,gpus=4", "each"), ("each.machine=dgx-a100,gpus=8", "each")]
        self.assertEqual([(cell["name"], cell["part"]) for cell in both["goal"]["each"] + both["each"]], wanted)
        rows = csv.DictReader(io.StringIO(self.good(*words, "--each", "machine,gpus", "--format", "csv")))
        self.assertEqual([(row["name"], row["part"]) for row in rows][1:], wanted)
        runs = csv.DictReader(io.StringIO(self.good("export", file, "--to", "csv")))
        self.assertEqual([row["name"] for row in runs], ["plan-1", *[name for name, _ in wanted]])
        self.assertIn("plans  scaling  ", self.good("figure", file, "--list"))


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
