"""Iterations with a profile of exact measurements, beside the same worked out here from those formulas alone.

Every kernel and every transfer takes what a formula says; the fits have to find the formulas' parameters, and
`pipecast run` the time that this script adds up: passes, collectives of tensor parallelism, 1F1B, step.

usage: test_profile_by_hand.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

PIPECAST = os.path.abspath(sys.argv[1])

# ---- the device: seconds of everything, as docs/calibration.md says that they go ----

PROCESSORS = 108
GEMM = {"rate": 2.2e14, "ramp": 80, "memory": 1.5e12, "launch": 4e-6}
ATTENTION = {"rate": 1.6e14, "ramp": 60, "memory": 1.5e12, "launch": 5e-6}
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64))
FAMILIES = {name: ((3 + 0.37 * i) * 1e-6, (0.9 + 0.05 * i) * 1e12) for i, name in enumerate((
    "rms_norm_forward", "rms_norm_backward", "swiglu_forward", "swiglu_backward", "rotary_forward", "rotary_backward",
    "residual_forward", "cross_entropy_forward", "cross_entropy_backward", "embedding_forward", "embedding_backward", "add",
    "copy", "adam"))}
COLLECTIVES = {"all_reduce": (15e-6, 1.1e11), "send_recv": (9e-6, 0.9e11), "all_gather": (11e-6, 1.3e11),
               "reduce_scatter": (12e-6, 1.2e11)}
LEAST_MESSAGE = 1024  # measured; what is smaller takes as long


def gemm(role, m, n, k):
    rate, best = GEMM["rate"] / PROCESSORS, math.inf
    for rows, columns in TILES:
        tiles = math.ceil(m / rows) * math.ceil(n / columns)
        for split in range(1, 17):
            if split > 1 and tiles * split > PROCESSORS:
                break
            waves = math.ceil(tiles * split / PROCESSORS)
            parts = 2 * 4 * split * m * n / GEMM["memory"] if split > 1 else 0
            best = min(best, waves * 2 * rows * columns * (k / split + GEMM["ramp"]) / rate + parts)
    moved = 2 * k * (m + n) + (8 if role == "weight_gradient" else 2) * m * n
    return GEMM["launch"] + max(best, moved / GEMM["memory"])


def attention(is_backward, heads, length, dimension):
    """Causal, of as many queries as keys, in blocks of 128; those on the diagonal are computed whole."""
    blocks, rows = math.ceil(length / 128), min(length, 128)
    seen, waves = length * (blocks + 1) / (2 * blocks), math.ceil(heads * blocks / PROCESSORS)
    columns = max(waves * seen, length) + waves * ATTENTION["ramp"]
    products = (10 if is_backward else 4) * rows * dimension * columns / (ATTENTION["rate"] / PROCESSORS)
    moved = 2 * (4 if is_backward else 2) * heads * dimension * 2 * length
    return ATTENTION["launch"] + max(products, moved / ATTENTION["memory"])


def memory(family, moved, times=1):
    alpha, beta = FAMILIES[family]
    return times * (alpha + moved / times / beta)


def collective(name, size):
    alpha, beta = COLLECTIVES[name]
    return alpha + max(size, LEAST_MESSAGE) / beta


# ---- the profile ----

def kernels():
    rows, sizes = ["op,role,b,m,n,k,causal,bytes,time_us"], (256, 512, 1024, 1536, 2816, 4096, 16384)
    for role in ("forward", "input_gradient", "weight_gradient"):
        rows += [f"gemm,{role},1,{m},{n},{k},,,{1e6 * gemm(role, m, n, k):.9f}" for m in sizes for n in sizes
                 for k in sizes[::2]]
    for is_backward in (False, True):
        rows += [f"attention,{'backward' if is_backward else 'forward'},{heads},{length},{length},128,true,,"
                 f"{1e6 * attention(is_backward, heads, length, 128):.9f}" for heads in (2, 4, 8, 16, 32)
                 for length in (512, 1024, 2048, 4096)]
    rows += [f"{family},,1,1,1,1,,{2**i},{1e6 * memory(family, 2**i):.9f}" for family in FAMILIES for i in range(12, 33)]
    return "\n".join(rows) + "\n"


def transfers():
    return "collective,ranks,size_bytes,time_us\n" + "".join(
        f"{name},2,{2**i},{1e6 * collective(name, 2**i):.9f}\n" for name in COLLECTIVES for i in range(10, 31))


# ---- a Llama on two tensor-parallel ranks ----

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCAB, TOKENS, TP = 4, 1024, 8, 4, 128, 2816, 32000, 1024, 2
QUERY, KEY = HEADS // TP * HEAD, KV_HEADS // TP * HEAD
QKV, DOWN, ROWS = QUERY + 2 * KEY, FFN // TP, VOCAB // TP
UP = 2 * DOWN
BOUNDARY = 2 * TOKENS * HIDDEN  # bytes
LAYER_PARAMETERS = HIDDEN * (QKV + QUERY + UP + DOWN + 2)
SCENARIO = f"""scenario: by_hand
setting:
  model: {{name: small, layers: {LAYERS}, hidden: {HIDDEN}, heads: {HEADS}, kv_heads: {KV_HEADS}, head_dim: {HEAD},
    ffn_hidden: {FFN}, vocab: {VOCAB}, seq_len: {TOKENS}, positions: rotary, norm: rmsnorm, mlp: swiglu, tied: false,
    bias: false, dropout: false}}
  machine: machine.yaml
  profile: exact.h5
  tp: {TP}
  scatter_boundary: false
  overlap: {{tp: false}}
