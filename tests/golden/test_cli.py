"""The command line from outside: what it prints, what it exits with, and that nothing half-written is left.

Where PC_WRITE_GOLDEN is set (to anything), the golden files of schedules are written instead of compared; look at what
changed before keeping it.

usage: test_cli.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
TABLE5 = str(ROOT / "scenarios/paper/zero_bubble_table5.yaml")
GOLDEN = ROOT / "tests/golden"
PASSES = ("gpipe", "1f1b", "eager-1f1b", "1f1b-interleaved", "1f1b-interleaved-low-memory", "1f1b-v", "zb-h1", "zb-h2",
          "zb-1p", "zb-2p", "zb-two-thirds", "v-min", "v-half", "v-zb", "zb-v", "v-adaptive")  # what a CSV can say
SEARCHED = ("1f1b-v", "zb-1p", "zb-2p", "zb-two-thirds", "v-min", "v-half", "v-zb", "zb-v", "v-adaptive")
MORE = ("1f1b-r", "gems", "chimera")  # and what it cannot: recomputation, two replicas


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def good(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def bad(self, status, message, *arguments):
        """Exit status, one line on standard error that ends as given, nothing on standard output, no file left."""
        done = run(*arguments, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertTrue(done.stderr.startswith("pipecast: "), done)
        self.assertTrue(done.stderr.endswith(message + "\n"), f"\n{done.stderr} should end\n{message}")
        self.assertEqual(os.listdir(self.folder.name), [])


class Help(Command):
    def test_every_command_has_help_with_an_example(self):
        for command in [["--help"]] + [[name, "--help"] for name in ("run", "schedule", "figure", "list", "profile")]:
            self.assertIn("\nexample: pipecast ", self.good(*command))

    def test_version_names_what_was_built(self):
        lines = dict(line.split(": ") for line in self.good("--version").splitlines()[1:])
        self.assertEqual(set(lines), {"commit", "hdf5", "gsl", "cuda", "nccl", "mpi"})

    def test_list(self):
        names = [line.split()[0] for line in self.good("list", "schedules").splitlines()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), set(PASSES + MORE))
        self.assertIn("paper/zero_bubble_table5.yaml", self.good("list", "scenarios", cwd=ROOT))


class Schedule(Command):
    def test_json_has_the_fields_of_the_interface(self):
        text = self.good("schedule", "1f1b", "-p", "8", "-m", "24", "--times", "18.522,18.086,9.337", "--comm", "0.601",
                         "--format", "json")
        answer = json.loads(text)
        self.assertEqual(
            list(answer),
            ["name", "devices", "microbatches", "chunks", "placement", "span", "makespan", "bubble_rate_span",
             "bubble_rate_makespan", "peak_activation", "max_peak_activation", "generate_s", "replay_s", "trace_hash",
             "block"])
        self.assertEqual(round(answer["bubble_rate_span"], 4), 0.2431)
        # What the authors' public generator gives for these times, in its microseconds: 1456749.
        self.assertEqual(answer["span"], 1456.749)
        self.assertEqual(answer["peak_activation"], [8, 7, 6, 5, 4, 3, 2, 1])
        self.assertEqual((answer["devices"], answer["microbatches"], answer["chunks"], answer["placement"]),
                         (8, 24, 1, "linear"))

    def test_table_is_golden(self):
        for name in ("zb-h2", "1f1b-interleaved"):
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--comm", "0.1")
            self.assertEqual(text, (GOLDEN / f"{name}_p4_m8.table.txt").read_text())

    def check_golden(self, path, text):
        if os.environ.get("PC_WRITE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), path.name)

    def test_csv_files_are_golden_and_load_again(self):
        for name in PASSES:
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--format", "torch-csv")
            golden = GOLDEN / f"{name}_p4_m8.csv"
            self.check_golden(golden, text)
            # Loaded, it costs what was generated. At the times that a search was made for, so that it finds the same.
            options = [] if name in SEARCHED else ["--times", "3,2,1", "--comm", "0.25"]
            made = json.loads(self.good("schedule", name, "-p", "4", "-m", "8", *options, "--format", "json"))
            loaded = json.loads(self.good("schedule", str(golden), *options, "--format", "json"))
            self.assertIsNone(loaded["block"])
            for field in set(made) - {"name", "generate_s", "replay_s", "block"}:
                self.assertEqual(made[field], loaded[field], f"{name}: {field}")

    def test_text_files_are_golden(self):
        for name in MORE:
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--format", "text")
            self.check_golden(GOLDEN / f"{name}_p4_m8.txt", text)

    def test_keep(self):
        # Stage d of 1F1B-R holds p-d inputs, and while it is at a backward pass the rest of one microbatch.
        for options, keep in (([], 2 / 34), (["--keep", "0.25"], 0.25), (["--keep", "0"], 0), (["--keep", "1"], 1)):
            answer = json.loads(self.good("schedule", "1f1b-r", "-p", "4", "-m", "8", *options, "--format", "json"))
            for d, peak in enumerate(answer["peak_activation"]):
                self.assertAlmostEqual(peak, (4 - d) * keep + 1 - keep, places=8)

    def test_a_chunk_of_a_replica_is_a_whole_stage(self):
        # Chimera of p = m = 4 at F, B, W = 1: m(F+B+W) and (p-2)(B+W) idle. GEMS holds one microbatch a device.
        answer = json.loads(self.good("schedule", "chimera", "-p", "4", "-m", "4", "--format", "json"))
        self.assertEqual((answer["span"], answer["placement"], answer["chunks"]), (16, "bidirectional", 2))
        self.assertEqual(answer["peak_activation"], [3, 4, 4, 3])
        answer = json.loads(self.good("schedule", "gems", "-p", "4", "-m", "4", "--format", "json"))
        self.assertEqual(answer["peak_activation"], [1, 1, 1, 1])

    def test_release_b(self):
        # ZB-H1 holds p microbatches where W frees all; where B frees all of it, as 1F1B with BW does, p too, and less
        # where B comes first: on the last stage each B directly follows its F, so that one microbatch is held.
        text = self.good("schedule", "zb-h1", "-p", "4", "-m", "8", "--release-b", "1", "--format", "json")
        self.assertEqual(json.loads(text)["peak_activation"], [4, 3, 2, 1])

    def test_any_one_unit(self):
        """The same times in seconds, hours and far beyond: the same rates, and spans in that unit."""
        for factor in (1e-9, 1e-3, 1.0, 1e6, 1e12):
            times = ",".join(repr(t * factor) for t in (18.522, 18.086, 9.337))
            text = self.good("schedule", "1f1b", "-p", "8", "-m", "24", "--times", times, "--comm", repr(0.601 * factor),
                             "--format", "json")
            answer = json.loads(text)
            self.assertAlmostEqual(answer["bubble_rate_span"], 0.2430542255391972, places=6)
            self.assertAlmostEqual(answer["span"] / factor, 1456.749, places=3)

    def test_the_limit_that_would_do_does(self):
        arguments = ["schedule", "1f1b-interleaved", "-p", "2", "-m", "4", "-v", "3", "--memory-limit"]
        least = run(*arguments, "2").stderr.split()[-1]
        self.good(*arguments, least)

    def test_memory_limit_that_is_too_small_says_the_least_that_would_do(self):
        done = run("schedule", "1f1b", "-p", "4", "-m", "8", "--memory-limit", "3.5")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "pipecast: --memory-limit: 3.5 is too little for 1f1b; expected at least 4\n")
        self.good("schedule", "1f1b", "-p", "4", "-m", "8", "--memory-limit", "4")

    def answer(self, *arguments):
        return json.loads(self.good("schedule", *arguments, "--format", "json"))

    def test_block(self):
        """Lifespans and bounds of the V-shaped blocks by algebra, from the passes that stand beside them."""
        p = 4
        for name, bound in (("v-min", 2), ("v-half", 3), ("v-zb", 4)):  # (p+2)/3, p/2+1 and p microbatches
            block = self.answer(name, "-p", str(p), "-m", "8")["block"]
            self.assertEqual(list(block), ["microbatches", "interval", "passes", "lifespan", "peak_bound"])
            self.assertEqual((block["microbatches"], len(block["passes"])), (1, 6 * p))
            start = {(x["device"], x["chunk"], x["kind"]): x["start"] for x in block["passes"]}
            self.assertEqual({x["duration"] for x in block["passes"]}, {1})
            lifespan = [[start[d, c, "W"] + 1 - start[d, c, "F"] for c in (0, 1)] for d in range(p)]
            self.assertEqual(block["lifespan"], lifespan)
            interval = block["interval"]
            self.assertEqual(block["peak_bound"], [sum(-(-span // interval) for span in spans) / 2 for spans in lifespan])
            self.assertEqual(max(block["peak_bound"]), bound)
            for d in range(p):  # no two passes in one cell when the block is repeated
                self.assertEqual(len({t % interval for (device, *_), t in start.items() if device == d}), 6)
            way = [(d, 0) for d in range(p)] + [(d, 1) for d in reversed(range(p))]
            steps = [(*stop, "F") for stop in way] + [(*stop, "B") for stop in reversed(way)]
            for before, after in list(zip(steps, steps[1:])) + [((*stop, "B"), (*stop, "W")) for stop in way]:
                self.assertLess(start[before], start[after])

    def test_block_of_1f1b(self):
        # Stage d holds a microbatch until it comes back: p-d F of one cell, its own among them, and p-d BW of two.
        block = self.answer("1f1b", "-p", "4", "-m", "8")["block"]
        self.assertEqual(block["lifespan"], [[12], [9], [6], [3]])
        self.assertEqual((block["interval"], block["peak_bound"]), (3, [4, 3, 2, 1]))

    def test_schedules_without_a_block(self):
        for name in ("gpipe", "gems", "1f1b-interleaved"):
            self.assertIsNone(self.answer(name, "-p", "4", "-m", "8")["block"], name)

    def test_memory_limit_is_kept_by_searches(self):
        """One number for all devices or one a device: never more is held, and more memory never takes longer."""
        shape = ["-p", "4", "-m", "8", "--times", "3,4,2", "--comm", "0.25"]
        for name in ("v-adaptive", "zb-1p", "v-min", "1f1b-v"):
            spans = []
            for limit in ("1", "1,1,1,2", "2,1.5,1.5,2", "2", "2.5,3,3,4", "4"):
                answer = self.answer(name, *shape, "--memory-limit", limit)
                limits = [float(number) for number in limit.split(",")]
                for peak, most in zip(answer["peak_activation"], limits * (4 // len(limits)), strict=True):
                    self.assertLessEqual(peak, most, (name, limit))
                spans.append(answer["span"])
            self.assertEqual(spans, sorted(spans, reverse=True), name)
            same = [self.answer(name, *shape, "--memory-limit", limit)["trace_hash"] for limit in ("2", "2,2,2,2.0")]
            self.assertEqual(same[0], same[1])

    def test_memory_limit_that_no_schedule_keeps(self):
        shape = ["-p", "4", "-m", "8"]
        for message, arguments in [
            ("0.5 is too little for v-adaptive; expected at least 1", ["v-adaptive", *shape, "--memory-limit", "0.5"]),
            ("0 is too little for zb-1p; expected at least 1", ["zb-1p", *shape, "--memory-limit", "0"]),
            ("0.4 is too little for v-min on device 3; expected at least 1",
             ["v-min", *shape, "--memory-limit", "1,2,1,0.4"]),
        ]:
            self.bad(1, "--memory-limit: " + message, "schedule", *arguments)
        # A schedule that does not search is what it is; what it needs is an answer, and does not fit.
        done = run("schedule", "1f1b", *shape, "--memory-limit", "4,2,1,1", "--format", "json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["peak_activation"]), (1, [4, 3, 2, 1]))
        self.assertEqual(done.stderr,
                         "pipecast: --memory-limit: 2 is too little for 1f1b on device 1; expected at least 3\n")

    def test_figure(self):
        for ending in ("svg", "png", "pdf"):
            path = self.path("f." + ending)
            self.good("schedule", "zb-h1", "-p", "4", "-m", "8", "--figure", path)
            self.assertGreater(os.path.getsize(path), 2000)

    def test_bad_input(self):
        shape = ["-p", "4", "-m", "8"]
        cases = [
            ("schedule: no name; expected NAME or FILE.csv (pipecast list schedules)", []),
            ("unknown schedule '2f2b'; expected gpipe, 1f1b, 1f1b-r, eager-1f1b, 1f1b-interleaved, "
             "1f1b-interleaved-low-memory, 1f1b-v, zb-h1, zb-h2, zb-1p, zb-2p, zb-two-thirds, v-min, v-half, v-zb, zb-v, "
             "v-adaptive, gems, chimera, or a FILE.csv", ["2f2b", *shape]),
            ("schedule: -p is missing; expected -p DEVICES", ["1f1b", "-m", "8"]),
            ("-p: 0: out of range; expected a whole number from 1 to 65536", ["1f1b", "-p", "0", "-m", "8"]),
            ("-p: 1000000000: out of range; expected a whole number from 1 to 65536",
             ["1f1b", "-p", "1000000000", "-m", "8"]),
            ("-m: 0: out of range; expected a whole number from 1 to 16777216", ["1f1b", "-p", "4", "-m", "0"]),
            ("-m: 4.5: not a whole number; expected a whole number from 1 to 16777216",
             ["1f1b", "-p", "4", "-m", "4.5"]),
            ("1f1b-interleaved: 6 microbatches on 4 devices; expected a multiple of the number of devices",
             ["1f1b-interleaved", "-p", "4", "-m", "6"]),
            ("--times: '1,2'; expected three numbers F,B,W such as 18.5,18.1,9.3", ["1f1b", *shape, "--times", "1,2"]),
            ("--times: '1,2,3,4'; expected three numbers F,B,W such as 18.5,18.1,9.3",
             ["1f1b", *shape, "--times", "1,2,3,4"]),
            ("--times: nan: not a number; expected a number of at least zero, without a unit",
             ["1f1b", *shape, "--times", "1,2,nan"]),
            ("--times: -2: negative; expected a number of at least zero, without a unit",
             ["1f1b", *shape, "--times", "1,-2,1"]),
            ("--times, --comm: too large or too far apart; expected all passes together to last less than 10^18 times the "
             "shortest of them", ["1f1b", *shape, "--times", "1e300,1,1"]),
            ("--release-b: 2 is more than all; expected a fraction from 0 to 1", ["1f1b", *shape, "--release-b", "2"]),
            ("--memory-limit: 2 numbers; expected one, or one for each of 4 devices",
             ["v-adaptive", *shape, "--memory-limit", "1,1"]),
            ("--memory-limit: 5 numbers; expected one, or one for each of 4 devices",
             ["1f1b", *shape, "--memory-limit", "4,4,4,4,4"]),
            *((f"--memory-limit: '{word}'; expected a number from 0 up, or one a device",
               ["v-adaptive", *shape, "--memory-limit", limit])
              for word, limit in [("x", "x"), ("-1", "-1"), ("nan", "nan"), ("", ""), ("", "4,"), ("2GiB", "1,2GiB,3,4"),
                                  ("-nan", "4,4,-nan,4")]),
            ("--keep: 1.5 is more than all; expected a fraction from 0 to 1", ["1f1b-r", *shape, "--keep", "1.5"]),
            ("1f1b-r: has recompute passes; expected only F, B, W and BW, which PyTorch's runtime knows",
             ["1f1b-r", *shape, "--format", "torch-csv"]),
            ("chimera: has two replicas of the model; expected one, which PyTorch's runtime knows",
             ["chimera", *shape, "--format", "torch-csv"]),
            ("--format: unknown format 'xml'; expected table, json, text or torch-csv",
             ["1f1b", *shape, "--format", "xml"]),
            ("schedule: unknown option '--frmat'; expected one that `pipecast schedule --help` lists",
             ["1f1b", *shape, "--frmat", "json"]),
            ("schedule: --comm: no value; expected --comm T", ["1f1b", *shape, "--comm"]),
            ("x.gif: a file name that ends in .svg, .png or .pdf was expected", ["1f1b", *shape, "--figure", "x.gif"]),
            ("x.svg: 1200000 passes are too many to draw, at most 1000000 can be",
             ["zb-h1", "-p", "400", "-m", "1000", "--figure", "x.svg"]),
            ("/nowhere/x.svg: there is no folder '/nowhere'", ["1f1b", *shape, "--figure", "/nowhere/x.svg"]),
            ("missing.csv: No such file or directory; expected a CSV file", ["missing.csv", *shape]),
        ]
        for message, arguments in cases:
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)

    def test_csv_that_is_wrong_is_named(self):
        path = self.path("x.csv")
        pathlib.Path(path).write_text("0F0,0B0\n1F0,1B0,1B0\n")
        done = run("schedule", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"pipecast: {path}: schedule: stage 1, place 2: BW0 stands at place 1 already; "
                                      "expected every pass once\n")
        done = run("schedule", str(GOLDEN / "1f1b_p4_m8.csv"), "-p", "8", "-m", "8")
        self.assertIn("1f1b_p4_m8.csv: 4 devices; expected the 8 that the command line says", done.stderr)


class Run(Command):
    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.good("run", *arguments, "--format", "csv"))))

    def test_published_bubble_rates(self):
        """The 36 of table 5 for 1f1b, zb-h1, zb-h2 in all four decimals; the twelve interleaved ones within 0.006."""
        rows = self.rows(TABLE5)
        self.assertEqual(len(rows), 48)
        for row in rows:
            ours, theirs = float(row["bubble_rate_span"]), float(row["published_bubble_rate_span"])
            if row["schedule"] == "1f1b-interleaved":
                self.assertLess(abs(ours - theirs), 0.006)
            else:
                self.assertEqual(f"{ours:.4f}", f"{theirs:.4f}", row["name"])

    def test_table_is_golden(self):
        text = self.good("run", TABLE5, "--set", "setting.microbatches=32")
        self.assertEqual(text, (GOLDEN / "table5_m32.table.txt").read_text())

    def test_columns_of_the_interface(self):
        columns = ("run scenario model machine gpus tp pp dp virtual_pp schedule microbatch_size microbatches global_batch "
                   "seq_len recompute status iteration_s samples_per_s_per_gpu tflops_per_gpu mfu hfu bubble_rate_span "
                   "bubble_rate_makespan activation_gib_max memory_gib_max").split()
        row = self.rows(TABLE5, "--set", "sweep.schedule=[zb-h1]")[0]
        self.assertEqual(list(row)[:len(columns)], columns)
        self.assertEqual([row[c] for c in ("tp", "dp", "recompute", "mfu", "memory_gib_max")], [""] * 5)

    def test_json_is_the_csv(self):
        from_json = json.loads(self.good("run", TABLE5, "--format", "json"))
        for a, b in zip(self.rows(TABLE5), from_json):
            self.assertEqual(set(a), set(b))
            for key, value in a.items():
                self.assertEqual(value, "" if b[key] is None else str(b[key]) if not isinstance(b[key], float)
                                 else value if float(value) == b[key] else b[key])

    def test_results_do_not_depend_on_threads_or_time(self):
        texts, files = set(), set()
        for jobs in ("1", "2", "8"):
            path = self.path("r.h5")
            texts.add(self.good("run", TABLE5, "--jobs", jobs, "-o", path))
            files.add(pathlib.Path(path).read_bytes())
        self.assertEqual((len(texts), len(files)), (1, 1))

    def test_shards_are_the_whole(self):
        whole = self.rows(TABLE5)
        parts = [row for i in (1, 2, 3, 4, 5) for row in self.rows(TABLE5, "--shard", f"{i}/5")]
        self.assertEqual(sorted(parts, key=lambda row: int(row["run"])), whole)

    def test_several_scenarios(self):
        other = self.path("other.yaml")
        pathlib.Path(other).write_text("scenario: other\nsetting: {schedule: 1f1b, devices: 2, microbatches: 4, "
                                       "times: {F: 1 ms, BW: 2 ms}}\nsweep: {microbatches: [4, 5]}\n")
        rows = self.rows(TABLE5, other, TABLE5)
        self.assertEqual([int(row["run"]) for row in rows], list(range(1, 99)))
        self.assertEqual([row["scenario"] for row in rows[47:51]],
                         ["zero_bubble_table5", "other", "other", "zero_bubble_table5"])
        self.assertEqual([row["microbatches"] for row in rows[48:50]], ["4", "5"])
        self.assertEqual([row["iteration_s"] for row in rows[:48]], [row["iteration_s"] for row in rows[50:]])

    def test_an_error_ends_the_batch(self):
        """Run 3 of 200 runs over the clock; the others need not be done, and nothing hangs or is left."""
        path = self.path("over.yaml")
        pathlib.Path(path).write_text("scenario: over\nsetting: {schedule: 1f1b, devices: 2, times: {F: 1 h, BW: 2 h}}\n"
                                      f"sweep: {{microbatches: {[1, 2, 900] + list(range(1000, 1197))}}}\n")
        done = run("run", path, "--jobs", "4", "-o", self.path("r.h5"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "pipecast: run 3 (over.1f1b.m900): simulated time: runs over; expected everything to "
                                      "end within 106 days of simulated time\n")
        self.assertEqual(os.listdir(self.folder.name), ["over.yaml"])

    def test_figure_of_a_run(self):
        results, figure = self.path("r.h5"), self.path("f.svg")
        self.good("run", TABLE5, "-o", results)
        self.good("figure", results, "1.5B-m24.zb-h1", "-o", figure)
        by_name = pathlib.Path(figure).read_bytes()
        self.good("figure", results, "3", "-o", figure)
        self.assertEqual(by_name, pathlib.Path(figure).read_bytes())
        self.assertIn(b">Activation memory<", by_name)
        self.assertIn(b">at most 25.44 GiB, on ", by_name)
        done = run("figure", results, "nobody", "-o", figure)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"pipecast: {results}: no run 'nobody'; expected the name or number of one\n"))

    def test_two_replicas_and_recomputation_in_a_results_file(self):
        path, results = self.path("x.yaml"), self.path("r.h5")
        pathlib.Path(path).write_text("scenario: x\nsetting: {devices: 4, microbatches: 8, times: {F: 1 ms, BW: 2 ms}, "
                                      "activation: {size: 1 GiB, keep: 0.25}, trace: true}\n"
                                      "sweep: {schedule: [1f1b-r, gems, chimera]}\n")
        rows = self.rows(path, "-o", results)
        self.assertEqual([(row["recompute"], row["activation_gib_max"]) for row in rows],
                         [("full", "1.75"), ("", "1"), ("", "4")])
        for row in rows:
            self.good("figure", results, row["name"], "-o", self.path("f.svg"))

    def test_what_does_not_fit_is_an_answer(self):
        done = run("run", TABLE5, "--set", "setting.memory=25 GiB", "--format", "csv")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        statuses = {row["schedule"]: row["status"] for row in csv.DictReader(io.StringIO(done.stdout))
                    if row["name"].startswith("1.5B-m24")}
        self.assertEqual(statuses, {"1f1b": "ok", "1f1b-interleaved": "out_of_memory", "zb-h1": "out_of_memory",
                                    "zb-h2": "out_of_memory"})
        done = run("run", TABLE5, "--set", "setting.microbatches=20", "--set", "setting.schedule=1f1b-interleaved",
                   "--format", "csv")
        self.assertEqual(done.returncode, 1)
        self.assertEqual({row["status"] for row in csv.DictReader(io.StringIO(done.stdout))}, {"infeasible"})

    def test_an_old_file_stands_until_the_new_one_is_complete(self):
        path = self.path("r.h5")
        pathlib.Path(path).write_text("precious")
        done = run("run", TABLE5, "--set", "setting.devices=0", "-o", path)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(pathlib.Path(path).read_text(), "precious")
        self.good("run", TABLE5, "-o", path)
        self.assertEqual(pathlib.Path(path).read_bytes()[:4], b"\x89HDF")
        self.assertEqual(os.listdir(self.folder.name), ["r.h5"])

    def test_full_disk(self):
        for arguments in (["run", TABLE5], ["schedule", "1f1b", "-p", "4", "-m", "8"], ["list", "schedules"], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PIPECAST, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 3, arguments)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn("No space left on device", done.stderr)

    def test_disk_that_fills_up_while_writing(self):
        """On a file system of 64 KiB: the old file stands, nothing half-written is beside it."""
        folder = self.folder.name
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder],
                                               capture_output=True).returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        for arguments, name in [(["run", TABLE5, "-o"], "r.h5"),
                                (["schedule", "1f1b", "-p", "32", "-m", "128", "--figure"], "f.svg")]:
            pathlib.Path(folder, name).write_text("precious")
            done = run(*arguments, self.path(name))
            self.assertEqual((done.returncode, done.stdout), (3, ""), done)
            self.assertEqual(done.stderr, f"pipecast: {self.path(name)}: cannot write: No space left on device\n")
            self.assertEqual(pathlib.Path(folder, name).read_text(), "precious")
        self.assertEqual(sorted(os.listdir(folder)), ["f.svg", "r.h5"])

    def test_bad_input(self):
        full = "is a device or pipe; a regular file was expected, since the file is replaced in one step when it is complete"
        cases = [
            ("run: no scenario; expected SCENARIO.yaml, or options such as --model and --machine", []),
            ("missing.yaml: No such file or directory; expected a scenario file (YAML) of at most 4 MiB",
             ["missing.yaml"]),
            ("/dev/zero: too large; expected a scenario file (YAML) of at most 4 MiB", ["/dev/zero"]),
            ("/nowhere/x.h5: there is no folder '/nowhere'", [TABLE5, "-o", "/nowhere/x.h5"]),
            (f"/dev/full: {full}", [TABLE5, "-o", "/dev/full"]),
            ("/: a file's name was expected", [TABLE5, "-o", "/"]),
            ("--jobs: 0: out of range; expected a whole number from 1 to 1024", [TABLE5, "--jobs", "0"]),
            ("--shard: '1'; expected I/N such as 1/4", [TABLE5, "--shard", "1"]),
            ("--shard: 3: out of range; expected a whole number from 1 to 2", [TABLE5, "--shard", "3/2"]),
            ("--format: unknown format 'xml'; expected table, csv or json", [TABLE5, "--format", "xml"]),
            ("--set setting.times.F=12: setting.times.F: 12: no unit; expected a time such as 12.96 ms (ps, ns, us, ms, "
             "s, min, h)", [TABLE5, "--set", "setting.times.F=12"]),
        ]
        for message, arguments in cases:
            with self.subTest(arguments=arguments):
                self.bad(2, message, "run", *arguments)

    def test_bad_scenarios_say_file_line_and_key(self):
        """The files of tests/data/scenarios/bad say what they expect in their first line."""
        for path in sorted((ROOT / "tests/data/scenarios/bad").glob("*.yaml")):
            done = run("run", str(path))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), path)
            self.assertTrue(done.stderr.startswith(f"pipecast: {path}:"), done.stderr)


class Cluster(Command):
    """Whole iterations, by options alone: what README promises, and what an answer has."""
    OPTIONS = ("run", "--model", "gpt3-13b", "--machine", "dgx-a100", "--gpus", "64", "--tp", "4", "--pp", "4")

    def rows(self, *arguments, status=0):
        done = run(*arguments, "--format", "csv")
        self.assertEqual((done.returncode, done.stderr), (status, ""), done)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_the_common_question(self):
        row, = self.rows("run", "--model", "llama3-70b", "--machine", "dgx-h100", "--gpus", "512", "--tp", "8", "--pp", "4",
                         "--schedule", "v-half")
        self.assertEqual([row[c] for c in ("model", "machine", "gpus", "tp", "pp", "dp", "virtual_pp", "schedule", "status")],
                         ["llama3-70b", "dgx-h100", "512", "8", "4", "16", "2", "v-half", "ok"])
        self.assertTrue(0.2 < float(row["mfu"]) < 0.7)
        self.assertAlmostEqual(float(row["tflops_per_gpu"]), float(row["mfu"]) * float(row["peak_tflops"]))
        for column in ("iteration_s", "tokens_per_s_per_gpu", "exposed_tp_s", "exposed_bubble_s", "memory_gib_max",
                       "parameters_gib_max", "standard_error_s", "trace_hash"):
            self.assertNotEqual(row[column], "", column)

    def test_options_are_sets(self):
        by_options = self.good(*self.OPTIONS, "--zero", "0", "--seq-len", "1024", "--format", "csv")
        sets = ["model.from=gpt3-13b", "machine=dgx-a100", "gpus=64", "tp=4", "pp=4", "zero=0", "model.seq_len=1024"]
        path = self.path("x.yaml")
        pathlib.Path(path).write_text("scenario: flags\n")
        by_sets = self.good("run", path, *[word for s in sets for word in ("--set", "setting." + s)], "--format", "csv")
        self.assertEqual(by_options, by_sets)

    def test_lists_sweep(self):
        rows = self.rows(*self.OPTIONS, "--tp", "2,4", "--schedule", "1f1b,zb-h1", "--machine", "dgx-a100,dgx-h100")
        self.assertEqual([row["name"] for row in rows],
                         [f"flags.{s}.{m}.tp{t}" for m in ("dgx-a100", "dgx-h100") for t in (2, 4) for s in ("1f1b", "zb-h1")])
        self.assertEqual([row["dp"] for row in rows], ["8", "8", "4", "4"] * 2)

    def test_table_names_the_peak_and_where_time_goes(self):
        text = self.good(*self.OPTIONS)
        self.assertIn(", peak tflops 312", text.split("\n\n")[0])
        header = text.split("\n\n")[1].split()
        for word in ("MFU", "TP", "PP", "DP", "bubble", "memory"):
            self.assertIn(word, header)

    def test_what_does_not_fit_is_an_answer(self):
        row, = self.rows(*self.OPTIONS, "--memory", "10 GiB", status=1)
        self.assertEqual((row["status"], row["iteration_s"]), ("out_of_memory", ""))
        self.assertRegex(row["message"], "^stage [0-3]: .* of 10 GiB: .* too much$")
        done = run(*self.OPTIONS, "--memory", "10 GiB")
        self.assertEqual(done.returncode, 1)
        self.assertIn("\nrun 1: " + row["message"] + "\n", done.stdout)
        done = run(*self.OPTIONS, "--memory", "10 GiB", "--format", "json")
        self.assertEqual(json.loads(done.stdout)[0]["message"], row["message"])
        row, = self.rows(*self.OPTIONS, "--tp", "3", "--gpus", "48", status=1)
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("heads", row["message"])
        rows = self.rows(*self.OPTIONS, "--pp", "4,5", status=1)
        self.assertEqual([row["status"] for row in rows], ["ok", "infeasible"])
        self.assertIn("64 GPUs for tp 4 x pp 5", rows[1]["message"])
        self.assertEqual((rows[1]["dp"], rows[1]["gpus"]), ("", "64"))

    def test_memory_by_kind_in_the_results_file(self):
        path = self.path("r.h5")
        self.good(*self.OPTIONS, "--trace", "true", "-o", path)
        self.good("figure", path, "1", "-o", self.path("f.svg"))
        done = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True)
        for name in ("parameters_bytes", "gradients_bytes", "optimizer_bytes", "buffers_bytes", "activations_bytes",
                     "peak_total_bytes", "peak_ps", "capacity_bytes"):
            self.assertIn(f'DATASET "device_{name}"', done.stdout)

    def test_a_file_and_options(self):
        """An option wins over the file; a machine of one's own stands beside it."""
        pathlib.Path(self.path("own.yaml")).write_text("machine: own\nfrom: dgx-a100\nnodes: 2\n")
        pathlib.Path(self.path("x.yaml")).write_text("scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: own.yaml}\n"
                                                     "sweep: {tp: [1, 2]}\n")
        rows = self.rows("run", self.path("x.yaml"))
        self.assertEqual([(row["machine"], row["tp"], row["model"]) for row in rows],
                         [("own", "1", "gpt3-1.3b"), ("own", "2", "gpt3-1.3b")])
        row, = self.rows("run", self.path("x.yaml"), "--tp", "4", "--model", "gpt3-2.7b")
        self.assertEqual((row["machine"], row["tp"], row["model"]), ("own", "4", "gpt3-2.7b"))
        done = run("run", self.path("x.yaml"), "-o", self.path("x.yaml"))
        self.assertIn("x.yaml: is the scenario; expected another file\n", done.stderr)
        row, = self.rows("run", self.path("x.yaml"), "--tp", "4", "--gpus", "64", status=1)
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("16", row["message"])

    def test_results_do_not_depend_on_threads(self):
        texts = {self.good(*self.OPTIONS, "--tp", "1,2,4", "--zero", "0,1", "--format", "csv", "--jobs", jobs)
                 for jobs in ("1", "3")}
        self.assertEqual(len(texts), 1)

    def test_lists_of_the_library(self):
        for what, known in (("models", "gpt3-175b"), ("machines", "dgx-h100")):
            lines = self.good("list", what, cwd="/").splitlines()
            names = [line.split()[0] for line in lines[1:]]
            self.assertEqual(sorted(names), sorted(p.stem for p in (ROOT / "scenarios" / what).glob("*.yaml")))
            self.assertIn(known, names)
            self.assertNotIn("does not load", "".join(lines))

    def test_bad_input(self):
        cases = [
            ("--tp: 0: out of range; expected a whole number from 1 to 65536", ["--tp", "0"]),
            ("--gpus: 60 GPUs for tp 4 x pp 4 x dp 1, of which dp is to follow; expected a "
             "multiple of the other two's product", ["--gpus", "60"]),
            ("--machine: dgx-h10: no such machine in the library (did you mean "
             "dgx-h100?); expected one of `pipecast list machines`, or a file such as ./own.yaml", ["--machine", "dgx-h10"]),
            ("--tp: 0: out of range; expected a whole number from 1 to 65536", ["--tp", "1,0"]),
            ("--set setting.tp=0: setting.tp: 0: out of range; expected a whole number from 1 to 65536",
             ["--set", "setting.tp=0"]),
            ("run: --tp: no value; expected --tp N", ["--tp"]),
            ("--tp: '1,,2': a list with an empty entry; expected one comma between two values", ["--tp", "1,,2"]),
            ("--global-batch: stands beside --microbatches; expected one of the two",
             ["--microbatches", "8", "--global-batch", "128"]),
        ]
        for message, arguments in cases:
            with self.subTest(arguments=arguments):
                self.bad(2, message, *self.OPTIONS, *arguments)
        self.bad(2, "--machine: missing; expected one of `pipecast list machines` or a file, or times or stages",
                 "run", "--model", "gpt3-13b")


class Others(Command):
    def test_bad_input(self):
        for message, arguments in [
            ("no command; expected run, schedule, figure, calibrate, profile, list, --help or --version", []),
            ("unknown command 'a?b'; expected run, schedule, figure, calibrate, profile, list, --help or --version", ["a\nb"]),
            ("unknown command 'simulate'; expected run, schedule, figure, calibrate, profile, list, --help or --version", ["simulate"]),
            ("figure: no results file; expected RESULTS.h5", ["figure"]),
            ("figure: no output; expected -o FILE.svg, .png or .pdf", ["figure", "x.h5"]),
            ("x.h5: No such file or directory; expected a results file", ["figure", "x.h5", "-o", "x.svg"]),
            ("is not an HDF5 file; a results file of pipecast was expected", ["figure", TABLE5, "-o", "x.svg"]),
            ("list: of what? expected schedules, models, machines or scenarios", ["list"]),
            ("list: 'gpus'; expected schedules, models, machines or scenarios", ["list", "gpus"]),
        ]:
            with self.subTest(arguments=arguments):
                self.bad(2, message, *arguments)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
