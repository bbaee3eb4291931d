"""Precisions from outside: runs, plans and sweeps by recipes, what they print and refuse.

usage: test_precision.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command  # noqa: E402

H100 = ("--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "16", "--tp", "2", "--pp", "2", "--global-batch", "32")
GB200 = ("--model", "llama3-8b", "--machine", "gb200-nvl72", "--gpus", "16", "--tp", "2", "--pp", "2", "--global-batch", "32")


class Precision(Command):
    def write(self, text, name):
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def row(self, *arguments):
        return next(csv.DictReader(io.StringIO(self.good("run", *arguments, "--format", "csv"))))

    def test_bf16_is_what_goes_without_saying(self):
        plain, said = self.row(*H100), self.row(*H100, "--precision", "bf16")
        self.assertEqual(plain, said)
        self.assertEqual(plain["precision"], "bf16")
        self.assertNotIn("precision", self.good("run", *H100).split("\n\n")[0])

    def test_fewer_bits_are_faster_and_mfu_divides_by_the_peak_of_16(self):
        """The same FLOPs over a shorter time and the same peak: MFU rises as the time falls."""
        wide, few = self.row(*H100), self.row(*H100, "--precision", "fp8-delayed")
        self.assertLess(float(few["iteration_s"]), float(wide["iteration_s"]))
        self.assertEqual((wide["peak_tflops"], few["peak_tflops"]), ("989", "989"))
        self.assertAlmostEqual(float(few["mfu"]) * float(few["iteration_s"]), float(wide["mfu"]) * float(wide["iteration_s"]))
        head = self.good("run", *H100, "--precision", "fp8-delayed").split("\n\n")[0].replace("\n", " ")
        self.assertIn(", precision fp8-delayed, ", head)
        self.assertIn(", peak TFLOP/s 989", head)

    def test_held_weights(self):
        """Two copies of 8 bits on Hopper are 16 bits; on Blackwell one is enough, half of the layers' 16."""
        for machine, halves in ((H100, False), (GB200, True)):
            wide, few = (float(self.row(*machine, "--precision", name)["parameters_gib_max"]) for name in ("bf16", "fp8-current"))
            # the stage that has most: 16 layers of 218.1 M parameters in matrices, over tp, and an end of the model
            self.assertAlmostEqual(wide - few, 16 * 218103808 / 2 / 2**30 if halves else 0, places=6)

    def test_gathers_in_8_bits(self):
        """Parameters of layers are half as many bytes to gather; gradients are what they were."""
        wide, few = (float(self.row(*H100, "--precision", name)["sent_dp_gib"]) for name in ("fp8-blockwise", "fp8-current"))
        sent = 16 * 218103808 / 2 * 3 / 4 / 2**30  # a byte of each less, of which a rank of 4 sends 3 quarters
        self.assertAlmostEqual(wide - few, sent, places=6)

    def test_layers_that_stay(self):
        own = self.write("precision: mine\nfrom: fp8-current\nbf16_layers: {first: 4, last: 4}\n", "mine.yaml")
        times = [float(self.row(*H100, "--precision", name)["iteration_s"]) for name in ("fp8-current", own, "bf16")]
        self.assertEqual(times, sorted(times))
        self.assertEqual(self.row(*H100, "--precision", own)["precision"], "mine")

    def test_the_model_says_it_and_the_scenario_replaces_it(self):
        model = self.write("model: m\nlayers: 4\nhidden: 1024\nheads: 8\nseq_len: 512\nvocab: 8000\nprecision: fp8-delayed\n", "m.yaml")
        words = ("--model", model, "--machine", "dgx-h100", "--gpus", "8", "--global-batch", "16")
        self.assertEqual(self.row(*words)["precision"], "fp8-delayed")
        self.assertEqual(self.row(*words, "--precision", "fp16")["precision"], "fp16")

    def test_a_plan_of_two(self):
        """One command answers both: what it says of each is what `run` makes of its line."""
        found = json.loads(self.good("plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "8", "--global-batch", "16",
                                     "--tp", "2,4", "--pp", "1", "--precision", "bf16,fp8-delayed", "--recompute", "none",
                                     "--zero", "1", "--microbatch-size", "1", "--top", "4", "--format", "json"))
        plans = found["plans"]
        self.assertEqual({plan["precision"] for plan in plans}, {"bf16", "fp8-delayed"})
        self.assertEqual({(plan["precision"], plan["tp"]) for plan in plans}, {(p, t) for p in ("bf16", "fp8-delayed") for t in (2, 4)})
        for plan in plans:
            words = plan["command"].split()
            self.assertEqual(words[words.index("--precision") + 1], plan["precision"])
            self.assertEqual(float(self.row(*words[2:])["iteration_s"]), plan["iteration_s"])

    def test_a_plan_of_machines_and_precisions(self):
        """Every machine with every precision, each at its own machine's price."""
        found = json.loads(self.good("plan", "--model", "llama3-8b", "--machine", "dgx-h100,hgx-h200", "--gpus", "8", "--global-batch", "16",
                                     "--tp", "4", "--pp", "1", "--precision", "bf16,fp8-current", "--price", "2,3", "--recompute", "none",
                                     "--zero", "1", "--microbatch-size", "1", "--top", "4", "--format", "json"))
        plans = {(plan["machine"], plan["precision"]): plan for plan in found["plans"]}
        self.assertEqual(set(plans), {(m, p) for m in ("dgx-h100", "hgx-h200") for p in ("bf16", "fp8-current")})
        for (machine, _), plan in plans.items():
            price = {"dgx-h100": 2, "hgx-h200": 3}[machine]
            self.assertAlmostEqual(plan["cost_per_million_tokens"], price * plan["gpu_hours_per_million_tokens"])

    def test_a_sweep(self):
        path = self.write("scenario: s\nsetting: {model: {from: llama3-8b}, machine: gb200-nvl72, gpus: 8, tp: 2, global_batch: 16}\n"
                          "sweep: {precision: [bf16, mxfp8, nvfp4]}\n", "s.yaml")
        rows = list(csv.DictReader(io.StringIO(self.good("run", path, "--format", "csv"))))
        self.assertEqual([row["name"] for row in rows], ["s.1f1b.bf16", "s.1f1b.mxfp8", "s.1f1b.nvfp4"])
        times = [float(row["iteration_s"]) for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len({row["key"] for row in rows}), 3)

    def test_list(self):
        text = self.good("list", "precisions")
        for name in ("bf16", "fp16", "fp8", "fp8-block", "fp8-delayed", "fp8-current", "fp8-blockwise", "mxfp8", "nvfp4", "fp8-tensorwise", "fp8-rowwise", "fp8-deepseek"):
            self.assertIn(f"\n{name} ", "\n" + text)

    def test_short_names(self):
        """`fp8` and `fp8-block` are their recipes: the same numbers."""
        for short, recipe in (("fp8", "fp8-delayed"), ("fp8-block", "fp8-blockwise")):
            told = [next(csv.DictReader(io.StringIO(self.good("run", *H100, "--precision", name, "--format", "csv")))) for name in (short, recipe)]
            self.assertEqual(told[0]["precision"], short)
            for column in ("iteration_s", "memory_gib_max", "trace_hash"):
                self.assertEqual(told[0][column], told[1][column])

    def test_refusals(self):
        self.bad(2, "--precision: fp8-current: a100-sxm-80gb has no units for fp8; expected bf16 or fp16, or a GPU whose file has matrix_fp8",
                 "run", "--model", "llama3-8b", "--machine", "dgx-a100", "--gpus", "8", "--precision", "fp8-current")
        self.bad(2, "--precision: nvfp4: h100-sxm has no units for nvfp4; expected fp8-delayed, fp8-current or fp8-blockwise, or a GPU "
                    "whose file has matrix_fp4", "run", *H100, "--precision", "nvfp4")
        self.bad(2, "--precision: fp8-curent: no such precision in the library (did you mean fp8-current?); expected one of "
                    "`pipecast list precisions`, or a file such as ./own.yaml", "run", *H100, "--precision", "fp8-curent")
        self.bad(2, "--precision: nvfp4: h100-sxm has no units for nvfp4; expected fp8-delayed, fp8-current or fp8-blockwise, or a GPU "
                    "whose file has matrix_fp4", "plan", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "8", "--precision", "bf16,nvfp4")
        self.bad(2, "--set setting.overlap.tp_pieces=true: setting.overlap.tp_pieces: stands beside granularity: operations; expected "
                    "granularity: pass with it", "run", *H100, "--granularity", "operations", "--set", "setting.overlap.tp_pieces=true")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
