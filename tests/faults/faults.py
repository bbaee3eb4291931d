"""What the tests of faults share: the command with fault.c preloaded, run once for each fault, and what must hold then.

SERVER arguments of a test: PIPECAST SOURCE_ROOT FAULT_LIBRARY.
"""
import array
import atexit
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[2]).resolve() / "tests/golden"))
from command import PIPECAST  # noqa: E402

LIBRARY = os.path.abspath(sys.argv[3])
KINDS = ("alloc", "open", "read", "write", "sync", "truncate", "close", "rename", "link", "spawn", "clock")
# An address sanitizer that the command is linked with comes behind a preloaded library, which is what is wanted.
OWN = (".out", ".err", ".places")
SANITIZER = ":verify_asan_link_order=0"


class Answer:
    """What came of one fault: `status` is the exit status, or minus the signal that ended the command."""

    def __init__(self, words, out, err):
        status = int(words[0])
        self.status = -(status & 0x7f) if status & 0x7f else status >> 8
        self.faults = int(words[1])
        self.calls = dict(zip(KINDS, map(int, words[2:2 + len(KINDS)])))
        self.place = words[2 + len(KINDS):]
        self.out, self.err = out, err

    def __repr__(self):
        return f"status {self.status}, {self.faults} faults, out {self.out[:300]!r}, err {self.err[:1000]!r}"


class Faulty:
    """One command, loaded once and run for each fault in `folder`."""

    def __init__(self, folder, arguments, **environment):
        self.folder = folder
        self.out, self.err, self.found = (os.path.join(folder, name) for name in OWN)
        variables = {**os.environ, "LD_PRELOAD": LIBRARY, "PC_FAULT_SERVE": "1", "PC_FAULT_OUT": self.out,
                     "PC_FAULT_ERR": self.err, "PC_FAULT_PLACES": self.found, **environment}
        variables["ASAN_OPTIONS"] = variables.get("ASAN_OPTIONS", "") + SANITIZER
        self.server = subprocess.Popen([PIPECAST, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, text=True,
                                       bufsize=1, env=variables)
        atexit.register(self.close)

    def __call__(self, fault):
        self.server.stdin.write(fault + "\n")
        self.server.stdin.flush()
        words = self.server.stdout.readline().split()
        if len(words) < 2 + len(KINDS):
            raise RuntimeError(f"{fault}: the command did not answer: {words}")
        return Answer(words, pathlib.Path(self.out).read_bytes(), pathlib.Path(self.err).read_bytes())

    def places(self):
        """Of every allocation of the command a number that says where it is made, in order."""
        answer = self("places")
        places = array.array("Q")
        places.frombytes(pathlib.Path(self.found).read_bytes())
        assert len(places) == answer.calls["alloc"]
        return places

    def close(self):
        if self.server.poll() is None:
            self.server.stdin.close()
            self.server.wait()
            self.server.stdout.close()


def files_of(folder):
    """Name -> bytes (of links and folders what they are), without our own."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = pathlib.Path(folder, name)
        if name not in OWN:
            found[name] = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"folder"
    return found


def restore(folder, files):
    """As they were; only what differs is written."""
    now = files_of(folder)
    for name in now.keys() - files.keys():
        path = pathlib.Path(folder, name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, data in files.items():
        if now.get(name) != data:
            pathlib.Path(folder, name).write_bytes(data)

