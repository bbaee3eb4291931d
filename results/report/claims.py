"""What the papers say in words, and what our numbers say to it."""
import collections

import cells
import zero_bubble
from controllable import FIGURE5, FIGURE6, FIGURE7, FIGURE8, FIGURE9, FIGURE10, FIGURE12, TABLE1, case_of, label
from document import Heading, Table
from limits import best_cuts, by_setting


def verdict(holds):
    return "yes" if holds else "**no**"


def memory_shares(results):
    largest = max(row.pp for row in results.rows(TABLE1))
    of = {row.schedule: row for row in results.rows(TABLE1, pp=largest)}
    half, least, zero = (of[name].activation_gib_max for name in ("v-half", "v-min", "v-zb"))
    return [
        ("V-Half holds 1/2 of 1F1B's activations", f"{half:.3f} on {largest} devices", abs(half - 1 / 2) < 0.05),
        ("V-Min holds 1/3", f"{least:.3f} on {largest} devices", abs(least - 1 / 3) < 0.05),
        ("V-ZB holds as much as 1F1B, with almost no bubble",
         f"{zero:.3f}, bubble rate {cells.percent(of['v-zb'].bubble_rate_span)} at equal times; "
         + _smallest_bubbles(results), zero == 1 and of["v-zb"].bubble_rate_span < 0.01)]


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


def throughput(results):
    zero, half, least = (gains(results, FIGURE6, name) for name in ("V-ZB", "V-Half", "V-Min"))
    few = max(gains(results, FIGURE8, "V-ZB"))
    return [("The methods outperform 1F1B by 7% to 55% in pure pipeline settings",
             f"V-ZB by {_range(zero)} with 16p to 2p microbatches (figure 6), up to {cells.percent(few, 0)} with p (figure 8); "
             f"V-Half by {_range(half)}, V-Min by {_range(least)}",
             min(zero) <= 0.10 and few >= 0.50)]


def adapted(results):
    at = collections.defaultdict(dict)
    for row in results.rows(FIGURE8):
        at[row.model, row.microbatches][row.schedule] = row.mfu
    passed = [key for key, of in at.items() if of["v-half"] > max(of["v-zb"], of["1f1b"])]
    words = ", ".join(f"{model} at {count}" for model, count in passed) or "nowhere"
    return [("With adapted microbatch sizes V-Half passes V-ZB and 1F1B where there are many microbatches (38.5B)", words,
             any("38.5" in model for model, _ in passed))]


def repeating(results):
    rows = {(row.pp, row.plan): row for row in results.rows(FIGURE5)}
    rates = {p: (rows[p, "equal"].bubble_rate_span, rows[p, "costs"].bubble_rate_span) for p in sorted({p for p, _ in rows})}
    words = "; ".join(f"{p} devices: bubble rate {cells.percent(equal)}, and {cells.percent(costs)} where it is planned for "
                      "these times" for p, (equal, costs) in rates.items())
    return [("V-Min has a bubble in every interval where F, B and W differ", words,
             all(equal > costs for equal, costs in rates.values()))]


def drop(results):
    """Bubble rate at one half of 1F1B's memory and a little above, where there are the most microbatches."""
    words, falls = [], []
    groups = by_setting(results.rows(FIGURE9))
    for rows in groups.values():
        if rows[0].microbatches != 16 * rows[0].pp:
            continue
        of = {round(row.memory_limit_gib, 6): row.bubble_rate_span for row in rows}
        words.append(f"{rows[0].model}: {cells.percent(of[0.5])} at 0.5, {cells.percent(of[0.575])} at 0.575, "
                     f"{cells.percent(of[0.65])} at 0.65")
        falls.append((of[0.5] - of[0.575]) > 3 * (of[0.575] - of[0.65]))
    return [("The bubble rate of the adaptive schedule drops suddenly just above one half of 1F1B's memory",
             "; ".join(words), all(falls))]


def adaptive(results):
    worse, count = 0, 0
    of = {(case_of(row), row.memory_limit_gib, row.schedule): row for row in results.rows(FIGURE10)}
    for (name, limit, schedule), row in of.items():
        other = of.get((name, limit, "zb-2p"))
        if schedule == "v-adaptive" and row.status == "ok" and other.status == "ok" and limit <= 1:
            count += 1
            worse += row.bubble_rate_span > other.bubble_rate_span
    return [("At the same limit, up to 1F1B's memory, the V schedule has the smaller bubble",
             f"in {count - worse} of {count} settings and limits", worse == 0)]


