"""Pictures that the library draws, as files or as texts."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any, Optional

from ._library import call, path_bytes
from .errors import Error


def draw(path: Any, function: Any, *arguments: Any) -> Optional[str]:
    """Into a file; or, without a path, as the text of an SVG, None where it cannot be drawn (there is no gnuplot)."""
    if path is not None:
        call(function, *arguments, path_bytes(path))
        return None
    with tempfile.TemporaryDirectory(prefix="pipecast-") as folder:
        file = pathlib.Path(folder) / "picture.svg"
        try:
            call(function, *arguments, path_bytes(file))
        except Error:
            return None
        return file.read_text(encoding="utf-8")


__all__ = ["draw"]
