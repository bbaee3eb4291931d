"""Schedules there and back with PyTorch's pipelining runtime, on four processes of this machine's CPU (gloo).

There: schedules that pipecast writes are loaded and run for one step by PyTorch's runtime. It has to run the passes in
the order of the file, and the gradient of every parameter has to be that of a plain run without a pipeline.
Back: schedules that PyTorch writes, with and without its communication, load here and keep their order; damaged ones
are refused in one line.
Orders: those that PyTorch's classes write for a range of shapes, here without processes, are those of
`schedule NAME --making torch`, pass by pass, and what the one refuses the other does. `--write FILE` puts some of them
into tests/data/torch_orders.txt, for tests without PyTorch.

usage: test_torch.py PIPECAST
       test_torch.py --write FILE
"""
import inspect
import json
import pathlib
import subprocess
import subprocess
import sys
import tempfile
import unittest.mock

SKIPPED = 77  # meson's exit status for a test that was not run
try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing
    from torch.distributed.pipelining import PipelineStage, schedules
except ImportError as missing:
    print(f"skipped: PyTorch with torch.distributed.pipelining is not there ({missing})")
    sys.exit(SKIPPED)

RANKS, MICROBATCHES, ROWS, WIDTH = 4, 8, 3, 6  # ROWS: of a microbatch
TOLERANCE = 1e-12  # of the largest gradient of a parameter, in double precision
OURS = {  # name: further arguments
    "1f1b": [],
    "zb-h1": [],
    "1f1b-interleaved": ["-v", "2"],
    "v-half": [],
    "zb-v": [],
    "looped-bfs": ["-v", "2"],
    "zb-interleaved": ["-v", "2"],
    "dualpipe-v": [],
}
THEIRS = {  # class in PyTorch: parts of rank 0, and the span, with F = B = W = 1
    "ScheduleLoopedBFS": ([0, 4], 3 * MICROBATCHES + 3 * (RANKS - 1) / 2),
    "ScheduleInterleaved1F1B": ([0, 4], 3 * MICROBATCHES + 3 * (RANKS - 1) / 2),
    "ScheduleInterleavedZeroBubble": ([0, 4], 3 * MICROBATCHES + (RANKS - 1) / 2),
    "ScheduleZBVZeroBubble": ([0, 7], 3 * MICROBATCHES),
    "ScheduleDualPipeV": ([0, 7], 3 * MICROBATCHES + (RANKS - 1) / 2),
}


ORDERS = {  # class in PyTorch: our name, chunks to try (0: as it is), and whether it folds to a V
    "ScheduleGPipe": ("gpipe", [0], False),
    "Schedule1F1B": ("1f1b", [0], False),
    "ScheduleInterleaved1F1B": ("1f1b-interleaved", [2, 3], False),
    "ScheduleLoopedBFS": ("looped-bfs", [1, 2, 3], False),
    "ScheduleInterleavedZeroBubble": ("zb-interleaved", [1, 2, 3], False),
    "ScheduleZBVZeroBubble": ("zb-v", [2], True),
    "ScheduleDualPipeV": ("dualpipe-v", [2], True),
}
WRITTEN = [(2, 2), (2, 4), (2, 5), (4, 3), (4, 8), (4, 10), (8, 16)]  # p, m of the shapes in the file; v is 2


def read(path):
    """A line a rank: its cells, without the empty ones."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [[cell for cell in line.split(",") if cell] for line in lines]


# ---- in the four processes ----

class RecordedStage(PipelineStage):
    """Writes down what the runtime has it do."""
    ran = None

    def forward_one_chunk(self, index, *args, **kwargs):
        self.ran.append(f"{self.stage_index}F{index}")
        return super().forward_one_chunk(index, *args, **kwargs)

    def backward_one_chunk(self, index, *args, full_backward=True, **kwargs):
        self.ran.append(f"{self.stage_index}{'B' if full_backward else 'I'}{index}")
        return super().backward_one_chunk(index, *args, full_backward=full_backward, **kwargs)

    def backward_weight_one_chunk(self, index, *args, **kwargs):
        self.ran.append(f"{self.stage_index}W{index}")
        return super().backward_weight_one_chunk(index, *args, **kwargs)


def model_parts(count):
    torch.manual_seed(1)
    return [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH)).double()
            for _ in range(count)]


def batch():
    torch.manual_seed(2)
    return torch.randn(2, MICROBATCHES * ROWS, WIDTH, dtype=torch.float64).unbind()


def loss(output, target):
    """Summed, not averaged, for PyTorch 2.7's runtime does not scale gradients whose last pass is a W."""
    return torch.nn.functional.mse_loss(output, target, reduction="sum")


def gradients(parts):
    return [{name: p.grad for name, p in part.named_parameters()} for part in parts]


