"""The named schedules against the public generators' and against published bubble rates.

Every row of ../shared/data/schedules/reference.csv is one schedule of a public generator. Ours of that name, for the same
devices, microbatches, times, transfers and memory, may take no longer and hold no more; at least a third of the searched
ones must be strictly shorter. Ours may use all of its limit; where it then holds more than the public one held, it is
asked again with that as its limit, and the second answer counts (the column "again"). A row's times are of one chunk,
ours of a stage. Where B frees memory the public peak is in the row's own units, of which mem_f is what F takes; otherwise
it is in chunks.

../shared/data/zero_bubble.csv has the bubble rates of table 5 of 'Zero Bubble' (arXiv 2401.10241) for ZB-1P and ZB-2P:
ours are no higher, at the memory of p and 2p microbatches.

usage: test_reference.py MANY_SCHEDULES SOURCE_ROOT
"""
import csv
import hashlib
import math
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
from command import IS_QUICK, IS_SLOWED, SIZE  # noqa: E402

SKIPPED = 77  # meson's exit status for a test that was not run
SAME = 1e-9   # relative
EVERY = {"quick": 72, "full": 12, "long": 1}[SIZE]  # of a scheduler's searched rows one in so many
PASSES_MAX = 128 if IS_SLOWED else math.inf  # devices times microbatches of a searched row
STATIC = {"1F1B": "1f1b", "Eager1F1B": "eager-1f1b", "GPipe": "gpipe", "ZB-H1": "zb-h1", "ZB-H2": "zb-h2"}
SEARCHED = {"1F1B-V": "1f1b-v", "ZB-1P": "zb-1p", "ZB-2P": "zb-2p", "ZB-V": "zb-v", "V-Half": "v-half", "V-Min": "v-min",
            "V-adaptive": "v-adaptive"}


