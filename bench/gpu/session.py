#!/usr/bin/env python3
"""A GPU for half an hour: checks the kernels, measures, replays, compares, in order of worth, and keeps what it has.

Every step has seconds of its own. One that fails, hangs or does not fit into what is left of --limit stops no other. The
folder has at any time what was found until then, in eight files at most, and a later call with the same folder goes on:

  session.log   all that the steps printed          steps.json   a step's status, seconds and result
  quick.h5      `pipecast calibrate --quick`         full.h5      `pipecast calibrate`
  stages.csv    replays and forecasts of a stage, and PyTorch's beside them
  kernels.csv   the replays' kernels, measured within the stage and as the profile has them
  compare.txt   the profile beside published tables  summary.txt  the table that is printed last

steps, in order:
{steps}
Exit status: 0 every step that ran went well; 1 one did not; 2 bad input; 3 there is no GPU.

It needs the files that `ninja -C build carry` puts into one folder, Python 3.8 or later, and a driver; cuBLASLt, NCCL,
compute-sanitizer and PyTorch where they are found. docs/calibration.md says more.
"""
import argparse
import csv
import glob
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXIT_FAILED, EXIT_INPUT, EXIT_MACHINE, SKIPPED = 1, 2, 3, 77
GRACE_S = 15  # for a calibration to fit and write what it has
TIME_BAR, MEMORY_BAR = 2.0, 1.0  # percent
SCHEDULES = ("1f1b", "zb-h1", "v-half", "v-min")
MODELS = ("gpt3-6.7b", "gpt3-13b", "llama3-8b")
TINY = {"layers": 8, "hidden": 32, "ffn_hidden": 64, "heads": 2, "kv_heads": 2, "head_dim": 16, "seq_len": 16,
        "norm": "layernorm", "mlp": "gelu", "positions": "learned", "bias": "true", "dropout": "true", "precision": "bf16"}
STAGE, STAGES, MICROBATCHES = 2, 4, 8
COLUMNS = ("source", "scenario", "schedule", "stage", "kind", "count", "measured_s", "simulated_s", "measured_peak_bytes",
           "simulated_peak_bytes")


class Failed(Exception):
    """A step did not go well; words for the table."""


class LeftOut(Exception):
    """A step has nothing to do here; words for the table."""


class NoGPU(LeftOut):
    pass


# ---- running programs ----

def refuse(words):
    print(f"session.py: {words}", file=sys.stderr)
    sys.exit(EXIT_INPUT)


def read_record(path):
    """What earlier calls left, by step."""
    if not path.exists():
        return {}
    try:
        done = json.loads(path.read_text())
        if all(name in STEPS and {"status", "seconds", "result"} <= set(of) for name, of in done.items()):
            return done
    except (ValueError, AttributeError, TypeError):
        pass
    refuse(f"{path}: not a record of steps; expected one that this program wrote, or another folder")


class Steps:
    """The folder, the programs, and what is left of the time."""

    def __init__(self, asked):
        self.asked, self.folder = asked, pathlib.Path(asked.output).resolve()
        asked.bin = os.path.abspath(asked.bin)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + asked.limit
        self.step_end = self.end
        self.record = self.folder / "steps.json"
        self.done = read_record(self.record)
        self.log = open(self.folder / "session.log", "ab", buffering=0)
        self.scratch = tempfile.TemporaryDirectory()
        self.lacking = set()  # what replays asked of the profile in vain
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(library_folders(asked.bin)), "PYTHONUNBUFFERED": "1"}

    def left(self):
        return min(self.end, self.step_end) - time.monotonic()

    def program(self, name):
        path = pathlib.Path(self.asked.bin, name)
        if not path.exists():
            raise LeftOut(f"no {name} in {self.asked.bin}")
        return str(path)

    def run(self, command, ends_by_interrupt=False, environment=None):
        """Exit status and output of a command, which goes to the log. At the end of the step's time it is interrupted, if
        it then ends well, and killed with all that it started: then there is no status."""
        begin = self.log.seek(0, os.SEEK_END)
        self.log.write(("\n$ " + " ".join(map(str, command)) + "\n").encode())
        started = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True, env=environment or self.environment)
        try:
            status = wait_for(started, self.left() - (GRACE_S if ends_by_interrupt else 0), ends_by_interrupt)
        finally:
            end_group(started)
        with open(self.folder / "session.log", "rb") as log:
            log.seek(begin)
            text = log.read().decode(errors="replace").split("\n", 2)[2]
        return status, text

    def ask(self, *arguments):
        """Standard output of pipecast, of what takes a moment and no GPU."""
        done = subprocess.run([self.program("pipecast"), *arguments], capture_output=True, text=True, cwd=self.scratch.name,
                              timeout=max(self.left(), 1), env=self.environment)
        if done.returncode:
            raise Failed(last_line(done.stderr))
        return done.stdout

    def keep(self, name, status, seconds, result):
        self.done[name] = {"status": status, "seconds": round(seconds, 1), "result": result}
        replace(self.record, json.dumps(self.done, indent=1) + "\n")
        replace(self.folder / "summary.txt", table(self.done))


