"""Sweeps that are ended and go on: killed at random moments, interrupted, given more values, split into shards; and what
must not happen to what is there.

The journal is read here by its documentation (docs/results-format.md), not by the program's own code.

usage: test_sweep.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from command import IS_LONG, PIPECAST, Command, on_a_terminal, plain_only, run, full_only  # noqa: E402
import with_h5py  # noqa: E402

HEADER, HEAD, CHECK = 32, 40, 8


def fnv(data):
    """FNV-1a, 64 bits."""
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def keys_of(path):
    """The keys of the whole records of a journal, in order; [] where there is none."""
    data = pathlib.Path(path).read_bytes() if os.path.exists(path) else b""
    keys, at = [], HEADER
    while at + HEAD <= len(data):
        mark, row, trace, high, low, _ = struct.unpack_from("=IIQQQQ", data, at)
        end = at + HEAD + row + trace + CHECK
        if end > len(data):
            break
        assert mark == 0x4352504a
        keys.append((high, low))
        at = end
    return keys


def limited(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


class Sweep(Command):
    def scenario(self, name, microbatches, memories, trace=False):
        """One of microbatches x memories runs."""
        path = self.path(name)
        limits = ", ".join(f"{40 + i / 100:.2f} GiB" for i in range(memories))
        pathlib.Path(path).write_text(
            f"scenario: {pathlib.Path(name).stem}\n"
            "setting: {schedule: 1f1b, devices: 4, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB}, "
            f"trace: {str(trace).lower()}}}\n"
            f"sweep: {{microbatches: {list(range(4, 4 + microbatches))}, memory: [{limits}]}}\n")
        return path

    def read(self, path):
        return pathlib.Path(path).read_bytes()

    def start(self, *arguments, **options):
        return subprocess.Popen([PIPECAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def wait_for_records(self, journal, count):
        until = time.monotonic() + 60
        while len(keys_of(journal)) < count and time.monotonic() < until:
            time.sleep(0.005)

    def said_on_a_terminal(self, *arguments):
        status, said = on_a_terminal(self, *arguments)
        self.assertIn(status, (0, 1))
        return said


class Killed(Sweep):
    def kill_until_done(self, arguments, whole, source, patience, kills):
        """Starts and kills again and again, `kills` times at most; the records that were there stay, and none comes twice, until
        the results (the last argument) are `whole`. How many kills. Where a start was killed before it had done anything, the next gets more time."""
        journal, before, killed = arguments[-1] + ".journal", [], 0
        while True:
            process = self.start(*arguments)
            try:
                process.communicate(timeout=patience * source.uniform(0, 2.5) if killed < kills else 600)
                return killed
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            killed += process.returncode == -signal.SIGKILL
            keys = keys_of(journal)
            self.assertEqual(len(set(keys)), len(keys))
            if not os.path.exists(journal):
                # Killed before it began one, or after the results were whole and it was taken away: the next is a new one.
                self.assertTrue(not before or self.read(arguments[-1]) == whole)
                before = []
            else:
                self.assertEqual(keys[:len(before)], before)
                patience *= 1.3 if len(keys) == len(before) else 0.9
                before = keys

    def kill(self, runs, kills):
        source = random.Random(20261122)
        path = self.scenario(f"killed{runs}.yaml", runs // 40, 40, trace=runs <= 1000)
        arguments = ["run", path, "--format", "csv", "-o"]
        began = time.monotonic()
        table = self.good(*arguments, self.path(f"whole{runs}.h5"))
        seconds, killed, rounds, whole = time.monotonic() - began, 0, 0, self.read(self.path(f"whole{runs}.h5"))
        while killed < kills:
            output = self.path(f"killed{runs}_{rounds}.h5")
            killed += self.kill_until_done([*arguments, output], whole, source, seconds / kills, kills - killed)
            rounds += 1
            self.assertEqual(self.read(output), whole)
            self.assertEqual(self.good(*arguments, output), table)
            self.assertFalse(os.path.exists(output + ".journal"))
        print(f"{runs} runs, {seconds:.1f} s in one go: {killed} kills in {rounds} rounds", file=sys.stderr)

    @plain_only
    def test_killed_at_random_moments(self):
        """The whole is byte for byte that of one go, in a few rounds where the runs are done before all kills are."""
        for runs, kills in ((40, 4), (10000, 100) if IS_LONG else (2000, 20)):
            with self.subTest(runs=runs):
                self.kill(runs, kills)

    def test_interrupted(self):
        """A line, the signal's own end, and the journal: for SIGINT, as a terminal sends it, and SIGTERM."""
        path, whole = self.scenario("x.yaml", 20, 100), self.path("whole.h5")
        self.good("run", path, "-o", whole)
        for number in (signal.SIGINT, signal.SIGTERM):
            output = self.path(f"{number}.h5")
            process = self.start("run", path, "-o", output)
            self.wait_for_records(output + ".journal", 10)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            if process.returncode == 0:
                continue  # it was done before the signal came
            self.assertEqual((process.returncode, out), (-number, ""))
            self.assertRegex(err, r"^pipecast: interrupted: \d+ of 2000 runs to do are done and kept in "
                                  + output + r"\.journal; the same command goes on\n$")
            self.assertGreaterEqual(len(keys_of(output + ".journal")), 10)
            self.good("run", path, "-o", output)
            self.assertEqual(self.read(output), self.read(whole))


    def test_interrupted_without_a_stream(self):
        """Nothing that is said gets into the journal, which would be the next file where a stream is closed."""
        path, whole = self.scenario("x.yaml", 20, 100), self.path("whole.h5")
        self.good("run", path, "-o", whole)
        for closed in (0, 1, 2):
            output = self.path(f"{closed}.h5")
            process = subprocess.Popen([PIPECAST, "run", path, "-o", output], preexec_fn=lambda: os.close(closed),
                                       **{name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")})
            self.wait_for_records(output + ".journal", 10)
            process.send_signal(signal.SIGINT)
            self.assertIn(process.wait(timeout=60), (-signal.SIGINT, 0, 3))
            self.good("run", path, "-o", output)
            self.assertEqual(self.read(output), self.read(whole))


class GoingOn(Sweep):
    def test_more_values_do_only_what_is_missing(self):
        """12 of 20 runs are there, in another order of runs and under other numbers."""
        small, large = self.scenario("x.yaml", 3, 4, trace=True), self.path("r.h5")
        self.good("run", small, "-o", large)
        path = self.scenario("x.yaml", 4, 5, trace=True)
        said = self.said_on_a_terminal("run", path, "-o", large)
        self.assertTrue(said.startswith("pipecast: of 20 runs 12 done before, 0 equal to another, 8 to do"), said)
        self.good("run", path, "-o", self.path("fresh.h5"))
        self.assertEqual(self.read(large), self.read(self.path("fresh.h5")))
        self.assertTrue(self.said_on_a_terminal("run", path, "-o", large).startswith(
            "pipecast: of 20 runs 20 done before, 0 equal to another, 0 to do"))
        self.assertFalse("done before" in self.said_on_a_terminal("run", path, "-o", large, "--fresh"))
        self.assertEqual(self.read(large), self.read(self.path("fresh.h5")))

    def test_equal_runs_are_done_once(self):
        one, other = self.scenario("one.yaml", 2, 2, trace=True), self.scenario("other.yaml", 2, 2, trace=True)
        said = self.said_on_a_terminal("run", one, other, "-o", self.path("r.h5"))
        self.assertTrue(said.startswith("pipecast: of 8 runs 0 done before, 4 equal to another, 4 to do"), said)
        rows = list(csv.DictReader(io.StringIO(self.good("run", one, other, "--format", "csv"))))
        self.assertEqual([row["run"] for row in rows], [str(i) for i in range(1, 9)])
        self.assertEqual([row["scenario"] for row in rows], ["one"] * 4 + ["other"] * 4)
        for a, b in zip(rows[:4], rows[4:]):
            self.assertEqual({k: v for k, v in a.items() if k not in ("run", "scenario", "name")},
                             {k: v for k, v in b.items() if k not in ("run", "scenario", "name")})
            self.assertEqual(a["name"].replace("one.", "other."), b["name"])
        for run_number in ("2", "6"):
            self.good("figure", self.path("r.h5"), run_number, "-o", self.path("f.svg"))

    def test_held_by_another(self):
        """By whatever name, and by whatever command: the sweep's end would replace what that one wrote."""
        path, output, link, shard = self.scenario("x.yaml", 20, 100), self.path("r.h5"), self.path("link.h5"), self.path("s.h5")
        os.symlink("r.h5", link)
        self.good("run", self.scenario("y.yaml", 1, 1), "-o", shard)
        process = self.start("run", path, "-o", output)
        self.addCleanup(process.kill)
        self.wait_for_records(output + ".journal", 5)
        process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            self.skipTest("the first was done before it could be stopped")
        there = sorted(os.listdir(self.folder.name))
        plan = ["plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "1", "-o", output]
        for command in (["run", path, "-o", output], ["run", path, "-o", output, "--fresh"], ["run", path, "-o", link],
                        ["merge", output, shard], ["merge", link, shard], plan):
            done = run(*command)
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertEqual(done.stderr, f"pipecast: {output}.journal: held by another pipecast; expected to be alone with it\n")
            self.assertEqual(sorted(os.listdir(self.folder.name)), there)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def killed_journal(self, path, output):
        """The journal of a run that was killed."""
        process = self.start("run", path, "-o", output)
        self.wait_for_records(output + ".journal", 5)
        process.kill()
        process.communicate()
        if not os.path.exists(output + ".journal"):
            self.skipTest("the run was done before it could be killed")
        return output + ".journal"

    def test_a_journal_of_a_rank_that_is_not_there(self):
        """Gone on with, but for --fresh, and gone when all is done."""
        path, output = self.scenario("x.yaml", 20, 100), self.path("r.h5")
        other = self.killed_journal(path, output) + ".1"
        os.rename(output + ".journal", other)
        left, found = self.read(other), []
        for extra in ([], ["--fresh"]):
            pathlib.Path(other).write_bytes(left)
            said = self.said_on_a_terminal("run", path, "-o", output, *extra)
            self.assertEqual(bool(re.match(r"pipecast: of 2000 runs [1-9]\d* done before", said)), not extra, said)
            self.assertEqual(sorted(os.listdir(self.folder.name)), ["r.h5", "x.yaml"])
            found.append(self.read(output))
            os.unlink(output)
        self.assertEqual(*found)

    def test_a_journal_of_another_build(self):
        path, output = self.scenario("x.yaml", 20, 100), self.path("r.h5")
        journal = self.killed_journal(path, output)
        data = bytearray(self.read(journal))
        data[16] ^= 1
        for check, message in [
                (bytes(data[24:32]), "the journal is damaged at its start; expected it as pipecast wrote it"),
                (struct.pack("=Q", fnv(data[:24])), "the journal is of another build of pipecast, whose results may differ; "
                                                    "expected one of this build")]:
            data[24:32] = check
            pathlib.Path(journal).write_bytes(data)
            done = run("run", path, "-o", output)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"pipecast: {journal}: {message} (--fresh simulates everything again)\n")
            self.assertEqual(self.read(journal), bytes(data))
        self.good("run", path, "-o", output, "--fresh")
        self.assertFalse(os.path.exists(journal))

    def test_a_file_that_is_no_journal(self):
        path, journal = self.scenario("x.yaml", 1, 2), self.path("r.h5.journal")
        for text in ("precious\n", "p", "x" * 5000):
            pathlib.Path(journal).write_text(text)
            for extra in ([], ["--fresh"]) if text != "p" else []:
                done = run("run", path, "-o", self.path("r.h5"), *extra)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
                self.assertIn("r.h5.journal: is no journal of pipecast; expected one, or no file", done.stderr)
                self.assertEqual(pathlib.Path(journal).read_text(), text)
        os.unlink(journal)

    def test_journals_of_ranks_that_are_not_there(self):
        """Afresh they go, and nothing else that is called so."""
        path, output = self.scenario("x.yaml", 1, 2), self.path("r.h5")
        journal = pathlib.Path(output + ".journal.3")
        journal.write_text("precious")
        done = run("run", path, "-o", output, "--fresh")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn("r.h5.journal.3: is no journal of pipecast; expected one, or no file", done.stderr)
        self.assertEqual(journal.read_text(), "precious")
        journal.write_text("pipecast-jour")
        self.good("run", path, "-o", output, "--fresh")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["r.h5", "x.yaml"])

    def test_through_a_link(self):
        """The journal is beside the file, so that what is ended goes on by either name."""
        path, output, link = self.scenario("x.yaml", 20, 100), self.path("r.h5"), self.path("link.h5")
        os.symlink("r.h5", link)
        self.killed_journal(path, output)
        said = self.said_on_a_terminal("run", path, "-o", link)
        self.assertRegex(said, r"^pipecast: of 2000 runs [1-9]\d* done before")
        self.assertTrue(os.path.islink(link))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["link.h5", "r.h5", "x.yaml"])

    def test_runs_of_another_sweep_make_room_with_a_word(self):
        output, first, other = self.path("r.h5"), self.scenario("first.yaml", 2, 3), self.scenario("other.yaml", 1, 4)
        self.good("run", first, "-o", output)
        done = run("run", other, "-o", output)  # shares the 3 runs of 4 microbatches with the first
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, f"pipecast: warning: {output}: 3 of its 6 runs are not of this sweep and will not be kept\n")
        self.assertEqual(run("run", first, "-o", output, "--quiet").stderr, "")

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_a_results_file_of_another_build_or_version(self):
        path, output = self.scenario("x.yaml", 2, 3), self.path("r.h5")
        self.good("run", path, "-o", output)
        whole = self.read(output)
        for change in ("f.attrs['build'] = '0123456789abcdef'", "del f.attrs['build'], f.attrs['sweep_runs'], f['runs/key']"):
            with_h5py.work_on(output, change, mode="r+")
            done = run("run", path, "-o", output)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, f"pipecast: warning: {output}: of another build of pipecast, whose results may differ: "
                                          "its 6 runs are simulated again\n")
            self.assertEqual(self.read(output), whole)
            with_h5py.work_on(output, change, mode="r+")
            self.good("run", path, "-o", output, "--quiet")
            self.assertEqual(self.read(output), whole)

    @full_only
    def test_a_disk_that_is_full(self):
        """At every size of files: one line, what was there stands, and with room the same command ends it."""
        small, path, output = self.scenario("x.yaml", 2, 2), self.scenario("y.yaml", 5, 10, trace=True), self.path("r.h5")
        self.good("run", path, "-o", self.path("whole.h5"))
        self.good("run", small, "-o", output)
        precious = self.read(output)
        full, places = len(self.read(self.path("whole.h5"))), set()
        for size in (10, 5000, 100000, full // 2, full - 10000, full - 40, full - 1):
            done = run("run", path, "-o", output, "--quiet", preexec_fn=limited(size))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1), (size, done))
            self.assertRegex(done.stderr, r"^pipecast: .*r\.h5(\.journal)?: cannot write: File too large\n$")
            places.add(".journal" in done.stderr)
            self.assertEqual(self.read(output), precious)
            self.assertLessEqual(set(os.listdir(self.folder.name)), {"x.yaml", "y.yaml", "whole.h5", "r.h5", "r.h5.journal"})
        self.good("run", path, "-o", output, "--quiet")
        self.assertEqual(self.read(output), self.read(self.path("whole.h5")))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["r.h5", "whole.h5", "x.yaml", "y.yaml"])
        self.assertIn(True, places)


