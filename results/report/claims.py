"""What the papers say in words, and what our numbers say to it."""
import collections
import statistics

import cells
import claims_figures
import zero_bubble
from controllable import FIGURE5, FIGURE6, FIGURE7, FIGURE8, FIGURE9, FIGURE10, FIGURE12, TABLE1, case_of, label
from document import Heading, Table
from limits import best_cuts, by_setting
from own_models import FIGURE9_MODELS, FIGURE10_MODELS


def verdict(checks):
    """A claim holds in part where some of what it says does."""
    if all(checks):
        return "yes"
    return "in part" if any(checks) else "**no**"


def memory_shares(results):
    largest = max(row.pp for row in results.rows(TABLE1))
    of = {row.schedule: row for row in results.rows(TABLE1, pp=largest)}
    half, least, zero = (of[name].activation_gib_max for name in ("v-half", "v-min", "v-zb"))
    return [
        ("V-Half holds 1/2 of 1F1B's activations", f"{half:.3f} on {largest} devices", [abs(half - 1 / 2) < 0.05]),
        ("V-Min holds 1/3", f"{least:.3f} on {largest} devices", [abs(least - 1 / 3) < 0.05]),
        ("V-ZB holds as much as 1F1B, with almost no bubble",
         f"{zero:.3f}, bubble rate {cells.percent(of['v-zb'].bubble_rate_span)} at equal times; "
         + _smallest_bubbles(results), [zero == 1, of["v-zb"].bubble_rate_span < 0.01])]


def _smallest_bubbles(results):
    rates = [row.bubble_rate_span for row in results.rows(FIGURE7, schedule="v-zb")]
    return f"{cells.percent(min(rates))} to {cells.percent(max(rates))} in the settings of figure 7"


def gains(results, scenario, schedule):
    """What a schedule's throughput is above 1F1B's, as fractions, over the settings of a figure."""
    settings = collections.defaultdict(dict)
    for row in results.rows(scenario):
        settings[row.model, row.microbatches][label(row)] = row.samples_per_s_per_gpu
    return [of[schedule] / of["1F1B"] - 1 for of in settings.values()]


def _range(values):
    return f"{cells.percent(min(values), 0)} to {cells.percent(max(values), 0)}"


COMPARABLE = 0.10  # at most this fraction below 1F1B


def throughput(results):
    zero, half, least = (gains(results, FIGURE6, name) for name in ("V-ZB", "V-Half", "V-Min"))
    few = max(gains(results, FIGURE8, "V-ZB"))
    return [
        ("V-Half does so without a loss of efficiency", f"its throughput is {_range(half)} above 1F1B's (figure 6)",
         [min(half) >= 0]),
        ("V-Min does so at a comparable throughput",
         f"from {cells.percent(-min(least), 0)} below 1F1B's to {cells.percent(max(least), 0)} above (figure 6); comparable: at "
         f"most {cells.percent(COMPARABLE, 0)} below",
         [min(least) >= -COMPARABLE, max(least) >= -COMPARABLE]),
        ("The methods outperform 1F1B by 7% to 55% in pure pipeline settings",
         f"V-ZB by {_range(zero)} with 16p to 2p microbatches (figure 6), up to {cells.percent(few, 0)} with p (figure 8); "
         f"V-Half by {_range(half)}, V-Min by {_range(least)}",
         [round(min(zero), 2) >= 0.07, few >= 0.55, round(min(half), 2) >= 0.07, round(min(least), 2) >= 0.07])]


def adapted(results):
    at = collections.defaultdict(dict)
    for row in results.rows(FIGURE8):
        at[row.model, row.microbatches][row.schedule] = row.mfu
    passed = [key for key, of in at.items() if of["v-half"] > max(of["v-zb"], of["1f1b"])]
    words = ", ".join(f"{model} at {count}" for model, count in passed) or "nowhere"
    return [("With adapted microbatch sizes V-Half passes V-ZB and 1F1B where there are many microbatches (38.5B)", words,
             [any("38.5" in model for model, _ in passed)])]


def interval(results, row):
    """Time from one microbatch to the next in the middle of an iteration, over the work of one: 1 where nothing idles.

    The median over stages, as a stage's own order may put off one microbatch."""
    starts, work = collections.defaultdict(dict), collections.defaultdict(int)
    for event in results.trace(FIGURE5, row.name):
        if event.event == "pass":
            work[event.device] += event.end_ps - event.start_ps
            if event.kind == "F" and event.chunk == 0:
                starts[event.device][event.microbatch] = event.start_ps
    first, last = row.microbatches // 2, 5 * row.microbatches // 6  # past the warm-up, of p microbatches and no more
    return statistics.median((of[last] - of[first]) / (last - first) / (work[device] / row.microbatches)
                             for device, of in starts.items())


