"""The rest of 'Controllable Memory': microbatch sizes, memory limits, tensor parallelism and the grid search."""
import collections

import cells
from controllable import FIGURE8, FIGURE9, FIGURE10, FIGURE12, TABLE3, TABLE3_RECOMPUTED, case_of, label
from document import Details, Figure, Heading, Paragraph, Table


# --- figure 9: the drop above one half ---

def at_limit(rows, limit):
    """The bubble rate of the run with this memory limit, in units of 1F1B's; None where it does not fit."""
    found = [row for row in rows if abs(row.memory_limit_gib - limit) < 1e-9]
    return found[0].bubble_rate_span if len(found) == 1 else None


def by_setting(rows):
    """Runs by the setting that they share, in order."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[case_of(row)].append(row)
    return groups


SHOWN = (0.4, 0.5, 0.525, 0.55, 0.575, 0.6, 0.65, 0.8, 1.0)


def _times_of_others():
    return Paragraph("Devices and microbatches are the figure's. The pass times of its models are not published: these are of "
                     "6.2B, 14.6B and 28.3B on as many devices, measured by the same authors, from their public program. A "
                     "search finds no optimum: now and then it does worse with more memory.")


def figure9(results):
    results.draw(f"{FIGURE9}/by-limit", "figure9.svg")
    body = [[name, str(rows[0].pp), *[cells.percent(at_limit(rows, limit)) for limit in SHOWN]]
            for name, rows in by_setting(results.rows(FIGURE9)).items()]
    return [
        Heading(3, "Figure 9: bubble rate of the adaptive schedule against the memory limit"),
        _times_of_others(),
        Figure("figure9.svg", "Bubble rate against the memory limit, 1F1B's memory = 1",
               "Lines that fall steeply up to a little above one half, and slowly from there on"),
        Table(["setting", "p", *[f"{limit:g}" for limit in SHOWN]], body)]


def figure10(results):
    results.draw(f"{FIGURE10}/by-limit", "figure10.svg")
    body = []
    for name, rows in by_setting(results.rows(FIGURE10)).items():
        for schedule in ("v-adaptive", "zb-2p"):
            of = [row for row in rows if row.schedule == schedule]
            body.append([name, label(of[0]), *[cells.percent(at_limit(of, limit)) for limit in (0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0)]])
    return [
        Heading(3, "Figure 10: the adaptive V schedule beside the zero-bubble scheduler"),
        Paragraph("The zero-bubble scheduler is ZB-2P with the limit put on it. Settings and pass times are figure 9's. 1F1B, "
                  "a level line in the picture, does not fit below 1."),
        Figure("figure10.svg", "Bubble rate of both against the memory limit, 1F1B's memory = 1",
               "The V schedule lies below, up to twice 1F1B's memory, where both end"),
        Table(["setting", "schedule", "limit 0.4", "0.5", "0.6", "0.8", "1", "1.4", "2"], body)]


# --- figure 8 ---

def figure8(results):
    results.draw(f"{FIGURE8}/by-microbatches", "figure8.svg")
    largest = {}
    for row in results.rows(FIGURE8):
        largest[row.model] = max(largest.get(row.model, 0), row.microbatches)
    return [
        Heading(3, "Figure 8: adapted microbatch sizes"),
        Paragraph("V-Half takes microbatches twice as large as 1F1B's, V-Min three times, so that all hold about as much."),
        Figure("figure8.svg", "MFU and activation memory at adapted microbatch sizes, against the number of microbatches",
               "V-Half reaches V-ZB where there are many microbatches; activation memory is nearly the same for all"),
        Table(["model", "microbatches", "schedule", "microbatch size", "MFU", "activations [GiB]"],
              [[row.model, str(row.microbatches), label(row), str(row.microbatch_size), cells.percent(row.mfu),
                cells.gib(row.activation_gib_max)]
               for row in results.rows(FIGURE8) if row.microbatches == largest[row.model]])]


# --- figure 12: single passes ---

def with_published(ours, published):
    return cells.percent(ours) + (f" ({cells.percent(published)})" if published is not None else "")


def figure12(results):
    rows = results.rows(FIGURE12)
    degrees = sorted({row.tp for row in rows})
    results.draw(f"{FIGURE12}/by-tp", "figure12.svg")
    body = []
    for model in dict.fromkeys(row.model for row in rows):
        for size in sorted({row.microbatch_size for row in rows}):
            of = {row.tp: row for row in rows if row.model == model and row.microbatch_size == size}
            body.append([model, str(size), *[with_published(of[tp].mfu, of[tp].published_mfu) for tp in degrees]])
    return [
        Heading(3, "Figure 12: MFU of single passes against the tensor-parallel degree"),
        Paragraph("The paper's in brackets, where a point is known: read off its plot by eye, to about a point. At a "
                  "sequence of 1,024 the lowest and the highest bar are taken for microbatches of 1 and 8."),
        Figure("figure12.svg", "MFU of single passes against the tensor-parallel degree", "Lines that fall as TP grows"),
        Table(["model", "microbatch size", *[f"tp {tp}" for tp in degrees]], body)]


# --- table 3: the grid search ---

def grid_runs(results):
    """(case, label, run) of table 3. The paper's grid recomputes with 1F1B alone."""
    return [(case_of(row).removesuffix("-r"), label(row), row)
            for row in [*results.rows(TABLE3), *results.rows(TABLE3_RECOMPUTED)]]


