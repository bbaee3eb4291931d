"""`pipecast schedule`, asked many times: a request is what the command gets, an answer what it says of one schedule."""
import concurrent.futures
import json
import subprocess
import typing

SAME = 1e-9  # relative; what rounding to picoseconds does


class Request(typing.NamedTuple):
    """`times` F,B,W of a stage and `comm` in one unit; `limit` in microbatches of a stage, None without one."""
    name: str
    p: int
    m: int
    times: str
    comm: float
    limit: float | None = None
    options: tuple = ()

    def arguments(self):
        limit = [] if self.limit is None else ["--memory-limit", f"{self.limit!r}"]
        return ["schedule", self.name, "-p", str(self.p), "-m", str(self.m), "--times", self.times, "--comm", f"{self.comm:g}",
                *limit, *self.options]

    def __str__(self):
        return "pipecast " + " ".join(self.arguments())


class Answer(typing.NamedTuple):
    """`rate` and `gap` (to the bound) are fractions; `peak` is in microbatches of a stage; `bound` None where there is none."""
    span: float
    rate: float
    peak: float
    bound: float | None
    gap: float | None
    is_optimal: bool
    span_before: float | None  # of --improve


def ask_one(pipecast, request):
    """None where the command says that there is no such schedule; anything else than that ends the program."""
    done = subprocess.run([pipecast, *request.arguments(), "--format", "json"], capture_output=True, text=True)
    if done.returncode == 2 and "the public generator has no order" in done.stderr:
        return None
    if done.returncode != 0:
        raise SystemExit(f"{request}: {done.stderr.strip() or done.returncode}")
    said = json.loads(done.stdout)
    return Answer(said["span"], said["bubble_rate_span"], said["max_peak_activation"], said["bound"], said["gap"],
                  bool(said["optimal"]), said.get("improved", {}).get("span_before"))


def ask(pipecast, requests, jobs):
    """{request: answer}; each request once, `jobs` at a time, those that take longest first."""
    distinct = sorted(set(requests), key=lambda request: -request.p * request.m)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(zip(distinct, pool.map(lambda request: ask_one(pipecast, request), distinct)))


def difference(ours, theirs):
    """Of two spans, relative; what is only rounding is none."""
    change = ours / theirs - 1
    return 0.0 if abs(change) <= SAME else change
