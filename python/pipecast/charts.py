"""Charts of runs: an SVG that the library draws by gnuplot, and HTML with what is under the pointer."""

from __future__ import annotations

import html
import itertools
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._library import library, texts
from .errors import InputError
from .pictures import draw
from .tables import is_defined
from .timeline_view import read

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b59f00", "#56b4e9", "#8a5a00", "#8c8c8c")
_WIDE, _HIGH, _LEFT, _BOTTOM = 460.0, 300.0, 66.0, 44.0
_numbers = itertools.count(1)

Point = Tuple[float, float, str]  # x, y, words


class Panel(NamedTuple):
    title: str
    y: str
    series: Dict[str, List[Point]]


class Chart:
    """One column against another. In a notebook it shows itself.

    `table` is what `Results.chart` was called on, or anything with columns, such as a DataFrame. A picture by gnuplot
    needs the former.
    """

    def __init__(self, table: Any, x: str, y: Union[str, Sequence[str]], series: Optional[str] = None,
                 panels: Optional[str] = None, style: str = "points", title: str = "", published: bool = False,
                 handle: Any = None) -> None:
        self.x, self.y = x, [y] if isinstance(y, str) else list(y)
        self.series, self.panels, self.style, self.title, self.published = series, panels, style, title, published
        self._table, self._handle = table, handle
        for name in [x, *self.y, *self._split(series), *self._split(panels)]:
            if name not in table:
                raise InputError(f"{name}: there is no such column", key=name)

    @staticmethod
    def _split(columns: Optional[str]) -> List[str]:
        return columns.split("+") if columns else []

    # ---- by gnuplot ----

    def _options(self, dark: bool = False, **view: Optional[str]) -> List[str]:
        given = {"x": self.x, "y": ",".join(self.y), "series": self.series, "panels": self.panels, "style": self.style,
                 "title": self.title, "published": "true" if self.published else None, "dark": "true" if dark else None, **view}
        return [f"{name}={value}" for name, value in given.items() if value]

    def draw(self, path: Any, dark: bool = False, *, x_label: Optional[str] = None, y_label: Union[str, Sequence[str]] = (),
             x_range: Optional[str] = None, y_range: Union[str, Sequence[str]] = (), log: Optional[str] = None) -> None:
        """Draws it by gnuplot: .svg, .png or .pdf; dark: light on a dark ground.

        Ranges are "LOW:HIGH", "LOW:" or ":HIGH", in the axis's own numbers; of y a list where it has several columns,
        and so are its labels. `log` is "x", "y" or "xy".
        """
        if self._handle is None:
            raise InputError("a chart of a table that the library does not have; expected that of Results.chart")
        ranges = y_range if isinstance(y_range, str) else ",".join(y_range)
        options = self._options(dark, x_label=x_label, x_range=x_range, y_range=ranges, log=log)
        options += [f"y_label={label}" for label in ([y_label] if isinstance(y_label, str) else y_label)]
        draw(path, library.results_draw, self._handle, texts(options), len(options))

    def _repr_svg_(self) -> Optional[str]:
        options = self._options()
        return draw(None, library.results_draw, self._handle, texts(options), len(options)) if self._handle else None

    # ---- as HTML ----

    def _name(self, columns: Optional[str], row: int) -> str:
        values = [self._table[name][row] for name in self._split(columns)]
        return ", ".join(str(value) for value in values if is_defined(value))

    def _points(self, y: str) -> List[Tuple[str, str, Point]]:
        """Of each row that has both: its panel, its series, and where it is."""
        found = []
        for row, (x, up) in enumerate(zip(self._table[self.x], self._table[y])):
            if not (_is_number(x) and _is_number(up)):
                continue
            name = self._name(self.series, row)
            words = f"{name}{': ' if name else ''}{self.x} {float(x):.6g}, {y} {float(up):.6g}"
            found.append((self._name(self.panels, row), name, (float(x), float(up), words)))
        return found

    def _make_panels(self) -> List[Panel]:
        made: Dict[Tuple[str, str], Panel] = {}
        for y in self.y:
            for panel, name, point in self._points(y):
                of = made.setdefault((y, panel), Panel(panel, y, {}))
                of.series.setdefault(name, []).append(point)
        return list(made.values())

    def _repr_html_(self) -> str:
        panels = self._make_panels()
        names = list(dict.fromkeys(name for panel in panels for name in panel.series))
        pictures = "".join(_picture(panel, self.x, names, self.style) for panel in panels)
        legend = "".join(f'<span><i style="background:{_colour(names, name)}"></i>{html.escape(name)}</span>'
                         for name in names if name)
        return (f'<div class="pipecast-view" id="pipecast-chart-{next(_numbers)}"><style>{read("view.css")}</style>'
                f'<div class="title">{html.escape(self.title)}</div>'
                f'<div style="display:flex;flex-wrap:wrap">{pictures}</div><div class="legend">{legend}</div></div>')

    def __repr__(self) -> str:
        return f"<Chart of {', '.join(self.y)} against {self.x}>"


