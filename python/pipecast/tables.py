"""Tables: columns with names, units and words. They are mappings from a column's name to its values."""

from __future__ import annotations

import ctypes
import functools
import html
import math
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._library import Handle, call, library, make

try:
    import numpy
except ImportError:  # lists, then
    numpy = None  # type: ignore[assignment]

_TEXT, _INTEGER, _REAL = 0, 1, 2
_SHOWN_ROWS, _SHOWN_COLUMNS = 20, 12


def array(type_code: str, count: int) -> Tuple[Any, Any]:
    """Room for `count` numbers, "d" or "q", and its address for the library."""
    if numpy is not None:
        made = numpy.empty(count, dtype="float64" if type_code == "d" else "int64")
        return made, made.ctypes.data
    made = ((ctypes.c_double if type_code == "d" else ctypes.c_int64) * max(count, 1))()
    return made, ctypes.addressof(made)


def values_of(made: Any, count: int) -> Any:
    """What array() made as the values of a column: numpy's, or a list."""
    return made if numpy is not None else list(made[:count])


class Row:
    """A row, whose columns are attributes with their units in their names: `row.iteration_s`."""

    __slots__ = ("_table", "_index")

    def __init__(self, table: "Table", index: int) -> None:
        self._table, self._index = table, index

    def __getattr__(self, name: str) -> Any:
        try:
            return self._table.value(self._index, name)
        except KeyError:
            raise AttributeError(f"there is no column {name}") from None

    def __dir__(self) -> List[str]:
        return list(self._table)

    def __iter__(self) -> Iterator[Any]:
        return (self._table.value(self._index, name) for name in self._table)

    def __repr__(self) -> str:
        shown = ((name, self._table.value(self._index, name)) for name in self._table)
        return "Row(" + ", ".join(f"{name}={value!r}" for name, value in shown if is_defined(value)) + ")"

    def __reduce__(self) -> Any:
        return Row, (self._table, self._index)


