"""How far measured runs are from their forecasts, by kind of run: scenarios/intervals.csv, of which every forecast has its
interval of 80%, and the part of docs/scoreboard.md that tests it. docs/accuracy.md says how it is done.

Measured runs are those of ../shared/data/training and ../shared/data/measured, and of scenarios/validation and scenarios/paper.
Only quantiles and counts are written. Where the former are not at hand, all stays as it is.

usage: intervals.py PIPECAST SOURCE_ROOT [--update]
  --update  writes scenarios/intervals.csv and the part of the page (then build anew: the table is part of the program)
"""
import collections
import csv
import datetime
import functools
import io
import itertools
import math
import os
import pathlib
import re
import statistics
import sys
import typing

import accuracy
import measured_tables
import scoreboard
from compared import percent, signed, table

FILE = "scenarios/intervals.csv"
TAIL = 0.1  # on each side of an interval of 80%
LEAST = 9  # configurations with which quantiles of 10 and 90% are the least and the greatest
MIXTURES = "experts"  # what their kind has for the software
KINDS_LEAST = 4  # that speak for one that was not measured: of fewer the bound would be infinite
CLASSES = ((1, 8), (9, 64), (65, None))  # GPUs: to a node, to a leaf switch or so, and more


class Run(typing.NamedTuple):
    """A measured run beside its forecast."""
    source: str
    kind: str  # "h100 megatron zero-1", as the program says
    gpus: int
    model: str  # runs of one model are left out together where that is asked
    same: tuple  # what is equal in repetitions of one configuration
    but_gpus: tuple  # the same but for GPUs and batch
    log: float  # logarithm of measured over forecast
    share: float = 1.0  # of its configuration: one of n repetitions is an nth


# ---- the runs ----

def model_of(text):
    """"llama 70" of "Llama 3.1 70b 24.09 BF16": family and size, whatever a release calls it."""
    family, size = re.search(r"[a-z]+", text.lower()), re.search(r"(\d+(?:\.\d+)?)[\s_-]*b(?!f)|(\d+)\s*m\b", text.lower())
    return f"{family[0]} {size[1] or size[2] + 'm'}" if size else family[0]


def source_of(row):
    """Tables of one repository's releases, which repeat runs, are one source."""
    return re.sub(r", (v24\.11 )?to v25\.\d+$", "", measured_tables.FILES[row["file"]])


def run_of_score(row, source):
    cut = tuple(row[column] for column in ("mbs", "seq", "tp", "pp", "vp", "recompute", "zero", "framework"))
    forecast = f"{row['forecast_s']:.6g}"
    return Run(source, row["kind"], int(row["gpus"]), model_of(row["model"]), (row["gpus"], row["gbs"], cut[:4], forecast),
               (model_of(row["model"]), *cut), math.log(row["measured_s"] / row["forecast_s"]))


def is_learned_from(row):
    """16 bits and training of all parameters alone: a run of fewer bits, or with adapters, has the interval of the unknown,
    until there are rows enough. Verification cards are of runs that were not made for speed."""
    return is_of_training(row) and not scoreboard.is_low(row) and not is_mixture(row)


def is_of_training(row):
    is_whole = not re.search(r"lora|sft|peft|fine", row.get("task", ""), re.I) and "verification" not in row["file"]
    return measured_tables.is_compared(row) and is_whole


def is_mixture(row):
    return row["kind"].split()[1] == MIXTURES


def training_runs(pipecast, root):
    said = measured_tables.ask(pipecast, root)
    return [run_of_score(row, source_of(row)) for row in scoreboard.rows_of(said) if is_learned_from(row)]


def mixtures(pipecast, root):
    """Mixtures of experts, in any precision: what they are off by says nothing of dense models, nor the other way round."""
    said = measured_tables.ask(pipecast, root)
    return [run_of_score(row, source_of(row)) for row in scoreboard.rows_of(said) if is_of_training(row) and is_mixture(row)]


