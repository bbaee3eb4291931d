"""`pipecast export` from outside: its JSON against the public description of Chrome's trace event format and, with its
CSV, against the trace in the results file as h5py reads it; its tables against those of `pipecast run`.

usage: test_export.py PIPECAST SOURCE_ROOT
"""
import collections
import csv
import decimal
import io
import json
import os
import resource
import shutil
import signal
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


def limit_files():
    """What a full disk does: writes fail, of whatever comes after the first bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


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


class Chrome(Format):
    def test_the_format(self):
        for name in SEEN:
            with self.subTest(name):
                events, names = self.check_format(self.chrome(name))
                links = [key[1] for key, args in names.items() if args == {"name": "links"}]
                of_transfers = [args["name"] for key, args in names.items() if key[0] == "thread_name"
                                and key[1] not in links and args["name"] not in ("passes", "work")]
                self.assertTrue(all(text.startswith("to stage ") for text in of_transfers))
                # F every 1 us, and transfers of 2.8 us, or of 1.8 us at least: some are under way together.
                self.assertEqual(any(text.endswith("(2)") for text in of_transfers),
                                 name.startswith(("first/x.", "first/link.")))
                self.assertEqual(sum(event["ph"] == "s" for event in events), len(self.events(name)["transfer"]))

    def test_what_is_true_of_all(self):
        for name in SEEN:
            row, data = self.rows[name], self.chrome(name)["otherData"]
            for key in ("scenario", "name", "model", "machine", "schedule"):
                self.assertEqual(data.get(key, ""), row[key])
            self.assertEqual((str(data["run"]), str(data["devices"])), (row["run"], row["pp"]))
            self.assertIn(data["pipecast_version"], run("--version").stdout)
        self.assertEqual(self.rows["first/x.zb-h1"]["model"], 'a "quoted" \\ name, é')

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_every_pass_and_transfer_once(self):
        for name in SEEN:
            trace, attributes = self.stored(name)
            found = {"pass": [], "transfer": []}
            for event in self.chrome(name)["traceEvents"]:
                if event["ph"] != "X" or event["cat"] not in found:
                    continue
                start = picoseconds(event["ts"])
                args, end = event["args"], start + picoseconds(event["dur"])
                where = [event["pid"] - 1] if event["cat"] == "pass" else [args["from"], args["to"]]
                self.assertEqual(where[0], event["pid"] - 1)
                found[event["cat"]].append((*where, args["chunk"], args["kind"], args["microbatch"], start, end))
                text = f"{args['kind']}{args['microbatch']}"
                text += f".{args['chunk']}" if attributes["chunks"] != "1" else ""
                self.assertEqual(event["name"], text if event["cat"] == "pass" else "to " + text)
            for sort, columns in (("pass", ["device"]), ("transfer", ["from", "to"])):
                columns += ["chunk", "kind", "microbatch", "start_ps", "end_ps"]
                rows = zip(*(trace[f"{sort}_{x}"] for x in columns))
                stored = [(*row[:-4], KINDS[row[-4]], *row[-3:]) for row in rows]
                self.assertEqual(sorted(found[sort]), sorted(stored), name)
                keys = [row[:-2] for row in stored]
                self.assertEqual(len(keys), len(set(keys)))

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_counters_are_the_levels(self):
        for name in SEEN:
            trace, _ = self.stored(name)
            levels = collections.defaultdict(list)
            for device, time, level in zip(trace["level_device"], trace["level_time_ps"], trace["level_bytes"]):
                if not levels[device] and time > 0:
                    levels[device].append((0, 0))  # from the start on
                levels[device].append((time, level))
            found = collections.defaultdict(list)
            for event in self.chrome(name)["traceEvents"]:
                if event["name"] != "memory [GiB]":
                    continue
                device, held = event["pid"] - 1, dict(event["args"])
                self.assertEqual(event["ph"], "C")
                found[device].append((picoseconds(event["ts"]), int(float(held.pop("activations")) * 2**30)))
                known = {kind: trace[f"device_{kind}_bytes"][device] for kind in HELD
                         if "device_buffers_bytes" in trace}
                self.assertEqual({kind: float(x) * 2**30 for kind, x in held.items()}, known)
            self.assertEqual(found, levels, name)


class Csv(Export):
    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_a_run_is_its_trace(self):
        for name in SEEN:
            trace, attributes = self.stored(name)
            events = self.events(name)
            self.assertEqual(sorted(events), ["block", "level", "pass", "transfer"])
            self.check_block(events["block"], trace, attributes)
            for sort, columns in (("pass", {"device": "device"}), ("transfer", {"device": "from", "to_device": "to"})):
                columns = {**columns, **{x: x for x in ("chunk", "kind", "microbatch", "start_ps", "end_ps")}}
                for ours, theirs in columns.items():
                    stored = [KINDS[x] if ours == "kind" else str(x) for x in trace[f"{sort}_{theirs}"]]
                    self.assertEqual([row[ours] for row in events[sort]], stored)
                self.assertEqual({row["bytes"] for row in events[sort]}, {""})
            self.assertEqual({row["to_device"] for row in events["pass"]}, {""})
            for ours, theirs in {"device": "device", "start_ps": "time_ps", "bytes": "bytes"}.items():
                self.assertEqual([row[ours] for row in events["level"]], [str(x) for x in trace[f"level_{theirs}"]])
            empty = ("to_device", "kind", "chunk", "microbatch", "end_ps")
            self.assertEqual({row[x] for row in events["level"] for x in empty}, {""})

    def check_block(self, rows, trace, attributes):
        """The block's passes are those of the file, whatever their order there."""
        keys = ("device", "chunk", "kind", "microbatch")
        stored = [([KINDS[x] if key == "kind" else str(x) for key, x in zip(keys, who)], start, start + duration)
                  for *who, start, duration in zip(*(trace[f"block_{key}"] for key in keys), trace["block_start_cells"],
                                                   trace["block_duration_cells"])]
        found = [([row[key] for key in keys], int(row["start_cells"]), int(row["end_cells"])) for row in rows]
        self.assertEqual(sorted(found), sorted(stored))
        self.assertEqual({row["interval_cells"] for row in rows}, {str(attributes["block_interval"])})
        self.assertEqual({row[x] for row in rows for x in ("to_device", "start_ps", "end_ps", "bytes")}, {""})

    def test_sums(self):
        # 4 stages, 8 microbatches, F + B + W of a stage; each microbatch over 3 borders there and back, 2.777777 us.
        events = self.events("first/x.zb-h1")
        took = {sort: sum(int(row["end_ps"]) - int(row["start_ps"]) for row in events[sort])
                for sort in ("pass", "transfer")}
        self.assertEqual(took, {"pass": 4 * 8 * (1000001 + 1200003 + 800000), "transfer": 2 * 3 * 8 * 2777777})
        # Over links 40 kB at 50 GB/s take 0.8 us beyond the latency, and more where they meet.
        for row in self.events("first/link.zb-h1")["transfer"]:
            self.assertGreaterEqual(int(row["end_ps"]) - int(row["start_ps"]), 1800000)


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


