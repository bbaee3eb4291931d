"""`pipecast figure RESULTS.h5 memory-kinds`: what memory is made of, of runs with offload and context parallelism.

usage: test_figure_kinds.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PIPECAST = os.path.abspath(sys.argv[1])
SVG = "{http://www.w3.org/2000/svg}"
GIB = 2.0 ** 30
PLOT, SWATCH = 170, 14  # pixels
HEADROOM = 1.05
SCENARIO = """
scenario: kinds
title: Llama 3 8B, of which most activations go to the host
setting:
  model: {from: llama3-8b, seq_len: 16384}
  machine: dgx-h100
  tp: 2
  pp: 4
  microbatch_size: 1
  microbatches: 8
  trace: true
cases:
  - {name: offloaded, gpus: 32, cp: 2, schedule: 1f1b-interleaved, chunks: 2, offload: selective}
  - {name: kept, gpus: 16, schedule: 1f1b}
"""


def run(*arguments):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120)


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("gnuplot"):
            raise unittest.SkipTest("gnuplot is not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "kinds.yaml").write_text(SCENARIO)
        cls.results = str(cls.folder / "kinds.h5")
        done = run("run", str(cls.folder / "kinds.yaml"), "-o", cls.results, "--format", "csv")
        assert done.returncode == 0, done

    def draw(self, *arguments, name="f.svg"):
        path = self.folder / name
        path.unlink(missing_ok=True)
        done = run("figure", self.results, "memory-kinds", *arguments, "-o", str(path))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), done)
        return path

    def levels(self, number):
        """Of each stage: every level over time, its kinds in the order in which they are stacked, in GiB."""
        text = run("export", self.results, "--run", number, "--to", "csv", "--table", "kinds").stdout
        stages = {}
        for row in csv.DictReader(io.StringIO(text)):
            kinds = {name.removesuffix("_bytes"): float(row[name]) / GIB for name in row if name.endswith("_bytes")}
            stages.setdefault(int(row["device"]), []).append(kinds)
        return stages

    def words(self, path):
        return [element.text for element in xml.parse(path).iter(SVG + "text") if element.text]

    def panels(self, path):
        """Of each panel: by colour from the top of the stack down, how many pixels high it is at its highest."""
        panels, bottom = [], None
        for element in xml.parse(path).iter(SVG + "polygon"):
            xs, ys = zip(*(map(float, point.split(",")) for point in element.get("points").split()))
            if max(xs) - min(xs) < SWATCH + 1:
                continue  # the legend's
            if bottom is None or abs(max(ys) - bottom) > 1:
                panels.append([])
            bottom = max(ys)
            panels[-1].append(max(ys) - min(ys))
        return panels

    def check_heights(self, path, number, stages, most_gib):
        """All panels have one scale. The stack is as high as the peak, and its lowest kind as high as parameters."""
        panels, levels = self.panels(path), self.levels(number)
        self.assertEqual(len(panels), len(stages))
        unit = PLOT / (most_gib * HEADROOM)
        for heights, stage in zip(panels, stages):
            peak = max(sum(level.values()) for level in levels[stage])
            self.assertAlmostEqual(heights[0], unit * peak, delta=0.05)
            self.assertAlmostEqual(heights[-1], unit * levels[stage][0]["parameters"], delta=0.05)
            self.assertEqual(heights, sorted(heights, reverse=True))

    def peaks(self, number):
        return {stage: max(sum(level.values()) for level in levels) for stage, levels in self.levels(number).items()}

    def test_offload_and_context(self):
        path, words = self.draw(), self.words(self.draw())
        self.assertLessEqual({"What memory is made of: kinds/offloaded.1f1b-interleaved",
                              "llama3-8b, 1f1b-interleaved: 4 devices, 8 microbatches", "GiB", "Time [ms]"}, set(words))
        drawn = {kind for levels in self.levels("1").values() for level in levels for kind in level if level[kind] > 0}
        self.assertLessEqual({"offloaded", "context", "attention", "mlp", "head", "loss"}, drawn)
        self.assertLessEqual(drawn, set(words))
        self.assertFalse({"capacity", "recomputation", "copies"} & set(words))  # far above all; none there is
        peaks = self.peaks("1")
        self.check_heights(path, "1", [0, 1, 2, 3], max(peaks.values()))
        for stage, peak in peaks.items():
            self.assertIn(f"Stage {stage}: at most {peak:.4g} GiB of 76.65", words)

    def test_the_fullest_stages_beside_the_capacity(self):
        path = self.draw("--run", "2", "--top", "2")
        self.assertIn("capacity", self.words(path))
        self.check_heights(path, "2", [0, 1], 76.65)
        lines = [element for element in xml.parse(path).iter(SVG + "path") if "192" in element.get("stroke", "")]
        self.assertEqual(len(lines), 2)

    def test_formats_and_sizes(self):
        svg, png, pdf = (self.draw(name="x." + ending) for ending in ("svg", "png", "pdf"))
        root = xml.parse(svg).getroot()
        self.assertEqual(struct.unpack(">II", png.read_bytes()[16:24]),
                         (float(root.get("width")), float(root.get("height"))))
        for path in (svg, png, pdf):
            self.assertEqual(path.read_bytes(), self.draw(name="y" + path.suffix).read_bytes())
        for element in root.iter(SVG + "polygon"):
            for point in element.get("points").split():
                x, y = (float(number) for number in point.split(","))
                self.assertTrue(0 <= x <= float(root.get("width")) and 0 <= y <= float(root.get("height")))

    def test_the_list(self):
        self.assertEqual(run("figure", self.results, "--list").stdout.splitlines(), [
            "run    kinds/offloaded.1f1b-interleaved", "kinds  kinds/offloaded.1f1b-interleaved",
            "run    kinds/kept.1f1b", "kinds  kinds/kept.1f1b"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