def run_of_memory(row):
    """Some rows with memory have no time."""
    timed = {**row, "measured_s": row["measured_s"] or row["forecast_s"]}
    return run_of_score(timed, source_of(row))._replace(log=-math.log1p(row["memory_error"]))


def run_of_row(row, source, model, ratio, extra=()):
    cut = tuple(row[column] for column in ("microbatch_size", "seq_len", "tp", "pp", "virtual_pp", "recompute", "schedule"))
    return Run(source, row["kind"], int(row["gpus"]), model, (model, row["gpus"], row["dp"], cut, *extra), (model, *cut, *extra),
               math.log(ratio))


def selene_runs(pipecast, root):
    """Of SC'21 rates are published, of Korthikanti's times."""
    rows = accuracy.run(pipecast, root / "scenarios/validation/megatron_sc21.yaml")
    runs = [run_of_row(row, "Megatron SC'21, table 1", row["name"],
                       accuracy.number(row, "hardware_tflops_per_gpu") / accuracy.number(row, "published_hardware_tflops_per_gpu"))
            for row in rows]
    for name in ("korthikanti", "korthikanti_larger"):
        rows = accuracy.run(pipecast, root / f"scenarios/validation/{name}.yaml")
        runs += [run_of_row(row, "Korthikanti et al., table 5", accuracy.case_of(row).split("-")[0],
                            accuracy.number(row, "published_iteration_s") / accuracy.number(row, "iteration_s")) for row in rows]
    return runs


def vtrain_runs(pipecast, root, name, setting):
    """Iterations of more microbatches are no other configurations: times are linear in their number."""
    path = root.parent / f"shared/data/measured/a100_iterations_{name}_gpus.csv"
    source = f"vTrain, {name.replace('_', ' ')} GPUs"
    runs = []
    for row, result in accuracy.run_iterations(pipecast, path, setting):
        model = f"h{row['hidden size']} L{row['# layers']} s{row['sequence length']}"
        ratio = accuracy.number(result, "published_iteration_s") / accuracy.number(result, "iteration_s")
        runs.append(run_of_row(result, source, model, ratio))
    return runs


def times(pipecast, root):
    return [*training_runs(pipecast, root), *selene_runs(pipecast, root),
            *vtrain_runs(pipecast, root, "64_to_256", accuracy.FROM_64_TO_256),
            *vtrain_runs(pipecast, root, "2_to_4", accuracy.FROM_2_TO_4)]


def memories(pipecast, root):
    """What 'Zero Bubble' publishes, to which no memory is fitted, and the rows of others that have any, of few bits, too."""
    runs = []
    for name in ("zero_bubble_throughput", "zero_bubble_v_throughput"):
        rows = accuracy.run(pipecast, root / f"scenarios/paper/{name}.yaml")
        runs += [run_of_row(row, "Zero Bubble, tables 4, 7 and 8", row["name"].split(".b")[0],
                            accuracy.number(row, "published_memory_gib") / accuracy.number(row, "memory_gib_max"))
                 for row in rows if row["published_memory_gib"]]
    said = measured_tables.ask(pipecast, root)
    for row in scoreboard.rows_of(said):
        if row["memory_error"] is not None and not is_mixture(row):
            runs.append(run_of_memory(row))
    return runs


def configurations(runs):
    """Every configuration counts once, shared by its repetitions: what is forecast is one measurement, and not their median."""
    return [run._replace(share=1 / len(of)) for of in by(runs, lambda run: (run.kind, run.same)).values() for run in of]


def medians(runs):
    """One run a configuration."""
    return [of[0]._replace(log=statistics.median(run.log for run in of), share=1.0)
            for of in by(runs, lambda run: (run.kind, run.same)).values()]


def count(runs):
    """Configurations."""
    return round(sum(run.share for run in runs))


def by(runs, key):
    groups = collections.defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return dict(sorted(groups.items(), key=lambda group: str(group[0])))


