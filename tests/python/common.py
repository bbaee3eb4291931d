"""What the tests of the package share. PC_SOURCE_ROOT is the repository, PC_COMMAND the command, if there is one."""
import contextlib
import os
import pathlib
import tempfile

ROOT = pathlib.Path(os.environ.get("PC_SOURCE_ROOT") or pathlib.Path(__file__).resolve().parents[2])
COMMAND = os.environ.get("PC_COMMAND")


def scenario(extra=""):
    """A text of one run at given times."""
    return ("scenario: mine\nsetting: {schedule: zb-h1, devices: 4, microbatches: 8, "
            f"times: {{F: 1 ms, B: 1 ms, W: 1 ms}}{extra}}}\n")


@contextlib.contextmanager
def in_folder(files):
    with tempfile.TemporaryDirectory(prefix="pipecast-test-") as folder:
        for name, text in files.items():
            (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
        yield folder
