"""A case of commands.py in a folder of its own, what it does where nothing is wrong, and whether what it does where something
is wrong is right; and what the tests of all cases share."""
import re
import tempfile
import unittest

from commands import make_files, place_files
from faults import Faulty, files_of, restore

JOURNAL = ".journal"
LINE = re.compile(rb"pipecast: [^\x00-\x1f\x7f]+\n")


class Sweep:
    """`faulty` runs the case; `before` and `after` are the files without and with its work."""

    def __init__(self, case, source, **environment):
        self.case = case
        self.own = tempfile.TemporaryDirectory()
        self.folder = self.own.name
        place_files(case, source, self.folder)
        self.before = files_of(self.folder)
        self.faulty = Faulty(self.folder, case.arguments, **environment)
        self.good = self.faulty("none")
        self.after = files_of(self.folder)
        self.is_sound = self.good.status in (0, 1) and set(self.after) == set(self.before) | {case.writes} - {""}

    def close(self):
        self.faulty.close()
        self.own.cleanup()

    def run(self, fault):
        """With the files as before."""
        restore(self.folder, self.before)
        return self.faulty(fault)

    def complaint(self, answer, statuses=(3,)):
        """None where all is well: the work was done and nobody noticed, or it ended as it should."""
        files = files_of(self.folder)
        if answer.status == self.good.status and (answer.out, answer.err) == (self.good.out, self.good.err):
            return None if files == self.after else "went on, but wrote other files"
        if answer.status not in statuses:
            return "another exit status, or other output"
        if not LINE.fullmatch(answer.err):
            return "not one line on standard error"
        if not self.good.out.startswith(answer.out):
            return "printed something else"
        return self.left_over(files)

    def left_over(self, files):
        """What was there is there, or the new one whole; beside it only what a run goes on from."""
        target = self.case.writes
        for name in set(files) | set(self.before):
            if files.get(name) == self.before.get(name) or name == target + JOURNAL:
                continue
            if name != target or files.get(name) != self.after[target]:
                return f"file {name} is not as it was"
        return None

    def goes_on(self):
        """The same command, from what is there now: whether it ends as if nothing had been wrong."""
        answer = self.faulty("none")
        return (answer.status, answer.out) == (self.good.status, self.good.out) and files_of(self.folder) == self.after


def spread(total, most):
    """At most so many of 1 .. total, the first and the last among them."""
    if total <= most:
        return range(1, total + 1)
    if most == 1:
        return [total]
    return sorted({1 + (total - 1) * i // (most - 1) for i in range(most)})


class FaultTest(unittest.TestCase):
    """The files that the cases start from are made once, in the folder `source`."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.source = folder.name
        make_files(cls.source)

    def sweep(self, case):
        sweep = Sweep(case, self.source)
        self.addCleanup(sweep.close)
        self.assertTrue(sweep.is_sound, f"{case.name}: {sweep.good}")
        return sweep
