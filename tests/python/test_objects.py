"""What a program needs of the objects: they travel to workers, they let others work, and they stop."""
import concurrent.futures
import io
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pipecast
from common import scenario

CUT = {"model": "llama3-8b", "machine": "dgx-h100", "gpus": 64, "tp": 2, "pp": 4, "global_batch": 256}
# Thousands of runs: long enough to be stopped.
LONG = {"model": "llama3-70b", "machine": "dgx-h100", "gpus": 512, "global_batch": [*range(512, 512 + 16 * 80, 16)],
        "tp": [1, 2, 4, 8], "pp": [2, 4, 8], "schedule": ["1f1b", "zb-h1", "v-half"], "recompute": ["none", "full"]}
STOPPED = f"""
import signal, pipecast
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
print("begins", flush=True)
try:
    pipecast.Scenario(**{LONG!r}).run(progress=lambda done, to_do: print(done, to_do, flush=True))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
# A package that is not to be had.
WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
import pipecast
runs = pipecast.run(**{cut!r}, schedule=["1f1b", "zb-h1"])
print(type(runs).__name__, type(runs["mfu"]).__name__, len(runs["mfu"]), type(runs["gpus"][0]).__name__)
print(repr(runs).splitlines()[0].split()[:3], "<table>" in runs._repr_html_())
print(len(pipecast.Schedule("zb-h1", 4, 8)._repr_html_()) > 1000, pipecast.schedule("zb-h1", 4, 8)["span"])
"""


def run_one(one):
    return one.run().row(0).iteration_s


def time_of(row):
    return row.iteration_s


