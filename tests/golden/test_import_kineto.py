"""`pipecast import kineto` on traces made of simulated runs (kineto_traces.py): times, scatter, memory and transfers come back as
they went in, whatever the ranks' clocks say; hostile files are refused; and a long trace takes no more memory than a short one.

usage: test_import_kineto.py PIPECAST SOURCE_ROOT
"""
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

import kineto_traces
from command import IS_QUICK, IS_SLOWED, PIPECAST, run

SCENARIO = """scenario: s
setting:
  devices: 4
  microbatches: 8
  stages:
    - {F: 10.5 ms, B: 11 ms, W: 7.5 ms}
    - {F: 11 ms, B: 11.5 ms, W: 8 ms}
    - {F: 11 ms, B: 11.5 ms, W: 8 ms}
    - {F: 14 ms, B: 15 ms, W: 8 ms}
  transfer: {time: 0.4 ms}
  trace: true
sweep:
  schedule: [1f1b, zb-h1, v-half, 1f1b-interleaved]
"""
SECOND_NS = 10**9
BORN_NS = 1727890914 * SECOND_NS  # clocks count from 1970


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keeper.cleanup)
        cls.folder = pathlib.Path(cls.keeper.name)
        (cls.folder / "s.yaml").write_text(SCENARIO)
        done = run("run", str(cls.folder / "s.yaml"), "-o", str(cls.folder / "r.h5"), "-q")
        assert done.returncode == 0, done.stderr
        cls.runs = {}
        for name in ("1f1b", "zb-h1", "v-half", "1f1b-interleaved"):
            done = run("export", str(cls.folder / "r.h5"), "--run", "s." + name, "--to", "csv")
            assert done.returncode == 0, done.stderr
            cls.runs[name] = kineto_traces.Run(done.stdout)

    def traces(self, schedule, ending=".json", clock=lambda d: BORN_NS + 12345678 * d, **options):
        """Paths, and what was drawn: (device, chunk, kind) to durations in ns."""
        paths, drawn = [], {}
        for device in range(4):
            paths.append(str(self.folder / f"rank{device}{ending}"))
            times = kineto_traces.write_rank(paths[-1], self.runs[schedule], device, clock_ns=clock(device), **options)
            drawn.update({(device, *key): value for key, value in times.items()})
        return paths, drawn


def parse(text):
    """What the file says: of all, and of rows by (stage, chunk)."""
    whole = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    rows = {}
    for line in re.findall(r"^  - \{(.*)\}$", text, re.MULTILINE):
        row = dict(item.split(": ") for item in line.split(", "))
        rows[int(row["stage"]), int(row["chunk"])] = row
    return whole, rows


class RoundTrip(Folder):
    def check(self, schedule, read_order=(2, 0, 3, 1), scatter=0.03, **options):
        paths, drawn = self.traces(schedule, scatter=scatter, iterations=3, **options)
        done = run("import", "kineto", *[paths[i] for i in read_order])
        self.assertEqual(done.returncode, 0, done.stderr)
        whole, rows = parse(done.stdout)
        self.assertEqual(len(rows), 4 * self.runs[schedule].chunks)
        for (device, chunk, kind), times in drawn.items():
            row = rows[device, chunk]
            self.assertAlmostEqual(float(row[kind].removesuffix(" ms")), statistics.mean(times) / 1e6, delta=1e-6)
            self.assertEqual(int(row[kind + "_count"]), len(times))
            deviation = statistics.stdev(times) / statistics.mean(times)
            self.assertAlmostEqual(float(row.get(kind + "_scatter", 0)), deviation, delta=6e-5)
        return whole, rows, done

    def test_own_names(self):
        whole, rows, done = self.check("zb-h1", activation=2**30, held=40 * 2**30)
        self.assertEqual((whole["transfer"], whole["transfer_size"]), ("0.4 ms", "32MiB"))
        self.assertEqual({(row["activation"], row["freed_by_b"], row["held"]) for row in rows.values()},
                         {("1GiB", "256MiB", "40GiB")})
        self.assertEqual(done.stderr, "")

    def test_compressed(self):
        whole, _, done = self.check("1f1b", ending=".json.gz")
        self.assertEqual(whole["transfer"], "0.4 ms")
        self.assertEqual(done.stderr, "pipecast: warning: no allocations (profile_memory=True): the file does not say what "
                                      "passes hold\n")

    def test_names_of_torch_say_where_parts_lie(self):
        whole, _, _ = self.check("v-half", name=kineto_traces.torch_name, placement="v")
        self.assertEqual(whole["placement"], "v")
        whole, _, _ = self.check("1f1b-interleaved", name=kineto_traces.torch_name)
        self.assertEqual(whole["placement"], "interleaved")

    def test_times_of_the_host_where_there_are_none_of_the_gpu(self):
        self.check("1f1b", device_times=False)

    def test_no_scatter_gives_the_run_back(self):
        """The times that were simulated, exactly; and with them the iteration."""
        paths, _ = self.traces("zb-h1", clock=lambda d: (7 - d) * SECOND_NS)
        done = run("import", "kineto", *paths, "-o", str(self.folder / "times.yaml"))
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        _, rows = parse((self.folder / "times.yaml").read_text())
        self.assertEqual([rows[d, 0]["F"] for d in range(4)], ["10.5 ms", "11 ms", "11 ms", "14 ms"])
        self.assertEqual([rows[d, 0]["B"] for d in range(4)], ["11 ms", "11.5 ms", "11.5 ms", "15 ms"])

    def test_skip(self):
        paths, drawn = self.traces("1f1b", scatter=0.1, iterations=2)
        done = run("import", "kineto", *paths, "--skip", "1")
        _, rows = parse(done.stdout)
        times = drawn[0, 0, "F"][8:]
        self.assertAlmostEqual(float(rows[0, 0]["F"].removesuffix(" ms")), statistics.mean(times) / 1e6, delta=1e-6)

    def test_one_rank_alone(self):
        paths, _ = self.traces("1f1b")
        done = run("import", "kineto", paths[0], "-q")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        whole, rows = parse(done.stdout)
        self.assertEqual((len(rows), "transfer" in whole), (1, False))


