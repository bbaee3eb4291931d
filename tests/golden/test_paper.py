"""The page of the papers (results/paper/README.md) says what the scenarios say now.

Quick: the parts of the page whose scenarios take a moment are made anew and must stand on the page, line by line; and
the README's table likewise. A verdict is yes, in part or no as the runs have it, and no chart draws two runs in one
place. Slow: all scenarios, the whole page (report --check).

usage: test_paper.py PIPECAST SOURCE_ROOT [all]
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
IS_WHOLE = "all" in sys.argv[3:]
IS_PART = "PC_TEST_PART" in os.environ  # as in command.py
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "results/report"))

import claims  # noqa: E402
import controllable  # noqa: E402
import headline  # noqa: E402
import paper  # noqa: E402
from document import Document  # noqa: E402
from markdown import to_markdown  # noqa: E402
import zero_bubble  # noqa: E402
from results import Event, Results, Row  # noqa: E402

QUICK = ("controllable_memory_timelines", "controllable_memory_table1", "controllable_memory_table2",
         "controllable_memory_table5", "controllable_memory_figure5", "controllable_memory_figure7",
         "controllable_memory_figure12", "zero_bubble_table2", "zero_bubble_table9")
if IS_PART:  # its searches take half a minute and more with sanitizers
    QUICK = tuple(name for name in QUICK if name != "controllable_memory_figure7")
needs_figure7 = unittest.skipIf(IS_PART, "part: figure 7 is left out")


class NoPictures:
    """The numbers alone are compared."""

    def ask(self, path, arguments):
        return path


def scenarios():
    files = sorted((ROOT / "scenarios/paper").glob("*.yaml"))
    return files if IS_WHOLE else [file for file in files if file.stem in QUICK]


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

    def test_adapted(self):
        for half, expected in ((0.53, "yes"), (0.51, "**no**")):
            made = Made(*({"model": "38.5B", "microbatches": 512, "schedule": name, "mfu": mfu}
                          for name, mfu in (("v-half", half), ("v-zb", 0.52), ("1f1b", 0.49))))
            self.verdicts(claims.adapted, made, [expected])

    def test_repeating(self):
        for least, half, expected in ((24, 18, "yes"), (18, 18, "in part"), (18, 20, "**no**")):
            rows = [{"name": schedule + plan, "schedule": schedule, "plan": plan, "pp": 4, "microbatches": 9}
                    for schedule in ("v-min", "v-half") for plan in ("equal", "costs")]
            traces = {row["name"]: passes(least if row["schedule"] == "v-min" else half, 18) for row in rows}
            self.verdicts(claims.repeating, Made(*rows, traces=traces), [expected])

    def test_drop(self):
        for rates, expected in (((0.12, 0.04, 0.035), "yes"), ((0.12, 0.08, 0.04), "**no**")):
            made = Made(*({"name": "a.v-adaptive", "schedule": "v-adaptive", "model": "a", "pp": 16, "microbatches": 256,
                           "memory_limit_gib": limit, "bubble_rate_span": rate}
                          for limit, rate in zip((0.5, 0.575, 0.65), rates)))
            self.verdicts(claims.drop, made, [expected])

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

    def test_charts_draw_every_run(self):
        """Two runs in one place of a chart, such as two models with as many microbatches, would hide each other."""
        count = 0
        for file in scenarios():
            rows = [row for row in self.results.rows(file.stem) if row.status == "ok"]
            for columns in charts(file):
                places = collections.Counter(tuple(row[column] for column in columns) for row in rows)
                self.assertEqual([place for place, runs in places.items() if runs > 1], [], f"{file.stem}: {columns}")
                count += 1
        self.assertGreaterEqual(count, 4 if IS_PART else 5)

    @needs_figure7
    def test_tables_have_the_models_names(self):
        names = {row.model for scenario in (controllable.FIGURE7, controllable.TABLE2) for row in self.results.rows(scenario)}
        self.assertEqual(names, {"9.6B", "21B", "38.5B", "98.5B"})

    @needs_figure7
    def test_table_of_the_readme(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(headline.replaced(text, self.results, "README.md"), text)

    @unittest.skipUnless(IS_WHOLE, "part: it takes long, the suite `slowest` has it")
    def test_whole_page(self):
        done = subprocess.run([sys.executable, str(ROOT / "results/report"), PIPECAST, str(self.path), "--check",
                               str(ROOT / "results/paper")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
