"""bench/gpu/session.py, the half hour on a GPU, where there is none: steps, their time, what is kept, what is said.

The programs that need a GPU are stand-ins, which do as a test tells them: pipecast's `calibrate`, test_gpu, the memory
checker and PyTorch. All else that the steps ask of pipecast is the real one. tests/golden/test_calibrate_emulated.py has the
steps over the emulated device.

usage: test_gpu_session.py PIPECAST SOURCE_ROOT
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SESSION = ROOT / "bench" / "gpu" / "session.py"
FILES = {"session.log", "steps.json", "summary.txt", "stages.csv", "kernels.csv", "compare.txt", "quick.h5", "full.h5"}
STAND_IN = """
    #!{python}
    import json, os, signal, subprocess, sys, time
    told, rest = os.environ.get("TOLD_" + os.path.basename(sys.argv[0]).replace("-", "_"), ""), sys.argv[1:]
    def end(words, status):
        print(words, flush=True)
        sys.exit(status)
    def after(option):
        return rest[rest.index(option) + 1]
"""
CALIBRATE = """
    REPLAYS = [dict(scenario="tiny." + name, schedule=name, stage=2, passes=3, measured_s=1.0, simulated_s=1.01,
                    measured_peak_bytes=1000, simulated_peak_bytes=995,
                    **{"pass": [dict(kind="F", count=3, measured_s=0.3, simulated_s=0.3)]}) for name in ("1f1b", "v-min")]
    def fit():
        subprocess.run([REAL, "profile", "fit", GEMM, "-o", after("-o"), "--gpu", "h200-sxm"], check=True, stderr=subprocess.DEVNULL)
    def interrupted(*_):
        fit()
        end("written (not complete)", 0)
    def is_stand_in(path): # a profile of replays alone
        return os.path.exists(path) and open(path, "rb").read(1) == b"{"
    if rest[:2] == ["profile", "show"] and is_stand_in(rest[2]):
        end(open(rest[2]).read(), 0)
    if rest[0] != "calibrate":
        os.execv(REAL, [REAL, *rest])
    if told == "no GPU":
        end("pipecast: no GPU: stand-in; expected one", 3)
    if "--profile" in rest:
        if told == "no replay":
            end("pipecast: replay: a fault", 3)
        with open(after("-o"), "w") as file:
            json.dump({"replays": REPLAYS}, file)
        with open(after("--replay-kernels"), "w") as file:
            print("scenario,kernel,count,measured_s,fitted_s", file=file)
            for name in ("1f1b", "v-min"): # of 10 s softmax is foretold 1 s too long, gelu half of one too short, copy not at all
                print(f"tiny.{name},softmax,4,1.0,1.25\\ntiny.{name},gelu,1,4.0,3.5\\ntiny.{name},copy,2,1.0,", file=file)
        if told == "lacks":
            print("pipecast: warning: replay of x: not in the profile, the roofline of the machine's file answers: b bf16, a bf16")
        sys.exit(0)
    if told == "hang":
        signal.signal(signal.SIGINT, interrupted)
        time.sleep(60)
    fit()
    print("product    1.0 TFLOP/s, the best large one, bf16")
"""
TEST_GPU = """
    if told == "no GPU":
        end("skipped: no GPU: stand-in; expected one", 77)
    if told == "fail":
        end("gemm_forward, shape 3: wrong", 1)
    print("[       OK ] test_fills\\n[       OK ] test_families")
"""
CHECKER = """
    if told == "races" and "racecheck" in rest:
        end("========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)", 9)
    end("========= ERROR SUMMARY: 0 errors" if rest[-1] == "test_families" else "all of it?", 0)
"""
TORCH = """
    if told == "none":
        end("torch_stage: no PyTorch in python3; expected a python3 that has it", 3)
    assert os.path.exists(after("--model")), rest
    print("source,scenario,schedule,stage,kind,count,measured_s,simulated_s,measured_peak_bytes,simulated_peak_bytes")
    for schedule, path in (order.split("=") for order in rest[-4:]):
        assert os.path.exists(path), path
        print(f"torch 0,{after('--scenario')}.{schedule},{schedule},2,all,3,2.0,,1100,", flush=True)
        if told == "hang":
            time.sleep(60)
