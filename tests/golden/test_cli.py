"""The command line from outside: what it prints, what it exits with, and that nothing half-written is left. Schedules are
in test_schedule.py, and runs by options alone in test_options.py.

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

sys.dont_write_bytecode = True
from command import GOLDEN, MORE, PASSES, SLICED, PIPECAST, ROOT, VOCAB, Command, interrupted_on_a_terminal, run, full_only  # noqa: E402

TABLE5 = ROOT / "scenarios/paper/zero_bubble_table5.yaml"  # setUpModule: a copy without the schedules that search


def setUpModule():
    """What the command does with a file is looked at many times here; the searches of two schedules would take minutes."""
    global TABLE5
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    text, copy = TABLE5.read_text(), pathlib.Path(folder.name, TABLE5.name)
    quick = text.replace("zb-h2, zb-1p, zb-2p]", "zb-h2]").replace("  engine: events\n", "")
    assert len(quick) < len(text) - len("  engine: events\n")
    copy.write_text(quick)
    TABLE5 = str(copy)


class Help(Command):
    def test_every_command_has_help_with_an_example(self):
        for command in [["--help"]] + [[name, "--help"] for name in ("run", "schedule", "figure", "export", "compare", "merge", "list", "profile")]:
            self.assertIn("\nexample: pipecast ", self.good(*command))

    def test_help_and_h_say_the_same(self):
        self.assertEqual({self.good(word) for word in ("help", "-h", "--help")}, {self.good("--help")})
        for name in ("run", "plan", "schedule", "figure", "export", "compare", "merge", "list", "profile", "calibrate"):
            text = self.good(name, "--help")
            self.assertTrue(text.startswith(f"usage: pipecast {name}"), text)
            for words in (["help", name], ["--help", name], [name, "-h"]):
                self.assertEqual(self.good(*words), text, words)
        self.assertEqual(self.good("help", "help"), self.good("--help"))
        self.bad(2, "unknown command 'rum' (did you mean run?); expected run, plan, score, schedule, figure, export, compare, merge, "
                 "import, calibrate, profile, list, --help or --version", "help", "rum")

    def test_version_has_three_names(self):
        self.assertEqual({self.good(word) for word in ("--version", "-V", "version")}, {self.good("--version")})

    def test_version_names_what_was_built(self):
        lines = dict(line.split(": ") for line in self.good("--version").splitlines()[1:])
        self.assertEqual(set(lines), {"commit", "hdf5", "gsl", "cuda", "nccl", "mpi"})

    def test_list(self):
        names = [line.split()[0] for line in self.good("list", "schedules").splitlines()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), set(PASSES + MORE + SLICED + VOCAB))
        listed = self.good("list", "scenarios", cwd=ROOT)
        self.assertIn("paper/zero_bubble_table5.yaml", listed)
        self.assertNotIn("/blocks/", listed)  # what scenarios name is none


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

    def test_how_it_was_worked_out(self):
        """The same rows by events but for the column that says so, and the key; the table says it above."""
        rows, by_events = self.rows(TABLE5), self.rows(TABLE5, "--engine", "events")
        self.assertEqual({row["engine"] for row in rows}, {"paths"})
        self.assertEqual({row["engine"] for row in by_events}, {"events"})
        for a, b in zip(rows, by_events):
            self.assertEqual({**a, "engine": "", "key": ""}, {**b, "engine": "", "key": ""})
            self.assertNotEqual(a["key"], b["key"])
        self.assertIn("\nengine: events for everything: passes, transfers, links and memories\n",
                      self.good("run", TABLE5, "--engine", "events"))

    def test_json_is_the_csv(self):
        from_json = json.loads(self.good("run", TABLE5, "--format", "json"))
        for a, b in zip(self.rows(TABLE5), from_json):
            self.assertEqual(set(a), set(b))
            for key, value in a.items():
                self.assertEqual(value, "" if b[key] is None else str(b[key]) if not isinstance(b[key], float)
                                 else value if float(value) == b[key] else b[key])

    @full_only
    def test_results_do_not_depend_on_threads_or_time(self):
        texts, files = set(), set()
        for jobs in ("1", "2", "8"):
            path = self.path(f"r{jobs}.h5")
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
        self.assertLessEqual(set(os.listdir(self.folder.name)), {"over.yaml", "r.h5.journal"})  # of runs 1 and 2

    @full_only
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
                         (2, f"pipecast: {results}: no chart or run 'nobody'; expected the name or number of one, or "
                             "SCENARIO/NAME\n"))

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
        done = run("run", TABLE5, "--set", "setting.memory=1 MiB", "--set", "setting.schedule=zb-1p", "--format", "csv")
        self.assertEqual(done.returncode, 1)
        self.assertEqual({row["status"] for row in csv.DictReader(io.StringIO(done.stdout))}, {"infeasible"})

    @full_only
    def test_an_old_file_stands_until_the_new_one_is_complete(self):
        path = self.path("r.h5")
        self.good("run", TABLE5, "--set", "sweep.schedule=[1f1b]", "-o", path)
        precious = pathlib.Path(path).read_bytes()
        done = run("run", TABLE5, "--set", "setting.devices=0", "-o", path)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(pathlib.Path(path).read_bytes(), precious)
        self.good("run", TABLE5, "-o", path)
        self.assertNotEqual(pathlib.Path(path).read_bytes(), precious)
        self.assertEqual(os.listdir(self.folder.name), ["r.h5"])

    def test_what_is_no_results_file_is_not_replaced(self):
        path = self.path("r.h5")
        for text, message in (("precious", "is not an HDF5 file; expected a results file of pipecast"),
                              ("", "is an empty file; expected a results file, or none there")):
            pathlib.Path(path).write_text(text)
            for arguments in [["run", TABLE5, "-o", path], ["run", TABLE5, "--fresh", "-o", path]]:
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"pipecast: {path}: {message}; what is no results file is not replaced\n")
                self.assertEqual(pathlib.Path(path).read_text(), text)
                self.assertEqual(os.listdir(self.folder.name), ["r.h5"])

    def test_full_disk(self):
        measured = ROOT / "scenarios/validation/measured.csv"
        for arguments in (["run", TABLE5], ["schedule", "1f1b", "-p", "4", "-m", "8"], ["list", "schedules"], ["--help"],
                          ["run", TABLE5, "--format", "csv"], ["score", measured, "-q"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PIPECAST, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 3, arguments)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertRegex(done.stderr, "^pipecast: standard output: .*No space left on device")

    def small_disk(self):
        """A folder that is a file system of 64 KiB."""
        folder = self.path("disk")
        os.mkdir(folder)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder],
                                               capture_output=True).returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return pathlib.Path(folder)

    def fill_up(self, folder, written, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (3, ""), done)
        self.assertEqual(done.stderr, f"pipecast: {folder / written}: cannot write: No space left on device\n")

    def test_disk_that_fills_up_while_a_figure_is_written(self):
        """The old file stands, nothing half-written is beside it."""
        folder = self.small_disk()
        figure = folder / "f.svg"
        figure.write_text("precious")
        self.fill_up(folder, "f.svg", "schedule", "1f1b", "-p", "32", "-m", "128", "--figure", figure)
        self.assertEqual((figure.read_text(), os.listdir(folder)), ("precious", ["f.svg"]))

    def test_disk_that_fills_up_in_a_sweep(self):
        """Of two runs, one after the other, one leaves a trace of 34 kB, the other of over half a megabyte. A run that was kept
        before the disk was full stays, in the journal; where the first one does not fit there is none."""
        folder, runs = self.small_disk(), ("{name: small, devices: 2}", "{name: large, devices: 32}")
        for order, left in ((runs, ["r.h5.journal"]), (runs[::-1], [])):
            scenario = self.path("two.yaml")
            pathlib.Path(scenario).write_text(
                "scenario: two\ncases: [" + ", ".join(order) + "]\nsweep: {chunks: [1]}\n"
                "setting: {schedule: 1f1b, microbatches: 128, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB}, trace: true}\n")
            self.fill_up(folder, "r.h5.journal", "run", scenario, "--jobs", "1", "-o", folder / "r.h5")
            self.assertEqual(os.listdir(folder), left)
            for path in folder.iterdir():
                path.unlink()

    def test_bad_input(self):
        full = "is a device or pipe; expected a regular file, since the file is replaced in one step when it is complete"
        cases = [
            ("run: no scenario; expected SCENARIO.yaml, or options such as --model and --machine", []),
            ("missing.yaml: No such file or directory; expected a scenario file (YAML) of at most 4 MiB",
             ["missing.yaml"]),
            ("/dev/zero: too large; expected a scenario file (YAML) of at most 4 MiB", ["/dev/zero"]),
            ("/nowhere/x.h5: there is no folder '/nowhere'; expected one that is there", [TABLE5, "-o", "/nowhere/x.h5"]),
            (f"/dev/full: {full}", [TABLE5, "-o", "/dev/full"]),
            ("/: no name of a file; expected one", [TABLE5, "-o", "/"]),
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

    def test_a_model_of_an_option_that_lacks_a_key(self):
        path = self.path("own.yaml")
        pathlib.Path(path).write_text("model: own\nhidden: 1024\n")
        done = run("run", "--model", path, "--machine", "dgx-h100", "--gpus", "8")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(done.stderr, "pipecast: --model: layers: missing; expected it in the model's file, or beside the "
                                      "model's other keys\n")

    def test_bad_scenarios_say_file_line_and_key(self):
        """The files of tests/data/scenarios/bad say what they expect in their first line."""
        for path in sorted((ROOT / "tests/data/scenarios/bad").glob("*.yaml")):
            done = run("run", str(path))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), path)
            self.assertTrue(done.stderr.startswith(f"pipecast: {path}:"), done.stderr)


class Interrupted(Command):
    """Ctrl-C takes the bar back, and with it what the terminal echoes behind it."""
    RUN = ("run", "--model", "gpt3-13b", "--machine", "dgx-a100", "--gpus", "256", "--pp", "1,2,4,5,8", "--tp", "1,2,4,8",
           "--microbatch-size", "1,2,4", "--zero", "0,1,2,3", "--schedule", "v-half,zb-v,zb-1p,v-min", "--jobs", "1")

    def test_without_a_file(self):
        status, rows = interrupted_on_a_terminal(self, *self.RUN)
        self.assertEqual((status, rows), (-2, [""]))

    def test_with_a_file(self):
        status, rows = interrupted_on_a_terminal(self, *self.RUN, "-o", self.path("r.h5"))
        self.assertEqual((status, len(rows), rows[1]), (-2, 2, ""))
        self.assertRegex(rows[0], r"^pipecast: interrupted: \d+ of \d+ runs to do are done and kept in ")

    def test_plan(self):
        status, rows = interrupted_on_a_terminal(
            self, "plan", "--model", "gpt3-13b", "--machine", "dgx-a100", "--gpus", "256", "--set", "setting.global_batch=256",
            "--schedule", "v-half,zb-v,zb-1p", "--exhaustive", "--jobs", "1")
        self.assertEqual((status, rows), (-2, [""]))


class Others(Command):
    def test_bad_input(self):
        for message, arguments in [
            ("no command; expected run, plan, score, schedule, figure, export, compare, merge, import, calibrate, profile, list, --help or --version", []),
            ("unknown command 'a?b'; expected run, plan, score, schedule, figure, export, compare, merge, import, calibrate, profile, list, --help or --version", ["a\nb"]),
            ("unknown command 'simulate' (did you mean run?); expected run, plan, score, schedule, figure, export, compare, merge, import, calibrate, profile, list, --help or --version", ["simulate"]),
            ("figure: no results file; expected RESULTS.h5", ["figure"]),
            ("figure: no output; expected -o FILE.svg, .png or .pdf", ["figure", "x.h5"]),
            ("x.h5: No such file or directory; expected a results file", ["figure", "x.h5", "-o", "x.svg"]),
            ("is not an HDF5 file; expected a results file of pipecast", ["figure", TABLE5, "-o", "x.svg"]),
            ("list: of what? expected schedules, models, machines, software, precisions, profiles, scenarios or keys", ["list"]),
            ("list: 'gpus' (did you mean machines?); expected schedules, models, machines, software, precisions, profiles, scenarios or keys", ["list", "gpus"]),
        ]:
            with self.subTest(arguments=arguments):
                self.bad(2, message, *arguments)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
