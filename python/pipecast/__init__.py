"""pipecast: forecasts of training large language models on GPU clusters, in the process that asks.

    import pipecast
    runs = pipecast.run(model="llama3-70b", machine="dgx-h100", gpus=512, tp=[4, 8], pp=4, schedule=["1f1b", "v-half"])

`run`, `sweep`, `plan`, `schedule` and `score` give a pandas DataFrame each, or a Table where there is no pandas. The
objects behind them, `Scenario`, `Sweep`, `Results`, `Schedule`, `Timeline` and `Score`, do more: timelines and charts that
show themselves in a notebook, and rows whose names have units. docs/python.md shows all of it.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._library import library as _library
from .charts import Chart, chart
from .errors import Error, InputError, MachineError, NoMemoryError, PipecastWarning, Stopped
from .imports import import_config
from .overrides import as_yaml
from .scenarios import Plans, Results, Scenario, Sweep, merge, open_results
from .orders import Pass, Schedule, table_of
from .scores import Score
from .tables import LibraryTable, Row, Table, answer, read_table
from .timelines import Timeline

__version__: str = _library.version().decode()


def run(scenario: Any = None, *, settings: Optional[Mapping[str, Any]] = None, sets: Iterable[str] = (),
        allow_outside: bool = False, threads: int = 0, output: Any = None, fresh: bool = False, progress: Any = None,
        **options: Any) -> Any:
    """Forecasts the runs of one scenario, a row each, with the columns of `pipecast run --format csv`.

    Settings are keyword arguments, and a list of values is swept; `scenario` is a file, beside which they are overrides,
    and so is `megatron`, with Megatron-LM's arguments. Scenario and Sweep say more of each argument.

    >>> runs = run(model="llama3-8b", machine="dgx-h100", gpus=64, tp=2, pp=2, global_batch=256, schedule=["1f1b", "zb-h1"])
    >>> [str(one) for one in runs["schedule"]]
    ['1f1b', 'zb-h1']
    """
    made = Scenario(scenario, settings=settings, sets=sets, allow_outside=allow_outside, **options)
    given = {"threads": threads, "output": output, "fresh": fresh, "progress": progress}
    return answer(made.run(**{name: value for name, value in given.items() if value not in (0, None)}))


def sweep(scenarios: Any, *, threads: int = 0, output: Any = None, fresh: bool = False,
          shard: Optional[Tuple[int, int]] = None, progress: Any = None, **options: Any) -> Any:
    """Forecasts the runs of several scenarios: files, Scenarios, or dicts of settings. `options` hold for files and dicts.

    >>> rows = sweep([{"gpus": 8}, {"gpus": 16}], model="gpt3-1.3b", machine="dgx-a100", global_batch=64)
    >>> len(rows["gpus"])
    2
    """
    made = [_scenario_of(one, options) for one in (scenarios if isinstance(scenarios, (list, tuple)) else [scenarios])]
    return answer(Sweep(made, threads=threads, output=output, fresh=fresh, shard=shard, progress=progress).run())


def _scenario_of(one: Any, options: Mapping[str, Any]) -> Scenario:
    if isinstance(one, Scenario):
        return one
    return Scenario(**{**options, **one}) if isinstance(one, Mapping) else Scenario(one, **options)


def plan(scenario: Any = None, *, top: Optional[int] = None, settings: Optional[Mapping[str, Any]] = None,
         sets: Iterable[str] = (), allow_outside: bool = False, threads: int = 0, all_variants: bool = False,
         exhaustive: bool = False, each: Any = None, map: Any = None, sensitivity: bool = False, seq_mix: Any = None,
         progress: Any = None, objective: Any = None, deadline: Any = None, budget: Any = None, most_iteration: Any = None,
         most_cost: Any = None, **options: Any) -> Any:
    """Searches for the best ways to train a model: a row for each plan, the best first. No row: nothing fits.

    Settings are as those of `run`; `top` is how many cuts, `objective` what is best ("memory", or several), and the
    others of these are limits, as the command has them: `deadline="30d"` and `budget="2M"` ask for the fewest GPUs
    for the training of `tokens`: a row for each listed number, and those between that do it (Scenario.plan_goal). One of
    four gives another answer instead: `each="gpus"` the best plan of each value of an axis (or two), `map="tp,pp"` of each
    two values, `sensitivity=True` what 20% less and more of everything make of the best plan, `seq_mix={"4k": 0.7, "32k":
    0.3}` the plans with sequences of several lengths. Scenario and its Plans do all of them.

    >>> best = plan(model="gpt3-1.3b", machine="dgx-a100", gpus=16, global_batch=64, top=2)
    >>> int(best["rank"][0])
    1
    >>> cells = plan(model="gpt3-1.3b", machine="dgx-a100", gpus=[8, 16], global_batch=64, tp=1, each="gpus")
    >>> [str(one) for one in cells["what"]]
    ['gpus 8', 'gpus 16']
    """
    has_goal = deadline is not None or budget is not None
    if sum((each is not None, map is not None, sensitivity, seq_mix is not None, has_goal)) > 1:
        raise TypeError("plan: several of each, map, sensitivity, seq_mix, and deadline or budget; expected one")
    asked = {"top": top, "objective": [objective] if isinstance(objective, str) else objective, "deadline": deadline, "budget": budget, "most_iteration": most_iteration,
             "most_cost": most_cost}
    sets = [*sets, *(f"plan.{key}={as_yaml(value)}" for key, value in asked.items() if value is not None)]
    made = Scenario(scenario, settings=settings, sets=sets, allow_outside=allow_outside, **options)
    if has_goal:
        return answer(made.plan_goal(threads=threads, progress=progress))
    if each is not None:
        return answer(made.plan_each(each, threads=threads, progress=progress))
    if map is not None:
        return answer(made.plan_map(map, threads=threads, progress=progress))
    plans = made.plan(threads=threads, all_variants=all_variants, exhaustive=exhaustive, progress=progress)
    if seq_mix is not None:
        return answer(plans.mix(seq_mix, threads=threads, progress=progress))
    return answer(plans.sensitivity(threads=threads, progress=progress) if sensitivity and plans.row_count else plans)


def schedule(name: Union[str, Sequence[str]], devices: int = 0, microbatches: int = 0, chunks: int = 0, **costs: Any) -> Any:
    """What schedules cost, a row each: span, bubble rates, memory and the least span. `costs` are those of Schedule.

    >>> two = schedule(["1f1b", "zb-h1"], 4, 8)
    >>> [float(span) for span in two["span"]]
    [33.0, 27.0]
    """
    names = [name] if isinstance(name, str) or hasattr(name, "__fspath__") else list(name)
    return answer(table_of([Schedule(one, devices, microbatches, chunks, **costs) for one in names]))


def score(measured: Any, *, by: Union[str, Sequence[str]] = (), conditions: Any = None,
          settings: Optional[Mapping[str, Any]] = None, sets: Iterable[str] = (), allow_outside: bool = False,
          threads: int = 0, progress: Any = None) -> Any:
    """Measured runs beside their forecasts, a row each: a CSV file (docs/score.md), or a DataFrame of its columns.

    Score has the sums, pairs and groups too.
    """
    return answer(Score(measured, by=by, conditions=conditions, settings=settings, sets=sets, allow_outside=allow_outside,
                        threads=threads, progress=progress).rows)


def models() -> Table:
    """The library's models: name and words."""
    return read_table(_library.constants["MODELS"])


def machines() -> Table:
    """The library's machines."""
    return read_table(_library.constants["MACHINES"])


def schedules() -> Table:
    """The schedules by name."""
    return read_table(_library.constants["SCHEDULES"])


def settings() -> Table:
    """Every setting: name, words, what may stand there, and what it is if it is not given."""
    return read_table(_library.constants["SETTINGS"])


__all__: List[str] = [
    "Chart", "Error", "InputError", "LibraryTable", "MachineError", "NoMemoryError", "Pass", "PipecastWarning", "Plans", "Results",
    "Row", "Scenario", "Schedule", "Score", "Stopped", "Sweep", "Table", "Timeline", "chart", "import_config", "machines", "merge", "models",
    "open_results", "plan", "run", "schedule", "schedules", "score", "settings", "sweep",
]
