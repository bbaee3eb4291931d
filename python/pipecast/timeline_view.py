"""A timeline as HTML that zooms: one SVG, readable without its script, and nothing from the network.

Passes lie in the coordinates of a picture within the picture: ticks of time across, a row for each device down. To zoom
is to show a part of it.
"""

from __future__ import annotations

import html
import itertools
import json
import pathlib
from typing import Any, Dict, List, Sequence, Tuple

_HERE = pathlib.Path(__file__).resolve().parent
_TICKS = 100000  # of the makespan
_WIDTH, _LABEL, _PEAK = 1000, 62, 82
_KINDS = {"F": ("forward", 0x0072B2, 0x7CC4EE), "B": ("backward, input", 0xD55E00, 0xF7AE7C),
          "W": ("backward, weights", 0xE9D628, 0xF6EE9C), "BW": ("backward", 0xD55E00, 0xF7AE7C),
          "R": ("recompute", 0xCC79A7, 0xEBCBDD), "S": ("logits", 0x009E73, 0x7FCEB9),
          "T": ("vocabulary gradients", 0x56785F, 0xAABBAF)}
_numbers = itertools.count(1)

Passes = List[Tuple[int, str, int, int, int, int]]  # device, kind, chunk, microbatch, first and last tick


def colour(kind: str, chunk: int, chunks: int) -> str:
    """Lighter for later chunks, as in the library's pictures."""
    _, first, last = _KINDS[kind]
    part = chunk / (chunks - 1) if chunks > 1 else 0.0
    channels = [round((first >> shift & 255) * (1 - part) + (last >> shift & 255) * part) for shift in (16, 8, 0)]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _passes(timeline: Any, scale: float) -> Passes:
    start, end = timeline._names("start", "end")
    table = timeline.passes
    columns = [table[name] for name in ("device", "kind", "chunk", "microbatch", start, end)]
    return [(int(d), str(k), int(c), int(m), round(float(s) * scale), round(float(e) * scale))
            for d, k, c, m, s, e in zip(*columns)]


def _paths(passes: Passes, chunks: int) -> str:
    """One for each kind and chunk."""
    parts: Dict[Tuple[str, int], List[str]] = {}
    for device, kind, chunk, _, first, last in passes:
        wide = max(last - first, 1)
        parts.setdefault((kind, chunk), []).append(f"M{first} {device}.08h{wide}v.84h-{wide}z")
    return "".join(f'<path fill="{colour(kind, chunk, chunks)}" d="{"".join(found)}"/>'
                   for (kind, chunk), found in sorted(parts.items()))


def _levels(timeline: Any, scale: float, devices: int) -> List[List[Tuple[int, float]]]:
    time, level = timeline._names("time", "level")
    table = timeline.levels
    found: List[List[Tuple[int, float]]] = [[] for _ in range(devices)]
    for device, when, held in zip(table["device"], table[time], table[level]):
        found[int(device)].append((round(float(when) * scale), float(held)))
    return found


def _area(levels: Sequence[Tuple[int, float]], most: float) -> str:
    """How full a band is over time: 0 at the bottom, 1 at its top."""
    parts, height = ["M0 1"], 1.0
    for when, held in levels:
        parts.append(f"H{when}")
        if abs(1 - held / most - height) > 5e-4:
            height = round(1 - held / most, 3)
            parts.append(f"V{height}")
    return "".join(parts) + f"H{_TICKS}V1z"


def _amount(timeline: Any, held: float) -> str:
    return f"{held / 2**30:.2f} GiB" if timeline.is_run else f"{held:.4g}"


