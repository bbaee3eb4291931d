"""A sample of docs/schedules-compared.md, asked anew (compared.py): ours is no longer than the public schedule beside it, no
shorter and, where it was reached, no longer than a proved optimum, and no bound is above a span that somebody has. And that
script, and the picture's data, are what they say.

A quick run takes a part of the rows of ../shared/data/schedules, a long one all.

usage: test_compared.py PIPECAST SOURCE_ROOT
"""
import csv
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import compared  # noqa: E402
import slow_stage  # noqa: E402
from asked import SAME, Answer, Request, difference  # noqa: E402
from command import IS_SLOWED, PIPECAST, ROOT, SIZE  # noqa: E402

EVERY = {"quick": 60, "full": 12, "long": 1}[SIZE] * (4 if IS_SLOWED else 1)
JOBS = 2
NOT_REACHED = {"pipecast schedule v-adaptive -p 4 -m 8 --times 1,1,1 --comm 0.5 --memory-limit 2.5"}  # proved by others


def rows_of(test, name, every):
    """In a part the small ones alone."""
    rows = compared.read(ROOT, name)
    if rows is None:
        test.skipTest(f"{name} of ../shared/data/schedules is not there")
    return rows if SIZE == "long" else [row for row in rows if int(row["p"]) * int(row["m"]) <= 256][::every]


class Beside(unittest.TestCase):
    def test_no_public_row_is_shorter(self):
        found = compared.reference_pairs(PIPECAST, JOBS, rows_of(self, "reference.csv", EVERY))
        for pair in [pair for pairs in found.values() for pair in pairs]:
            with self.subTest(str(pair.request)):
                self.assertLessEqual(pair.change(), 0, f"ours {pair.ours.span}, theirs {pair.span}")
                self.assertLessEqual(pair.ours.peak, pair.request.limit or pair.ours.peak)
                self.assertLessEqual(difference(pair.ours.bound, pair.span), 0)

    def test_known_optima(self):
        found = compared.known_answers(PIPECAST, JOBS, rows_of(self, "optimal_small.csv", max(1, EVERY // 6)))
        for known in [known for of in found.values() for known in of]:
            with self.subTest(str(known.pair.request)):
                self.assertGreaterEqual(known.gap_of_bound(), 0)
                if known.is_proved and str(known.pair.request) not in NOT_REACHED:
                    self.assertEqual(known.pair.change(), 0)
                elif known.is_proved:
                    self.assertGreaterEqual(known.pair.change(), 0)

    def test_what_people_run(self):
        """On four devices; of the bounds those of the same placement, which theirs is one of."""
        costs = [compared.COSTS["equal"], compared.COSTS["22, 24.6, 17; 0.3"]]
        found = compared.grid_answers(PIPECAST, JOBS, shapes=[(4, 8)], costs=costs)
        self.assertEqual(set(found), set(compared.ORDERS))
        for order, of in found.items():
            for _, theirs, pair in of:
                with self.subTest(f"{order.label()}: {pair.request}"):
                    self.assertLessEqual(pair.change(), 0)
                    self.assertLessEqual(pair.ours.peak, theirs.peak)
                    if "interleaved" not in order.name and order.name != "looped-bfs":
                        self.assertLessEqual(difference(pair.ours.bound, theirs.span), 0)

    def test_picture(self):
        """Of its data: none lies below the bound, nor the public adaptive schedule below ours."""
        with open(ROOT / compared.DATA) as file:
            rows = list(csv.DictReader(file))
        of = {(row["F"], row["series"], row["memory_of_1f1b"]): float(row["bubble_rate_span"]) for row in rows}
        for (times, series, memory), rate in of.items():
            with self.subTest(f"{times} {series} {memory}"):
                self.assertGreaterEqual(rate, of.get((times, compared.BOUND, memory), 0))
                if series == compared.PUBLIC:
                    self.assertGreaterEqual(rate, of[times, compared.OURS, memory])
        for series in (*compared.POINTS, compared.OURS, compared.LINE, compared.PUBLIC, compared.BOUND):
            self.assertEqual({row["F"] for row in rows if row["series"] == series}, {"1", "22"}, series)


def pair(ours, theirs):
    return compared.Pair(theirs, Request("zb-1p", 2, 4, "1,1,1", 0), Answer(ours, 0, 0, ours, 0, True, None))


class Script(unittest.TestCase):
    def test_what_is_only_rounding_is_no_difference(self):
        self.assertEqual(difference(3.0, 3.0 * (1 + SAME / 2)), 0)
        self.assertAlmostEqual(difference(3.0, 4.0), -0.25)

    def test_shorter_equal_and_longer(self):
        pairs = [pair(3, 4), pair(4, 4), pair(5, 4), pair(2, 4)]
        self.assertEqual(compared.changes_of(pairs), ["2", "1", "1", "-12.5%", "-50.0%", "+25.0%"])
        self.assertEqual(compared.named(pairs)[1:], [
            "Of 4 ours is longer in 1:", "", "- +25.00%: `pipecast schedule zb-1p -p 2 -m 4 --times 1,1,1 --comm 0`, theirs 4"])

    def test_a_row_is_asked_in_its_own_memory(self):
        row = {"scheduler": "V-Half", "p": "4", "m": "8", "chunks": "2", "F": "1.5", "B": "2.0", "W": "1.0", "comm": "0.5",
               "mem_f": "", "mem_b": "", "peak_mem_model": "", "peak_act_units": "6", "span": "80"}
        request = compared.request_of(row)
        self.assertEqual((request.name, request.times, request.options), ("v-half", "3.0,4.0,2.0", ()))
        self.assertAlmostEqual(request.limit, 3)
        freed = row | {"scheduler": "ZB-1P", "chunks": "1", "mem_f": "40", "mem_b": "-10", "peak_mem_model": "140"}
        request = compared.request_of(freed)
        self.assertEqual(request.options, ("--release-b", "0.25"))
        self.assertAlmostEqual(request.limit, 3.5)

    def test_a_part_replaces_what_stood_between_its_marks(self):
        begin, end = compared.marks("grid")
        text = f"before\n{begin}\nstale\n{end}\nafter\n"
        self.assertEqual(compared.with_part(text, "grid", ["| a |"]), f"before\n{begin}\n| a |\n{end}\nafter\n")
        self.assertRaises(SystemExit, compared.with_part, text, "gaps", [])

    def test_every_part_stands_on_the_page(self):
        for part in set(compared.PARTS) - {"picture"}:
            text, (begin, end) = (ROOT / compared.PAGES.get(part, compared.PAGE)).read_text(), compared.marks(part)
            self.assertRegex(text.split(begin)[1].split(end)[0], r"\n\|[-|: ]+\|\n\| .+ \|\n", part)

    def test_what_a_slow_stage_passes_on(self):
        """Half as long again, and the iteration a quarter: one half. Two schedules of the same numbers share a line."""
        rows = [{"schedule": name, "slow_stage": str(stage), "slow_factor": factor, "slowdown_mean": str(slowdown),
                 "iteration_good_s": "2"}
                for name, most in (("a", 1.25), ("b", 1.5), ("c", 1.25)) for stage in (0, 4, 7)
                for factor, slowdown in (("1.1", 1.01), ("1.5", most))]
        self.assertEqual(slow_stage.lines_of(rows), [["a, c", "2.000 s", *["0.10, 0.50"] * 3], ["b", "2.000 s", *["0.10, 1.00"] * 3]])

    def test_without_the_rows_of_others(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in ("reference", "optimal"):
                self.assertIsNone(compared.PARTS[part](PIPECAST, pathlib.Path(folder, "root"), JOBS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
