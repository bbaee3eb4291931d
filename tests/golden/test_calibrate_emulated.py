"""`pipecast calibrate` to its end, over the emulated device: what it prints and writes, and a stage replayed.

Times there are made up (a microsecond a launch); what is held is that they arrive.

usage: test_calibrate_emulated.py PIPECAST_EMULATED ROOT
"""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
SCENARIO = """scenario: small
setting:
  model: {name: small, layers: 4, hidden: 32, heads: 2, vocab: 64, seq_len: 16, max_positions: 16, attention: flash}
  machine: dgx-a100
  gpus: 2
  pp: 2
  microbatches: 3
sweep:
  schedule: [1f1b, zb-1p]
"""


def beside_warnings(lines):
    """What else standard error has: --tiny measures fewer shapes than these stages have."""
    return [line for line in lines.splitlines() if not line.startswith("pipecast: warning: replay of ")]


def run(*arguments, folder):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=240, cwd=folder)


class Emulated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(cls.folder.name, "small.yaml"), "w") as file:
            file.write(SCENARIO)
        cls.done = run("calibrate", "--tiny", "-o", "p.h5", "--gpu", "a100-sxm-80gb", "--replay", "small.yaml", folder=cls.folder.name)
        cls.shown = json.loads(run("profile", "show", "p.h5", "--format", "json", folder=cls.folder.name).stdout)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_ends_well(self):
        self.assertEqual(self.done.returncode, 0, self.done)
        self.assertIn("written to p.h5", self.done.stdout)
        self.assertIn("emulated device (no GPU)", self.done.stdout)
        self.assertNotIn("failed", self.done.stderr)

    def test_what_was_measured_is_in_the_profile(self):
        measured = {row["kernel"] for row in self.shown["kernels"]}
        for name in ("gemm_forward", "copy", "sentinel_copy"): # on a slow machine the time is up before the rest
            self.assertIn(name, measured)
        self.assertEqual("(not complete)" in self.done.stdout, not self.shown["device"]["is_complete"])
        formats = {(row["kernel"], row["dtype"]) for row in self.shown["kernels"]}
        for name in ("gemm_forward", "gemm_weight_gradient", "grouped_gemm_forward", "grouped_gemm_weight_gradient"):
            for dtype in ("bf16", "fp8", "fp8_block"):
                self.assertTrue((name, dtype) in formats or not self.shown["device"]["is_complete"], (name, dtype))

    def test_ranks_are_the_command_itself(self):
        self.assertGreater(len(self.shown["transfers"]), 0)
        for row in self.shown["transfers"]:
            self.assertEqual((row["ranks"], row["link"], row["wrong"]), (2, "loopback", 0))

    def test_the_replay_is_in_the_profile(self):
        self.assertEqual([row["schedule"] for row in self.shown["replays"]], ["1f1b", "zb-1p"])
        for row in self.shown["replays"]:
            self.assertGreater(row["measured_s"], 0)
            self.assertGreater(row["simulated_peak_bytes"], 0)
            # What the formulas leave out is small rows of numbers, and one gradient: never less than they count.
            self.assertGreaterEqual(row["measured_peak_bytes"], row["simulated_peak_bytes"])

    def test_a_replay_alone_keeps_the_profile(self):
        """What was measured stays, to the last number; the replays come behind those that were there."""
        done = run("calibrate", "--profile", "p.h5", "-o", "again.h5", "--replay", "small.yaml", "--replay-kernels", "k.csv",
                   folder=self.folder.name)
        self.assertEqual((done.returncode, beside_warnings(done.stderr)), (0, []), done)
        again = json.loads(run("profile", "show", "again.h5", "--format", "json", folder=self.folder.name).stdout)
        for part in ("device", "kernels", "transfers", "fits"):
            self.assertEqual(again[part], self.shown[part], part)
        self.assertEqual([row["schedule"] for row in again["replays"]], 2 * ["1f1b", "zb-1p"])
        self.assertEqual([row["simulated_s"] for row in again["replays"][2:]],
                         [row["simulated_s"] for row in self.shown["replays"]])

        with open(os.path.join(self.folder.name, "k.csv"), newline="") as file:
            kernels = list(csv.DictReader(file))
        self.assertEqual({row["scenario"] for row in kernels}, {"small.1f1b", "small.zb-1p"})
        for replay in again["replays"][2:]:
            own = [row for row in kernels if row["scenario"] == replay["scenario"]]
            total = sum(int(row["count"]) * float(row["measured_s"]) for row in own)
            self.assertAlmostEqual(total / replay["measured_s"], 1, places=6)
        # Every launch takes a microsecond; on a slow machine time is up before all kernels are fitted.
        fits = {fit["subject"] for fit in self.shown["fits"]}
        for row in kernels:
            self.assertEqual(row["fitted_s"] != "", row["kernel"] in fits, row)
            if row["kernel"] == "gemm_forward" and row["fitted_s"]:
                self.assertLess(abs(float(row["fitted_s"]) / 1e-6 - 1), 0.1)

    def test_an_interrupted_replay_keeps_those_that_were_made(self):
        """Four runs, of which each takes seconds here; interrupted behind the first one."""
        model = "hidden: 32, heads: 2, vocab: 64, seq_len: 32, max_positions: 32"
        with open(os.path.join(self.folder.name, "longer.yaml"), "w") as file:
            file.write(SCENARIO.replace("layers: 4, hidden: 32, heads: 2, vocab: 64, seq_len: 16, max_positions: 16",
                                        "layers: 16, " + model).replace("[1f1b, zb-1p]", "[1f1b, zb-1p, zb-h1, gpipe]"))
        arguments = ("calibrate", "--profile", "p.h5", "-o", "part.h5", "--replay", "longer.yaml")
        with subprocess.Popen([PIPECAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder.name) as running:
            self.assertIn("replay of", running.stdout.readline())
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=240)
        self.assertEqual((running.returncode, beside_warnings(said)),
                         (0, ["pipecast: calibrate: interrupted; part.h5 has what was measured until then" + self.mark]))
        shown = json.loads(run("profile", "show", "part.h5", "--format", "json", folder=self.folder.name).stdout)
        self.assertIn(len(shown["replays"]) - len(self.shown["replays"]), (1, 2, 3))
        self.assertEqual(shown["kernels"], self.shown["kernels"])

    def test_what_the_profile_lacks_of_a_stage_is_said(self):
        """A profile of products alone: the layers' other kernels are named, and nothing of what is not replayed."""
        sizes = (16, 32, 64, 128)
        rows = "".join(f"matmul,bf16,{layout},{m},{n},{k},{5 + 1e-6 * m * n * k}\n" for layout in ("TN", "NN", "NT")
                       for m in sizes for n in sizes for k in sizes)
        with open(os.path.join(self.folder.name, "gemm.csv"), "w") as file:
            file.write("op,dtype,layout,m,n,k,time_us\n" + rows)
        run("profile", "fit", "gemm.csv", "-o", "gemm.h5", "--gpu", "a100-sxm-80gb", folder=self.folder.name)
        done = run("calibrate", "--profile", "gemm.h5", "-o", "lacking.h5", "--replay", "small.yaml", folder=self.folder.name)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 2), done)
        for line, schedule in zip(done.stderr.splitlines(), ("1f1b", "zb-1p")):
            self.assertTrue(line.startswith(f"pipecast: warning: replay of small.{schedule}: not in the profile, the roofline"), line)
            for name in ("attention_forward", "gelu_backward", "layer_norm_forward"):
                self.assertIn(name, line)
            for name in ("gemm", "embedding", "cross_entropy", "adam", "send_recv", "all_reduce"):
                self.assertNotIn(name, line)

    @property
    def mark(self):
        """Of a profile whose time was up, as on a slow machine."""
        return "" if self.shown["device"]["is_complete"] else " and is marked as not complete"

    def test_a_session_replays_and_keeps_the_rows(self):
        """bench/gpu/session.py over this command: four schedules of one stage, beside what they are forecast to take."""
        os.mkdir(os.path.join(self.folder.name, "bin"))
        os.symlink(PIPECAST, os.path.join(self.folder.name, "bin", "pipecast"))
        done = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "gpu", "session.py"), "-o", "out", "--bin", "bin",
                               "--tiny", "--steps", "replay,suite", "--profile", "p.h5"], capture_output=True, text=True,
                              timeout=240, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        with open(os.path.join(self.folder.name, "out", "stages.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["schedule"] for row in rows if row["kind"] == "all"], ["1f1b", "zb-h1", "v-half", "v-min"])
        with open(os.path.join(self.folder.name, "out", "steps.json")) as file:
            steps = json.load(file)
        whole = "not in the profile" not in steps["replay"]["result"]  # on a slow machine time is up before all is measured
        for row in rows:
            ratio = float(row["measured_s"]) / float(row["simulated_s"])
            self.assertTrue(abs(ratio - 1) < 0.02 if whole else ratio > 0, row)
        self.assertTrue(steps["replay"]["result"].startswith("4 stages: time "), steps)
        self.assertEqual(steps["suite"]["status"], "left out", "no test_gpu is there")

    def test_passes_scatter_as_the_kernels_did(self):
        done = run("run", "small.yaml", "--profile", "p.h5", "--samples", "5", "--jitter", "profile", "-q", "--format",
                   "json", folder=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        for row in json.loads(done.stdout):
            self.assertIsNone(row["jitter"])
            self.assertGreater(row["slowdown_mean"], 0)

    def test_a_scenario_of_another_gpu_refuses_it(self):
        done = run("run", "small.yaml", "--set", "setting.machine=dgx-h100", "--profile", "p.h5",
                   folder=self.folder.name)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("a100-sxm-80gb", done.stderr)
        self.assertIn("h100-sxm", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