def wait_for(started, seconds, ends_by_interrupt):
    """The exit status; None if it did not end by itself, or when it was asked to."""
    try:
        return started.wait(max(seconds, 0.1))
    except subprocess.TimeoutExpired:
        if not ends_by_interrupt:
            return None
    started.send_signal(signal.SIGINT)
    try:
        return started.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return None


def end_group(started):
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    started.wait()


def replace(path, text):
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no words"


def library_folders(beside):
    """What was carried, and where CUDA's libraries may be: toolkits, and Python's packages of them."""
    places = [str(beside)] + [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    roots = [os.environ.get("CUDA_HOME", ""), *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
    places += ["/usr/local/nvidia/lib64"]
    for root in filter(None, roots):
        places += [os.path.join(root, "lib64"), os.path.join(root, "targets/x86_64-linux/lib")]
    for site in [*sys.path, *glob.glob("/opt/*/.venv/lib/python3*/site-packages")]:
        places += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))
    kept = [place for place in dict.fromkeys(places) if os.path.isdir(place)]
    return kept


def find_tool(name):
    for place in [shutil.which(name), *sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"), reverse=True),
                  *sorted(glob.glob(f"/usr/local/cuda*/compute-sanitizer/{name}"), reverse=True)]:
        if place and os.access(place, os.X_OK):
            return place
    raise LeftOut(f"no {name} on the PATH or in /usr/local/cuda*")


# ---- what is replayed ----

def models_of(steps):
    return ["tiny"] if steps.asked.tiny else steps.asked.models.split(",")


def profile_of(steps):
    """The profile to replay with and to compare: what was asked for, or the best that is there."""
    paths = [steps.asked.profile] if steps.asked.profile else [steps.folder / "full.h5", steps.folder / "quick.h5"]
    for path in map(pathlib.Path, paths):
        if path.exists():
            return path.resolve()
    raise LeftOut("no profile; the step quick or full makes one, or --profile FILE.h5")


def gpu_of(steps, profile):
    shown = json.loads(steps.ask("profile", "show", str(profile), "--format", "json"))
    gpu = steps.asked.gpu or shown["device"]["gpu"]
    if not gpu:
        raise LeftOut("the library has no GPU of this name; --gpu says which it is")
    return gpu, shown


def machine_of(steps, gpu):
    """A machine of the library with this GPU: one of eight GPUs and NVSwitch where there are several."""
    if steps.asked.machine:
        return steps.asked.machine
    names = [row["name"] for row in json.loads(steps.ask("list", "machines", "--format", "json")) if row["gpu"] == gpu]
    if not names:
        raise LeftOut(f"no machine of the library has the GPU {gpu}; --machine FILE.yaml says one")
    return min(names, key=lambda name: (not re.match("dgx-|hgx-", name), len(name), name))


def model_text(steps, model):
    if not steps.asked.tiny:
        return f"{{from: {model}}}"
    keys = {"name": "tiny", "vocab": 64, "max_positions": TINY["seq_len"], "attention": "flash", **TINY}
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def write_scenario(steps, model, machine):
    path = pathlib.Path(steps.scratch.name, f"{model}.yaml")
    path.write_text(f"scenario: {model}\nsetting:\n  model: {model_text(steps, model)}\n  machine: {machine}\n"
                    f"  gpus: {STAGES}\n  pp: {STAGES}\n  microbatch_size: 1\n  microbatches: {MICROBATCHES}\n"
                    f"sweep:\n  schedule: [{', '.join(SCHEDULES)}]\n", encoding="utf-8")
    return str(path)


