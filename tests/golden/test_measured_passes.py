"""Measured passes in `schedule` and `run`: the same span from a file as from options, limits in bytes, the best schedule.

usage: test_measured_passes.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

from command import run

LINEAR = """transfer: 0.5 ms
stages:
  - {F: 10 ms, B: 11 ms, W: 7 ms, activation: 2 GiB, freed_by_b: 1 GiB, held: 30 GiB, F_scatter: 0.1}
  - {F: 11 ms, B: 12 ms, W: 8 ms, activation: 2 GiB, freed_by_b: 1 GiB, held: 28 GiB}
  - {F: 12 ms, B: 13 ms, W: 9 ms, activation: 2 GiB, freed_by_b: 1 GiB, held: 31 GiB}
"""


class Measured(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)
        self.times = str(self.folder / "times.yaml")
        pathlib.Path(self.times).write_text(LINEAR)

    def schedule(self, *arguments, status=0):
        done = run("schedule", *arguments, "--format", "json")
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else json.loads(done.stdout)

    def rows(self, *arguments, status=0):
        done = run("run", *arguments, "--format", "csv")
        self.assertEqual(done.returncode, status, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_as_options_say_it(self):
        """The same numbers by --times F,B,W/... and --comm; memory is 2 GiB a microbatch."""
        for name in ("1f1b", "zb-h1", "zb-1p"):
            here = self.schedule(name, "-m", "9", "--times", self.times)
            there = self.schedule(name, "-p", "3", "-m", "9", "--times", "10,11,7/11,12,8/12,13,9", "--comm", "0.5",
                                  "--release-b", "0.5")
            for key in ("span", "makespan", "bubble_rate_span", "bound"):
                self.assertAlmostEqual(here[key], there[key], places=9, msg=(name, key))
            self.assertEqual(here["peak_activation"], [2 * peak for peak in there["peak_activation"]])
            self.assertEqual((here["time_unit"], here["memory_unit"], here["held"]), ("ms", "GiB", [30, 28, 31]))

    def test_run_is_schedule(self):
        rows = self.rows("--times", self.times, "--schedule", "1f1b,zb-h1,zb-1p", "--microbatches", "6,9")
        self.assertEqual(len(rows), 6)
        for row in rows:
            here = self.schedule(row["schedule"], "-m", row["microbatches"], "--times", self.times)
            self.assertAlmostEqual(float(row["iteration_s"]) * 1000, here["makespan"], places=6)
            self.assertAlmostEqual(float(row["activation_gib_max"]), here["max_peak_activation"], places=6)

    def test_limits_are_all_that_a_device_has(self):
        """1F1B of three stages holds 3, 2 and 1 microbatches of 2 GiB: 36, 32 and 33 GiB with what is there."""
        self.schedule("1f1b", "-m", "9", "--times", self.times, "--memory-limit", "36GiB")
        said = self.schedule("1f1b", "-m", "9", "--times", self.times, "--memory-limit", "35.9GiB", status=1)
        self.assertEqual(said, "pipecast: --memory-limit: 35.9GiB is too little for 1f1b: device 0 needs 6 GiB for activations "
                               "and holds 30 GiB beside; expected at least 36GiB\n")
        rows = self.rows("--times", self.times, "--schedule", "1f1b", "--microbatches", "9", "--memory", "36GiB")
        self.assertEqual(rows[0]["status"], "ok")
        rows = self.rows("--times", self.times, "--schedule", "1f1b", "--microbatches", "9", "--memory", "35.9GiB", status=1)
        self.assertEqual(rows[0]["status"], "out_of_memory")
        self.assertIn("no unit", self.schedule("1f1b", "-m", "9", "--times", self.times, "--memory-limit", "36", status=2))

    def test_best(self):
        """No schedule that is asked for alone, and fits, is shorter; and the order is written as it is."""
        for limit in ("34GiB", "36GiB", "40GiB"):
            best = self.schedule("best", "-m", "9", "--times", self.times, "--memory-limit", limit)
            for name in ("gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-1p", "zb-2p"):
                done = run("schedule", name, "-m", "9", "--times", self.times, "--memory-limit", limit, "--format", "json")
                if done.returncode == 0:
                    self.assertLessEqual(best["span"], json.loads(done.stdout)["span"], (limit, name))
            held = [peak + there for peak, there in zip(best["peak_activation"], best["held"])]
            self.assertLessEqual(max(held), float(limit.removesuffix("GiB")))
        order = run("schedule", "best", "-m", "9", "--times", self.times, "--format", "torch-csv").stdout
        (self.folder / "best.csv").write_text(order)
        again = self.schedule(str(self.folder / "best.csv"), "--times", self.times)
        self.assertEqual(again["span"], self.schedule("best", "-m", "9", "--times", self.times)["span"])
        self.assertIn("no schedule of these stages holds at most 31GiB",
                      self.schedule("best", "-m", "9", "--times", self.times, "--memory-limit", "31GiB", status=1))

    def test_best_tells_what_is_wrong_from_what_does_not_fit(self):
        limit = 31.0  # what it names is the least that some device needs of some schedule: never more than does
        for _ in range(6):
            done = run("schedule", "best", "-m", "9", "--times", self.times, "--memory-limit", f"{limit}GiB")
            if done.returncode == 0:
                break
            least = float(re.search(r"expected at least ([0-9.]+)GiB, or other stages", done.stderr).group(1))
            self.assertGreater(least, limit)
            limit = least
        self.assertEqual((done.returncode, limit <= 34), (0, True), done.stderr)
        self.assertIn("abc: not a number", self.schedule("best", "-m", "9", "--times", self.times, "--memory-limit", "abc", status=2))
        self.assertIn("for 7 devices; expected one stage a device",
                      self.schedule("best", "-m", "9", "-p", "7", "--times", self.times, status=2))
        without = self.folder / "without.yaml"
        without.write_text("stages:\n" + 2 * "  - {F: 2 ms, B: 3 ms, W: 2 ms}\n")
        for name in ("best", "1f1b"):
            self.assertIn("60GiB, but the file of passes has no activation",
                          self.schedule(name, "-m", "9", "--times", str(without), "--memory-limit", "60GiB", status=2))

    def test_scatter_is_the_files(self):
        """Over all passes 0.1^2 of 10 ms in 93 ms: 0.0328; without a file's scatter there is none to draw."""
        here = self.schedule("1f1b", "-m", "9", "--times", self.times, "--samples", "200")
        there = self.schedule("1f1b", "-m", "9", "--times", self.times, "--samples", "200", "--jitter",
                              repr((0.01 * 10 / 93) ** 0.5))
        self.assertAlmostEqual(here["samples"]["mean"], there["samples"]["mean"], places=6)

    def test_refusals(self):
        def said(*arguments):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr.removeprefix("pipecast: ")
        times = ("--times", self.times)
        self.assertRegex(said("schedule", "1f1b", "-p", "4", "-m", "9", *times), "times of 3 stages for 4 devices")
        self.assertRegex(said("schedule", "chimera", "-m", "8", *times), "expected a schedule without replicas and slices")
        self.assertRegex(said("schedule", "1f1b", "-m", "9", "--comm", "1", *times), "--comm: stands beside a file")
        self.assertRegex(said("schedule", "best", "-p", "3", "-m", "9"), "expected --times FILE")
        self.assertRegex(said("run", "--times", "none.yaml", "--schedule", "1f1b", "--microbatches", "4"),
                         "none.yaml: No such file")
        self.assertRegex(said("run", *times, "--set", "setting.times.F=1 ms", "--schedule", "1f1b", "--microbatches", "4"),
                         "devices: missing")
        self.assertRegex(said("plan", "--model", "llama3-70b", "--machine", "dgx-h100", "--gpus", "64", "--set",
                              "setting.pass_times=" + self.times), "pass_times: given; expected a machine")

    def test_what_cannot_be_is_infeasible(self):
        (self.folder / "bw.csv").write_text("stage,F_ms,BW_ms\n0,10,20\n1,11,22\n")
        rows = self.rows("--times", str(self.folder / "bw.csv"), "--schedule", "1f1b,zb-h1,dualpipe", "--microbatches", "8",
                         status=1)
        self.assertEqual([row["status"] for row in rows], ["ok", "infeasible", "infeasible"])

    def test_scenario(self):
        """A path counts from the scenario, and a transfer there wins over the file's."""
        (self.folder / "s.yaml").write_text("scenario: s\nsetting: {pass_times: times.yaml, microbatches: 9, schedule: 1f1b}\n"
                                            "cases: [{name: a}, {name: b, transfer: {time: 5 ms}}]\n")
        rows = self.rows(str(self.folder / "s.yaml"))
        slow = self.schedule("1f1b", "-p", "3", "-m", "9", "--times", "10,11,7/11,12,8/12,13,9", "--comm", "5")
        self.assertAlmostEqual(float(rows[1]["iteration_s"]) * 1000, slow["makespan"], places=6)
        self.assertLess(rows[0]["iteration_s"], rows[1]["iteration_s"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
