"""Long work: its progress, Ctrl-C, and warnings.

The work is done by a thread of its own, in the library and without the GIL, while the caller's thread waits for it. So
a progress function runs in the caller's thread, and Ctrl-C ends the work soon.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union

from .errors import PipecastWarning, Stopped

Progress = Union[None, bool, Callable[[int, int], Any]]
Answer = TypeVar("Answer")

_STEP_S, _SHOWN_AFTER_S = 0.1, 1.0
_numbers = itertools.count(1)
_watches: Dict[int, "Watch"] = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
def _progress(context: int, done: int, to_do: int) -> None:
    watch = _watches[context]
    watch.done, watch.to_do = done, to_do


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _stop(context: int) -> int:
    return _watches[context].is_stopped


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
def _warn(context: int, text: bytes) -> None:
    _watches[context].warnings.append(text.decode(errors="replace"))


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found
    return found


class Watch:
    """Looks on while the library works; `with` gives its number, the callbacks' context."""

    progress, stop, warn = _address(_progress), _address(_stop), _address(_warn)

    def __init__(self) -> None:
        self.done = self.to_do = 0
        self.is_stopped = 0
        self.warnings: List[str] = []
        self.number = next(_numbers)

    def __enter__(self) -> int:
        _watches[self.number] = self
        return self.number

    def __exit__(self, *_: Any) -> None:
        del _watches[self.number]
        for text in self.warnings:
            warnings.warn(text, PipecastWarning, stacklevel=4)


_said: Dict[int, List[str]] = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
def _say(context: int, text: bytes) -> None:
    _said.setdefault(context, []).append(text.decode(errors="replace"))


class Say:
    """Only listens to warnings: what costs the least. `number()` is the callback's context, to be given back."""

    warn = _address(_say)
    number = staticmethod(functools.partial(next, _numbers))

    @staticmethod
    def end(number: int) -> None:
        for text in _said.pop(number, ()):
            warnings.warn(text, PipecastWarning, stacklevel=4)


class Bar:
    """A line on standard error, redrawn; nothing of what takes less than a second."""

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream or sys.stderr
        self.start = time.monotonic()
        self.is_shown = False

    def __call__(self, done: int, to_do: int) -> None:
        if to_do <= 0 or (not self.is_shown and time.monotonic() - self.start < _SHOWN_AFTER_S):
            return
        self.is_shown = True
        filled = 30 * done // to_do
        self.stream.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done} of {to_do}")
        self.stream.flush()

    def close(self) -> None:
        if self.is_shown:
            self.stream.write("\n")
            self.stream.flush()


def _is_watched() -> bool:
    """A terminal, or a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def _show_of(progress: Progress) -> Optional[Callable[[int, int], Any]]:
    if callable(progress):
        return progress
    return Bar() if progress or (progress is None and _is_watched()) else None


def _wait(over: threading.Event, watch: Watch, show: Optional[Callable[[int, int], Any]]) -> None:
    shown, is_over = None, False
    while not is_over:
        is_over = over.wait(_STEP_S)
        if show and watch.to_do > 0 and shown != (watch.done, watch.to_do):
            shown = (watch.done, watch.to_do)
            show(*shown)


def _stop_and_wait(over: threading.Event, watch: Watch) -> None:
    """What the library works on must stay until it has stopped, however often Ctrl-C is pressed."""
    watch.is_stopped = 1
    while not over.is_set():
        try:
            over.wait()
        except KeyboardInterrupt:
            pass


def run_watched(work: Callable[[], Answer], watch: Watch, progress: Progress) -> Answer:
    """What `work` gives or raises; KeyboardInterrupt, and what a progress function raises, once it has stopped."""
    came: Dict[str, Any] = {}
    over = threading.Event()  # Thread.join takes a thread to have ended if a signal comes (CPython before 3.13)

    def do() -> None:
        try:
            came["answer"] = work()
        except BaseException as raised:  # pylint: disable=broad-except
            came["raised"] = raised
        finally:
            over.set()

    show = _show_of(progress)
    threading.Thread(target=do, name="pipecast", daemon=True).start()
    try:
        _wait(over, watch, show)
    except BaseException:
        _stop_and_wait(over, watch)
        raise
    finally:
        if isinstance(show, Bar):
            show.close()
    if "raised" in came:
        raise came["raised"]
    return came["answer"]


__all__ = ["Bar", "Progress", "Stopped", "Watch", "run_watched"]
