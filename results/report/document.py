"""A page as plain data: blocks in a list. markdown.py and webpage.py write it, each in its own form.

Text in blocks is a small part of Markdown: `code`, **bold**, [text](link), and a backslash before a character that is
to stand for itself. Everything else is plain. A link is a web address, #the-slug-of-a-heading, or a path relative to
the folder of the page; so is the path of a picture.
"""
import dataclasses
import re


@dataclasses.dataclass
class Heading:
    level: int  # 2 to 4; the document's title is the 1
    text: str


@dataclasses.dataclass
class Paragraph:
    text: str


@dataclasses.dataclass
class Bullets:
    items: list


@dataclasses.dataclass
class Table:
    """Cells are text. `align`: a letter a column, l, r or c; without it columns of numbers stand to the right."""
    header: list
    rows: list
    caption: str | None = None
    align: str | None = None


@dataclasses.dataclass
class Figure:
    """`path`: of an svg, relative to the folder of the page, with slashes. `alt` is plain text."""
    path: str
    caption: str
    alt: str
    kind: str = "chart"  # or "timeline": one to zoom in


@dataclasses.dataclass
class Code:
    text: str


@dataclasses.dataclass
class Details:
    """Blocks that are folded away under a line of text."""
    summary: str
    blocks: list


@dataclasses.dataclass
class Document:
    title: str
    blocks: list


class DocumentError(Exception):
    """A block that cannot be written, in words."""


# --- what both forms need to know ---

def all_blocks(blocks):
    """Every block, those in Details too, in order."""
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from all_blocks(block.blocks)


def figures(document):
    return [block for block in all_blocks(document.blocks) if isinstance(block, Figure)]


NUMBER = re.compile(r"[-+\u2212\u00b1]?\d[\d,.]*([eE][-+]?\d+)?( ?[A-Za-z%/\u00d7]{1,9})?")
NO_NUMBER = {"", "-", "\u2013", "\u2212", "n/a", "OOM", "out of memory", "none"}


def plain(text):
    """The text without its marks."""
    return _plain_of(spans(text))


def _plain_of(pieces):
    return "".join(_plain_of(piece[1]) if isinstance(piece[1], list) else piece[1] for piece in pieces)


def alignment(table):
    """A letter a column: r where it holds numbers and nothing else but words for the lack of one."""
    columns = len(table.header)
    for row in table.rows:
        if len(row) != columns:
            raise DocumentError(f"table '{table.caption or table.header[0]}': a row of {len(row)} cells; expected "
                                f"{columns}")
    if table.align:
        if len(table.align) != columns or set(table.align) - set("lrc"):
            raise DocumentError(f"table '{table.caption or table.header[0]}': align '{table.align}'; expected "
                                f"{columns} letters of l, r and c")
        return table.align
    return "".join(_column_alignment([row[i] for row in table.rows]) for i in range(columns))


def _column_alignment(cells):
    texts = [plain(cell).strip() for cell in cells]
    numbers = [text for text in texts if NUMBER.fullmatch(text)]
    others = [text for text in texts if text not in NO_NUMBER and not NUMBER.fullmatch(text)]
    return "r" if numbers and not others else "l"


class Slugs:
    """Names of headings in links, as GitHub makes them: unique in a page."""

    def __init__(self):
        self.counts = {}

    def of(self, text):
        slug = re.sub(r"[^\w\- ]", "", plain(text).lower()).replace(" ", "-")
        count = self.counts.get(slug, 0)
        self.counts[slug] = count + 1
        return f"{slug}-{count}" if count else slug


# --- text within a line ---

SPAN = re.compile(r"\\(?P<escaped>[!-/:-@\[-`{-~])"
                  r"|(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
                  r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*"
                  r"|\[(?P<label>(?:[^\[\]\\]|\\.)+)\]\((?P<link>[^\s()]+)\)", re.DOTALL)


def spans(text):
    """The text's pieces: ("text", TEXT), ("code", TEXT), ("bold", PIECES), ("link", PIECES, ADDRESS)."""
    pieces, end = [], 0
    for match in SPAN.finditer(text):
        _add_text(pieces, text[end:match.start()])
        end = match.end()
        if match["escaped"]:
            _add_text(pieces, match["escaped"])
        elif match["code"]:
            pieces.append(("code", match["code"].strip() or match["code"]))
        elif match["bold"]:
            pieces.append(("bold", spans(match["bold"])))
        else:
            pieces.append(("link", spans(match["label"]), match["link"]))
    _add_text(pieces, text[end:])
    return pieces


def _add_text(pieces, text):
    if text and pieces and pieces[-1][0] == "text":
        pieces[-1] = ("text", pieces[-1][1] + text)
    elif text:
        pieces.append(("text", text))
