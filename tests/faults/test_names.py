"""Files of odd names and in odd places, as scenarios, results, profiles, schedules and pictures: they are used, or refused in one
line without control characters, and nothing is written but what was asked for.

usage: test_names.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
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
from faults import files_of
from sweep import FaultTest

from command import PIPECAST, count

NAMES = [b"with space", b"new\nline", b"car\rriage", b"tab\tbed", b"'single'", b'"double"', b"$(touch injected)", b"`touch injected`",
         b"%s%n%d", b"-o", b"--help", b"--", b"back\\slash", b"semi;colon|pipe&", b"gl*b?[a]", b"#hash", b"~", b"=x=",
         "\u00fcml\u00e4ut-\u6f22\u5b57-\U0001f600".encode(), "\u202eright to left".encode(), b"\xff\xfe no UTF-8 \xc3(",
         b"\x1b[31mred\x1b[0m", b"\x1b]0;title\x07", b"\x9b31m", "\u009b31m".encode(), b"\x7f\x01\x08", b"x" * 240]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
NOBODY = 65534
DEEP = 3900  # bytes of a path; 4096 are all that there may be


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, **options)


class Names(FaultTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tried = 0
        cls.program = os.path.join(cls.source, "pipecast")  # where anybody may run it
        shutil.copy(PIPECAST, cls.program)
        os.chmod(cls.source, 0o755)

    @classmethod
    def tearDownClass(cls):
        count("faults.names", cls.tried)

    def setUp(self):
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.folder = own.name

    def place(self, name, source):
        path = os.path.join(self.folder.encode(), name)
        shutil.copy(os.path.join(self.source, source), path)
        return path

    def is_plain(self, done, where):
        """Both streams can be shown on a terminal; standard error is one line where the command fails."""
        type(self).tried += 1
        for stream in (done.stdout, done.stderr):
            self.assertIsNone(CONTROL.search(stream.decode()), (where, done))  # decode: it is UTF-8
        if done.returncode > 1:
            self.assertEqual(done.stderr.count(b"\n"), 1, (where, done))

    def bad(self, statuses, *arguments, **options):
        done = run(*arguments, **options)
        self.is_plain(done, arguments)
        self.assertIn(done.returncode, statuses, (arguments, done))
        self.assertTrue(done.stderr.startswith(b"pipecast: "), (arguments, done))
        return done.stderr.decode()

    def good(self, *arguments, **options):
        done = run(*arguments, **options)
        self.is_plain(done, arguments)
        self.assertIn(done.returncode, (0, 1), (arguments, done))
        return done.stdout

    def test_used(self):
        """In the working folder, behind "--" or "=", as inputs and outputs of everything."""
        for name in NAMES:
            for file in ("closed.yaml", "a.h5", "s1.h5", "p.h5", "1f1b.csv", "gemm.csv"):
                self.place(name + b"." + file.encode(), file)
            here = {"cwd": self.folder}
            self.good("run", b"-o" + name + b".r", "--", name + b".closed.yaml", **here)
            self.good("export", b"--output=" + name + b".json", "--run", "1", "--to", "chrome", "--", name + b".a.h5", **here)
            self.good("compare", "--", name + b".a.h5", name + b".s1.h5", **here)
            self.good("merge", "--", name + b".m", name + b".s1.h5", **here)
            self.good("profile", "fit", b"--output=" + name + b".p", "--processors", "108", "--", name + b".gemm.csv", **here)
            self.good("profile", "show", "--", name + b".p.h5", **here)
            self.good("schedule", "-p", "2", "-m", "3", "--", name + b".1f1b.csv", **here)
            if self.is_word(name):
                self.good("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--microbatches", "2",
                          b"--profile=" + name + b".p.h5", "--format", "csv", **here)
            left = {os.path.basename(name) + end for end in (b".r", b".json", b".m", b".p")}
            self.assertTrue(left <= set(os.listdir(self.folder.encode())), (name, os.listdir(self.folder.encode())))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(("injected", ".pipecast")) or "journal" in name])

    def is_word(self, name):
        """Whether a scenario's key can say it: options of `run` become such."""
        return re.fullmatch(rb"[A-Za-z0-9._ -]+", name)

    def test_refused(self):
        """What is not there, or is something else."""
        for name in NAMES:
            other = self.place(name + b".csv", "gemm.csv")
            missing = os.path.join(self.folder.encode(), b"no", name)
            for path in (missing, other):
                self.bad((2,), "run", b"--", path)
                self.bad((2,), "figure", "-o", "x.svg", b"--", path, cwd=self.folder)
                self.bad((2,), "export", "--to", "csv", b"--", path)
                self.bad((2,), "compare", b"--", path, path)
                self.bad((2,), "profile", "show", b"--", path)
            self.bad((2,), "schedule", "-p", "2", "-m", "2", b"--", missing)
            self.bad((2,), "schedule", b"1f1b" + name, "-p", "2", "-m", "2")
            self.bad((2,), "list", b"x" + name)
            self.bad((2,), b"x" + name)
            self.bad((2,), "run", b"--x" + name)
            self.bad((2,), "run", "--model", b"x" + name, "--machine", "dgx-a100")
            self.bad((2,), "run", os.path.join(self.source, "closed.yaml"), "--set", b"scenario." + name)
            self.bad((2,), "run", os.path.join(self.source, "closed.yaml"), "-o", missing)
            self.bad((2,), "schedule", "1f1b", "-p", "2", "-m", "2", "--figure", missing + b".svg")
            os.unlink(other)
        self.assertEqual(os.listdir(self.folder), [])

    def test_labels(self):
        """A scenario's own words, of a file that another may have written."""
        for name in NAMES:
            text = name.decode(errors="replace").replace("\\", "\\\\").replace('"', '\\"')
            text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
            path = os.path.join(self.folder, "x.yaml")
            for key in ("title", "source"):
                pathlib.Path(path).write_text(pathlib.Path(self.source, "closed.yaml").read_text() + f'{key}: "{text}"\n')
                self.is_plain(run("run", path), (key, text))
                self.is_plain(run("list", "scenarios", env={"PIPECAST_SCENARIOS": self.folder}), (key, text))
            pathlib.Path(path).write_text(f'scenario: "{text}"\nsetting: {{schedule: 1f1b}}\n')
            self.bad((2,), "run", path)

    def test_long_paths(self):
        """Of nearly as many bytes as there may be, and of more; what is wrong stands at the message's end."""
        folder = self.folder
        while len(folder) + 201 < DEEP:
            folder += "/" + "d" * 200
            os.mkdir(folder)
        path = folder + "/" + "s" * (DEEP - len(folder) - 6) + ".yaml"
        shutil.copy(os.path.join(self.source, "closed.yaml"), path)
        results = path[:-5] + ".h5"
        self.good("run", path, "-o", results)
        self.good("export", results, "--run", "1", "--to", "chrome", "-o", path[:-5] + ".json")
        self.assertEqual(sorted(name[-5:] for name in os.listdir(folder)), sorted([path[-5:], results[-5:], ".json"[-5:]]))
        for long in (results[:-3] + "x", "/" + "y" * 4200, "z" * 256, "/".join(["w" * 250] * 20)):
            for command in (["run", long], ["export", long, "--to", "csv"], ["profile", "show", long], ["run", path, "-o", long + "/r"]):
                said = self.bad((2,), *command)
                self.assertLess(len(said), 1100)
                self.assertRegex(said, r"(; expected|expected one that is there).*\n$", command)
        name = "n" * 250  # a results file may be called so, the journal beside it may not
        self.assertIn("File name too long", self.bad((2,), "run", path, "-o", os.path.join(self.folder, name)))
        shutil.rmtree(os.path.join(self.folder, "d" * 200))

    def test_what_is_no_file(self):
        """Folders, devices, pipes and links, in place of what is read and written."""
        scenario, results = self.place(b"x.yaml", "closed.yaml"), self.place(b"r.h5", "a.h5")
        paths = {name: os.path.join(self.folder, name) for name in ("folder", "pipe", "dangling", "loop", "nowhere")}
        os.mkdir(paths["folder"])
        os.mkfifo(paths["pipe"])
        os.symlink("there.h5", paths["dangling"])
        os.symlink("loop", paths["loop"])
        os.symlink("no/there.h5", paths["nowhere"])
        before = files_of_names(self.folder)
        for path in (paths["folder"], paths["pipe"], paths["loop"], paths["nowhere"], "/dev/null", "/dev/full", "/dev/zero",
                     os.path.join(self.folder, "x.yaml", "r.h5"), ""):
            for command in (["run", scenario, "-o", path], ["export", results, "--to", "csv", "-o", path],
                            ["schedule", "1f1b", "-p", "2", "-m", "2", "--figure", path], ["merge", path, results],
                            ["profile", "fit", os.path.join(self.source, "gemm.csv"), "-o", path]):
                self.bad((2,), *command)
        for path in (paths["folder"], paths["loop"], paths["dangling"], "/dev/null", "/dev/zero", scenario + b"/x", ""):
            commands = [["run", path], ["figure", path, "-o", "y.svg"], ["export", path, "--to", "csv"], ["compare", path, results],
                        ["profile", "show", path], ["merge", "m.h5", path]]
            commands += [["schedule", path + ".csv" if isinstance(path, str) else path, "-p", "2", "-m", "2"]]
            for command in commands:
                self.bad((2,), *command, cwd=self.folder)
        for command in (["export", paths["pipe"], "--to", "csv"], ["profile", "show", paths["pipe"]], ["figure", paths["pipe"], "-o", "y.svg"]):
            self.bad((2,), *command, cwd=self.folder)  # and do not wait for a writer
        self.assertEqual(files_of_names(self.folder), before)
        self.good("run", scenario, "-o", paths["dangling"])
        self.assertTrue(os.path.islink(paths["dangling"]) and os.path.isfile(os.path.join(self.folder, "there.h5")))

    def test_what_may_not_be_written(self):
        """By somebody who may not: folders, files; nothing is written anywhere. As root another user is taken."""
        if os.getuid() == 0:
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        else:
            options = {}
        tight = os.path.join(self.folder, "tight")
        os.mkdir(tight)
        for case in CASES:
            place_files(case, self.source, tight)
        secret = os.path.join(tight, "secret.yaml")
        shutil.copy(os.path.join(self.source, "closed.yaml"), secret)
        os.chmod(secret, 0)
        os.chmod(self.folder, 0o755)
        before = files_of_names(tight)
        os.chmod(tight, 0o555)
        self.addCleanup(os.chmod, tight, 0o755)
        for case in CASES:
            done = subprocess.run([self.program, *case.arguments], capture_output=True, timeout=60, cwd=tight, **options)
            self.is_plain(done, case.name)
            self.assertIn(done.returncode, (2,) if case.writes else (0, 1), (case.name, done))
            if case.writes:
                self.assertRegex(done.stderr, rb"(Permission denied|cannot write in the folder|cannot be opened)", case.name)
        done = subprocess.run([self.program, "run", secret], capture_output=True, timeout=60, **options)
        self.is_plain(done, secret)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertEqual(files_of_names(tight), before)

    def test_an_environment_without_anything(self):
        """Nor a folder for temporary files: what needs none, and what does, print and write the same."""
        for case in CASES:
            place_files(case, self.source, self.folder)
            found = []
            for environment in (os.environ, {}, {"TMPDIR": "/nowhere"}, {"TMPDIR": os.path.join(self.source, "a.h5")},
                                {"TMPDIR": "/proc"}, {"TMPDIR": "", "HOME": "", "PATH": os.environ["PATH"]}):
                if case.draws and "PATH" not in environment:
                    environment = {**environment, "PATH": os.environ["PATH"]}
                if case.writes and os.path.exists(os.path.join(self.folder, case.writes)):
                    os.unlink(os.path.join(self.folder, case.writes))
                done = run(*case.arguments, cwd=self.folder, env=environment)
                found.append((done.returncode, done.stdout, done.stderr, files_of(self.folder)))
                self.assertEqual(found[0], found[-1], (case.name, environment))
                type(self).tried += 1


def files_of_names(folder):
    return sorted((entry.name, entry.lstat().st_size, entry.lstat().st_mtime_ns) for entry in pathlib.Path(folder).iterdir())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
