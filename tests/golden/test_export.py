"""`pipecast export` from outside: its JSON against the public description of Chrome's trace event format and, with its
CSV, against the trace in the results file as h5py reads it; its tables against those of `pipecast run`. What the engine saw
is in test_export_engine.py.

usage: test_export.py PIPECAST SOURCE_ROOT
"""
import collections
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import with_h5py
from exports import PIPECAST, SEEN, KINDS, HELD, run, picoseconds, setUpModule, Export, Format


def limit_files():
    """What a full disk does: writes fail, of whatever comes after the first bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


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
