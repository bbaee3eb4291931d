"""The page of the papers (results/paper/README.md) says what the scenarios say now.

The parts of the page whose scenarios take a moment are made anew and must stand on the page, line by line. A verdict is
yes, in part or no as the runs have it, and no chart draws two runs in one place. In a long run: all scenarios, the whole
page (report --check).

usage: test_paper.py PIPECAST SOURCE_ROOT
"""
import collections
import csv
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "results/report"))

from command import IS_LONG, IS_QUICK, IS_SLOWED, full_only  # noqa: E402
import as_published  # noqa: E402
import balance  # noqa: E402
import claims  # noqa: E402
import claims_figures  # noqa: E402
import controllable  # noqa: E402
import engine  # noqa: E402
import explanations  # noqa: E402
import growth  # noqa: E402
import in_numbers  # noqa: E402
import limits  # noqa: E402
import offsets  # noqa: E402
import own_models  # noqa: E402
import paper  # noqa: E402
import tables  # noqa: E402
from document import Document  # noqa: E402
from failure import Failure  # noqa: E402
from markdown import to_markdown  # noqa: E402
import zero_bubble  # noqa: E402
from results import Event, Results, Row  # noqa: E402

QUICK = ("controllable_memory_balance", "controllable_memory_timelines", "controllable_memory_table1",
         "controllable_memory_table2", "controllable_memory_table5", "controllable_memory_table8",
         "controllable_memory_figure5", "controllable_memory_figure7", "controllable_memory_figure12",
         "controllable_memory_growth", "zero_bubble_table2", "zero_bubble_table9")
SEARCHED = ("controllable_memory_figure7", "controllable_memory_growth")
if IS_QUICK or IS_SLOWED:  # their searches take half a minute and more with sanitizers
    QUICK = tuple(name for name in QUICK if name not in SEARCHED)
needs_searched = unittest.skipIf(IS_QUICK or IS_SLOWED, "part: figure 7 and what grows are left out")


class NoPictures:
    """The numbers alone are compared."""

    def ask(self, path, arguments):
        return path


def scenarios():
    files = sorted((ROOT / "scenarios/paper").glob("*.yaml"))
    return files if IS_LONG else [file for file in files if file.stem in QUICK]


def charts(path):
    """Of every chart that a scenario declares: its x, and the columns of series and panels."""
    text = path.read_text(encoding="utf-8").partition("\nfigures:")[2]
    for chart in re.split(r"\bname: ", text)[1:]:
        found = {key: re.search(rf"\b{key}: ([^,}}\s]+)", chart) for key in ("x", "series", "panels")}
        yield [column for match in found.values() if match for column in match[1].split("+")]


class Made:
    """Runs made up for a claim."""

    def __init__(self, *rows, traces=()):
        self.made, self.traces = [Row(row) for row in rows], dict(traces)

    def rows(self, scenario, **columns):
        return [row for row in self.made if all(row.get(name) == value for name, value in columns.items())]

    def trace(self, scenario, name):
        return self.traces[name]


def passes(interval, work):
    """The trace of nine microbatches on a stage, one an `interval`, with `work` in it."""
    return [Event("pass", 0, None, "F", 0, n, n * interval, n * interval + work, *[None] * 4) for n in range(9)]