# ---- quantiles ----

class Weighted(typing.NamedTuple):
    """A value of a thing of this weight, of which it is a share."""
    value: float
    weight: float = 1.0
    share: float = 1.0


def quantile(values, part):
    """The value below which a new one is with this chance, as far as `values` speak for it: None if they are too few. Of n of one
    weight that is the order statistic part * (n + 1), between two of them linear. Of unequal weights n is (sum w)^2 / sum w^2."""
    if not values:
        return None
    ordered, total = sorted(values), sum(one.weight * one.share for one in values)
    things = total * total / sum(one.weight * one.weight * one.share for one in values)
    if min(part, 1 - part) * (things + 1) < 1 - 1e-9:
        return None
    reached, before = 0.0, None
    for one in ordered:
        reached += one.weight * one.share / total * things / (things + 1)
        if reached >= part - 1e-12:
            if before is None:
                return one.value
            return before[1] + (one.value - before[1]) * (part - before[0]) / (reached - before[0])
        before = reached, one.value
    return ordered[-1].value


def equally(groups):
    """Of [[value]]: every group counts as much as any other."""
    return [Weighted(value, 1 / len(group)) for group in groups for value in group]


def bounded(groups):
    """Of groups of runs: each counts as many configurations as it has, but at most LEAST: no group speaks for all."""
    return [Weighted(run.log, min(1, LEAST / count(group)), run.share) for group in groups for run in group]


def bound_of_kinds(groups):
    """The size that an error of a kind not among `groups` of runs has at most in 80%: of k kinds, each of weight 1 / (k + 1), with
    the rest at infinity (Lee, Barber, Willett 2023, arXiv 2306.06342). None if that is there."""
    if len(groups) < KINDS_LEAST:
        return None
    reached = 0.0
    for size, part in sorted((abs(run.log), run.share / count(group)) for group in groups for run in group):
        reached += part / (len(groups) + 1)
        if reached >= 1 - 2 * TAIL - 1e-12:
            return size
    return None


# ---- lines ----

class Line(typing.NamedTuple):
    """A line of the file, quantiles as logarithms; parts that are empty fit any run."""
    gpu: str
    software: str
    sharding: str
    least: int | None
    most: int | None
    kinds: int
    configurations: int
    least_measured: int
    most_measured: int
    low: float
    middle: float
    high: float
    sources: str

    def fits(self, run):
        parts = zip((self.gpu, self.software, self.sharding), run.kind.split())
        return (all(of_line in ("", of_run) for of_line, of_run in parts) and (self.least or 1) <= run.gpus
                and run.gpus <= (self.most or run.gpus))

    def kind(self):
        return f"{self.gpu} {self.software} {self.sharding}"

    def width(self):
        return self.high - self.low


def class_of(run):
    return next(bounds for bounds in CLASSES if run.gpus <= (bounds[1] or run.gpus))


def line_of(parts, bounds, runs, quantiles):
    least, most = min(run.gpus for run in runs), max(run.gpus for run in runs)
    sources = "; ".join(sorted({run.source for run in runs}))
    return Line(*parts, *bounds, len({run.kind for run in runs}), count(runs), least, most, *quantiles, sources)


def own_line(kind, bounds, groups):
    """Of one kind; none where there are too few."""
    weighted = bounded(groups)
    quantiles = [quantile(weighted, part) for part in (TAIL, 0.5, 1 - TAIL)]
    if None in quantiles:
        return []
    return [line_of(kind.split(), bounds, list(itertools.chain(*groups)), quantiles)]


def own_lines(kind, of):
    """Of a kind: by GPUs, and as a whole."""
    classes = by(of, class_of)
    cells = [line for bounds, cell in classes.items() for line in own_line(kind, bounds, [cell])]
    return sorted(cells, key=lambda line: line.least), own_line(kind, (None, None), list(classes.values()))