class Tables(Export):
    def test_the_same_as_run(self):
        self.assertEqual(self.good("export", self.results, "--to", "csv"), self.csv)
        as_run = self.good("run", *self.scenarios, "--format", "json")
        self.assertEqual(self.good("export", self.results, "--to=json"), as_run)

    def test_one_scenario(self):
        head, *lines = self.csv.splitlines(keepends=True)
        second = [line for line in lines if ",second," in line]
        self.assertEqual(len(second), 6)
        found = self.good("export", self.results, "--to", "csv", "--scenario", "second")
        self.assertEqual(found, "".join([head, *second]))

    def test_into_a_file(self):
        path = os.path.join(self.folder, "table.csv")
        self.assertEqual(self.good("export", self.results, "--to", "csv", "-o", path), "")
        with open(path, encoding="utf-8") as stream:
            self.assertEqual(stream.read(), self.csv)
        self.assertEqual(os.listdir(self.folder), ["table.csv"])


class Runs(Export):
    def test_by_name_and_number(self):
        row = self.rows["second/x.chimera"]
        whole = self.good("export", self.results, "--run", "x.chimera", "--to", "csv")
        for name in ("second/x.chimera", row["run"]):
            self.assertEqual(self.good("export", self.results, "--run", name, "--to", "csv"), whole)

    def test_a_name_of_two_scenarios(self):
        message = "'x.zb-h1' is the name of 2 runs; expected one, such as first/x.zb-h1 or second/x.zb-h1"
        self.bad(2, f"{self.results}: {message}", self.results, "--run", "x.zb-h1", "--to", "csv")
        figure = os.path.join(self.folder, "f.svg")
        done = run("figure", self.results, "x.zb-h1", "-o", figure)
        self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: {self.results}: {message}\n"))
        self.good("figure", self.results, "second/x.zb-h1", "-o", figure)
        with open(figure, encoding="utf-8") as stream:
            self.assertIn(">interval: 3 cells<", stream.read())  # the block comes from the file

    def test_two_scenarios_of_one_name(self):
        results = os.path.join(self.folder, "r.h5")
        self.good("run", self.scenarios[0], self.scenarios[0], "-o", results)
        self.bad(2, f"{results}: 'first/x.v-half' is the name of 2 runs; expected a number, such as 2 or 11", results,
                 "--run", "first/x.v-half", "--to", "csv")
        self.good("export", results, "--run", "11", "--to", "csv")


