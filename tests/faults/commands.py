"""The commands that faults are put into, small ones of every kind, and the files that they need."""
import dataclasses
import pathlib
import subprocess

from faults import PIPECAST

TINY = "{name: tiny, layers: 4, hidden: 64, heads: 4, seq_len: 128, vocab: 512}"
FILES = {
    "closed.yaml": "scenario: closed\n"
                   "setting: {schedule: 1f1b, devices: 2, microbatches: 3, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB},"
                   " trace: true}\n"
                   "sweep: {memory: [9 GiB, 1 GiB]}\n"
                   "figures: [{name: bubble, x: memory_limit_gib, y: [bubble_rate_span]}]\n",
    "links.yaml": "scenario: links\n"
                  "setting: {schedule: 1f1b, devices: 2, microbatches: 3, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB},"
                  " transfer: {size: 1 MB, bandwidth: 10 GB/s}, trace: true}\n",
    "cluster.yaml": f"scenario: cluster\nsetting: {{model: {TINY}, machine: dgx-a100, tp: 2, pp: 2, dp: 2, microbatches: 3}}\n"
                    "cases: [{name: closed}, {name: flows, network: flows, granularity: operations, trace: true}]\n",
    "days.yaml": f"scenario: days\nsetting: {{model: {TINY}, machine: dgx-a100, gpus: 4, pp: 2, microbatches: 3, "
                 "samples: 3, bad_days: {gpu_jitter: 0.05}}\n",
    "searched.yaml": "scenario: searched\nsetting: {devices: 2, microbatches: 4, times: {F: 1 ms, B: 1 ms, W: 1 ms}}\n"
                     "sweep: {schedule: [zb-2p, v-half]}\n",
    "plan.yaml": f"scenario: plan\nsetting: {{model: {TINY}, machine: dgx-a100, gpus: 4, global_batch: 8}}\n"
                 "plan: {tp: [1, 2], pp: [1, 2], microbatch_size: [1], schedule: [1f1b], recompute: [none]}\n",
    "gemm.csv": "op,dtype,layout,b,m,n,k,time_us\n" + "".join(
        f"matmul,bf16,{layout},1,{m},{n},{k},{5 + 1e-8 * m * n * k:.6f}\n"
        for layout in ("TN", "NN", "NT") for m in (1024, 4096) for n in (1024, 4096) for k in (1024, 4096)),
    "measured.csv": "model,system,gpus,gbs,mbs,seq,step_s,setting.memory\n" + "".join(
        f"gpt3-1.3b,{system},8,{batch},1,2048,1,{memory}\n"
        for system, batch, memory in (("DGX-A100", 8, ""), ("DGX-A100", 16, ""), ("A100", 8, "1 GiB"), ("A100", 9, ""), ("mine", 8, ""))),
    "reduce.csv": "collective,ranks,size_bytes,time_us\n" + "".join(
        f"all_reduce,2,{2**i},{20 + 1e-5 * 2**i:.6f}\n" for i in range(12, 20)),
}
# What others then work with: file -> how it is made.
MADE = {
    "a.h5": ("run", "closed.yaml", "-q", "-o", "a.h5"),
    "e.h5": ("run", "links.yaml", "-q", "-o", "e.h5"),
    "s1.h5": ("run", "closed.yaml", "-q", "-o", "s1.h5", "--shard", "1/2"),
    "s2.h5": ("run", "closed.yaml", "-q", "-o", "s2.h5", "--shard", "2/2"),
    "p.h5": ("profile", "fit", "gemm.csv", "-o", "p.h5", "--gpu", "a100-sxm-80gb", "--processors", "108"),
    "1f1b.csv": ("schedule", "1f1b", "-p", "2", "-m", "3", "--format", "torch-csv"),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A command; the files of a folder that it needs, and the file that it writes, if any."""
    arguments: tuple
    needs: tuple = ()
    writes: str = ""
    old: str = ""  # of the files made, what stands where it writes
    draws: bool = False  # by gnuplot

    @property
    def name(self):
        return " ".join(self.arguments)


def case(words, *needs, **more):
    return Case(tuple(words.split()), needs, **more)


CASES = [
    case("run closed.yaml --jobs 1 -o r.h5", "closed.yaml", writes="r.h5", old="s1.h5"),
    case("run cluster.yaml --jobs 1 -o r.h5 --format json", "cluster.yaml", writes="r.h5"),
    case("run days.yaml --jobs 1 --format csv", "days.yaml"),
    case("run searched.yaml --jobs 1", "searched.yaml"),
    case("run --model gpt3-1.3b --machine dgx-a100 --pp 2 --microbatches 2 --jobs 1 -q --profile p.h5", "p.h5"),
    case("plan plan.yaml --jobs 1 -q -o r.h5", "plan.yaml", writes="r.h5", old="s1.h5"),
    case("score measured.csv --jobs 1 -q -o r.h5 --by system,gbs", "measured.csv", writes="r.h5", old="s1.h5"),
    case("score measured.csv --jobs 1 -q --format json --figure r.svg", "measured.csv", writes="r.svg", old="1f1b.csv", draws=True),
    case("schedule v-half -p 2 -m 4"),
    case("schedule 1f1b.csv -p 2 -m 3 --format text", "1f1b.csv"),
    case("schedule zb-h1 -p 2 -m 4 --figure r.svg", writes="r.svg", old="1f1b.csv", draws=True),
    case("figure a.h5 -o r.svg", "a.h5", writes="r.svg", old="1f1b.csv", draws=True),
    case("figure a.h5 bubble -o r.svg", "a.h5", writes="r.svg", old="1f1b.csv", draws=True),
    case("export a.h5 --run 1 --to chrome -o r.json", "a.h5", writes="r.json", old="1f1b.csv"),
    case("export e.h5 --run 1 --to chrome -o r.json", "e.h5", writes="r.json", old="1f1b.csv"),
    case("export e.h5 --run 1 --to csv --table transfers", "e.h5"),
    case("export a.h5 --to csv", "a.h5"),
    case("compare a.h5 s1.h5", "a.h5", "s1.h5"),
    case("merge r.h5 s1.h5 s2.h5", "s1.h5", "s2.h5", writes="r.h5", old="s1.h5"),
    case("profile fit gemm.csv reduce.csv -o r.h5 --gpu a100-sxm-80gb --processors 108 --link nvlink", "gemm.csv", "reduce.csv",
         writes="r.h5", old="p.h5"),
    case("profile show p.h5 --format json", "p.h5"),
    case("profile compare p.h5 p.h5", "p.h5"),
    case("list keys"),
    case("list machines"),
]


def make_files(folder):
    """All that any case needs; in a folder of its own, from which a case takes its files."""
    for name, text in FILES.items():
        pathlib.Path(folder, name).write_text(text)
    for name, arguments in MADE.items():
        done = subprocess.run([PIPECAST, *arguments], cwd=folder, capture_output=True, timeout=120)
        assert done.returncode in (0, 1), (arguments, done)
        if not pathlib.Path(folder, name).exists():
            pathlib.Path(folder, name).write_bytes(done.stdout)


def place_files(case, source, folder):
    for name in case.needs:
        pathlib.Path(folder, name).write_bytes(pathlib.Path(source, name).read_bytes())
    if case.old:
        pathlib.Path(folder, case.writes).write_bytes(pathlib.Path(source, case.old).read_bytes())