def model_file(steps, model):
    if steps.asked.tiny:
        path = pathlib.Path(steps.scratch.name, "tiny-model.yaml")
        path.write_text("".join(f"{key}: {value}\n" for key, value in TINY.items()), encoding="utf-8")
        return str(path)
    for folder in (HERE / "models", HERE.parent.parent / "scenarios" / "models"):
        if (folder / f"{model}.yaml").exists():
            return str(folder / f"{model}.yaml")
    raise LeftOut(f"no file of the model {model} beside this program")


# ---- the table of stages ----

def read_rows(path):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def merge_rows(path, columns, rows, key):
    """Rows of the same key are replaced."""
    fresh = {key(row) for row in rows}
    kept = [row for row in read_rows(path) if key(row) not in fresh]
    beside = path.with_name(path.name + ".new")
    with open(beside, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept + rows)
    os.replace(beside, path)


def add_rows(steps, rows):
    """Of one source, stage and kind there is one row."""
    merge_rows(steps.folder / "stages.csv", COLUMNS, rows, lambda row: tuple(str(row[name]) for name in COLUMNS[:5]))


def add_kernels(steps, source, rows):
    """Those of a scenario together."""
    if rows:
        rows = [{"source": source, **row} for row in rows]
        merge_rows(steps.folder / "kernels.csv", list(rows[0]), rows, lambda row: (row["source"], row["scenario"]))


def rows_of_replay(source, replay):
    same = {"source": source, "scenario": replay["scenario"], "schedule": replay["schedule"], "stage": replay["stage"]}
    rows = [{**same, "kind": row["kind"], "count": row["count"], "measured_s": row["measured_s"],
             "simulated_s": row["simulated_s"], "measured_peak_bytes": "", "simulated_peak_bytes": ""}
            for row in replay["pass"]]
    return [*rows, {**same, "kind": "all", "count": replay["passes"],
                    **{name: replay[name] for name in COLUMNS[6:]}}]


def percent(row, what):
    return 100 * (float(row["simulated_" + what]) / float(row["measured_" + what]) - 1)


def spread(name, values, bar):
    held = sum(abs(value) <= bar for value in values)
    return f"{name} {min(values):+.1f} to {max(values):+.1f}%, {held} of {len(values)} within {bar:g}%"


# ---- steps ----

def check_status(status, text):
    if status in (EXIT_MACHINE, SKIPPED) and re.search("no GPU|built without CUDA", text):
        raise NoGPU(last_line(text))
    if status is None:
        raise Failed(f"out of its time; it said last: {last_line(text)}")
    if status:
        raise Failed(last_line(text) + f" (exit status {status})")


def run_suite(steps):
    status, text = steps.run([steps.program("test_gpu")])
    check_status(status, text)
    return f"{len(re.findall(r'^.  +OK . ', text, re.M))} tests passed"


def calibrate(steps, name, effort):
    path = steps.folder / f"{name}.h5"
    gpu = ["--gpu", steps.asked.gpu] if steps.asked.gpu else []
    command = [steps.program("pipecast"), "calibrate", "-q", *effort, *gpu, "-o", str(path)]
    status, text = steps.run(command, ends_by_interrupt=True)
    check_status(status, text)
    told = re.findall(r"^(product|copy|launch|measured) {2,}(.*)$", text, re.M)
    whole = "" if "(not complete)" not in text else "not complete; "
    return whole + "; ".join(words for _, words in told)


def run_quick(steps):
    return calibrate(steps, "quick", ["--tiny"] if steps.asked.tiny else ["--quick"])


def run_full(steps):
    return calibrate(steps, "full", ["--tiny"] if steps.asked.tiny else [])


