"""`run --schedule FILE.csv`: a file runs as the schedule of a name does, and `export --to torch-csv` gives it back.

usage: test_schedule_file.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
from command import IS_QUICK, MORE, PASSES, SLICED, Command, run  # noqa: E402

OWN = ("run", "scenario", "name", "schedule", "making", "goal", "key")  # what a row is called, and how its schedule was made
TIMES = "times: {F: 3 ms, B: 4 ms, W: 2 ms}, transfer: {time: 1 ms}, activation: {size: 6 MiB, release_b: 0.5}"
CLUSTER = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--tp", "2", "--dp", "2")
# Two stages, three microbatches; of the first two B and W stand apart, the last has them in one.
MIXED = "0F0,0F1,0I0,0F2,0I1,0W0,0B2,0W1\n1F0,1I0,1F1,1I1,1W0,1F2,1B2,1W1\n"


class ScheduleFile(Command):
    def file(self, name, text):
        path = pathlib.Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def scenario(self, schedule, name="s.yaml", more="", costs=TIMES):
        return self.file(name, f"scenario: s\nsetting:\n  schedule: {schedule}\n  {costs.replace('}, ', chr(125) + chr(10) + '  ')}\n{more}")

    def rows(self, *arguments, **options):
        done = run("run", *arguments, "--format", "csv", "--quiet", **options)
        self.assertIn(done.returncode, (0, 1), done)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def refused(self, message, *arguments, **options):
        """One line that ends as given, exit status 2."""
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
        self.assertTrue(done.stderr.endswith(message + "\n"), f"\n{done.stderr} should end\n{message}")

    def csv_of(self, name, p=4, m=8):
        return self.good("schedule", name, "-p", str(p), "-m", str(m), "--format", "torch-csv")


class AsNamed(ScheduleFile):
    """A named schedule, written as a file, is the same run; the figures of a searched one are those of its order, whatever
    it is timed with: it is searched for the run itself and given back by the run's trace."""

    def check(self, name, by_name, arguments):
        results, again = self.path("r.h5"), self.path("again.h5")
        self.good("run", *by_name, "-o", results, "--quiet", "--format", "csv")
        order = self.good("export", results, "--run", "1", "--to", "torch-csv")
        path = self.file("mine.csv", order)
        named, own = self.rows(*by_name)[0], self.rows(*arguments(path))[0]
        self.assertEqual(own["schedule"], "mine.csv")
        for column in named.keys() - set(OWN):
            self.assertEqual(own[column], named[column], (name, column))
        self.good("run", *arguments(path), "-o", again, "--quiet", "--format", "csv")
        self.assertEqual(self.good("export", again, "--run", "1", "--to", "torch-csv"), order)
        self.assertEqual(self.good("schedule", path, "--format", "torch-csv"), order)
        os.remove(results)
        os.remove(again)

    def test_given_times(self):
        for name in PASSES[::3] if IS_QUICK else PASSES:
            by_name = self.scenario(f"{name}\n  devices: 4\n  microbatches: 8\n  trace: true")
            self.check(name, [by_name], lambda path: [self.scenario(f"{path}\n  trace: true", "own.yaml"), "--allow-outside"])

    def test_clusters(self):
        for name in PASSES[1::3] if IS_QUICK else PASSES:
            shape = ["--pp", "4", "--microbatches", "8", "--trace", "true"]
            self.check(name, [*CLUSTER, *shape, "--schedule", name],
                       lambda path: [*CLUSTER, "--trace", "true", "--schedule", path])

    def test_what_a_csv_cannot_say(self):
        for name, why in zip(MORE + SLICED[:1], (
                "has recompute passes; expected only F, B, W and BW",) + 3 * ("has two replicas of the model; expected one",) + (
                "has slices of microbatches; expected whole ones",)):
            results = self.path(f"{name}.h5")
            self.good("run", *CLUSTER, "--pp", "4", "--microbatches", "8", "--trace", "true", "--schedule", name, "-o", results, "--quiet")
            self.refused(f"{results}: run 1: {name}: {why}, which PyTorch's runtime knows", "export", results, "--run", "1", "--to",
                         "torch-csv")

    def test_no_trace(self):
        results = self.path("r.h5")
        self.good("run", *CLUSTER, "--schedule", self.file("mine.csv", self.csv_of("zb-h1")), "-o", results, "--quiet")
        self.refused(f"{results}: run 1 kept no trace; expected one of a scenario with `trace: true`", "export", results, "--run", "1",
                     "--to", "torch-csv")