def plain_gradients(count):
    parts, (x, target) = model_parts(count), batch()
    loss(torch.nn.Sequential(*parts)(x), target).backward()
    return gradients(parts)


def make_stages(modules, count):
    """Those of one rank, by their parts; and the list in which they write what they ran."""
    ran = []
    stages = [RecordedStage(module, part, count, torch.device("cpu")) for part, module in modules.items()]
    for stage in stages:
        stage.ran = ran
    return stages, ran


def run_file(path, rank):
    """The largest difference of a gradient, relative to the parameter's largest. Raises what is not as it should be."""
    lines = read(path)
    count = 1 + max(int(cell.split("F")[0]) for line in lines for cell in line if "F" in cell)
    mine = sorted({int(cell.split("F")[0]) for cell in lines[rank] if "F" in cell})
    parts, (x, target) = model_parts(count), batch()
    stages, ran = make_stages({part: parts[part] for part in mine}, count)
    runtime = schedules._PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=loss, scale_grads=False)
    runtime._load_csv(path)
    runtime.step(*([x] if 0 in mine else []), **({"target": target} if count - 1 in mine else {}))
    if ran != lines[rank]:
        raise AssertionError(f"{path}: rank {rank} ran {','.join(ran)}")
    worst, found_gradients, plain = 0.0, gradients(parts), plain_gradients(count)
    for part in mine:
        for name, expected in plain[part].items():
            found = found_gradients[part][name]
            error = float("inf") if found is None else float((found - expected).abs().max() / expected.abs().max())
            if not error <= TOLERANCE:
                raise AssertionError(f"{path}: rank {rank}: gradient of part {part}, {name}: off by {error:g}")
            worst = max(worst, error)
    return worst


def write_theirs(name, parts, folder):
    """PyTorch's own schedule in both of its formats; older versions have only the first."""
    stages, _ = make_stages({part: torch.nn.Identity() for part in parts}, 2 * RANKS)
    made = getattr(schedules, name)(stages, MICROBATCHES, loss_fn=loss)
    knows_both = "format" in inspect.signature(made._dump_csv).parameters
    for form in ["compute_only", "compute_comms"] if knows_both else ["compute_only"]:
        made._dump_csv(str(folder / f"{name}.{form}.csv"), **({"format": form} if knows_both else {}))


