"""`pipecast compare` from outside: what it says of results files, and of what is none.

usage: test_compare.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import with_h5py

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
RUN = ["run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--pp", "4", "--microbatches", "8", "--schedule",
       "gpipe,1f1b,zb-h1"]


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.whole = os.path.join(cls.made.name, "whole.h5")
        done = run(*RUN, "-o", cls.whole, "--format", "json")
        assert done.returncode == 0, done
        cls.rows = {row["name"]: row for row in json.loads(done.stdout)}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def shard(self, share):
        path = os.path.join(self.folder, share.replace("/", "-") + ".h5")
        self.assertEqual(run(*RUN, "--shard", share, "-o", path).returncode, 0)
        return path

    def changed(self, code, name="changed.h5"):
        """A copy of the whole file, changed."""
        path = os.path.join(self.folder, name)
        shutil.copyfile(self.whole, path)
        with_h5py.work_on(path, code)
        return path

    def compare(self, a, b, *options, status=0, message=""):
        done = run("compare", a, b, *options)
        self.assertEqual((done.returncode, done.stderr), (status, message), done)
        return done.stdout

    def differences(self, a, b, *options):
        """The CSV's rows behind the header; and the same as JSON."""
        rows = list(csv.reader(io.StringIO(self.compare(a, b, "--format", "csv", *options))))
        self.assertEqual(rows.pop(0), ["scenario", "name", "column", "a", "b", "difference", "relative"])
        for row, from_json in zip(rows, json.loads(self.compare(a, b, "--format", "json", *options)), strict=True):
            for text, value in zip(row, from_json.values(), strict=True):
                self.assertEqual(text, "" if value is None else value if isinstance(value, str) else
                                 text if float(text) == value else value)
        return rows

    def bad(self, status, message, *arguments):
        done = run("compare", *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", f"pipecast: {message}\n"))

    def test_a_file_is_the_same_as_itself_and_as_its_copy(self):
        copy = os.path.join(self.folder, "copy.h5")
        shutil.copyfile(self.whole, copy)
        for other in (self.whole, copy):
            self.assertEqual(self.compare(self.whole, other, "--exit-code"), "the same: 3 runs, every column\n")

    def test_files_without_runs(self):
        none = self.shard("4/4")  # three runs in four shares
        self.assertEqual(self.compare(none, none, "--exit-code"), "the same: 0 runs, every column\n")
        self.assertIn("\n  flags.1f1b\n", self.compare(none, self.whole))
        self.assertTrue(self.compare(self.whole, none).endswith("\nthe same in the 0 runs that both have; 3 only in a\n"))

    def test_runs_that_only_one_has(self):
        first = self.shard("1/2")
        self.assertEqual(self.differences(first, self.whole), [["flags", "flags.1f1b", "run", "", "2", "", ""]])
        self.compare(first, self.whole, "--exit-code", status=1)
        self.assertEqual(self.compare(self.whole, first),
                         f"a: {self.whole}, 3 runs\nb: {first}, 2 runs\n\nonly in a:\n  flags.1f1b\n\n"
                         "the same in the 2 runs that both have; 1 only in a\n")

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_exactly_what_was_changed_is_told(self):
        cases = {
            "f['runs/hfu'][1] *= 1.5": ("hfu", lambda old: old * 1.5),
            "f['runs/gpus'][1] = 9": ("gpus", lambda old: 9),
            "f['runs/status'][1] = b'out_of_memory'": ("status", lambda old: "out_of_memory"),
            "f['runs/hfu'][1] = float('nan')": ("hfu", lambda old: None),
            "f['runs/published_mfu'][1] = 0.5": ("published_mfu", lambda old: 0.5),
            "f['runs/message'][1] = b'now with, commas'": ("message", lambda old: "now with, commas"),
            "f['runs/trace_hash'][1] = b'0123456789abcdef'": ("trace_hash", lambda old: "0123456789abcdef"),
        }
        for code, (column, change) in cases.items():
            with self.subTest(code):
                old = self.rows["flags.1f1b"][column]
                new = change(old)
                rows = self.differences(self.whole, self.changed(code))
                self.assertEqual([row[:3] for row in rows], [["flags", "flags.1f1b", column]])
                told = [type(value)(text) if value is not None else text or None
                        for text, value in zip(rows[0][3:5], (old, new))]
                self.assertEqual(told, [old, new])
                are_numbers = all(isinstance(value, (int, float)) for value in (old, new))
                self.assertEqual([float(text) if text else None for text in rows[0][5:]],
                                 [new - old, (new - old) / old] if are_numbers else [None, None])

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_what_is_no_difference(self):
        for code in ("f.attrs['sweep_runs'] = f['runs/run'][0] = 77",
                     "f['runs/published_mfu'][1] = -float('inf')",  # no number, as the NaN that stands there
                     "for column in f['runs'].values(): column[:] = column[:][::-1]"):
            with self.subTest(code):
                self.assertEqual(self.compare(self.whole, self.changed(code), "--exit-code"),
                                 "the same: 3 runs, every column\n")

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_tolerance(self):
        path = self.changed("f['runs/mfu'][0] *= 1 + 2e-6\nf['runs/trace_hash'][0] = b'0123456789abcdef'")
        columns = [row[2] for row in self.differences(self.whole, path, "--tolerance", "1e-6")]
        self.assertEqual(columns, ["mfu"])
        self.assertEqual(self.compare(self.whole, path, "--tolerance", "3e-6", "--exit-code"),
                         "the same: 3 runs, every column, within 3e-06 of a; trace_hash left out\n")
        self.assertEqual(len(self.differences(self.whole, path)), 2)

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_table(self):
        a = self.changed("f['runs/mfu'][0] = f['runs/mfu'][2] = 0.5", "a.h5")
        b = self.changed("f['runs/mfu'][0] = 0.25\nf['runs/mfu'][2] = 0.125\nf['runs/recompute'][2] = b'full'\n"
                         "f.attrs['pipecast_version'] = '0.0.9'", "b.h5")
        version = run("--version").stdout.split()[1]
        self.assertEqual(self.compare(a, b).replace(self.folder + "/", ""), f"""\
written by different versions of pipecast: a by {version}, b by 0.0.9
a: a.h5, 3 runs
b: b.h5, 3 runs

run          column        a      b  difference
-----------  ---------  ----  -----  ----------
flags.gpipe  mfu         0.5   0.25        -50%
flags.zb-h1  recompute  none   full
             mfu         0.5  0.125        -75%

column     runs  largest  in run
---------  ----  -------  -----------
recompute     1
mfu           2     -75%  flags.zb-h1

different: 2 of 3 runs that both have, in 2 columns
""")
        for words in ("csv", "json"):  # not among the rows that a program reads
            self.compare(a, b, "--format", words, message="pipecast: written by different versions of "
                         f"pipecast: a by {version}, b by 0.0.9\n")

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_chosen_columns_by_the_size_of_the_change(self):
        path = self.changed("f['runs/mfu'][:] = f['runs/mfu'][:] * [1.25, 1.5, 0.25]\nf['runs/hfu'][1] *= 4\n"
                            "f['runs/status'][0] = b'out_of_memory'")
        names = list(self.rows)
        change = {(names[0], "mfu"): 0.25, (names[1], "mfu"): 0.5, (names[2], "mfu"): -0.75, (names[1], "hfu"): 3.0}
        by_run, by_size = sorted(change, key=lambda at: (names.index(at[0]), at[1] == "hfu")), sorted(change, key=lambda at: -abs(change[at]))
        for options, expected in [(["--columns", "mfu,hfu"], by_size), (["--columns", "hfu, mfu", "--sort", "run"], by_run),
                                  (["--columns", "mfu"], [at for at in by_size if at[1] == "mfu"])]:
            with self.subTest(options):
                rows = self.differences(self.whole, path, *options)
                self.assertEqual([tuple(row[1:3]) for row in rows], expected)
                for row in rows:
                    self.assertAlmostEqual(float(row[6]), change[row[1], row[2]])
        self.assertEqual([tuple(row[1:3]) for row in self.differences(self.whole, path, "--sort", "change")],
                         [*by_size, (names[0], "status")])
        self.assertEqual(self.compare(self.whole, path, "--columns", "pp,tp", "--exit-code"), "the same: 3 runs, 2 chosen columns\n")

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_picture(self):
        path = self.changed("f['runs/mfu'][:] = f['runs/mfu'][:] * [1.25, 1.5, 0.25]\nf['runs/recompute'][1] = b'full'")
        names, drawn = list(self.rows), os.path.join(self.folder, "drawn.svg")
        said = self.compare(self.whole, path)
        self.assertEqual(self.compare(self.whole, path, "-o", drawn), said)
        words = re.findall(r">([^<>]+)<", pathlib.Path(drawn).read_text())
        text = "\n".join(words)
        places = [text.index(f"{name}, mfu") for name in (names[2], names[1], names[0])]
        self.assertEqual(places, sorted(places))
        for expected in ("-75%", "+50%", "+25%", "1 differences have no size in percent"):
            self.assertIn(expected, text)
        self.compare(self.whole, path, "--columns", "mfu", "-o", drawn)
        self.assertIn("mfu: What differs", pathlib.Path(drawn).read_text())
        self.assertNotIn("#171717", pathlib.Path(drawn).read_text().lower())
        self.compare(self.whole, path, "-o", drawn, "--dark")
        self.assertIn("#171717", pathlib.Path(drawn).read_text().lower())
        self.assertNotRegex(pathlib.Path(drawn).read_text(), r'fill="(?:black|rgb\(0,0,0\))" font-family')
        self.compare(self.whole, self.whole, "-o", drawn)
        self.assertIn("No number has changed.", pathlib.Path(drawn).read_text())
        self.bad(2, f"-o: {drawn}: is a file to compare; expected another file", drawn, self.whole, "-o", drawn)

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_a_run_that_stands_twice(self):
        path = self.changed("f['runs/name'][2] = f['runs/name'][0]")
        for files in ((self.whole, path), (path, self.whole)):
            self.bad(2, f"{path}: runs 1 and 3 are both 'flags.gpipe' of scenario 'flags'; expected every name once, to know "
                     "which runs belong together", *files)

    def test_bad_input(self):
        text = os.path.join(self.folder, "text.h5")
        pathlib.Path(text).write_text("no HDF5\n")
        missing = os.path.join(self.folder, "missing.h5")
        for files in ([text, self.whole], [self.whole, text]):
            self.bad(2, f"{text}: is not an HDF5 file; expected a results file of pipecast", *files)
        for files in ([missing, self.whole], [self.whole, missing]):
            self.bad(2, f"{missing}: No such file or directory; expected a results file", *files)
        for message, arguments in [
            ("compare: 0 of two results files; expected A.h5 B.h5", []),
            ("compare: 1 of two results files; expected A.h5 B.h5", ["a.h5"]),
            ("compare: 'c.h5' is one too many; expected A.h5 B.h5, or RESULTS.h5 TRACE.json...", ["a.h5", "b.h5", "c.h5"]),
            ("--format: unknown format 'xml'; expected table, csv or json", ["a.h5", "b.h5", "--format", "xml"]),
            ("--tolerance: -1: negative; expected a number of at least zero, without a unit",
             ["a.h5", "b.h5", "--tolerance", "-1"]),
            ("--tolerance: nan: not a number; expected a number of at least zero, without a unit",
             ["a.h5", "b.h5", "--tolerance=nan"]),
            ("--columns: 'mfuu': no such column (did you mean mfu?); expected names of the columns that --format csv has, or all",
             ["a.h5", "b.h5", "--columns", "mfuu"]),
            ("--columns: 'mfu' twice; expected it once", ["a.h5", "b.h5", "--columns", "mfu,mfu"]),
            ("--sort: unknown order 'size'; expected run or change", ["a.h5", "b.h5", "--sort", "size"]),
            ("changes.gif: unknown ending; expected a file name that ends in .svg, .png or .pdf", ["a.h5", "b.h5", "-o", "changes.gif"]),
            ("compare: --dark: nothing is drawn; expected it with --figure FILE", ["a.h5", "b.h5", "--dark"]),
            ("compare: --run and --iteration are of traces; expected RESULTS.h5 TRACE.json...", ["a.h5", "b.h5", "--run", "1"]),
            ("compare: --columns, --tolerance, --sort, --all and --exit-code are of two results files; expected them without traces",
             ["a.h5", "b.json", "--columns", "mfu"]),
            ("compare: unknown option '--frob'; expected one that `pipecast compare --help` lists", ["--frob"]),
        ]:
            with self.subTest(arguments):
                self.bad(2, message, *arguments)

    def test_a_full_device(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PIPECAST, "compare", self.whole, self.whole], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=120)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, "pipecast: standard output: cannot write what differs: No space left on device\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
