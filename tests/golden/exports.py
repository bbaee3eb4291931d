"""What the tests of `pipecast export` stand on: one results file, its traces as h5py and as the command has them, and the
public description of Chrome's trace event format.

usage of a test: test_export*.py PIPECAST SOURCE_ROOT
"""
import collections
import csv
import decimal
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

import with_h5py

PIPECAST = os.path.abspath(sys.argv[1])
# Names that JSON must escape; transfers longer than passes, so that they overlap; two scenarios with runs of one name.
SCENARIOS = {
    "first.yaml": r"""
scenario: 'first'
setting:
  model: {name: "a \"quoted\" \\ name, é", layers: 8, hidden: 1024, heads: 8, seq_len: 1024}
  devices: 4
  microbatches: 8
  microbatch_size: 1
  times: {F: 1000001 ps, B: 1200003 ps, W: 800000 ps}
  transfer: {time: 2777777 ps}
  trace: true
cases:
  - {name: x}
  - {name: at-once, transfer: {time: 0 ps}}
  - {name: link, transfer: {size: 40 kB, latency: 1 us, bandwidth: 400 Gbit/s}}
sweep: {schedule: [zb-h1, v-half, 1f1b-interleaved]}
""",
    "second.yaml": """
scenario: second
setting: {model: {from: gpt3-1.3b}, machine: dgx-a100, gpus: 64, tp: 2, pp: 4, global_batch: 64, trace: true}
cases:
  - {name: x}
  - {name: flows, network: flows}
  - {name: untold, trace: false}
sweep: {schedule: [zb-h1, chimera]}
""",
}
SEEN = ("first/x.zb-h1", "first/x.v-half", "first/x.1f1b-interleaved", "first/at-once.zb-h1", "first/link.v-half",
        "second/x.zb-h1", "second/x.chimera", "second/flows.zb-h1")
METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name",
            "thread_sort_index": "sort_index"}
KINDS = ["F", "B", "W", "BW", "R"]
HELD = ("parameters", "gradients", "optimizer", "buffers")


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


def picoseconds(microseconds):
    """Exactly: the JSON is read with decimal numbers."""
    time = decimal.Decimal(microseconds) * 1000000
    assert time == int(time), microseconds
    return int(time)


def setUpModule():
    """One results file for all tests, which leave it as it is."""
    made = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(made.cleanup)
    Export.results = os.path.join(made.name, "results.h5")
    Export.scenarios = []
    for name, text in SCENARIOS.items():
        Export.scenarios.append(os.path.join(made.name, name))
        with open(Export.scenarios[-1], "w", encoding="utf-8") as stream:
            stream.write(text)
    Export.csv = Export.good("run", *Export.scenarios, "-o", Export.results, "--format", "csv")
    Export.rows = {f"{row['scenario']}/{row['name']}": row for row in csv.DictReader(io.StringIO(Export.csv))}


class Export(unittest.TestCase):
    traces = {}  # by run; they are read once

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @staticmethod
    def good(*arguments):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def bad(self, status, message, *arguments, **options):
        done = run("export", *arguments, cwd=self.folder, **options)
        self.assertEqual((done.returncode, done.stderr), (status, f"pipecast: {message}\n"), done)

    def chrome(self, name):
        text = self.good("export", self.results, "--run", name, "--to", "chrome")
        return json.loads(text, parse_float=decimal.Decimal)

    def events(self, name):
        """Those of the CSV, by sort."""
        sorts = collections.defaultdict(list)
        for row in csv.DictReader(io.StringIO(self.good("export", self.results, "--run", name, "--to", "csv"))):
            sorts[row.pop("event")].append(row)
        return sorts

    def stored(self, name):
        """The trace's datasets, and its attributes, as h5py has them."""
        if not Export.traces:
            code = ("import json\n"
                    "def read(t): return [{n: t[n][:].tolist() for n in t if n != 'engine'}, dict((n, str(t.attrs[n])) for n in t.attrs)]\n"
                    "print(json.dumps({number: read(f['traces'][number]) for number in f['traces']}))")
            Export.traces = json.loads(with_h5py.work_on(self.results, code, "r"))
        return Export.traces[self.rows[name]["run"]]