class Claims(unittest.TestCase):
    """Each verdict on runs for which the claim holds, holds in part, and does not."""

    def verdicts(self, claim, results, expected):
        self.assertEqual([claims.verdict(checks) for _, _, checks in claim(results)], expected)

    def memory(self, half, least, zero, bubble):
        activations = {"v-half": half, "v-min": least, "v-zb": zero}
        return Made(*({"pp": 64, "schedule": name, "activation_gib_max": gib, "bubble_rate_span": bubble}
                      for name, gib in activations.items()))

    def test_memory(self):
        for made, expected in (((0.516, 0.344, 1, 0), ["yes", "yes", "yes"]),
                               ((0.6, 0.4, 1, 0.05), ["**no**", "**no**", "in part"]),
                               ((0.4, 0.25, 1.1, 0.05), ["**no**", "**no**", "**no**"])):
            self.verdicts(claims.memory_shares, self.memory(*made), expected)

    def test_throughput(self):
        for speeds, expected in (((1.60, 1.20, 1.05), ["yes", "yes", "in part"]),
                                 ((1.07, 1.02, 0.88), ["yes", "**no**", "in part"]),
                                 ((0.9, 0.95, 0.95), ["**no**", "yes", "**no**"])):
            made = Made(*({"model": "m", "microbatches": 8, "schedule": name, "recompute": "none", "samples_per_s_per_gpu": speed}
                          for name, speed in zip(("v-zb", "v-half", "v-min", "1f1b"), (*speeds, 1))))
            self.verdicts(claims.throughput, made, expected)

    def test_as_published(self):
        """A point that one order comes to, or both, or neither; and throughput over 1F1B's of the same setting."""
        for ours, theirs, expected in ((0.41, 0.407, "both"), (0.42, 0.405, "theirs"), (0.411, 0.39, "ours"), (0.3, 0.3, "neither")):
            self.assertEqual(as_published.explains(0.405, ours, theirs, 0.007), expected)
        shape = {"model": "m", "microbatches": 8, "microbatch_size": 1, "recompute": "none", "published_mfu": None}
        ours = [{**shape, "schedule": name, "samples_per_s_per_gpu": speed, "mfu": speed / 2}
                for name, speed in (("1f1b", 1), ("v-min", 0.9))]
        theirs = {**shape, "name": "figure6.m.v-min", "schedule": "v-min", "samples_per_s_per_gpu": 0.8, "mfu": 0.4}
        made = Made()
        made.rows = lambda scenario, **columns: [
            Row(row) for row in ([theirs] if scenario == as_published.AS_PUBLISHED else ours)
            if all(row[name] == value for name, value in columns.items())]
        found = as_published.pairs(made)
        self.assertEqual(as_published.points(found), [])
        self.assertEqual(as_published.over_base(made, found),
                         [["figure 6", "V-Min", "1", "–", "-10% to -10%", "-20% to -20%"]])

    def test_adapted(self):
        for half, expected in ((0.53, "yes"), (0.51, "**no**")):
            made = Made(*({"model": "38.5B", "microbatches": 512, "schedule": name, "mfu": mfu}
                          for name, mfu in (("v-half", half), ("v-zb", 0.52), ("1f1b", 0.49))))
            self.verdicts(claims.adapted, made, [expected])

    def test_repeating(self):
        for least, half, expected in ((24, 18, "yes"), (18, 18, "in part"), (18, 20, "**no**")):
            rows = [{"name": schedule + making, "schedule": schedule, "making": making, "pp": 4, "microbatches": 9}
                    for schedule in ("v-min", "v-half") for making in ("equal", "costs", "published")]
            traces = {row["name"]: passes(least if row["schedule"] == "v-min" else half, 18) for row in rows}
            self.verdicts(claims.repeating, Made(*rows, traces=traces), [expected])

    def test_drop(self):
        """Most steeply between 0.5 and 0.575, then between 0.575 and 0.65; or falling by more after than just above."""
        for rates, expected in (((0.12, 0.04, 0.035), "yes"), ((0.12, 0.08, 0.04), "in part"), ((0.12, 0.10, 0.04), "**no**")):
            made = Made(*({"name": "a.v-adaptive", "schedule": "v-adaptive", "model": "a", "pp": 16, "microbatches": 256,
                           "status": "ok", "memory_limit_gib": limit, "bubble_rate_span": rate}
                          for limit, rate in zip((0.5, 0.575, 0.65), rates)))
            self.verdicts(claims.drop, made, [expected])
            self.assertIn("0.575 to 0.65" if rates[1] == 0.10 else "0.5 to 0.575", claims.drop(made)[0][1])

    def test_best_throughput(self):
        for gains, expected in (((1.1, 1.1, 1.1), "yes"), ((1.1, 1.1, 0.9), "in part"), ((0.9, 0.9, 1.1), "**no**")):
            made = Made(*({"model": "m", "microbatches": count, "schedule": name, "recompute": "none",
                           "samples_per_s_per_gpu": speed}
                          for count, gain in zip((8, 16, 32), gains) for name, speed in (("v-zb", gain), ("zb-1p", 1), ("1f1b", 0.5))))
            self.verdicts(claims_figures.best_throughput, made, [expected])

    def grown(self, start, more, counts=(32, 128, 256), **columns):
        """Runs of which a start and an end idle `start`, and every microbatch `more`, in work for one microbatch."""
        return [{"microbatches": m, "bubble_rate_span": (start + more * m) / (start + (1 + more) * m), **columns} for m in counts]

    def test_growing(self):
        """A rate that grows needs a start that saves time: c below zero in (c + g m) / (c + (1 + g) m)."""
        for start, more, expected in ((9, 0.2, "in part"), (-1, 0.2, "yes"), (9, 0, "**no**")):
            runs = {name: self.grown(start, more, model="38.5B", schedule=name) for name in ("v-min", "v-half")}
            points = [{"microbatches": m, "schedule": "v-min", "model": "38.5B", "bubble_rate_span": 0.2, "published_mfu": mfu}
                      for m, mfu in ((128, 0.41), (512, 0.437))]
            causes = [{"name": f"{cause}.v-min", **row} for cause in growth.CAUSES for making in ("equal", "costs", "published")
                      for row in self.grown(9, 0.1, schedule="v-min", making=making)]
            of = {controllable.FIGURE6: [*runs["v-min"], *runs["v-half"]], controllable.FIGURE7: points[:1], growth.GROWTH: causes}
            made = Made()
            made.rows = lambda scenario, **columns: [
                row for row in map(Row, [*of[scenario], *(points[1:] if "microbatches" in columns else [])])
                if all(row.get(name) == value for name, value in columns.items())]
            self.verdicts(claims_figures.growing, made, [expected])

    def test_idle(self):
        """The inverse of the rate that it is made of; and of two counts the slope."""
        rows = [Row(row) for row in self.grown(9.5, 0.25)]
        self.assertAlmostEqual(growth.idle(rows[0]), 9.5 + 0.25 * 32)
        self.assertAlmostEqual(growth.growth(rows), 0.25)

    def test_engine(self):
        made = Made()
        made.scenarios = lambda: ["a", "b"]
        made.rows = lambda scenario, **_: [Row(engine=way) for way in {"a": ["events", "events"], "b": ["paths", "events"]}[scenario]]
        self.assertEqual(engine.ways(made), {"a": {"events": 2}, "b": {"paths": 1, "events": 1}})
        text = to_markdown(Document("", engine.section(made)))
        self.assertIn("Of 4 runs 3 were run on the engine", text)
        self.assertIn("1 were worked out by longest paths", text)
        self.assertNotIn("None was worked out", text)

    def test_balance(self):
        for held, expected in (({"parallel": (9, 4), "v-shaped": (6, 6)}, "yes"), ({"parallel": (9, 4), "v-shaped": (8, 5)}, "in part"),
                               ({"parallel": (6, 6), "v-shaped": (9, 4)}, "**no**")):
            traces = {name: [Event("level", device, *[None] * 6, level * 2**26, *[None] * 3) for device, levels in enumerate(of)
                             for level in (1, levels, 2)] for name, of in held.items()}
            made = Made(*({"name": name, "schedule": name, "pp": 16} for name in held), traces=traces)
            self.verdicts(balance.claim, made, [expected])

    def test_communication(self):
        for factor, share, expected in ((2, 0.01, "yes"), (2, 0.05, "in part"), (3, 0.05, "**no**")):
            made = Made(*({"model": "m", "microbatch_size": 1, "microbatches": 8, "schedule": name, "recompute": "none",
                           "status": "ok", "iteration_s": 10,
                           "exposed_pp_s": 10 * share, "sent_pp_gib": 1 if name == "1f1b" else factor}
                          for name in ("1f1b", "v-min", "v-half", "v-zb")))
            self.verdicts(claims_figures.communication, made, [expected])

    def test_adaptive(self):
        for ours, expected in (((0.1, 0.05, 0.02), "yes"), ((0.1, 0.05, 0.04), "in part"), ((0.5, 0.5, 0.02), "**no**")):
            made = Made(*({"name": f"a.{name}", "schedule": name, "memory_limit_gib": limit, "status": "ok",
                           "bubble_rate_span": rate}
                          for name, rates in (("v-adaptive", ours), ("zb-2p", (0.2, 0.1, 0.03)))
                          for limit, rate in zip((0.5, 1, 2), rates)))
            self.verdicts(claims.adaptive, made, [expected])

    def test_grid(self):
        for zero, half, expected in ((0.60, 0.55, ["yes", "yes"]), (0.55, 0.52, ["yes", "in part"]),
                                     (0.45, 0.48, ["**no**", "**no**"])):
            made = Made(*({"name": f"s1024.{name}", "schedule": name, "recompute": "none", "status": "ok", "mfu": mfu,
                           "published_best_mfu": theirs}
                          for name, mfu, theirs in (("v-zb", zero, 0.5758), ("v-half", half, 0.5260), ("1f1b", 0.50, 0.4981))))
            self.verdicts(claims.grid, made, expected)

    def test_grid_where_nothing_fits(self):
        """A schedule that fits in no cut is in the table all the same."""
        run = {"schedule": "v-half", "recompute": "none", "status": "ok", "mfu": 0.5, "published_best_mfu": None, "dp": 1, "tp": 8,
               "pp": 5, "microbatch_size": 1, "memory_gib_max": 70, "seq_len": 16384}
        made = Made({**run, "name": "s.v-half"}, {**run, "name": "s.1f1b", "schedule": "1f1b", "status": "out_of_memory"},
                    {**run, "name": "s-r.1f1b", "schedule": "1f1b", "recompute": "full", "mfu": 0.4})
        *_, table = limits.table3(made)
        self.assertEqual([line[1:3] for line in table.rows],
                         [["1F1B", "out of memory"], ["1F1B-R", "40.00%"], ["ZB-1P", "out of memory"], ["**V-Half**", "50.00%"],
                          ["V-Min", "out of memory"], ["V-ZB", "out of memory"]])

    def test_figure6_has_the_points_of_figure7(self):
        """Of the same model, microbatch size and number of microbatches; its own come first."""
        run = {"status": "ok", "model": "m", "microbatch_size": 1, "microbatches": 8, "recompute": "none", "mfu": 0.5, "activation_gib_max": 3,
               "published_mfu": None, "published_activation_gib": None}
        names = [{**run, "schedule": name, "recompute": recompute}
                 for name in ("v-zb", "zb-1p", "v-half", "1f1b", "v-min") for recompute in ("none", "full")[:1 + (name == "1f1b")]]
        names[0]["published_mfu"] = 0.48
        points = [{**names[0], "published_mfu": 0.4}, {**names[1], "published_mfu": 0.4, "published_activation_gib": 4},
                  {**names[2], "microbatch_size": 2, "published_mfu": 0.4}]
        made = Made()
        made.rows = lambda scenario, **_: [Row(row) for row in (names if scenario == controllable.FIGURE6 else points)]
        *_, mfu, activations = in_numbers.figure6(made)
        self.assertEqual(mfu.rows, [["m", "1", "8", "50.0% (48.0%)", "50.0% (40.0%)", *["50.0%"] * 4]])
        self.assertEqual(activations.rows, [["m", "1", "8", "3.0", "3.0 (4.0)", *["3.0"] * 4]])

    def test_single_passes(self):
        for last, expected in ((0.5, "yes"), (0.7, "**no**")):
            made = Made(*({"model": "a", "microbatch_size": 1, "tp": tp, "mfu": mfu, "published_mfu": mfu}
                          for tp, mfu in ((1, 0.68), (2, 0.65), (4, 0.6), (8, last))))
            self.verdicts(claims.single_passes, made, [expected])

    def test_rates_of_zero_bubble(self):
        for moved, expected in ((0, ["yes"] * 3), (0.001, ["**no**"] * 3)):
            made = Made(*({"name": f"a.{name}", "schedule": name, "bubble_rate_span": 0.1 + moved,
                           "published_bubble_rate_span": 0.1}
                          for name in (*zero_bubble.ORDER, "zb-v")))
            self.verdicts(claims.bubble_rates, made, expected)

    def test_speedups(self):
        for first, second, waits, expected in ((1.16, 1.31, 0.92, ["yes", "yes"]), (1.16, 1.2, 0.99, ["in part", "**no**"])):
            settings = [{"name": f"a.{name}", "schedule": name, "samples_per_s_per_gpu": speed, "bubble_rate_span": 0,
                         "bubble_rate_makespan": 0}
                        for name, speed in (("1f1b", 1), ("zb-1p", first), ("zb-2p", second))]
            modelled = [{"name": f"a.{name}", "samples_per_s_per_gpu": speed}
                        for name, speed in (("b-1f1b.1f1b", 1), ("b-zb-1p.zb-1p", first), ("b-zb-2p.zb-2p", second),
                                            ("b-zb-2p-waits.zb-2p", second * waits))]
            made = Made()
            made.rows = lambda scenario, **_: [Row(row) for row in (settings if scenario == zero_bubble.TABLE5 else modelled)]
            self.verdicts(claims.speedups, made, expected)


