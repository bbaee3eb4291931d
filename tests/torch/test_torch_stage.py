"""bench/gpu/torch_stage.py: what it refuses, and with PyTorch, that it runs a stage's passes and their gradients are right.

What needs PyTorch is tested on the CPU, with layers of a few numbers.

usage: test_torch_stage.py SOURCE_ROOT
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = ROOT / "bench" / "gpu" / "torch_stage.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PROGRAM.parent))
import torch_stage  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

LLAMA = """model: tiny
layers: 8
hidden: 32
ffn_hidden: 48
heads: 4
kv_heads: 2
head_dim: 8
positions: rotary
norm: rmsnorm
mlp: swiglu
precision: bf16
bias: false
dropout: false
seq_len: 16
"""
GPT = LLAMA.replace("rotary", "learned").replace("rmsnorm", "layernorm").replace("swiglu", "gelu").replace("false", "true")
# Rank 1 of two holds parts 1 and 2: a V.
ORDER = "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,1F1,2I0,2W0,2F1,2B1,1I0,1W0,1B1\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("llama.yaml", LLAMA)
        self.write("gpt.yaml", GPT)
        self.write("order.csv", ORDER)

    def write(self, name, text):
        pathlib.Path(self.folder.name, name).write_text(text, encoding="utf-8")

    def run_program(self, *more, model="llama.yaml", order="order.csv", stage=1):
        command = [sys.executable, PROGRAM, "--model", model, "--stage", str(stage), *more, "v=" + order, "w=order.csv"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.folder.name)


class Refusals(Case):
    def refused(self, words, status, **options):
        done = self.run_program("--device", "cpu", **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), done)
        self.assertIn(words, done.stderr)

    def test_one_line_says_what_is_wrong(self):
        self.write("short.yaml", "model: short\nlayers: 8\n")
        self.write("odd.yaml", LLAMA.replace("layers: 8", "layers: 7"))
        self.write("mlp.yaml", LLAMA.replace("swiglu", "relu"))
        self.write("bad.csv", "0F0,zero\n")
        self.refused("none.yaml: No such file", 2, model="none.yaml")
        self.refused("hidden: ''; expected a whole number", 2, model="short.yaml")
        self.refused("mlp: 'relu'; expected gelu or swiglu", 2, model="mlp.yaml")
        self.refused("7 layers in 4 parts; expected equal parts", 2, model="odd.yaml")
        self.refused("--stage: 2; expected 0 to 1", 2, stage=2)
        self.refused("a cell that is no pass", 2, order="bad.csv", stage=0)
        done = self.run_program("order.csv")
        self.assertEqual((done.returncode, done.stderr), (2, "torch_stage: 'order.csv'; expected SCHEDULE=ORDER.csv\n"), done)

    def test_without_pytorch_or_a_gpu_one_line_says_so(self):
        if torch and torch.cuda.is_available():
            self.skipTest("both are here")
        done = self.run_program()
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1), done)
        self.assertIn("sees no GPU" if torch else "no PyTorch in", done.stderr)

    def test_parts_of_a_stage_are_its_chunks_in_order(self):
        passes, parts = torch_stage.read_order(str(pathlib.Path(self.folder.name, "order.csv")), 1)
        self.assertEqual(parts, 4)
        self.assertEqual(passes[:4], [("F", 0, 0), ("F", 1, 0), ("F", 0, 1), ("I", 1, 0)])


@unittest.skipUnless(torch, "no PyTorch")
class Passes(Case):
    def test_every_kind_of_pass_has_its_row(self):
        for model in ("llama.yaml", "gpt.yaml"):
            done = self.run_program("--device", "cpu", "--scenario", "s", model=model)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            rows = list(csv.DictReader(io.StringIO(done.stdout)))
            self.assertEqual(tuple(rows[0]), torch_stage.COLUMNS)
            self.assertEqual([(row["kind"], row["count"]) for row in rows],
                             2 * [("F", "4"), ("B", "2"), ("W", "2"), ("BW", "2"), ("all", "10")])
            self.assertEqual([row["scenario"] for row in rows], 5 * ["s.v"] + 5 * ["s.w"])
            for row in rows:
                self.assertGreater(float(row["measured_s"]), 0)
                self.assertEqual(row["stage"], "1")

    def sums(self, order):
        """Of one chunk after the passes, and how many microbatches are still held."""
        asked = argparse.Namespace(device="cpu", microbatch_size=1)
        model = torch_stage.read_model(str(pathlib.Path(self.folder.name, "llama.yaml")))
        torch.manual_seed(7)
        stage = torch_stage.Stage(torch, model, 1, 2, asked)
        torch_stage.run_iteration(torch, stage, order, torch_stage.Clock(torch, stage.device))
        self.assertTrue(all(parameter.grad is None for parameter in stage.parameters()))
        return [parameter.sum for parameter in stage.parameters()], len(stage.held)

    def test_two_halves_are_the_whole(self):
        """Gradients of B and W, apart and out of order, are those of BW, and nothing stays held."""
        whole, left = self.sums([("F", 0, 0), ("B", 0, 0), ("F", 0, 1), ("B", 0, 1)])
        halves, left_too = self.sums([("F", 0, 0), ("F", 0, 1), ("I", 0, 0), ("I", 0, 1), ("W", 0, 0), ("W", 0, 1)])
        self.assertEqual((left, left_too), (0, 0))
        self.assertEqual(len(whole), 2 * 6)  # two norms and four matrices a layer
        for one, other in zip(whole, halves):
            self.assertGreater(one.abs().max().item(), 0)
            self.assertLess((one - other).norm().item(), 1e-2 * one.norm().item())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