class Pickled(unittest.TestCase):
    def again(self, thing):
        return pickle.loads(pickle.dumps(thing))

    def test_scenario(self):
        for one in (pipecast.Scenario(**CUT), pipecast.Scenario(text=scenario(), sets=["setting.microbatches=16"])):
            self.assertEqual(run_one(self.again(one)), run_one(one))

    def test_results(self):
        """A pickled table has its columns, units and words, and needs no library behind it."""
        runs = pipecast.Scenario(**CUT, schedule=["1f1b", "zb-h1"]).run()
        again = self.again(runs)
        self.assertEqual(list(again), list(runs))
        self.assertEqual(list(again["iteration_s"]), list(runs["iteration_s"]))
        self.assertEqual((again.units, again.words), (runs.units, runs.words))
        self.assertEqual(self.again(runs.row(1)).iteration_s, runs.row(1).iteration_s)

    def test_schedule(self):
        one = pipecast.Schedule("v-half", 4, 8, times=(1.0, 1.5, 0.5), transfer=0.1)
        again = self.again(one)
        self.assertEqual(again.summary(), one.summary())
        self.assertEqual([again.passes(d) for d in range(4)], [one.passes(d) for d in range(4)])
        searched = pipecast.Schedule("1f1b", 4, 8, times=[(1, 1, 1)] * 3 + [(2, 1.5, 1)], improve=True)
        self.assertEqual(self.again(searched).summary(), searched.summary())
        own = pipecast.Schedule.of_passes("mine", [[("F", 0, 0), ("BW", 0, 0)]], 1, times=(1.0, 1.5, 0.5))
        self.assertEqual(self.again(own).summary(), own.summary())

    def test_error(self):
        with self.assertRaises(pipecast.InputError) as caught:
            pipecast.run(gpus=0, model="llama3-8b", machine="dgx-h100")
        again = self.again(caught.exception)
        self.assertEqual((str(again), again.key, type(again)),
                         (str(caught.exception), caught.exception.key, pipecast.InputError))

    def test_no_path(self):
        """None where a path must be: a TypeError, and not the library's end."""
        calls = (lambda: pipecast.import_config(None, "hf"), lambda: pipecast.open_results(None), lambda: pipecast.score(None),
                 lambda: pipecast.merge(None, ["a.h5"]), lambda: pipecast.Schedule("1f1b", 2, 4).write(None))
        for one in calls:
            self.assertRaises(TypeError, one)

    def test_no_text_is_cut(self):
        """A text with a NUL, which C would read up to there: an error that shows it, and not another model or file."""
        calls = (lambda: pipecast.run(**{**CUT, "model": "llama3-8b\0x"}), lambda: pipecast.Schedule("1f1b\0x", 2, 4),
                 lambda: pipecast.open_results("a.h5\0b"), lambda: pipecast.Scenario(text=scenario() + "\0").run(),
                 lambda: pipecast.Schedule.of_passes("x\0", [[("F", 0, 0), ("BW", 0, 0)]], 1),
                 lambda: pipecast.Scenario(**CUT).plan_each("tp\0"))
        for one in calls:
            with self.assertRaisesRegex(pipecast.InputError, r"\\x00.* has a NUL; expected a text without one"):
                one()

    def test_a_path_that_is_no_utf_8(self):
        """Bytes that no text has, as os.listdir gives them, come to the library as they are."""
        with self.assertRaisesRegex(pipecast.InputError, r"no\?.yaml: No such file"):
            pipecast.run(os.fsdecode(b"no\xff.yaml"))
        self.assertRaises(pipecast.InputError, pipecast.run, **{**CUT, "machine": os.fsdecode(b"no\xff.yaml")})

    def test_sweep_of_files(self):
        """A Sweep takes files as they are, one or several."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.yaml")
            path.write_text(scenario())
            expected = [run_one(pipecast.Scenario(path))]
            for some in (str(path), path, [path], (one for one in [str(path)]), pipecast.Scenario(path)):
                self.assertEqual(list(pipecast.Sweep(some).run()["iteration_s"]), expected)

    def test_workers(self):
        """Scenarios go to processes of their own, and rows come back."""
        scenarios = [pipecast.Scenario(**CUT, microbatch_size=size) for size in (1, 2)]
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            came = list(pool.map(run_one, scenarios))
        self.assertEqual(came, [run_one(one) for one in scenarios])


class Work(unittest.TestCase):
    def test_threads(self):
        """Several threads at once come to the same."""
        expected = run_one(pipecast.Scenario(**CUT))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            came = list(pool.map(lambda _: run_one(pipecast.Scenario(**CUT)), range(40)))
        self.assertEqual(came, [expected] * 40)

    def test_others_work(self):
        """While the library searches, other threads of Python go on."""
        counted, is_over = [0], threading.Event()

        def count():
            while not is_over.is_set():
                counted[0] += 1
                time.sleep(0.001)

        beside = threading.Thread(target=count)
        beside.start()
        before = time.monotonic()
        pipecast.Scenario(model="gpt3-1.3b", machine="dgx-a100", gpus=32, global_batch=64).plan(threads=1)
        took = time.monotonic() - before
        is_over.set()
        beside.join()
        self.assertGreater(counted[0], 20 * took, f"{counted[0]} steps in {took:.2f} s")

    def test_progress(self):
        seen = []
        runs = pipecast.Scenario(**CUT, microbatch_size=[1, 2, 4]).run(
            progress=lambda *at: seen.append((*at, threading.current_thread() is threading.main_thread())))
        self.assertEqual(runs.row_count, 3)
        self.assertEqual(seen[-1], (3, 3, True))
        self.assertEqual(seen, sorted(seen))

    def test_bar(self):
        """Nothing of what is short; else a line that ends with all."""
        stream = io.StringIO()
        bar = pipecast.watch.Bar(stream)
        bar(1, 4)
        self.assertEqual(stream.getvalue(), "")
        bar.start -= 2.0
        bar(2, 4)
        bar(4, 4)
        bar.close()
        self.assertEqual(stream.getvalue(), f"\r[{'#' * 15}{'.' * 15}] 2 of 4\r[{'#' * 30}] 4 of 4\n")

    def test_raising_progress(self):
        """What a progress function raises ends the work, and comes out."""

        def refuse(done, to_do):
            raise LookupError("enough")

        self.assertRaises(LookupError, pipecast.Scenario(**LONG).run, progress=refuse)
        self.assertRaises(LookupError, pipecast.Scenario(**CUT, microbatch_size=[1, 2]).run, progress=refuse)

    def test_stopped_plan(self):
        def refuse(done, to_do):
            raise LookupError("enough")

        one = pipecast.Scenario(model="llama3-8b", machine="dgx-h100", gpus=32, global_batch=128)
        self.assertRaises(LookupError, one.plan, progress=refuse)

    @unittest.skipUnless(hasattr(signal, "SIGINT") and os.name == "posix", "no signals")
    def test_interrupt(self):
        """Ctrl-C ends a sweep of thousands of runs soon, as KeyboardInterrupt."""
        with subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "begins\n")
            done, to_do = map(int, child.stdout.readline().split())
            self.assertLess(done, to_do)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read().splitlines()
            self.assertEqual((child.wait(60), rest[-1]), (0, "stopped"))
            self.assertLess(time.monotonic() - sent, 20.0)


class Without(unittest.TestCase):
    def answer(self, *names):
        done = subprocess.run([sys.executable, "-c", WITHOUT.format(names=names, cut=CUT)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_no_numpy(self):
        lines = self.answer("numpy", "pandas")
        self.assertEqual(lines[0], "Results list 2 int")
        self.assertEqual(lines[1:], ["['run', 'scenario', 'model'] True", "True [27.0]"])

    def test_no_pandas(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("no numpy")
        self.assertEqual(self.answer("pandas")[0], "Results ndarray 2 int64")


class WithPandas(unittest.TestCase):
    def setUp(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas")
        self.pandas = pandas

    def test_frame(self):
        frame = pipecast.run(**CUT, schedule=["1f1b", "zb-h1"])
        self.assertIsInstance(frame, self.pandas.DataFrame)
        self.assertEqual(len(frame), 2)
        self.assertEqual(str(frame.dtypes["iteration_s"]), "float64")
        self.assertEqual(str(frame.dtypes["gpus"]), "int64")
        self.assertEqual(frame.attrs["units"]["memory_gib_max"], "GiB")
        self.assertIn("<svg", pipecast.chart(frame, "run", "mfu")._repr_html_())

    def test_measured_frame(self):
        """A DataFrame of measured runs is scored as its CSV file."""
        measured = self.pandas.DataFrame({"model": ["gpt3-175b"], "system": ["dgx-h100"], "gpus": [128], "gbs": [256],
                                          "mbs": [1], "seq": [2048], "tp": [4], "pp": [8], "step_s": [20.0]})
        frame = pipecast.score(measured)
        self.assertEqual(frame["status"][0], "ok")
        self.assertAlmostEqual(frame["error"][0], frame["forecast_s"][0] / 20.0 - 1.0, 12)
        self.assertEqual(str(frame.dtypes["gpus"]), "float64")


if __name__ == "__main__":
    unittest.main()
