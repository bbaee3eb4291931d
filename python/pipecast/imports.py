"""Configurations of other programs as scenarios."""

from __future__ import annotations

import os
from typing import Union

from ._library import library, make, path_bytes, text_bytes
from .watch import Say


def import_config(path: Union[str, "os.PathLike[str]"], format: str) -> str:
    """What another program was told, as the text of a scenario: what `pipecast import FORMAT` prints.

    `format` is "hf" (a config.json of Hugging Face), "megatron" (Megatron-LM's arguments), "nemo" (a recipe of NeMo or
    Megatron-Bridge) or "deepspeed". What was assumed, is not modelled and is not known comes as a PipecastWarning.
    """
    number = Say.number()
    try:
        made = make(library.imported_free, library.import_file, text_bytes(str(format)), path_bytes(path), Say.warn, number)
    finally:
        Say.end(number)
    return library.imported_text(made).decode(errors="replace")
