"""What can go wrong, as exceptions that know where."""

from __future__ import annotations

from typing import Any, Optional


class Error(Exception):
    """Something was wrong: `str(error)` is the line that the command prints.

    Attributes say the same in parts: `file` and `line` (None where there is none), `key` ("setting.tp"), `expected`
    ("1 to 64"). Texts that do not apply are "".
    """

    def __init__(self, message: str, file: str = "", line: Optional[int] = None, key: str = "", expected: str = "") -> None:
        super().__init__(message, file, line, key, expected)
        self.message, self.file, self.line, self.key, self.expected = message, file, line, key, expected

    def __str__(self) -> str:
        return self.message


class InputError(Error, ValueError):
    """What you gave is wrong: a file, a key, a value, a combination."""


class NoMemoryError(Error, MemoryError):
    """The allocator gave nothing."""


class MachineError(Error, OSError):
    """The machine's fault: a disk, a pipe, a missing program."""

    def __str__(self) -> str:
        return self.message


class Stopped(Error):
    """The work was stopped before it was done."""


class PipecastWarning(UserWarning):
    """What you may not expect, such as a kernel that no profile has."""


_KINDS = {1: InputError, 2: NoMemoryError, 3: MachineError, 4: Stopped}


def error_of(text: Any) -> Error:
    """The exception for a pipecast_error."""
    kind = _KINDS.get(text.code, Error)
    words = [getattr(text, name).decode(errors="replace") for name in ("message", "file", "key", "expected")]
    return kind(words[0], words[1], text.line or None, words[2], words[3])
