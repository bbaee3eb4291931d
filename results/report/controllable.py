"""The tables and figures of 'Pipeline Parallelism with Controllable Memory' (arXiv 2405.15362)."""
import collections

import cells
from document import Details, Figure, Heading, Paragraph, Table

TIMELINES, TABLE1, TABLE2, TABLE3, TABLE5 = (f"controllable_memory_{name}" for name in
                                             ("timelines", "table1", "table2", "table3", "table5"))
TABLE3_RECOMPUTED = f"{TABLE3}_r"
FIGURE5, FIGURE6, FIGURE7, FIGURE8 = (f"controllable_memory_figure{n}" for n in (5, 6, 7, 8))
FIGURE9, FIGURE10, FIGURE12 = (f"controllable_memory_figure{n}" for n in (9, 10, 12))

# As the paper spells them; the schedule's name is the command's.
NAMES = {"1f1b": "1F1B", "1f1b-r": "1F1B-R", "eager-1f1b": "Eager 1F1B", "gpipe": "GPipe", "gems": "GEMS",
         "chimera": "Chimera", "1f1b-interleaved": "1F1B-I", "1f1b-v": "1F1B-V", "zb-h1": "ZB-H1", "zb-h2": "ZB-H2",
         "zb-1p": "ZB-1P", "zb-2p": "ZB-2P", "zb-v": "ZB-V", "zb-two-thirds": "ZB in two thirds",
         "1f1b-interleaved-low-memory": "1F1B-I, less memory", "v-min": "V-Min", "v-half": "V-Half", "v-zb": "V-ZB",
         "v-adaptive": "V, adaptive"}


def label(row):
    """The schedule as the paper names it; recomputation of all layers makes it another one there."""
    recomputes = row.recompute == "full" and row.schedule == "1f1b"
    return NAMES[row.schedule] + ("-R" if recomputes else "")


def case_of(row):
    """The first word of a run's name: the model or the shape."""
    return row.name.split("." + row.schedule)[0]


# --- blocks and schedules: figures 1 to 4, 11, 14, 16 to 18 ---

SHOWN = ("1f1b", "v-min", "v-half", "v-zb")


def timeline(results, scenario, row, path, caption):
    results.draw(f"{scenario}/{row.name}", path)
    return Figure(path, caption, caption, "timeline")


def timelines(results):
    rows = results.rows(TIMELINES)
    figures = {row.schedule: timeline(results, TIMELINES, row, f"schedule-{row.schedule}.svg",
                                      f"{label(row)}: its block, how it repeats, the schedule, and its memory")
               for row in rows}
    table = Table(["schedule", "bubble rate (span)", "bubble rate (makespan)", "activation memory, 1F1B's = 1"],
                  [[label(row), cells.percent(row.bubble_rate_span), cells.percent(row.bubble_rate_makespan),
                    cells.number(row.activation_gib_max, 3)] for row in rows])
    return [
        Heading(3, "Figures 1 to 4, 11, 14 and 16 to 18: blocks, and the schedules they make"),
        Paragraph("Four devices, eight microbatches, F, B and W of equal length. A block repeats every interval; squeezed, "
                  "and reordered where it starts and ends, the repetitions are the schedule. Figure 16 has three of the gallery: "
                  "1F1B-V and the zero-bubble schedule that come to two thirds of 1F1B's memory where there are many devices, "
                  "and 1F1B-I with less memory."),
        *[figures[name] for name in SHOWN],
        Details("The gallery: all other schedules", [figures[row.schedule] for row in rows if row.schedule not in SHOWN]),
        table]


# --- table 1 ---

TRACED = 32  # devices of the runs whose blocks are kept

# Of the paper, for d devices: the interval, and the longest lifespan, in passes of a chunk where a stage has two.
LIFESPANS = {"1f1b": 6, "v-min": 4, "v-half": 6, "v-zb": 12}


def block_of(results, row):
    """(interval, longest lifespan) of a run's building block, in passes of a chunk where a stage has two."""
    passes = [event for event in results.trace(TABLE1, row.name) if event.event == "block"]
    unit = 2 / row.virtual_pp
    starts, ends = {}, collections.defaultdict(int)
    for event in passes:
        held = event.device, event.chunk, event.microbatch
        if event.kind == "F":
            starts[held] = event.start_cells
        ends[held] = max(ends[held], event.end_cells)
    return passes[0].interval_cells * unit, max(ends[held] - start for held, start in starts.items()) * unit


