"""Scenarios, and what their runs come to."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._library import Handle, call, library, make, path_bytes, text_bytes, texts
from .charts import Chart
from .imports import import_config
from .overrides import overrides
from .tables import LibraryTable, Table
from .timelines import Timeline
from .watch import Progress, Say, Watch, run_watched

PathLike = Union[str, "os.PathLike[str]"]
Axes = Union[str, Sequence[str]]
_One = ctypes.c_void_p * 1
_columns: Dict[str, Tuple[int, int]] = {}  # of every sweep in memory, as they are asked for: number and type


class Results(LibraryTable):
    """The runs of a sweep, or plans: a row each, with the columns of `pipecast run --format csv`."""

    def timeline(self, row: int = 0, title: Optional[str] = None) -> Timeline:
        """When each pass of a row's run ran; its scenario must have asked for that with `trace=True`."""
        handle = make(library.replay_free, library.results_replay, self._handle, range(self.row_count)[row])
        return Timeline(handle, title or self._title_of(row), is_run=True)

    def _title_of(self, row: int) -> str:
        words = [self.value(row, name) for name in ("model", "schedule")]
        return ", ".join(word for word in words if word)

    def chart(self, x: str, y: Union[str, Sequence[str]], series: Optional[str] = None, panels: Optional[str] = None,
              style: str = "points", title: str = "", published: bool = False) -> Chart:
        """A chart of these runs: columns as `pipecast figure` takes them."""
        return Chart(self, x, y, series, panels, style, title, published, self._handle)

    def overrides(self, row: int = 0) -> List[str]:
        """Of a plan: what makes its run, beside what the plan was asked for."""
        found: List[str] = []
        while True:
            text = library.plan_set(self._handle, row, len(found))
            if text is None:
                return found
            found.append(text.decode())


class Plans(Results):
    """Plans, the best first: a row each, with the columns of `pipecast plan --format csv`."""

    def __init__(self, handle: Handle, planner: Handle) -> None:
        super().__init__(handle)
        self._planner = planner

    def sensitivity(self, row: int = 0, *, anew: bool = False, threads: int = 0, progress: Progress = None) -> Results:
        """What becomes of a plan with 20% less and 20% more of each thing that it has: bandwidths, rates, memory, the batch.

        Two rows for each, what matters most first: `what` and `factor` say what is changed. With `anew` two more, of the
        best plan then, for which the whole space is searched.
        """
        flags = library.constants["ANEW"] if anew else 0
        place = range(self.row_count)[row]
        return Results(_ask(self._planner, progress, lambda watch, number: make(
            library.results_free, library.plan_sensitivity, self._planner, self._handle, place, threads, flags,
            watch.progress, number)))

    def mix(self, lengths: Union[str, Mapping[Any, float]], *, threads: int = 0, progress: Progress = None) -> Results:
        """The plans with sequences of several lengths, each so large a part of all tokens: {"4k": 0.7, "32k": 0.3}.

        A row for each, the fastest then first; `what` is "plan 2". Plans must be of the longest length, which the others
        divide. Seconds of a token are means, the memory is the largest.
        """
        text = lengths if isinstance(lengths, str) else ",".join(f"{length}:{part}" for length, part in lengths.items())
        return Results(_ask(self._planner, progress, lambda watch, number: make(
            library.results_free, library.plan_mix, self._planner, self._handle, text_bytes(text), threads, watch.progress,
            number)))


def _ask(planner: Handle, progress: Progress, question: Callable[[Watch, Any], Handle]) -> Handle:
    """What the library answers, who asked looking on."""
    watch = Watch()
    with watch as number:
        library.plan_watch(planner, watch.stop, number)
        return run_watched(lambda: question(watch, number), watch, progress)


