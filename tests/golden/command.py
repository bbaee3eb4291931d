"""What tests of the command line share: PIPECAST and SOURCE_ROOT from the test's arguments, and how the command is asked."""
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
GOLDEN = ROOT / "tests/golden"
PASSES = ("gpipe", "1f1b", "eager-1f1b", "1f1b-interleaved", "1f1b-interleaved-overlap",
          "1f1b-interleaved-low-memory", "looped-bfs", "1f1b-v",
          "zb-h1", "zb-h2", "zb-interleaved", "gis", "gis-h", "gis-uniform", "gis-h-uniform", "interleaved-adaptive", "zb-1p", "zb-2p", "zb-two-thirds", "v-min", "v-half",
          "v-zb", "zb-v", "v-adaptive", "dualpipe-v")  # what a CSV can say
SEARCHED = ("1f1b-v", "interleaved-adaptive", "zb-1p", "zb-2p", "zb-two-thirds", "v-min", "v-half", "v-zb", "zb-v",
            "v-adaptive")
# How large a run is, as tests/support.h says it; with a number behind it, a tool makes the command slow.
SIZE, _, MOST = os.environ.get("PC_TEST_SIZE", "quick").partition(":")
IS_QUICK, IS_LONG, IS_SLOWED = SIZE == "quick", SIZE == "long", bool(MOST)
full_only = unittest.skipIf(IS_QUICK, "part: it takes long")
plain_only = unittest.skipIf(IS_QUICK or IS_SLOWED, "part: it takes longest, and with sanitizers too long")
MORE = ("1f1b-r", "dualpipe", "gems", "chimera")  # and what it cannot: recomputation, two replicas
SLICED = ("seq-gpipe", "seq-1f1b", "seq-zb-h1", "seq-1f1b-interleaved", "seq-zb-interleaved")  # and slices, which have no block either
VOCAB = ("1f1b-vocab-1", "1f1b-vocab-2", "v-half-vocab-1", "v-half-vocab-2")  # and an output layer on all stages


# What whoever started the test ignores (a background job: SIGINT, nohup: SIGHUP) the command would ignore, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


def read_terminal(test, master, process, hear):
    """What a process says on its terminal until it ends; each time that there is more, `hear` gets all so far."""
    said, until = b"", time.monotonic() + 120
    try:
        while select.select([master], [], [], max(0, until - time.monotonic()))[0]:
            said += os.read(master, 1 << 16)  # as it comes, for a terminal keeps little
            hear(said)
        process.kill()
        test.fail(f"does not end; said {said!r}")
    except OSError:  # its end
        pass
    finally:
        os.close(master)
    return said


def on_a_terminal(test, *arguments, stream="stderr", columns=80, **options):
    """The exit status, and what the command says on standard error (or output), a terminal of 80 columns."""
    try:
        master, slave = pty.openpty()
    except OSError as error:  # a bare root without /dev/pts
        test.skipTest(f"no terminal to be had: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: slave}
    with subprocess.Popen([PIPECAST, *arguments], **streams, **options) as process:
        os.close(slave)
        said = read_terminal(test, master, process, lambda said: None)
    return process.returncode, said.decode()


def interrupted_on_a_terminal(test, *arguments):
    """The exit status, and all that stands on a terminal of 80 columns, where Ctrl-C was pressed when a bar had been drawn
    twice; rows from the first to the last. The kernel echoes a key when the signal is on its way, so that the command may have
    said its last by then, and throws away what was not read yet. Here the echo comes first, and nothing gets lost."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        test.skipTest(f"no terminal to be had: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    modes = termios.tcgetattr(slave)
    modes[3] = modes[3] & ~termios.ECHO | termios.NOFLSH
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    name, is_pressed = os.ttyname(slave), False

    def press(said):
        nonlocal is_pressed
        if not is_pressed and said.count(b"\r[") > 1:
            terminal = os.open(name, os.O_WRONLY | os.O_NOCTTY)
            os.write(terminal, b"^C")
            os.close(terminal)
            os.write(master, b"\x03")
            is_pressed = True

    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen([PIPECAST, *arguments], stdin=slave, stdout=subprocess.DEVNULL, stderr=slave, start_new_session=True,
                          preexec_fn=take_terminal) as process:
        os.close(slave)
        said = read_terminal(test, master, process, press)
    test.assertTrue(is_pressed, f"done before a bar was drawn twice: {said!r}")
    test.assertIn(b"^C", said)
    return process.returncode, shown_rows(said.decode())


def shown_rows(said):
    """What a terminal shows of it: '\\r' goes back to the row's beginning, what comes then is written over what stands there."""
    rows = []
    for line in said.split("\n"):
        row = []
        for text in line.split("\r"):
            row[:len(text)] = text
        rows.append("".join(row).rstrip())
    return rows


def count(key, number):
    """Says that `number` things called `key` were done: a line in the file that PC_COUNTS names, for docs/reliability.md."""
    if os.environ.get("PC_COUNTS"):
        with open(os.environ["PC_COUNTS"], "a") as file:
            file.write(f"{key}\t{number}\n")


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def good(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def bad(self, status, message, *arguments):
        """Exit status, one line on standard error that ends as given, nothing on standard output, no file left."""
        done = run(*arguments, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertTrue(done.stderr.startswith("pipecast: "), done)
        self.assertTrue(done.stderr.endswith(message + "\n"), f"\n{done.stderr} should end\n{message}")
        self.assertEqual(os.listdir(self.folder.name), [])