class Format(Export):
    """Trace Event Format, Google, 2016: which keys an event of each phase has."""

    def check_event(self, event):
        self.assertTrue({"ph", "pid", "tid", "name"} <= set(event), event)
        self.assertTrue(all(isinstance(event[key], int) and event[key] > 0 for key in ("pid", "tid")), event)
        if event["ph"] == "M":
            self.assertEqual(list(event["args"]), [METADATA[event["name"]]])
            return
        self.assertGreaterEqual(event["ts"], 0)
        if event["ph"] == "X":
            self.assertGreaterEqual(event["dur"], 0)
        elif event["ph"] == "C":
            self.assertTrue(event["args"])
            self.assertTrue(all(isinstance(x, (int, decimal.Decimal)) for x in event["args"].values()))
        else:
            self.assertIn(event["ph"], "sf")
            self.assertIn("id", event)
            self.assertEqual(event.get("bp"), "e" if event["ph"] == "f" else None)

    def check_slices(self, slices):
        """Of one thread: one after the other."""
        slices = sorted(slices, key=lambda event: (event["ts"], event["dur"]))
        for a, b in zip(slices, slices[1:]):
            self.assertLessEqual(a["ts"] + a["dur"], b["ts"], (a, b))

    def check_arrows(self, events, slices):
        ends = {phase: [event for event in events if event["ph"] == phase] for phase in "sf"}
        starts = {event["id"]: event for event in ends["s"]}
        self.assertEqual(len(starts), len(ends["s"]))
        self.assertEqual(sorted(event["id"] for event in ends["f"]), sorted(starts))
        for event in ends["f"]:
            self.assertLessEqual(starts[event["id"]]["ts"], event["ts"])
            self.assertEqual((starts[event["id"]]["cat"], starts[event["id"]]["name"]), (event["cat"], event["name"]))
        for event in ends["s"] + ends["f"]:
            at = [x for x in slices[event["pid"], event["tid"]] if x["ts"] <= event["ts"] < x["ts"] + x["dur"]]
            self.assertEqual(len(at), 1, event)

    def check_in_nanoseconds(self, events, slices):
        """As Perfetto's trace processor keeps them: times cut to whole nanoseconds. Slices of a track still do not overlap, which
        would nest them, and an arrow's end lies in the slice that it lies in to the picosecond; one shorter than that has none."""
        def cut(time):
            return int(time * 1000)
        for of_thread in slices.values():
            of_thread = sorted(of_thread, key=lambda event: (event["ts"], event["dur"]))
            for a, b in zip(of_thread, of_thread[1:]):
                self.assertLessEqual(cut(a["ts"]) + cut(a["dur"]), cut(b["ts"]))
        for event in events:
            if event["ph"] in "sf":
                inside = [x for x in slices[event["pid"], event["tid"]] if x["ts"] <= event["ts"] < x["ts"] + x["dur"]]
                in_cut = [x for x in slices[event["pid"], event["tid"]] if cut(x["ts"]) <= cut(event["ts"]) < cut(x["ts"]) + cut(x["dur"])]
                self.assertIn(in_cut, ([], inside) if cut(inside[0]["dur"]) == 0 else (inside,), event)

    def check_format(self, trace):
        events = trace["traceEvents"]
        names, slices = {}, collections.defaultdict(list)
        for event in events:
            self.check_event(event)
            if event["ph"] == "M":
                key = (event["name"], event["pid"], event["tid"])
                self.assertNotIn(key, names)
                names[key] = event["args"]
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append(event)
        for (pid, tid), of_thread in slices.items():
            self.assertIn(("thread_name", pid, tid), names)
            self.check_slices(of_thread)
        threads = collections.Counter((key[1], args["name"]) for key, args in names.items() if key[0] == "thread_name")
        self.assertEqual(set(threads.values()), {1})
        processes = {pid: args["name"] for (what, pid, _), args in names.items() if what == "process_name"}
        stages = trace["otherData"]["devices"]
        wanted = {pid: f"stage {pid - 1}" for pid in range(1, stages + 1)}
        wanted.update({stages + 1: "links"} if any(event.get("cat") == "flow" for event in events) else {})
        self.assertEqual(processes, wanted)
        self.check_arrows(events, slices)
        self.check_in_nanoseconds(events, slices)
        return events, names