def lines_of(runs, by_program=False):
    """From the most special to the unknown: kinds by GPUs, kinds, programs where asked, families of GPUs, all. Runs of few bits,
    whose kind has a fourth word, speak for programs and the unknown alone."""
    wide = [run for run in runs if len(run.kind.split()) == 3]
    made = [own_lines(kind, of) for kind, of in by(wide, lambda run: run.kind).items()]
    own = [line for part in zip(*made) for lines in part for line in lines]
    unknown = unknown_line(runs, own)
    programs = program_lines(runs, unknown) if by_program else []
    return [*own, *programs, *family_lines(wide, own, unknown), unknown]


def program_lines(runs, unknown):
    """Of programs on whatever GPU, in whatever precision, for what an allocator adds is the program's. Where too few configurations
    have quantiles it is the largest error of KINDS_LEAST or more. None of them is wider than the unknown."""
    lines = []
    for program, of in by(runs, lambda run: run.kind.split()[1]).items():
        groups = list(by(of, lambda run: run.kind).values())
        quantiles = [quantile(bounded(groups), part) for part in (TAIL, 0.5, 1 - TAIL)]
        if None in quantiles and count(of) >= KINDS_LEAST:
            bound = max(abs(run.log) for run in of)
            quantiles = [-bound, 0.0, bound]
        if None not in quantiles and quantiles[2] - quantiles[0] < unknown.width():
            lines.append(line_of(("", program, ""), (None, None), of, quantiles))
    return lines


def mixture_lines(runs):
    """Of mixtures of experts on whatever GPU; none where they are too few."""
    groups = list(by(runs, lambda run: run.kind).values())
    quantiles = [quantile(bounded(groups), part) for part in (TAIL, 0.5, 1 - TAIL)]
    return [] if None in quantiles else [line_of(("", MIXTURES, ""), (None, None), runs, quantiles)]


def with_mixtures(lines, runs):
    """In front of those that fit any software."""
    first = next(i for i, line in enumerate(lines) if not line.software)
    return [*lines[:first], *mixture_lines(runs), *lines[first:]]


def bound_of(runs, own):
    """Of a kind that is not among the runs'; nothing is better known about it than about one of `own` lines, which are of these."""
    bound = bound_of_kinds(list(by(runs, lambda run: run.kind).values()))
    return max([bound, *(line.width() / 2 for line in own)]) if bound is not None else None


def unknown_line(runs, own):
    """Of fewer kinds than can speak for another: the largest error of all."""
    bound = bound_of(runs, own) or max(abs(run.log) for run in runs)
    return line_of(("", "", ""), (None, None), runs, (-bound, 0.0, bound))


def family_lines(runs, own, unknown):
    """Of families of GPUs that say more than the unknown."""
    lines = []
    for family, of in by(runs, lambda run: run.kind.split()[0]).items():
        bound = bound_of(of, [line for line in own if line.gpu == family])
        if bound is not None and bound < unknown.high:
            lines.append(line_of((family, "", ""), (None, None), of, (-bound, 0.0, bound)))
    return lines


# ---- what more GPUs add, and what ratios are off by ----

def doublings(runs):
    """[(kind, change of the error for a doubling of GPUs)] of neighbours that differ in GPUs, and their batch, alone."""
    found = []
    for of in by(medians(runs), lambda run: (run.source, run.kind, run.but_gpus)).values():
        ordered = sorted(of, key=lambda run: run.gpus)
        found += [(a.kind, abs(b.log - a.log) / math.log2(b.gpus / a.gpus)) for a, b in itertools.pairwise(ordered) if a.gpus < b.gpus]
    return found


def pair_errors(runs):
    """[(GPU and software, error of the ratio)] of runs of one model on as many GPUs, however they are sharded."""
    return [(part_of(a.kind), abs(a.log - b.log)) for of in by(medians(runs), lambda run: (run.source, part_of(run.kind), run.model, run.gpus)).values()
            for a, b in itertools.combinations(of, 2)]


