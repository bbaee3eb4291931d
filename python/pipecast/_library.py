"""The shared library, and how it is called.

Prototypes and constants are read from abi.txt, the list of the public interface (docs/library.md), so that each stands
once. Calls let go of the GIL while they are in the library.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import re
import sys
import sysconfig
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .errors import InputError, error_of

NAMES = ("libpipecast.so", "libpipecast.so.0.1", "libpipecast.dylib")
_WHEEL_FOLDER = ".pipecast.mesonpy.libs"
_SCALARS: Dict[str, Any] = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
                            "double": ctypes.c_double, "void": None, "const char *": ctypes.c_char_p}


class ErrorText(ctypes.Structure):
    """pipecast_error of pipecast.h, which never changes its size."""

    _fields_ = [("code", ctypes.c_int), ("reserved_code", ctypes.c_int), ("line", ctypes.c_int64),
                ("file", ctypes.c_char * 256), ("key", ctypes.c_char * 256), ("message", ctypes.c_char * 1024),
                ("expected", ctypes.c_char * 256), ("reserved", ctypes.c_char * 240)]


class Costs(ctypes.Structure):
    """pipecast_costs of pipecast.h, which never changes its size."""

    _fields_ = [("f", ctypes.c_double), ("b", ctypes.c_double), ("w", ctypes.c_double), ("transfer", ctypes.c_double),
                ("release_b", ctypes.c_double), ("keep", ctypes.c_double), ("reserved", ctypes.c_double * 6)]


def _folders() -> Iterator[pathlib.Path]:
    here = pathlib.Path(__file__).resolve().parent
    yield here
    for root in (here.parent, pathlib.Path(sysconfig.get_path("platlib")), *map(pathlib.Path, sys.path)):
        yield root / _WHEEL_FOLDER


def find() -> str:
    """The library's path: PIPECAST_LIBRARY, or that in the wheel, or else a name for the loader to look for."""
    given = os.environ.get("PIPECAST_LIBRARY")
    if given:
        return given
    for folder in _folders():
        for name in NAMES:
            if (folder / name).is_file():
                return str(folder / name)
    return NAMES[1]


def _type_of(text: str) -> Any:
    """Of an argument without its name, or of a result: pointers are addresses, and texts bytes."""
    text = text.strip()
    if text in _SCALARS:
        return _SCALARS[text]
    return ctypes.POINTER(ctypes.c_char_p) if text == "const char *const *" else ctypes.c_void_p


def _prototype(line: str) -> Tuple[str, Any, List[Any]]:
    found = re.fullmatch(r"(.*?)(\w+)\((.*)\)", line)
    assert found, line
    result, name, arguments = found.groups()
    if arguments == "void":
        return name, _type_of(result), []
    types = [_type_of(re.sub(r"\w+$", "", one.strip())) for one in arguments.split(",")]
    return name, _type_of(result), types


def _read_interface() -> Tuple[List[Tuple[str, Any, List[Any]]], Dict[str, int]]:
    lines = (pathlib.Path(__file__).resolve().parent / "abi.txt").read_text().splitlines()
    prototypes = [_prototype(line) for line in lines if "(" in line]
    constants = [line.split(" = ") for line in lines if " = " in line]
    return prototypes, {name[len("PIPECAST_"):]: int(number) for name, number in constants}


class Library:
    """Its functions as attributes, without their `pipecast_`."""

    def __init__(self) -> None:
        self.path = find()
        try:
            loaded = ctypes.CDLL(self.path)
        except OSError as cause:
            raise ImportError(f"cannot load {self.path}: {cause}; expected the library of a wheel, an installed "
                              "libpipecast, or the variable PIPECAST_LIBRARY with its path") from cause
        prototypes, self.constants = _read_interface()
        for name, result, arguments in prototypes:
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, re.sub("^(pipecast|pc)_", "", name), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"libpipecast has no pipecast_{name}")


library = Library()
_thread = threading.local()


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls what returns a code and takes an error last; raises that error."""
    try:
        why = _thread.error
    except AttributeError:
        why = _thread.error = ErrorText()
        _thread.at = ctypes.byref(why)
    if function(*arguments, _thread.at):
        raise error_of(why)


class Handle:
    """What the library gave, and how it is freed."""

    __slots__ = ("_as_parameter_", "_free")

    def __init__(self, pointer: Optional[int], free: Callable[[Any], None]) -> None:
        self._as_parameter_ = pointer
        self._free = free

    def __del__(self) -> None:
        self._free(self._as_parameter_)


def make(free: Callable[[Any], None], function: Callable[..., int], *arguments: Any) -> Handle:
    """Calls what gives a handle as its last argument before the error."""
    given = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(given))
    return Handle(given.value, free)


@functools.lru_cache(maxsize=256)
def _texts_of(count: int) -> Any:
    return ctypes.c_char_p * count


def _without_nul(given: Any, found: bytes) -> bytes:
    """What C reads whole, for it would end at the first NUL."""
    if b"\0" in found:
        raise InputError(f"{given!r}: has a NUL; expected a text without one", expected="a text without one")
    return found


def text_bytes(text: str) -> bytes:
    """A text as the library takes it; bytes of a path that are no UTF-8 stay."""
    return _without_nul(text, text.encode(errors="surrogateescape"))


def texts(items: List[str]) -> Any:
    """An array of C strings; None of none."""
    return _texts_of(len(items))(*[text_bytes(one) for one in items]) if items else None


def path_bytes(path: Any) -> bytes:
    """A path as the library takes it; a TypeError of None, which it would follow."""
    return _without_nul(path, os.fsencode(path))