def best_cuts(results):
    """{(case, label): the run of the highest MFU}, of the runs that fit."""
    best = {}
    for case, name, row in grid_runs(results):
        if row.status == "ok" and ((case, name) not in best or row.mfu > best[case, name].mfu):
            best[case, name] = row
    return best


def table3(results):
    best, runs = best_cuts(results), grid_runs(results)
    body = [_line_of_table3(best, case, name) for case in dict.fromkeys(case for case, _, _ in runs) for name in GRID]
    count, possible, fitting = (len(runs), sum(row.status != "infeasible" for _, _, row in runs),
                                sum(row.status == "ok" for _, _, row in runs))
    return [
        Heading(3, "Table 3: grid search over ways to cut 98.5B over 40 GPUs"),
        Paragraph(f"The best of {count} runs, a schedule, a sequence length and a way to cut each; {possible} of them "
                  f"can be, and {fitting} of those fit in memory. Bold: the best schedule, ours and the paper's."),
        Paragraph("Of sequences of 16,384 the paper's values are not at hand, nor its batch. Ours assume 160 sequences, as at "
                  "1,024, and learned positions for a whole sequence, where the other lengths have a table of 3,072."),
        Table(["sequence", "schedule", "best MFU", "paper", "difference [points]", "our cut", "memory [GiB]"], body)]


def _line_of_table3(best, case, name):
    row, of = best.get((case, name)), [one for key, one in best.items() if key[0] == case]
    if row is None:
        return [case, name, "out of memory", cells.MISSING, cells.MISSING, "none fits", cells.MISSING]
    published = [one.published_best_mfu for one in of if one.published_best_mfu is not None]
    return [case, _bold(name, row.mfu == max(one.mfu for one in of)), cells.percent(row.mfu, 2),
            _bold(cells.percent(row.published_best_mfu, 2), bool(published) and row.published_best_mfu == max(published)),
            cells.points(row.mfu, row.published_best_mfu),
            f"dp {row.dp}, tp {row.tp}, pp {row.pp}, microbatches of {row.microbatch_size}", cells.gib(row.memory_gib_max)]


def _bold(text, is_bold):
    return f"**{text}**" if is_bold else text


GRID = ("1F1B", "1F1B-R", "ZB-1P", "V-Half", "V-Min", "V-ZB")


def raw_grid(results):
    """Tables 6 and 7: every cut, one folded table a sequence length; cuts that no schedule fits are left out."""
    grid = collections.defaultdict(dict)
    for case, name, row in grid_runs(results):
        if row.status == "ok":
            cut = f"dp {row.dp}, tp {row.tp}, pp {row.pp}", row.microbatch_size
            grid[case].setdefault(cut, {})[name] = row.mfu
    tables = [Details(f"Every cut, {name}", [
        Table(["cut", "microbatch size", *GRID],
              [[cut, str(size), *[cells.percent(of.get(schedule), 2) for schedule in GRID]]
               for (cut, size), of in cuts.items()])]) for name, cuts in grid.items()]
    return [Heading(3, "Tables 6 and 7: the whole grid"),
            Paragraph("MFU of every cut that can be; a dash: out of memory, or not possible with this schedule. The paper's "
                      "own cells are not at hand."),
            *tables]