class Scenario:
    """Settings, and what is swept, as a list of runs.

    `path` is a scenario's file; `text` is what stands in one; `megatron` is a launch script, a log or YAML with
    Megatron-LM's arguments, which stands for a file; keyword arguments are settings: names of the options of
    `pipecast run` with _ for -, or keys (pipecast.settings()). A list is swept. `settings` is a dict of the same, for
    keys with dots; `sets` are KEY=VALUE as the command's `--set` takes them.

    >>> cut = Scenario(model="llama3-8b", machine="dgx-h100", gpus=64, tp=[1, 2], pp=2, global_batch=256)
    >>> len(cut)
    2
    >>> 0.2 < cut.run().row(0).mfu < 0.7
    True
    """

    def __init__(self, path: Optional[PathLike] = None, *, text: Optional[str] = None, megatron: Optional[PathLike] = None,
                 settings: Optional[Mapping[str, Any]] = None, sets: Iterable[str] = (), allow_outside: bool = False,
                 **options: Any) -> None:
        if megatron is not None:
            if path is not None or text is not None:
                raise TypeError("Scenario: megatron beside a path or a text; expected one of them")
            path, text = megatron, import_config(megatron, "megatron")
        self._source = (path, text, overrides(options, settings, sets), allow_outside)
        self._loaded: Optional[Handle] = None
        self._has_run = False

    def _arguments(self) -> Tuple[Any, ...]:
        path, text, sets, allow_outside = self._source
        name = None if path is None else path_bytes(path)
        return (name, None if text is None else text_bytes(text), texts(sets), len(sets), int(allow_outside))

    @property
    def _handle(self) -> Handle:
        if self._loaded is None:
            self._loaded = make(library.scenario_free, library.scenario_load, *self._arguments())
        return self._loaded

    @property
    def name(self) -> str:
        return library.scenario_name(self._handle).decode()

    def __len__(self) -> int:
        """How many runs it has."""
        return library.scenario_run_count(self._handle)

    @property
    def run_names(self) -> List[str]:
        room = ctypes.create_string_buffer(128)
        names = []
        for run in range(len(self)):
            call(library.scenario_run_name, self._handle, run, room, 128)
            names.append(room.value.decode())
        return names

    def run(self, **how: Any) -> Results:
        """Does all of its runs: see Sweep, whose arguments it takes."""
        if how:
            return Sweep([self], **how).run()
        if self._is_one_forecast():
            return self._forecast()
        return self._run_one() if len(self) == 1 else Sweep([self]).run()

    def _is_one_forecast(self) -> bool:
        """Whether settings alone say it, none is swept, and nothing has been asked of it yet: who asks again gains by
        keeping it loaded."""
        path, text, sets, _ = self._source
        if self._has_run or self._loaded is not None or path is not None or text is not None:
            return False
        for one in sets:
            if one.startswith("sweep"):
                return False
        return True

    def _forecast(self) -> Results:
        """A single run, loaded and done by one call."""
        _, _, sets, allow_outside = self._source
        results, number = ctypes.c_void_p(), Say.number()
        self._has_run = True
        try:
            call(library.run, texts(sets), len(sets), int(allow_outside), Say.warn, number, ctypes.byref(results))
        finally:
            Say.end(number)
        return Results(Handle(results.value, library.results_free), columns=_columns)

    def _run_one(self) -> Results:
        """A single run, by the caller's thread: what costs the least."""
        sweep, results, watch = ctypes.c_void_p(), ctypes.c_void_p(), Watch()
        call(library.sweep_create, _One(self._handle._as_parameter_), 1, ctypes.byref(sweep))
        try:
            with watch as number:
                library.sweep_set_threads(sweep, 1, None)
                library.sweep_watch(sweep, None, None, watch.warn, number)
                call(library.sweep_run, sweep, ctypes.byref(results))
        finally:
            library.sweep_free(sweep)
        return Results(Handle(results.value, library.results_free), columns=_columns)

    def plan(self, *, threads: int = 0, all_variants: bool = False, exhaustive: bool = False,
             progress: Progress = None) -> Plans:
        """Searches for the best way to train its model: a row for each plan, the best first. No row: nothing fits."""
        planner = self._planner()
        flags = (library.constants["ALL_VARIANTS"] if all_variants else 0) | (
            library.constants["EXHAUSTIVE"] if exhaustive else 0)
        return Plans(_ask(planner, progress, lambda watch, number: make(
            library.results_free, library.plan_run, planner, threads, flags, watch.progress, number)), planner)

    def plan_each(self, axes: Axes, *, threads: int = 0, progress: Progress = None) -> Results:
        """The best plan of each value of an axis, or of each two values of two: "gpus", ["machine", "schedule"].

        Where there is no plan, `status` is not ok and `message` says why.
        """
        return self._plan_cells(library.plan_each, axes, threads, progress)

    def plan_map(self, axes: Axes, *, threads: int = 0, progress: Progress = None) -> Results:
        """The same as a map of two axes: "tp,pp"."""
        return self._plan_cells(library.plan_map, axes, threads, progress)

    def plan_goal(self, *, threads: int = 0, progress: Progress = None) -> Results:
        """The fewest GPUs on which the training keeps to `deadline` and `budget` of the plan.

        A row for each machine and listed number of GPUs, from the fewest on; the last row of a machine keeps to both,
        if one does: `training_days` and `training_cost` tell. Then whole nodes are tried between that number and the
        largest below that misses; those that keep to both have rows, too. The first row that does is the answer.
        """
        planner = self._planner()
        return Results(_ask(planner, progress, lambda watch, number: make(
            library.results_free, library.plan_goal, planner, threads, watch.progress, number)))

    def _planner(self) -> Handle:
        return make(library.plan_free, library.plan_load, *self._arguments())

    def _plan_cells(self, function: Any, axes: Axes, threads: int, progress: Progress) -> Results:
        planner = self._planner()
        text = (axes if isinstance(axes, str) else ",".join(axes))
        return Results(_ask(planner, progress, lambda watch, number: make(
            library.results_free, function, planner, text_bytes(text), threads, watch.progress, number)))

    def __repr__(self) -> str:
        path, _, sets, _ = self._source
        return f"Scenario({', '.join([repr(str(path))] if path else [])}{', '.join(sets)})"

    def __reduce__(self) -> Any:
        return _load_scenario, self._source


