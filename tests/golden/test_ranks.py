"""One sweep by several processes under Open MPI's mpirun: the same bytes for any number of ranks and threads, ranks that are
killed, a disk that is full for one of them, launchers that leave every process alone.

usage: test_ranks.py PIPECAST SOURCE_ROOT MODULE
"""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from command import IS_QUICK, PIPECAST, ROOT, Command, plain_only, run, full_only  # noqa: E402

MPIRUN = shutil.which("mpirun")
MODULE = sys.argv[3] if len(sys.argv) > 3 else ""
# Without its own words about exit statuses that are not 0. Two cores are enough for four ranks here.
LAUNCH = [MPIRUN or "mpirun", "-q", "--allow-run-as-root", "--oversubscribe"]
SWEEP = """scenario: sweep
setting: {model: {from: gpt3-175b}, machine: dgx-a100, tp: 8, pp: 8, dp: 8, recompute: full, network: flows}
sweep:
  microbatches: [8, 10, 12, 14, 16, 18, 20, 22, 24, 26]
  seq_len: [512, 1024, 1536, 2048]
  schedule: [1f1b, gpipe]
  zero: [0, 1, 2]
"""
RUNS = 240
SLOW_SWEEP = SWEEP.replace("[8, 10, 12, 14, 16, 18, 20, 22, 24, 26]", "[100, 104, 108, 112, 116, 120, 124, 128, 132, 136]")
# MPI keeps some of its memory to the end; and where there is no /sys its hwloc says so, once a process.
ENVIRONMENT = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0", "HWLOC_HIDE_ERRORS": "2"}


def journal_keys(path):
    """Of the whole records of a journal: a header of 32 bytes; a record's head, row, trace and hash."""
    try:
        data, at, keys = path.read_bytes(), 32, []
    except FileNotFoundError:  # just now
        return []
    while at + 40 <= len(data):
        _, row, trace = struct.unpack_from("=IIQ", data, at)
        end = at + 40 + row + trace + 8
        if end > len(data):
            break
        keys.append(data[at + 16:at + 32])
        at = end
    return keys


class Launched(Command):
    COMMAND = "run"

    @classmethod
    def setUpClass(cls):
        if not MODULE:
            raise unittest.SkipTest("built without MPI")
        if not MPIRUN:
            raise unittest.SkipTest("no mpirun here")

    def setUp(self):
        super().setUp()
        self.results = pathlib.Path(self.path("results.h5"))

    def start(self, *parts, **options):
        """Several processes; `parts` are (ranks, arguments of run), or (ranks, command before pipecast, arguments)."""
        command = LAUNCH.copy()
        for ranks, *before, arguments in parts:
            command += [":"] if len(command) > len(LAUNCH) else []
            command += ["-n", str(ranks), *(before[0] if before else []), PIPECAST, self.COMMAND, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                                cwd=self.folder.name, **options)

    def end(self, process):
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def mpirun(self, ranks, *arguments):
        return self.end(self.start((ranks, arguments)))

    def left_behind(self):
        return set(os.listdir(self.folder.name)) - {"sweep.yaml", "plan.yaml", "alone.h5", "results.h5"}


