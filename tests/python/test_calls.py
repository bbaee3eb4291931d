"""The calls of the package, beside the command: the same columns, and the same numbers to the last digit."""
import csv
import io
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import pipecast
from common import COMMAND, ROOT, in_folder, scenario

CLUSTER = {"model": "llama3-8b", "machine": "dgx-h100", "gpus": 64, "tp": 2, "pp": [2, 4], "global_batch": 256,
           "schedule": ["1f1b", "v-half"]}
MEASURED = """model,system,gpus,gbs,mbs,seq,tp,pp,step_s,note
gpt3-175b,dgx-h100,128,256,1,2048,4,8,20.0,first
gpt3-175b,dgx-h100,256,512,1,2048,4,8,21.0,second
no-such-model,dgx-h100,8,8,1,2048,1,1,1.0,third
"""


def command(*arguments):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=300)
    return done.stdout


def cells(table):
    """As CSV of the command has them: names, and rows of texts or numbers."""
    rows = list(csv.DictReader(io.StringIO(table)))
    return (list(rows[0]) if rows else []), rows


def columns_of(answer):
    """Names and values of a DataFrame or a Table."""
    return {name: list(answer[name]) for name in answer}


class Same(unittest.TestCase):
    def same(self, answer, text, but=()):
        names, rows = cells(text)
        mine = columns_of(answer)
        self.assertEqual([name for name in names if name not in but], list(mine))
        for name, values in mine.items():
            self.assertEqual(len(values), len(rows))
            for value, row in zip(values, rows):
                self.same_cell(name, value, row[name])

    def same_cell(self, name, value, text):
        if text == "":
            self.assertFalse(pipecast.tables.is_defined(value) and value == value, (name, value))
        elif isinstance(value, str):
            self.assertEqual(value, text, name)
        else:
            self.assertEqual(float(value), float(text), name)


@unittest.skipUnless(COMMAND, "no command to compare with")
class BesideTheCommand(Same):
    def test_run(self):
        answer = pipecast.run(**CLUSTER)
        self.same(answer, command("run", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "64", "--tp", "2",
                                  "--pp", "2,4", "--global-batch", "256", "--schedule", "1f1b,v-half", "--format", "csv"),
                  but=("command",))

    def test_file(self):
        path = str(ROOT / "scenarios/paper/zero_bubble_table2.yaml")
        self.same(pipecast.run(path), command("run", path, "--format", "csv"), but=("command",))
        self.same(pipecast.sweep([path]), command("run", path, "--format", "csv"), but=("command",))

    def test_plan(self):
        answer = pipecast.plan(model="gpt3-1.3b", machine="dgx-a100", gpus=16, global_batch=64, top=3)
        text = command("plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16", "--global-batch", "64",
                       "--top", "3", "--format", "csv")
        self.same(answer, text, but=("command", "part", "what", "factor"))

    def test_schedule(self):
        one = pipecast.Schedule("zb-h1", 4, 12, times=(1.0, 1.5, 0.5), transfer=0.125).summary()
        said = json.loads(command("schedule", "zb-h1", "-p", "4", "-m", "12", "--times", "1,1.5,0.5", "--comm", "0.125",
                                  "--format", "json"))
        for name, value in one.items():
            self.assertEqual(value, said[name], name)

    def test_score(self):
        with in_folder({"measured.csv": MEASURED}) as folder:
            path = os.path.join(folder, "measured.csv")
            answer = pipecast.score(path)
            self.same(answer, command("score", path, "--format", "csv"))
            sums = json.loads(command("score", path, "--by", "note", "--format", "json"))["sums"]
            mine = pipecast.Score(path, by="note").sums
            self.assertEqual([row.value for row in mine.rows()], [one["value"] or None for one in sums])
            self.assertEqual([row.mean for row in mine.rows()][0], sums[0]["mean"])