"""


class Passes:
    """Seconds of F, and of B with W, of parts of the model."""

    def __init__(self, is_sequence_cut):
        self.tokens = TOKENS // TP if is_sequence_cut else TOKENS  # of what stands between the matrices
        self.gather = collective("all_gather", BOUNDARY) if is_sequence_cut else 0
        self.reduce = collective("reduce_scatter" if is_sequence_cut else "all_reduce", BOUNDARY)

    def norm(self, direction):
        return memory("rms_norm_" + direction, (4 if direction == "forward" else 6) * self.tokens * HIDDEN)

    def layer_forward(self):
        return (2 * (self.norm("forward") + self.gather + self.reduce) + gemm("forward", TOKENS, QKV, HIDDEN)
                + memory("rotary_forward", 4 * TOKENS * (QUERY + KEY)) + attention(False, HEADS // TP, TOKENS, HEAD)
                + gemm("forward", TOKENS, HIDDEN, QUERY) + 2 * memory("residual_forward", 6 * self.tokens * HIDDEN)
                + gemm("forward", TOKENS, UP, HIDDEN) + memory("swiglu_forward", 2 * TOKENS * (UP + DOWN))
                + gemm("forward", TOKENS, HIDDEN, DOWN))

    @staticmethod
    def gradients(outputs, inputs):
        return gemm("input_gradient", TOKENS, inputs, outputs) + gemm("weight_gradient", outputs, inputs, TOKENS)

    def layer_backward(self):
        matrices = ((HIDDEN, DOWN), (UP, HIDDEN), (HIDDEN, QUERY), (QKV, HIDDEN))
        return (sum(self.gradients(*matrix) for matrix in matrices) + 4 * self.gather + 2 * self.reduce
                + memory("swiglu_backward", 2 * TOKENS * (DOWN + 2 * UP)) + attention(True, HEADS // TP, TOKENS, HEAD)
                + memory("rotary_backward", 4 * TOKENS * (QUERY + KEY)) + memory("copy", 4 * TOKENS * QKV)
                + 2 * (self.norm("backward") + memory("add", 6 * self.tokens * HIDDEN)))

    def embedding(self):
        return (memory("embedding_forward", 4 * TOKENS * HIDDEN, 8) + self.reduce,
                self.gather + memory("embedding_backward", 4 * TOKENS * HIDDEN, 8) + memory("add", 12 * ROWS * HIDDEN, 2))

    def head(self):
        logits = TOKENS * ROWS
        return (self.norm("forward") + self.gather + gemm("forward", TOKENS, ROWS, HIDDEN) + memory("copy", 6 * logits)
                + 3 * collective("all_reduce", 4 * TOKENS) + memory("cross_entropy_forward", 32 * logits, 14),
                memory("cross_entropy_backward", 14 * logits, 6) + self.gather + self.gradients(ROWS, HIDDEN) + self.reduce
                + self.norm("backward"))


def step(parameters):
    return memory("adam", (42 + 4) * parameters, 4)


def one_f_one_b(forward, backward, message, microbatches):
    """The end of the last pass on two stages."""
    order = [[("F", 0)], []]
    for i in range(microbatches):
        order[0] += ([("F", i + 1)] if i + 1 < microbatches else []) + [("B", i)]
        order[1] += [("F", i), ("B", i)]
    end, free = {}, [0, 0]
    while any(order):
        for stage in (0, 1):
            while order[stage]:
                kind, i = order[stage][0]
                before = (kind, 1 - stage, i) if stage == (kind == "F") else ("F", stage, i) if kind == "B" else None
                if before and before not in end:
                    break
                ready = end[before] + (message if before[1] != stage else 0) if before else 0
                free[stage] = end[kind, stage, i] = max(free[stage], ready) + (forward if kind == "F" else backward)[stage]
                order[stage].pop(0)
    return max(free)


class ByHand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        files = {"kernels.csv": kernels(), "transfers.csv": transfers(), "by_hand.yaml": SCENARIO,
                 "machine.yaml": "machine: mine\nfrom: dgx-a100\nprofile: {launch: 1 ns}\n"}
        for name, text in files.items():
            with open(os.path.join(cls.folder.name, name), "w") as file:
                file.write(text)
        cls.run_command("profile", "fit", "kernels.csv", "transfers.csv", "-o", "exact.h5", "--gpu", "a100-sxm-80gb",
                        "--processors", str(PROCESSORS), "--link", "nvlink")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_command(cls, *arguments):
        done = subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, cwd=cls.folder.name)
        assert done.returncode == 0, done
        return done.stdout

    def iteration(self, *settings):
        sets = [word for setting in settings for word in ("--set", "setting." + setting)]
        rows = csv.DictReader(io.StringIO(self.run_command("run", "by_hand.yaml", "--format", "csv", "-q", *sets)))
        return float(next(rows)["iteration_s"])

    def assert_close(self, found, expected):
        self.assertLess(abs(found / expected - 1), 1e-8, (found, expected))

    def test_fits_find_the_formulas(self):
        shown = json.loads(self.run_command("profile", "show", "exact.h5", "--format", "json"))
        self.assertEqual(len(shown["fits"]), 3 + 2 + len(FAMILIES) + len(COLLECTIVES))
        for fit in shown["fits"]:
            line = FAMILIES.get(fit["subject"]) or COLLECTIVES.get(fit["subject"])
            expected = {"gemm": GEMM, "attention": {**ATTENTION, "memory": None}}.get(fit["form"])
            expected = expected or {"alpha 1": line[0], "beta 1": line[1]}
            for parameter in fit["parameters"]:
                value = expected.get(parameter["name"])  # no attention here is as fast as its memory
                if value:
                    self.assertLess(abs(parameter["value"] / value - 1), 1e-6, (fit["name"], parameter))

    def test_two_stages_with_all_reduces(self):
        x, microbatches = Passes(is_sequence_cut=False), 6
        (embedding_f, embedding_b), (head_f, head_b) = x.embedding(), x.head()
        forward = LAYERS / 2 * x.layer_forward()
        backward = LAYERS / 2 * x.layer_backward()
        end = one_f_one_b((forward + embedding_f, forward + head_f), (backward + embedding_b, backward + head_b),
                          collective("send_recv", BOUNDARY), microbatches)
        norm = 2 * collective("all_reduce", 4)  # over the tensor ranks, over the stages
        parameters = LAYERS / 2 * LAYER_PARAMETERS + ROWS * HIDDEN + HIDDEN  # the last stage's: it has the last norm
        expected = end + norm + step(parameters)
        settings = ("pp=2", "gpus=4", "sequence_parallel=false", f"microbatches={microbatches}")
        for network in ("closed", "flows"):
            self.assert_close(self.iteration(*settings, "network=" + network), expected)

    def test_sequence_parallelism(self):
        x, microbatches = Passes(is_sequence_cut=True), 3
        (embedding_f, embedding_b), (head_f, head_b) = x.embedding(), x.head()
        forward = LAYERS * x.layer_forward() + embedding_f + head_f
        backward = LAYERS * x.layer_backward() + embedding_b + head_b
        parameters = LAYERS * LAYER_PARAMETERS + 2 * ROWS * HIDDEN + HIDDEN
        expected = microbatches * (forward + backward) + collective("all_reduce", 4) + step(parameters)
        self.assert_close(self.iteration("pp=1", "gpus=2", "sequence_parallel=true", f"microbatches={microbatches}"), expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
