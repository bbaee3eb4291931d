#!/usr/bin/env python3
"""One stage of a pipeline as PyTorch runs it: the passes that `pipecast calibrate --replay` runs with kernels of its own.

The layers, shapes, type and order of passes are those of the replay. F is eager PyTorch with its scaled dot product
attention; B and W are the two halves that torch.distributed.pipelining makes of a backward pass, BW is the whole of it.
Gradients add up in fp32 beside 16-bit parameters. What another stage would send is a fixed random tensor.

Several orders, each with its name, run one after another, because PyTorch takes seconds to start. Prints a header, and of
each order a line a kind of pass and one for all, in the columns that bench/gpu/session.py gives a replay. Seconds of a pass are the mean over the repeats, of all passes the median of their sums. The peak is
parameters and gradients and what the allocator held beside them at most (torch.cuda.max_memory_allocated); on a CPU it is
empty. Needs PyTorch 2.6 or later: without it, or without a GPU where one is asked for, it says so in one line, status 3.

usage: torch_stage.py --model MODEL.yaml --stage N [--device cuda|cpu] [--scenario NAME] [--microbatch-size N]
                      [--warm-ups N] [--repeats N] [--layers N] SCHEDULE=ORDER.csv...

MODEL.yaml is one of scenarios/models; ORDER.csv is what `pipecast export --to torch-csv` writes. Both have to fit: layers
are shared evenly among all parts. --layers N gives every part N layers instead. The scenario of a line is NAME.SCHEDULE.
"""
import argparse
import csv
import gc
import re
import statistics
import sys
import time

EXIT_INPUT, EXIT_MACHINE = 2, 3
COLUMNS = ("source", "scenario", "schedule", "stage", "kind", "count", "measured_s", "simulated_s", "measured_peak_bytes",
           "simulated_peak_bytes")
KINDS = {"F": "F", "I": "B", "W": "W", "B": "BW"}  # PyTorch's letter: ours
DROPOUT = 0.1


class Refused(Exception):
    """One line of what is wrong, and the exit status."""

    def __init__(self, words, status=EXIT_INPUT):
        super().__init__(words)
        self.status = status


# ---- what is to be run: no PyTorch needed ----

def read_model(path):
    """The flat keys of a model's file, as text."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; expected a model's file") from error
    pairs = (re.match(r"(\w+): *(.*)$", line) for line in lines)
    model = {pair[1]: pair[2] for pair in pairs if pair}
    for key in ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "seq_len"):
        if not model.get(key, "").isdigit():
            raise Refused(f"{path}: {key}: '{model.get(key, '')}'; expected a whole number")
        model[key] = int(model[key])
    for key, known in (("norm", ("layernorm", "rmsnorm")), ("mlp", ("gelu", "swiglu")), ("positions", ("learned", "rotary"))):
        if model.get(key) not in known:
            raise Refused(f"{path}: {key}: '{model.get(key, '')}'; expected {' or '.join(known)}")
    return model


def read_order(path, stage):
    """The passes of a stage: (letter, local chunk, microbatch); and how many parts the model has."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; expected a schedule") from error
    if not 0 <= stage < len(rows):
        raise Refused(f"--stage: {stage}; expected 0 to {len(rows) - 1}")
    cells = [[re.fullmatch(r"(\d+)([FIWB])(\d+)", cell) for cell in row if cell] for row in rows]
    if not all(all(row) for row in cells):
        raise Refused(f"{path}: a cell that is no pass; expected such as 0F0, 3I2, 3W2, 0B1")
    parts = 1 + max(int(cell[1]) for row in cells for cell in row)
    local = {part: chunk for chunk, part in enumerate(sorted({int(cell[1]) for cell in cells[stage]}))}
    return [(cell[2], local[int(cell[1])], int(cell[3])) for cell in cells[stage]], parts


def layers_of(model, parts, asked):
    if asked:
        return asked
    if model["layers"] % parts:
        raise Refused(f"{model['layers']} layers in {parts} parts; expected equal parts, or --layers")
    return model["layers"] // parts


# ---- the layers ----