def part_of(kind):
    """"h100 megatron" of "h100 megatron zero-1"."""
    return " ".join(kind.split()[:2])


def four_fifths(found):
    """Below which 80% lie: a function of a kind; of a kind's own where there are LEAST, else of all, kinds counting equally."""
    kinds = {kind: [value for _, value in of] for kind, of in by(found, lambda one: one[0]).items()}
    own = {kind: quantile(equally([of]), 0.8) for kind, of in kinds.items() if len(of) >= LEAST}
    other = quantile(equally(kinds.values()), 0.8) if kinds else 0.0
    if other is None:  # too few for that: the largest
        other = max(value for _, value in found)
    return lambda kind: own.get(kind, other)


def doubling_of(runs):
    """A function of a line."""
    found = four_fifths(doublings(runs))
    return lambda line: found(line.kind())


def pair_of(runs):
    found = four_fifths(pair_errors(runs))
    return lambda line: found(part_of(line.kind()))


# ---- does it hold? ----

def doubled(from_, to):
    """As pc_interval_of counts them."""
    ratio, whole = to / from_, 0
    while ratio >= 2:
        ratio, whole = ratio / 2, whole + 1
    return whole + ratio - 1


def interval(line, run, doubling_of_line):
    """Logarithms of the ends, over the forecast."""
    beyond = (doubled(line.most_measured, run.gpus) if run.gpus > line.most_measured
              else doubled(run.gpus, line.least_measured) if run.gpus < line.least_measured else 0)
    above, below = math.expm1(line.high - line.middle), math.expm1(line.middle - line.low)
    more = beyond * doubling_of_line(line) if beyond else 0
    return line.middle - math.log1p(below + more), line.middle + math.log1p(above + more)


class Held(typing.NamedTuple):
    """A run and its interval, learned from other configurations."""
    run: Run
    low: float
    high: float
    is_unknown: bool

    def is_inside(self):
        return self.low <= self.run.log <= self.high

    def half_width(self):
        return (math.exp(self.high) - math.exp(self.low)) / 2


def held_out(runs, key):
    """Every run with the interval that the others give, all those of its `key` being left out."""
    kinds, found = by(runs, lambda run: run.kind), []
    for out in by(runs, key).values():
        left = set(map(id, out))
        own = {kind: own_lines(kind, [run for run in kinds[kind] if id(run) not in left]) for kind in {run.kind for run in out}}
        rest = functools.cache(lambda left=left: [run for run in runs if id(run) not in left])
        others = functools.cache(lambda rest=rest: lines_of(rest()))
        for run in out:
            line = next((line for lines in own[run.kind] for line in lines if line.fits(run)), None)
            line = line or next(line for line in others() if line.fits(run))
            found.append(Held(run, *interval(line, run, lambda line, rest=rest: doubling_of(rest())(line)), not line.gpu))
    return found


# ---- the file ----

HEAD = """# How far measured runs are from their forecasts, by kind of run: quantiles of measured over forecast (docs/accuracy.md). Made by
# tests/golden/intervals.py from runs of {date}. The first line that fits a run is its line.
"""
COLUMNS = ["quantity", "gpu", "software", "sharding", "least_gpus", "most_gpus", "kinds", "configurations", "least_measured",
           "most_measured", "low", "middle", "high", "doubling", "pair", "sources"]


def ratio(log):
    return f"{math.exp(log):.4f}"


def lines_in(found, quantity):
    lines = lines_of(found[quantity], quantity == "memory")
    return with_mixtures(lines, found["mixtures"]) if quantity == "time" else lines


def cells_of(found, quantity):
    doubling, pair = doubling_of(found[quantity]), pair_of(found[quantity])
    return [[quantity, *line[:3], line.least or "", line.most or "", line.kinds, line.configurations, line.least_measured,
             line.most_measured, ratio(line.low), ratio(line.middle), ratio(line.high), f"{math.expm1(doubling(line)):.4f}",
             f"{math.expm1(pair(line)):.4f}", line.sources] for line in lines_in(found, quantity)]


