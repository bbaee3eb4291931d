"""Tables 1, 2, 4 and 5 of 'Controllable Memory' as far as runs alone fill them."""
import collections

import cells
from controllable import FIGURE6, NAMES, TABLE1, TABLE2, TABLE5, label
from document import Details, Heading, Paragraph, Table


# --- table 1: bubbles ---

# What a stage idles on d devices at equal times, in cells, over d: the leading term, as the README of the authors' program
# (sail-sg/zero-bubble-pipeline-parallelism) has it. Its bubble rates are B = (d-1) / (m+d-1) for 1F1B, 2/3 B, 1/2 B and 0;
# a microbatch is 6 cells.
LEADING = {"1f1b": 6, "v-min": 4, "v-half": 3, "v-zb": 0}


def generator_cells(schedule, d):
    """What the schedules of that program idle with 2d microbatches and more: 6 (d-1), and so on."""
    return {"1f1b": 6 * (d - 1), "v-min": 4 * d - (5 if d % 3 else 7), "v-half": 3 * d - (4 if d % 2 else 7),
            "v-zb": 0}[schedule]


def idle_cells(row):
    """What the stage of the longest span idles, in cells of which F, B and W of a microbatch take 6."""
    return 6 * row.microbatches * row.bubble_rate_span / (1 - row.bubble_rate_span)


def bubbles(results):
    by_schedule = collections.defaultdict(dict)
    for row in results.rows(TABLE1):
        by_schedule[row.schedule][row.pp] = row
    shapes = sorted({row.pp for row in results.rows(TABLE1)})
    body = []
    for name, of in by_schedule.items():
        body.append([NAMES[name], "ours", *[cells.number(idle_cells(of[d]), 0) for d in shapes],
                     cells.number(idle_cells(of[shapes[-1]]) / shapes[-1], 2)])
        body.append([NAMES[name], "theirs", *[str(generator_cells(name, d)) for d in shapes], str(LEADING[name])])
    return [
        Heading(3, "Table 1: bubbles"),
        Paragraph("What the stage of the longest span idles, in cells, each as long as one F, B or W of a chunk: counted in the "
                  "replay, with 8d microbatches. Theirs is what the authors' public program idles: 6 (d-1); 4d-5, or 4d-7 if 3 "
                  "divides d; 3d-7 for even d, 3d-4 for odd; 0. Over d: ours on the most devices, theirs the leading term. If d "
                  "mod 3 is 2, our V-Min idles less within the same memory."),
        Table(["schedule", "whose", *[f"d = {d}" for d in shapes], "over d"], body, align="ll" + "r" * (len(shapes) + 1))]


# --- table 2 ---

def table2(results):
    models = results.models()
    body = []
    for row in results.rows(TABLE2):
        model = models[library_name(row)]
        body.append([row.model, str(row.gpus), *[str(model[key]) for key in ("layers", "heads", "hidden")],
                     cells.number(row.model_parameters / 1e9, 2),
                     cells.relative(row.model_parameters / 1e9, float(row.model.rstrip("B")))])
    return [
        Heading(3, "Table 2: models"),
        Paragraph("Layers, heads and hidden size are the paper's, as the library's models have them. Embedding and head both "
                  "count here; the names of the models count one of them."),
        Table(["model", "GPUs", "layers", "heads", "hidden size", "parameters [billion]", "parameters over its name"], body)]


def library_name(row):
    """The scenarios name the models as the paper does."""
    return f"cm-{row.model.lower()}"


# --- table 4 ---

def _iteration(row):
    """A run's cells of table 4; words where it did not come to its end."""
    if row.status != "ok":
        return [cells.outcome(row), *[cells.MISSING] * 4]
    return [cells.number(row.samples_per_s_per_gpu, 3), cells.percent(row.mfu), cells.gib(row.memory_gib_max),
            cells.gib(row.activation_gib_max), cells.percent(row.bubble_rate_span)]


ITERATION = ["samples/s a GPU", "MFU", "memory [GiB]", "activations [GiB]", "bubble rate"]


def table4(results):
    """The setting whose MFU is published, then every run."""
    rows = results.rows(FIGURE6)
    known = next(row for row in rows if row.published_mfu is not None)
    shown = [row for row in rows if (row.model, row.microbatches) == (known.model, known.microbatches)]
    recomputing = [row.activation_gib_max for row in rows if row.recompute == "full"]
    return [
        Heading(3, "Table 4: throughput, MFU and memory of all runs of figure 6"),
        Paragraph("Memory is the peak in all, on the fullest stage, with parameters, gradients and optimizer state. Of the "
                  f"published table, MFU of {known.model} with {known.microbatches} microbatches is at hand, without ZB-1P's; "
                  f"and that 1F1B-R holds 1 GB of activations: ours {cells.gib(min(recomputing))} to "
                  f"{cells.gib(max(recomputing))} GiB."),
        Table(["schedule", *ITERATION, "MFU, paper", "difference [points]"],
              [[label(row), *_iteration(row), cells.percent(row.published_mfu), cells.points(row.mfu, row.published_mfu)]
               for row in shown], f"{known.model}, {known.microbatches} microbatches"),
        *[Details(f"All runs of {name}", [Table(
            ["microbatches", "schedule", *ITERATION],
            [[str(row.microbatches), label(row), *_iteration(row)] for row in rows if row.model == name])])
          for name in dict.fromkeys(row.model for row in rows)]]


# --- table 5 ---

TIMED_LAYERS = 4  # of a pass, in the scenario


def pass_flops(row, hidden):
    """Model FLOPs of one pass of F, B and W. B and W are each as many as F, but for attention, which has no weights: of its
    4 s^2 h a layer and sequence B has twice as many and W none."""
    of_all = row.mfu * row.peak_tflops * 1e12 * row.iteration_s / row.microbatches
    attention = TIMED_LAYERS * 4 * row.microbatch_size * row.seq_len**2 * hidden
    return of_all / 3, of_all / 3 + attention, of_all / 3 - attention


def table5(results):
    models = results.models()
    body = []
    for row in results.rows(TABLE5):
        times = row.pass_f_s, row.pass_b_s, row.pass_w_s
        rates = [flops / time / (row.peak_tflops * 1e12)
                 for flops, time in zip(pass_flops(row, models[library_name(row)]["hidden"]), times)]
        f, b, w = [cells.number(1000 * time / TIMED_LAYERS, 2) for time in times]
        theirs = row.published_pass_f_s
        body.append([row.model, str(row.microbatch_size),
                     f, cells.number(None if theirs is None else 1000 * theirs / TIMED_LAYERS, 2),
                     cells.relative(row.pass_f_s, theirs), b, w, *[cells.percent(rate) for rate in rates],
                     cells.percent(row.mfu), cells.percent(row.published_mfu), cells.points(row.mfu, row.published_mfu)])
    return [
        Heading(3, "Table 5: single passes"),
        Paragraph("Times of a layer, and MFU of F, B and W each and together. Of the published table F of 9.6B and the mean, to "
                  "about a point, are at hand."),
        Table(["model", "microbatch size", "F [ms]", "paper", "difference", "B [ms]", "W [ms]", "MFU of F", "of B", "of W",
               "mean", "paper", "difference [points]"], body)]