def repeating(results):
    """From the traces: how long an interval is, not how long the iteration."""
    of = {(row.schedule, row.making, row.pp): interval(results, row) for row in results.rows(FIGURE5)}
    shapes = sorted({p for _, _, p in of})

    def words(schedule, making):
        return " and ".join(f"{of[schedule, making, p]:.2f}" for p in shapes)

    return [("V-Min has a bubble in every interval where F, B and W differ, V-Half has none",
             f"an interval over the work in it, on {' and '.join(map(str, shapes))} devices, in the order of their authors' program: "
             f"V-Min {words('v-min', 'published')}, V-Half {words('v-half', 'published')}; ours planned for equal times "
             f"{words('v-min', 'equal')} and, V-Half, {words('v-half', 'equal')}; V-Min planned for these times "
             f"{words('v-min', 'costs')}",
             [*(of["v-min", "published", p] > 1.05 for p in shapes), *(of["v-half", "published", p] < 1.01 for p in shapes)])]


def drop(results):
    """Bubble rate at one half of 1F1B's memory and a little above, where there are the most microbatches."""
    words, checks = [], []
    for scenario in (FIGURE9, FIGURE9_MODELS):
        for rows in by_setting(results.rows(scenario)).values():
            if rows[0].microbatches == 16 * rows[0].pp:
                words.append(_drop_of(rows))
                checks += _is_drop(rows)
    return [("The bubble rate of the adaptive schedule drops suddenly just above one half of 1F1B's memory (figure 9)",
             f"at 0.5, 0.575 and 0.65, and between which limits from 0.5 on it falls most steeply: {'; '.join(words)}", checks)]


def _steepest(rows):
    """The two neighbouring limits, from one half on, between which the bubble rate falls most for the memory added."""
    points = sorted((row.memory_limit_gib, row.bubble_rate_span) for row in rows
                    if row.status == "ok" and row.memory_limit_gib >= 0.5)
    return max(zip(points, points[1:]), key=lambda pair: (pair[0][1] - pair[1][1]) / (pair[1][0] - pair[0][0]))


def _at(rows):
    of = {round(row.memory_limit_gib, 6): row.bubble_rate_span for row in rows}
    return [of[limit] for limit in (0.5, 0.575, 0.65)]


def _drop_of(rows):
    (low, _), (high, _) = _steepest(rows)
    return f"{rows[0].model}: {', '.join(map(cells.percent, _at(rows)))}, {low:g} to {high:g}"


def _is_drop(rows):
    """Falls by more just above one half than after, and most steeply there."""
    half, above, beyond = _at(rows)
    _, (high, _) = _steepest(rows)
    return [half - above > 3 * (above - beyond), high <= 0.6]


def adaptive(results):
    better, count = 0, 0
    for scenario in (FIGURE10, FIGURE10_MODELS):
        of = {(case_of(row), row.memory_limit_gib, row.schedule): row for row in results.rows(scenario)}
        for (name, limit, schedule), row in of.items():
            other = of.get((name, limit, "zb-2p"))
            if schedule == "v-adaptive" and row.status == "ok" and other.status == "ok":
                count += 1
                better += row.bubble_rate_span < other.bubble_rate_span
    return [("At the same memory limit the V schedule has the smaller bubble", f"in {better} of {count} settings and limits",
             [better == count, 2 * better > count])]


# Those of which values are published.
SEQUENCES = {"s1024": "sequence of 1,024", "s3072": "of 3,072"}


def grid(results):
    best = best_cuts(results)
    words, gains_words, is_same, over = [], [], [], []
    for name in dict.fromkeys(name for name, _ in best if name in SEQUENCES):
        of = {schedule: row for (case, schedule), row in best.items() if case == name}
        ours, theirs = (max(of, key=lambda one: of[one][column]) for column in ("mfu", "published_best_mfu"))
        gain, published = (of[first][column] / of["1F1B"][column] - 1
                           for first, column in ((ours, "mfu"), (theirs, "published_best_mfu")))
        words.append(f"{SEQUENCES[name]}: {ours} at {cells.percent(of[ours].mfu)}")
        gains_words.append(f"{SEQUENCES[name]}: by {cells.percent(gain)}, in its table 3 by {cells.percent(published)}")
        is_same.append(ours == theirs)
        over.append(gain)
    return [("In the grid search V-ZB is best at a sequence of 1,024, V-Half at 3,072", "; ".join(words), is_same),
            ("In the grid search the best outperforms 1F1B by 16%", "; ".join(gains_words),
             [min(over) > 0, round(max(over), 2) >= 0.16])]


