"""A results file, read by others: the two programs of docs/examples/, h5dump, h5py. The numbers are those of the CSV.

usage: test_results_file.py PIPECAST SOURCE_ROOT READ_RESULTS (the example in C, built)
"""
import csv
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import with_h5py

PIPECAST, ROOT, READ_RESULTS = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), os.path.abspath(sys.argv[3])
EXAMPLES = ROOT / "docs/examples"
RUN = ["run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--pp", "4", "--microbatches", "8", "--chunks", "2",
       "--schedule", "1f1b,1f1b-interleaved,v-half", "--trace", "true"]


class ResultsFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = os.path.join(folder.name, "results.h5")
        done = subprocess.run([PIPECAST, *RUN, "-o", cls.path, "--format", "csv"], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done
        cls.rows = list(csv.DictReader(io.StringIO(done.stdout)))

    def check_example(self, *command):
        for row in self.rows:
            done = subprocess.run([*command, self.path, row["run"]], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            head, *runs, peak = done.stdout.splitlines()
            self.assertEqual(head, "run, MFU [1]")
            for line, wanted in zip(runs, self.rows, strict=True):
                name, mfu = line.split(", ")
                self.assertEqual((name, float(mfu)), (wanted["name"], float(wanted["mfu"])))
            words = peak.split()
            self.assertEqual(words[:4] + words[5:8] + words[9:10] + words[11:],
                             ["peak", "of", "run", row["run"] + ":", "B", "on", "stage", "at", "ps"])
            self.assertEqual(float(words[4]) / 2**30, float(row["activation_gib_max"]))
            self.assertIn(int(words[8]), range(4))
            self.assertTrue(0 < int(words[10]) < float(row["iteration_s"]) * 1e12)

    def test_example_in_c(self):
        self.check_example(READ_RESULTS)

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_example_in_python(self):
        self.check_example(with_h5py.PYTHON, str(EXAMPLES / "read_results.py"))

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_examples_say_the_same(self):
        said = {subprocess.run([*command, self.path, "3"], capture_output=True, text=True, timeout=120, check=True).stdout
                for command in ([READ_RESULTS], [with_h5py.PYTHON, str(EXAMPLES / "read_results.py")])}
        self.assertEqual(len(said), 1)

    def test_documentation_shows_the_examples(self):
        document = (ROOT / "docs/results-format.md").read_text()
        for name, language in (("read_results.py", "python"), ("read_results.c", "c")):
            self.assertIn(f"<!-- {name} -->\n```{language}\n{(EXAMPLES / name).read_text()}```\n<!-- end of {name} -->\n",
                          document)

    @unittest.skipUnless(shutil.which("h5dump"), "no h5dump")
    def test_h5dump_reads_all_of_it(self):
        done = subprocess.run(["h5dump", self.path], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("error", done.stdout.lower().replace("standard_error_s", "").replace("standard error of", "")
                         .replace("iteration_mean_error_s", "").replace("goodput_mean_error", "").replace("erred", ""))
        for name in ("mfu", "trace_hash", "flags", "1", "3", "pass_kind", "level_bytes"):
            self.assertIn(f'"{name}" {{', done.stdout)

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_h5py_reads_all_of_it_and_everything_is_described(self):
        said = with_h5py.work_on(self.path, """
objects, plain = [], []
def look(name, thing):
    objects.append(name)
    if isinstance(thing, h5py.Dataset):
        thing[()]
        if not isinstance(thing.attrs['unit'], str) or not thing.attrs['description']: plain.append(name)
    for attribute in thing.attrs: thing.attrs[attribute]
f.visititems(look)
print(*objects)
print(*plain)
""", mode="r")
        objects, plain = (line.split() for line in said.splitlines())
        self.assertEqual(plain, [])
        self.assertLessEqual({"runs/" + column for column in self.rows[0]} | {"scenarios/flags", "traces/3/pass_kind"},
                             set(objects))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
