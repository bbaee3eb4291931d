"""The part of the project's README that comes from the results, between two marks."""
import cells
import markdown
from controllable import FIGURE7, label
from document import Document, Table
from failure import Failure

BEGIN, END = "<!-- made by ./reproduce: begin -->", "<!-- made by ./reproduce: end -->"
MODEL = "38.5B"


def table(results):
    """Figure 7's largest model: MFU and activation memory, ours beside the paper's."""
    body = []
    for row in results.rows(FIGURE7):
        if not row.name.startswith(MODEL):
            continue
        is_done = row.status == "ok"
        body.append([label(row), cells.percent(row.mfu) if is_done else cells.outcome(row),
                     cells.percent(row.published_mfu),
                     cells.gib(row.activation_gib_max if is_done else None), cells.gib(row.published_activation_gib)])
    body.sort(key=lambda line: float(line[1].rstrip("%")) if line[1].endswith("%") else 0, reverse=True)
    return Table(["schedule", "MFU, ours", "MFU, paper", "activations, ours [GiB]", "paper [GiB]"], body)


def lines(results):
    """As they stand between the marks."""
    text = markdown.to_markdown(Document("", [table(results)]))
    return text[text.index("|"):].strip() + "\n"


def replaced(text, results, name):
    """The README's text with its part as these results have it."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise Failure(f"{name}: no part to write; expected the two lines '{BEGIN}' and '{END}'")
    return text[:text.index(BEGIN) + len(BEGIN)] + "\n\n" + lines(results) + "\n" + text[text.index(END):]