def answers(many_schedules, requests):
    """Of (name, p, m, F, B, W, comm, release_b, limit): (span, bubble rate, peak, seconds)."""
    text = "".join(" ".join(map(str, request)) + "\n" for request in requests)
    done = subprocess.run([many_schedules], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


# ---- the public generators ----

def released_by_b(row):
    return abs(float(row["mem_b"])) / float(row["mem_f"]) if float(row["mem_f"] or 0) else 0.0


def request_of(row):
    chunks = int(row["chunks"])
    name = (STATIC | SEARCHED)[row["scheduler"]]
    times = [float(row[kind]) * chunks for kind in "FBW"]
    limit = float(row["mem_limit"]) / chunks if name == "v-adaptive" else 0
    return name, row["p"], row["m"], *times, row["comm"], released_by_b(row), limit


def reference_of(row):
    """Span, and peak in microbatches of a stage."""
    peak = float(row["peak_mem_model"]) / float(row["mem_f"]) if released_by_b(row) else float(row["peak_act_units"])
    return float(row["span"]), peak / int(row["chunks"])


def drawn(rows, every):
    """One in `every`, at least one, by a hash of what they ask for: every scheduler has its share in any part, and a row
    that is added to the file changes no other's place."""
    def place(row):
        return hashlib.sha256(repr(request_of(row)).encode()).digest()
    small = [row for row in rows if int(row["p"]) * int(row["m"]) <= PASSES_MAX]
    return sorted(small, key=place)[:math.ceil(len(small) / every)]


def selected(rows, every):
    kept = [row for row in rows if row["scheduler"] in STATIC | SEARCHED and row["span"]]
    out = [row for row in kept if row["scheduler"] in STATIC]
    for name in SEARCHED:
        out += drawn([row for row in kept if row["scheduler"] == name], every)
    return out


def judge(ours, reference):
    (span, _, peak, _), (reference_span, reference_peak) = ours, reference
    if span > reference_span * (1 + SAME):
        return "longer"
    if peak > reference_peak * (1 + SAME):
        return "higher"
    return "shorter" if span < reference_span * (1 - SAME) else "same"


def within_reference(row, request):
    """The same request, with what the public schedule held as the limit."""
    return *request[:-1], reference_of(row)[1] * (1 + SAME)


def answer_rows(many_schedules, rows):
    """Requests and answers, and which of them were asked twice."""
    requests = [request_of(row) for row in rows]
    ours = answers(many_schedules, requests)
    for request, (_, _, peak, _) in zip(requests, ours, strict=True):
        assert peak <= (request[-1] or math.inf) * (1 + SAME), (request, peak)
    again = [i for i, row in enumerate(rows)
             if row["scheduler"] in SEARCHED and judge(ours[i], reference_of(row)) == "higher"]
    for i in again:
        requests[i] = within_reference(rows[i], requests[i])
    for i, second in zip(again, answers(many_schedules, [requests[i] for i in again]), strict=True):
        ours[i] = second
    return requests, ours, set(again)


def describe(request, ours, reference):
    name, p, m, f, b, w, comm, release, limit = request
    return (f"{name} -p {p} -m {m} --times {f!r},{b!r},{w!r} --comm {comm} --release-b {release!r}"
            + (f" --memory-limit {limit}" if limit else "")
            + f": span {ours[0]:.10g}, theirs {reference[0]:.10g}; peak {ours[2]:.10g}, theirs {reference[1]:.10g}")


def compare(many_schedules, rows):
    """Prints a line a scheduler; the rows that are worse, how many are searched, and how many of these are shorter."""
    verdicts = ("shorter", "same", "longer", "higher")
    tally, worse = {}, []
    requests, all_ours, again = answer_rows(many_schedules, rows)
    for i, (row, request, ours) in enumerate(zip(rows, requests, all_ours, strict=True)):
        reference = reference_of(row)
        verdict = judge(ours, reference)
        line = tally.setdefault(row["scheduler"], dict.fromkeys((*verdicts, "again", "saved", "s"), 0))
        line[verdict] += 1
        line["again"] += i in again
        line["saved"] += 1 - ours[0] / reference[0]
        line["s"] += ours[3]
        if verdict in ("longer", "higher"):
            worse.append(f"{verdict}: {describe(request, ours, reference)}")
    print("             shorter    same  longer  higher   again  mean saving  generated in")
    for name, line in tally.items():
        print(f"{name:12}", *(f"{line[key]:7}" for key in (*verdicts, "again")),
              f"{line['saved'] / sum(line[verdict] for verdict in verdicts):12.3%} {line['s']:11.2f} s")
    searched = [line for name, line in tally.items() if name in SEARCHED]
    return worse, sum(line[key] for line in searched for key in verdicts), sum(line["shorter"] for line in searched)


# ---- published bubble rates ----

def freed_by_b(row):
    """The share of a layer's activations that B frees ('Zero Bubble', section 2)."""
    a, s, b, h = (int(row[key]) for key in ("heads", "seq_len", "microbatch_size", "hidden"))
    return (5 * a * s * s * b + 2 * s * b * h) / (34 * s * b * h + 5 * a * s * s * b)


def compare_published(many_schedules, rows):
    """Prints a line a setting; the cells that are worse."""
    cells = [(row, name) for row in rows for name in ("zb-1p", "zb-2p")]
    requests = [(name, row["devices"], row["microbatches"], row["t_f_ms"], row["t_b_ms"], row["t_w_ms"], row["t_comm_ms"],
                 freed_by_b(row), int(row["devices"]) * int(name[3])) for row, name in cells]
    worse = []
    print("\nbubble rate       p    m   zb-1p  published   zb-2p  published")
    line = ""
    for (row, name), request, (_, rate, peak, _) in zip(cells, requests, answers(many_schedules, requests), strict=True):
        published = float(row["bubble_" + name.replace("-", "_")])
        if name == "zb-1p":
            line = f"{row['model']:14} {row['devices']:>4} {row['microbatches']:>4}"
        line += f"  {rate:.4f}     {published:.4f}"
        if name == "zb-2p":
            print(line)
        if rate > published + 0.00005 or peak > request[-1] * (1 + SAME):
            worse.append(f"{row['model']} m={row['microbatches']} {name}: {rate:.6f}, published {published}; peak {peak}")
    return worse


def main(many_schedules, root):
    data = pathlib.Path(root, "../shared/data")
    reference, published = data / "schedules/reference.csv", data / "zero_bubble.csv"
    for path in (reference, published):
        if not path.exists():
            print(f"skipped: {path} is not there")
            return SKIPPED
    worse, searched, shorter = compare(many_schedules, selected(list(csv.DictReader(reference.open())), EVERY))
    rows = list(csv.DictReader(published.open()))
    # The smallest are enough for a part.
    worse += compare_published(many_schedules, rows[:2] if IS_QUICK or IS_SLOWED else rows)
    print(f"\n{shorter} of {searched} searched schedules are shorter; {len(worse)} of all worse", *worse, sep="\n")
    assert not worse
    assert 3 * shorter >= searched
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