"""


def products():
    """5 us, and 2 m n k at 200 TFLOP/s: within what the library's table of the GPU has."""
    rows = ["op,dtype,layout,b,m,n,k,time_us"]
    for m in (1024, 4096, 16384):
        for n in (1024, 4096, 16384):
            rows += [f"matmul,bf16,TN,1,{m},{n},{k},{5 + 1e-8 * m * n * k:.6f}" for k in (1024, 4096, 16384)]
    return "\n".join(rows) + "\n"


class Session(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results, self.bin = self.folder / "results", self.folder / "bin"
        self.bin.mkdir()
        (self.folder / "gemm.csv").write_text(products())
        real = f"\nREAL, GEMM = {PIPECAST!r}, {str(self.folder / 'gemm.csv')!r}\n"
        for name, text in (("pipecast", CALIBRATE), ("test_gpu", TEST_GPU), ("compute-sanitizer", CHECKER), ("torch", TORCH),
                           ("nvidia-smi", "print('Graphics : 1980 MHz')")):
            begin = textwrap.dedent(STAND_IN).strip().format(python=sys.executable)
            (self.bin / name).write_text(begin + real + textwrap.dedent(text))
            (self.bin / name).chmod(0o755)

    def run_session(self, *more, told=None):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        environment.update({"TOLD_" + name: words for name, words in (told or {}).items()})
        command = [sys.executable, SESSION, "-o", self.results, "--bin", self.bin, "--tiny", "--python", self.bin / "torch"]
        return subprocess.run([*command, *more], capture_output=True, text=True, timeout=240, env=environment)

    def steps(self):
        return json.loads((self.results / "steps.json").read_text())

    def statuses(self):
        return {name: step["status"] for name, step in self.steps().items()}

    def test_all_is_kept_in_eight_files_at_most(self):
        done = self.run_session()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual({path.name for path in self.results.iterdir()}, FILES)
        steps = self.steps()
        self.assertEqual({step["status"] for step in steps.values()}, {"ok"}, steps)
        self.assertEqual(steps["suite"]["result"], "2 tests passed")
        self.assertEqual(steps["quick"]["result"], "1.0 TFLOP/s, the best large one, bf16")
        self.assertIn("gemm_forward bf16", steps["compare"]["result"])
        self.assertEqual(steps["replay"]["result"], "2 stages: time +1.0 to +1.0%, 2 of 2 within 2%; most of it "
                         "softmax, +10.0%; memory -0.5 to -0.5%, 2 of 2 within 1%")
        self.assertEqual(steps["torch"]["result"], "4 stages: the replay's kernels take 0.50 to 0.50 of its time")
        self.assertIn("0 errors", steps["racecheck"]["result"])
        self.assertIn("nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE\nGraphics : 1980 MHz", (self.results / "session.log").read_text())
        self.assertTrue(done.stdout.endswith((self.results / "summary.txt").read_text()), done.stdout)
        with open(self.results / "stages.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["source"], row["schedule"], row["kind"]) for row in rows][:3],
                         [("pipecast quick.h5", "1f1b", "F"), ("pipecast quick.h5", "1f1b", "all"), ("pipecast quick.h5", "v-min", "F")])
        self.assertEqual(len(rows), 4 + 4)

    def test_a_failure_stops_no_other_step(self):
        done = self.run_session(told={"test_gpu": "fail", "pipecast": "no replay", "compute_sanitizer": "races", "torch": "none"})
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(self.statuses(), {"suite": "failed", "quick": "ok", "compare": "ok", "replay": "failed",
                                           "torch": "left out", "memcheck": "ok", "racecheck": "failed", "synccheck": "ok",
                                           "full": "ok"})
        steps = self.steps()
        self.assertIn("shape 3: wrong (exit status 1)", steps["suite"]["result"])
        self.assertIn("tiny: pipecast: replay: a fault", steps["replay"]["result"])
        self.assertIn("2 hazards", steps["racecheck"]["result"])
        self.assertIn("gemm_forward, shape 3: wrong", (self.results / "session.log").read_text())

    def test_without_a_gpu_it_says_so(self):
        done = self.run_session("--steps", "suite,quick,compare,replay,full", told={"test_gpu": "no GPU", "pipecast": "no GPU"})
        self.assertEqual(done.returncode, 3, done)
        self.assertEqual(self.statuses(), {"suite": "no GPU", "quick": "no GPU", "compare": "left out", "replay": "left out",
                                           "full": "no GPU"})
        self.assertIn("no GPU: stand-in", done.stdout)

    def test_a_calibration_at_the_end_of_its_time_keeps_what_it_has(self):
        """Of 17 s the last 15 are for it to fit and write."""
        done = self.run_session("--steps", "quick,suite", "--limit", "17", told={"pipecast": "hang"})
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue((self.results / "quick.h5").exists())
        self.assertTrue(self.steps()["quick"]["result"].startswith("not complete"), self.steps())
        self.assertEqual(self.steps()["suite"]["status"], "ok")

    def test_what_is_killed_keeps_its_rows(self):
        self.run_session("--steps", "quick")
        done = self.run_session("--steps", "torch,suite", "--limit", "6", told={"torch": "hang"})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("out of its time; it said last: torch 0,tiny.1f1b", self.steps()["torch"]["result"])
        self.assertIn("torch 0,tiny.1f1b,1f1b,2,all", (self.results / "stages.csv").read_text())

    def test_what_does_not_fit_is_left_out(self):
        done = self.run_session("--steps", "suite,full", "--limit", "1.5")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(set(self.statuses().values()), {"left out"})
        self.assertIn("s are left; it needs 2", self.steps()["full"]["result"])

    def test_a_later_call_goes_on(self):
        self.run_session("--steps", "quick")
        kept = (self.results / "quick.h5").read_bytes()
        done = self.run_session("--steps", "replay,replay")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual((self.results / "quick.h5").read_bytes(), kept)
        self.assertEqual(set(self.steps()), {"quick", "replay"})
        self.run_session("--steps", "replay", told={"pipecast": "lacks"})
        self.assertTrue(self.steps()["replay"]["result"].endswith("; not in the profile: a bf16, b bf16"), self.steps())
        with open(self.results / "stages.csv", newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 4, "rows are replaced, not repeated")

    def test_usage(self):
        done = self.run_session("--steps", "suite,quik")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertIn("--steps: 'quik'; expected suite, quick", done.stderr)
        self.assertFalse(self.results.exists())
        self.assertIn("--limit: -4; expected", self.run_session("--limit", "-4").stderr)
        shown = subprocess.run([sys.executable, SESSION, "--help"], capture_output=True, text=True, timeout=60).stdout
        for step in ("suite", "quick", "compare", "replay", "torch", "memcheck", "full"):
            self.assertRegex(shown, rf"\n  {step} +\d+ s  ")

    def test_a_folder_with_something_else_is_left_alone(self):
        self.results.mkdir()
        record = self.results / "steps.json"
        for text in ("[1]", '{"suite": 3}', '{"suite": {"status": "ok"}}', "not JSON"):
            record.write_text(text)
            done = self.run_session("--steps", "suite")
            self.assertEqual((done.returncode, done.stdout, record.read_text()), (2, "", text))
            self.assertEqual(done.stderr, f"session.py: {record}: not a record of steps; expected one that this program wrote, "
                             "or another folder\n")
        record.unlink()
        self.results.rmdir()
        self.results.write_text("a file")
        done = self.run_session("--steps", "suite")
        self.assertEqual((done.returncode, done.stdout, self.results.read_text()), (2, "", "a file"))
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
