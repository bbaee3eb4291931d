"""`pipecast compare RESULTS.h5 TRACE...`: a forecast beside a run that was measured, here another one that was simulated and
written as traces. What slower passes, transfers and gaps come to is known by simulation, step by step.

usage: test_compare_traces.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

import kineto_traces
from command import run

SCENARIO = """scenario: {name}
setting:
  devices: 4
  microbatches: 8
  stages: [{{F: 10 ms, B: 11 ms, W: 7 ms}}, {{F: 11 ms, B: 12 ms, W: 8 ms}}, {{F: 11 ms, B: 12 ms, W: 8 ms}}, {last}]
  transfer: {{time: {transfer}}}
  trace: true
sweep: {{schedule: [1f1b, zb-h1, v-half]}}
"""
USUAL, SLOW = "{F: 14 ms, B: 15 ms, W: 8 ms}", "{F: 16 ms, B: 18 ms, W: 8 ms}"
NAMES = ("1f1b", "zb-h1", "v-half")


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(keeper.cleanup)
        cls.folder = pathlib.Path(keeper.name)
        cls.makespan = {}
        for name, last, transfer in (("base", USUAL, "0.4 ms"), ("passes", SLOW, "0.4 ms"), ("both", SLOW, "2.5 ms")):
            path = cls.folder / f"{name}.yaml"
            path.write_text(SCENARIO.format(name=name, last=last, transfer=transfer))
            # The slower runs in the order of the first: an order of its own would be a difference of another kind.
            sets = [] if name == "base" else ["--set", "sweep.schedule=[%s]" % ", ".join(f"{x}.csv" for x in NAMES)]
            done = run("run", str(path), *sets, "--allow-outside", "-q", "-o", str(cls.folder / f"{name}.h5"), "--format", "csv",
                       cwd=cls.folder)
            assert done.returncode == 0, done.stderr
            for row in csv.DictReader(io.StringIO(done.stdout)):
                cls.makespan[name, row["schedule"].removesuffix(".csv")] = 1000 * float(row["iteration_s"])
            if name == "base":
                for schedule in NAMES:
                    done = run("export", str(cls.folder / "base.h5"), "--run", "base." + schedule, "--to", "torch-csv", "-o",
                               str(cls.folder / f"{schedule}.csv"))
                    assert done.returncode == 0, done.stderr

    def traces(self, which, schedule, ending=None, **options):
        ending = ("" if which == "base" else ".csv") if ending is None else ending
        done = run("export", str(self.folder / f"{which}.h5"), "--run", f"{which}.{schedule}{ending}", "--to", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        told, paths = kineto_traces.Run(done.stdout), []
        for device in range(4):
            paths.append(str(self.folder / f"rank{device}.json"))
            kineto_traces.write_rank(paths[-1], told, device, clock_ns=10**9 * (1 + device), **options)
        return paths

    def compare(self, schedule, paths, *arguments, status=0):
        done = run("compare", str(self.folder / "base.h5"), *paths, "--run", "base." + schedule, *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_where_the_difference_goes(self):
        for schedule in NAMES:
            with self.subTest(schedule):
                # 1F1B has BW, which the traces call B; pass names have a chunk if there are two.
                paths = self.traces("both", schedule, iterations=3)
                found = json.loads(self.compare(schedule, paths, "--format", "json"))
                base, passes, both = (self.makespan[name, schedule] for name in ("base", "passes", "both"))
                self.assertTrue(found["saw_messages"])
                for key, value in (("simulated", base), ("measured", both)):
                    self.assertAlmostEqual(found[key], value, places=5)
                for key, value in (("passes", passes - base), ("transfers", both - passes), ("order", 0), ("gaps", 0)):
                    self.assertAlmostEqual(found["difference"][key], value, places=5, msg=key)

    def test_the_same_is_no_difference(self):
        found = json.loads(self.compare("zb-h1", self.traces("base", "zb-h1"), "--format", "json"))
        self.assertEqual(found["difference"], {"passes": 0, "transfers": 0, "order": 0, "gaps": 0})
        for device in found["devices"]:
            self.assertEqual((device["simulated"], device["moved"]), (device["measured"], 0))

    def test_another_order(self):
        """zb-h2 where zb-h1 was forecast: it warms up longer, so that the same passes take less in its order, and all of that
        is order. The other way round it is as much more. Messages that all take longer are no order."""
        for name, transfer in (("order", "0.4 ms"), ("far", "2.5 ms")):
            path = self.folder / f"{name}.yaml"
            path.write_text(SCENARIO.format(name=name, last=USUAL, transfer=transfer).replace("[1f1b, zb-h1, v-half]", "[zb-h2, zb-h1]"))
            done = run("run", str(path), "-q", "-o", str(self.folder / f"{name}.h5"), "--format", "csv")
            self.assertEqual(done.returncode, 0, done.stderr)
            for row in csv.DictReader(io.StringIO(done.stdout)):
                self.makespan[name, row["schedule"]] = 1000 * float(row["iteration_s"])
        for of, measured in (("zb-h1", "zb-h2"), ("zb-h2", "zb-h1")):
            paths = self.traces("order", measured, ending="")
            done = run("compare", str(self.folder / "order.h5"), *paths, "--run", "order." + of, "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            difference = self.makespan["order", measured] - self.makespan["order", of]
            self.assertGreater(abs(difference), 1)
            for key, value in (("passes", 0), ("transfers", 0), ("order", difference), ("gaps", 0)):
                self.assertAlmostEqual(found["difference"][key], value, places=5, msg=key)
            self.assertGreater(sum(device["moved"] for device in found["devices"]), 0)
        done = run("compare", str(self.folder / "order.h5"), *self.traces("far", "zb-h1", ending=""), "--run", "order.zb-h1")
        self.assertRegex(done.stdout, r"another order of passes +\+0 ms")

    def test_every_pass_stands_beside_its_own(self):
        paths = self.traces("both", "v-half", name=kineto_traces.torch_name, placement="v")
        rows = list(csv.DictReader(io.StringIO(self.compare("v-half", paths, "--format", "csv"))))
        self.assertEqual(len(rows), 4 * 2 * 8 * 3)
        for row in rows:
            slow = row["device"] == "3" or row["device"] == "0"
            length = [int(row[f"{which}_end_ps"]) - int(row[f"{which}_start_ps"]) for which in ("simulated", "measured")]
            if not slow:
                self.assertEqual(*length)
        self.assertEqual({row["transfer_ps"] for row in rows if row["transfer_ps"]}, {"2500000000"})

    def test_gaps_are_what_is_left(self):
        """Times that scatter: what passes and transfers do not come to are gaps, and the four are all."""
        found = json.loads(self.compare("1f1b", self.traces("base", "1f1b", scatter=0.02), "--format", "json"))
        difference = found["difference"]
        self.assertAlmostEqual(found["measured"] - found["simulated"], sum(difference.values()), places=6)
        self.assertEqual(difference["transfers"], 0)

    def test_table_and_iteration(self):
        paths = self.traces("both", "zb-h1", iterations=3)
        said = self.compare("zb-h1", paths, "--iteration", "3")
        self.assertRegex(said, r"\Abase.zb-h1: iteration 3 of 3, from the first pass to the last\n")
        self.assertEqual(json.loads(self.compare("zb-h1", paths, "--iteration", "3", "--format", "json"))["iteration"], 3)
        self.assertRegex(said, r"\n  measured +[\d.]+ ms, \+\d+\.\d%\n")
        self.assertEqual(len(re.findall(r"(?m)^ +\d  ", said)), 4)

    def test_figure(self):
        path = self.folder / "beside.svg"
        paths = self.traces("both", "zb-h1")
        self.compare("zb-h1", paths, "--figure", str(path))
        text = path.read_text()
        self.assertEqual(len(re.findall(r"simulated [FBW] of microbatch", text)), 4 * 8 * 3)
        self.assertEqual(len(re.findall(r"measured [FBW] of microbatch", text)), 4 * 8 * 3)
        self.assertNotIn("#171717", text.lower())
        self.compare("zb-h1", paths, "--figure", str(path), "--dark")
        self.assertIn("#171717", path.read_text().lower())

    def test_refusals(self):
        paths = self.traces("both", "zb-h1")
        for arguments, says in (((paths[:3],), "3 traces for 4 devices"),
                                ((paths, "--iteration", "2"), "there is no iteration 2; expected 1 to the traces' 1"),
                                ((paths, "--tolerance", "0.1"), "are of two results files"),
                                ((paths, "--figure", "x.gif"), "svg"), ((paths, "--dark"), "--dark: nothing is drawn")):
            self.assertIn(says, self.compare("zb-h1", *arguments, status=2))
        self.assertIn("without a whole iteration of 64 passes", self.compare("1f1b", paths, status=2))
        done = run("compare", str(self.folder / "base.h5"), str(self.folder / "both.h5"), "--run", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("are of traces", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
