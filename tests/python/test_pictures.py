"""What shows itself in a notebook: well-formed, complete, and without the network."""
import html
import json
import pathlib
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree as xml

import pipecast
from common import scenario

GNUPLOT = shutil.which("gnuplot")
SVG = "{http://www.w3.org/2000/svg}"


def picture(text):
    """The first SVG of a page, as a tree; HTML's entities are few."""
    found = re.search(r"<svg.*?</svg>(?=<div class=\"legend\"|</div>)", text, re.DOTALL)
    return xml.fromstring(found[0].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


class Timelines(unittest.TestCase):
    def setUp(self):
        self.timeline = pipecast.Schedule("zb-h1", 4, 8).timeline()
        self.text = self.timeline._repr_html_()

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_by_gnuplot(self):
        """Whole or a part, on paper or dark: of zb-h1 with four stages and eight microbatches, each of 24 passes."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "timeline.svg"

            def passes(**view):
                self.timeline.draw(path, **view)
                text = path.read_text(encoding="utf-8")
                self.assertEqual("#171717" in text.lower(), view.get("dark", False))
                return len(re.findall(r'data-panel="timeline"', text))

            self.assertEqual(passes(), 96)
            self.assertEqual(passes(stages="1:2", dark=True), 48)
            self.assertLess(passes(time="0:9"), 48)  # of its own unit: the whole takes 27
            for bad in ({"stages": "4"}, {"time": "9:3"}, {"microbatches": "8:"}):
                with self.assertRaises(pipecast.InputError) as caught:
                    self.timeline.draw(path, **bad)
                self.assertEqual([caught.exception.key], list(bad))

    def test_passes(self):
        """A rectangle for each pass, in its device's row, and the same in the data of the script."""
        tree = picture(self.text)
        plot = next(one for one in tree.iter(f"{SVG}svg") if one.get("class") == "time passes")
        self.assertEqual(plot.get("viewBox"), "0 0 100000 4")
        starts = [start for path in plot.iter(f"{SVG}path") for start in re.findall(r"M(\d+) (\d+)\.08", path.get("d"))]
        self.assertEqual(len(starts), 4 * 8 * 3)
        data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', self.text)[1])
        self.assertEqual([len(row) for row in data["rows"]], [24] * 4)
        self.assertEqual(sorted((str(first), str(device)) for device, row in enumerate(data["rows"]) for first, *_ in row),
                         sorted(starts))
        self.assertEqual(data["length"], 27.0)

    def test_memory(self):
        """A band for each device, and its peak beside it."""
        tree = picture(self.text)
        bands = [one for one in tree.iter(f"{SVG}path") if one.get("class") == "held"]
        self.assertEqual(len(bands), 4)
        texts = [one.text for one in tree.iter(f"{SVG}text")]
        self.assertEqual(texts[-1], f"{self.timeline.devices.row(3).peak:.4g}")

    def test_alone(self):
        """Nothing is fetched, titles are escaped, and two in one page do not have one name."""
        other = pipecast.Schedule("1f1b", 2, 2).timeline(title='<script>alert("x")</script>')._repr_html_()
        for text in (self.text, other):
            self.assertEqual(set(re.findall(r"https?://[^\s\"']+", text)), {"http://www.w3.org/2000/svg"})
            self.assertNotIn("alert(\"x\")</script>", text)
        self.assertIn(html.escape('<script>alert("x")</script>'), other)
        self.assertNotEqual(re.search(r' id="([^"]+)"', self.text)[1], re.search(r' id="([^"]+)"', other)[1])

    def test_run(self):
        """Of a run in milliseconds and GiB."""
        text = pipecast.Scenario(model="gpt3-1.3b", machine="dgx-a100", gpus=8, pp=4, global_batch=32,
                                 trace=True).run().timeline()._repr_html_()
        self.assertIn('"isRun":true', text)
        self.assertIn(" GiB</text>", text)

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_by_gnuplot(self):
        tree = xml.fromstring(self.timeline._repr_svg_())
        self.assertEqual(tree.tag, f"{SVG}svg")
        self.assertEqual(sum(1 for one in tree.iter() if one.get("data-microbatch")), 4 * 8 * 3)
        run = pipecast.Scenario(text=scenario(", trace: true")).run().timeline()
        self.assertIn("zb-h1", run._repr_svg_())


class Charts(unittest.TestCase):
    def setUp(self):
        self.runs = pipecast.Scenario(model="gpt3-1.3b", machine="dgx-a100", gpus=[8, 16, 32], pp=2, global_batch=64,
                                      schedule=["1f1b", "zb-h1"]).run()

    def test_points(self):
        text = self.runs.chart("gpus", ["mfu", "iteration_s"], series="schedule", style="lines", title="a < b")._repr_html_()
        self.assertEqual(text.count('class="point"'), 2 * 6)
        self.assertEqual(text.count("<polyline"), 2 * 2)
        self.assertIn("a &lt; b", text)
        self.assertIn("<title>zb-h1: gpus 32, mfu ", text)
        for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            xml.fromstring(svg)

    def test_steps(self):
        """Marks are round, ascend, and hold what they are for."""
        for low, high in ((0.0, 1.0), (0.3, 0.31), (-5.0, 5.0), (7.0, 7.0), (0.0, 0.0), (1e-9, 2e9)):
            marks = pipecast.charts.steps(low, high)
            self.assertEqual(marks, sorted(set(marks)))
            self.assertTrue(marks[0] <= low and high <= marks[-1], (low, high, marks))
            self.assertLessEqual(len(marks), 8)

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_by_gnuplot(self):
        self.assertIn("<svg", self.runs.chart("gpus", "mfu", series="schedule")._repr_svg_())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chart.svg"
            for dark in (False, True):
                self.runs.chart("gpus", "mfu").draw(path, dark=dark)
                self.assertEqual("#171717" in path.read_text(encoding="utf-8").lower(), dark)
            self.runs.chart("gpus", "mfu").draw(path, x_label="Devices", y_label="Use", x_range="0:64", y_range="1:", log="y")
            text = path.read_text(encoding="utf-8")
            self.assertTrue("Devices" in text and "Use" in text)
            self.runs.chart("gpus", ["mfu", "hfu"]).draw(path, y_label=["One", "Two"], y_range=["1:", "2:"])
        with self.assertRaises(pipecast.InputError) as caught:
            self.runs.chart("gpus", "mfu", style="pie").draw("pie.svg")
        self.assertEqual(caught.exception.key, "style")


if __name__ == "__main__":
    unittest.main()
