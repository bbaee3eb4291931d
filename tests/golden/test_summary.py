"""tests/checks/summary.py: what a stage says of its tests.

usage: test_summary.py SOURCE_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(sys.argv[1]).resolve() / "tests/checks/summary.py"
SKIPPED = """test_a (__main__.Some.test_a) ... ok
test_b (__main__.Some.test_b)
In a line. ... skipped "it's not here"
test_c (__main__.Some.test_c) ... skipped 'part: it takes long'
OK (skipped=2)
"""


class Summary(unittest.TestCase):
    def said(self, tests, *names):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            log.writelines(json.dumps(test) + "\n" for test in tests)
            log.flush()
            done = subprocess.run([sys.executable, SUMMARY, log.name, *names], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_what_did_not_run_and_what_failed(self):
        """Every end but OK and SKIP is a failure, and so is a name that no test has."""
        tests = [{"name": f"p / {result}", "result": result} for result in ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS")]
        tests += [{"name": "p:valgrind / x", "result": "OK", "stdout": "", "stderr": SKIPPED},
                  {"name": "z", "result": "SKIP", "stdout": "more\nno GPU\n"}]
        self.assertEqual(self.said(tests, "x", "y"), (1, [
            "no test: y", "not run: x: test_b: it's not here", "not run: z: no GPU", "1 passed, 5 failed, 1 skipped"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
