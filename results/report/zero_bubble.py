"""The tables and figures of 'Zero Bubble Pipeline Parallelism' (arXiv 2401.10241), numbered as in its ICLR version."""
import collections

import cells
from controllable import NAMES, case_of, label, timeline
from document import Details, Figure, Heading, Paragraph, Table

TABLE2, TABLE5, TABLE9 = "zero_bubble_table2", "zero_bubble_table5", "zero_bubble_table9"
MEMORY, V, V_MEMORY = "zero_bubble_memory", "zero_bubble_v", "zero_bubble_v_memory"


# --- table 2, figures 2 and 3 ---

def table2(results):
    rows = results.rows(TABLE2)
    figures = [timeline(results, TABLE2, row, f"zero-bubble-{row.schedule}.svg", f"{label(row)}: figures 2 and 3")
               for row in rows if case_of(row) == "equal"]
    results.draw(f"{TABLE2}/formulas", "zero-bubble-formulas.svg")
    body = [[case_of(row), label(row), cells.percent(row.bubble_rate_span, 2),
             cells.percent(row.published_bubble_rate_span, 2),
             cells.points(row.bubble_rate_span, row.published_bubble_rate_span), cells.number(row.activation_gib_max, 2),
             cells.number(row.published_activation_gib, 2),
             cells.difference(row.activation_gib_max, row.published_activation_gib, 2)] for row in rows]
    return [
        Heading(3, "Table 2, and figures 2 and 3: the handcrafted schedules"),
        Paragraph("The paper's formulas, at the pass times of table 6 and the memory of table 1, beside the replay; no "
                  "transfers, and all stages alike, as the formulas want it."),
        Details("Figures 2 and 3: 1F1B, ZB-H1 and ZB-H2 on four devices", figures),
        Figure("zero-bubble-formulas.svg", "Bubble rate and activation memory; hollow: the paper's formulas",
               "Bars of three schedules in five settings"),
        Table(["setting", "schedule", "bubble rate", "formula", "difference [points]", "activations [GiB]", "formula",
               "difference"], body)]


# --- tables 3 to 6 ---

ORDER = ("1f1b", "1f1b-interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p")


def settings(results):
    """{setting: {schedule: run}} of table 5."""
    of = collections.defaultdict(dict)
    for row in results.rows(TABLE5):
        of[case_of(row)][row.schedule] = row
    return of


def table5(results):
    body = []
    for name, of in settings(results).items():
        body.append([name, *[f"{cells.rate(of[s].bubble_rate_span)} / {cells.rate(of[s].published_bubble_rate_span)}"
                             for s in ORDER]])
    summary = []
    for schedule in ORDER:
        pairs = [(of[schedule].bubble_rate_span, of[schedule].published_bubble_rate_span)
                 for of in settings(results).values()]
        differences = [ours - published for ours, published in pairs]
        equal = sum(cells.rate(ours) == cells.rate(published) for ours, published in pairs)
        summary.append([NAMES[schedule], f"{equal} of {len(pairs)}", cells.difference(min(differences), 0, 4),
                        cells.difference(max(differences), 0, 4)])
    return [
        Heading(3, "Table 5: bubble rates, from the pass times of table 6"),
        Paragraph("Ours / published, all 12 settings and 6 schedules."),
        Table(["setting", *[NAMES[s] for s in ORDER]], body, align="l" + "r" * len(ORDER)),
        Table(["schedule", "equal in four decimals", "least difference", "largest difference"], summary)]


def by_span(row):
    """Samples a second and GPU where iterations follow each other without a barrier, so that the span is what one takes."""
    return row.samples_per_s_per_gpu * (1 - row.bubble_rate_span) / (1 - row.bubble_rate_makespan)


def ranges_of_table4(results):
    """What follows from pass times over what was measured: the least and the most, schedule by schedule."""
    excess = collections.defaultdict(list)
    for of in settings(results).values():
        for schedule, row in of.items():
            if row.published_samples_per_s_per_gpu is not None:
                excess[schedule].append(by_span(row) / row.published_samples_per_s_per_gpu - 1)
    return ", ".join(f"{NAMES[schedule]} {cells.percent(min(of), 0)} to {cells.percent(max(of), 0)}"
                     for schedule, of in excess.items())


