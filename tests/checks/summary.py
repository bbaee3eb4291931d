"""usage: summary.py LOG [TEST]...

LOG is meson's, a line of JSON a test. Says which tests did not run, or which cases in them, and why; the last line is "N passed,
N failed, N skipped", in tests. What only the whole of a test has is no such case ("part: ..."). A TEST that is not in the log has
failed: meson passes over names that it does not know.
"""
import json
import re
import sys

WORDS = r"(?:(?! \.\.\. )[^\n])*"  # parameters of a subtest; the first line of what stands in the test
PYTHON = re.compile(rf"""^ *(\w+) \([\w.]+\){WORDS}(?:\n{WORDS})? \.\.\. skipped (['"])(.*)\2$""", re.MULTILINE)
PYTHON_ALL = re.compile(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)
CMOCKA = re.compile(r"^(?:([^\[\n].*)\n)?\[  SKIPPED \] (\w+)$", re.MULTILINE)  # after what the test printed


def left_out(test):
    said = test.get("stdout", "") + test.get("stderr", "")
    if test["result"] == "SKIP":
        return [said.strip().rsplit("\n", 1)[-1]]
    known = PYTHON.findall(said)
    cases = [f"{case}: {reason}" for case, _, reason in known if not reason.startswith("part: ")]
    others = sum(map(int, PYTHON_ALL.findall(said))) - len(known)  # the test's own words stand between the case and its reason
    if others > 0:
        cases.append(f"{others} cases, for reasons that its words hold")
    reasons = {}
    for reason, case in CMOCKA.findall(said):  # at its end cmocka names each once more
        reasons.setdefault(case, f"{case}: {reason}" if reason else case)
    return cases + list(reasons.values())


def name_of(test):
    return test["name"].split(" / ")[-1]


def main():
    with open(sys.argv[1]) as file:
        tests = [json.loads(line) for line in file]
    unknown = set(sys.argv[2:]) - set(map(name_of, tests))
    for name in sorted(unknown):
        print(f"no test: {name}")
    for test in tests:
        for case in left_out(test):
            print(f"not run: {name_of(test)}: {case}")
    results = [test["result"] for test in tests]
    passed, skipped = results.count("OK"), results.count("SKIP")
    print(f"{passed} passed, {len(results) - passed - skipped + len(unknown)} failed, {skipped} skipped")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