class Calls(unittest.TestCase):
    def test_columns(self):
        """Units and words stand beside columns, and rows have columns as attributes."""
        runs = pipecast.Scenario(**CLUSTER).run()
        self.assertEqual((runs.units["iteration_s"], runs.units["mfu"], runs.units["model"]), ("s", "1", ""))
        self.assertIn("iteration", runs.words["iteration_s"])
        row = runs.row(-1)
        self.assertEqual((row.pp, row.schedule, row.status), (4, "v-half", "ok"))
        self.assertEqual(row.iteration_s, runs["iteration_s"][3])
        self.assertRaises(AttributeError, getattr, row, "no_such_column")
        self.assertRaises(KeyError, runs.__getitem__, "no_such_column")
        self.assertRaises(IndexError, runs.row, 4)

    def test_given_times(self):
        """1F1B of 4 devices and 8 microbatches of 1 ms each: (8 + 3) passes of 3 ms."""
        row = pipecast.Scenario(schedule="1f1b", devices=4, microbatches=8,
                                times={"F": "1 ms", "B": "1 ms", "W": "1 ms"}, trace=True).run()
        self.assertAlmostEqual(row.row(0).iteration_s, 0.033, 12)
        timeline = row.timeline()
        self.assertAlmostEqual(timeline.makespan_s, 0.033, 12)
        self.assertEqual(timeline.passes.row_count, 4 * 8 * 2)
        self.assertEqual(list(timeline.passes)[4:], ["start_s", "end_s"])
        self.assertRaises(AttributeError, getattr, timeline, "span")
        self.assertEqual(sorted(set(timeline.passes["kind"])), ["BW", "F"])

    def test_text(self):
        one = pipecast.Scenario(text=scenario(), sets=["setting.microbatches=16"])
        self.assertEqual((one.name, len(one), one.run_names), ("mine", 1, ["mine.zb-h1"]))
        again = pipecast.Scenario(text=scenario())
        self.assertEqual(again.run().row(0).microbatches, 8)

    def test_settings(self):
        """Names of options, keys, and dicts; a list is swept where it can be."""
        of = pipecast.overrides.override
        self.assertEqual(of("microbatch_size", [1, 2]), "sweep.microbatch_size=[1, 2]")
        self.assertEqual(of("lora.rank", 16), "setting.lora.rank=16")
        self.assertEqual(of("model", {"from": "gpt3-1.3b", "layers": 4}), "setting.model={from: gpt3-1.3b, layers: 4}")
        self.assertEqual(of("model", "it's"), "setting.model.from='it''s'")
        self.assertEqual(of("trace", True), "setting.trace=true")
        self.assertEqual(of("layout", "15,16,16,15"), "setting.model.layout='15,16,16,15'")
        table = pipecast.settings()
        self.assertEqual(table["sweep"][list(table["name"]).index("tp")], "tp")

    def test_layout(self):
        """A text with commas is one layout, not a list."""
        row = pipecast.Scenario(model="llama3-8b", machine="dgx-h100", gpus=16, pp=2, global_batch=64,
                                layout="15,17").run().row(0)
        self.assertEqual(row.status, "ok")

    def test_lists(self):
        self.assertIn("zb-h1", list(pipecast.schedules()["name"]))
        self.assertIn("llama3-70b", list(pipecast.models()["name"]))
        self.assertIn("dgx-h100", list(pipecast.machines()["name"]))

    def test_no_plan(self):
        """Nothing fits: a table without rows, with its columns."""
        found = pipecast.Scenario(model="llama3-70b", machine="dgx-a100", gpus=1, global_batch=8).plan()
        self.assertEqual(found.row_count, 0)
        self.assertIn("mfu", found)
        self.assertEqual(len(pipecast.plan(model="llama3-70b", machine="dgx-a100", gpus=1, global_batch=8)["mfu"]), 0)

    def test_plan_again(self):
        """A plan's overrides make its run."""
        asked = {"model": "gpt3-1.3b", "machine": "dgx-a100", "gpus": 16, "global_batch": 64}
        plans = pipecast.Scenario(**asked).plan()
        self.assertGreater(len(plans.overrides(0)), 3)
        again = pipecast.Scenario(**asked, sets=plans.overrides(0)).run()
        self.assertEqual(again.row(0).iteration_s, plans.row(0).iteration_s)

    def test_own_schedule(self):
        """One device: F of 1, then BW of 2."""
        own = pipecast.Schedule.of_passes("mine", [[("F", 0, 0), ("BW", 0, 0)]], 1, times=(1.0, 1.5, 0.5))
        self.assertEqual(own.timeline().span, 3.0)
        with self.assertRaises(pipecast.InputError):
            pipecast.Schedule.of_passes("mine", [[("BW", 0, 0), ("F", 0, 0)]], 1)

    def test_schedule_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.csv")
            first = pipecast.Schedule("zb-h1", 4, 8)
            first.write(path)
            self.assertEqual(pipecast.Schedule(path).timeline().span, first.timeline().span)

    def test_memory_limit(self):
        """V-Half's like, searched within a limit: no device holds more."""
        one = pipecast.Schedule("v-adaptive", 4, 12, memory_limit=3.0)
        self.assertLessEqual(max(one.timeline().devices["peak"]), 3.0 + 1e-9)
        with self.assertRaises(pipecast.InputError):
            pipecast.Schedule("v-adaptive", 4, 12, memory_limit=0.1)

    def test_output(self):
        """A file keeps results; what is there is not done again, and it opens again."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "runs.h5"
            seen = []
            pipecast.sweep([pipecast.Scenario(text=scenario())], output=path, progress=lambda *at: seen.append(at))
            pipecast.sweep([pipecast.Scenario(text=scenario())], output=path)
            opened = pipecast.open_results(path)
            self.assertEqual((opened.row_count, opened.row(0).schedule), (1, "zb-h1"))

    def test_shards(self):
        with tempfile.TemporaryDirectory() as folder:
            parts = [pathlib.Path(folder) / f"{i}.h5" for i in (1, 2)]
            for number, path in enumerate(parts, 1):
                pipecast.sweep(pipecast.Scenario(**CLUSTER), output=path, shard=(number, 2))
            pipecast.merge(pathlib.Path(folder) / "all.h5", parts)
            whole = pipecast.open_results(pathlib.Path(folder) / "all.h5")
            self.assertEqual(list(whole["iteration_s"]), list(pipecast.Scenario(**CLUSTER).run()["iteration_s"]))

    def test_numbers(self):
        """What is not defined is NaN or None, whatever the column's type."""
        runs = pipecast.Scenario(text=scenario()).run()
        self.assertTrue(math.isnan(runs["mfu"][0]))
        self.assertIsNone(runs["model"][0])
        self.assertIsNone(runs.row(0).model)
        self.assertIsNone(runs.row(0).tp)


