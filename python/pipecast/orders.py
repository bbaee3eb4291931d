"""Schedules by name, of a file or of your own, and what they cost."""

from __future__ import annotations

import ctypes
import json
import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._library import Costs, Handle, call, library, make, path_bytes, text_bytes, texts
from .order_options import Limit, Times, options_of
from .tables import Table, array, numpy, values_of
from .timelines import PASSES, Timeline

_PLACEMENTS = {0: "linear", 1: "interleaved", 2: "v", 3: "bidirectional"}
_REALS = ("span", "makespan", "bubble_rate_span", "bubble_rate_makespan", "max_peak_activation", "bound", "gap")
_SUMMARY = ("name", "devices", "microbatches", "chunks", "placement", *_REALS, "optimal", "goal")


def _placement_name(number: int) -> str:
    return _PLACEMENTS.get(number, "slices")


class Schedule:
    """For every device of a pipeline the order of its passes, at costs in any one unit of time.

    `name` is one of pipecast.schedules(), the file of a building block (.yaml), PyTorch's CSV, or "best" beside a file of
    measured passes. Keyword arguments are the options of `pipecast schedule`, with _ for -, and mean the same.

    times: F, B and W of a whole stage; or three for each stage or part of the model; or a file of measured passes.
    transfer: the time from one device to the next. release_b: the part of what F took that B gives back. keep: the part
    that F keeps of what is recomputed. vocab_times: S and T, of schedules that share the output layer.
    memory_limit: in microbatches of a stage, one number or one for each device; of measured passes a size, "60GiB". A
    schedule that holds more is an InputError. out_of_memory: "wait" for a pass that does not fit to wait until it does.
    slices, slice_times: how many slices of a microbatch there are along its sequence, of seq-1f1b and its like, and how
    long they take.
    making: "equal" times, or whose order it is ("torch", "megatron", "published"). goal: "span" or "makespan". improve:
    whether to look for a shorter order within the memory.
    robust: "mean" or "p95", for the order that is the shortest when times scatter: by jitter of passes, gpu_jitter of
    devices, link_jitter of transfers, slow_factor of one device (slow_stage says which), drawn `samples` times by `seed`.
    engine: "events", which changes no result. block_steps: what is done with a block: "none", "squeeze" or "reorder".

    Memory is counted in microbatches of a stage; of measured passes in GiB, and times in ms.

    >>> one = Schedule("1f1b", 4, 8)
    >>> one.timeline().span, one.timeline().peak
    (33.0, 4.0)
    >>> [str(each) for each in one.passes(0)[:3]]
    ['F0', 'F1', 'F2']
    >>> slow_end = [(1, 1, 1), (1, 1, 1), (1, 1, 1), (2, 2, 2)]
    >>> Schedule("zb-h1", 4, 8, times=slow_end).timeline().span
    48.0
    >>> made, better = (Schedule("zb-h1", 4, 8, times=(3, 4, 2), transfer=0.5, improve=flag) for flag in (False, True))
    >>> better.timeline().span <= made.timeline().span
    True
    """

    def __init__(self, name: Union[str, "os.PathLike[str]"], devices: int = 0, microbatches: int = 0, chunks: int = 0, *,
                 times: Times = (1.0, 1.0, 1.0), transfer: float = 0.0, release_b: float = 0.0,
                 keep: float = 2.0 / 34.0, memory_limit: Limit = None, making: Optional[str] = None,
                 slices: int = 0, slice_times: Union[None, str, Sequence[float]] = None,
                 vocab_times: Union[None, str, Tuple[float, float]] = None, out_of_memory: Optional[str] = None,
                 goal: Optional[str] = None, improve: bool = False, robust: Optional[str] = None,
                 jitter: Optional[float] = None, gpu_jitter: Optional[float] = None,
                 link_jitter: Optional[float] = None, slow_factor: Optional[float] = None,
                 slow_stage: Optional[int] = None, samples: Optional[int] = None, seed: Optional[int] = None,
                 engine: Optional[str] = None, block_steps: Optional[str] = None) -> None:
        given = {"devices": devices, "microbatches": microbatches, "chunks": chunks, "slices": slices,
                 "slice_times": slice_times, "times": times, "vocab_times": vocab_times, "comm": transfer,
                 "release_b": release_b, "keep": keep, "memory_limit": memory_limit, "out_of_memory": out_of_memory,
                 "making": making, "goal": goal, "improve": improve or None, "robust": robust, "jitter": jitter,
                 "gpu_jitter": gpu_jitter, "link_jitter": link_jitter, "slow_factor": slow_factor,
                 "slow_stage": slow_stage, "samples": samples, "seed": seed, "engine": engine,
                 "block_steps": block_steps}
        self._make(os.fspath(name), options_of(given))

    def _make(self, name: str, options: List[str]) -> None:
        self.costs: Optional[Costs] = None  # those that the library keeps
        self._asked: Optional[Tuple[str, List[str]]] = (name, options)
        self._handle: Handle = make(library.schedule_free, library.schedule_make, path_bytes(name), texts(options),
                                    len(options))

    @classmethod
    def of_passes(cls, name: str, passes: Sequence[Sequence[Tuple[str, int, int]]], microbatches: int, chunks: int = 1,
                  placement: int = 0, **costs: Any) -> "Schedule":
        """One of your own: for every device its passes as (kind, chunk, microbatch), such as ("F", 0, 3).

        >>> Schedule.of_passes("mine", [[("F", 0, 0), ("BW", 0, 0)]], 1).timeline().span
        3.0
        """
        made = cls.__new__(cls)
        made._asked = None
        made.costs = Costs(*costs.get("times", (1.0, 1.0, 1.0)), costs.get("transfer", 0.0), costs.get("release_b", 0.0),
                           costs.get("keep", 2.0 / 34.0))
        flat = [one for device in passes for one in device]
        columns = [_integers([PASSES.index(kind) for kind, _, _ in flat]), _integers([chunk for _, chunk, _ in flat]),
                   _integers([microbatch for _, _, microbatch in flat])]
        made._handle = make(library.schedule_free, library.schedule_create, text_bytes(name), len(passes), microbatches,
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

    def _costs_at(self) -> Optional[int]:
        """Where the costs are; None of those that the library keeps."""
        return None if self.costs is None else ctypes.addressof(self.costs)

    def timeline(self, title: Optional[str] = None) -> Timeline:
        """Runs it: when each pass runs, in the unit of its costs."""
        handle = make(library.replay_free, library.schedule_replay, self._handle, self._costs_at())
        devices, microbatches, _, _ = self._shape()
        return Timeline(handle, title or f"{self.name}: {devices} devices, {microbatches} microbatches", is_run=False)

    def bound(self) -> float:
        """The least span that any schedule of this shape with these costs and this memory can have; NaN if not known."""
        found = ctypes.c_double()
        call(library.schedule_bound, self._handle, self._costs_at(), ctypes.byref(found))
        return found.value

    def text(self, format: str = "table") -> str:
        """What `pipecast schedule --format` prints: "table", "json", "text", "torch-csv" or "block".

        >>> print(Schedule("1f1b", 2, 2).text("text"), end="")
        F0 F1 BW0 BW1
        F0 BW0 F1 BW1
        """
        said = ctypes.c_char_p()
        call(library.schedule_report, self._handle, text_bytes(format), ctypes.byref(said))
        return (said.value or b"").decode(errors="replace")

    def report(self) -> Dict[str, Any]:
        """All that `pipecast schedule --format json` says.

        >>> Schedule("zb-v", 4, 8).report()["peak_activation"]
        [4, 4, 4, 4]
        """
        found: Dict[str, Any] = json.loads(self.text("json"))
        return found

    def summary(self) -> Dict[str, Any]:
        """The numbers and texts alone of what `pipecast schedule --format json` says; what is not known is NaN.

        Of an improved schedule also `span_before`, and of one whose times scatter `span_mean`, `span_mean_error` and
        `span_p95`, and of a robust one `gain` and `gain_error`, by how much its mean is shorter.
        """
        said = self._numbers() if self._asked is None else self.report()
        known = {name: said[name] for name in _SUMMARY}
        known.update({name: math.nan if known[name] is None else float(known[name]) for name in _REALS})
        if "improved" in said:
            known["span_before"] = said["improved"]["span_before"]
        if "samples" in said:
            known.update({f"span_{name}": said["samples"][name] for name in ("mean", "mean_error", "p95")})
        if "robust" in said:
            known.update({name: said["robust"][name] for name in ("gain", "gain_error")})
        return known

    def _numbers(self) -> Dict[str, Any]:
        """The same of an order of one's own."""
        devices, microbatches, chunks, placement = self._shape()
        timeline, bound = self.timeline(), self.bound()
        is_optimal = timeline.span <= bound
        return {"name": self.name, "devices": devices, "microbatches": microbatches, "chunks": chunks,
                "placement": _placement_name(placement), "span": timeline.span, "makespan": timeline.makespan,
                "bubble_rate_span": timeline.bubble_rate_span, "bubble_rate_makespan": timeline.bubble_rate_makespan,
                "max_peak_activation": timeline.peak, "bound": bound,
                "gap": 0.0 if is_optimal else timeline.span / bound - 1.0, "optimal": True if is_optimal else None,
                "goal": None}

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the CSV that PyTorch's pipelining runtime loads."""
        call(library.schedule_write, self._handle, path_bytes(path))

    def __repr__(self) -> str:
        devices, microbatches, chunks, _ = self._shape()
        return f"Schedule({self.name!r}, devices={devices}, microbatches={microbatches}, chunks={chunks})"

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()

    def __reduce__(self) -> Any:
        if self._asked is not None:
            return _made_again, self._asked
        devices, microbatches, chunks, placement = self._shape()
        costs = self.costs
        assert costs is not None
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


def _made_again(name: str, options: List[str]) -> Schedule:
    made = Schedule.__new__(Schedule)
    made._make(name, options)
    return made


def _integers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)


def table_of(schedules: Sequence[Schedule]) -> Table:
    """A row a schedule, of their summaries."""
    rows = [one.summary() for one in schedules]
    columns: Dict[str, Any] = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    if numpy is not None:
        columns = {name: numpy.array(values, dtype=object if isinstance(values[0], (str, bool, type(None))) else None)
                   for name, values in columns.items()}
    return Table(columns)


__all__ = ["Pass", "Schedule", "table_of"]