def process(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    worst = {name: run_file(str(folder / f"{name}.csv"), rank) for name in OURS}
    (folder / f"worst{rank}.json").write_text(json.dumps(worst))
    if rank == 0:
        for name, (parts, _) in THEIRS.items():
            if hasattr(schedules, name):
                write_theirs(name, parts, folder)
    dist.barrier()
    dist.destroy_process_group()


# ---- in the first process ----

def pipecast(command, *arguments):
    return subprocess.run([command, "schedule", *map(str, arguments)], capture_output=True, text=True)


def written(command, *arguments):
    done = pipecast(command, *arguments)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def flat(cells):
    """Of PyTorch's cells the passes: two that it overlaps, (3F4;4B2)OVERLAP_F_B, are two."""
    passes = [one for cell in cells for one in cell.removesuffix("OVERLAP_F_B").strip("()").split(";")]
    return [one for one in passes if one.strip("0123456789") in ("F", "I", "W", "B")]


def check_theirs(command, path):
    span = json.loads(written(command, path, "--format", "json"))["span"]
    back = [line.split(",") for line in written(command, path, "--format", "torch-csv").splitlines()]
    if back != [flat(cells) for cells in read(path)]:
        raise AssertionError(f"{path}: another order came back")
    expected = THEIRS[path.name.split(".")[0]][1]
    if span != expected:
        raise AssertionError(f"{path}: span {span}; expected {expected}")
    return span


def check_refused(command, path, what, lines):
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    done = pipecast(command, path)
    if done.returncode == 0 or done.stderr.count("\n") != 1 or done.stdout:
        raise AssertionError(f"{what}: {done.returncode}, '{done.stderr}'")
    print(f"  {what}: {done.stderr.strip().replace(str(path), path.name)}")


def check_damage(command, folder):
    whole = read(folder / "ScheduleInterleaved1F1B.compute_only.csv")
    first, *others = whole
    print("damaged, and refused:")
    check_refused(command, folder / "damaged.csv", "a pass is missing", [first[:-1], *others])
    check_refused(command, folder / "damaged.csv", "a pass stands twice", [first + first[-1:], *others])
    check_refused(command, folder / "damaged.csv", "backward first", [first[::-1], *others])
    check_refused(command, folder / "damaged.csv", "a rank is missing", whole[:-1])
    check_refused(command, folder / "damaged.csv", "an unknown action", [["0X0", *first[1:]], *others])


# ---- orders ----

def place(index, rank, p, parts):
    """A stage that knows where it stands, and does nothing."""
    return unittest.mock.MagicMock(stage_index=index, group_rank=rank, group_size=p, num_stages=parts,
                                   submod=torch.nn.Identity(), device=torch.device("cpu"), is_first=index == 0, is_last=index == parts - 1)


def ran_alone(name, rank, p, m):
    """What the runtime of a schedule of one chunk has a rank do, which it decides as it goes; nothing is sent. (The
    order that PyTorch 2.10 and later also write down for these is not asked: for the last rank of 1F1B it was one
    microbatch off.)"""
    ran, stage = [], place(rank, rank, p, p)
    stage.forward_one_chunk = lambda index, *_, **__: ran.append(f"{rank}F{index}")
    stage.backward_one_chunk = lambda index, *_, **__: ran.append(f"{rank}B{index}")
    for nothing in ("get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops"):
        getattr(stage, nothing).return_value = []
    made = getattr(schedules, name)(stage, m, loss_fn=loss)
    made._maybe_compute_loss = made._maybe_get_loss = made._update_losses = lambda *_: None
    made._step_microbatches([()] * m, [{}] * m, [None] * m)
    return ran


def order_of(name, p, m, v):
    """A line a rank; None where PyTorch refuses the shape."""
    _, _, is_folded = ORDERS[name]
    parts = [(c + 1) * p - 1 if is_folded and c % 2 else c * p for c in range(v)]
    try:
        if name in ("ScheduleGPipe", "Schedule1F1B"):
            return [ran_alone(name, rank, p, m) for rank in range(p)]
        made = getattr(schedules, name)([place(part, 0, p, p * v) for part in parts], m, loss_fn=loss)
    except ValueError:
        return None
    return [flat([str(cell) for cell in made.pipeline_order[rank] if cell is not None]) for rank in range(p)]


def check_orders(command):
    compared = refused = 0
    for name, (ours, chunks, _) in ORDERS.items():
        if not hasattr(schedules, name):
            continue
        shapes = {(p, m, v) for p in (1, 2, 3, 4, 8) for v in chunks
                  for m in (1, 2, p, p + 1, 2 * p - 1, 2 * p, 2 * p + 2, 5 * p // 2, 3 * p, 4 * p, 5 * p + 1)}
        for p, m, v in sorted(shapes):
            theirs = order_of(name, p, m, v or 1)
            done = pipecast(command, ours, "-p", p, "-m", m, *(["-v", v] if v else []), "--making", "torch", "--format",
                            "torch-csv")
            found = [line.split(",") for line in done.stdout.splitlines()] if done.returncode == 0 else None
            if found != theirs:
                raise AssertionError(f"{name}: p={p} m={m} v={v}: another order than {ours}: {done.stderr}")
            compared, refused = compared + 1, refused + (theirs is None)
    print(f"orders: {compared} shapes are the same here, pass by pass, {refused} of them refused by both")


def write_orders(path):
    lines = [f"# What the classes of torch.distributed.pipelining, PyTorch {torch.__version__.split('+')[0]}, have "
             "every rank do, written by tests/torch/test_torch.py --write.",
             "# A line CLASS OURS P M V, and a line a rank behind it; or `refused` in their place."]
    for name, (ours, chunks, _) in ORDERS.items():
        v = 2 if 2 in chunks else 1
        for p, m in WRITTEN:
            order = order_of(name, p, m, v)
            lines += [f"{name} {ours} {p} {m} {v}", *([",".join(rank) for rank in order] if order else ["refused"])]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
    return 0


def main(command):
    print(f"PyTorch {torch.__version__}, {RANKS} processes, {MICROBATCHES} microbatches")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for schedule, further in OURS.items():
            text = written(command, schedule, "-p", RANKS, "-m", MICROBATCHES, *further, "--format", "torch-csv")
            (folder / f"{schedule}.csv").write_text(text)
        torch.multiprocessing.spawn(process, args=(folder,), nprocs=RANKS)
        worst = [json.loads((folder / f"worst{rank}.json").read_text()) for rank in range(RANKS)]
        print("written here, and run by PyTorch in the file's order; how far a gradient is off a plain run's, at most:")
        for schedule in OURS:
            print(f"  {schedule}: {max(of_rank[schedule] for of_rank in worst):.1e}")
        print("written by PyTorch, and loaded here:")
        for path in sorted(folder.glob("Schedule*.csv")):
            print(f"  {path.stem}: span {check_theirs(command, path):g}")
        check_damage(command, folder)
    check_orders(command)
    return 0


if __name__ == "__main__":
    sys.exit(write_orders(sys.argv[2]) if sys.argv[1] == "--write" else main(sys.argv[1]))
