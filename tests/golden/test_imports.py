"""Configurations of other programs, from the command line: what is imported runs, and plans come back as the same run.

usage: test_imports.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
HF = ROOT.parent / "shared/data/imports/hf"
SAME = ("gpus", "tp", "pp", "dp", "cp", "ep", "virtual_pp", "microbatches", "microbatch_size", "global_batch", "seq_len", "zero", "precision", "parameters",
        "iteration_s", "memory_gib_max", "activation_gib_max", "mfu")
# Model, and what is asked of the plan: every one can be said in arguments of Megatron-LM.
PLANS = [
    ("llama3-8b", "--gpus 32 --global-batch 128 --zero 1 --tp 2 --pp 4 --schedule 1f1b"),
    ("llama3-70b", "--gpus 64 --global-batch 128 --zero 1 --tp 8 --pp 4 --schedule 1f1b-interleaved --chunks 5 --recompute full"),
    ("llama3-70b", "--gpus 64 --global-batch 128 --zero 1 --tp 4 --pp 8 --schedule 1f1b --layout ends,own,even --precision fp8-current"),
    ("llama3-8b", "--gpus 32 --global-batch 128 --zero 1 --tp 2 --pp 4 --schedule 1f1b --layout balanced --rank-order tp-pp-dp"),
    ("gpt3-6.7b", "--gpus 16 --global-batch 32 --zero 0 --tp 4 --pp 2 --schedule 1f1b --recompute selective"),
    ("mixtral-8x7b", "--gpus 64 --global-batch 128 --zero 1 --tp 2 --pp 4 --ep 8 --etp 1 --schedule 1f1b"),
    ("mixtral-8x7b", "--gpus 64 --global-batch 128 --zero 1 --tp 2 --pp 4 --ep 8 --etp 1 --schedule 1f1b --moe-token-dispatcher-type flex "
                     "--moe-flex-dispatcher-backend hybridep --set setting.moe_hybridep_num_sms=32"),
    ("qwen3-30b-a3b", "--gpus 32 --global-batch 64 --zero 1 --tp 1 --pp 2 --ep 8 --schedule 1f1b"),
    ("deepseek-v2-lite", "--gpus 32 --global-batch 64 --zero 1 --tp 1 --pp 1 --ep 8 --schedule 1f1b --set setting.model.mtp_num_layers=0"),
]


def pipecast(*words, folder=None):
    done = subprocess.run([PIPECAST, *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=120)
    return done.returncode, done.stdout, done.stderr


def row_of(*words):
    code, out, error = pipecast("run", *words, "--format", "csv", "--columns", "all")
    assert code in (0, 1), error
    row = next(csv.DictReader(io.StringIO(out)))
    return {name: row[name] for name in SAME if name in row}


class RoundTrip(unittest.TestCase):
    def test_a_plan_as_arguments_is_the_same_run(self):
        for model, words in PLANS:
            with self.subTest(model=model, words=words), tempfile.TemporaryDirectory() as folder:
                code, out, error = pipecast("plan", "--model", model, "--machine", "dgx-h100", "--top", 1, "--format", "megatron", *words.split())
                self.assertEqual(code, 0, error)
                self.assertNotIn("no argument for", out)
                script = pathlib.Path(folder) / "plan.sh"
                script.write_text(out)
                command = re.search(r"^# pipecast (run .*)$", out, re.MULTILINE).group(1).split()
                self.assertEqual(row_of("--megatron", script), row_of(*command[1:]))

    def test_torchtitan_has_what_it_can(self):
        code, out, error = pipecast("plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", 32, "--global-batch", 64, "--top", 1,
                                    "--pp", 4, "--tp", 2, "--zero", 3, "--schedule", "v-half", "--format", "torchtitan")
        self.assertEqual(code, 0, error)
        for line in ("tensor_parallel_degree = 2", "pipeline_parallel_degree = 4", 'pipeline_parallel_schedule_csv = "schedule.csv"',
                     'pipeline_parallel_schedule = "ZBVZeroBubble"', "data_parallel_shard_degree = 4", "global_batch_size = 64"):
            self.assertIn(line, out.splitlines())

    def test_torchtitans_files(self):
        """Each plan's fields and, beside them, the order of its schedule, which is that of the plan's run."""
        asked = ["plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", 32, "--global-batch", 64, "--top", 2, "--all-variants",
                 "--pp", 4, "--tp", 2, "--zero", 3, "--schedule", "zb-v,v-half", "--microbatch-size", 1, "--format", "torchtitan"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(pipecast(*asked, "-o", "job.toml", folder=folder), (0, "", ""))
            self.assertEqual({path.name for path in folder.iterdir()}, {"job.toml", "job.csv", "job-2.toml", "job-2.csv"})
            for stem in ("job", "job-2"):
                fields = (folder / f"{stem}.toml").read_text()
                command = re.search(r"^# pipecast (run .*)$", fields, re.MULTILINE).group(1).split()
                self.assertIn(f'pipeline_parallel_schedule_csv = "{stem}.csv"', fields)
                self.assertIn('\npipeline_parallel_schedule = "ZBVZeroBubble"\n', fields)
                self.assertEqual(pipecast(*command, "--trace", "true", "-o", "r.h5", "--quiet", folder=folder)[0], 0)
                code, order, error = pipecast("export", "r.h5", "--run", "1", "--to", "torch-csv", folder=folder)
                self.assertEqual((code, error, order), (0, "", (folder / f"{stem}.csv").read_text()))
                (folder / "r.h5").unlink()

    def test_megatrons_file_and_what_it_does_not_have(self):
        asked = ["plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", 32, "--global-batch", 64, "--top", 1, "--pp", 4, "--tp", 2,
                 "--format", "megatron"]
        for schedule, nearest in [("v-half", "1f1b-interleaved"), ("zb-h1", "1f1b"), ("1f1b", None)]:
            with self.subTest(schedule), tempfile.TemporaryDirectory() as folder:
                code, out, error = pipecast(*asked, "--schedule", schedule)
                line = f"Megatron-LM does not have the schedule {schedule}: with these arguments it runs {nearest}, its nearest"
                self.assertEqual((code, error), (0, "" if not nearest else f"pipecast: warning: plan 1: {line}; `--schedule "
                                                 "1f1b,1f1b-interleaved` plans with what it has\n"))
                self.assertEqual(f"# {line}\n" in out, nearest is not None)
                self.assertEqual(pipecast(*asked, "--schedule", schedule, "-q", "-o", "args.sh", folder=folder), (0, "", ""))
                self.assertEqual((pathlib.Path(folder) / "args.sh").read_text(), out)


class Bytes(unittest.TestCase):
    def test_the_same_file_gives_the_same_bytes_wherever_it_lies(self):
        config = ROOT / "scenarios/examples/llama-3-70b/config.json"
        with tempfile.TemporaryDirectory() as name:
            other = pathlib.Path(name) / "away" / config.parent.name
            other.mkdir(parents=True)
            (other / "config.json").write_bytes(config.read_bytes())
            said = [pipecast("import", "hf", "-q", path) for path in (config, config.parent, other / "config.json", other)]
            self.assertEqual(said[1:], said[:1] * 3)
            self.assertEqual((said[0][0], said[0][2]), (0, ""))
            self.assertIn("# Imported from config.json, a config.json", said[0][1])


class Bad(unittest.TestCase):
    def test_where_no_job_can_be_written(self):
        asked = ["plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", 32, "--format", "torchtitan", "-o"]
        self.refused("-o: job.csv: is no name for a job's file; expected one such as job.toml", *asked, "job.csv")
        self.refused("nowhere/job.toml: there is no folder 'nowhere'; expected one that is there", *asked, "nowhere/job.toml")

    def refused(self, message, *words, folder=None):
        code, out, error = pipecast(*words, folder=folder)
        self.assertEqual((code, out), (2, ""))
        self.assertIn(message, error)
        self.assertEqual(error.count("\n"), 1)

    def test_what_is_no_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.json").write_text("{")
            (pathlib.Path(folder) / "a.sh").write_text("echo\n")
            self.refused("a.json:2: not JSON", "import", "hf", "a.json", folder=folder)
            self.refused("a.json:2: not JSON", "run", "--model", "./a.json", "--machine", "dgx-h100", folder=folder)
            self.refused("no arguments", "run", "--megatron", "a.sh", folder=folder)
            self.refused("No such file", "import", "megatron", "none.sh", folder=folder)
            self.refused("2 files; expected one", "import", "hf", "a.json", "a.sh", folder=folder)
            self.refused("is a second one", "run", "--megatron", "a.sh", "--megatron", "a.sh", folder=folder)

    def test_numbers_that_do_not_go_together(self):
        """Import and run refuse them alike, with file, line and key."""
        config = ('{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8,\n"num_key_value_heads": 5,'
                  ' "vocab_size": 1000, "intermediate_size": 128}')
        message = "a.json:2: num_key_value_heads: kv_heads 5 do not divide 8 heads; expected a divisor"
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.json").write_text(config)
            self.refused(message, "import", "hf", "a.json", folder=folder)
            self.refused(message, "run", "--model", "a.json", "--machine", "dgx-h100", "--gpus", 8, folder=folder)

    def test_a_folder_of_the_current_one(self):
        """Without a '/' too; but a name of the library stays that."""
        config = ('{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,'
                  ' "intermediate_size": 128, "max_position_embeddings": 128}')
        asked = ("--machine", "dgx-h100", "--gpus", 8, "--global-batch", 8)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("my model", "llama3-8b"):
                (pathlib.Path(folder) / name).mkdir()
                (pathlib.Path(folder) / name / "config.json").write_text(config)
            code, out, error = pipecast("run", "--model", "my model", *asked, folder=folder)
            self.assertIn(code, (0, 1), error)
            self.assertIn("model my_model", out)
            self.assertIn("8.03B parameters", pipecast("run", "--model", "llama3-8b", *asked, folder=folder)[1])
            self.refused("no such model in the library", "run", "--model", "no model", *asked, folder=folder)

    def test_values_and_sorts(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.sh").write_text("x --num-layers 4 \\\n --recompute-granularity fulll\n")
            (pathlib.Path(folder) / "ds.json").write_text('{"train_batch_size": 8}')
            self.refused("a.sh:2: recompute-granularity: fulll; expected full or selective", "import", "megatron", "a.sh", folder=folder)
            self.refused("a.sh:2: recompute-granularity: fulll", "run", "--megatron", "a.sh", folder=folder)
            self.refused("it looks like a configuration of DeepSpeed (pipecast import deepspeed reads it)", "import", "nemo", "ds.json", folder=folder)

    def test_what_is_no_decoder_says_its_name(self):
        if not HF.is_dir():
            self.skipTest(f"no {HF}")
        refused = 0
        for path in sorted(HF.glob("*.json")):
            code, _, error = pipecast("import", "hf", path, "-q")
            self.assertIn(code, (0, 2), error)
            if code == 2:
                refused += 1
                self.assertRegex(error, r"(Causal|Conditional)\w+: [a-z].* not modelled; expected a decoder")
        self.assertEqual(refused, 17)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