def range_of_cluster(results, scenario, ours, published):
    """Differences of whole iterations from the cluster model, relative: the least and the most."""
    excess = [row[ours] / row[published] - 1 for row in results.rows(scenario) if row[published] is not None]
    return f"{cells.relative(1 + min(excess), 1)} to {cells.relative(1 + max(excess), 1)}"


def table4(results):
    body = []
    for name, of in settings(results).items():
        for schedule, row in of.items():
            if row.published_samples_per_s_per_gpu is None:
                continue
            ours = by_span(row)
            body.append([name, NAMES[schedule], cells.number(ours, 3),
                         cells.number(row.published_samples_per_s_per_gpu, 2),
                         cells.relative(ours, row.published_samples_per_s_per_gpu),
                         cells.gib(row.activation_gib_max), cells.gib(row.published_memory_gib)])
    return [
        Heading(3, "Table 4 from the paper's pass times: throughput and memory"),
        Paragraph("Samples a second and GPU as they follow from the paper's own pass times, iterations following each other "
                  "without a barrier, beside those that it measured; activation memory beside the paper's memory in all, "
                  "which has parameters, gradients and optimizer state in it."),
        Table(["setting", "schedule", "samples/s", "paper", "difference", "activations [GiB]", "memory in all, paper [GB]"],
              body)]


# --- table 9, figure 7 ---

def table9(results):
    results.draw(f"{TABLE9}/by-microbatches", "zero-bubble-few.svg")
    gains = collections.defaultdict(dict)
    for row in results.rows(TABLE9):
        gains[case_of(row)][row.schedule] = row
    body = []
    for name, of in gains.items():
        ours, theirs = (of["zb-2p"][column] / of["1f1b"][column] - 1
                        for column in ("samples_per_s_per_gpu", "published_samples_per_s_per_gpu"))
        body.append([name, *[cells.number(of[s][column], 2) for s in ("1f1b", "zb-2p")
                             for column in ("samples_per_s_per_gpu", "published_samples_per_s_per_gpu")],
                     cells.percent(ours), cells.percent(theirs), cells.points(ours, theirs)])
    return [
        Heading(3, "Table 9: few microbatches"),
        Paragraph("Samples a second and GPU, and what ZB-2P gains over 1F1B. From the pass times of table 6 at m = 3p (none are "
                  "published for so few microbatches), from the first start to the last end of all stages."),
        Figure("zero-bubble-few.svg", "Throughput with no more microbatches than devices; hollow: the paper's",
               "ZB-2P above 1F1B in three panels"),
        Table(["setting", "1F1B", "paper", "ZB-2P", "paper", "gain", "paper", "difference [points]"], body)]


def figure7(results):
    results.draw(f"{MEMORY}/by-limit", "zero-bubble-memory.svg")
    return [
        Heading(3, "Figure 7: bubble rate against the memory limit"),
        Paragraph("From the pass times of table 6. At a limit of 1 the search is the paper's ZB-1P, at 2 its ZB-2P, and the "
                  "published rates are those of table 5; the paper gives no numbers between."),
        Figure("zero-bubble-memory.svg", "Bubble rate of the search against its memory limit, 1F1B's memory = 1; hollow: table 5",
               "Lines that fall to nearly zero at twice 1F1B's memory"),
        _published_points(results.rows(MEMORY))]


def _published_points(rows):
    return Table(["setting", "schedule", "limit", "bubble rate", "paper", "difference [points]"],
                 [[case_of(row).rsplit("-", 1)[0], label(row), cells.number(row.memory_limit_gib, 2),
                   cells.percent(row.bubble_rate_span, 2), cells.percent(row.published_bubble_rate_span, 2),
                   cells.points(row.bubble_rate_span, row.published_bubble_rate_span)]
                  for row in rows if row.published_bubble_rate_span is not None])


