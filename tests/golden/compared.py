"""The public generators' schedules, those of frameworks, spans known to be optimal and the bound, beside ours: the tables of
docs/schedules-compared.md, its picture and the picture's data (docs/schedules-compared.csv).

All is asked of `pipecast schedule`. The parts `grid`, `picture`, `gaps` and `improved` need nothing else, for the orders of
others are makings of ours. The part `slow` is a table of docs/bad-days.md (slow_stage.py). The parts `reference` and `optimal` read ../shared/data/schedules, whose rows may not stand in
the project; where that is not there they are left as they stand.

usage: compared.py PIPECAST SOURCE_ROOT [--update] [--jobs N] [PART...]
  --update  rewrites the parts, each between its two marks, and draws the picture (gnuplot)
  --jobs N  commands at a time (default: as many as there are processors)
"""
import argparse
import csv
import dataclasses
import io
import os
import pathlib
import statistics
import subprocess
import sys

from asked import SAME, Request, ask, difference
from slow_stage import slow

PAGE, PICTURE, DATA = (f"docs/schedules-compared.{kind}" for kind in ("md", "svg", "csv"))
COSTS = {"equal": ("1,1,1", 0), "3, 4, 2; 0.5": ("3,4,2", 0.5), "22, 24.6, 17; 0.3": ("22,24.6,17", 0.3),
         "18.5, 18.1, 9.3; 0.6": ("18.5,18.1,9.3", 0.6), "10, 12, 7; 0.5": ("10,12,7", 0.5)}


# ---- two spans, and many of them ----

@dataclasses.dataclass(frozen=True)
class Pair:
    """A schedule of others and ours in the same memory: theirs are numbers, `request` is what ours answers."""
    span: float
    request: Request
    ours: object  # an Answer

    def change(self):
        return difference(self.ours.span, self.span)


def is_zero(value, digits):
    return not f"{100 * value:.{digits}f}".strip("-0.")


def percent(value, digits=1):
    return "0" if is_zero(value, digits) else f"{100 * value:.{digits}f}%"


def signed(value, digits=1):
    return "0" if is_zero(value, digits) else f"{100 * value:+.{digits}f}%"


def changes_of(pairs):
    """Cells: how many are shorter, equal, longer; and the median, the best and the worst of ours over theirs."""
    changes = [pair.change() for pair in pairs]
    counts = [sum(change < 0 for change in changes), changes.count(0), sum(change > 0 for change in changes)]
    return [*map(str, counts), signed(statistics.median(changes)), signed(min(changes)), signed(max(changes))]


def gaps_of(answers):
    """Cells: the mean and the worst gap to the bound, and how many are at it, but for rounding, and so proved optimal."""
    gaps = [answer.gap for answer in answers]
    return [percent(statistics.mean(gaps)), percent(max(gaps)), str(sum(gap <= SAME for gap in gaps))]


def table(header, rows, align):
    """`align`: a letter a column, l or r."""
    rule = "|".join("---" if letter == "l" else "--:" for letter in align)
    return [f"| {' | '.join(header)} |", f"|{rule}|", *[f"| {' | '.join(row)} |" for row in rows]]


def named(rows):
    """Lines that say which pairs have ours longer."""
    longer = [pair for pair in rows if pair.change() > 0]
    if not longer:
        return ["", f"Of {len(rows)} none of ours is longer."]
    return ["", f"Of {len(rows)} ours is longer in {len(longer)}:", "",
            *[f"- {signed(pair.change(), 2)}: `{pair.request}`, theirs {pair.span:.10g}" for pair in longer]]


# ---- the grid: orders that others publish and ship ----

@dataclasses.dataclass(frozen=True)
class Order:
    name: str
    by: str
    making: str
    chunks: int = 0     # 0: as the name has it
    limit: float = 0    # of 1F1B's memory; 0: as the order has it

    def request(self, p, m, costs):
        options = ("--making", self.making, *(("--chunks", str(self.chunks)) if self.chunks else ()))
        return Request(self.name, p, m, *costs, self.limit * p or None, options)

    def label(self):
        return (f"`{self.name}`" + (f", {self.chunks} chunks" if self.chunks else "")
                + (f", limit {self.limit:g}" if self.limit else ""))