def single_passes(results):
    rows = results.rows(FIGURE12)
    groups = collections.defaultdict(dict)
    for row in rows:
        groups[row.model, row.microbatch_size][row.tp] = row.mfu
    falling = [all(of[tp] > of[2 * tp] for tp in (1, 2, 4)) for of in groups.values()]
    ends = [1 - of[8] / of[1] for of in groups.values()]
    known = collections.defaultdict(dict)
    for row in rows:
        known[row.model, row.microbatch_size][row.tp] = row.published_mfu
    theirs = [1 - of[8] / of[1] for of in known.values() if of[1] and of[8]]
    return [("MFU of single passes falls as the tensor-parallel degree grows",
             f"in {sum(falling)} of {len(groups)} rows; from tp 1 to tp 8 by {_range(ends)}, by the plot's points "
             f"{_range(theirs)}", [all(falling), any(falling)])]


def of_controllable_memory(results):
    return [*memory_shares(results), *throughput(results), *claims_figures.of_figures(results),
            *adapted(results), *repeating(results), *drop(results),
            *adaptive(results), *grid(results), *single_passes(results)]


HANDMADE = ("1f1b", "zb-h1", "zb-h2")


def equal_rates(rows):
    """How many bubble rates are the published ones in all four decimals."""
    return sum(cells.rate(row.bubble_rate_span) == cells.rate(row.published_bubble_rate_span) for row in rows)


def at_most(rows):
    """How many bubble rates are no larger than the published, as it is rounded."""
    return sum(row.bubble_rate_span <= row.published_bubble_rate_span + 5e-5 for row in rows)


def bubble_rates(results):
    of = {schedule: [row[schedule] for row in zero_bubble.settings(results).values()] for schedule in zero_bubble.ORDER}
    handmade = [row for schedule in HANDMADE for row in of[schedule]]
    with_v = results.rows(zero_bubble.V)
    known, zb_v = [row for row in with_v if row.schedule in HANDMADE], [row for row in with_v if row.schedule == "zb-v"]
    return [
        ("Table 5: bubble rates of 1F1B, ZB-H1 and ZB-H2 in twelve settings",
         f"{equal_rates(handmade)} of {len(handmade)} equal in four decimals", [equal_rates(handmade) == len(handmade)]),
        ("Table 5: bubble rates of ZB-1P and ZB-2P",
         f"ZB-1P equal in {equal_rates(of['zb-1p'])} of {len(of['zb-1p'])}; ZB-2P at most the published rate in "
         f"{at_most(of['zb-2p'])} of {len(of['zb-2p'])}",
         [at_most(of[schedule]) == len(of[schedule]) for schedule in ("zb-1p", "zb-2p")]),
        ("Table 8 of the arXiv version: bubble rates beside ZB-V's in nine settings",
         f"1F1B, ZB-H1 and ZB-H2 equal in {equal_rates(known)} of {len(known)}; ZB-V at most the published rate in "
         f"{at_most(zb_v)} of {len(zb_v)}", [equal_rates(known) == len(known), at_most(zb_v) == len(zb_v)])]


def speedups(results):
    of = zero_bubble.settings(results)
    first, second = ([zero_bubble.by_span(row[schedule]) / zero_bubble.by_span(row["1f1b"]) - 1 for row in of.values()]
                     for schedule in ("zb-1p", "zb-2p"))
    modelled = {row.name: row.samples_per_s_per_gpu for row in results.rows(zero_bubble.THROUGHPUT)}

    def over(suffix, base):
        return [speed / modelled[name.removesuffix(suffix) + base] - 1 for name, speed in modelled.items()
                if name.endswith(suffix)]

    alone = [over(suffix, ".b-1f1b.1f1b") for suffix in (".b-zb-1p.zb-1p", ".b-zb-2p.zb-2p")]
    waits = [-gain for gain in over(".b-zb-2p-waits.zb-2p", ".b-zb-2p.zb-2p")]
    return [
        ("Up to 15% above 1F1B at a similar memory limit, up to 30% with twice the memory",
         f"of the paper's pass times alone, ZB-1P by {_range(first)}, ZB-2P by {_range(second)}; of the cluster model by "
         f"{_range(alone[0])} and {_range(alone[1])}", [max(first) >= 0.15, max(second) >= 0.30]),
        ("ZB-2P is about 8% slower where it waits for the all-reduce (table 7)", f"by {_range(waits)}",
         [all(0.05 < wait < 0.11 for wait in waits)])]


def of_zero_bubble(results):
    return [*bubble_rates(results), *speedups(results)]


def of_both(results):
    return [*of_controllable_memory(results), *of_zero_bubble(results)]


def section(results):
    """Each line is worked out from the runs."""
    def table(rows):
        return Table(["the paper", "ours", "holds"], [[claim, ours, verdict(checks)] for claim, ours, checks in rows],
                     align="lll")
    return [Heading(2, "What the papers claim, and what our numbers say"),
            Heading(3, "Pipeline Parallelism with Controllable Memory, in short"), table(of_controllable_memory(results)),
            Heading(3, "Zero Bubble Pipeline Parallelism, in short"), table(of_zero_bubble(results))]