def table1(results):
    rows = results.rows(TABLE1)
    shapes = sorted({row.pp for row in rows})
    by_schedule = collections.defaultdict(dict)
    for row in rows:
        by_schedule[row.schedule][row.pp] = row
    body, lives = [], []
    for name, of in by_schedule.items():
        published = of[shapes[-1]].published_activation_gib
        body.append([NAMES[name], *[cells.number(of[p].activation_gib_max, 3) for p in shapes],
                     cells.number(published, 3), cells.difference(of[shapes[-1]].activation_gib_max, published, 3)])
        interval, lifespan = block_of(results, of[TRACED])
        lives.append([NAMES[name], f"{interval:g}", f"{lifespan:g}", f"{lifespan / TRACED:.2f} d", f"{LIFESPANS[name]} d"])
    results.draw(f"{TABLE1}/memory", "memory-by-devices.svg")
    return [
        Heading(3, "Table 1: activation memory of the blocks"),
        Paragraph("Peak activation memory as a fraction of 1F1B's, counted in the replay. The paper's figures are the limit "
                  "for many devices; what ours has above them falls as 1/p."),
        Table(["schedule", *[f"p = {p}" for p in shapes], "paper", f"difference at {shapes[-1]}"], body),
        Figure("memory-by-devices.svg", "Activation memory as a fraction of 1F1B's, against the number of devices",
               "Lines that fall towards 1/3 for V-Min and 1/2 for V-Half"),
        Paragraph(f"The blocks on d = {TRACED} devices, in passes of a chunk (those of 1F1B, which has one chunk, are twice "
                  "as long), beside the paper's formulas."),
        Table(["schedule", "interval", "longest lifespan", "lifespan / d", "paper"], lives)]


# --- figure 5 ---

PLANNED = {"equal": "planned for equal times", "costs": "planned for these times", "published": "by its authors' program"}
FIGURE5_FILES = {"costs": "planned-costs", "published": "published"}


def figure5(results):
    rows = results.rows(FIGURE5)
    blocks = [
        Heading(3, "Figure 5: V-Min's bubble that repeats"),
        Paragraph("V-Min and V-Half as their authors' public program orders them, for equal times, at times of 3, 4 and 2: every "
                  "interval of V-Min has its bubble, and V-Half's has none. With V-Min planned for these times within the same "
                  "memory, much of it goes. What V-Half idles is where it starts and ends. Planned for equal times: searched here, "
                  "as the program's order is not.")]
    for row in rows:
        if row.pp == 4 and (row.making == "published" or (row.schedule, row.making) == ("v-min", "costs")):
            blocks.append(timeline(results, FIGURE5, row, f"{row.schedule}-{FIGURE5_FILES[row.making]}.svg",
                                   f"{label(row)} at unequal times, {PLANNED[row.making]}"))
    blocks.append(Table(["schedule", "devices", "microbatches", "order", "bubble rate (span)",
                         "activation memory, 1F1B's = 1"],
                        [[label(row), str(row.pp), str(row.microbatches), PLANNED[row.making],
                          cells.percent(row.bubble_rate_span), cells.number(row.activation_gib_max, 3)] for row in rows]))
    return blocks


# --- figures 6 and 7 ---

RECOMPUTES = "'1f1b, full': 1F1B-R, which recomputes all"

def figure6(results):
    results.draw(f"{FIGURE6}/by-microbatches", "figure6.svg")
    return [
        Heading(3, "Figure 6: MFU and activation memory against the number of microbatches"),
        Figure("figure6.svg", f"MFU and activation memory of six schedules, three models; {RECOMPUTES}",
               "MFU rises with the number of microbatches; activation memory does not")]


def figure7(results):
    body = []
    for row in results.rows(FIGURE7):
        is_done = row.status == "ok"
        body.append([row.name.split(".1f1b")[0].split(".v-")[0].split(".zb")[0], label(row),
                     cells.percent(row.mfu) if is_done else cells.outcome(row), cells.percent(row.published_mfu),
                     cells.points(row.mfu, row.published_mfu), cells.gib(row.activation_gib_max if is_done else None),
                     cells.gib(row.published_activation_gib),
                     cells.difference(row.activation_gib_max if is_done else None, row.published_activation_gib, 1)])
    results.draw(f"{FIGURE7}/pareto", "figure7.svg")
    return [
        Heading(3, "Figure 7: MFU and activation memory, same microbatch size"),
        Paragraph("The paper's are read off its plot, to about 0.7 points and 1.5 GB; there, too, ZB-2P on 38.5B is out of "
                  "memory."),
        Figure("figure7.svg", f"MFU against activation memory; hollow: read off the paper's plot; {RECOMPUTES}",
               "Points of eight schedules in three panels, ours beside the paper's"),
        Table(["model", "schedule", "MFU", "paper", "difference [points]", "activations [GiB]", "paper", "difference"], body)]