def make_layer_class(torch, model):
    nn, functional = torch.nn, torch.nn.functional
    hidden, heads, kv_heads, size = model["hidden"], model["heads"], model["kv_heads"], model["head_dim"]
    has_bias, dropout = model.get("bias") == "true", DROPOUT if model.get("dropout") == "true" else 0.0
    is_gated = model["mlp"] == "swiglu"
    norm = nn.RMSNorm if model["norm"] == "rmsnorm" else nn.LayerNorm

    def turn(x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-second, first), dim=-1) * sine

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = norm(hidden), norm(hidden)
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * size, bias=has_bias)
            self.output = nn.Linear(heads * size, hidden, bias=has_bias)
            self.up = nn.Linear(hidden, (2 if is_gated else 1) * model["ffn_hidden"], bias=has_bias)
            self.down = nn.Linear(model["ffn_hidden"], hidden, bias=has_bias)

        def attend(self, x, rotation):
            shape = (*x.shape[:2], -1, size)
            parts = self.qkv(x).split((heads * size, kv_heads * size, kv_heads * size), dim=-1)
            query, key, value = (part.view(shape).transpose(1, 2) for part in parts)
            if rotation is not None:
                query, key = turn(query, *rotation), turn(key, *rotation)
            grouped = {"enable_gqa": True} if kv_heads != heads else {}
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, **grouped)
            return self.output(seen.transpose(1, 2).reshape(*x.shape[:2], heads * size))

        def feed(self, x):
            up = self.up(x)
            if not is_gated:
                return self.down(functional.gelu(up, approximate="tanh"))
            gate, up = up.chunk(2, dim=-1)
            return self.down(functional.silu(gate) * up)

        def forward(self, x, rotation):
            x = x + functional.dropout(self.attend(self.norm1(x), rotation), dropout)
            return x + functional.dropout(self.feed(self.norm2(x)), dropout)

    return Layer


def make_rotation(torch, model, device, dtype):
    if model["positions"] != "rotary":
        return None
    size = model["head_dim"]
    rate = 1e4 ** (-torch.arange(0, size, 2, device=device, dtype=torch.float32) / size)
    angle = torch.outer(torch.arange(model["seq_len"], device=device, dtype=torch.float32), rate).repeat(1, 2)
    return angle.cos().to(dtype), angle.sin().to(dtype)


class Stage:
    """The chunks of one stage, and what is held of every microbatch that is under way."""

    def __init__(self, torch, model, chunks, layers, asked):
        from torch.distributed.pipelining import _backward
        self.torch, self.backward = torch, _backward
        dtype = torch.float16 if model.get("precision") == "fp16" else torch.bfloat16
        layer = make_layer_class(torch, model)
        self.device = torch.device(asked.device)
        with self.device:
            made = [torch.nn.ModuleList([layer() for _ in range(layers)]).to(dtype) for _ in range(chunks)]
            shape = (asked.microbatch_size, model["seq_len"], model["hidden"])
            self.received = torch.randn(shape, dtype=dtype)
            self.received_gradient = torch.randn(shape, dtype=dtype) * 1e-2
        self.rotation = make_rotation(torch, model, self.device, dtype)
        self.chunks, self.held, self.state_bytes = made, {}, 0
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
            parameter.sum = torch.zeros_like(parameter, dtype=torch.float32)
            self.state_bytes += parameter.numel() * (parameter.element_size() + 4)
            parameter.register_post_accumulate_grad_hook(self.add_up)

    def parameters(self, chunk=None):
        for module in self.chunks if chunk is None else [self.chunks[chunk]]:
            yield from module.parameters()

    @staticmethod
    def add_up(parameter):
        if parameter.grad is not None:
            parameter.sum.add_(parameter.grad)
            parameter.grad = None

    def receive(self, letter, chunk, microbatch):
        """What the pass gets from another stage, before its time begins."""
        if letter == "F":
            self.held[chunk, microbatch] = {"input": self.received.clone().requires_grad_()}
        elif letter != "W":
            self.held[chunk, microbatch]["gradient"] = self.received_gradient.clone()

    def run(self, letter, chunk, microbatch):
        held = self.held[chunk, microbatch]
        if letter == "F":
            x = held["input"]
            for layer in self.chunks[chunk]:
                x = layer(x, self.rotation)
            held["output"] = x
        elif letter == "B":
            self.torch.autograd.backward((held.pop("output"),), (held.pop("gradient"),))
        elif letter == "I":
            _, held["groups"] = self.backward.stage_backward_input([held.pop("output")], [held.pop("gradient")],
                                                                  [held.pop("input")], self.parameters(chunk))
        else:
            self.backward.stage_backward_weight(self.parameters(chunk), held.pop("groups"))
            for parameter in self.parameters(chunk):
                self.add_up(parameter)
        if letter in "WB":
            del self.held[chunk, microbatch]