def body_of(found):
    """`found`: {quantity: configurations}, and those of mixtures, of time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for quantity in ("time", "memory"):
        writer.writerows(cells_of(found, quantity))
    return text.getvalue()


def write_file(path, body):
    """Leaves the date of one that says the same."""
    if path.exists() and path.read_text().endswith("\n" + body):
        return
    path.write_text(HEAD.format(date=datetime.date.today().isoformat()) + body)


# ---- the page ----

def share_inside(held):
    """Of configurations."""
    return sum(one.run.share for one in held if one.is_inside()) / sum(one.run.share for one in held)


def held_line(name, held, by_model, by_source):
    half, unknown = statistics.median(map(Held.half_width, held)), count(one.run for one in held if one.is_unknown)
    rows = statistics.mean(map(Held.is_inside, held))
    return [name, str(count(one.run for one in held)), percent(share_inside(held), 0), percent(rows, 0), percent(half), str(unknown),
            *(percent(share_inside(of), 0) for of in (by_model, by_source))]


def sections(held):
    """{heading: {name: configurations}}."""
    groups = {"source": lambda run: run.source, "GPU": lambda run: run.kind.split()[0], "software": lambda run: run.kind.split()[1],
              "sharding": lambda run: run.kind.split()[2],
              "GPUs": lambda run: "to 8" if run.gpus <= 8 else "9 to 64" if run.gpus <= 64 else "65 and more"}
    return {heading: {name: of for name, of in by(held, lambda one: key(one.run)).items()} for heading, key in groups.items()}


def coverage(runs):
    ways = [held_out(runs, key) for key in (lambda run: (run.kind, run.same), lambda run: (run.source, run.kind, run.model),
                                            lambda run: run.source)]
    found = [sections(held) for held in ways]
    lines = [held_line("**all**", *ways)]
    for heading in found[0]:
        lines += [held_line(f"{heading}: {name}", *(one[heading][name] for one in found)) for name in found[0][heading]]
    return table(["configurations", "how many", "inside", "of rows", "half width", "unknown", "inside, model left out", "inside, source left out"],
                 lines, "lrrrrrrr")


def line_name(line):
    gpus = "" if line.least is None else f", {line.least} to {line.most} GPUs" if line.most else f", {line.least} GPUs and more"
    return (" ".join(line[:3]).strip() or "the unknown") + gpus


def intervals(found):
    """The intervals themselves."""
    lines = [[quantity, line_name(line), str(line.configurations), f"{line.least_measured} to {line.most_measured}",
              signed(math.expm1(line.low)), signed(math.expm1(line.high)), percent(math.expm1(doubling(line)))]
             for quantity in ("time", "memory") for doubling in [doubling_of(found[quantity])] for line in lines_in(found, quantity)]
    return table(["of", "runs", "configurations", "GPUs", "from", "to", "a doubling beyond"], lines, "llrrrrr")


def page(found):
    return {"coverage": coverage(found["time"]), "intervals": intervals(found)}


def main(pipecast, root, is_update):
    if not measured_tables.is_at_hand(root):
        print(f"{FILE}: left as it stands, for ../{measured_tables.SHARED} is not there", file=sys.stderr)
        return 0
    found = {"time": configurations(times(pipecast, root)), "memory": configurations(memories(pipecast, root)),
             "mixtures": configurations(mixtures(pipecast, root))}
    made = page(found)
    print("\n".join(line for part, lines in made.items() for line in (f"## {part}", "", *lines, "")))
    if is_update:
        write_file(root / FILE, body_of(found))
        text = (root / scoreboard.PAGE).read_text()
        for part, lines in made.items():
            text = scoreboard.with_part(text, part, lines)
        (root / scoreboard.PAGE).write_text(text)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or set(sys.argv[3:]) - {"--update"}:
        raise SystemExit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), "--update" in sys.argv))