class Mixed(ScheduleFile):
    """By hand, with F 3, B 4, W 2, BW 6, transfers of 1. Stage 1 waits for F0 until 4 and then never: F0 4-7, B0 7-11, F1 (from
    stage 0 at 7) 11-14, B1 14-18, W0 18-20, F2 20-23 (F2 of stage 0 runs 16-19, there at 20), BW2 23-29, W1 29-31. Stage 0: F0
    0-3, F1 3-6, B0 needs that of stage 1, 11 + 1: 12-16, F2 16-19, B1 19-23, W0 23-25, BW2 30-36, W1 36-38."""

    def test_given_times(self):
        row = self.rows(self.scenario(self.file("mixed.csv", MIXED)), "--allow-outside")[0]
        self.assertEqual([row[x] for x in ("pp", "microbatches", "virtual_pp", "iteration_s")], ["2", "3", "1", "0.038"])
        # Spans 38 and 27, work 3 x 9.
        self.assertAlmostEqual(float(row["bubble_rate_span"]), 1 - 27 / 38, delta=1e-12)

    def test_a_time_of_its_own(self):
        """BW given as 10: W1 of stage 1 ends at 35, BW2 there at 33; stage 0 does BW2 34-44, W1 44-46."""
        row = self.rows(self.scenario(self.file("mixed.csv", MIXED), costs=TIMES.replace("W: 2 ms", "W: 2 ms, BW: 10 ms")),
                        "--allow-outside")[0]
        self.assertEqual(row["iteration_s"], "0.046")

    def test_a_cluster(self):
        """A pass of each kind costs what it does in a schedule that has but that kind."""
        mixed = self.rows(*CLUSTER, "--schedule", self.file("mixed.csv", MIXED))[0]
        split = self.rows(*CLUSTER, "--pp", "2", "--microbatches", "3", "--schedule", "zb-h1")[0]
        for column in ("pass_f_s", "pass_b_s", "pass_w_s", "status", "parameters_gib_max"):
            self.assertEqual(mixed[column], split[column], column)
        self.assertEqual((mixed["pp"], mixed["microbatches"], mixed["global_batch"]), ("2", "3", "6"))