def is_defined(value: Any) -> bool:
    """Whether a value is one: not NaN, and not None."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


class Table(Mapping[str, Any]):
    """Columns by name, all of one length: numpy arrays, or lists where there is no numpy.

    Texts that are not defined are None, numbers NaN. Whole numbers of which some are not defined are floats.
    """

    def __init__(self, columns: Mapping[str, Any], units: Optional[Mapping[str, str]] = None,
                 words: Optional[Mapping[str, str]] = None, title: str = "") -> None:
        self._columns: Dict[str, Any] = dict(columns)
        self.units: Dict[str, str] = dict(units or {})
        self.words: Dict[str, str] = dict(words or {})
        self.title = title

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def row_count(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def value(self, row: int, name: str) -> Any:
        """One value, as Python has it."""
        found = self[name][row]
        return found.item() if hasattr(found, "item") else found

    def row(self, index: int) -> Row:
        """Row `index`, from 0; from the end if it is below."""
        count = self.row_count
        if not -count <= index < count:
            raise IndexError(f"row {index}: there is none; expected 0 to {count - 1}")
        return Row(self, index % count)

    def rows(self) -> Iterator[Row]:
        return (Row(self, index) for index in range(self.row_count))

    def to_dict(self) -> Dict[str, Any]:
        """Its columns as a dict."""
        return {name: self[name] for name in self}

    def to_pandas(self) -> Any:
        """A DataFrame; units and words are in its `attrs`."""
        import pandas

        frame = pandas.DataFrame(self.to_dict())
        frame.attrs.update(units=dict(self.units), words=dict(self.words))
        return frame

    # ---- shown ----

    def _shown(self) -> Tuple[List[str], List[List[str]]]:
        names = [name for name in self if any(is_defined(value) for value in self[name])][:_SHOWN_COLUMNS]
        rows = [[_cell(self.value(row, name)) for name in names] for row in range(min(self.row_count, _SHOWN_ROWS))]
        return names, rows

    def __repr__(self) -> str:
        names, rows = self._shown()
        widths = [max(map(len, column)) for column in zip(names, *rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [names, *rows]]
        return "\n".join([*lines, f"[{self.row_count} rows x {len(self)} columns]"])

    def _repr_html_(self) -> str:
        names, rows = self._shown()
        heads = "".join(f'<th title="{html.escape(self.words.get(name, ""))}">{html.escape(name)}</th>' for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return (f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
                f"<p>{self.row_count} rows, {len(self)} columns</p>")

    def __reduce__(self) -> Any:
        return Table, (self.to_dict(), self.units, self.words, self.title)


def _cell(value: Any) -> str:
    if not is_defined(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class LibraryTable(Table):
    """A table that the library holds; a column is read when it is first asked for."""

    def __init__(self, handle: Handle, title: str = "", numeric_texts: bool = False,
                 columns: Optional[Dict[str, Tuple[int, int]]] = None) -> None:
        self._found = {} if columns is None else columns  # number and type by name; tables of the same columns share it
        self._columns = {}
        self.title = title
        self._handle = handle
        self._numeric_texts = numeric_texts
        self._names: Optional[Dict[str, int]] = None

    def _index(self) -> Dict[str, int]:
        if self._names is None:
            count = library.results_column_count(self._handle)
            names = [library.results_column_name(self._handle, column).decode() for column in range(count)]
            self._names = {name: column for column, name in enumerate(names)}
        return self._names

    @property
    def units(self) -> Dict[str, str]:  # type: ignore[override]
        """Of each column: "s", "GiB", "1" for a fraction or a count, "" for a text."""
        return {name: library.results_column_unit(self._handle, at).decode() for name, at in self._index().items()}

    @property
    def words(self) -> Dict[str, str]:  # type: ignore[override]
        """What each column means."""
        return {name: library.results_column_words(self._handle, at).decode() for name, at in self._index().items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._index())

    def __len__(self) -> int:
        return len(self._index())

    def __contains__(self, name: object) -> bool:
        return name in self._index()

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name]

    @property
    def row_count(self) -> int:
        return library.results_row_count(self._handle)

    def _find(self, name: str) -> Tuple[int, int]:
        """A column's number and type, which are -1 if there is none."""
        if "\0" in name:  # which the library would read as its end
            return -1, -1
        column = library.results_find(self._handle, name.encode())
        found = self._found[name] = column, library.results_column_type(self._handle, column)
        return found

    def value(self, row: int, name: str) -> Any:
        column, kind = self._found.get(name) or self._find(name)
        if kind == _REAL:
            return library.results_real(self._handle, row, column)
        if kind == _INTEGER:
            found = library.results_integer(self._handle, row, column)
            return None if found == -1 else found
        if kind != _TEXT:
            raise KeyError(name)
        room = ctypes.create_string_buffer(512)
        library.results_text(self._handle, row, column, room, 512)
        return room.value.decode(errors="replace") or None

    def _read(self, name: str) -> Any:
        column, kind = self._found.get(name) or self._find(name)
        if kind == _TEXT:
            return self._read_texts(column)
        if kind == -1:
            raise KeyError(name)
        count = self.row_count
        made, at = array("d" if kind == _REAL else "q", count)
        call(library.results_reals if kind == _REAL else library.results_integers, self._handle, column, at)
        values = values_of(made, count)
        return values if kind == _REAL else _without_holes(values)

    def _read_texts(self, column: int) -> Any:
        size = library.results_texts(self._handle, column, None, 0)
        room = ctypes.create_string_buffer(size or 1)
        library.results_texts(self._handle, column, room, size)
        found: List[Any] = [text.decode(errors="replace") or None for text in room.raw[:size].split(b"\0")[:-1]]
        if self._numeric_texts:
            found = _as_numbers(found)
        if numpy is None:
            return found
        return numpy.array(found, dtype="float64" if found and isinstance(found[0], float) else object)


def _without_holes(values: Any) -> Any:
    """Whole numbers, of which -1 is not defined."""
    if numpy is not None:
        return numpy.where(values == -1, numpy.nan, values) if (values == -1).any() else values
    return [math.nan if value == -1 else value for value in values]


def _as_numbers(found: List[Any]) -> List[Any]:
    """Texts that are all numbers as such; others as they were."""
    try:
        return [math.nan if text is None else float(text) for text in found] if any(found) else found
    except ValueError:
        return found


def read_table(subject: int) -> LibraryTable:
    """What the library has of a pipecast_subject."""
    return LibraryTable(make(library.results_free, library.list, subject))


@functools.lru_cache(maxsize=None)
def _has_pandas() -> bool:
    """Asked once: to look for what is not there takes as long as several forecasts."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        return False
    return True


def answer(table: Table) -> Any:
    """A DataFrame where there is pandas, else the table."""
    return table.to_pandas() if _has_pandas() else table
