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
SKIPPING = '''
import sys, unittest
class Some(unittest.TestCase):
    def test_a_subtest(self):
        for i in range(2):
            with self.subTest(i=i):
                self.skipTest("first")
    def test_b_words_between(self):
        print("noise", file=sys.stderr)
        self.skipTest("second")
    def test_c_has_words(self):
        """In a line."""
        self.skipTest("it's third")
    def test_d_only_whole(self):
        self.skipTest("part: it takes long")
    def test_e_good(self):
        pass
unittest.main(verbosity=2)
'''
CMOCKA = "[ RUN      ] one\nno such thing here\n[  SKIPPED ] one\n[ RUN      ] two\n[  SKIPPED ] two\n[  SKIPPED ] 2 test(s), listed below:\n" \
         "[  SKIPPED ] one\n[  SKIPPED ] two\n"


class Summary(unittest.TestCase):
    def said(self, tests, *names):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            log.writelines(json.dumps(test) + "\n" for test in tests)
            log.flush()
            done = subprocess.run([sys.executable, SUMMARY, log.name, *names], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_cases_and_reasons(self):
        words = subprocess.run([sys.executable, "-c", SKIPPING], capture_output=True, text=True).stderr
        self.assertEqual(self.said([{"name": "p:golden / x", "result": "OK", "stdout": "", "stderr": words},
                                    {"name": "p:unit / y", "result": "OK", "stdout": CMOCKA},
                                    {"name": "p:gpu / z", "result": "SKIP", "stdout": "more\nno GPU\n"}]), (0, [
            "not run: x: test_a_subtest: first", "not run: x: test_a_subtest: first", "not run: x: test_c_has_words: it's third",
            "not run: x: 1 cases, for reasons that its words hold", "not run: y: one: no such thing here", "not run: y: two",
            "not run: z: no GPU", "2 passed, 0 failed, 1 skipped"]))

    def test_every_other_end_is_a_failure(self):
        tests = [{"name": f"p:unit / {result}", "result": result} for result in ("OK", "FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS")]
        self.assertEqual(self.said(tests), (0, ["1 passed, 4 failed, 0 skipped"]))

    def test_a_name_that_no_test_has(self):
        tests = [{"name": "p:unit+valgrind / units", "result": "OK"}]
        self.assertEqual(self.said(tests, "units"), (0, ["1 passed, 0 failed, 0 skipped"]))
        self.assertEqual(self.said(tests, "units", "unit"), (1, ["no test: unit", "1 passed, 1 failed, 0 skipped"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