class Clashes(ScheduleFile):
    def test_numbers_that_are_said_too(self):
        path = self.file("mine.csv", self.csv_of("zb-h1"))
        own = "; expected {0}, or another schedule"
        for option, value, said, has in (("--pp", "8", "8 devices", "4"), ("--chunks", "2", "2 chunks a device", "1"),
                                         ("--microbatches", "6", "6 microbatches", "8"), ("--global-batch", "8", "4 microbatches", "8")):
            self.refused(f"pipecast: {option}: {said}, and schedule mine.csv has {has}" + own.format(has), "run", *CLUSTER, "--schedule",
                         path, option, value)
        for key, value, said, has in (("pp", 8, "8 devices", 4), ("devices", 8, "8 devices", 4), ("chunks", 2, "2 chunks a device", 1),
                                      ("microbatches", 6, "6 microbatches", 8)):
            scenario = self.scenario(f"mine.csv\n  {key}: {value}")
            self.refused(f"{scenario}:4: setting.{key}: {said}, and schedule mine.csv has {has}" + own.format(has), "run", scenario)
        for agree in (("--pp", "4"), ("--microbatches", "8"), ("--chunks", "1"), ("--gpus", "16"), ("--global-batch", "16")):
            self.assertEqual(self.rows(*CLUSTER, "--schedule", path, *agree)[0]["pp"], "4")

    def test_sweeps(self):
        self.file("mine.csv", self.csv_of("v-half"))
        scenario = self.scenario("1f1b\n  devices: 4\n  microbatches: 8", more="sweep:\n  schedule: [1f1b, mine.csv]\n")
        rows = self.rows(scenario)
        self.assertEqual([(x["name"], x["schedule"], x["virtual_pp"], x["status"]) for x in rows],
                         [("s.1f1b", "1f1b", "1", "ok"), ("s.mine.csv", "mine.csv", "2", "ok")])
        for key, values, said in (("devices", (4, 8), "8 devices"), ("microbatches", (8, 9), "9 microbatches"), ("chunks", (2, 3), "3 chunks a device")):
            for costs in ((scenario,), (*CLUSTER, "--set", "sweep.schedule=[1f1b,mine.csv]", "--pp", "4", "--microbatches", "8")):
                rows = self.rows(*costs, "--set", f"sweep.{key}={list(values)}", cwd=self.folder.name)
                found = {(x["schedule"], x["status"]) for x in rows}
                self.assertEqual(found, {("1f1b", "ok"), ("mine.csv", "ok"), ("mine.csv", "infeasible")}, (key, costs))
                done = run("run", *costs, "--set", f"sweep.{key}={list(values)}", cwd=self.folder.name)
                self.assertIn(f"{said}, and schedule mine.csv has ", done.stdout)
        self.file("sub/mine.csv", self.csv_of("v-min"))
        self.refused("sweep.schedule[1]: mine.csv is what runs would call entry 0 too; expected names that differ", "run", scenario, "--set",
                     "sweep.schedule=[mine.csv,sub/mine.csv]", cwd=self.folder.name)
        self.refused("sweep.schedule[1]: the same as entry 0; expected values that differ", "run", scenario, "--set",
                     "sweep.schedule=[mine.csv,mine.csv]", cwd=self.folder.name)

    def test_plans(self):
        words = "mine.csv: the schedule of a file; expected the name of one, for a plan chooses stages and microbatches"
        path, options = self.file("mine.csv", self.csv_of("zb-h1")), ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16")
        self.refused(f"pipecast: --schedule: {words}", "plan", *options, "--schedule", path)
        self.refused(f"pipecast: --schedule: {words}", "plan", *options, "--schedule", f"1f1b,{path}")
        self.refused(f"setting.schedule: {words}", "plan", *options, "--set", f"setting.schedule={path}")
        self.refused(f"sweep.schedule[0]: {words}", "plan", *options, "--set", f"sweep.schedule=[{path}]")
        self.refused(f"plan.schedule[1]: {words}", "plan", *options, "--set", f"plan.schedule=[1f1b, {path}]")


