"""When each pass ran, and how much memory was held: numbers, tables and pictures."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Tuple

from ._library import Handle, library, text_bytes, texts
from .pictures import draw
from .tables import Table, array, numpy, values_of
from .timeline_view import timeline_html

PASSES = ("F", "B", "W", "BW", "R", "S", "T")
_NUMBERS = {"span": "SPAN", "makespan": "MAKESPAN", "bubble_rate_span": "BUBBLE_RATE_SPAN",
            "bubble_rate_makespan": "BUBBLE_RATE_MAKESPAN", "peak": "PEAK"}


class Timeline:
    """A schedule as it ran. In a notebook it shows itself, and zooms.

    Of a run, times are in seconds and memory in bytes, and names say so: `span_s`, `makespan_s`, `peak_bytes`. Of a
    schedule alone they are in the unit of its costs and in microbatches of a stage: `span`, `makespan`, `peak`. Either
    has `bubble_rate_span` and `bubble_rate_makespan`.
    """

    def __init__(self, handle: Handle, title: str, is_run: bool) -> None:
        self._handle = handle
        self.title = title
        self.is_run = is_run

    def __getattr__(self, name: str) -> Any:
        unit = {"span_s": "span", "makespan_s": "makespan", "peak_bytes": "peak"} if self.__dict__.get("is_run") else {}
        number = unit.get(name) or (name if name in _NUMBERS and (name.startswith("bubble") or not unit) else None)
        if number is None:
            raise AttributeError(f"a timeline has no {name}")
        return library.replay_number(self._handle, library.constants[_NUMBERS[number]])

    def _names(self, *names: str) -> List[str]:
        unit = {"start": "start_s", "end": "end_s", "busy": "busy_s", "time": "time_s", "peak": "peak_bytes",
                "level": "level_bytes"}
        return [unit.get(name, name) if self.is_run else name for name in names]

    def _read(self, function: Any, codes: str, names: List[str], ask: int) -> Table:
        count = function(self._handle, *[None] * ask)
        made = [array(code, count) for code in codes]
        function(self._handle, *[at for _, at in made])
        return Table({name: values_of(one, count) for name, (one, _) in zip(names, made)}, title=self.title)

    @property
    def passes(self) -> Table:
        """A row a pass: device, kind, chunk, microbatch, start and end."""
        names = self._names("device", "kind", "chunk", "microbatch", "start", "end")
        table = self._read(library.replay_passes, "qqqqdd", names, 6)
        kinds = [PASSES[number] for number in table["kind"]]
        columns = table.to_dict()
        columns["kind"] = numpy.array(kinds, dtype=object) if numpy is not None else kinds
        return Table(columns, title=self.title)

    @property
    def devices(self) -> Table:
        """A row a device: its first start, its last end, the time in passes, and the most memory that it held."""
        table = self._read(library.replay_devices, "dddd", self._names("start", "end", "busy", "peak"), 4)
        return table

    @property
    def levels(self) -> Table:
        """A row a change of a device's memory: the device, when, and how much it then holds."""
        return self._read(library.replay_levels, "qdd", self._names("device", "time", "level"), 3)

    @property
    def transfers(self) -> Table:
        """A row a transfer between devices: from, to, start and end."""
        return self._read(library.replay_transfers, "qqdd", self._names("source", "target", "start", "end"), 4)

    def draw(self, path: Any, dark: bool = False, time: Optional[str] = None, stages: Optional[str] = None,
             microbatches: Optional[str] = None) -> None:
        """Draws it by gnuplot, with memory below: .svg, .png or .pdf; dark: light on a dark ground.

        `time="0.1:0.4"`, `stages="0:3"` and `microbatches="2"` show a part of it; seconds where there is no unit, of a
        schedule alone its own.
        """
        given = {"title": self.title, "time": time, "stages": stages, "microbatches": microbatches, "dark": "true" if dark else None}
        options = [f"{name}={value}" for name, value in given.items() if value is not None]
        draw(path, library.replay_draw_with, self._handle, texts(options), len(options))

    def _repr_svg_(self) -> Optional[str]:
        return draw(None, library.replay_draw, self._handle, text_bytes(self.title))

    def _repr_html_(self) -> str:
        return timeline_html(self)

    def __repr__(self) -> str:
        span = f"span_s={self.span_s:.6g}" if self.is_run else f"span={self.span:.6g}"
        return f"<Timeline {self.title}: {span}, bubble_rate_span={self.bubble_rate_span:.4f}>"


__all__ = ["PASSES", "Timeline"]