def table_for(steps, gpu):
    """A profile of published tables of the GPU: what was asked for, or the library's."""
    if steps.asked.table:
        return os.path.abspath(steps.asked.table) if os.path.exists(steps.asked.table) else steps.asked.table
    for row in json.loads(steps.ask("list", "profiles", "--format", "json")):
        shown = json.loads(steps.ask("profile", "show", row["name"], "--format", "json"))
        if shown["device"]["gpu"] == gpu:
            return row["name"]
    raise LeftOut(f"the library has no table of the GPU {gpu}; --table PROFILE.h5 gives one")


def run_compare(steps):
    profile = profile_of(steps)
    gpu, _ = gpu_of(steps, profile)
    table_of = table_for(steps, gpu)
    replace(steps.folder / "compare.txt", steps.ask("profile", "compare", table_of, str(profile)))
    found = json.loads(steps.ask("profile", "compare", table_of, str(profile), "--format", "json"))["differences"]
    if not found:
        raise LeftOut(f"{table_of} and {profile.name} have no shapes in common")
    return f"{profile.name} over {table_of}: " + "; ".join(
        f"{row['fit'].split(' cold')[0]} {100 * (row['median'] - 1):+.1f}% of {row['shapes']}" for row in found)


def replay_model(steps, model, machine, profile, before):
    scratch, kernels = (os.path.join(steps.scratch.name, model + ending) for ending in (".h5", ".kernels.csv"))
    gpu = ["--gpu", steps.asked.gpu] if steps.asked.gpu else []
    status, text = steps.run([steps.program("pipecast"), "calibrate", "-q", "--profile", str(profile), "-o", scratch, *gpu,
                              "--stage", str(STAGE), "--replay-kernels", kernels, "--replay",
                              write_scenario(steps, model, machine)], ends_by_interrupt=True)
    add_kernels(steps, f"pipecast {profile.name}", read_rows(pathlib.Path(kernels)))
    if os.path.exists(scratch):  # those before a fault too
        shown = json.loads(steps.ask("profile", "show", scratch, "--format", "json"))
        for replay in shown["replays"][before:]:
            add_rows(steps, rows_of_replay(f"pipecast {profile.name}", replay))
    for names in re.findall(r"the roofline of the machine's file answers: (.*)", text):
        steps.lacking.update(names.split(", "))
    check_status(status, text)
    if "calibrate: interrupted" in text:
        raise Failed("out of its time; " + last_line(text))


def worst_kernel(steps, source):
    """Of all kernels the one that moves the forecast most, in percent of the time of all."""
    moved, total = {}, 0.0
    for row in read_rows(steps.folder / "kernels.csv"):
        if row["source"] == source:
            total += int(row["count"]) * float(row["measured_s"])
        if row["source"] == source and row["fitted_s"]:
            difference = int(row["count"]) * (float(row["fitted_s"]) - float(row["measured_s"]))
            moved[row["kernel"]] = moved.get(row["kernel"], 0.0) + difference
    if not moved:
        return ""
    name = max(moved, key=lambda kernel: abs(moved[kernel]))
    return f"; most of it {name}, {100 * moved[name] / total:+.1f}%"


def replay_result(steps, source):
    rows = [row for row in read_rows(steps.folder / "stages.csv") if row["kind"] == "all" and row["source"] == source]
    if not rows:
        raise Failed("no stage was replayed")
    times, peaks = ([percent(row, what) for row in rows] for what in ("s", "peak_bytes"))
    lacks = f"; not in the profile: {', '.join(sorted(steps.lacking))}" if steps.lacking else ""
    return (f"{len(rows)} stages: {spread('time', times, TIME_BAR)}{worst_kernel(steps, source)}; "
            f"{spread('memory', peaks, MEMORY_BAR)}{lacks}")


def each_model(steps, one):
    """Every model, whatever becomes of the others; the faults at the end."""
    faults = []
    for model in models_of(steps):
        try:
            one(model)
        except NoGPU:
            raise
        except (Failed, LeftOut, subprocess.TimeoutExpired) as fault:
            faults.append(f"{model}: {fault}")
    return faults


def run_replay(steps):
    profile = profile_of(steps)
    gpu, shown = gpu_of(steps, profile)
    machine = machine_of(steps, gpu)
    before = len(shown["replays"])
    steps.lacking.clear()
    faults = each_model(steps, lambda model: replay_model(steps, model, machine, profile, before))
    if faults:
        raise Failed("; ".join(faults))
    return replay_result(steps, f"pipecast {profile.name}")


