"""Signals that end the command, at its n-th open, write, sync, close, link and rename, and at moments drawn by a seed: the file
that was there stands, or the new one whole; no other file is left but the journal, which `run` and `plan` say, and from which the same
command goes on. Signals that are ignored stay so.

usage: test_signals.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
"""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from faults import files_of, restore
from commands import CASES
from sweep import FaultTest, spread

from command import IS_QUICK, PIPECAST, count

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KINDS = ("open", "write", "sync", "close", "link", "rename", "spawn")
FEW, MANY = 1, 16
MOMENTS = 6 if IS_QUICK else 120
SAID = {"run": rb"pipecast: interrupted: \d+ of \d+ runs to do are done and kept in r\.h5\.journal; the same command goes on\n",
        "plan": rb"pipecast: interrupted: what was worked out is kept in r\.h5\.journal; the same command goes on\n"}


class Signals(FaultTest):
    def check(self, sweep, number, status, err, where):
        """`run` and `plan` say a line where they were under way; it ends by the signal, or with its work, where that was done."""
        self.assertIn(status, (-number, sweep.good.status), where)
        self.assertIsNone(sweep.left_over(files_of(sweep.folder)), where)
        if err:
            self.assertRegex(err, b"^" + SAID[sweep.case.arguments[0]] + b"$", where)
        self.assertTrue(sweep.goes_on(), f"{where}: then does not go on")

    def test_at_calls(self):
        """At the call itself, before it is made."""
        raised = 0
        for case in [case for case in CASES if case.writes][::5 if IS_QUICK else 1]:
            sweep = self.sweep(case)
            for kind in KINDS:
                for place in spread(sweep.good.calls[kind], FEW if IS_QUICK else MANY):
                    number = ENDING[raised % len(ENDING)]
                    answer = sweep.run(f"{kind}:{place}:sig{int(number)}")
                    where = f"{case.name}, {number.name} at {kind} {place}: {answer}"
                    self.assertEqual(answer.faults, 1, where)
                    self.check(sweep, number, answer.status, answer.err, where)
                    raised += 1
            sweep.close()
        count("faults.signals", raised)

    def test_at_moments(self):
        """Of the longer ones, which is where a user loses patience."""
        draw, raised, ended = random.Random(8), 0, 0
        for case in (case for case in CASES if case.writes and case.arguments[0] in ("run", "plan", "merge", "figure")):
            sweep = self.sweep(case)
            restore(sweep.folder, sweep.before)
            lasts = 0.0  # when there is nothing else to do: the least of a few
            for _ in range(3):
                start = time.monotonic()
                subprocess.run([PIPECAST, *case.arguments], cwd=sweep.folder, capture_output=True, timeout=60)
                lasts = min(lasts or 60.0, time.monotonic() - start)
                restore(sweep.folder, sweep.before)
            for _ in range(MOMENTS // 6):
                number, moment = draw.choice(ENDING), draw.uniform(0.005, lasts)
                restore(sweep.folder, sweep.before)
                process = subprocess.Popen([PIPECAST, *case.arguments], cwd=sweep.folder, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE)
                time.sleep(moment)
                process.send_signal(number)
                _, err = process.communicate(timeout=60)
                ended += process.returncode == -number
                self.check(sweep, number, process.returncode, err, f"{case.name}, {number.name} after {moment} s: {err}")
                raised += 1
            sweep.close()
        self.assertGreater(ended, raised // 8)
        count("faults.signals", raised)

    def test_while_reading(self):
        """A scenario that does not come: the command is no longer at work that would have to be ended well."""
        path = os.path.join(self.source, "pipe.yaml")
        os.mkfifo(path)
        for number in ENDING:
            process = subprocess.Popen([PIPECAST, "run", path, "-o", path + ".h5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.3)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
        count("faults.signals", len(ENDING))

    def test_what_is_ignored(self):
        """As of a script's background job, or under nohup."""
        sweep = self.sweep(CASES[0])
        for number in ENDING:
            restore(sweep.folder, sweep.before)
            process = subprocess.Popen([PIPECAST, *sweep.case.arguments], cwd=sweep.folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
            while process.poll() is None:
                process.send_signal(number)
                time.sleep(0.002)
            out, err = process.communicate()
            self.assertEqual((process.returncode, out, err), (sweep.good.status, sweep.good.out, b""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