def _bands(timeline: Any, scale: float, devices: int, top: float, height: float) -> str:
    levels = _levels(timeline, scale, devices)
    peaks = [max((held for _, held in of), default=0.0) for of in levels]
    most = max(peaks, default=0.0) or 1.0
    parts = [f'<text class="head" x="0" y="{top - 5:g}">Memory</text>'] if any(levels) else []
    for device, of in enumerate(levels if any(levels) else []):
        y, low = top + device * height, top + (device + 1) * height - 2
        parts.append(f'<text x="{_LABEL - 6}" y="{low:g}" text-anchor="end">{device}</text>'
                     f'<svg class="time" x="{_LABEL}" y="{y:g}" width="{_WIDTH - _LABEL - _PEAK}" height="{height - 2:g}" '
                     f'viewBox="0 0 {_TICKS} 1" preserveAspectRatio="none"><rect class="ground" width="{_TICKS}" '
                     f'height="1"/><path class="held" d="{_area(of, most)}"/></svg>'
                     f'<text x="{_WIDTH - _PEAK + 6}" y="{low:g}">{_amount(timeline, peaks[device])}</text>')
    return "".join(parts)


def _legend(passes: Passes, chunks: int) -> str:
    kinds = sorted({(kind, chunk) for _, kind, chunk, _, _, _ in passes}, key=lambda one: (list(_KINDS).index(one[0]), one[1]))
    words = [(kind, chunk, f"{kind} {_KINDS[kind][0]}" if chunk == 0 else f"{kind}, part {chunk + 1}") for kind, chunk in kinds]
    return "".join(f'<span><i style="background:{colour(kind, chunk, chunks)}"></i>{text}</span>'
                   for kind, chunk, text in words[:12])


def _data(passes: Passes, devices: int, seconds: float, is_run: bool) -> str:
    """For the script: a list a device of first and last tick, kind, chunk and microbatch."""
    kinds = list(_KINDS)
    rows: List[List[List[int]]] = [[] for _ in range(devices)]
    for device, kind, chunk, microbatch, first, last in passes:
        rows[device].append([first, last, kinds.index(kind), chunk, microbatch])
    return json.dumps({"ticks": _TICKS, "kinds": kinds, "length": seconds, "isRun": is_run,
                       "rows": [sorted(row) for row in rows]}, separators=(",", ":"))


def timeline_html(timeline: Any) -> str:
    """All of it. What devices are called, and texts of users, are escaped."""
    length = timeline.makespan_s if timeline.is_run else timeline.makespan
    scale, devices = _TICKS / (length or 1.0), timeline.devices.row_count
    passes = _passes(timeline, scale)
    chunks = 1 + max((one[2] for one in passes), default=0)
    row = max(8.0, min(24.0, 400.0 / devices))
    plot, band = devices * row, max(11.0, min(22.0, 240.0 / devices))
    bands = _bands(timeline, scale, devices, plot + 46, band)
    height = plot + 26 + (devices * band + 22 if bands else 0)
    labels = "".join(f'<text x="{_LABEL - 6}" y="{(d + 0.5) * row + 4:g}" text-anchor="end">{d}</text>'
                     for d in range(devices))
    name = f"pipecast-{next(_numbers)}"
    picture = (f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{html.escape(timeline.title, quote=True)}">'
               f'{labels}<svg class="time passes" x="{_LABEL}" y="0" width="{_WIDTH - _LABEL - _PEAK}" height="{plot:g}" '
               f'viewBox="0 0 {_TICKS} {devices}" preserveAspectRatio="none"><rect class="ground" width="{_TICKS}" '
               f'height="{devices}"/>{_paths(passes, chunks)}</svg><g class="numbers"></g>'
               f'<g class="axis" transform="translate(0 {plot:g})"></g>{bands}</svg>')
    words = f"bubble rate {timeline.bubble_rate_span:.4f} (span), {timeline.bubble_rate_makespan:.4f} (makespan)"
    return (f'<div class="pipecast-view" id="{name}"><style>{read("view.css")}</style>'
            f'<div class="title">{html.escape(timeline.title)}</div><div class="words">{words}</div>'
            f'<div class="tools"></div>{picture}<div class="legend">{_legend(passes, chunks)}</div>'
            f'<div class="tip"></div><script type="application/json">'
            f'{_data(passes, devices, length, timeline.is_run)}</script><script>{read("timeline.js")}</script></div>')


__all__ = ["colour", "read", "timeline_html"]
