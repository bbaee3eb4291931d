"""Figures 9 and 10 of 'Controllable Memory' for the models of its table 2, on the pass times of the cluster model."""
import cells
from controllable import FIGURE9, FIGURE10, label
from document import Figure, Heading, Paragraph, Table
from limits import at_limit, by_setting

FIGURE9_MODELS, FIGURE10_MODELS = f"{FIGURE9}_models", f"{FIGURE10}_models"


def limits_of(rows):
    return sorted({row.memory_limit_gib for row in rows})


def _times(rows):
    """Pass times of a stage, which has two chunks, a line a model."""
    words = []
    for model in dict.fromkeys(row.model for row in rows):
        row = next(row for row in rows if row.model == model and row.status == "ok" and row.virtual_pp == 2)
        words.append(f"{model}, {', '.join(cells.number(2000 * row[f'pass_{kind}_s'], 1) for kind in 'fbw')} ms")
    return "; ".join(words)


def figure9(results):
    rows = results.rows(FIGURE9_MODELS)
    results.draw(f"{FIGURE9_MODELS}/by-limit", "figure9-models.svg")
    limits = limits_of(rows)
    return [
        Heading(3, "Figure 9 for the paper's own models"),
        Paragraph("The models of table 2 on the pass times of the cluster model, which no one measured: F, B and W of a stage "
                  f"take, of {_times(rows)}. Every transfer takes as long as one between nodes."),
        Figure("figure9-models.svg", "Bubble rate against the memory limit, 1F1B's memory = 1, models of table 2",
               "Lines that fall steeply up to a little above one half, and slowly from there on"),
        Table(["setting", "p", *[f"{limit:g}" for limit in limits]],
              [[name, str(of[0].pp), *[cells.percent(at_limit(of, limit)) for limit in limits]]
               for name, of in by_setting(rows).items()])]


def figure10(results):
    rows = results.rows(FIGURE10_MODELS)
    results.draw(f"{FIGURE10_MODELS}/by-limit", "figure10-models.svg")
    limits, body = limits_of(rows), []
    for name, of_setting in by_setting(rows).items():
        for schedule in ("v-adaptive", "zb-2p", "1f1b"):
            of = [row for row in of_setting if row.schedule == schedule]
            body.append([name, label(of[0]), *[cells.percent(at_limit(of, limit)) for limit in limits]])
    return [
        Heading(3, "Figure 10 for the paper's own models"),
        Paragraph("At 4p microbatches; pass times as in the table of figure 9 for these models. A dash: it does not fit."),
        Figure("figure10-models.svg", "Bubble rate of both against the memory limit, 1F1B's memory = 1, models of table 2",
               "The V schedule lies below the zero-bubble scheduler"),
        Table(["setting", "schedule", f"limit {limits[0]:g}", *[f"{limit:g}" for limit in limits[1:]]], body)]
