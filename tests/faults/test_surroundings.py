"""A clock that jumps, and a locale with decimal commas: the same status, output and files.

usage: test_surroundings.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from commands import CASES, place_files
from faults import LIBRARY, SANITIZER, files_of
from sweep import FaultTest, spread

from command import PIPECAST, count, on_a_terminal

HOUR, YEAR = 3600, 365 * 86400
LOCALE = "de_DE.UTF-8"


class Surroundings(FaultTest):
    def test_a_clock_that_jumps(self):
        """Before one of its calls: back by an hour, forward by a year."""
        jumps = 0
        for case in CASES:
            if case.draws:
                continue
            sweep = self.sweep(case)
            for place in spread(sweep.good.calls["clock"], 6):
                for seconds in (-HOUR, YEAR):
                    answer = sweep.run(f"clock:{place}+:jump{seconds}")
                    where = f"{case.name}, {seconds} s at call {place}: {answer}"
                    self.assertEqual((answer.status, answer.out, answer.err), (sweep.good.status, sweep.good.out, sweep.good.err), where)
                    self.assertEqual(files_of(sweep.folder), sweep.after, where)
                    jumps += answer.faults > 0
            sweep.close()
        self.assertGreater(jumps, 20)
        count("faults.clock_jumps", jumps)

    def test_the_bar_while_the_clock_jumps(self):
        """It says no time that is negative or no number, and gets to its end."""
        path = os.path.join(self.source, "long.yaml")
        pathlib.Path(path).write_text("scenario: long\nsetting: {schedule: 1f1b, devices: 4, times: {F: 1 ms, BW: 2 ms}}\n"
                                      f"sweep: {{microbatches: {list(range(4, 104))}}}\n")
        for seconds in (-HOUR, YEAR):
            for place in (20, 60):
                said = self.said_on_a_terminal(f"clock:{place}+:jump{seconds}", "run", path, "--jobs", "1", "--format", "csv")
                for left in re.findall(r"([^ ]+) s left", said):
                    self.assertRegex(left, r"^\d+$", said)
                for done, total in re.findall(r"(\d+)/(\d+) runs", said):
                    self.assertLessEqual(int(done), int(total))

    def said_on_a_terminal(self, fault, *arguments):
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "PC_FAULT": fault}
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + SANITIZER
        status, said = on_a_terminal(self, *arguments, env=environment)
        self.assertEqual(status, 0, said)
        return said

    def test_a_locale_with_commas(self):
        """For the command, which does not look, and as part of a program that has taken that locale."""
        if not shutil.which("localedef"):
            self.skipTest("no localedef to make a locale with")
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(self.source, LOCALE)], capture_output=True)
        if made.returncode > 1 or not os.path.isdir(os.path.join(self.source, LOCALE)):
            self.skipTest(f"localedef cannot make {LOCALE}: {made.stderr}")
        german = {**os.environ, "LC_ALL": LOCALE, "LANG": LOCALE, "LOCPATH": self.source}
        part = {**german, "LD_PRELOAD": LIBRARY, "PC_FAULT_LOCALE": "1"}
        part["ASAN_OPTIONS"] = part.get("ASAN_OPTIONS", "") + SANITIZER
        for case in CASES:
            found = []
            is_printed_by_library = case.arguments[0] != "list"
            for environment in ({**os.environ, "LC_ALL": "C"}, german, *([part] if is_printed_by_library else [])):
                with tempfile.TemporaryDirectory() as folder:
                    place_files(case, self.source, folder)
                    done = subprocess.run([PIPECAST, *case.arguments], cwd=folder, capture_output=True, timeout=60, env=environment)
                    found.append((done.returncode, done.stdout, done.stderr, files_of(folder)))
                self.assertEqual(found[0][0], done.returncode, (case.name, done))
                self.assertEqual(found[0], found[-1], case.name)
        count("faults.locales", len(CASES))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