class Refusals(Folder):
    def refused(self, *arguments, says):
        done = run("import", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Apipecast: .*" + says + r".*\n\Z")

    def test_command_line(self):
        self.refused(says="no format; expected one such as kineto")
        self.refused("kinetto", says=r"unknown format 'kinetto' \(did you mean kineto\?\)")
        self.refused("kineto", says=r"no file; expected import kineto FILE")
        self.refused("kineto", "nowhere.json", says="nowhere.json: No such file")
        self.refused("kineto", str(self.folder), says="is no regular file")
        self.refused("kineto", "x", "--devices", "0", says="--devices")

    def test_damage(self):
        paths, _ = self.traces("1f1b", ending=".json.gz")
        whole = pathlib.Path(paths[0]).read_bytes()
        bad = self.folder / "bad.json.gz"
        bad.write_bytes(whole[:len(whole) // 2])
        self.refused("kineto", str(bad), says="bad.json.gz: is cut off; expected a whole file of gzip")
        bad.write_bytes(whole[:1000] + bytes(40) + whole[1040:])
        self.refused("kineto", str(bad), says="bad.json.gz")

    def test_counts(self):
        paths, _ = self.traces("1f1b")
        self.refused("kineto", *paths, "--devices", "3", says="4 traces for 3 devices; expected one a device")
        self.refused("kineto", paths[0], paths[0], says="two traces of rank 0; expected one of each")

    def test_output_is_no_trace(self):
        paths, _ = self.traces("1f1b")
        before = pathlib.Path(paths[0]).read_bytes()
        self.refused("kineto", paths[0], "-o", paths[0], says="rank0.json")
        self.assertEqual(pathlib.Path(paths[0]).read_bytes(), before)


class Memory(Folder):
    def peak_kib(self, path):
        """Of the command, in its own process group of one child."""
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        done = subprocess.run([sys.executable, "-c", script, PIPECAST, "import", "kineto", "-q", path], capture_output=True,
                              text=True, timeout=600, check=True)
        return int(done.stdout)

    def test_what_is_missing_is_said(self):
        """Ranks, passes of an iteration that is cut, and passes that cannot be: to standard error and in the file."""
        paths, _ = self.traces("1f1b")
        warning = "no trace of rank 2 of 4 ranks: those given are taken as all stages"
        done = run("import", "kineto", *paths[:2], paths[3])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"pipecast: warning: {warning}\n", done.stderr)
        self.assertIn(warning, done.stdout)
        self.assertIn("no trace of ranks 0, 2, 3 of 4 ranks", run("import", "kineto", paths[1]).stderr)
        self.assertNotIn("no trace", run("import", "kineto", *paths).stderr)

    def test_passes_that_are_cut_or_bad(self):
        """Three F and two B of two iterations of two microbatches; one more without a start, and one of a negative length."""
        path = self.folder / "bad.json"
        event = '{"ph": "X", "cat": "gpu_user_annotation", "name": "%s", "pid": 0, "tid": 7, "ts": %s, "dur": %s}'
        good = [("F0", 0, 5), ("F1", 10, 5), ("B0", 20, 5), ("B1", 30, 5), ("F0", 40, 5)]
        for bad, words in ([], ""), ([("F1", '"abc"', 5), ("F1", 60, -5)], "2 passes without a time or with a negative one: left out"):
            path.write_text('{"distributedInfo": {"rank": -1}, "traceEvents": [%s]}' % ", ".join(event % row for row in good + bad))
            done = run("import", "kineto", str(path))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("stage 0 has 3 of 4 forward passes and 2 of 4 backward passes: not all iterations are whole", done.stderr)
            self.assertIn("not all iterations are whole", done.stdout)
            self.assertIn("1 trace with a rank that is none", done.stderr)
            self.assertEqual("left out" in done.stderr, bool(bad))
            self.assertIn(words, done.stderr)
        path.write_text('{"traceEvents": [%s]}' % event % ("B0", 20, 5))
        done = run("import", "kineto", str(path))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("bad.json: has no forward passes; expected annotations such as F0 or PP:2F0, too\n", done.stderr)

    def test_long_traces_take_no_more(self):
        """The same passes among 20 times as many kernels, operators and launches: 30 MB in a quick run, 700 MB in a full one."""
        if IS_SLOWED:
            self.skipTest("tools that find faults need memory of their own")
        sizes, peaks = [], []
        for kernels in (60, 1200) if IS_QUICK else (2000, 40000):
            path = self.folder / "long.json"
            kineto_traces.write_rank(path, self.runs["zb-h1"], 1, kernels=kernels, activation=2**20)
            sizes.append(path.stat().st_size)
            peaks.append(self.peak_kib(str(path)))
            path.unlink()
        self.assertGreater(sizes[1], 15 * sizes[0])
        self.assertLess(peaks[1], peaks[0] + 2048, f"KiB for {sizes} bytes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
