"""`carry`, the folder for a machine with a GPU and little else: what is in it, and what its programs need to start.

Where their archives are not installed the libraries lie beside the programs; either way nothing but the C library is asked
of the machine.

usage: test_carry.py SOURCE_ROOT PIPECAST TEST_GPU
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, PROGRAMS = pathlib.Path(sys.argv[1]).resolve(), [os.path.abspath(path) for path in sys.argv[2:4]]
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
MOST_BYTES = 40 << 20  # with the sources of this repository, less than 64 MiB


class Carry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.carried = pathlib.Path(cls.folder.name, "carry")
        cls.done = subprocess.run([sys.executable, ROOT / "bench" / "gpu" / "carry.py", ROOT, cls.carried, *PROGRAMS],
                                  capture_output=True, text=True, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_there(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.carried,
                              env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": str(self.carried)})

    def test_all_is_there_and_small(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""), self.done)
        total = sum(path.stat().st_size for path in self.carried.rglob("*") if path.is_file())
        self.assertIn(f"{total:,}  bytes in all", self.done.stdout)
        self.assertLess(total, MOST_BYTES)
        for name in ("pipecast", "test_gpu", "session.py", "torch_stage.py", "models/gpt3-6.7b.yaml"):
            self.assertTrue((self.carried / name).exists(), name)

    def test_nothing_but_the_c_library_is_asked_for(self):
        here = {path.name for path in self.carried.iterdir()}
        for path in self.carried.iterdir():
            if path.is_dir() or path.suffix == ".py":
                continue
            dynamic = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"NEEDED +(\S+)", dynamic))
            self.assertEqual(needed - here - C_LIBRARY, set(), path.name)

    def test_its_programs_start_and_say_that_there_is_no_gpu(self):
        calibrated = self.run_there("./pipecast", "calibrate", "-o", "p.h5")
        self.assertEqual((calibrated.returncode, calibrated.stdout, calibrated.stderr.count("\n")), (3, "", 1), calibrated)
        tested = self.run_there("./test_gpu")
        self.assertEqual((tested.returncode, tested.stderr), (77, ""), tested)
        self.assertIn("no GPU", tested.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