class Bad(Export):
    def test_runs(self):
        untold = self.rows["second/untold.zb-h1"]["run"]
        self.bad(2, f"{self.results}: no run 'nobody'; expected the name or number of one, or SCENARIO/NAME", self.results,
                 "--run", "nobody", "--to", "csv")
        self.bad(2, f"{self.results}: run {untold} kept no trace; expected one of a scenario with `trace: true`", self.results,
                 "--run", "untold.zb-h1", "--to", "chrome")
        self.bad(2, f"{self.results}: no runs of a scenario 'third'; expected one in the file, such as 'first'", self.results,
                 "--to", "csv", "--scenario", "third")

    def test_usage(self):
        for message, arguments in (
                ("export: no results file; expected RESULTS.h5", ["--to", "csv"]),
                ("export: no format; expected --to csv or json", ["x.h5"]),
                ("export: no format; expected --to chrome, csv, torch-csv or chakra", ["x.h5", "--run", "1"]),
                ("--to: unknown format 'xml'; expected csv, json, chrome, torch-csv or chakra", ["x.h5", "--to", "xml"]),
                ("--to: unknown format for a run 'json'; expected chrome, csv, torch-csv or chakra", ["x.h5", "--to", "json", "--run", "1"]),
                ("--to: chrome shows one run; expected --run RUN beside it", ["x.h5", "--to", "chrome"]),
                ("--to: torch-csv shows one run; expected --run RUN beside it", ["x.h5", "--to", "torch-csv"]),
                ("--scenario: stands beside --run; expected --run SCENARIO/NAME instead",
                 ["x.h5", "--to", "csv", "--run", "1", "--scenario", "a"]),
                ("export: 'y.h5' is one too many; expected RESULTS.h5", ["x.h5", "y.h5", "--to", "csv"]),
                ("export: --run: no value; expected --run RUN", ["x.h5", "--run"])):
            self.bad(2, message, *arguments)

    def test_the_results_file_stays(self):
        copy, link = os.path.join(self.folder, "r.h5"), os.path.join(self.folder, "link")
        shutil.copyfile(self.results, copy)
        os.symlink("r.h5", link)
        for path in (copy, link):
            self.bad(2, f"-o: {path}: is the results file; expected another file", copy, "--to", "csv", "-o", path)
        self.assertEqual(self.good("export", copy, "--to", "csv"), self.csv)

    def test_a_full_disk(self):
        of_run = ["--run", "second/x.zb-h1"]
        for name, arguments in (("table", ["--to", "csv"]), ("trace", ["--to", "csv", *of_run]), ("trace", ["--to", "torch-csv", *of_run])):
            arguments = [self.results, *arguments]
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PIPECAST, "export", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr),
                             (3, f"pipecast: standard output: cannot write the {name}: No space left on device\n"))
            if "torch-csv" in arguments:
                continue  # shorter than what fits below
            path = os.path.join(self.folder, "old.csv")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write("old")
            self.bad(3, f"{path}: cannot write the {name}: File too large", *arguments, "-o", path, preexec_fn=limit_files)
            with open(path, encoding="utf-8") as stream:
                self.assertEqual(stream.read(), "old")
            self.assertEqual(os.listdir(self.folder), ["old.csv"])

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_traces_that_contradict_themselves(self):
        number = self.rows["first/x.zb-h1"]["run"]
        arrow = "a transfer from stage {} to {} of stage {}; expected a pass that starts after it and waits for that stage"
        trace, _ = self.stored("first/x.zb-h1")
        f0 = next(i for i, to in enumerate(trace["transfer_to"]) if to == 1 and trace["transfer_microbatch"][i] == 0)
        for message, code in (
                (arrow.format(0, "F0", 1), f"t['transfer_end_ps'][{f0}] += 1"),
                (arrow.format(3, "F0", 1), f"t['transfer_from'][{f0}] = 3"),
                (arrow.format(0, "R0", 1), f"t['transfer_kind'][{f0}] = 4"),
                ("pass 1 is out of order; expected them stage by stage", "t['pass_device'][0] = 3"),
                (None, "for n in [n for n in t if n.startswith('transfer_')]: del t[n]")):  # an older pipecast's
            path, made = os.path.join(self.folder, "r.h5"), os.path.join(self.folder, "t.json")
            shutil.copyfile(self.results, path)
            with_h5py.work_on(path, f"t = f['traces/{number}']\n{code}")
            if message:
                self.bad(2, f"{path}: run {number}: trace: {message}", path, "--run", number, "--to", "chrome", "-o", made)
                self.assertEqual(os.listdir(self.folder), ["r.h5"])
            else:
                done = json.loads(self.good("export", path, "--run", number, "--to", "chrome"))
                self.assertEqual({event.get("cat") for event in done["traceEvents"]}, {None, "pass"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
