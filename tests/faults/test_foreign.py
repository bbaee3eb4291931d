"""Files that come to the output's name, or change there, while a command works: they stay, and its results are kept.

The command stops itself where it begins to put its results in place: at the call that names the file that they are in.

usage: test_foreign.py PIPECAST SOURCE_ROOT FAULT_LIBRARY
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from faults import LIBRARY, SANITIZER, files_of
from sweep import FaultTest

from command import PIPECAST

COME, CHANGED = "has come since the command began; expected no file there", "has changed since the command began; expected the file of then"
COMMANDS = (["run", "closed.yaml", "-q", "-o", "r.h5", "--format", "csv"], ["plan", "plan.yaml", "-q", "-o", "r.h5", "--format", "csv"],
            ["merge", "-q", "r.h5", "s1.h5", "s2.h5"])
LINK, RENAME = "link:1:sig19", "rename:1:sig19"  # SIGSTOP, before the look at what stands there and behind it


class Foreign(FaultTest):
    def setUp(self):
        own = tempfile.TemporaryDirectory()
        self.addCleanup(own.cleanup)
        self.home = pathlib.Path(own.name)

    def clear(self):
        for entry in self.home.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for name in ("closed.yaml", "plan.yaml", "s1.h5", "s2.h5"):
            shutil.copy(os.path.join(self.source, name), self.home)

    def work(self, command, fault, meanwhile):
        """Standard output, standard error and status of a command during which `meanwhile` is done to its output."""
        variables = {**os.environ, "LD_PRELOAD": LIBRARY, "PC_FAULT": fault}
        variables["ASAN_OPTIONS"] = variables.get("ASAN_OPTIONS", "") + SANITIZER
        with subprocess.Popen([PIPECAST, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.home, text=True,
                              env=variables) as process:
            waited, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                self.skipTest("the folder's file system has no files without a name")
            meanwhile(self.home / "r.h5")
            os.kill(process.pid, signal.SIGCONT)
            out, said = process.communicate(timeout=60)
        return out, said, process.returncode

    def good(self, command):
        self.clear()
        done = subprocess.run([PIPECAST, *command], capture_output=True, text=True, cwd=self.home, timeout=60)
        self.assertIn(done.returncode, (0, 1), done)
        return done.stdout, (self.home / "r.h5").read_bytes()

    def stays(self, command, what, before, meanwhile, fault=LINK):
        """What stands there afterwards is what `meanwhile` made of it; beside it is what would have come there."""
        printed, results = self.good(command)
        self.clear()
        before(self.home / "r.h5")
        files, found = files_of(self.home), {}

        def change(path):
            meanwhile(path)
            found.update(files_of(self.home))

        out, said, status = self.work(command, fault, change)
        now = files_of(self.home)
        self.assertEqual(status, 2, said)
        start = f"pipecast: r.h5: {what}; it stays, and the results are in r.h5.new"
        self.assertEqual(said, start + ("; its runs are kept in r.h5.journal\n" if command[0] == "run" else "\n"))
        self.assertEqual(out, printed)
        self.assertEqual(now.pop("r.h5.new"), results)
        self.assertEqual("r.h5.journal" in now, command[0] == "run")
        now.pop("r.h5.journal", None)
        for name in list(found):
            if name.startswith(".pipecast") or name == "r.h5.journal":
                del found[name]
        self.assertEqual(now, found)
        self.assertEqual({name: data for name, data in now.items() if name != "r.h5"},
                         {name: data for name, data in files.items() if name != "r.h5"})

    def nothing(self, path):
        pass

    def old(self, path):
        shutil.copy(self.home / "s2.h5", path)

    def text(self, path):
        path.write_text("foreign")

    def empty(self, path):
        path.write_text("")

    def link(self, path):
        path.symlink_to("s1.h5")

    def dangling(self, path):
        path.symlink_to("nowhere")

    def results(self, path):
        """Of somebody else: a results file, but not the one that was looked at."""
        other = path.with_name("other")
        shutil.copy(self.home / "s1.h5", other)
        os.rename(other, path)

    def folder(self, path):
        path.mkdir()

    def grown(self, path):
        with open(path, "ab") as file:
            file.write(b"more")

    def test_comes(self):
        for command in COMMANDS:
            for meanwhile in (self.text, self.empty, self.link, self.dangling, self.results, self.folder):
                self.stays(command, COME, self.nothing, meanwhile)
            for meanwhile in (self.text, self.empty, self.dangling):
                self.stays(command, COME, self.nothing, meanwhile, RENAME)

    def test_changes(self):
        for command in COMMANDS:
            for meanwhile in (self.grown, self.results, self.text, self.empty):
                self.stays(command, CHANGED, self.old, meanwhile)

    def test_goes(self):
        """What stood there is gone: the results take its place."""
        for command in COMMANDS:
            printed, results = self.good(command)
            self.clear()
            self.old(self.home / "r.h5")
            out, said, status = self.work(command, LINK, os.unlink)
            self.assertIn(status, (0, 1), said)
            self.assertEqual((out, (self.home / "r.h5").read_bytes()), (printed, results))

    def test_goes_on(self):
        """Once the other file has gone its own way, the same run has nothing to do."""
        command = COMMANDS[0]
        printed, results = self.good(command)
        self.clear()
        self.work(command, LINK, self.text)
        done = subprocess.run([PIPECAST, *command], capture_output=True, text=True, cwd=self.home, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertTrue(done.stderr.endswith("; what is no results file is not replaced\n"), done)
        (self.home / "r.h5").unlink()
        done = subprocess.run([PIPECAST, *command], capture_output=True, text=True, cwd=self.home, timeout=60)
        self.assertEqual((done.stdout, done.stderr, (self.home / "r.h5").read_bytes()), (printed, "", results))
        self.assertNotIn("r.h5.journal", os.listdir(self.home))

    def test_stood_there(self):
        """Before it began: refused at once, an empty file too, and nothing is simulated."""
        for command in COMMANDS:
            for before, message in ((self.text, "is not an HDF5 file; expected a results file of pipecast"),
                                    (self.empty, "is an empty file; expected a results file, or none there")):
                self.clear()
                before(self.home / "r.h5")
                files = files_of(self.home)
                done = subprocess.run([PIPECAST, *command], capture_output=True, text=True, cwd=self.home, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertEqual(done.stderr, f"pipecast: r.h5: {message}; what is no results file is not replaced\n")
                self.assertEqual(files_of(self.home), files)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