class Merge(Sweep):
    def shards(self, path, count):
        names = [self.path(f"s{i}.h5") for i in range(1, count + 1)]
        for i, name in enumerate(names, 1):
            self.good("run", path, "-o", name, "--shard", f"{i}/{count}")
        return names

    @full_only
    def test_shards_are_the_whole(self):
        path, whole, merged = self.scenario("x.yaml", 4, 5, trace=True), self.path("whole.h5"), self.path("m.h5")
        self.good("run", path, "-o", whole)
        shards = self.shards(path, 3)
        for order in (shards, shards[::-1], [*shards, shards[0], whole]):
            self.assertEqual(self.good("merge", merged, *order), "")
            self.assertEqual(self.read(merged), self.read(whole))

    def test_missing_runs_are_named(self):
        path, merged = self.scenario("x.yaml", 2, 5), self.path("m.h5")
        shards = self.shards(path, 3)
        done = run("merge", merged, shards[0], shards[1])
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(done.stderr, f"pipecast: warning: {merged}: of 10 runs 3 are in no shard: 3, 6, 9\n")
        self.good("merge", merged, shards[0], shards[1], "--quiet")
        self.good("run", path, "-o", merged)  # and does the missing ones
        self.good("merge", self.path("n.h5"), *shards)
        self.assertEqual(self.read(merged), self.read(self.path("n.h5")))

    def test_what_does_not_belong_together(self):
        path = self.scenario("x.yaml", 2, 5)
        (one, two), merged = self.shards(path, 2), self.path("m.h5")
        other, shorter, foreign = self.path("other.h5"), self.path("shorter.h5"), self.path("foreign.h5")
        self.good("run", self.scenario("y.yaml", 2, 5), "-o", other, "--shard", "2/2")
        self.good("run", self.scenario("x.yaml", 2, 4), "-o", shorter, "--shard", "2/2")
        pathlib.Path(foreign).write_text("x")
        cases = [([merged], "merge: no shards; expected OUT.h5 SHARD.h5..."),
                 ([one, one, two], f"{one}: is one of the shards; expected another file for all of them"),
                 ([merged, one, other], f"{other}: is of another scenario than {one}; expected shards of one sweep"),
                 ([merged, one, shorter], f"{shorter}: is of a sweep of another number of runs than {one}; expected shards of "
                                          "one sweep"),
                 ([merged, foreign], f"{foreign}: is not an HDF5 file; expected a results file of pipecast"),
                 ([foreign, one, two], f"{foreign}: is not an HDF5 file; expected a results file of pipecast; what is no "
                                       "results file is not replaced")]
        for arguments, message in cases:
            done = run("merge", *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))
        self.assertFalse(os.path.exists(merged))

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    @full_only
    def test_damaged_shards(self):
        """One run with two results, another build, and no word of the sweep."""
        path, merged = self.scenario("x.yaml", 2, 5), self.path("m.h5")
        one, two = self.shards(path, 2)
        cases = [("f['runs/iteration_s'][1] = 7", "{one}: run 3 is not the same as in {copy}; expected equal rows", True),
                 ("f['runs/run'][1] = 1", "{one}: run 1 stands behind run 1; expected them in order", False),
                 ("f['runs/run'][1] = 2**63 - 1", "{one}: column /runs/run: row 2 has 9223372036854775807; expected a run's number, 1 to "
                                                  "10 as sweep_runs says", False),
                 ("f['runs/run'][0] = 0", "{one}: column /runs/run: row 1 has 0; expected a run's number, 1 to 10 as sweep_runs says", False),
                 ("f.attrs['build'] = '0'", "{one}: is of another build of pipecast than {two}; expected shards of one sweep", False),
                 ("del f.attrs['sweep_runs']", "{one}: does not say of how many runs it is a part; expected a file of `pipecast "
                                               "run` of this version", False)]
        copy = self.path("copy.h5")
        pathlib.Path(copy).write_bytes(self.read(one))
        for change, message, with_copy in cases:
            pathlib.Path(one).write_bytes(self.read(copy))
            with_h5py.work_on(one, change, mode="r+")
            done = run("merge", merged, *([copy] if with_copy else []), two, one)
            self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: {message.format(one=one, two=two, copy=copy)}\n"))
        for shard in (one, two):  # of one other build: theirs may not write what ours says that it has written
            with_h5py.work_on(shard, "f.attrs['build'] = '0123456789abcdef'", mode="r+")
        with_h5py.work_on(one, "f.attrs['sweep_runs'] = 10", mode="r+")
        done = run("merge", merged, one, two)
        self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: {one}: is of another build of pipecast; expected shards "
                                                             "of this one, or to be merged by theirs\n"))
        self.assertFalse(os.path.exists(merged))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