def torch_order(steps, runs, model, schedule):
    path = os.path.join(steps.scratch.name, f"{model}.{schedule}.csv")
    steps.ask("export", runs, "--run", f"{model}.{schedule}", "--to", "torch-csv", "-o", path)
    return path


def torch_model(steps, model, machine, profile):
    runs = os.path.join(steps.scratch.name, f"{model}.runs.h5")
    if os.path.exists(runs):
        os.remove(runs)
    steps.ask("run", write_scenario(steps, model, machine), "--profile", str(profile), "--trace", "true", "-q", "-o", runs,
              "--format", "csv")
    device = ["--device", "cpu"] if steps.asked.tiny else []
    orders = [f"{schedule}={torch_order(steps, runs, model, schedule)}" for schedule in SCHEDULES]
    status, text = steps.run([steps.asked.python, str(HERE / "torch_stage.py"), "--model", model_file(steps, model), "--stage",
                              str(STAGE), "--scenario", model, *device, *orders],
                             environment={**os.environ, "PYTHONUNBUFFERED": "1"})  # it has libraries of its own
    header = ",".join(COLUMNS)
    if header in text:  # those before a fault too
        lines = text[text.index(header):].splitlines()
        add_rows(steps, [row for row in csv.DictReader(lines) if row["simulated_peak_bytes"] is not None and row["kind"]])
    if status == EXIT_MACHINE and re.search("no PyTorch|sees no GPU", text):
        raise LeftOut(last_line(text))
    check_status(status, text)


def torch_result(steps):
    rows = [row for row in read_rows(steps.folder / "stages.csv") if row["kind"] == "all"]
    found = {row["scenario"]: row for row in rows if row["source"].startswith("torch ")}
    ours = [row for row in rows if not row["source"].startswith("torch ") and row["scenario"] in found]
    if not found:
        raise Failed("no stage was run")
    if not ours:
        return f"{len(found)} stages; none of them was replayed"
    ratios = [float(row["measured_s"]) / float(found[row["scenario"]]["measured_s"]) for row in ours]
    return f"{len(found)} stages: the replay's kernels take {min(ratios):.2f} to {max(ratios):.2f} of its time"


def run_torch(steps):
    profile = profile_of(steps)
    machine = machine_of(steps, gpu_of(steps, profile)[0])
    faults = each_model(steps, lambda model: torch_model(steps, model, machine, profile))
    lacks = [fault for fault in faults if "no PyTorch" in fault or "sees no GPU" in fault]
    if lacks:
        raise LeftOut(lacks[0].split(": ", 1)[1])
    if faults:
        raise Failed("; ".join(faults))
    return torch_result(steps)


def sanitize(steps, tool):
    checker = find_tool("compute-sanitizer")
    status, text = steps.run([checker, "--tool", tool, "--error-exitcode", "9", steps.program("test_gpu"), "test_families"])
    check_status(status, text)
    said = re.findall(r"=+ (.*SUMMARY.*)", text)
    if not said:
        raise Failed("the checker printed no summary")
    return said[-1]


def run_memcheck(steps):
    return sanitize(steps, "memcheck")


def run_racecheck(steps):
    return sanitize(steps, "racecheck")


def run_synccheck(steps):
    return sanitize(steps, "synccheck")


# Name: what runs it, seconds that it may take, seconds that it needs at least, what it does.
STEPS = {
    "suite": (run_suite, 150, 10, "every kernel against its reference"),
    "quick": (run_quick, 90, 60, "calibrate --quick: quick.h5"),
    "compare": (run_compare, 20, 2, "by operation beside published tables of this GPU"),
    "replay": (run_replay, 260, 30, f"a stage of {len(MODELS)} models under {', '.join(SCHEDULES)}, measured and forecast"),
    "torch": (run_torch, 240, 30, "the same stages by PyTorch"),
    "memcheck": (run_memcheck, 180, 30, "compute-sanitizer over the kernels"),
    "racecheck": (run_racecheck, 180, 30, "the same for races"),
    "synccheck": (run_synccheck, 120, 30, "the same for barriers"),
    "full": (run_full, 575, 565, "calibrate: full.h5"),
}
# With --tiny nothing needs a GPU's minutes, nor an emulated device's.
TINY_LEAST_S = 2


