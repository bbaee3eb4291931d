"""Every write, open, sync, truncation, close, rename, link, read and start of a process or thread of the commands goes wrong
once, in the ways in which it can: the work is done all the same, or the command ends with one line and exit status 3, and what
was there stands, with nothing left beside it but what the same command then goes on from. And standard streams that are full,
broken or closed.

usage: test_calls.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
"""
import errno
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from commands import CASES, make_files
from sweep import LINE, FaultTest, spread

from command import IS_QUICK, PIPECAST, count

# Of each kind what can be wrong with it; with a + from then on.
WRITING = {"write": ("short", errno.EINTR, errno.ENOSPC, errno.EIO, errno.EDQUOT), "sync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
           "truncate": (errno.EIO, errno.EINTR), "close": (errno.EIO, errno.EINTR, errno.ENOSPC), "rename": (errno.EIO, errno.ENOSPC),
           "link": (errno.EIO, errno.ENOSPC, errno.EXDEV), "open": (errno.EMFILE, errno.EIO),
           "spawn": (errno.EAGAIN, errno.ENOMEM)}
READING = {"read": ("short", errno.EINTR, errno.EIO)}
NO_FAULT = ("short", errno.EINTR)  # these are to go unnoticed, but for an interrupted close or truncation
FEW, MANY = 1, 16  # calls of one kind: in a quick run and in a full one
QUICK = ("run closed", "export a.h5 --run", "merge", "profile show")  # of the commands those whose calls go wrong then
QUICK_STREAMS = (*QUICK, "plan", "schedule zb-h1")


def chosen(is_wanted, quick=QUICK):
    return [case for case in CASES if is_wanted(case) and (not IS_QUICK or case.name.startswith(quick))]


class Calls(FaultTest):
    def go_wrong(self, sweep, fault, statuses, must_be_unnoticed=False):
        answer = sweep.run(fault)
        complaint = sweep.complaint(answer, statuses)
        if must_be_unnoticed and answer.status != sweep.good.status:
            complaint = "gave up"
        self.assertIsNone(complaint, f"{sweep.case.name}, {fault}: {complaint}: {answer}")
        self.assertGreater(answer.faults, 0, (sweep.case.name, fault))
        if not must_be_unnoticed:
            self.assertTrue(sweep.goes_on(), f"{sweep.case.name}, {fault}: then does not go on")

    def all_of(self, cases, kinds, statuses, key):
        faults = 0
        for sweep in map(self.sweep, cases):
            for kind, ways in kinds.items():
                most = FEW if IS_QUICK else MANY
                for number in spread(sweep.good.calls[kind], most):
                    for way in ways:
                        for more in ("", "+") if way in (errno.ENOSPC, errno.EIO) and kind == "write" else ("",):
                            self.go_wrong(sweep, f"{kind}:{number}{more}:{way}", statuses, way in NO_FAULT and kind in ("read", "write"))
                            faults += 1
            sweep.close()
        count(key, faults)

    def test_writing(self):
        self.all_of(chosen(lambda case: case.writes), WRITING, (3,), "faults.writes")

    def test_reading(self):
        """What cannot be read may be taken for damaged."""
        self.all_of(chosen(lambda case: not case.draws), READING, (2, 3), "faults.reads")


class Streams(unittest.TestCase):
    """Standard input, output and error that are not as usual."""

    def setUp(self):
        self.own = tempfile.TemporaryDirectory()
        self.addCleanup(self.own.cleanup)
        self.folder = self.own.name
        make_files(self.folder)

    def run_case(self, case, **options):
        if case.writes and os.path.exists(os.path.join(self.folder, case.writes)):
            os.unlink(os.path.join(self.folder, case.writes))
        return subprocess.run([PIPECAST, *case.arguments], cwd=self.folder, timeout=60, **options)

    def printing(self):
        return [case for case in chosen(lambda case: True, QUICK_STREAMS) if self.run_case(case, capture_output=True).stdout]

    def test_a_full_device(self):
        cases = self.printing()
        self.assertGreater(len(cases), 3)
        for case in cases:
            with open("/dev/full", "w") as full:
                done = self.run_case(case, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 3, (case.name, done))
            self.assertRegex(done.stderr, LINE, case.name)
            self.assertEqual(done.stderr.count(b"\n"), 1, (case.name, done))
        count("faults.streams", len(cases))

    def test_a_pipe_that_nobody_reads(self):
        """By the signal where that has its default, as every command; by a line where it is ignored."""
        cases = self.printing()
        for case in cases:
            for disposition, statuses in ((signal.SIG_DFL, (-signal.SIGPIPE,)), (signal.SIG_IGN, (3,))):
                reading, writing = os.pipe()
                os.close(reading)
                done = self.run_case(case, stdout=writing, stderr=subprocess.PIPE, restore_signals=False,
                                     preexec_fn=lambda: signal.signal(signal.SIGPIPE, disposition))
                os.close(writing)
                self.assertIn(done.returncode, statuses, (case.name, done))
                self.assertEqual(done.stderr.count(b"\n"), int(done.returncode == 3), (case.name, done))
        count("faults.streams", 2 * len(cases))

    def test_closed(self):
        """Each of the three: files are as ever, and nothing that belongs on a stream gets into one of them."""
        faults = 0
        for case in chosen(lambda case: True, QUICK_STREAMS):
            printed = self.run_case(case, capture_output=True).stdout
            good = self.content(case)
            for closed in (0, 1, 2):
                done = self.run_case(case, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(closed))
                self.assertGreaterEqual(done.returncode, 0, (case.name, closed, done))
                self.assertLessEqual(done.returncode, 3, (case.name, closed, done))
                if closed == 1 and printed:
                    self.assertEqual(done.returncode, 3, (case.name, done))
                    self.assertRegex(done.stderr, LINE, case.name)
                self.assertEqual(self.content(case), good, (case.name, closed))
                faults += 1
        count("faults.streams", faults)

    def content(self, case):
        path = pathlib.Path(self.folder, case.writes)
        return path.read_bytes() if case.writes and path.exists() else None


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