class Offsets(unittest.TestCase):
    """Tables 8 and 9: blocks from offsets, and what follows."""

    def test_block(self):
        """V-Min on 4 devices: F down in 0 to 3, up in 4 to 7; B behind it, down in 8 to 11 and up in 12 to 15. Device 0 has
        F, F, B, B in cells 0, 7, 8, 15, which are 0, 1, 2, 3 of six: W in 4 and 5, first behind B of the second chunk, 10,
        then 17, and it holds chunk 0 for 18 cells, chunk 1 for 4. On device 3 they are in 3, 4, 11, 12, or 3, 4, 5, 0 of six:
        W in 13 and 14, 12 cells and 10. The bound is largest on device 2: 2 to 15 and 5 to 12, 14 cells and 8, 3 and 2
        intervals begun, 5 chunks. It never holds them all: chunk 0 thrice in cells 2 and 3 of six, chunk 1 twice in 5 and 0.
        """
        block = offsets.block_of_rule(offsets.V_MIN, 4)
        self.assertEqual(block, {("F", 0): [0, 1, 2, 3], ("F", 1): [7, 6, 5, 4], ("B", 1): [8, 9, 10, 11],
                                 ("B", 0): [15, 14, 13, 12], ("W", 1): [10, 10, 12, 13], ("W", 0): [17, 17, 15, 14]})
        self.assertEqual(offsets.shared_cells(block), 0)
        lives = offsets.lifespans(block)
        self.assertEqual((lives[0], lives[3]), ([18, 4], [12, 10]))
        self.assertEqual((offsets.bound(block), offsets.peak(block)), (2.5, 2))
        self.assertEqual(offsets.offsets(block), ([1] * 3, [1] * 3, [1] * 3, [1] * 3, [1], [1], [1]))

    def test_rules(self):
        """On any number of devices no cell is shared, and peaks are what the authors' program allows."""
        for d in range(2, 50):
            for name, peak in (("v-min", (d + 4) // 3), ("v-half", (d + 2) // 2)):
                block = offsets.block_of_rule(offsets.rule_of(name, d), d)
                self.assertEqual((offsets.shared_cells(block), offsets.peak(block)), (0, peak), (name, d))
                self.assertGreaterEqual(offsets.bound(block), peak)
        self.assertIsNone(offsets.rule_of("v-zb", 4))

    def test_other_rules_collide(self):
        """F of device 0 in cell 0, B of the second chunk in 2d + wait - 1: one cell of six if 3 divides d and the wait is 1,
        and likewise F up and B up. All 9 devices share both."""
        self.assertEqual(offsets.shared_cells(offsets.block_of_rule(offsets.V_MIN, 9)), 18)
        other = dataclasses.replace(offsets.V_HALF, b_down=1, b_up=2)  # the paper's 0 and 1 taken for chunks
        self.assertTrue(all(offsets.shared_cells(offsets.block_of_rule(other, d)) for d in range(4, 20)))

    def test_other_blocks(self):
        """Of 1F1B, whose BW take two cells."""
        events = [Event("block", 0, None, kind, 0, 0, *[None] * 3, at, at + cells, 6)
                  for kind, at, cells in (("F", 0, 1), ("BW", 1, 2))]
        with self.assertRaisesRegex(Failure, "run x: a block of other passes; expected"):
            offsets.block_of_run(Made(traces={"x": events}), Row(name="x"))

    def test_published(self):
        path = ROOT / "../shared/data/controllable_memory/tables8_9_offsets.csv"
        if not path.is_file():
            self.skipTest(f"no {path}")
        names = ("delta_f0", "delta_f1", "delta_b0", "delta_b1", "delta_fd0_fd1", "delta_f0_1_b0_1", "delta_bd0_bd1")
        rests = {"d mod 3 = 0": [0], "d mod 3 > 0": [1, 2], "d mod 2 = 0": [0], "d mod 2 = 1": [1]}
        with path.open(encoding="utf-8") as lines:
            published = {(line["block"].lower(), rest): tuple(int(line[name]) for name in names)
                         for line in csv.DictReader(lines) for rest in rests[line["devices_mod"]]}
        self.assertEqual({(name, rest): dataclasses.astuple(rule) for name, rules in offsets.RULES.items()
                          for rest, rule in enumerate(rules)}, published)


class Tables(unittest.TestCase):
    def test_bubbles(self):
        """Of 64 microbatches of 6 cells 42 idle: 42 / (384 + 42)."""
        self.assertAlmostEqual(tables.idle_cells(Row(microbatches=64, bubble_rate_span=42 / 426)), 42)
        theirs = [[tables.generator_cells(name, d) for d in (6, 8, 9)] for name in ("1f1b", "v-min", "v-half", "v-zb")]
        self.assertEqual(theirs, [[30, 42, 48], [17, 27, 29], [11, 17, 23], [0, 0, 0]])

    def test_flops(self):
        """Four layers of h = 2, two sequences of 3: 24 b s h^2 + 4 b s^2 h = 576 + 144 FLOPs of F a layer; B has the second
        term twice, W not at all."""
        row = Row(mfu=0.5, peak_tflops=1e-12 * 2 * 12 * 720, iteration_s=10, microbatches=10, microbatch_size=2, seq_len=3)
        for flops, expected in zip(tables.pass_flops(row, 2), (2880, 3456, 2304)):
            self.assertAlmostEqual(flops, expected)

    def test_table_of_figure_6(self):
        row = {"model": "38.5B", "microbatches": 512, "schedule": "1f1b", "status": "ok", "recompute": "none", "mfu": 0.49,
               "samples_per_s_per_gpu": 0.637, "memory_gib_max": 54.5, "activation_gib_max": 33.8, "bubble_rate_span": 0.069,
               "published_mfu": 0.471}
        more = {"recompute": "full", "activation_gib_max": 0.85, "published_mfu": None}
        made = Made(row, {**row, **more}, {**row, **more, "model": "9.6B", "status": "out_of_memory", "activation_gib_max": 1.2})
        text = to_markdown(Document("", tables.table4(made)))
        for line in ("| 1F1B     |           0.637 | 49.0% |           54.5 |                33.8 |        6.9% |      47.1% |"
                     "                  +1.9 |", "ours 0.8 to 1.2 GiB", "|          512 | 1F1B-R   | out of memory   | –"):
            self.assertIn(line, text)


class Explanations(unittest.TestCase):
    """A verdict follows the run that takes the cause away."""

    def test_planned_for_equal_times(self):
        """Ours 45.6%, the paper 43.7%: the plan is the reason where the other plan comes to the paper's, one of two where
        it goes half a point down, and none where it does not."""
        for equal, expected in ((0.437, "yes"), (0.450, "in part"), (0.455, "**no**")):
            made = Made({"name": "38.5B.m512.v-min", "model": "38.5B", "microbatches": 512, "schedule": "v-min",
                         "recompute": "none", "mfu": 0.456, "published_mfu": 0.437},
                        {"name": "many.equal.v-min", "schedule": "v-min", "mfu": equal})
            self.assertEqual(explanations.planned(made)[-1], expected)

    def test_causes_of_a_bubble(self):
        """Of 12 points of bubble the larger part must go with its cause."""
        for passes, transfers, expected in ((0.05, 0.11, ["yes", "**no**"]), (0.11, 0.05, ["**no**", "yes"])):
            of = {"as-they-are": 0.12, "equal-passes": passes, "free-transfers": transfers, "neither": 0.03}
            made = Made(*[{"name": f"{name}.v-min", "bubble_rate_span": rate} for name, rate in of.items()])
            self.assertEqual([line[-1] for line in explanations.unequal_passes(made)], expected)

    def test_collectives(self):
        for alone, expected in ((0.005, "yes"), (0.03, "in part"), (0.07, "**no**")):
            made = Made({"name": "a", "tp": 1, "mfu": 0.6 + alone, "published_mfu": 0.6},
                        {"name": "b", "tp": 8, "mfu": 0.56, "published_mfu": 0.5})
            self.assertEqual(explanations.collectives(made)[-1], expected)


class Paper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name) / "paper.h5"
        done = subprocess.run([PIPECAST, "run", *map(str, scenarios()), "-o", str(cls.path), "--format", "csv", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise AssertionError(done.stderr)
        cls.results = Results(PIPECAST, cls.path, NoPictures())

    def test_every_scenario_is_on_the_page(self):
        read = {name for names, _ in paper.PARTS for name in names}
        self.assertEqual({file.stem for file in (ROOT / "scenarios/paper").glob("*.yaml")}, read)

    def test_what_asks_for_the_engine_is_run_on_it(self):
        """And that are all."""
        for file in (ROOT / "scenarios/paper").glob("*.yaml"):
            self.assertIn("\nsetting:\n  engine: events\n", file.read_text("utf-8"), file)
        for scenario, counted in engine.ways(self.results).items():
            self.assertEqual(list(counted), ["events"], scenario)

    @full_only
    def test_parts_stand_on_the_page(self):
        page = (ROOT / "results/paper/README.md").read_text(encoding="utf-8")
        known, count = set(self.results.scenarios()), 0
        for names, write in paper.PARTS:
            if set(names) <= known:
                text = to_markdown(Document("", write(self.results))).split("-->\n\n", 1)[1]
                for line in text.splitlines():
                    if line not in page:
                        self.fail(f"{names[0]}: not on the page (./reproduce makes it): {line}")
                self.assertTrue(text in page, f"{names[0]}: its lines stand apart on the page")
                count += 1
        self.assertGreaterEqual(count, len(QUICK))

    def test_models_of_table_2(self):
        """As the paper has them: layers, heads, hidden size, GPUs."""
        models = self.results.models()
        found = {row.model: (*(models[tables.library_name(row)][key] for key in ("layers", "heads", "hidden")), row.gpus)
                 for row in self.results.rows(controllable.TABLE2)}
        self.assertEqual(found, {"9.6B": (30, 40, 5120, 16), "21B": (46, 48, 6144, 24), "38.5B": (62, 64, 7168, 32),
                                 "98.5B": (78, 80, 10240, 40)})

    def test_bubbles_of_table_1(self):
        """In whole cells; V-Min's at most 4p-5, the others' as they are known."""
        idle = collections.defaultdict(dict)
        for row in self.results.rows(controllable.TABLE1):
            self.assertEqual(row.microbatches, 8 * row.pp)
            idle[row.schedule][row.pp] = tables.idle_cells(row)
            self.assertAlmostEqual(idle[row.schedule][row.pp], round(idle[row.schedule][row.pp]), 6)
        rounded = {name: {p: round(cells) for p, cells in of.items()} for name, of in idle.items()}
        self.assertEqual((rounded["1f1b"][8], rounded["v-half"][8], rounded["v-half"][16]), (42, 17, 41))
        self.assertEqual([rounded["v-min"][p] for p in (4, 8, 16)], [11, 23, 59])
        self.assertEqual(set(rounded["v-zb"].values()), {0})

    def test_blocks_of_table_8(self):
        """Each can be repeated, and what it then holds is what the run holds."""
        for row in self.results.rows(offsets.TABLE8):
            block = offsets.block_of_run(self.results, row)
            self.assertEqual((offsets.shared_cells(block), offsets.peak(block)), (0, row.activation_gib_max), row.name)

    def test_passes_of_table_5(self):
        """FLOPs of F are those of four layers and a head of 128 words, so that the rest is right too."""
        models = self.results.models()
        for row in self.results.rows(controllable.TABLE5):
            hidden, tokens = models[tables.library_name(row)]["hidden"], row.microbatch_size * row.seq_len
            layer = 24 * tokens * hidden**2 + 4 * tokens * row.seq_len * hidden
            flops = tables.pass_flops(row, hidden)
            expected = tables.TIMED_LAYERS * layer + 2 * tokens * hidden * 128
            self.assertAlmostEqual(flops[0] / expected, 1, 9)
            together = sum(flops) / (row.pass_f_s + row.pass_b_s + row.pass_w_s) / (row.peak_tflops * 1e12)
            self.assertAlmostEqual(together, row.mfu, delta=0.003)  # the run has an optimizer step too

    def test_charts_draw_every_run(self):
        """Two runs in one place of a chart, such as two models with as many microbatches, would hide each other."""
        count = 0
        for file in scenarios():
            rows = [row for row in self.results.rows(file.stem) if row.status == "ok"]
            for columns in charts(file):
                places = collections.Counter(tuple(row[column] for column in columns) for row in rows)
                self.assertEqual([place for place, runs in places.items() if runs > 1], [], f"{file.stem}: {columns}")
                count += 1
        self.assertGreaterEqual(count, 4 if IS_QUICK or IS_SLOWED else 5)

    @needs_searched
    def test_tables_have_the_models_names(self):
        names = {row.model for scenario in (controllable.FIGURE7, controllable.TABLE2) for row in self.results.rows(scenario)}
        self.assertEqual(names, {"9.6B", "21B", "38.5B", "98.5B"})

    @needs_searched
    def test_what_v_min_idles_by_algebra(self):
        """Six passes of a chunk in an interval, F, B and W of two chunks, each in a cell of its own. V-Min's block has no
        cell to spare, and neighbours follow each other cell by cell, so that every cell is as long as the longest pass:
        an interval of 6 max(f, b, w), where 2 (f + b + w) are work. Of F = 31.064, B = 33.978, W = 26.233 ms a stage
        that is 3 x 33.978 / 91.275 - 1 of the work more a microbatch. V-Half's block lets the longer pass have what the
        shorter leaves. With passes alike and no transfers nobody waits but at the start and the end."""
        of = growth.causes(self.results)
        more = 3 * 33.978 / 91.275 - 1
        for schedule, making, expected in (("v-min", "equal", more), ("v-min", "published", more), ("v-half", "equal", 0),
                                           ("v-half", "published", 0), ("1f1b", None, 0)):
            self.assertAlmostEqual(growth.growth(of["unequal", schedule, making]), expected, places=3)
            self.assertAlmostEqual(growth.growth(of["alike", schedule, making]), 0, places=3)
        self.assertLess(growth.growth(of["unequal", "v-min", "costs"]), more + 0.001)
        self.assertAlmostEqual(growth.growth(of["both", "v-min", "equal"]),
                               sum(growth.growth(of[cause, "v-min", "equal"]) for cause in ("unequal", "transfers")), places=3)
        for rows in of.values():
            rates = [row.bubble_rate_span for row in sorted(rows, key=lambda row: row.microbatches)]
            self.assertEqual(rates, sorted(rates, reverse=True))

    @full_only
    def test_memory_over_devices_by_algebra(self):
        """Of device d the F of chunk 0 and its B are 4p - 1 - 2d cells apart in both blocks; those of chunk 1 2p - 1 - 2d in
        the parallel one, 2d + 1 in the V: together 6p - 2 - 4d, or 4p. W, one of the six cells behind B, ends 2 to 7 cells
        after B begins. Of a chunk that lives L cells a device holds L / 6 on average, and never more than L / 6 rounded up,
        at most 5/6 more; a chunk is half a stage's."""
        rows = {(row.pp, row.schedule): row for row in self.results.rows(balance.BALANCE)}
        self.assertEqual(sorted({p for p, _ in rows}), [4, 16, 32])
        for (p, block), row in rows.items():
            for device, held in enumerate(balance.peaks(self.results, row)):
                apart = 6 * p - 2 - 4 * device if block == "parallel" else 4 * p
                chunks = round(held * p * 2)
                self.assertGreaterEqual(chunks, (apart + 2 * 2) / 6)
                self.assertLessEqual(chunks, (apart + 2 * 7) / 6 + 2 * 5 / 6)
            self.assertEqual(row.bubble_rate_span, rows[p, "v-shaped"].bubble_rate_span)
        fullest, least = (pick(balance.peaks(self.results, rows[32, "parallel"])) for pick in (max, min))
        self.assertGreater(fullest, 2.5 * least)

    @needs_searched
    def test_what_is_sent_by_algebra(self):
        """A microbatch of s tokens and hidden size h is 2 s h bytes a sequence in 16 bits. It crosses p - 1 boundaries
        between devices with one chunk a device, 2 (p - 1) with two in a V, whose turn is within a device, and 2 p - 1
        with two interleaved; forward and back, m times, over p GPUs."""
        hidden, checked = {"9.6B": 5120, "21B": 6144, "38.5B": 7168}, 0
        for (model, *_), of in in_numbers.by_schedule(self.results, controllable.FIGURE7).items():
            for name, row in of.items():
                crossed = {"1F1B-I": 2 * row.pp - 1}.get(name, (row.pp - 1) * (2 if name.startswith("V-") else 1))
                tensor = 2 * row.seq_len * hidden[model] * row.microbatch_size
                self.assertAlmostEqual(row.sent_pp_gib, 2 * crossed * row.microbatches * tensor / row.pp / 2**30, places=9)
                checked += 1
        self.assertEqual(checked, 23)

    @full_only
    def test_own_models_have_the_pass_times_of_the_cluster_model(self):
        """Of figure 6's settings, made anew: twice a chunk's F, B and W, the longest, and the longest transfer."""
        text = (ROOT / "scenarios/paper/controllable_memory_figure6.yaml").read_text(encoding="utf-8")
        setting = text[text.index("\nsetting:"):text.index("\ncases:")]
        cases = [line for line in text.splitlines() if re.search(r"name: (9.6B.m32|21B.m48|38.5B.m64).v-zb,", line)]
        path = pathlib.Path(self.folder.name) / "times"
        path.with_suffix(".yaml").write_text("\n".join(["scenario: times", setting.strip(), "  trace: true", "cases:", *cases]),
                                             encoding="utf-8")
        subprocess.run([PIPECAST, "run", path.with_suffix(".yaml"), "-o", path.with_suffix(".h5"), "--quiet"], check=True,
                       capture_output=True)
        made = Results(PIPECAST, path.with_suffix(".h5"), NoPictures())
        rows = made.rows("times")
        self.assertEqual(len(rows), 3)
        for row in rows:
            transfer = max(event.end_ps - event.start_ps for event in made.trace("times", row.name) if event.event == "transfer")
            times = [*(2000 * row[f"pass_{kind}_s"] for kind in "fbw"), transfer / 1e9]
            words = "times: {{F: {:.3f} ms, B: {:.3f} ms, W: {:.3f} ms}}, transfer: {{time: {:.3f} ms}}".format(*times)
            for scenario, count in ((own_models.FIGURE9_MODELS, 2), (own_models.FIGURE10_MODELS, 1), (growth.GROWTH, 0)):
                given = (ROOT / f"scenarios/paper/{scenario}.yaml").read_text(encoding="utf-8")
                found = sum(words in line for line in given.splitlines() if f"name: {row.model}." in line)
                self.assertEqual(found, count, f"{scenario}: expected {words}")
            if row.model == "9.6B":
                self.assertIn(words, given)

    @unittest.skipUnless(IS_LONG, "part: it takes minutes")
    def test_whole_page(self):
        done = subprocess.run([sys.executable, str(ROOT / "results/report"), PIPECAST, str(self.path), "--check",
                               str(ROOT / "results/paper")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
