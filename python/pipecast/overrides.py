"""Keyword arguments as overrides of a scenario: what the command's options and `--set` do."""

from __future__ import annotations

import functools
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional

from ._library import library
from .tables import read_table

_RANGE = re.compile(r" *[0-9]+ *\.\. *[0-9]+ *([x+] *[0-9]+ *)?")
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./ +-]*")
_ONLY_TEXTS = {str}
_WORDS_OF_YAML = {"null", "true", "false", "yes", "no", "on", "off"}


class Key(NamedTuple):
    """A key of `setting:`, and that of `sweep:` which lists values of it, if one does."""

    key: str
    sweep: Optional[str]


@functools.lru_cache(maxsize=None)
def known() -> Dict[str, Key]:
    """Every name that an argument may have: of options with _ for -, and of keys."""
    table = read_table(library.constants["SETTINGS"])
    keys = list(zip(table["name"], table["option"], table["sweep"]))
    names = {name: Key(name, sweep or None) for name, _, sweep in keys}
    names.update({option.replace("-", "_"): Key(name, sweep or None) for name, option, sweep in keys if option})
    return names


@functools.lru_cache(maxsize=4096)
def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML and not value.endswith(" "):
        return value
    return "'" + value.replace("'", "''") + "'"


def as_yaml(value: Any) -> str:
    """A value as YAML's flow style has it.

    >>> as_yaml({"F": "1 ms", "B": 2})
    '{F: 1 ms, B: 2}'
    >>> as_yaml([True, 0.5, "15,16,16,15"])
    "[true, 0.5, '15,16,16,15']"
    """
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        return str(value)
    if kind is bool or kind.__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return _text(os.fspath(value))
    if kind is dict or isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {as_yaml(one)}" for key, one in value.items()) + "}"
    if is_list(value):
        return "[" + ", ".join(as_yaml(one) for one in value) + "]"
    if hasattr(value, "item"):
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)


def is_list(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is dict or kind is float:
        return False
    return not isinstance(value, (str, bytes, Mapping, os.PathLike)) and hasattr(value, "__iter__")


@functools.lru_cache(maxsize=4096)
def _of_plain(name: str, value: Any, kind: Any) -> str:
    """`kind` is the value's, for 1, 1.0 and True are one key of a dict."""
    key, sweep = known().get(name) or (name, None)
    if sweep and kind is str and _RANGE.fullmatch(value):
        return f"sweep.{sweep}=[{value.strip()}]"
    return f"setting.{key}={as_yaml(value)}"


@functools.lru_cache(maxsize=4096)
def _of_texts(name: str, items: Any) -> str:
    """Of a dict of texts alone, which are what they are: as its pairs, which can be looked up."""
    return _of_others(name, dict(items))


def override(name: str, value: Any) -> str:
    """KEY=VALUE for one argument.

    >>> override("gpus", 512)
    'setting.gpus=512'
    >>> override("tp", [4, 8])
    'sweep.tp=[4, 8]'
    >>> override("gpus", "64..512x2")
    'sweep.gpus=[64..512x2]'
    """
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool:
        return _of_plain(name, value, kind)
    if kind is dict and {*map(type, value), *map(type, value.values())} == _ONLY_TEXTS:
        return _of_texts(name, (*value.items(),))
    return _of_others(name, value)


def _of_others(name: str, value: Any) -> str:
    key, sweep = known().get(name) or (name, None)
    if isinstance(value, Mapping):  # keys below: of `model`, whose option is model.from, or as it is called
        key = key[: -len(".from")] if key.endswith(".from") else name
    if sweep and is_list(value):
        return f"sweep.{sweep}={as_yaml(value)}"
    return f"setting.{key}={as_yaml(value)}"


def overrides(arguments: Mapping[str, Any], settings: Optional[Mapping[str, Any]] = None,
              sets: Iterable[str] = ()) -> List[str]:
    """All of them: `sets` as they are, last; a value of None is not given."""
    given = {**settings, **arguments} if settings else arguments
    return [override(name, value) for name, value in given.items() if value is not None] + list(sets)
