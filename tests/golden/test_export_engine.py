"""`pipecast export` of what the engine saw: links, loads, flows, queues, memory and work, as tables and as tracks.

usage: test_export_engine.py PIPECAST SOURCE_ROOT
"""
import collections
import csv
import io
import json
import os
import shutil
import sys
import tempfile
import unittest

import with_h5py
from exports import SCENARIOS, SEEN, run, picoseconds, setUpModule, Format


@unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
class Engine(Format):
    """What the engine saw of a run, given by hand: every transfer is a message over the link of its two stages."""
    RUN = "first/link.v-half"
    TABLES = {"links": 11, "loads": 3, "flows": 14, "queue": 7, "memory": 4, "work": 5}  # columns

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.whole, cls.results = cls.results, os.path.join(folder.name, "engine.h5")
        shutil.copyfile(cls.whole, cls.results)
        with_h5py.add_engine(cls.results, cls.rows[cls.RUN]["run"])

    def seen(self):
        code = "import json; t = f['traces/%s/engine']\nprint(json.dumps({n: t[n][:].tolist() for n in t}))"
        return json.loads(with_h5py.work_on(self.results, code % self.rows[self.RUN]["run"], "r"))

    def table(self, name, run=None):
        text = self.good("export", self.results, "--run", run or self.RUN, "--to", "csv", "--table", name)
        return list(csv.DictReader(io.StringIO(text)))

    def test_links_are_tracks_and_loads_counters(self):
        seen, (events, names) = self.seen(), self.check_format(self.chrome(self.RUN))
        links = self.chrome(self.RUN)["otherData"]["devices"] + 1
        found = [event for event in events if event["pid"] == links]
        labels = {row["link"]: row["name"] for row in self.table("links")}
        self.assertEqual(sorted(labels.values()), sorted(set(labels.values())))
        flows = collections.defaultdict(list)
        for event in found:
            if event["ph"] == "X":
                track = names["thread_name", links, event["tid"]]["name"].split(" (")[0]
                flows[event["args"]["flow"]].append(track)
                i, args = event["args"]["flow"], event["args"]
                self.assertEqual(picoseconds(event["ts"]), seen["flow_start_ps"][i])
                self.assertEqual(picoseconds(event["dur"]), seen["flow_end_ps"][i] - seen["flow_start_ps"][i])
                self.assertEqual(float(args["bytes"]), seen["flow_bytes"][i])
                self.assertEqual(picoseconds(args["ready_us"]), seen["flow_ready_ps"][i])
                self.assertEqual(picoseconds(args["waited_us"]), seen["flow_start_ps"][i] - seen["flow_ready_ps"][i])
                self.assertEqual(picoseconds(args["alone_us"]), seen["flow_alone_ps"][i])
        both = {i: [labels[str(x)] for x in {seen["flow_out"][i], seen["flow_in"][i]} - {-1}]
                for i in range(len(seen["flow_out"])) if seen["flow_out"][i] >= 0}
        self.assertEqual({i: sorted(at) for i, at in flows.items()}, {i: sorted(at) for i, at in both.items()})
        loads = [(event["name"], picoseconds(event["ts"]), float(event["args"]["load"]) * 1e9)
                 for event in found if event["ph"] == "C"]
        stored = [(labels[str(link)] + " [GB/s]", time, load) for link, time, load in zip(
            seen["load_link"], seen["load_time_ps"], seen["load_bytes_per_s"])]
        zeros = [(label + " [GB/s]", 0, 0) for label in labels.values()]
        for one, other in zip(loads, zeros + stored, strict=True):
            self.assertEqual(one[:2], other[:2])
            self.assertAlmostEqual(one[2], other[2], delta=1e-6 * other[2])

    def test_queueing_memory_and_work(self):
        seen, trace = self.seen(), self.chrome(self.RUN)
        stored, _ = self.stored(self.RUN)
        passes = [event for event in trace["traceEvents"] if event.get("cat") == "pass"]
        self.assertEqual([picoseconds(event["args"]["waited_us"]) for event in passes],
                         [start - ready for start, ready in zip(stored["pass_start_ps"], seen["queue_ready_ps"])])
        memory = [(event["pid"] - 1, picoseconds(event["ts"]), float(event["args"]["held"]) * 2**30,
                   float(event["args"].get("free", -1)) * 2**30)
                  for event in trace["traceEvents"] if event["name"] == "memory in all [GiB]"]
        capacity = seen["memory_capacity_bytes"]
        self.assertEqual(memory, [(d, t, b, capacity[d] - b if capacity[d] else -2**30) for d, t, b in zip(
            seen["memory_device"], seen["memory_time_ps"], seen["memory_bytes"])])
        self.assertEqual({capacity[d] > 0 for d in range(4)}, {True, False})
        work = [(event["name"], event["pid"] - 1, picoseconds(event["ts"])) for event in trace["traceEvents"]
                if event.get("cat") == "work"]
        self.assertEqual(sorted(work), sorted(zip(("optimizer",) * 4 + ("overhead",), seen["work_device"],
                                                  seen["work_start_ps"])))

    def test_tables(self):
        seen = self.seen()
        words = {"flow_sort": ["message", "tensor", "gather", "reduce", "tied", "loss", "norm"],
                 "link_sort": ["stages", "domain", "nic", "uplink"], "work_sort": ["optimizer", "overhead"]}
        columns = {("work", "work"): "work_sort", ("links", "direction"): None, ("links", "name"): None,
                   ("memory", "capacity_bytes"): None, ("links", "carried_bytes"): None,
                   ("links", "peak_bytes_per_s"): None, ("links", "link"): None, ("flows", "flow"): None}
        for name, count in self.TABLES.items():
            rows = self.table(name)
            self.assertTrue(rows)
            self.assertEqual(len(rows[0]), count, name)
            prefix = {"links": "link", "loads": "load", "flows": "flow"}.get(name, name)
            for column in rows[0]:
                stored = columns.get((name, column), f"{prefix}_{column}")
                if stored is None or stored not in seen:
                    continue
                for row, value in zip(rows, seen[stored], strict=True):
                    if stored in words:
                        self.assertEqual(row[column], words[stored][value])
                    else:
                        self.assertEqual(float(row[column] or -1), value, (name, column))

    def test_sums_of_links(self):
        """What goes over a link is the sum of its flows, and its load over time."""
        flows, links = self.table("flows"), self.table("links")
        for row in links:
            over = [float(flow["bytes"]) for flow in flows if row["link"] in (flow["out"], flow["in"])]
            self.assertAlmostEqual(float(row["carried_bytes"]), sum(over), delta=1e-6 * sum(over))
            loads = [float(load["bytes_per_s"]) for load in self.table("loads") if load["link"] == row["link"]]
            self.assertEqual(float(row["peak_bytes_per_s"]), max(loads))

    def test_tables_of_any_trace(self):
        whole = self.events(self.RUN)
        for name, sort, renamed in (("passes", "pass", {}), ("transfers", "transfer", {"from": "device", "to": "to_device"}),
                                    ("levels", "level", {"time_ps": "start_ps"})):
            rows = self.table(name)
            self.assertEqual(rows, [{key: row[renamed.get(key, key)] for key in rows[0]} for row in whole[sort]])
        self.assertEqual([row["waited_ps"] for row in self.table("queue")],
                         [str(int(row["start_ps"]) - int(row["ready_ps"])) for row in self.table("queue")])

    def test_refusals(self):
        self.bad(2, f"{self.results}: run first/x.zb-h1: kept no trace of the engine; expected one of a run with "
                    "`engine: events` and `trace: true`", self.results, "--run", "first/x.zb-h1", "--to", "csv",
                 "--table", "loads")
        self.bad(2, "--table: unknown table 'lods' (did you mean loads?); expected passes, transfers, levels, kinds, links, loads, "
                    "flows, queue, memory or work", self.results, "--run", self.RUN, "--to", "csv", "--table", "lods")
        for arguments in (["--run", self.RUN, "--to", "chrome"], ["--to", "csv"]):
            self.bad(2, "--table: one of a run's tables, as csv; expected --run RUN and --to csv beside it",
                     self.results, *arguments, "--table", "loads")

    def test_merge_keeps_it(self):
        merged = os.path.join(self.folder, "merged.h5")
        run("merge", merged, self.results)
        code = f"t = f['traces/{self.rows[self.RUN]['run']}/engine']\nprint(len(t), t.attrs['event_count'])"
        self.assertEqual(with_h5py.work_on(merged, code, "r"), with_h5py.work_on(self.results, code, "r"))
        for to in ("chrome", "csv"):
            arguments = ["--run", self.RUN, "--to", to]
            self.assertEqual(self.good("export", merged, *arguments), self.good("export", self.results, *arguments))


