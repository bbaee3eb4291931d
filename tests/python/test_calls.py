"""The calls of the package, beside the command: the same columns, and the same numbers to the last digit."""
import csv
import io
import json
import math
import os
import pathlib
import re
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


SCRIPT = """torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
  --seq-length 2048 --max-position-embeddings 2048 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --bf16 \\
  --micro-batch-size 1 --global-batch-size 64 --vocab-size 50257 --no-such-argument 3
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


def without_seconds(text):
    return re.sub(r'"(generate|replay)_s":[^,]*,', "", text)


@unittest.skipUnless(COMMAND, "no command to compare with")
class BesideTheCommand(Same):
    def test_megatron(self):
        """Of a script the run that the command makes of it, overrides and all; what is not known is a warning."""
        with in_folder({"train.sh": SCRIPT}) as folder:
            script = os.path.join(folder, "train.sh")
            with self.assertWarnsRegex(pipecast.PipecastWarning, "no-such-argument"):
                answer = pipecast.run(megatron=script, schedule=["1f1b", "zb-h1"])
            self.same(answer, command("run", "--megatron", script, "--schedule", "1f1b,zb-h1", "--format", "csv"), but=("command",))
            with self.assertWarns(pipecast.PipecastWarning):
                text = pipecast.import_config(script, "megatron")
            self.assertEqual(text, command("import", "megatron", script))
            self.assertRaisesRegex(TypeError, "megatron beside a path", pipecast.run, script, megatron=script)
            self.assertRaisesRegex(pipecast.InputError, "format: 'mega'; expected hf|megatron", pipecast.import_config, script, "mega")
        self.assertRaisesRegex(pipecast.InputError, "train.sh: ", pipecast.import_config, script, "megatron")

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

    def test_questions_of_a_plan(self):
        """The best of each value, a map, and what would change plan 1: the rows that the command has of the same."""
        asked = {"model": "gpt3-1.3b", "machine": "dgx-a100", "gpus": 16, "global_batch": 64, "tp": [1, 2, 3], "pp": [1, 2],
                 "schedule": ["1f1b"]}
        words = ("plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16", "--global-batch", "64", "--tp", "1,2,3",
                 "--pp", "1,2", "--schedule", "1f1b", "--format", "csv")
        for part, how, options in (("each", {"each": "tp"}, ["--each", "tp"]), ("map", {"map": ["tp", "pp"]}, ["--map", "tp,pp"]),
                                   ("mix", {"seq_mix": {1024: 0.25, "2048": 0.75}}, ["--seq-mix", "1024:0.25,2048:0.75"]),
                                   ("sensitivity", {"sensitivity": True}, ["--sensitivity"])):
            with self.subTest(part):
                lines = command(*words, *options).splitlines()
                place = lines[0].split(",").index("part")
                rows = [line for line in csv.reader(lines[1:]) if line[place] == part]
                said = io.StringIO()
                csv.writer(said).writerows([lines[0].split(","), *rows])
                self.assertGreater(len(rows), 2)
                answer = columns_of(pipecast.plan(**asked, **how))
                self.assertEqual([int(run) for run in answer.pop("run")], list(range(1, len(rows) + 1)))  # the command counts on
                self.same(answer, said.getvalue(), but=("command", "rank", "run"))
        plans = pipecast.Scenario(**asked).plan()
        self.assertEqual(plans.sensitivity(1, anew=True).row_count, 2 * plans.sensitivity(1).row_count)
        self.assertRaises(IndexError, plans.sensitivity, 99)
        self.assertRaises(TypeError, pipecast.plan, **asked, each="tp", map="tp,pp")
        self.assertRaises(pipecast.InputError, pipecast.plan, **asked, map="tp")

    def test_plan_with_a_goal(self):
        """The fewest GPUs: twice as many each time, until the training keeps to the deadline; the command's rows."""
        asked = {"model": "gpt3-13b", "machine": "dgx-a100", "schedule": "1f1b", "tp": [1, 2], "pp": [1, 2], "zero": 1,
                 "gpus": "16..64x2", "tokens": "300B"}
        answer = pipecast.plan(**asked, deadline="60d")
        self.assertEqual([int(one) for one in answer["gpus"]], [16, 32])
        self.assertEqual([float(one) <= 60 for one in answer["training_days"]], [False, True])
        said = list(csv.DictReader(io.StringIO(command(
            "plan", "--model", "gpt3-13b", "--machine", "dgx-a100", "--schedule", "1f1b", "--tp", "1,2", "--pp", "1,2", "--zero",
            "1", "--gpus", "16..64x2", "--tokens", "300B", "--deadline", "60d", "--format", "csv"))))[-2:]
        self.assertEqual([float(row["iteration_s"]) for row in said], [float(one) for one in answer["iteration_s"]])
        self.assertRaises(TypeError, pipecast.plan, **asked, deadline="60d", each="tp")
        with self.assertRaisesRegex(pipecast.InputError, "deadline"):
            pipecast.plan(**asked, deadline="soon")
        least = pipecast.plan(**{**asked, "gpus": 16}, objective="memory", top=1)
        self.assertLess(float(least["memory_gib_max"][0]), float(pipecast.plan(**{**asked, "gpus": 16}, top=1)["memory_gib_max"][0]))

    def test_schedule(self):
        one = pipecast.Schedule("zb-h1", 4, 12, times=(1.0, 1.5, 0.5), transfer=0.125).summary()
        said = json.loads(command("schedule", "zb-h1", "-p", "4", "-m", "12", "--times", "1,1.5,0.5", "--comm", "0.125",
                                  "--format", "json"))
        for name, value in one.items():
            self.assertEqual(value, said[name], name)

    def test_schedule_by_options(self):
        """Every option, as a keyword and as the command has it: the same bytes but for the seconds that it took."""
        scatter = (dict(jitter=0.05, gpu_jitter=0.02, link_jitter=0.1, slow_factor=1.25, slow_stage=1, samples=40, seed=7),
                   ["--jitter", "0.05", "--gpu-jitter", "0.02", "--link-jitter", "0.1", "--slow-factor", "1.25",
                    "--slow-stage", "1", "--samples", "40", "--seed", "7"])
        costs = dict(times=(3, 4, 2.5), transfer=0.3, release_b=0.25), ["--times", "3,4,2.5", "--comm", "0.3", "--release-b", "0.25"]
        cases = [
            ("1f1b-interleaved", dict(chunks=2), ["-v", "2"]),
            ("zb-h1", dict(times=[(3, 4, 2)] * 3 + [(4, 5, 3.5)]), ["--times", "3,4,2*3/4,5,3.5"]),
            ("zb-h1", dict(times="3,4,2*3/4,5,3.5"), ["--times", "3,4,2*3/4,5,3.5"]),
            ("1f1b", dict(**costs[0], improve=True), [*costs[1], "--improve"]),
            ("v-half", dict(**costs[0], goal="makespan"), [*costs[1], "--goal", "makespan"]),
            ("v-half", dict(**costs[0], making="equal"), [*costs[1], "--making", "equal"]),
            ("v-adaptive", dict(memory_limit=[3, 2.5, 3, 3.25]), ["--memory-limit", "3,2.5,3,3.25"]),
            ("gpipe", dict(memory_limit=2.0, out_of_memory="wait"), ["--memory-limit", "2", "--out-of-memory", "wait"]),
            ("seq-1f1b", dict(slices=2, slice_times=(1.0, 1.5)), ["--slices", "2", "--slice-times", "1,1.5"]),
            ("1f1b-r", dict(keep=0.5, engine="events"), ["--keep", "0.5", "--engine", "events"]),
            ("1f1b-vocab-2", dict(vocab_times=(0.5, 1.0)), ["--vocab-times", "0.5,1"]),
            ("zb-1p", dict(**costs[0], **scatter[0]), [*costs[1], *scatter[1]]),
            ("zb-1p", dict(**costs[0], **scatter[0], robust="p95"), [*costs[1], *scatter[1], "--robust", "p95"]),
        ]
        for name, keywords, options in cases:
            for form in ("json", "table", "text", "block") if name in ("zb-1p", "1f1b") else ("json", "torch-csv"):
                if form == "torch-csv" and name not in ("zb-h1", "v-half"):
                    continue
                with self.subTest(name=name, options=options, form=form):
                    said = command("schedule", name, "-p", "4", "-m", "8", *options, "--format", form)
                    mine = pipecast.Schedule(name, 4, 8, **keywords).text(form)
                    self.assertEqual(without_seconds(mine), without_seconds(said))

    def test_schedule_of_measured_stages(self):
        """`best`, and sizes as limits; a timeline is in the file's milliseconds."""
        stages = "stages:\n" + "".join(f"  - {{F: {f} ms, B: 3 ms, W: 2 ms, activation: 1 GiB}}\n" for f in (2, 3, 2, 4))
        with in_folder({"times.yaml": stages}) as folder:
            path = os.path.join(folder, "times.yaml")
            for limit in ("6GiB", "3GiB,3GiB,2GiB,2GiB"):
                said = command("schedule", "best", "-m", "8", "--times", path, "--memory-limit", limit, "--format", "json")
                best = pipecast.Schedule("best", microbatches=8, times=pathlib.Path(path), memory_limit=limit)
                self.assertEqual(without_seconds(best.text("json")), without_seconds(said))
                self.assertEqual(best.timeline().span, json.loads(said)["span"])
            with self.assertRaisesRegex(pipecast.InputError, "no schedule of these stages holds at most 0.5GiB,1GiB"):
                pipecast.Schedule("best", microbatches=8, times=path, memory_limit="0.5GiB,1GiB,1GiB,1GiB")

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
        for name in ("no_such_column", "mfu\0"):
            self.assertRaises(KeyError, runs.__getitem__, name)
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

    def test_asked_twice(self):
        """The first run is one call of the library; the second loads the scenario, and comes to the same."""
        one = pipecast.Scenario(schedule="1f1b", devices=4, microbatches=8, times={"F": "1 ms", "B": "1 ms", "W": "1 ms"})
        self.assertIsNone(one._loaded)
        first = one.run()
        self.assertIsNone(one._loaded)
        second = one.run()
        self.assertIsNotNone(one._loaded)
        for name in first:
            self.assertEqual(repr(list(first[name])), repr(list(second[name])), name)

    def test_dicts_of_texts(self):
        """What is looked up is made anew if a value changes, or its type does."""
        times = {"F": "1 ms", "B": "1 ms", "W": "1 ms"}
        base = {"schedule": "1f1b", "devices": 4, "microbatches": 8}
        for unit, expected in (("1 ms", 33e-3), ("2 ms", 66e-3), ("1 ms", 33e-3)):
            times.update(dict.fromkeys(times, unit))
            self.assertAlmostEqual(pipecast.Scenario(**base, times=times).run().row(0).iteration_s, expected, 12)

    def test_bad_options(self):
        """Errors name the keyword, not the command's option."""
        for keywords, key, said in (
                (dict(times=(1, 2)), "times", "times: '1,2'; expected three numbers F,B,W such as 18.5,18.1,9.3"),
                (dict(memory_limit=2), "memory_limit", "memory_limit: 2 is too little for 1f1b; expected at least 4"),
                (dict(slow_stage=1), "slow_stage", "slow_stage: means nothing alone; expected slow_factor beside it"),
                (dict(samples=1, jitter=0.1), "samples", "samples: 1: out of range"),
                (dict(improve=True, out_of_memory="wait"), "improve", "expected no out_of_memory wait"),
                (dict(robust="best", jitter=0.1), "robust", "robust: unknown word 'best'; expected none, mean or p95")):
            with self.subTest(keywords=keywords):
                with self.assertRaises(pipecast.InputError) as caught:
                    pipecast.Schedule("1f1b", 4, 8, **keywords)
                self.assertEqual(caught.exception.key, key)
                self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(pipecast.InputError, "not made by options"):
            pipecast.Schedule.of_passes("mine", [[("F", 0, 0), ("BW", 0, 0)]], 1).report()

    def test_searched_summary(self):
        rows = pipecast.schedule(["zb-1p", "zb-h1"], 4, 8, times=(3, 4, 2), jitter=0.05, samples=30, robust="mean")
        self.assertTrue(all(gain >= 0 for gain in rows["gain"]))
        improved = pipecast.schedule("1f1b", 4, 8, times=(3, 4, 2), transfer=0.5, improve=True)
        self.assertLessEqual(improved["span"][0], improved["span_before"][0])

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