LINEAR = {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}
ORDERS = [Order("gpipe", "PyTorch", "torch"), Order("1f1b", "PyTorch, Megatron-LM", "torch"),
          Order("1f1b-interleaved", "PyTorch, Megatron-LM", "torch", 2), Order("1f1b-interleaved", "PyTorch, Megatron-LM", "torch", 4),
          Order("1f1b-interleaved-overlap", "Megatron-LM", "megatron", 2), Order("looped-bfs", "PyTorch", "torch", 2),
          Order("zb-interleaved", "PyTorch", "torch", 2), Order("zb-v", "PyTorch", "torch"), Order("dualpipe-v", "PyTorch", "torch"),
          Order("zb-h1", "published", "costs"), Order("zb-h2", "published", "costs"), Order("zb-1p", "published", "published"),
          Order("zb-2p", "published", "published"), Order("zb-v", "published", "published"), Order("1f1b-v", "published", "published"),
          Order("v-min", "published", "published"), Order("v-half", "published", "published"),
          *[Order("v-adaptive", "published", "published", limit=limit) for limit in (0.5, 0.75, 1)]]
SHAPES = [(p, many * p) for p in (4, 8, 16, 32) for many in (2, 4)]


def rival(order, p, m, costs, peak):
    """Ours in the memory that the order holds; with more than 2p microbatches there is nothing left to save."""
    return Request("zb-2p" if order.name in LINEAR else "v-adaptive", p, m, *costs, min(peak, 2 * p))


def grid_answers(pipecast, jobs, orders=tuple(ORDERS), shapes=tuple(SHAPES), costs=tuple(COSTS.values())):
    """{order: [(devices, their answer, our pair)]}"""
    asked = {(order, p, m, cost): order.request(p, m, cost) for order in orders for p, m in shapes for cost in costs}
    theirs = ask(pipecast, asked.values(), jobs)
    rivals = {key: rival(*key, theirs[request].peak) for key, request in asked.items()}
    ours = ask(pipecast, rivals.values(), jobs)
    found = {order: [] for order in orders}
    for key, request in asked.items():
        pair = Pair(theirs[request].span, rivals[key], ours[rivals[key]])
        found[key[0]].append((key[1], theirs[request], pair))
    return found


def held(found):
    shares = [answer.peak / p for p, answer, _ in found]
    least, most = f"{min(shares):.2f}", f"{max(shares):.2f}"
    return least if least == most else f"{least} to {most}"


def grid_line(order, found):
    theirs, pairs = [answer for _, answer, _ in found], [pair for *_, pair in found]
    mean, _, at_bound = gaps_of([pair.ours for pair in pairs])
    return [order.label(), order.by, held(found), percent(statistics.median(answer.rate for answer in theirs)),
            percent(statistics.median(pair.ours.rate for pair in pairs)), *changes_of(pairs), gaps_of(theirs)[0],
            mean, at_bound]


def grid(pipecast, root, jobs):
    found = grid_answers(pipecast, jobs)
    header = ["order", "made by", "holds, of 1F1B's", "idles, median", "ours", "shorter", "equal", "longer", "span of ours, median",
              "best", "worst", "gap of theirs", "of ours", "proved"]
    return [f"{len(SHAPES) * len(COSTS)} cases each.", "",
            *table(header, [grid_line(order, of) for order, of in found.items()], "ll" + "r" * 12),
            *named([pair for of in found.values() for *_, pair in of])]


# ---- the picture: bubble against memory ----

PICTURE_COSTS = [COSTS["equal"], COSTS["22, 24.6, 17; 0.3"]]
PICTURE_SHAPE = 8, 32
LIMITS = range(4, 27)  # chunks of half a stage
POINTS = {"public V-Min": Order("v-min", "", "published"), "public V-Half": Order("v-half", "", "published"),
          "public ZB-V": Order("zb-v", "", "published"), "DualPipeV": Order("dualpipe-v", "", "torch"),
          "1F1B": Order("1f1b", "", "torch"), "ZB-H1": Order("zb-h1", "", "costs"),
          "1F1B-I 2": Order("1f1b-interleaved", "", "torch", 2), "1F1B-I 4": Order("1f1b-interleaved", "", "torch", 4)}
