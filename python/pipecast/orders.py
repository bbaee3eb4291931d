"""Schedules by name, of a file or of your own, and what they cost."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._library import Costs, Handle, call, library, make, path_bytes
from .tables import Table, array, numpy, values_of
from .timelines import PASSES, Timeline

_PLACEMENTS = {0: "linear", 1: "interleaved", 2: "v", 3: "bidirectional"}
Limit = Union[None, float, Sequence[float]]


def _placement_name(number: int) -> str:
    return _PLACEMENTS.get(number, "slices")


class Schedule:
    """For every device of a pipeline the order of its passes, at costs in any one unit of time.

    `name` is one of pipecast.schedules(), the file of a building block (.yaml), or PyTorch's CSV. `times` are F, B and W
    of a whole stage, `transfer` the time from one device to the next, `release_b` the part of what F took that B gives
    back, `keep` the part that F keeps of what is recomputed. `memory_limit` is in microbatches of a stage, one number or
    one for each device. Memory is counted in these, too.

    >>> one = Schedule("1f1b", 4, 8)
    >>> one.timeline().span, one.timeline().peak
    (33.0, 4.0)
    >>> [str(each) for each in one.passes(0)[:3]]
    ['F0', 'F1', 'F2']
    """

    def __init__(self, name: Union[str, "os.PathLike[str]"], devices: int = 0, microbatches: int = 0, chunks: int = 0, *,
                 times: Tuple[float, float, float] = (1.0, 1.0, 1.0), transfer: float = 0.0, release_b: float = 0.0,
                 keep: float = 2.0 / 34.0, memory_limit: Limit = None, making: Optional[str] = None) -> None:
        self.costs = Costs(*times, transfer, release_b, keep)
        text = os.fspath(name)
        if text.endswith(".csv"):
            self._handle = make(library.schedule_free, library.schedule_load, path_bytes(text))
            return
        self._handle = make(library.schedule_free, library.schedule_generate, text.encode(), devices, microbatches,
                            chunks, ctypes.addressof(self.costs), _limits(memory_limit, devices),
                            None if making is None else making.encode())

    @classmethod
    def of_passes(cls, name: str, passes: Sequence[Sequence[Tuple[str, int, int]]], microbatches: int, chunks: int = 1,
                  placement: int = 0, **costs: Any) -> "Schedule":
        """One of your own: for every device its passes as (kind, chunk, microbatch), such as ("F", 0, 3).

        >>> Schedule.of_passes("mine", [[("F", 0, 0), ("BW", 0, 0)]], 1).timeline().span
        3.0
        """
        made = cls.__new__(cls)
        made.costs = Costs(*costs.get("times", (1.0, 1.0, 1.0)), costs.get("transfer", 0.0), costs.get("release_b", 0.0),
                           costs.get("keep", 2.0 / 34.0))
        flat = [one for device in passes for one in device]
        columns = [_integers([PASSES.index(kind) for kind, _, _ in flat]), _integers([chunk for _, chunk, _ in flat]),
                   _integers([microbatch for _, _, microbatch in flat])]
        made._handle = make(library.schedule_free, library.schedule_create, name.encode(), len(passes), microbatches,
                            chunks, placement, _integers([len(device) for device in passes]), *columns)
        call(library.schedule_check, made._handle)
        return made

    @property
    def name(self) -> str:
        return library.schedule_name(self._handle).decode()

    def _shape(self) -> Tuple[int, int, int, int]:
        numbers, placement = [ctypes.c_int64() for _ in range(3)], ctypes.c_int()
        library.schedule_shape(self._handle, *map(ctypes.byref, numbers), ctypes.byref(placement))
        return numbers[0].value, numbers[1].value, numbers[2].value, placement.value

    @property
    def devices(self) -> int:
        return self._shape()[0]

    @property
    def microbatches(self) -> int:
        return self._shape()[1]

    @property
    def chunks(self) -> int:
        return self._shape()[2]

    @property
    def placement(self) -> str:
        return _placement_name(self._shape()[3])

    def passes(self, device: int) -> List["Pass"]:
        """The passes of a device, in order."""
        count = library.schedule_passes(self._handle, device, None, None, None)
        columns = [(ctypes.c_int64 * max(count, 1))() for _ in range(3)]
        library.schedule_passes(self._handle, device, *columns)
        return [Pass((PASSES[columns[0][i]], columns[1][i], columns[2][i])) for i in range(count)]

    def timeline(self, title: Optional[str] = None) -> Timeline:
        """Runs it: when each pass runs, in the unit of its costs."""
        handle = make(library.replay_free, library.schedule_replay, self._handle, ctypes.addressof(self.costs))
        devices, microbatches, _, _ = self._shape()
        return Timeline(handle, title or f"{self.name}: {devices} devices, {microbatches} microbatches", is_run=False)

    def bound(self) -> float:
        """The least span that a schedule of this shape, these costs and this memory can have; NaN if not known."""
        found = ctypes.c_double()
        call(library.schedule_bound, self._handle, ctypes.addressof(self.costs), ctypes.byref(found))
        return found.value

    def summary(self) -> Dict[str, Any]:
        """What `pipecast schedule --format json` says of it, in numbers and texts alone."""
        devices, microbatches, chunks, placement = self._shape()
        timeline, bound = self.timeline(), self.bound()
        return {"name": self.name, "devices": devices, "microbatches": microbatches, "chunks": chunks,
                "placement": _placement_name(placement), "span": timeline.span, "makespan": timeline.makespan,
                "bubble_rate_span": timeline.bubble_rate_span, "bubble_rate_makespan": timeline.bubble_rate_makespan,
                "max_peak_activation": timeline.peak, "bound": bound,
                "optimal": True if timeline.span == bound else None}

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the CSV that PyTorch's pipelining runtime loads."""
        call(library.schedule_write, self._handle, path_bytes(path))

    def __repr__(self) -> str:
        devices, microbatches, chunks, _ = self._shape()
        return f"Schedule({self.name!r}, devices={devices}, microbatches={microbatches}, chunks={chunks})"

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()

    def __reduce__(self) -> Any:
        devices, microbatches, chunks, placement = self._shape()
        costs = self.costs
        how = {"times": (costs.f, costs.b, costs.w), "transfer": costs.transfer, "release_b": costs.release_b,
               "keep": costs.keep}
        passes = [[tuple(one) for one in self.passes(device)] for device in range(devices)]
        return _again, (self.name, passes, microbatches, chunks, placement, how)


class Pass(Tuple[str, int, int]):
    """(kind, chunk, microbatch)."""

    def __str__(self) -> str:
        kind, chunk, microbatch = self
        return f"{kind}{microbatch}" + (f".{chunk}" if chunk else "")


def _again(name: str, passes: Any, microbatches: int, chunks: int, placement: int, how: Any) -> Schedule:
    return Schedule.of_passes(name, passes, microbatches, chunks, placement, **how)


def _integers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)


def _limits(limit: Limit, devices: int) -> Any:
    if limit is None:
        return None
    numbers = [float(limit)] * devices if isinstance(limit, (int, float)) else [float(one) for one in limit]
    return (ctypes.c_double * max(len(numbers), 1))(*numbers)


def table_of(schedules: Sequence[Schedule]) -> Table:
    """A row a schedule, of their summaries."""
    rows = [one.summary() for one in schedules]
    columns: Dict[str, Any] = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    if numpy is not None:
        columns = {name: numpy.array(values, dtype=object if isinstance(values[0], (str, bool, type(None))) else None)
                   for name, values in columns.items()}
    return Table(columns)


__all__ = ["Pass", "Schedule", "table_of"]