def run_step(steps, name):
    run, most, least, _ = STEPS[name]
    least = TINY_LEAST_S if steps.asked.tiny else least
    left = steps.end - time.monotonic()
    begin = time.monotonic()
    steps.step_end = begin + most
    print(f"{name}: at most {min(most, left):.0f} s", flush=True)
    try:
        if left < least:
            raise LeftOut(f"{max(left, 0):.0f} s are left; it needs {least:g}")
        status, result = "ok", run(steps)
    except NoGPU as gone:
        status, result = "no GPU", str(gone)
    except LeftOut as why:
        status, result = "left out", str(why)
    except (Failed, subprocess.TimeoutExpired) as fault:
        status, result = "failed", str(fault)
    except (OSError, ValueError, KeyError, IndexError) as fault:  # a fault of ours stops no other step either
        status, result = "failed", f"{type(fault).__name__}: {fault}"
    steps.keep(name, status, time.monotonic() - begin, result)
    return status


def log_the_gpu(steps):
    """Its clocks, power and temperature before all, for whoever reads the log; nothing is set."""
    steps.step_end = time.monotonic() + 20
    asker = shutil.which("nvidia-smi")
    if asker:
        steps.run([asker, "-q", "-d", "CLOCK,POWER,TEMPERATURE,PERFORMANCE"])


def table(done):
    names = [name for name in STEPS if name in done]
    lines = [f"{'step':<10} {'status':<8} {'seconds':>8}  result"]
    lines += [f"{name:<10} {done[name]['status']:<8} {done[name]['seconds']:>8.1f}  {done[name]['result']}" for name in names]
    return "\n".join(lines) + "\n"


# ---- the command ----

def parse():
    told = "".join(f"  {name:<10} {most:>4} s  {what}\n" for name, (_, most, _, what) in STEPS.items())
    parser = argparse.ArgumentParser(description=__doc__.format(steps=told), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where results go")
    parser.add_argument("--bin", default=str(HERE), metavar="FOLDER", help="has pipecast and test_gpu (default: where this lies)")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="of all steps together (default 1800)")
    parser.add_argument("--steps", default=",".join(STEPS), metavar="NAME,...", help="these alone, in this order (default: all)")
    parser.add_argument("--profile", metavar="FILE.h5", help="to replay with and compare (default: full.h5, or quick.h5)")
    parser.add_argument("--table", metavar="PROFILE", help="to compare with (default: the library's profile of this GPU)")
    parser.add_argument("--models", default=",".join(MODELS), metavar="NAME,...", help="to replay (default: %(default)s)")
    parser.add_argument("--gpu", metavar="NAME", help="what the library calls it (default: by the driver's name)")
    parser.add_argument("--machine", metavar="NAME", help="of the replays (default: one with that GPU)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the python3 that has PyTorch (default: this one)")
    parser.add_argument("--tiny", action="store_true", help="everything small, and PyTorch on the CPU: to see that it works")
    asked = parser.parse_args()
    unknown = [name for name in asked.steps.split(",") if name not in STEPS]
    if unknown:
        parser.error(f"--steps: '{unknown[0]}'; expected {', '.join(STEPS)}")
    if not 0 < asked.limit < math.inf:
        parser.error(f"--limit: {asked.limit:g}; expected seconds, more than 0")
    return asked


def main():
    asked = parse()
    try:
        steps = Steps(asked)
    except OSError as error:
        refuse(f"{asked.output}: {error.strerror}; expected a folder that can be written to")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_FAILED))
    statuses = []
    try:
        log_the_gpu(steps)
        for name in asked.steps.split(","):
            statuses.append(run_step(steps, name))
    except KeyboardInterrupt:
        statuses.append("failed")
    print("\n" + table(steps.done), end="", flush=True)
    if "failed" in statuses:
        return EXIT_FAILED
    return EXIT_MACHINE if "no GPU" in statuses and "ok" not in statuses else 0


if __name__ == "__main__":
    sys.exit(main())
