"""Files on the way: results get the permissions that the user's mask leaves, and links that others planted lead nowhere.

usage: test_temporary.py PIPECAST SOURCE_ROOT
"""
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import unittest

from command import Command, PIPECAST, ROOT, run

RUN = ("run", str(ROOT / "tests/data/scenarios/good/minimal.yaml"), "-q")
SCHEDULE = ("schedule", "1f1b", "-p", "2", "-m", "2", "--figure")
STRANGER = 54321


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Permissions(Command):
    def masked(self, mask, *arguments):
        done = subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, umask=mask, timeout=120)
        self.assertEqual(done.returncode, 0, done)

    def test_new_files_follow_the_mask(self):
        for mask in (0o000, 0o022, 0o027, 0o077):
            results, picture = self.path(f"{mask}.h5"), self.path(f"{mask}.svg")
            self.masked(mask, *RUN, "-o", results)
            self.assertEqual(mode_of(results), 0o666 & ~mask)
            if shutil.which("gnuplot"):
                self.masked(mask, *SCHEDULE, picture)
                self.assertEqual(mode_of(picture), 0o666 & ~mask)
        self.assertEqual([name for name in os.listdir(self.folder.name) if not name.endswith((".h5", ".svg"))], [])

    def test_old_files_keep_theirs(self):
        """But not the right to run as their owner, who is another now."""
        results = self.path("r.h5")
        self.masked(0o022, *RUN, "-o", results)
        for before, after in ((0o600, 0o600), (0o640, 0o640), (0o4755, 0o755), (0o2666, 0o666)):
            os.chmod(results, before)
            self.masked(0o022, *RUN, "--fresh", "-o", results)
            self.assertEqual(mode_of(results), after)


class Planted(Command):
    """A folder as /tmp is; in it what somebody else made."""

    def setUp(self):
        super().setUp()
        self.common = pathlib.Path(self.path("common"))
        self.common.mkdir()
        self.common.chmod(0o1777)
        self.victim = pathlib.Path(self.path("victim"))
        self.output = str(self.common / "r.h5")

    def refused(self, status, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), done)
        self.assertIn(message, done.stderr)
        self.assertFalse(self.victim.exists())

    @unittest.skipIf(os.geteuid(), "only root can act as somebody else")
    def test_output(self):
        os.symlink(self.victim, self.output)
        os.lchown(self.output, STRANGER, STRANGER)
        self.refused(2, "Permission denied", *RUN, "-o", self.output)
        self.assertTrue(os.path.islink(self.output))
        self.common.chmod(0o777)
        self.refused(2, "Permission denied", *RUN, "-o", self.output)
        self.common.chmod(0o755)  # nobody else can write here: it is there because we trust who put it there
        self.good(*RUN, "-o", self.output)
        self.assertTrue(self.victim.exists())

    @unittest.skipIf(os.geteuid(), "only root can act as somebody else")
    def test_output_in_the_strangers_own_folder(self):
        """It is no less a trap where the folder is the stranger's, too: of every command that writes, by every way to the link."""
        shard, profile, table = self.path("s.h5"), self.path("p.h5"), self.path("t.csv")
        self.good(*RUN, "-o", shard)
        pathlib.Path(table).write_text("collective,ranks,size_bytes,time_us\n" + "".join(f"all_reduce,2,{2**i},{2**i}\n" for i in range(9)))
        self.assertEqual(run("profile", "fit", table, "-o", profile).returncode, 0)
        self.victim.write_text("precious")
        os.chown(self.common, STRANGER, STRANGER)
        os.symlink(self.victim, self.output)
        os.lchown(self.output, STRANGER, STRANGER)
        links = {"own": self.output, "relative": "common/r.h5", "round": "common/../common/r.h5"}
        for name, target in links.items():
            os.symlink(target, self.path(name + ".h5"))
        os.symlink("common", self.path("folder"))
        for mode in (0o777, 0o1777, 0o775, 0o2770):
            self.common.chmod(mode)
            for output in (self.output, self.path("folder/r.h5"), *(self.path(name + ".h5") for name in links)):
                for command in ([*RUN, "-o"], [*RUN, "--fresh", "-o"], ["export", shard, "--to", "csv", "-o"],
                                ["profile", "fit", table, "-o"], ["merge", "-q"],
                                ["plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "1", "-o"]):
                    done = run(*command, output, *([shard] if command[0] == "merge" else []))
                    self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
                    self.assertIn("r.h5: Permission denied: a link that another user made, in a folder where others may write", done.stderr)
                    self.assertEqual((self.victim.read_text(), os.listdir(self.common)), ("precious", ["r.h5"]))
        picture = str(self.common / "r.svg")
        os.rename(self.output, picture)
        for command in (["figure", shard, "-o", picture], [*SCHEDULE, picture], ["profile", "show", profile, "--figure", picture]):
            if shutil.which("gnuplot"):
                self.assertEqual(run(*command).returncode, 2, command)
                self.assertEqual((self.victim.read_text(), os.path.islink(picture)), ("precious", True))

    def test_output_of_ones_own(self):
        os.symlink(self.victim, self.output)
        self.good(*RUN, "-o", self.output)
        self.assertTrue(self.victim.exists() and os.path.islink(self.output))

    def test_journal(self):
        for end in (".journal", ".journal.1"):  # of another rank, which would only be read
            os.symlink(self.victim, self.output + end)
            self.refused(2, "symbolic links", *RUN, "-o", self.output)
            os.unlink(self.output + end)

    def test_without_an_output(self):
        """Nothing is written: not to a folder for temporary files, nor anywhere else, where not a byte may be."""
        before = sorted(os.listdir(self.common))
        done = subprocess.run([PIPECAST, *RUN], capture_output=True, text=True, timeout=120, cwd=self.common,
                              env={**os.environ, "TMPDIR": str(self.common)},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, self.good(*RUN))
        self.assertEqual(sorted(os.listdir(self.common)), before)


if __name__ == "__main__":
    unittest.main(argv=["test_temporary.py"], verbosity=2)
