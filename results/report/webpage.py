"""A document as one file of HTML that asks nothing of anybody: style, script and pictures stand within it."""
import html
import pathlib
import re

import document as d

HERE = pathlib.Path(__file__).resolve().parent
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{heading}</h1>
</header>
{contents}<main>
{body}
</main>
<script>
{script}</script>
</body>
</html>
"""


def to_html(document, read, link_to=lambda path: path):
    """`read`: the text of a picture by its path. `link_to`: a relative link of the page as this file has to say it."""
    return Writer(read, link_to).page(document)


def inline(text, link_to=lambda path: path):
    """Text with its marks as HTML."""
    return "".join(_span(span, link_to) for span in d.spans(text))


def _span(span, link_to):
    if span[0] == "text":
        return html.escape(span[1], quote=False)
    if span[0] == "code":
        return f"<code>{html.escape(span[1], quote=False)}</code>"
    inner = "".join(_span(one, link_to) for one in span[1])
    if span[0] == "bold":
        return f"<strong>{inner}</strong>"
    return f'<a href="{html.escape(_target(span[2], link_to))}">{inner}</a>'


def _target(link, link_to):
    is_whole = re.match(r"(https?|mailto):", link) or link.startswith("#")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", link) and not is_whole:
        raise d.DocumentError(f"link '{link}'; expected http, https, mailto, #heading or a path")
    if is_whole:
        return link
    path, mark, anchor = link.partition("#")
    return link_to(path) + mark + anchor


class Writer:
    """One page: counts its figures, names its headings."""

    def __init__(self, read, link_to):
        self.read, self.link_to = read, link_to
        self.slugs, self.headings, self.figures = d.Slugs(), [], 0
        self.slugs.of("")  # so that no heading is named by nothing

    def page(self, document):
        self.slugs.of(document.title)
        body = self._blocks(document.blocks)
        return PAGE.format(title=html.escape(d.plain(document.title)), heading=self._inline(document.title),
                           contents=self._contents(), body=body, style=(HERE / "page.css").read_text(encoding="utf-8"),
                           script=(HERE / "page.js").read_text(encoding="utf-8"))

    def _contents(self):
        """Headings of the levels 2 and 3, one list within the other."""
        lines, depth = [], 1
        for level, slug, text in self.headings:
            if level > 3 or (level == 3 and depth == 1):
                continue
            lines += ["<ol>"] * (level - depth) if level > depth else ["</li>"] + ["</ol></li>"] * (depth - level)
            lines.append(f'<li><a href="#{slug}">{text}</a>')
            depth = level
        if not lines:
            return ""
        lines = ['<nav class="contents" aria-label="Contents">', "<p>Contents</p>"] + lines
        return "\n".join(lines + ["</li></ol>"] * (depth - 1) + ["</nav>", ""])

    def _blocks(self, blocks):
        return "\n".join(self.WRITERS[type(block)](self, block) for block in blocks)

    def _inline(self, text):
        return inline(text, self.link_to)

    def _heading(self, block):
        slug = self.slugs.of(block.text)
        self.headings.append((block.level, slug, html.escape(d.plain(block.text), quote=False)))
        return (f'<h{block.level} id="{slug}">{self._inline(block.text)}'
                f'<a class="here" href="#{slug}" aria-label="Link to this part"></a></h{block.level}>')

    def _paragraph(self, block):
        return f"<p>{self._inline(block.text)}</p>"

    def _bullets(self, block):
        return "<ul>\n" + "\n".join(f"<li>{self._inline(item)}</li>" for item in block.items) + "\n</ul>"

    def _code(self, block):
        text = html.escape(block.text.strip("\n"), quote=False)
        return f'<pre tabindex="0"><code>{text}</code></pre>'

    def _details(self, block):
        return (f"<details>\n<summary>{self._inline(block.summary)}</summary>\n{self._blocks(block.blocks)}\n"
                "</details>")

    def _table(self, block):
        align = d.alignment(block)
        label = html.escape(d.plain(block.caption or "table: " + ", ".join(block.header)))
        lines = [f'<div class="sideways" tabindex="0" role="region" aria-label="{label}">', "<table>"]
        if block.caption:
            lines.append(f"<caption>{self._inline(block.caption)}</caption>")
        classes = [_class(letter, [row[i] for row in block.rows]) for i, letter in enumerate(align)]
        heads = [CLASSES[letter] for letter in align]
        lines += ["<thead>", self._row("th", block.header, heads), "</thead>", "<tbody>"]
        lines += [self._row("td", row, classes) for row in block.rows]
        return "\n".join(lines + ["</tbody>", "</table>", "</div>"])

    def _row(self, tag, cells, classes):
        made = [f'<{tag}{one}>{self._inline(cell)}</{tag}>' for cell, one in zip(cells, classes)]
        return "<tr>" + "".join(made) + "</tr>"

    def _figure(self, block):
        self.figures += 1
        svg, width, height = inline_svg(self.read(block.path), f"f{self.figures}-", block.alt)
        caption = f"<figcaption>{self._inline(block.caption)}</figcaption>" if block.caption else ""
        style = f"max-width: {width}px; aspect-ratio: {width} / {height}"
        return (f'<figure class="{html.escape(block.kind)}" data-path="{html.escape(block.path)}">\n'
                f'<div class="picture" style="{style}">\n{svg}\n</div>\n{caption}\n</figure>')

    WRITERS = {d.Heading: _heading, d.Paragraph: _paragraph, d.Bullets: _bullets, d.Table: _table, d.Figure: _figure,
               d.Code: _code, d.Details: _details}


CLASSES = {"l": "", "r": ' class="number"', "c": ' class="middle"'}
SHORT = 24  # characters that may stay on one line


def _class(letter, cells):
    """Of a column's cells: names do not break at their hyphens where a longer text beside them can give way."""
    is_short = letter == "l" and max((len(d.plain(cell)) for cell in cells), default=0) <= SHORT
    return ' class="short"' if is_short else CLASSES[letter]


