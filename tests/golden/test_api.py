"""The library beside the command: the same runs, plans, lists, schedules and profiles, to the last byte.

usage: test_api.py PIPECAST SOURCE_ROOT API_TABLE (tests/api_table.c, built)
"""
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from command import ROOT, run

API_TABLE = os.path.abspath(sys.argv[3])
CLUSTER = """scenario: cluster
setting: {model: {from: gpt3-1.3b}, machine: dgx-a100, gpus: 16, global_batch: 32}
sweep: {schedule: [1f1b, zb-h1], tp: [1, 3, 8], pp: [1, 2]}
"""
PLAN = """scenario: search
setting: {model: {from: gpt3-1.3b}, machine: dgx-a100, gpus: 16, global_batch: 32}
plan: {tp: [1, 2], pp: [1, 2, 4], microbatch_size: [1, 2], schedule: [1f1b, zb-h1], recompute: [none]}
"""


class Api(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def library(self, *arguments, status=0):
        done = subprocess.run([API_TABLE, *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, bool(done.stderr)), (status, status != 0), done)
        return done.stdout if status == 0 else done.stderr

    def command(self, *arguments):
        done = run(*arguments)
        self.assertIn(done.returncode, (0, 1), done)
        return done.stdout

    def test_runs(self):
        for path in (self.write("cluster.yaml", CLUSTER), str(ROOT / "scenarios/paper/zero_bubble_table2.yaml")):
            theirs = self.command("run", path, "--format", "csv")
            self.assertEqual(self.library("run", path), theirs)
            results = str(self.folder / "results.h5")
            self.assertEqual(self.library("run", path, results), theirs)
            self.assertEqual(self.library("run", path, results), theirs)  # all are there
            self.assertEqual(self.library("open", results), theirs)
            os.remove(results)

    def test_results_files_are_equal(self):
        path, files = self.write("cluster.yaml", CLUSTER), [str(self.folder / name) for name in ("mine.h5", "theirs.h5")]
        self.library("run", path, files[0])
        self.command("run", path, "-o", files[1])
        self.assertEqual(*(pathlib.Path(file).read_bytes() for file in files))

    def test_plans(self):
        self.check_plans(self.write("plan.yaml", PLAN))

    def check_plans(self, path):
        """All columns but the command and what else a command can be asked, which are the command line's."""
        own = ["part", "what", "factor", "command"]
        theirs = list(csv.DictReader(io.StringIO(self.command("plan", path, "--format", "csv"))))
        mine = list(csv.DictReader(io.StringIO(self.library("plan", path))))
        self.assertGreater(len(mine), 3)
        self.assertEqual(list(mine[0]) + own, list(theirs[0]))
        self.assertEqual(mine, [{name: value for name, value in row.items() if name not in own} for row in theirs])

    def test_lists(self):
        for subject, what in enumerate(("schedules", "models", "machines", "keys")):
            listed = self.command("list", what)
            rows = list(csv.DictReader(io.StringIO(self.library("list", str(subject)))))
            self.assertGreater(len(rows), 10)
            for row in rows:
                self.assertIn(row["name"] + " " if what != "keys" else f"  {row['name']}\n", listed)
                if what != "keys":
                    self.assertIn(row["words"], listed)

    def test_schedules(self):
        """1F1B at F = B = W = 1: m + p - 1 microbatches of 3, one after the other, are the span."""
        file = str(self.folder / "s.csv")
        self.assertEqual(float(self.library("schedule", "1f1b", "4", "8", file)), 33)
        self.assertEqual(pathlib.Path(file).read_text(),
                         self.command("schedule", "1f1b", "-p", "4", "-m", "8", "--format", "torch-csv"))
        self.assertIn("has recompute passes", self.library("schedule", "1f1b-r", "4", "8", file, status=1))

    def test_building_blocks(self):
        """A file in place of a name."""
        file, block = str(self.folder / "s.csv"), str(ROOT / "docs/examples/blocks/v-half.yaml")
        self.library("schedule", block, "4", "8", file)
        self.assertEqual(pathlib.Path(file).read_text(),
                         self.command("schedule", "--block", block, "-p", "4", "-m", "8", "--format", "torch-csv"))
        self.assertIn("no.yaml", self.library("schedule", "no.yaml", "4", "8", file, status=1))

    def make_profile(self):
        """All-reduces of 8 ranks: 20 us, and bytes at 100 GB/s; a fit knows that to a percent."""
        sizes = [2**i for i in range(12, 31)]
        source = self.write("all_reduce.csv", "collective,ranks,size_bytes,time_us\n" + "".join(
            f"all_reduce,8,{size},{20 + 1e6 * size / 1e11:.6f}\n" for size in sizes))
        profile = str(self.folder / "profile.h5")
        self.command("profile", "fit", source, "-o", profile, "--gpu", "a100-sxm-80gb", "--device", "made up",
                     "--processors", "108", "--link", "nvlink")
        return source, profile

    def test_runs_and_plans_with_a_profile(self):
        self.make_profile()
        path = self.write("cluster.yaml", CLUSTER.replace("gpus: 16", "profile: profile.h5, gpus: 16"))
        theirs = self.command("run", path, "--format", "csv")
        self.assertNotEqual(theirs.replace(",profile.h5,", ",,"), self.library("run", self.write("plain.yaml", CLUSTER)))
        self.assertEqual(self.library("run", path), theirs)
        self.check_plans(self.write("plan.yaml", PLAN.replace("gpus: 16", "profile: profile.h5, gpus: 16")))

    def test_profiles(self):
        source, profile = self.make_profile()
        device, *table = self.library("fits", profile).splitlines()
        self.assertEqual(device, "made up,a100-sxm-80gb")
        row, = csv.DictReader(table)
        self.assertEqual((row["name"], row["dimensions"], row["points"]), ("all_reduce, 8 ranks, nvlink", "bytes", "19"))
        for size in (2**12, 2**20, 2**30):
            seconds, deviation = map(float, self.library("ask", profile, "0", str(size)).split(","))
            self.assertAlmostEqual(seconds / (20e-6 + size / 1e11), 1, delta=0.01)
            self.assertGreaterEqual(deviation, 0)
        self.assertIn("dimensions", self.library("ask", profile, "0", "1", "2", status=1))
        self.assertIn("more than zero", self.library("ask", profile, "0", "0", status=1))
        self.assertIn("there is none", self.library("ask", profile, "1", "1", status=1))
        self.assertIn(source, self.library("fits", source, status=1))

    def test_errors_are_the_commands(self):
        for path in sorted((ROOT / "tests/data/scenarios/bad").glob("*.yaml"))[::7]:
            theirs = run("run", str(path), "--format", "csv")
            if theirs.returncode == 2:
                self.assertEqual("pipecast: " + self.library("run", str(path), status=1).removeprefix("1 "), theirs.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
