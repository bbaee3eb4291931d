"""Schedules there and back with PyTorch's pipelining runtime, on four processes of this machine's CPU (gloo).

There: schedules that pipecast writes are loaded and run for one step by PyTorch's runtime. It has to run the passes in
the order of the file, and the gradient of every parameter has to be that of a plain run without a pipeline.
Back: schedules that PyTorch writes, with and without its communication, load here and keep their order; damaged ones
are refused in one line.

usage: test_torch.py PIPECAST
"""
import inspect
import json
import pathlib
import subprocess
import sys
import tempfile

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
}
THEIRS = {  # class in PyTorch: parts of rank 0, and where there is a form for it the span, with F = B = W = 1
    "ScheduleLoopedBFS": ([0, 4], 3 * MICROBATCHES + 3 * (RANKS - 1) / 2),
    "ScheduleInterleaved1F1B": ([0, 4], 3 * MICROBATCHES + 3 * (RANKS - 1) / 2),
    "ScheduleInterleavedZeroBubble": ([0, 4], None),
    "ScheduleZBVZeroBubble": ([0, 7], 3 * MICROBATCHES),
    "ScheduleDualPipeV": ([0, 7], None),
}


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
    if expected not in (None, span):
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
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