# --- pictures within the page ---

ROOT = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r"""\s(width|height)\s*=\s*["']\s*([0-9.]+)[a-z]*\s*["']""")
VIEW_BOX = re.compile(r"""\sviewBox\s*=\s*["']([^"']*)["']""")
IDS = [re.compile(pattern) for pattern in (r"""id=["']""", r"""href=["']#""", r"""url\(["']?#""")]  # fast one by one


def inline_svg(text, prefix, alt):
    """An svg file as an element that is as large as the place for it, its ids unlike those of other pictures, named by
    `alt`; and the width and height that it was drawn for, as text."""
    root = ROOT.search(text)
    if not root:
        raise d.DocumentError(f"picture '{alt}': no svg element")
    width, height = _size(root[0], alt)
    view = "" if VIEW_BOX.search(root[0]) else f' viewBox="0 0 {width} {height}"'
    start = f'<svg role="img" tabindex="0" aria-label="{html.escape(alt)}"{view}' + SIZE.sub("", root[0])[len("<svg"):]
    body = text[root.end():]
    body = re.sub(r"\A\s*<title>.*?</title>", "", body, flags=re.DOTALL)
    body = re.sub(r"<desc>Produced by GNUPLOT.*?</desc>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL).rstrip()
    body = re.sub(r"\n\s*\n", "\n", _with_ids(start + body, prefix))
    return body, width, height


def _with_ids(text, prefix):
    def renamed(match):
        is_other = match[0].startswith("id") and not match.string[match.start() - 1].isspace()  # as in data-id
        return match[0] + ("" if is_other else prefix)
    for pattern in IDS:
        text = pattern.sub(renamed, text)
    return text


def _size(root, alt):
    size = dict(SIZE.findall(root))
    if len(size) == 2:
        return size["width"], size["height"]
    view = VIEW_BOX.search(root)
    words = view[1].replace(",", " ").split() if view else []
    if len(words) != 4:
        raise d.DocumentError(f"picture '{alt}': an svg without a size")
    return words[2], words[3]