def _is_number(value: Any) -> bool:
    try:
        return value is not None and math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _colour(names: Sequence[str], name: str) -> str:
    return _COLOURS[names.index(name) % len(_COLOURS)]


def steps(low: float, high: float) -> List[float]:
    """Round numbers from at most `low` to at least `high`, about five.

    >>> steps(0.0, 9.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    if high <= low:
        low, high = low - abs(low or 1.0) / 2, high + abs(high or 1.0) / 2
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(one * size for one in (1, 2, 5, 10) if (high - low) / (one * size) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _picture(panel: Panel, x: str, names: Sequence[str], style: str) -> str:
    points = [point for of in panel.series.values() for point in of]
    across = steps(min(p[0] for p in points), max(p[0] for p in points))
    up = steps(min(p[1] for p in points), max(p[1] for p in points))

    def place(px: float, py: float) -> Tuple[float, float]:
        return (_LEFT + (px - across[0]) / (across[-1] - across[0]) * (_WIDE - _LEFT - 14),
                26 + (up[-1] - py) / (up[-1] - up[0]) * (_HIGH - _BOTTOM - 26))

    parts = [_axes(panel, x, across, up, place)]
    for name, of in panel.series.items():
        parts.append(_series(sorted(of) if style == "lines" else of, _colour(names, name), style, place))
    return (f'<svg viewBox="0 0 {_WIDE:g} {_HIGH:g}" style="width:{_WIDE:g}px;max-width:100%" role="img" '
            f'aria-label="{html.escape(f"{panel.y} against {x} {panel.title}", quote=True)}">{"".join(parts)}</svg>')


def _axes(panel: Panel, x: str, across: Sequence[float], up: Sequence[float], place: Any) -> str:
    parts = [f'<text class="head" x="{_LEFT:g}" y="14">{html.escape(panel.title)}</text>',
             f'<text x="{(_LEFT + _WIDE) / 2:g}" y="{_HIGH - 6:g}" text-anchor="middle">{html.escape(x)}</text>',
             f'<text transform="translate(12 {_HIGH / 2:g}) rotate(-90)" text-anchor="middle">{html.escape(panel.y)}</text>']
    for mark in across:
        px, bottom = place(mark, up[0])
        parts.append(f'<line class="line" x1="{px:.1f}" x2="{px:.1f}" y1="26" y2="{bottom:.1f}"/>'
                     f'<text x="{px:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{mark:g}</text>')
    for mark in up:
        left, py = place(across[0], mark)
        parts.append(f'<line class="line" x1="{left:.1f}" x2="{_WIDE - 14:g}" y1="{py:.1f}" y2="{py:.1f}"/>'
                     f'<text x="{left - 5:.1f}" y="{py + 4:.1f}" text-anchor="end">{mark:g}</text>')
    return "".join(parts)


def _series(points: Sequence[Point], colour: str, style: str, place: Any) -> str:
    placed = [(*place(x, y), words) for x, y, words in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in placed)
    parts = [f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>'] if style == "lines" else []
    parts += [f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{html.escape(words)}</title>'
              "</circle>" for x, y, words in placed]
    return "".join(parts)


def chart(table: Any, x: str, y: Union[str, Sequence[str]], **how: Any) -> Chart:
    """A chart of any table: Results, another table, or a DataFrame. `how` is as for Results.chart."""
    if hasattr(table, "chart"):
        return table.chart(x, y, **how)
    return Chart(table, x, y, **how)


__all__ = ["Chart", "chart", "steps"]