SEQUENCES = {"s1024": "sequence of 1,024", "s3072": "of 3,072"}


def grid(results):
    best = best_cuts(results)
    words, is_same = [], True
    for name in dict.fromkeys(name for name, _ in best):
        of = {schedule: row for (case, schedule), row in best.items() if case == name}
        ours, theirs = (max(of, key=lambda one: of[one][column]) for column in ("mfu", "published_best_mfu"))
        words.append(f"{SEQUENCES[name]}: {ours} at {cells.percent(of[ours].mfu)}, {cells.percent(of[ours].mfu / of['1F1B'].mfu - 1)} "
                     "above 1F1B")
        is_same = is_same and ours == theirs
    return [("In the grid search V-ZB is best at a sequence of 1,024, V-Half at 3,072", "; ".join(words), is_same)]


def single_passes(results):
    rows = results.rows(FIGURE12)
    groups = collections.defaultdict(dict)
    for row in rows:
        groups[row.model, row.microbatch_size][row.tp] = row.mfu
    falls = all(of[tp] > of[2 * tp] for of in groups.values() for tp in (1, 2, 4))
    ends = [of[8] / of[1] - 1 for of in groups.values()]
    return [("MFU of single passes falls as the tensor-parallel degree grows",
             f"in all {len(groups)} rows; from tp 1 to tp 8 by {cells.percent(-max(ends), 0)} to {cells.percent(-min(ends), 0)}",
             falls)]


def of_controllable_memory(results):
    return [*memory_shares(results), *throughput(results), *adapted(results), *repeating(results), *drop(results),
            *adaptive(results), *grid(results), *single_passes(results)]


def of_zero_bubble(results):
    of = zero_bubble.settings(results)
    rates = {schedule: [(row[schedule].bubble_rate_span, row[schedule].published_bubble_rate_span) for row in of.values()]
             for schedule in zero_bubble.ORDER}
    equal = {schedule: sum(cells.rate(ours) == cells.rate(theirs) for ours, theirs in pairs)
             for schedule, pairs in rates.items()}
    handmade = [equal[schedule] for schedule in ("1f1b", "zb-h1", "zb-h2")]
    first, second = rates["zb-1p"], rates["zb-2p"]
    gains = {schedule: [zero_bubble.by_span(row[schedule]) / zero_bubble.by_span(row["1f1b"]) - 1 for row in of.values()]
             for schedule in ("zb-1p", "zb-2p")}
    return [
        ("Table 5: bubble rates of 1F1B, ZB-H1 and ZB-H2 in twelve settings",
         f"{sum(handmade)} of {3 * len(of)} equal in four decimals", sum(handmade) == 3 * len(of)),
        ("Table 5: bubble rates of ZB-1P and ZB-2P",
         f"ZB-1P equal in {equal['zb-1p']} of {len(first)}; ZB-2P at most the published rate in "
         f"{sum(ours <= theirs + 5e-5 for ours, theirs in second)} of {len(second)}",
         all(ours <= theirs + 5e-5 for ours, theirs in first + second)),
        ("Up to 15% above 1F1B at a similar memory limit, up to 30% with twice the memory",
         f"ZB-1P by {_range(gains['zb-1p'])}, ZB-2P by {_range(gains['zb-2p'])}, of the paper's pass times alone",
         max(gains["zb-1p"]) >= 0.15 and max(gains["zb-2p"]) >= 0.30)]


def of_both(results):
    return [*of_controllable_memory(results), *of_zero_bubble(results)]


def section(results):
    """Each line is worked out from the runs."""
    def table(rows):
        return Table(["the paper", "ours", "holds"], [[claim, ours, verdict(holds)] for claim, ours, holds in rows],
                     align="lll")
    return [Heading(2, "What the papers claim, and what our numbers say"),
            Heading(3, "Pipeline Parallelism with Controllable Memory, in short"), table(of_controllable_memory(results)),
            Heading(3, "Zero Bubble Pipeline Parallelism, in short"), table(of_zero_bubble(results))]