class Ranks(Launched):
    def expect(self, sweep=SWEEP):
        """What one process makes of the sweep: its table and its file."""
        pathlib.Path(self.path("sweep.yaml")).write_text(sweep)
        table = self.good("run", "sweep.yaml", "-o", "alone.h5", "--format", "csv", cwd=self.folder.name)
        return table, pathlib.Path(self.path("alone.h5")).read_bytes()

    def journals(self):
        return sorted(path for path in pathlib.Path(self.folder.name).iterdir() if ".journal" in path.name)

    def test_any_number_of_ranks_and_threads(self):
        table, file = self.expect()
        self.assertEqual(table.count("\n"), RUNS + 1)
        some = (2, 2), (4, 1)
        for ranks, jobs in some if IS_QUICK else ((1, 1), (1, 8), (2, 1), *some, (4, 2), (2, None)):
            status, out, err = self.mpirun(ranks, "sweep.yaml", "-o", "results.h5", "--format", "csv",
                                           *(("--jobs", str(jobs)) if jobs else ()))
            self.assertEqual((status, err), (0, ""), (ranks, jobs))
            self.assertEqual(out, table, (ranks, jobs))
            self.assertEqual(self.results.read_bytes(), file, (ranks, jobs))
            self.assertEqual(self.left_behind(), set())
            self.results.unlink()

    def count_done(self):
        return len({key for path in self.journals() for key in journal_keys(path)})

    def wait_for_records(self, process, count):
        """Until the journals hold so many runs, or all is over."""
        while process.poll() is None:
            if self.count_done() >= count:
                return
            time.sleep(0.001)

    def ranks_of(self, process):
        """The ranks that an mpirun started: its children."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                text = path.read_text()
            except OSError:
                continue
            if int(text.rsplit(")", 1)[1].split()[1]) == process.pid:
                found.append(int(path.parent.name))
        return found

    def is_alive(self, number):
        """One that nobody has waited for is not."""
        try:
            return pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    def wait_for_end(self, processes):
        until = time.monotonic() + 60
        while any(map(self.is_alive, processes)):
            self.assertLess(time.monotonic(), until, "a rank goes on without its launcher")
            time.sleep(0.01)

    def interrupt(self, ranks, count, strike):
        """Lets the sweep go on till `count` runs are done, strikes, and returns all keys of all journals. `strike` gets
        mpirun's process and those of the ranks."""
        before = self.count_done()
        process = self.start((ranks, ("sweep.yaml", "-o", "results.h5", "--jobs", "1")), start_new_session=True)
        self.wait_for_records(process, before + 1)
        children = self.ranks_of(process)  # takes its time where there are many processes
        self.wait_for_records(process, count)
        strike(process, children)
        status, _, err = self.end(process)
        self.wait_for_end(children)  # one that takes over a journal removes it behind the reader's back
        keys = [key for path in self.journals() for key in journal_keys(path)]
        self.assertEqual(len(keys), len(set(keys)), "a run was done twice")
        return status, keys, err

    def kill_a_rank(self, _, ranks):
        try:
            os.kill(random.choice(ranks), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            pass  # all was done before

    def finish(self, ranks):
        if ranks:
            status, out, err = self.mpirun(ranks, "sweep.yaml", "-o", "results.h5", "--format", "csv")
            self.assertEqual((status, err), (0, ""))
            return out
        return self.good("run", "sweep.yaml", "-o", "results.h5", "--format", "csv", cwd=self.folder.name)

    @plain_only
    def test_a_killed_rank(self):
        """Struck up to three times, each time with another number of ranks (the others go on for a moment, till mpirun
        has ended them), then let go: nothing lost, nothing done twice."""
        table, file = self.expect(SLOW_SWEEP)
        for last in (3,) if IS_QUICK else (0, 3):
            before = set()
            for ranks in (2, 4, 3):
                count = len(before) + random.randrange(1, 40)
                status, keys, _ = self.interrupt(ranks, count, self.kill_a_rank)
                if status == 0:  # all was done before the blow
                    self.assertGreater(len(before), 0)
                    self.assertEqual(self.results.read_bytes(), file)
                    break
                self.assertLessEqual(before, set(keys), "a run was lost")
                self.assertGreaterEqual(len(keys), count)
                before = set(keys)
            self.assertEqual(self.finish(last), table)
            self.assertEqual(self.results.read_bytes(), file)
            self.assertEqual(self.left_behind(), set())
            self.results.unlink()

    def test_signals_to_the_launcher(self):
        """SIGTERM, which schedulers send: all end, what was done stays; the rest follows. A line says how
        far it got, if mpirun still passes it on."""
        _, file = self.expect(SLOW_SWEEP)
        for sent in (signal.SIGTERM, signal.SIGKILL)[:1 if IS_QUICK else 2]:
            struck = []

            def strike(process, ranks):
                struck.extend(ranks)
                process.send_signal(sent)

            status, keys, err = self.interrupt(2, 20, strike)
            if self.results.exists():  # all was done before the signal came
                self.assertEqual(self.results.read_bytes(), file)
                self.results.unlink()
                continue
            self.assertNotEqual(status, 0)
            self.assertGreaterEqual(len(keys), 20)
            if sent == signal.SIGTERM:
                self.assertLessEqual(err.count("pipecast: "), 1, err)
            self.wait_for_end(struck)  # whose launcher is killed a rank sees that a moment later
            self.finish(2)
            self.assertEqual(self.results.read_bytes(), file)
            self.assertEqual(self.left_behind(), set())
            self.results.unlink()

    @full_only
    def test_a_full_disk_of_one_rank(self):
        """One line, exit status 3, in time; what was done is kept."""
        _, file = self.expect()
        arguments = ("sweep.yaml", "-o", "results.h5", "--jobs", "1")
        limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]
        for parts in (((1, arguments), (1, limited, arguments), (1, arguments)),
                      ((1, limited, arguments), (1, arguments))):
            status, out, err = self.end(self.start(*parts))
            self.assertEqual((status, out), (3, ""), err)
            lines = [line for line in err.splitlines() if line.startswith("pipecast: ")]
            self.assertEqual(len(lines), 1, err)
            self.assertIn(".journal", lines[0])
            self.assertFalse(self.results.exists())
        keys = [key for path in self.journals() for key in journal_keys(path)]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertGreater(len(keys), 0)
        self.finish(4)
        self.assertEqual(self.results.read_bytes(), file)
        self.assertEqual(self.left_behind(), set())

    def test_bad_input_is_said_once(self):
        pathlib.Path(self.path("sweep.yaml")).write_text(SWEEP)
        for message, *arguments in (("nowhere.yaml: No such file or directory", "nowhere.yaml"),
                                    ("expected with several ranks, which share results by files", "sweep.yaml")):
            status, out, err = self.mpirun(3, *arguments)
            self.assertEqual((status, out), (2, ""), err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(message, err)
        self.assertEqual(self.left_behind(), set())


PLAN = """scenario: planned
setting: {model: {from: gpt3-13b}, machine: dgx-a100, gpus: 64, global_batch: 256, memory: 40 GiB}
plan:
  top: 4
  tp: [1, 2, 4, 8]
  pp: [1..8]
  microbatch_size: [1, 2, 4]
  schedule: [1f1b, 1f1b-interleaved, v-adaptive]
  zero: [1]
"""


class Plans(Launched):
    """One search by several processes, in shares, killed and gone on with: the same plans, log and file."""
    COMMAND = "plan"

    def expect(self):
        pathlib.Path(self.path("plan.yaml")).write_text(PLAN)
        answer = self.good("plan", "plan.yaml", "-o", "alone.h5", "--format", "json", cwd=self.folder.name)
        self.assertEqual(self.left_behind(), set())
        return answer, pathlib.Path(self.path("alone.h5")).read_bytes()

    def check(self, status, out, err, expected):
        answer, file = expected
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, answer)
        self.assertEqual(self.results.read_bytes(), file)
        self.results.unlink()

    def test_any_number_of_ranks_and_threads(self):
        expected = self.expect()
        for ranks, jobs in ((2, 1),) if IS_QUICK else ((1, 2), (2, 1), (2, 2), (3, 1)):
            self.check(*self.mpirun(ranks, "plan.yaml", "-o", "results.h5", "--format", "json", "--jobs", str(jobs)), expected)
            self.assertEqual(self.left_behind(), set())

    def test_a_goal(self):
        """The fewest GPUs between those that are listed are the same, for ranks and threads."""
        pathlib.Path(self.path("plan.yaml")).write_text(PLAN.replace("1f1b-interleaved, v-adaptive", "1f1b-interleaved"))
        goal = ("plan.yaml", "--gpus", "16..256x2", "--tokens", "300B", "--deadline", "14d", "--format", "json")
        answer = self.good("plan", *goal, "-o", "alone.h5", "--jobs", "1", cwd=self.folder.name)
        found = json.loads(answer)["goal"]
        self.assertGreater(found["tried_between"], 0)
        self.assertNotIn(found["gpus"], (16, 32, 64, 128, 256))
        expected = answer, pathlib.Path(self.path("alone.h5")).read_bytes()
        for ranks, jobs in ((2, 2),) if IS_QUICK else ((1, 2), (2, 1), (3, 2)):
            self.check(*self.mpirun(ranks, *goal, "-o", "results.h5", "--jobs", str(jobs)), expected)
            self.assertEqual(self.left_behind(), set())

    def test_questions(self):
        """Rows of each, a map and what would change plan 1 are the same, for ranks and threads."""
        pathlib.Path(self.path("plan.yaml")).write_text(PLAN.replace("1f1b-interleaved, v-adaptive", "1f1b-interleaved"))
        asked = ("plan.yaml", "--top", "1", "--memory", "24GiB", "--each", "schedule", "--map", "tp,pp", "--sensitivity", "--anew",
                 "--format", "json")
        answer = self.good("plan", *asked, "-o", "alone.h5", "--jobs", "1", cwd=self.folder.name)
        expected = answer, pathlib.Path(self.path("alone.h5")).read_bytes()
        for ranks, jobs in ((2, 1),) if IS_QUICK else ((1, 2), (2, 1), (3, 2)):
            self.check(*self.mpirun(ranks, *asked, "-o", "results.h5", "--jobs", str(jobs)), expected)
            self.assertEqual(self.left_behind(), set())

    def test_bad_input_is_said_once(self):
        status, out, err = self.mpirun(2, "nowhere.yaml")
        self.assertEqual((status, out), (2, ""), err)
        self.assertEqual(err.count("\n"), 1, err)

    @plain_only
    def test_killed_and_gone_on_with(self):
        expected = self.expect()
        journal = pathlib.Path(self.path("results.h5.journal"))
        process = self.start((2, ("plan.yaml", "-o", "results.h5", "--format", "json", "--jobs", "1")))
        while process.poll() is None and len(journal_keys(journal)) < 5:
            time.sleep(0.001)
        process.kill()
        self.end(process)
        time.sleep(0.2)  # a rank sees a moment later that its launcher is gone
        kept = journal_keys(journal)
        if self.results.exists():  # all was done before the blow
            self.results.unlink()
        else:
            self.assertGreaterEqual(len(kept), 5)
        until = time.monotonic() + 60
        while True:
            done = run("plan", "plan.yaml", "-o", "results.h5", "--format", "json", cwd=self.folder.name)
            if "held by another pipecast" not in done.stderr or time.monotonic() > until:
                break
            time.sleep(0.05)
        self.check(done.returncode, done.stdout, done.stderr, expected)
        self.assertEqual(self.left_behind(), set())

    def test_shares(self):
        """Each keeps what it worked out; the plan of all is that of one search, and has nothing left to simulate but
        what shares had no reason to."""
        answer, _ = self.expect()
        shares = []
        for i in range(3):
            shares += ["--cache", f"share{i}.kept"]
            self.good("plan", "plan.yaml", "--shard", f"{i + 1}/3", *shares[-2:], cwd=self.folder.name)
        for _ in range(2):
            again = self.good("plan", "plan.yaml", "--cache", "all.kept", *shares, "--format", "json", cwd=self.folder.name)
            self.assertEqual(again, answer)