@unittest.skipUnless("--engine" in run("run", "--help").stdout, "this pipecast has no `engine: events`")
class OnEngine(Format):
    """The same scenarios, each run whole on the engine."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.results, paths = os.path.join(folder.name, "engine.h5"), []
        for name, text in SCENARIOS.items():
            paths.append(os.path.join(folder.name, name))
            text = text.replace("trace: true}", "trace: true, engine: events}")
            with open(paths[-1], "w", encoding="utf-8") as stream:
                stream.write(text.replace("  trace: true\n", "  trace: true\n  engine: events\n"))
        text = cls.good("run", *paths, "-o", cls.results, "--format", "csv")
        cls.runs = {f"{row['scenario']}/{row['name']}": row for row in csv.DictReader(io.StringIO(text))}

    def table(self, name, table):
        text = self.good("export", self.results, "--run", name, "--to", "csv", "--table", table)
        return list(csv.DictReader(io.StringIO(text)))

    def test_the_format(self):
        for name in SEEN:
            with self.subTest(name):
                events, _ = self.check_format(self.chrome(name))
                waits = [event["args"]["waited_us"] for event in events if event.get("cat") == "pass"]
                self.assertTrue(waits and all(wait >= 0 for wait in waits))

    def test_what_links_carry(self):
        """Their load over time is the sum of what is sent over them; where it is shared, no more than the bandwidth."""
        for name in SEEN:
            links, flows = self.table(name, "links"), self.table(name, "flows")
            self.assertEqual(bool(links), not name.startswith(("first/x.", "first/at-once.")), name)
            for link in links:
                with self.subTest(name, link=link["name"]):
                    over = sum(float(flow["bytes"]) for flow in flows if link["link"] in (flow["out"], flow["in"]))
                    self.assertAlmostEqual(float(link["carried_bytes"]) / over, 1, delta=1e-6)
                    if link["shared"] == "1":
                        self.assertLessEqual(float(link["peak_bytes_per_s"]), float(link["bytes_per_s"]) * (1 + 1e-9))

    def test_messages_are_the_transfers(self):
        for name in SEEN:
            if self.runs[name]["dp"] not in ("", "1") or self.runs[name]["tp"] not in ("", "1"):
                continue
            sent = collections.Counter((row["from"], row["to"]) for row in self.table(name, "transfers"))
            flows = [row for row in self.table(name, "flows") if row["sort"] == "message"]
            self.assertEqual(collections.Counter((row["from"], row["to"]) for row in flows), sent, name)
            for row in flows:
                self.assertLessEqual(int(row["ready_ps"]), int(row["start_ps"]))
                self.assertLessEqual(int(row["start_ps"]), int(row["end_ps"]))

    def test_memory_is_what_the_table_says(self):
        for name in SEEN:
            held = [int(row["bytes"]) for row in self.table(name, "memory")]
            column = "memory_gib_max" if self.runs[name]["machine"] else "activation_gib_max"
            self.assertEqual(max(held, default=0) / 2**30, float(self.runs[name][column] or 0), name)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_links_can_be_drawn(self):
        for name in ("first/link.v-half", "second/x.zb-h1", "second/flows.zb-h1"):
            self.good("figure", self.results, "links", "--run", name, "-o", os.path.join(self.folder, "f.svg"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