# --- the V of the arXiv version ---

def with_v(results):
    results.draw(f"{V}/by-microbatches", "zero-bubble-v.svg")
    body = [[case_of(row), label(row), cells.percent(row.bubble_rate_span, 2),
             cells.percent(row.published_bubble_rate_span, 2),
             cells.points(row.bubble_rate_span, row.published_bubble_rate_span), cells.gib(row.activation_gib_max),
             cells.number(row.samples_per_s_per_gpu, 2), cells.number(row.published_samples_per_s_per_gpu, 2)]
            for row in results.rows(V)]
    return [
        Heading(3, "ZB-V: tables 6 and 8 of the arXiv version"),
        Paragraph("The pass times of table 8 are in no table of the paper: they are from its authors' public program. Samples a "
                  "second and GPU follow from them alone, from the first start to the last end of all stages; those published "
                  "were measured."),
        Figure("zero-bubble-v.svg", "Bubble rate and activation memory of ZB-V beside schedules without a V; hollow: the paper's",
               "ZB-V has the smallest bubble at 1F1B's memory"),
        Table(["setting", "schedule", "bubble rate", "paper", "difference [points]", "activations [GiB]", "samples/s",
               "paper"], body)]


def v_memory(results):
    results.draw(f"{V_MEMORY}/by-limit", "zero-bubble-v-memory.svg")
    return [
        Heading(3, "ZB-V against the memory limit: figure 9 of the arXiv version"),
        Paragraph("At a limit of 1 the search with a V is the paper's ZB-V; beside it the rate of table 8. Pass times as there."),
        Figure("zero-bubble-v-memory.svg", "Bubble rate of both searches against the memory limit, 1F1B's memory = 1",
               "The search with a V lies below the one without, up to twice 1F1B's memory"),
        _published_points(results.rows(V_MEMORY))]


# --- throughput of whole iterations ---

THROUGHPUT, V_THROUGHPUT = "zero_bubble_throughput", "zero_bubble_v_throughput"


def _throughput(results, scenario):
    return Table(["model", "schedule", "microbatch size", "microbatches", "waits for the norm", "samples/s", "paper",
                  "difference", "memory [GiB]", "paper", "difference"],
                 [[row.model, label(row), str(row.microbatch_size), str(row.microbatches),
                   "yes" if "waits" in row.name or row.schedule.startswith("1f1b") else "no",
                   cells.number(row.samples_per_s_per_gpu, 2), cells.number(row.published_samples_per_s_per_gpu, 2),
                   cells.relative(row.samples_per_s_per_gpu, row.published_samples_per_s_per_gpu),
                   cells.gib(row.memory_gib_max), cells.gib(row.published_memory_gib),
                   cells.relative(row.memory_gib_max, row.published_memory_gib) if row.published_memory_gib else cells.MISSING]
                  for row in results.rows(scenario)])


def throughput(results):
    return [
        Heading(3, "Tables 4, 7 and 8 from the cluster model: throughput and memory"),
        Paragraph("Whole iterations at m = 3p from model, GPUs and network alone, with memory in all; no pass time of the "
                  "paper goes in. Its GB are taken as GiB. The overhead of passes is fitted to 1F1B's throughput in table 4."),
        _throughput(results, THROUGHPUT)]


def v_throughput(results):
    return [
        Heading(3, "ZB-V from the cluster model: tables 6 and 7 of the arXiv version"),
        Paragraph("At m = 4p, as table 7 has it; ZB-2P takes half the microbatch size and twice as many. All else is as in "
                  "'Tables 4, 7 and 8', above."),
        _throughput(results, V_THROUGHPUT)]


PARTS = [((TABLE2,), table2), ((TABLE5,), table5), ((TABLE5,), table4), ((THROUGHPUT,), throughput), ((TABLE9,), table9), ((MEMORY,), figure7),
         ((V,), with_v), ((V_MEMORY,), v_memory), ((V_THROUGHPUT,), v_throughput)]