# ---- time and memory ----

class Clock:
    """Marks in the device's stream, or the host's time."""

    def __init__(self, torch, device):
        self.torch, self.is_cuda, self.marks = torch, device.type == "cuda", []

    def mark(self):
        if self.is_cuda:
            self.marks.append(self.torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        """Between marks 0 and 1, 2 and 3 ..."""
        pairs = list(zip(self.marks[::2], self.marks[1::2]))
        if self.is_cuda:
            self.torch.cuda.synchronize()
            pairs = [(0.0, begin.elapsed_time(end) * 1e-3) for begin, end in pairs]
        self.marks = []
        return [end - begin for begin, end in pairs]


def run_iteration(torch, stage, passes, clock):
    """Seconds of every pass, and the most bytes that were allocated beside what was there before; None on a CPU."""
    base = 0
    if clock.is_cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
    for letter, chunk, microbatch in passes:
        stage.receive(letter, chunk, microbatch)
        clock.mark()
        stage.run(letter, chunk, microbatch)
        clock.mark()
    seconds = clock.seconds()
    return seconds, torch.cuda.max_memory_allocated() - base if clock.is_cuda else None


def measure(torch, stage, passes, warm_ups, repeats):
    clock = Clock(torch, stage.device)
    for _ in range(warm_ups):
        run_iteration(torch, stage, passes, clock)
    return [run_iteration(torch, stage, passes, clock) for _ in range(repeats)]


def rows_of(passes, measured):
    """(kind, count, seconds) of every kind, then of all; and the peak."""
    sums = [sum(seconds) for seconds, _ in measured]
    rows = []
    for letter in "FIWB":
        own = [seconds[i] for seconds, _ in measured for i, one in enumerate(passes) if one[0] == letter]
        if own:
            rows.append((KINDS[letter], len(own) // len(measured), statistics.fmean(own)))
    rows.append(("all", len(passes), statistics.median(sums)))
    peaks = [peak for _, peak in measured if peak is not None]
    return rows, max(peaks, default=None)


# ---- the command ----

def import_torch(device):
    try:
        import torch
    except ImportError as error:
        raise Refused(f"no PyTorch in {sys.executable} ({error}); expected a python3 that has it", EXIT_MACHINE) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise Refused(f"PyTorch {torch.__version__} sees no GPU; expected one, or --device cpu", EXIT_MACHINE)
    return torch


def read_orders(asked, model):
    """Of every schedule its name, passes, chunks of the stage and layers of a chunk."""
    orders = []
    for order in asked.orders:
        name, separator, path = order.partition("=")
        if not separator:
            raise Refused(f"'{order}'; expected SCHEDULE=ORDER.csv")
        passes, parts = read_order(path, asked.stage)
        orders.append((name, passes, 1 + max(chunk for _, chunk, _ in passes), layers_of(model, parts, asked.layers)))
    return orders


def run_order(torch, asked, model, passes, chunks, layers):
    """Rows of an order, and its peak; all that it had is given back."""
    torch.manual_seed(1)
    stage = Stage(torch, model, chunks, layers, asked)
    rows, peak = rows_of(passes, measure(torch, stage, passes, asked.warm_ups, asked.repeats))
    return rows, "" if peak is None else stage.state_bytes + peak


def answer(asked):
    model = read_model(asked.model)
    orders = read_orders(asked, model)
    torch = import_torch(asked.device)
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(COLUMNS)
    for schedule, passes, chunks, layers in orders:
        try:
            rows, peak = run_order(torch, asked, model, passes, chunks, layers)
        except torch.OutOfMemoryError as error:
            raise Refused(f"{schedule}: out of memory ({str(error).splitlines()[0]}); expected a smaller model",
                          EXIT_MACHINE) from error
        for kind, count, seconds in rows:
            write.writerow((f"torch {torch.__version__}", f"{asked.scenario}.{schedule}", schedule, asked.stage, kind, count,
                            f"{seconds:.9g}", "", peak if kind == "all" else "", ""))
        sys.stdout.flush()
        gc.collect()  # autograd's graphs have cycles, and the next order needs the memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], add_help=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--stage", type=int, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--scenario", default="torch")
    parser.add_argument("--microbatch-size", type=int, default=1)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("orders", nargs="+", metavar="SCHEDULE=ORDER.csv")
    try:
        answer(parser.parse_args())
    except Refused as refused:
        print(f"torch_stage: {refused}", file=sys.stderr)
        return refused.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