class Files(ScheduleFile):
    def test_wrong_files(self):
        lines = self.csv_of("zb-h1").splitlines()

        def changed(line, old, new):
            return "\n".join(x.replace(old, new) if i == line else x for i, x in enumerate(lines, 1)) + "\n"
        for text, message in ((changed(3, "2I1", "2X1"), "3: cell 5: '2X1'; expected <part><F, I, W, B, S or T><microbatch> such as 0F0, or nothing"),
                              (changed(2, "1W3,", ""), "2: schedule: stage 1, microbatch 3, chunk 0: W is missing; expected F once and either BW, or B and W, once"),
                              (changed(2, "1F1,", "1F1,1F1,"), "2: schedule: stage 1, place 2: F1 stands at place 1 already; expected every pass once"),
                              (changed(4, "3F0,3I0", "3I0,3F0"), "4: schedule: deadlock: stage 3, place 0: B0 waits for F0 of stage 3, place 1, which comes "
                               "later on that stage; expected an order in which every pass finds its input done")):
            path = self.file("bad.csv", text)
            scenario = self.scenario("bad.csv")
            for command in (("schedule", path), ("run", *CLUSTER, "--schedule", path), ("run", scenario)):
                self.refused(f"bad.csv:{message}", *command)
            done = run("run", scenario)
            self.assertTrue(done.stderr.startswith(f"pipecast: {scenario}:3: setting.schedule: "), done)
        self.refused("--schedule: ./none.csv: No such file or directory; expected a CSV file", "run", *CLUSTER, "--schedule", "./none.csv",
                     cwd=self.folder.name)
        self.refused("--schedule: x.csv: empty; expected a line for each rank", "run", *CLUSTER, "--schedule", "x.csv",
                     cwd=os.path.dirname(self.file("x.csv", "\n")))

    def test_a_pipe_is_refused(self):
        """Nobody writes into it: read, it would keep the program waiting."""
        os.mkfifo(self.path("pipe.csv"))
        self.refused("pipe.csv: is no regular file; expected a CSV file", "run", self.scenario("pipe.csv"))
        os.symlink("/dev/zero", self.path("zero.csv"))
        self.refused("zero.csv: is no regular file; expected a CSV file", "run", *CLUSTER, "--schedule", self.path("zero.csv"))

    def test_where_a_path_counts_from(self):
        """From the scenario's folder, and not out of it; in options and sets from where we are, and wherever the user likes."""
        order = self.csv_of("zb-h1")
        self.file("mine.csv", order)
        self.file("home/mine.csv", order)
        inner, outer = self.scenario("mine.csv", "home/s.yaml"), self.scenario("../mine.csv", "home/t.yaml")
        self.assertEqual(self.rows(inner)[0]["status"], "ok")
        self.assertEqual(self.rows("home/s.yaml", cwd=self.folder.name)[0]["status"], "ok")
        self.refused("expected a file in it, or the option --allow-outside", "run", outer)
        os.symlink("../mine.csv", self.path("home/link.csv"))
        self.refused("expected a file in it, or the option --allow-outside", "run", self.scenario("link.csv", "home/u.yaml"))
        self.assertEqual(self.rows(outer, "--allow-outside")[0]["schedule"], "mine.csv")
        self.file("here/mine.csv", self.csv_of("gpipe"))
        for words in (("--set", "setting.schedule=mine.csv"), ("--schedule", "mine.csv")):
            self.assertNotEqual(self.rows(inner, *words, cwd=self.path("here"))[0]["bubble_rate_span"],
                                self.rows(inner)[0]["bubble_rate_span"])

    def test_hostile_names(self):
        for name, label in (("a b;c\u202e\"<x>.csv", "a_b_c_____x_.csv"), ("=cmd|x.csv", "_cmd_x.csv"),
                            ("x" * 70 + ".csv", "x" * 59 + ".csv")):
            path = self.file(name, self.csv_of("zb-h1"))
            row = self.rows(self.scenario("1f1b"), "--set", f"setting.schedule='{path}'")[0]
            self.assertEqual((row["schedule"], row["name"]), (label, f"s.{label}"))
        self.refused("setting.schedule: has control characters; expected one line of text", "run", self.scenario('"a\\x1b.csv"'))

    def test_published(self):
        self.file("mine.csv", self.csv_of("zb-h1"))
        cases = "cases:\n  - name: a\n    published:\n      - {schedule: mine.csv, iteration: 1 s}\n      - {schedule: 1f1b, iteration: 2 s}\n"
        self.assertEqual(self.rows(self.scenario("mine.csv", more=cases))[0]["published_iteration_s"], "1")
        done = run("run", self.scenario("mine.csv", more=cases.replace("mine", "none")))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)
        self.assertIn("cases[0].published[0].schedule: ", done.stderr)
        self.assertIn("none.csv: No such file or directory; expected a CSV file", done.stderr)


class Sweeps(ScheduleFile):
    def test_shards(self):
        self.file("mine.csv", self.csv_of("v-half"))
        scenario = self.scenario("1f1b\n  devices: 4\n  microbatches: 8\n  trace: true", more="sweep:\n  schedule: [1f1b, mine.csv, zb-h1]\n")
        whole, merged = self.path("whole.h5"), self.path("merged.h5")
        shards = [self.path(f"{i}.h5") for i in (1, 2)]
        self.good("run", scenario, "-o", whole, "--quiet")
        for i, shard in enumerate(shards, 1):
            self.good("run", scenario, "-o", shard, "--shard", f"{i}/2", "--quiet")
        self.good("merge", merged, *shards)
        self.assertEqual(pathlib.Path(whole).read_bytes(), pathlib.Path(merged).read_bytes())

    def test_content_counts(self):
        """A second sweep into the same file takes what is there already, by its key: not of a file with another content."""
        scenario, results = self.scenario("mine.csv"), self.path("r.h5")
        found = []
        for name in ("zb-h1", "gpipe", "zb-h1"):
            self.file("mine.csv", self.csv_of(name))
            self.good("run", scenario, "-o", results, "--quiet")
            table = list(csv.DictReader(io.StringIO(self.good("export", results, "--to", "csv"))))
            self.assertEqual(len(table), 1)
            found.append((table[0]["bubble_rate_span"], table[0]["key"]))
        self.assertEqual(found[0], found[2])
        for number, key in zip(found[0], found[1]):
            self.assertNotEqual(number, key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
