"""A results file as Python sees it: rows and traces, read through the command, and pictures asked of it."""
import csv
import dataclasses
import io
import json
import pathlib
import subprocess

from failure import BAD_INPUT, MACHINE, Failure


class Row(dict):
    """A run: row["mfu"] or row.mfu, a number or text as in `pipecast run --format json`; None where not defined."""

    def __missing__(self, column):
        raise Failure(f"run {dict.get(self, 'name')}: no column '{column}'; expected one that `pipecast export` writes")

    def __getattr__(self, column):
        if column.startswith("__"):  # what Python itself asks for, when it copies and the like
            raise AttributeError(column)
        return self[column]


@dataclasses.dataclass(frozen=True)
class Event:
    """A line of a trace (results/export.h). What an event does not have is None."""
    event: str  # pass, transfer, level, block
    device: int
    to_device: int | None
    kind: str | None  # F, B, W, BW, R, S, T
    chunk: int | None
    microbatch: int | None
    start_ps: int | None
    end_ps: int | None
    bytes: int | None
    start_cells: int | None
    end_cells: int | None
    interval_cells: int | None


def run(pipecast, *arguments):
    """What the command prints; Failure with its own words where it does not end well."""
    try:
        done = subprocess.run([pipecast, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Failure(f"{pipecast}: {error.strerror}; expected the command pipecast") from error
    if done.returncode != 0:
        words = done.stderr.strip().removeprefix("pipecast: ") or f"{arguments[0]} ended with {done.returncode}"
        raise Failure(words, BAD_INPUT if done.returncode in (1, 2) else MACHINE)
    return done.stdout


class Results:
    """`pictures` (pictures.py) is told what draw() asks for."""

    def __init__(self, pipecast, path, pictures=None):
        self.pipecast, self.path, self.pictures = str(pipecast), str(path), pictures
        if not pathlib.Path(self.path).is_file():
            raise Failure(f"{self.path}: no such file; expected a results file of `pipecast run -o`")
        self._rows = None
        self._traces = {}
        self._models = None

    def scenarios(self):
        """Names, in the file's order."""
        return list(self._by_scenario())

    def rows(self, scenario, **columns):
        """The runs of a scenario in the file's order; of those the ones whose columns are as given."""
        by_scenario = self._by_scenario()
        if scenario not in by_scenario:
            raise Failure(f"{self.path}: no scenario '{scenario}'; expected one of {', '.join(by_scenario) or 'none'}")
        return [row for row in by_scenario[scenario] if all(row[name] == value for name, value in columns.items())]

    def row(self, scenario, name):
        """The run of this name."""
        found = self.rows(scenario, name=name)
        if len(found) != 1:
            raise Failure(f"{self.path}: {len(found)} runs '{scenario}/{name}'; expected one")
        return found[0]

    def trace(self, scenario, name):
        """The events of a run that kept its trace."""
        run_name = f"{scenario}/{name}"
        if run_name not in self._traces:
            text = run(self.pipecast, "export", self.path, "--run", run_name, "--to", "csv")
            self._traces[run_name] = [_event(line) for line in csv.DictReader(io.StringIO(text))]
        return self._traces[run_name]

    def models(self):
        """{name: {column: number}} of the library's models, which no run has a column for: layers, hidden, heads."""
        if self._models is None:
            header, *lines = run(self.pipecast, "list", "models").splitlines()
            if header.split()[:6] != ["name", "param.", "B", "layers", "hidden", "heads"]:
                raise Failure(f"{self.pipecast}: list models begins with '{header}'; expected names, layers, hidden, heads")
            self._models = {name: {"layers": int(layers), "hidden": int(hidden), "heads": int(heads)}
                            for name, _, layers, hidden, heads in (line.split()[:5] for line in lines)}
        return self._models

    def draw(self, name, path, *options):
        """A picture of a chart or a run, by a name that `pipecast figure` knows (SCENARIO/NAME), or, with name None, by
        its options. It will stand at `path`, relative to the page, when the page is done; returns that path."""
        if self.pictures is None:
            raise Failure(f"{path}: nowhere to draw it; expected results with pictures")
        return self.pictures.ask(path, [*([name] if name else []), *options])

    def _by_scenario(self):
        if self._rows is None:
            self._rows = {}
            for line in _json(self.path, run(self.pipecast, "export", self.path, "--to", "json")):
                row = Row(line)
                self._rows.setdefault(row["scenario"], []).append(row)
        return self._rows


def _json(path, text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"{path}: what `pipecast export --to json` wrote is no JSON: {error}", MACHINE) from error


def _event(line):
    names = [field.name for field in dataclasses.fields(Event)]
    missing = [name for name in names if name not in line]
    if missing:
        raise Failure(f"a trace without {', '.join(missing)}; expected the columns of results/export.h")
    return Event(**{name: _value(name, line[name]) for name in names})


def _value(name, text):
    if not text:
        return None
    return text if name in ("event", "kind") else int(text)
