"""Claims of 'Controllable Memory' that its figures make: throughput, what grows, what is sent."""
import collections

import balance
import cells
from controllable import FIGURE6, FIGURE7, label
from growth import causes, growth, idle
from in_numbers import by_schedule


def best_throughput(results):
    settings = collections.defaultdict(dict)
    for row in results.rows(FIGURE6):
        settings[row.model, row.microbatches][label(row)] = row.samples_per_s_per_gpu
    over = [of["V-ZB"] / max(speed for name, speed in of.items() if name != "V-ZB") - 1 for of in settings.values()]
    first = sum(gain > 0 for gain in over)
    return [("V-ZB has the best throughput in every setting, at 1F1B's memory",
             f"in {first} of {len(over)} settings of figure 6, by {cells.percent(min(over))} to {cells.percent(max(over))} "
             "above the next", [first == len(over), 2 * first > len(over)])]


def runs_of(results, schedule):
    """[runs, by the number of microbatches] of figure 6, a list a model."""
    of = collections.defaultdict(list)
    for row in results.rows(FIGURE6, schedule=schedule):
        of[row.model].append(row)
    return [sorted(rows, key=lambda row: row.microbatches) for rows in of.values()]


def _span(values, write):
    least, most = write(min(values)), write(max(values))
    return least if least == most else f"{least} to {most}"


def _between(rates):
    return f"between {cells.percent(min(rates))} and {cells.percent(max(rates))}"


def _two(value):
    """Two decimals; what rounds to nothing has no sign."""
    return cells.number(round(value, 2) + 0, 2)


def growing(results):
    """What V-Min idles grows with the number of microbatches, and its share of the time does not."""
    runs, cause = runs_of(results, "v-min"), causes(results)
    more, half = [growth(rows) for rows in runs], [growth(rows) for rows in runs_of(results, "v-half")]
    is_longer = all(idle(one) < idle(two) for rows in runs for one, two in zip(rows, rows[1:]))
    is_more = all(one.bubble_rate_span < two.bubble_rate_span for rows in runs for one, two in zip(rows, rows[1:]))
    first, last = ([rows[end].bubble_rate_span for rows in runs] for end in (0, -1))
    of = {key: _two(growth(cause[key, "v-min", "published"])) for key in ("both", "unequal", "transfers", "alike")}
    return [("V-Min's bubble grows with the number of microbatches",
             f"its idle time does: each microbatch more adds {_span(more, _two)} of its work on a stage (figure 6; V-Half: "
             f"{_span(half, _two)}). Its rate falls, from {_between(first)} to {_between(last)}, since start and end count less, "
             f"and {_of_paper(results)}. On 9.6B's pass times {of['both']} are added in its authors' order, without transfers {of['unequal']}, with "
             f"passes alike {of['transfers']}, with neither {of['alike']}; ours, planned for the times themselves, "
             f"{_two(growth(cause['both', 'v-min', 'costs']))}", [is_longer, is_more])]


def _of_paper(results):
    """Two published points of one setting that differ in the number of microbatches alone."""
    few, = [row for row in results.rows(FIGURE7, schedule="v-min") if row.model == "38.5B"]
    many, = [row for row in results.rows(FIGURE6, schedule="v-min", model="38.5B", microbatches=512)]
    return (f"so does the paper's, as of 38.5B its MFU is {cells.percent(few.published_mfu)} with {few.microbatches} and "
            f"{cells.percent(many.published_mfu)} with {many.microbatches}")


V_SHAPED = ("V-Min", "V-Half", "V-ZB")


def communication(results):
    ratios, added = [], collections.defaultdict(list)
    for of in [*by_schedule(results, FIGURE6).values(), *by_schedule(results, FIGURE7).values()]:
        ratios += [of[name].sent_pp_gib / of["1F1B"].sent_pp_gib for name in V_SHAPED]
        for name in ("1F1B", *V_SHAPED):
            added[name].append(of[name].exposed_pp_s / of[name].iteration_s)
    words = ", ".join(f"{name} {_span(values, cells.percent)}" for name, values in added.items())
    return [("V-shaped schedules send twice as much between devices as 1F1B, at little cost",
             f"{_span(ratios, _two)} times (figures 6 and 7); of the iteration transfers add: {words}",
             [all(abs(ratio - 2) < 1e-6 for ratio in ratios),
              all(value < COMMUNICATION for name in V_SHAPED for value in added[name])])]


COMMUNICATION = 0.02  # of an iteration: little


def of_figures(results):
    return [*best_throughput(results), *growing(results), *balance.claim(results), *communication(results)]
