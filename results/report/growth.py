"""How what a schedule idles grows with the number of microbatches, and which cause makes it."""
import collections

import cells
from controllable import NAMES
from document import Heading, Paragraph, Table

GROWTH = "controllable_memory_growth"
CAUSES = {"alike": "neither", "unequal": "F, B, W unequal", "transfers": "transfers", "both": "both"}
MAKINGS = {"equal": "equal times", "costs": "these times", "published": "equal times, by its authors' program"}


def idle(row):
    """What a stage idles from its first start to its last end, in units of its work for one microbatch.

    Of a rate b, 1 - work / span, and m microbatches that is (span - work) / (work / m) = m b / (1 - b)."""
    return row.microbatches * row.bubble_rate_span / (1 - row.bubble_rate_span)


def growth(rows):
    """What one microbatch more adds to that, between the fewest and the most of these runs."""
    first, last = (pick(rows, key=lambda row: row.microbatches) for pick in (min, max))
    return (idle(last) - idle(first)) / (last.microbatches - first.microbatches)


def causes(results):
    """{(cause, schedule, making): runs}; of a schedule that does not search, such as 1F1B, making is None."""
    of = collections.defaultdict(list)
    for row in results.rows(GROWTH):
        of[row.name.split(".")[0], row.schedule, row.making].append(row)
    return of


def table(results):
    of, body = causes(results), []
    counts = sorted({row.microbatches for rows in of.values() for row in rows})
    for (cause, schedule, making), rows in of.items():
        rates = {row.microbatches: row.bubble_rate_span for row in rows}
        body.append([NAMES[schedule], CAUSES[cause], MAKINGS.get(making, cells.MISSING),
                     *[cells.percent(rates[count]) for count in counts], cells.number(idle(min(rows, key=_count)), 2),
                     cells.number(round(growth(rows), 3) + 0, 3)])
    planned = {making: cells.number(growth(of["both", "v-min", making]), 3) for making in MAKINGS}
    body.sort(key=lambda line: list(NAMES.values()).index(line[0]))
    return [
        Heading(3, "V-Min's bubble against the number of microbatches, and what makes it grow"),
        Paragraph("9.6B's pass times on 16 devices, and the same with each cause taken away: passes of equal length, and no "
                  "transfers. The last two columns count what a stage idles in units of its work for one microbatch: with the "
                  f"fewest microbatches ({counts[0]}), and what each microbatch more adds. Of a start and an end that idle c, and "
                  "g a microbatch, the bubble rate is (c + g m) / (c + (1 + g) m): it falls with m for every c above zero, and "
                  "ends at g / (1 + g). So V-Min idles longer the more microbatches there are, and still its bubble rate falls, "
                  "to an end that V-Half does not have. With both causes away nothing grows, and each of them alone makes "
                  f"V-Min grow. With both causes V-Min grows by {planned['equal']} planned for equal times, by {planned['costs']} planned "
                  f"for these, and by {planned['published']} in the order of its authors' program."),
        Table(["schedule", "with", "planned for", *[f"m = {count}" for count in counts], "idle at the fewest",
               "more a microbatch"], body)]


def _count(row):
    return row.microbatches