class Alone(Command):
    """Where a launcher started several processes, and there is no way for them to work together."""

    def refused(self, message, ranks=4, **environment):
        done = run("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--dp", "8", "--tp", "1",
                   env=ENVIRONMENT | environment, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertIn(f"pipecast: started as one of {ranks} processes: ", done.stderr)
        self.assertIn(message, done.stderr)
        self.assertIn(f"--shard I/{ranks}", done.stderr)

    def works(self, **environment):
        done = run("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--dp", "8", "--tp", "1",
                   env=ENVIRONMENT | environment, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)

    def test_without_mpi(self):
        self.refused("/nowhere.so", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="0", PIPECAST_MPI="/nowhere.so")
        if not MODULE:
            self.refused("built without MPI", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="0")

    def test_srun_without_mpi(self):
        self.refused("srun gave them no way to each other", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")

    def test_a_share_each(self):
        self.works(PIPECAST_MPI="off", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="2")
        self.works(PIPECAST_MPI="off", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="2")

    def test_an_allocation_is_not_a_step(self):
        """A batch script, and a shell within an allocation, know how many tasks there will be; they are one process."""
        self.works(SLURM_NTASKS="8", SLURM_PROCID="0", SLURM_JOB_ID="1")
        self.works(SLURM_NTASKS="8", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1")
        self.works(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0")
        self.works(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="1")

    @unittest.skipUnless(MODULE, "built without MPI")
    def test_a_launcher_of_another_mpi(self):
        """PMI_SIZE as MPICH's sets it: Open MPI takes itself for one process, and nobody works on all of the sweep."""
        self.refused("finds 1 of them", PMI_SIZE="4", PMI_RANK="0")


class Scripts(unittest.TestCase):
    def test_shell_reads_them(self):
        scripts = sorted((ROOT / "docs/examples").glob("*.sbatch"))
        self.assertEqual(len(scripts), 2)
        for script in scripts:
            done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    random.seed(int(os.environ.get("PC_TEST_SEED", time.time_ns() % 1000000)))
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
