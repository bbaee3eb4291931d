"""`pipecast calibrate` from outside, where there is no device to measure: what it refuses, and that it leaves nothing.

usage: test_calibrate.py PIPECAST
"""
import os
import subprocess
import sys
import tempfile
import unittest

PIPECAST = os.path.abspath(sys.argv[1])


def run(*arguments, folder):
    # Of a machine with GPUs none is seen: what is measured is not for tests.
    return subprocess.run([PIPECAST, "calibrate", *arguments], capture_output=True, text=True, timeout=120, cwd=folder,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


class Calibrate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def refused(self, status, words, *arguments):
        """Exit status, one line on standard error that has the words, nothing on standard output, no file left."""
        before = sorted(os.listdir(self.folder.name))
        done = run(*arguments, folder=self.folder.name)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertTrue(done.stderr.startswith("pipecast: "), done)
        self.assertIn(words, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)

    def test_help_has_an_example(self):
        done = run("--help", folder=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("\nexample: pipecast calibrate ", done.stdout)
        for option in ("-o ", "--quick", "--device", "--kernels-only", "--transfers-only", "--seed", "--replay", "--quiet"):
            self.assertIn(option, done.stdout)

    def test_without_a_device_one_line_says_what_to_do(self):
        for options in ((), ("--quick",), ("-o", "other.h5", "--kernels-only", "--quiet"), ("--transfers-only",)):
            self.refused(3, "pipecast profile fit", *options)

    def test_a_profile_that_is_there_stays(self):
        path = os.path.join(self.folder.name, "profile.h5")
        with open(path, "w") as file:
            file.write("of another day")
        self.refused(3, "expected", "-o", path)
        with open(path) as file:
            self.assertEqual(file.read(), "of another day")

    def test_a_path_that_cannot_be_written_is_refused_first(self):
        self.refused(2, "calibrate: -o: ", "-o", os.path.join(self.folder.name, "none", "profile.h5"))
        self.refused(2, "calibrate: -o: ", "-o", self.folder.name)
        self.refused(2, "calibrate: -o: ", "-o", "/dev/null")

    def test_usage(self):
        self.refused(2, "calibrate: unknown option '--fast'", "--fast")
        self.refused(2, "calibrate: 'out.h5' is one too many; expected options alone (-o out.h5?)", "out.h5")
        self.refused(2, "leave nothing; expected one of them", "--kernels-only", "--transfers-only")
        self.refused(2, "calibrate: --stage: no --replay; expected both", "--stage", "1")
        self.refused(2, "calibrate: --replay-kernels: no --replay; expected both", "--replay-kernels", "k.csv")
        self.refused(2, "calibrate: --replay-kernels: ", "--replay-kernels", "/dev/null", "--replay", "none.yaml")
        self.refused(2, "calibrate: --profile: no --replay; expected both", "--profile", "p.h5")
        self.refused(2, "calibrate: --profile: nothing is measured but the replay", "--profile", "p.h5", "--quick", "--replay",
                     "none.yaml")
        self.refused(2, "calibrate: --replay: none.yaml", "--replay", "none.yaml")
        self.refused(2, "calibrate: --device", "--device", "first")
        self.refused(2, "calibrate: --device", "--device", "-1")
        self.refused(2, "calibrate: --seed", "--seed", "1.5")
        self.refused(2, "--quick takes no value", "--quick=yes")
        self.refused(2, "calibrate: --gpu: 128 characters; expected 1 to 127", "--gpu", "x" * 128)
        self.refused(2, "calibrate: --gpu: 0 characters", "--gpu", "")

    def test_a_scenario_that_cannot_be_replayed_is_refused_first(self):
        """Not after minutes of measuring."""
        def write(name, text):
            with open(os.path.join(self.folder.name, name), "w") as file:
                file.write("scenario: s\nsetting:\n" + text)

        write("given.yaml", "  schedule: 1f1b\n  devices: 2\n  microbatches: 4\n  times: {F: 1 ms, B: 1 ms, W: 1 ms}\n")
        write("odd.yaml", "  model: {from: gpt3-1.3b}\n  machine: dgx-a100\n  pp: 2\n  gpus: 2\n  microbatches: four\n")
        write("good.yaml", "  model: {from: gpt3-1.3b}\n  machine: dgx-a100\n  pp: 2\n  gpus: 2\n  microbatches: 4\n")
        self.refused(2, "calibrate: --replay: s: none of its 1 runs is of a model on a machine; expected one", "--replay",
                     "given.yaml")
        self.refused(2, "calibrate: --replay: odd.yaml:7: setting.microbatches: four", "--replay", "odd.yaml")
        self.refused(2, "calibrate: --replay: s.1f1b: the machine's GPU is a100-sxm-80gb; expected h100-sxm, as --gpu says",
                     "--replay", "good.yaml", "--gpu", "h100-sxm")
        self.refused(3, "expected", "--replay", "good.yaml", "--gpu", "A100-SXM-80GB")
        self.refused(2, "calibrate: --profile: none.h5", "--replay", "good.yaml", "--profile", "none.h5")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
