"""Every allocation of the commands fails once: the work is done all the same, or the command ends with one line and exit
status 3, and what was there stands.

An allocation in a loop fails in the same way each time, so one of those that were come to by the same way through the program
(the last eight calls) is taken, of all commands the one that comes soonest. A quick run takes some of these, drawn by a seed; a
full one all, and of a run without a results file every single one; a long one every single one of a run with its results file,
which takes an hour.

usage: test_allocations.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
"""
import collections
import random
import sys
import unittest

from faults import restore
from commands import CASES
from sweep import FaultTest

from command import IS_LONG, IS_QUICK, count, full_only

SAMPLE, RESUMED = 50, 25  # how many in a quick run; after each how many the same command is tried again
WITHOUT_FILE, WITH_FILE = "run searched.yaml", "run closed.yaml"


class Allocations(FaultTest):
    def sweeps(self, start=""):
        return (self.sweep(case) for case in CASES if case.name.startswith(start))

    def check_one(self, sweep, number):
        answer = sweep.run(f"alloc:{number}")
        complaint = sweep.complaint(answer)
        where = f"{sweep.case.name}, allocation {number}: {complaint}: {answer}\n{' '.join(answer.place)}"
        self.assertIsNone(complaint, where)
        self.failed += answer.faults
        if self.failed % RESUMED == 0:
            self.assertTrue(sweep.goes_on(), where + "\nand then does not go on")

    def fail_all(self, chosen):
        """Of each sweep some numbers."""
        self.failed = 0
        for sweep, numbers in chosen.items():
            for number in numbers:
                self.check_one(sweep, number)
        count("faults.allocations", self.failed)

    def test_places(self):
        soonest = {}
        for sweep in self.sweeps():
            restore(sweep.folder, sweep.before)
            for number, place in enumerate(sweep.faulty.places(), 1):
                if place not in soonest or number < soonest[place][1]:
                    soonest[place] = sweep, number
        chosen = sorted(soonest.values(), key=lambda pair: (pair[0].case.name, pair[1]))
        self.assertGreater(len(chosen), 2000)
        if IS_QUICK:
            chosen = random.Random(8).sample(chosen, SAMPLE)
        numbers = collections.defaultdict(list)
        for sweep, number in chosen:
            numbers[sweep].append(number)
        self.fail_all(numbers)

    @full_only
    def test_every_allocation_of_a_run(self):
        """Those of searches and simulations, and of the journal."""
        chosen = {sweep: range(1, sweep.good.calls["alloc"] + 1) for sweep in self.sweeps(WITHOUT_FILE)}
        self.fail_all(chosen)

    @unittest.skipUnless(IS_LONG, "part: it takes an hour")
    def test_every_allocation_of_a_run_with_its_file(self):
        chosen = {sweep: range(1, sweep.good.calls["alloc"] + 1) for sweep in self.sweeps(WITH_FILE)}
        self.fail_all(chosen)

    def test_none_is_left(self):
        """From some allocation on all fail, as where memory has run out for good."""
        self.failed = 0
        for sweep in self.sweeps():
            total = sweep.good.calls["alloc"]
            for number in sorted({1 + total * i // 4 for i in ((1, 3) if IS_QUICK else range(4))}):
                answer = sweep.run(f"alloc:{number}+")
                complaint = sweep.complaint(answer)
                self.assertIsNone(complaint, f"{sweep.case.name}, from allocation {number}: {complaint}: {answer}")
                self.failed += 1
        count("faults.allocations", self.failed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
