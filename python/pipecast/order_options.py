"""The options of a schedule as the library takes them: KEY=VALUE, as `pipecast schedule` reads them."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Sequence, Tuple, Union

Three = Tuple[float, float, float]
Times = Union[Three, Sequence[Three], str, "os.PathLike[str]"]
Limit = Union[None, float, str, Sequence[float]]


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _number(value: Any) -> str:
    """So many digits that it reads back the same."""
    return repr(float(value)) if isinstance(value, float) or hasattr(value, "dtype") else str(value)


def _with_commas(values: Any) -> str:
    return ",".join(_number(one) for one in values)


def text_of(value: Any) -> str:
    """A value as its option has it: lists with commas, lists of lists with '/' between them.

    >>> text_of((1, 2.5, 1)), text_of([(1, 2, 1), (2, 2, 2)]), text_of(True), text_of("60GiB")
    ('1,2.5,1', '1,2,1/2,2,2', 'true', '60GiB')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_text(value):
        return os.fspath(value)
    if not hasattr(value, "__iter__"):
        return _number(value)
    items = list(value)
    if items and hasattr(items[0], "__iter__"):
        return "/".join(_with_commas(one) for one in items)
    return _with_commas(items)


def options_of(given: Mapping[str, Any]) -> List[str]:
    """All of them; None, and 0 of a shape, is not given."""
    shape = ("devices", "microbatches", "chunks", "slices")
    return [f"{name}={text_of(value)}" for name, value in given.items()
            if value is not None and not (name in shape and type(value) is int and value == 0)]


__all__ = ["Limit", "Times", "options_of", "text_of"]
