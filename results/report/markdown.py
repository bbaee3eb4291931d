"""A document as Markdown, as GitHub reads it: tables in columns, pictures by their path, folded parts as <details>."""
import re

import document as d
import webpage

NOTE = "<!-- Made by ./reproduce from its results file; changes are made in results/report/paper.py. -->"


def to_markdown(document):
    """The whole page, ending in one newline. Same document, same text."""
    parts = [f"# {_inline(document.title)}", NOTE] + [_block(block) for block in document.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block):
    return WRITERS[type(block)](block)


def _heading(block):
    return "#" * block.level + " " + _inline(block.text)


def _paragraph(block):
    return _line_start(_inline(block.text))


def _bullets(block):
    return "\n".join("- " + _line_start(_inline(item)) for item in block.items)


def _figure(block):
    picture = f"![{_escape(block.alt)}]({_address(block.path)})"
    return "\n\n".join([picture] + ([_line_start(_inline(block.caption))] if block.caption else []))


def _code(block):
    fence = "`" * max([3] + [len(run) + 1 for run in re.findall("`+", block.text)])
    return f"{fence}\n{block.text.strip(chr(10))}\n{fence}"


def _details(block):
    """In <summary> Markdown is not read."""
    parts = [f"<details>\n<summary>{webpage.inline(block.summary)}</summary>"] + [_block(one) for one in block.blocks]
    return "\n\n".join(parts) + "\n\n</details>"


def _table(block):
    align = d.alignment(block)
    rows = [[_cell(cell) for cell in row] for row in [block.header] + block.rows]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(align))]
    lines = [_row(row, widths, align) for row in rows]
    lines.insert(1, "|" + "|".join(RULES[letter](width + 2) for letter, width in zip(align, widths)) + "|")
    caption = [_line_start(_inline(block.caption)), ""] if block.caption else []
    return "\n".join(caption + lines)


RULES = {"l": lambda width: "-" * width,
         "r": lambda width: "-" * (width - 1) + ":",
         "c": lambda width: ":" + "-" * (width - 2) + ":"}
PADS = {"l": str.ljust, "r": str.rjust, "c": str.center}


def _row(cells, widths, align):
    return "| " + " | ".join(PADS[letter](cell, width) for cell, width, letter in zip(cells, widths, align)) + " |"


def _cell(text):
    """A pipe ends a cell even within code, where GitHub takes the backslash away again."""
    return re.sub(r"(?<!\\)\|", r"\\|", _inline(text).replace("\n", " "))


# --- text within a line ---

def _inline(text):
    return _spans(d.spans(text))


def _spans(spans):
    return "".join(SPANS[span[0]](span) for span in spans)


def _code_span(span):
    """A pipe or backtick within: as many backticks around as it takes."""
    code = span[1].replace("\n", " ")
    ticks = "`" * min(n for n in range(1, len(code) + 2) if n not in {len(run) for run in re.findall("`+", code)})
    space = " " if "`" in (code[0], code[-1]) else ""
    return ticks + space + code + space + ticks


SPANS = {"text": lambda span: _escape(span[1]),
         "code": _code_span,
         "bold": lambda span: f"**{_spans(span[1])}**",
         "link": lambda span: f"[{_spans(span[1])}]({_address(span[2])})"}


def _escape(text):
    """Plain text that stays plain: underscores within words are plain in GitHub's Markdown, and stay readable."""
    text = re.sub(r"([\\`*\[\]<>~$])", r"\\\1", text.replace("\n", " "))
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    return re.sub(r"&(?=#?\w+;)", r"\\&", text)


def _line_start(text):
    """No heading, list or rule by accident."""
    text = re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)
    return re.sub(r"^([#+=-])", r"\\\1", text)


def _address(path):
    return path.replace(" ", "%20").replace("(", "%28").replace(")", "%29")


WRITERS = {d.Heading: _heading, d.Paragraph: _paragraph, d.Bullets: _bullets, d.Table: _table, d.Figure: _figure,
           d.Code: _code, d.Details: _details}
