"""Measured runs beside their forecasts."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from ._library import call, library, make, path_bytes, texts
from .overrides import overrides
from .tables import LibraryTable, Table
from .watch import Progress, Watch, run_watched


class Score:
    """What a table of measured runs came to: `rows`, `sums`, `missing`, `pairs` and `groups` are tables.

    `measured` is the path of a CSV file, or a DataFrame of the same columns. The rest is as in pipecast.score().
    """

    def __init__(self, measured: Any, *, by: Union[str, Sequence[str]] = (), conditions: Any = None,
                 settings: Optional[Mapping[str, Any]] = None, sets: Iterable[str] = (), allow_outside: bool = False,
                 threads: int = 0, progress: Progress = None) -> None:
        if hasattr(measured, "to_csv"):
            with tempfile.TemporaryDirectory(prefix="pipecast-") as folder:
                path = pathlib.Path(folder) / "measured.csv"
                measured.to_csv(path, index=False)
                self._run(path, by, conditions, overrides({}, settings, sets), allow_outside, threads, progress)
        else:
            self._run(measured, by, conditions, overrides({}, settings, sets), allow_outside, threads, progress)

    def _run(self, path: Any, by: Any, conditions: Any, sets: Any, allow_outside: bool, threads: int,
             progress: Progress) -> None:
        columns = [by] if isinstance(by, str) else list(by)
        watch = Watch()
        with watch as number:
            self._handle = make(library.score_free, library.score_load, path_bytes(path), watch.warn, number)
            if conditions is not None:
                call(library.score_set_conditions, self._handle, path_bytes(os.fspath(conditions)))
            library.score_watch(self._handle, watch.progress, watch.stop, watch.warn, number)
            run_watched(lambda: call(library.score_run, self._handle, texts(columns), len(columns), texts(sets),
                                     len(sets), int(allow_outside), threads), watch, progress)
            library.score_watch(self._handle, None, None, None, None)

    def _table(self, part: str) -> Table:
        handle = make(library.results_free, library.score_table, self._handle, library.constants["SCORE_" + part])
        return LibraryTable(handle, numeric_texts=part == "ROWS")

    @property
    def rows(self) -> Table:
        """The measured table's columns, and behind them what was forecast."""
        return self._table("ROWS")

    @property
    def sums(self) -> Table:
        """Errors of all rows, and of those of each value of what `by` named."""
        return self._table("SUMS")

    @property
    def missing(self) -> Table:
        """Features that rows could not be asked for, and how many rows."""
        return self._table("MISSING")

    @property
    def pairs(self) -> Table:
        """Runs that differ in one thing alone, by that thing."""
        return self._table("PAIRS")

    @property
    def groups(self) -> Table:
        """Configurations of one model on one machine: whether the fastest would have been chosen."""
        return self._table("GROUPS")


__all__ = ["Score"]