class Errors(unittest.TestCase):
    def test_place(self):
        """File, line and key, as the command's line has them."""
        with in_folder({"bad.yaml": "scenario: bad\nsetting:\n  gpus: 8\n  tp: 0\n"}) as folder:
            path = os.path.join(folder, "bad.yaml")
            with self.assertRaises(pipecast.InputError) as caught:
                pipecast.run(path)
            error = caught.exception
            self.assertEqual((error.file, error.line, error.key), (path, 4, "setting.tp"))
            self.assertTrue(str(error).startswith(f"{path}:4: setting.tp: 0"), error)
            self.assertIn("1", error.expected)
            self.assertIsInstance(error, ValueError)

    def test_argument(self):
        with self.assertRaises(pipecast.InputError) as caught:
            pipecast.run(modle="llama3-8b")
        self.assertIn("did you mean", str(caught.exception))
        self.assertIn("model", str(caught.exception))

    def test_others(self):
        for call in (lambda: pipecast.open_results("no-such.h5"), lambda: pipecast.Schedule("no-such", 4, 8),
                     lambda: pipecast.score("no-such.csv"), lambda: pipecast.Scenario("no-such.yaml").run(),
                     lambda: pipecast.run(**CLUSTER, threads=-1), lambda: pipecast.run(**CLUSTER, shard=(3, 2))):
            self.assertRaises(pipecast.InputError, call)
        runs = pipecast.Scenario(**CLUSTER).run()
        self.assertRaises(pipecast.InputError, runs.timeline)
        self.assertRaises(pipecast.InputError, runs.chart, "gpus", "no_such")

    def test_warning(self):
        """A row that cannot be read is said."""
        with in_folder({"measured.csv": MEASURED + "gpt3-175b,dgx-h100,1\n"}) as folder:
            with self.assertWarns(pipecast.PipecastWarning):
                pipecast.score(os.path.join(folder, "measured.csv"))