def _load_scenario(path: Any, text: Optional[str], sets: List[str], allow_outside: bool) -> Scenario:
    return Scenario(path, text=text, sets=sets, allow_outside=allow_outside)


class Sweep:
    """The runs of some scenarios, to be done: Scenarios, or paths of their files.

    threads: 0, one for every core. output: an HDF5 file that keeps the results; a sweep that was stopped goes on from
    it, and runs that are there are not done again, unless `fresh`. shard: (1, 4) is the first of four equal shares.
    progress: None, a bar in a terminal or a notebook; True or False; or a function of (done, to_do). Ctrl-C stops it.
    """

    def __init__(self, scenarios: Union[PathLike, Scenario, Iterable[Union[PathLike, Scenario]]], *, threads: int = 0, output: Optional[PathLike] = None,
                 fresh: bool = False, shard: Optional[Tuple[int, int]] = None, progress: Progress = None) -> None:
        some = [scenarios] if isinstance(scenarios, (str, os.PathLike, Scenario)) else scenarios
        self.scenarios = [one if isinstance(one, Scenario) else Scenario(one) for one in some]
        self._how: Dict[str, Any] = {"threads": threads, "output": output, "fresh": fresh, "shard": shard}
        self._progress = progress

    def _create(self) -> Handle:
        handles = [one._handle for one in self.scenarios]
        array = (ctypes.c_void_p * len(handles))(*[one._as_parameter_ for one in handles])
        handle = make(library.sweep_free, library.sweep_create, array, len(handles))
        threads, output, shard = self._how["threads"], self._how["output"], self._how["shard"]
        if threads:
            call(library.sweep_set_threads, handle, threads)
        if output is not None:
            call(library.sweep_set_output, handle, path_bytes(output), int(self._how["fresh"]))
        if shard is not None:
            call(library.sweep_set_shard, handle, shard[0], shard[1])
        return handle

    def run(self) -> Results:
        """Does them."""
        handle = self._create()
        watch = Watch()
        with watch as number:
            library.sweep_watch(handle, watch.progress, watch.stop, watch.warn, number)
            return Results(run_watched(lambda: make(library.results_free, library.sweep_run, handle), watch,
                                       self._progress))


def open_results(path: PathLike) -> Results:
    """The results in a file of `pipecast run -o` or of `sweep(output=...)`."""
    return Results(make(library.results_free, library.results_open, path_bytes(path)))


def merge(output: PathLike, shards: Sequence[PathLike]) -> None:
    """Makes one results file of those of all shards of a sweep."""
    watch = Watch()
    with watch as number:
        paths = (ctypes.c_char_p * len(shards))(*[path_bytes(one) for one in shards])
        call(library.sweep_merge, path_bytes(output), paths, len(shards), watch.warn, number)