OURS, LINE, PUBLIC, BOUND = "ours V", "ours linear", "public V adaptive", "bound"


def picture_requests(costs):
    """{(series, chunks or None): request}"""
    p, m = PICTURE_SHAPE
    asked = {(name, None): order.request(p, m, costs) for name, order in POINTS.items()}
    for chunks in LIMITS:
        asked[OURS, chunks] = Request("v-adaptive", p, m, *costs, chunks / 2)
        asked[PUBLIC, chunks] = Request("v-adaptive", p, m, *costs, chunks / 2, ("--making", "published"))
        if chunks % 2 == 0:
            asked[LINE, chunks] = Request("zb-2p", p, m, *costs, chunks / 2)
    return asked


def bound_rate(answer):
    """The bubble rate of a schedule as long as the bound: the work is that of the answer."""
    return max(0.0, 1 - answer.span * (1 - answer.rate) / answer.bound)


def picture_rows(pipecast, jobs, costs):
    """[(series, memory of 1F1B's, bubble rate)], the bound as the lower one of both placements."""
    asked = picture_requests(costs)
    answers, p = ask(pipecast, asked.values(), jobs), PICTURE_SHAPE[0]
    of = {key: answers[request] for key, request in asked.items() if answers[request] is not None}
    rows = [(series, (answer.peak if chunks is None else chunks / 2) / p, answer.rate) for (series, chunks), answer in of.items()]
    for chunks in LIMITS:
        both = [of[series, limit] for series, limit in ((OURS, chunks), (LINE, chunks // 2 * 2))]
        rows.append((BOUND, chunks / 2 / p, min(map(bound_rate, both))))
    order = [OURS, LINE, PUBLIC, BOUND, *POINTS]
    return sorted(rows, key=lambda row: (order.index(row[0]), row[1]))


def picture(pipecast, root, jobs):
    """The rows go to DATA; update() draws them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["F", "B", "W", "comm", "series", "memory_of_1f1b", "bubble_rate_span"])
    for costs in PICTURE_COSTS:
        for series, memory, rate in picture_rows(pipecast, jobs, costs):
            writer.writerow([*costs[0].split(","), costs[1], series, f"{memory:.6g}", f"{rate:.6f}"])
    return Drawing(text.getvalue())


@dataclasses.dataclass(frozen=True)
class Drawing:
    data: str


def draw(root, data):
    (root / DATA).write_text(data)
    done = subprocess.run(["gnuplot", "-e", f"rows='{DATA}'; picture='{PICTURE}'", "tests/golden/compared.gp"], cwd=root,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{PICTURE}: not drawn: {done.stderr.strip()}")


# ---- how far ours are from the bound ----

GAP_LIMITS = (0.5, 0.6, 0.75, 0.9, 1)
GAP_SHAPES = [(p, 4 * p) for p in (8, 16, 32)]


def gap_requests(name, limit):
    return [Request(name, p, m, *costs, limit and limit * p) for p, m in GAP_SHAPES for costs in COSTS.values()]


def gap_line(label, answers):
    gaps = [answer.gap for answer in answers]
    return [label, str(len(answers)), percent(min(gaps)), percent(statistics.median(gaps)), percent(max(gaps)),
            gaps_of(answers)[2]]


def gaps(pipecast, root, jobs):
    kinds = {"`zb-1p`": gap_requests("zb-1p", None), "`zb-2p`": gap_requests("zb-2p", None),
             **{f"`v-adaptive`, {limit:g}": gap_requests("v-adaptive", limit) for limit in GAP_LIMITS}}
    answers = ask(pipecast, [request for of in kinds.values() for request in of], jobs)
    in_v = [answers[request] for label, of in kinds.items() if "adaptive" in label for request in of]
    lines = [gap_line(label, [answers[request] for request in of]) for label, of in kinds.items()]
    return table(["schedule, limit of 1F1B's memory", "cases", "least gap", "median", "worst", "proved"],
                 [*lines, gap_line("`v-adaptive`, all", in_v)], "l" + "r" * 5)


# ---- public orders, improved ----

IMPROVED = [Order("v-min", "", "published"), Order("v-half", "", "published"), Order("v-adaptive", "", "published"),
            Order("zb-v", "", "published"), Order("zb-v", "", "torch"), Order("dualpipe-v", "", "torch")]
IMPROVED_COSTS = {"1,1,1; 0": ("1,1,1", 0), "3,4,2; 0": ("3,4,2", 0), "22,24.6,17; 0.3": ("22,24.6,17", 0.3)}


def improved_request(order, costs):
    request = order.request(8, 16, costs)
    return request._replace(options=(*request.options, "--improve"))


def improved(pipecast, root, jobs):
    asked = {(order, label): improved_request(order, costs) for order in IMPROVED for label, costs in IMPROVED_COSTS.items()}
    answers = ask(pipecast, asked.values(), jobs)
    lines = []
    for (order, label), request in asked.items():
        answer = answers[request]
        made = "PyTorch's" if order.making == "torch" else "published"
        lines.append([f"`{order.name}`, {made}", label, f"{answer.span_before:.6g}", f"{answer.span:.6g}", f"{answer.bound:.6g}",
                      "yes" if answer.is_optimal else ""])
    return table(["order", "times F,B,W; transfer", "span", "improved", "bound", "proved"], lines, "llrrrl")


# ---- the public generators' rows ----

GENERATED = {"GPipe": "gpipe", "1F1B": "1f1b", "Eager1F1B": "eager-1f1b", "1F1B-I": "1f1b-interleaved", "ZB-H1": "zb-h1",
             "ZB-H2": "zb-h2", "ZB-1P": "zb-1p", "ZB-2P": "zb-2p", "ZB-V": "zb-v", "1F1B-V": "1f1b-v", "V-Min": "v-min",
             "V-Half": "v-half", "V-adaptive": "v-adaptive"}
TEXTBOOK = {"GPipe", "Eager1F1B"}  # in that file, but no public generator's
FIXED = {"GPipe", "1F1B", "Eager1F1B", "1F1B-I", "ZB-H1", "ZB-H2"}  # ours of that name are the same orders


def read(root, name):
    """None where the file is not at hand."""
    path = root.parent / "shared/data/schedules" / name
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else None


def released_by_b(row):
    return abs(float(row["mem_b"])) / float(row["mem_f"]) if row["mem_f"] else 0.0


def peak_of(row):
    """In microbatches of a stage: in units of which F takes mem_f where a row has it so, else in chunks."""
    peak = float(row["peak_mem_model"]) / float(row["mem_f"]) if row["peak_mem_model"] else float(row["peak_act_units"])
    return peak / int(row["chunks"])


def request_of(row):
    """Ours of the same name, in the memory that the public schedule held. The row's times are of one chunk."""
    chunks = int(row["chunks"])
    times = ",".join(repr(float(row[kind]) * chunks) for kind in "FBW")
    options = (*(("--release-b", repr(released_by_b(row))) if released_by_b(row) else ()),
               *(("--chunks", row["chunks"]) if row["scheduler"] == "1F1B-I" else ()))
    limit = None if row["scheduler"] in FIXED else peak_of(row) * (1 + SAME)
    return Request(GENERATED[row["scheduler"]], int(row["p"]), int(row["m"]), times, float(row["comm"]), limit, options)


def reference_pairs(pipecast, jobs, rows):
    """{generator: [pair]}"""
    asked = [request_of(row) for row in rows]
    answers = ask(pipecast, asked, jobs)
    found = {name: [] for name in GENERATED}
    for row, request in zip(rows, asked, strict=True):
        found[row["scheduler"]].append(Pair(float(row["span"]), request, answers[request]))
    return {name: pairs for name, pairs in found.items() if pairs}


def reference_line(name, pairs):
    at_bound = sum(pair.span <= pair.ours.bound * (1 + SAME) for pair in pairs)
    return [name, "textbook" if name in TEXTBOOK else "generator", f"`{GENERATED[name]}`", str(len(pairs)), *changes_of(pairs),
            *gaps_of([pair.ours for pair in pairs]), str(at_bound)]


def reference(pipecast, root, jobs):
    rows = read(root, "reference.csv")
    if rows is None:
        return None
    found = reference_pairs(pipecast, jobs, rows)
    every = [pair for pairs in found.values() for pair in pairs]
    header = ["public name", "made by", "ours", "rows", "shorter", "equal", "longer", "span of ours, median", "best", "worst",
              "gap of ours, mean", "worst", "proved, ours", "theirs"]
    return [*table(header, [reference_line(name, pairs) for name, pairs in found.items()], "lll" + "r" * 11), *named(every)]


# ---- spans that are known to be optimal ----

@dataclasses.dataclass(frozen=True)
class Known:
    """A small instance: the best span known, and whether constraint programming proved it."""
    pair: Pair
    is_proved: bool

    def gap_of_bound(self):
        return difference(self.pair.span, self.pair.ours.bound)


def known_answers(pipecast, jobs, rows):
    """{family: [known]}"""
    asked = [Request(row["family"], int(row["p"]), int(row["m"]), f"{row['F']},{row['B']},{row['W']}", float(row["comm"]),
                     float(row["limit"])) for row in rows]
    answers = ask(pipecast, asked, jobs)
    found = {}
    for row, request in zip(rows, asked, strict=True):
        known = Known(Pair(float(row["best_span"]), request, answers[request]), row["proved"] == "1")
        found.setdefault(row["family"], []).append(known)
    return found


def known_line(family, known):
    proved = [one for one in known if one.is_proved]
    gaps = [one.gap_of_bound() for one in known]
    return [f"`{family}`", str(len(known)), *changes_of([one.pair for one in known]), str(len(proved)),
            str(sum(one.pair.change() == 0 for one in proved)), gaps_of([one.pair.ours for one in known])[2],
            percent(statistics.mean(gaps), 2), percent(max(gaps)), str(sum(gap < 0 for gap in gaps))]


def optimal(pipecast, root, jobs):
    rows = read(root, "optimal_small.csv")
    if rows is None:
        return None
    found = known_answers(pipecast, jobs, rows)
    every = [one for known in found.values() for one in known]
    header = ["family", "rows", "shorter", "equal", "longer", "span of ours, median", "best", "worst", "proved by others",
              "reached by ours", "proved by our bound", "gap of the bound, mean", "worst", "bound above"]
    lines = [*[known_line(family, known) for family, known in sorted(found.items())], known_line("all", every)]
    lines[-1][0] = "all"
    return [*table(header, lines, "l" + "r" * 13), *named([one.pair for one in every])]


# ---- the page ----

PARTS = {"reference": reference, "optimal": optimal, "grid": grid, "picture": picture, "gaps": gaps, "improved": improved,
         "slow": slow}
PAGES = {"slow": "docs/bad-days.md"}  # of parts that stand on another page


def marks(part):
    return tuple(f"<!-- {part}, made by tests/golden/compared.py: {end} -->" for end in ("begin", "end"))


def with_part(text, part, lines):
    begin, end = marks(part)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{PAGES.get(part, PAGE)}: no part '{part}' to rewrite; expected the two marks {begin} and {end}")
    return f"{text.split(begin)[0]}{begin}\n" + "\n".join(lines) + f"\n{end}{text.split(end)[1]}"


def update(root, part, made):
    if isinstance(made, Drawing):
        draw(root, made.data)
    else:
        page = root / PAGES.get(part, PAGE)
        page.write_text(with_part(page.read_text(), part, made))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pipecast", metavar="PIPECAST")
    parser.add_argument("root", metavar="SOURCE_ROOT", type=pathlib.Path)
    parser.add_argument("parts", metavar="PART", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--update", action="store_true", help=f"rewrites the parts of {PAGE} and draws {PICTURE}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="commands at a time")
    parsed = parser.parse_intermixed_args()
    unknown = set(parsed.parts) - set(PARTS)
    if unknown:
        parser.error(f"{sorted(unknown)[0]}: no such part; expected one of {', '.join(PARTS)}")
    return parsed


def main():
    wanted = arguments()
    root = wanted.root.resolve()
    for part in wanted.parts or PARTS:
        made = PARTS[part](os.path.abspath(wanted.pipecast), root, wanted.jobs)
        if made is None:
            print(f"{part}: left as it stands, for ../shared/data/schedules is not there", file=sys.stderr)
            continue
        print("\n".join([f"## {part}", "", *([made.data] if isinstance(made, Drawing) else made), ""]), flush=True)
        if wanted.update:
            update(root, part, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
