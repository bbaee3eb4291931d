"""`pipecast figure` from outside: timelines whose passes say what they are, charts that a scenario declares, charts of
one's own, and what is refused.

usage: test_figure.py PIPECAST SOURCE_ROOT
"""
import collections
import csv
import io
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

import with_h5py

PIPECAST = os.path.abspath(sys.argv[1])
SVG = "{http://www.w3.org/2000/svg}"
SCENARIO = """
scenario: small
title: Two models
setting:
  devices: 2
  microbatches: 4
  microbatch_size: 1
  activation: {size: 2 GiB}
cases:
  - name: a
    model: {name: A & B <model>}
    times: {F: 10 ms, B: 11 ms, W: 9 ms}
    trace: true
    published:
      - {schedule: 1f1b, microbatches: 4, bubble_rate_span: 0.25}
  - name: b
    model: {name: C}
    times: {F: 20 ms, B: 21 ms, W: 19 ms}
    transfer: {time: 1 ms}
sweep:
  schedule: [1f1b, zb-h1, v-min]
  microbatches: [2, 4, 8]
figures:
  - name: bubbles
    title: Bubbles against microbatches
    x: microbatches
    y: [bubble_rate_span, activation_gib_max]
    series: schedule
    panels: model
    style: lines
    published: true
  - {name: bars, x: schedule, y: [iteration_s], style: bars}
"""


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


class Drawn(unittest.TestCase):
    """A results file of small.yaml, and drawing from it."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("gnuplot"):
            raise unittest.SkipTest("gnuplot is not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "small.yaml").write_text(SCENARIO)
        cls.results = str(cls.folder / "r.h5")
        done = run("run", str(cls.folder / "small.yaml"), "-o", cls.results, "--format", "csv")
        assert done.returncode == 0, done
        cls.rows = list(csv.DictReader(io.StringIO(done.stdout)))

    def draw(self, *arguments, name="f.svg"):
        path = self.folder / name
        path.unlink(missing_ok=True)
        done = run("figure", self.results, *arguments, "-o", str(path))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), done)
        return path

    def shapes(self, path, word):
        return [element for element in xml.parse(path).iter() if word in element.get("class", "").split()]


class Figures(Drawn):
    def test_every_pass_says_what_it_is(self):
        """Kind, microbatch, chunk, stage and both times, of every pass once, as the trace has them."""
        for name in ("a.1f1b.m4", "a.v-min.m2"):
            trace = run("export", self.results, "--run", name, "--to", "csv").stdout
            events = [event for event in csv.DictReader(io.StringIO(trace)) if event["event"] == "pass"]
            expected = collections.Counter(
                f"{event['kind']} of microbatch {event['microbatch']}, chunk {event['chunk']}, stage {event['device']}: "
                f"{int(event['start_ps']) / 1e9:.6g} to {int(event['end_ps']) / 1e9:.6g} ms" for event in events)
            shapes = [shape for shape in self.shapes(self.draw(name), "pass")
                      if shape.get("data-panel") == "timeline"]
            self.assertEqual(collections.Counter(shape.find(SVG + "title").text for shape in shapes), expected)
            for shape in shapes:
                said = " ".join(f"{what} {shape.get('data-' + what)}" for what in ("microbatch", "chunk", "stage"))
                self.assertIn(f"{shape.get('data-kind')} of " + said.replace(" c", ", c").replace(" s", ", s") + ":",
                              shape.find(SVG + "title").text)
                self.assertLess(float(shape.get("data-start")), float(shape.get("data-end")))

    def test_passes_of_the_block_say_it_too(self):
        """The block of zb-h1 for two devices has F, B and W on each; its repetitions the same: whole multiples."""
        shapes = [shape for shape in self.shapes(self.draw("a.zb-h1.m4"), "pass")
                  if shape.get("data-panel") == "block"]
        counts = collections.Counter((shape.get("data-kind"), shape.get("data-stage")) for shape in shapes)
        self.assertEqual(set(counts), {(kind, stage) for kind in "FBW" for stage in "01"})
        self.assertEqual(len(set(counts.values())), 1)
        self.assertTrue(all(shape.find(SVG + "title").text.endswith(" cells") for shape in shapes))

    def test_pictures_do_not_share_ids(self):
        found = collections.Counter()
        for number, name in enumerate(("a.1f1b.m4", "a.1f1b.m2", "bubbles", "bars")):
            picture = xml.parse(self.draw(name, name=f"{number}.svg"))
            ids = [element.get("id") for element in picture.iter() if element.get("id")]
            uses = [value[1:] for element in picture.iter() for key, value in element.items() if key.endswith("href")]
            self.assertLessEqual(set(uses), set(ids))
            found.update(ids)
        self.assertEqual(max(found.values()), 1)

    def test_a_declared_chart(self):
        """A point for every row and y, and the one that was published; in percent."""
        path = self.draw("bubbles")
        points = {point.find(SVG + "title").text for point in self.shapes(path, "point")}
        expected = {f"{row['name']}: microbatches {row['microbatches']}, bubble_rate_span "
                    f"{100 * float(row['bubble_rate_span']):.6g}%" for row in self.rows}
        expected |= {f"{row['name']}: microbatches {row['microbatches']}, activation_gib_max "
                     f"{float(row['activation_gib_max']):.6g} GiB" for row in self.rows}
        expected.add("a.1f1b.m4, published: microbatches 4, bubble_rate_span 25%")
        self.assertEqual(points, expected)
        text = path.read_text()
        for label in ("Bubbles against microbatches", "A &amp; B &lt;model>", "zb-h1", "published",
                      "Peak activation memory [GiB]"):
            self.assertIn(f">{label}</text>", text)
        self.assertEqual(path.read_bytes(), self.draw("small/bubbles", name="again.svg").read_bytes())

    def test_a_chart_of_ones_own(self):
        own = ["--x", "microbatches", "--y", "bubble_rate_span,activation_gib_max", "--series", "schedule", "--panels",
               "model", "--style", "lines", "--published", "--title", "Bubbles against microbatches"]
        self.assertEqual(self.draw("bubbles").read_bytes(), self.draw(*own, name="own.svg").read_bytes())
        self.assertEqual(self.draw(*own, "--scenario", "small").read_bytes(), self.draw("bubbles").read_bytes())

    def test_formats_and_sizes(self):
        """A pixel is 1/96 inch, and a pdf counts in 1/72 inch."""
        for name in ("bubbles", "bars", "a.1f1b.m4"):
            svg, png, pdf = (self.draw(name, name="x." + ending) for ending in ("svg", "png", "pdf"))
            root = xml.parse(svg).getroot()
            width, height = float(root.get("width")), float(root.get("height"))
            self.assertEqual(root.get("viewBox"), f"0 0 {width:.0f} {height:.0f}")
            self.assertEqual(struct.unpack(">II", png.read_bytes()[16:24]), (width, height))
            box = [float(number) for number in
                   re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+)", pdf.read_bytes()).groups()]
            self.assertAlmostEqual(box[0], width * 0.75, delta=1)
            self.assertAlmostEqual(box[1], height * 0.75, delta=1)
            for path in (svg, png, pdf):
                self.assertEqual(path.read_bytes(), self.draw(name, name="y" + path.suffix).read_bytes())

    def test_the_list(self):
        done = run("figure", self.results, "--list")
        traced = [f"run    small/{row['name']}" for row in self.rows if row["name"].startswith("a.")]
        self.assertEqual(done.stdout.splitlines(),
                         ["chart  small/bubbles  Bubbles against microbatches", "chart  small/bars", *traced])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_is_refused(self):
        out = ["-o", "refused.svg"]
        cases = [
            ("figure: --x: there is no column 'microbatch'; expected one such as 'microbatches'",
             ["--x", "microbatch", "--y", "mfu", *out]),
            ("figure: --y: 'schedule' is text; expected a column of numbers", ["--x", "pp", "--y", "schedule", *out]),
            ("figure: --y: not given; expected a column, as a chart has both x and y", ["--x", "pp", *out]),
            ("figure: --x: not given; expected a column, as a chart has both x and y", ["--style", "bars", *out]),
            ("figure: --style: 'pie'; expected points, lines or bars", ["--x", "pp", "--y", "mfu", "--style", "pie", *out]),
            ("figure: --y: more than 4 columns; expected at most that many",
             ["--x", "pp", "--y", "pp,tp,dp,mfu,hfu", *out]),
            ("nothing to draw: of 18 runs none has a value in 'pp' and in 'mfu'; expected one",
             ["--x", "pp", "--y", "mfu", *out]),
            ("no run of 'other'; expected a scenario of the file",
             ["--x", "pp", "--y", "mfu", "--scenario", "other", *out]),
            ("figure: 'bars' and the options of a chart; expected one or the other", ["bars", "--x", "pp", *out]),
            ("figure: --list stands alone; expected nothing but RESULTS.h5 beside it", ["--list", *out]),
            ("no chart or run 'nobody'; expected the name or number of one, or SCENARIO/NAME", ["nobody", *out]),
            ("x.gif: unknown ending; expected a file name that ends in .svg, .png or .pdf", ["bars", "-o", "x.gif"]),
        ]
        for message, arguments in cases:
            done = run("figure", self.results, *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertTrue(done.stderr.endswith(message + "\n"), done.stderr)
            self.assertFalse((self.folder / "refused.svg").exists())

    def test_an_output_that_cannot_be(self):
        """It is told before the work, and the results file is not blamed for it."""
        link = self.folder / "link.svg"
        link.symlink_to(self.results)
        self.addCleanup(link.unlink)
        before = pathlib.Path(self.results).read_bytes()
        for message, output in [
            (f"-o: {link}: is the results file; expected another file", str(link)),
            ("no/x.svg: there is no folder 'no'; expected one that is there", "no/x.svg"),
        ]:
            done = run("figure", self.results, "bars", "-o", output, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))
        self.assertEqual(pathlib.Path(self.results).read_bytes(), before)

    def test_a_title_with_what_xml_has_not(self):
        path = self.draw("--x", "microbatches", "--y", "iteration_s", "--title", "a\uffffb\ufffec\u0007d")
        self.assertIn("a?b?c?d", "".join(xml.parse(path).getroot().itertext()))

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_names_that_would_break_the_list(self):
        """Scenarios cannot have such names, files from elsewhere can."""
        path = shutil.copy(self.results, self.folder / "names.h5")
        with_h5py.work_on(path, "names = f['runs/name'][:]\nnames[0] = b'a\\nchart\\x1b[31m'\nf['runs/name'][:] = names")
        lines = run("figure", str(path), "--list").stdout.split("\n")
        self.assertEqual(lines[:3], ["chart  small/bubbles  Bubbles against microbatches", "chart  small/bars",
                                     "run    small/a?chart?[31m"])

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_charts_that_cannot_be_read(self):
        """As a newer pipecast may declare them: the runs can be listed and drawn all the same."""
        path = str(shutil.copy(self.results, self.folder / "newer.h5"))
        with_h5py.work_on(path, "text = f['scenarios/small']\ntext[()] = text[()].replace(b'style: lines', b'style: films')")
        listed = run("figure", path, "--list")
        self.assertEqual(listed.returncode, 2)
        self.assertIn("films: unknown word; expected one of points, lines, bars\n", listed.stderr)
        self.assertEqual(listed.stdout, "".join(line for line in run("figure", self.results, "--list").stdout.splitlines(True)
                                                if line.startswith("run ")))
        for name in ("a.1f1b.m4", "small/a.1f1b.m4", "3"):
            done = run("figure", path, name, "-o", str(self.folder / "f.svg"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        done = run("figure", path, "bubbles", "-o", str(self.folder / "f.svg"))
        self.assertEqual((done.returncode, done.stderr), (2, listed.stderr))

    def test_two_scenarios_with_one_name_of_a_chart(self):
        other = self.folder / "other.yaml"
        other.write_text(SCENARIO.replace("scenario: small", "scenario: other"))
        both = str(self.folder / "both.h5")
        self.assertEqual(run("run", str(self.folder / "small.yaml"), str(other), "-o", both).returncode, 0)
        done = run("figure", both, "bars", "-o", str(self.folder / "z.svg"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("'bars' is the name of 2 charts; expected one, such as small/bars or other/bars", done.stderr)
        self.assertEqual(run("figure", both, "other/bars", "-o", str(self.folder / "z.svg")).returncode, 0)
        one, two = (re.sub('data-run="[0-9]+"', "", path.read_text()) for path in
                    (self.folder / "z.svg", self.draw("bars")))
        self.assertEqual(one, two)  # but for the numbers of the runs


class Views(Drawn):
    """Ranges, windows, several files, dark pictures."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = str(cls.folder / "other.h5")
        (cls.folder / "slow").mkdir()
        (cls.folder / "slow/small.yaml").write_text(SCENARIO.replace("F: 10 ms", "F: 15 ms"))
        done = run("run", str(cls.folder / "slow/small.yaml"), "-o", cls.other, "--format", "csv")
        assert done.returncode == 0, done
        cls.other_rows = list(csv.DictReader(io.StringIO(done.stdout)))

    def said(self, path, word="point"):
        return [shape.find(SVG + "title").text for shape in self.shapes(path, word)]

    def texts(self, path):
        return {text.text for text in xml.parse(path).iter(SVG + "text")}

    def test_several_files(self):
        """A point for every row of both, and both names in the legend; in their order."""
        own = ["--x", "microbatches", "--y", "iteration_s", "--series", "schedule,model", "--style", "points"]
        path = self.draw(self.other, *own)
        expected = collections.Counter(
            f"{row['name']}: microbatches {row['microbatches']}, iteration_s {float(row['iteration_s']):.6g} s"
            for row in self.rows + self.other_rows)
        self.assertEqual(collections.Counter(self.said(path)), expected)
        self.assertLessEqual({"1f1b, C, r", "1f1b, C, other"}, self.texts(path))
        labelled = self.texts(self.draw(self.other, *own, "--label", "fast", "--label", "slow"))
        self.assertLessEqual({"1f1b, C, fast", "v-min, C, slow"}, labelled)
        both = self.draw(self.other, "bubbles")
        self.assertEqual(len(self.said(both)), 2 * len(self.said(self.draw("bubbles", name="one.svg"))))

    def test_ranges(self):
        """Points within are those that say something; a line to one outside stays."""
        own = ["--x", "microbatches", "--y", "iteration_s", "--series", "schedule", "--panels", "model"]
        for style in ("points", "lines"):
            path = self.draw(*own, "--style", style, "--x-range", "2:4", "--y-range", ":0.2", "--log", "xy")
            expected = {f"{row['name']}: microbatches {row['microbatches']}, iteration_s {float(row['iteration_s']):.6g} s"
                        for row in self.rows if int(row["microbatches"]) <= 4 and float(row["iteration_s"]) <= 0.2}
            self.assertEqual(set(self.said(path)), expected)
            self.assertTrue(0 < len(expected) < len(self.rows))
        bars = self.draw("bars", "--y-range", "0.05:0.1")
        self.assertTrue(self.said(bars))

    def test_labels(self):
        path = self.draw("bubbles", "--title", "T & U", "--x-label", "along <x>", "--y-label", "up", "--y-label", "down")
        self.assertLessEqual({"T & U", "along <x>", "up", "down"}, self.texts(path))
        self.assertIn("Times", self.texts(self.draw("a.1f1b.m4", "--title", "Times")))

    def test_windows(self):
        """Of passes those that overlap the window, on its devices, saying their whole times."""
        trace = run("export", self.results, "--run", "a.1f1b.m4", "--to", "csv").stdout
        passes = [(event["kind"], event["microbatch"], event["device"], int(event["start_ps"]) / 1e9, int(event["end_ps"]) / 1e9)
                  for event in csv.DictReader(io.StringIO(trace)) if event["event"] == "pass"]
        def drawn(*window):
            shapes = self.shapes(self.draw("a.1f1b.m4", *window), "pass")
            return sorted((shape.get("data-kind"), shape.get("data-microbatch"), shape.get("data-stage"),
                           float(shape.get("data-start")), float(shape.get("data-end"))) for shape in shapes)
        self.assertEqual(drawn("--time", "25ms:0.06"), sorted(one for one in passes if one[3] < 60 and one[4] > 25))
        self.assertEqual(drawn("--stages", "1"), sorted(one for one in passes if one[2] == "1"))
        of = [one for one in passes if one[1] in "12"]
        start, end = min(one[3] for one in of), max(one[4] for one in of)
        self.assertEqual(drawn("--microbatches", "1:2"), sorted(one for one in passes if one[3] < end and one[4] > start))
        self.assertIn("Timeline: microbatches 1 to 2; others pale", self.texts(self.folder / "f.svg"))

    def test_dark(self):
        """The ground is dark, nothing is left of the light one's ink, and passes have the colours that they had."""
        for name in ("bubbles", "bars", "a.1f1b.m4"):
            light, dark = (self.draw(name, *option, name=f"{len(option)}.svg").read_text() for option in ((), ("--dark",)))
            self.assertIn("#171717", dark.lower())
            self.assertNotIn("#ffffff", dark.lower())
            for ink in ("rgb( 34,  34,  34)", "rgb( 68,  68,  68)"):
                self.assertNotIn(ink, dark)
        fills = [{shape.get("fill") for shape in self.shapes(self.folder / name, "pass")
                  if shape.get("data-panel") == "timeline"} for name in ("0.svg", "1.svg")]
        self.assertEqual(*fills)
        self.assertEqual(self.draw("bars", "--dark", name="x.pdf").read_bytes()[:5], b"%PDF-")

    def test_what_is_refused(self):
        out = ["-o", "refused.svg"]
        cases = [
            ("none.h5: No such file or directory; expected a results file", ["none.h5", "--x", "pp", "--y", "mfu", *out]),
            ("figure: a timeline is of one results file, and there are 2; expected one, or a chart of all", [self.other, *out]),
            ("figure: two files are called 'a'; expected a different --label for each",
             [self.other, "bars", "--label", "a", "--label", "a", *out]),
            ("figure: --label: 1 label, 2 files; expected one a file", [self.other, "bars", "--label", "a", *out]),
            ("figure: --x-range: 9 to 5 has no length; expected the smaller end first", ["bubbles", "--x-range", "9:5", *out]),
            ("figure: --x-range: '5'; expected LOW:HIGH, LOW: or :HIGH", ["bubbles", "--x-range", "5", *out]),
            ("nothing to draw: of 18 runs none has a point within the ranges that are asked for; expected wider ones",
             ["bubbles", "--x-range", "5:7", *out]),
            ("figure: --log: 'z'; expected x, y or xy", ["bubbles", "--log", "z", *out]),
            ("figure: --time is of timelines, and a chart is none; expected it beside a run", ["bars", "--time", "0:1", *out]),
            ("figure: --log is of charts, and a timeline is none; expected it beside a chart",
             ["a.1f1b.m4", "--log", "x", *out]),
            ("figure: --time: '1:0' has no length; expected the earlier end first", ["a.1f1b.m4", "--time", "1:0", *out]),
            ("figure: --stages: 2: out of range; expected a whole number from 0 to 1", ["a.1f1b.m4", "--stages", "0:2", *out]),
        ]
        for message, arguments in cases:
            done = run("figure", self.results, *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertTrue(done.stderr.endswith(message + "\n"), done.stderr)
            self.assertFalse((self.folder / "refused.svg").exists())


LINKS = """
scenario: links
setting:
  devices: 4
  microbatches: 8
  microbatch_size: 1
  times: {F: 10 us, B: 11 us, W: 9 us}
  transfer: {time: 1800 ns}
  activation: {size: 2 GiB}
  trace: true
sweep: {schedule: [1f1b, zb-h1]}
"""


@unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
class Links(Drawn):
    """The load of links, of a run to which with_h5py.add_engine gave what the engine might have seen."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "links.yaml").write_text(LINKS)
        cls.results = str(cls.folder / "links.h5")
        done = run("run", str(cls.folder / "links.yaml"), "-o", cls.results, "--format", "csv")
        assert done.returncode == 0, done
        with_h5py.add_engine(cls.results, 2)

    def links(self):
        text = run("export", self.results, "--run", "2", "--to", "csv", "--table", "links").stdout
        return list(csv.DictReader(io.StringIO(text)))

    def test_pieces_carry_what_the_links_do(self):
        """Load x time, summed over the pieces of a link, is what went over it; pieces of a colour do not overlap."""
        pieces = self.shapes(self.draw("links", "--top", "64"), "load")
        carried, ends = collections.Counter(), collections.defaultdict(float)
        for piece in pieces:
            start, end = float(piece.get("data-start")), float(piece.get("data-end"))
            key = piece.get("data-link"), piece.get("data-colour")
            self.assertLess(start, end)
            self.assertGreaterEqual(start, ends[key] - 1e-9)
            ends[key] = end
            carried[key[0]] += float(piece.get("data-bytes-per-s")) * (end - start) * 1e-3
        links = self.links()
        self.assertEqual(set(carried), {link["link"] for link in links})
        for link in links:
            self.assertAlmostEqual(carried[link["link"]] / float(link["carried_bytes"]), 1, delta=1e-6)
        said = {piece.find(SVG + "title").text.split(":")[0] for piece in pieces}
        self.assertEqual(said, {link["name"] for link in links})

    def test_the_words(self):
        text = self.draw("links", "--top", "3").read_text()
        for words in ("Load of links: links/links.zb-h1", "zb-h1: 4 devices, 8 microbatches", "messages",
                      "reductions of gradients", "tied embedding, loss and norm",
                      "Links between stages: the 3 busiest of 6, 50 GB/s each", "Shares of NICs: 50 GB/s each",
                      "stage 0 NIC out", "stage 0 NIC in", "Time [ms]"):
            self.assertIn(f">{words}</text>", text)
        self.assertIn("the line 100%; nothing is shared: each flow has all of it, as if alone</text>", text)
        self.assertNotIn("tensor parallelism", text)

    def test_which_run(self):
        default = self.draw("links").read_bytes()
        for name in ("links.zb-h1", "links/links.zb-h1", "2"):
            self.assertEqual(self.draw("links", "--run", name, name="named.svg").read_bytes(), default)
        self.assertEqual(self.draw("links", "--top=8").read_bytes(), default)

    def test_the_memory_panel_has_what_the_engine_saw(self):
        """3 GiB at most on each, of which activations of 1F1B have more; devices 0 and 2 have room for 4."""
        text = self.draw("2", name="t.svg").read_text()
        self.assertIn(">at most 3 GiB, on all 4 devices; a band is 4 high, with a line every 1; the red line is the "
                      "capacity</text>", text)
        self.assertNotIn("the red line", self.draw("1", name="t.svg").read_text())

    def test_the_list(self):
        done = run("figure", self.results, "--list")
        self.assertEqual(done.stdout.splitlines(), ["run    links/links.1f1b", "run    links/links.zb-h1",
                                                    "links  links/links.zb-h1"])

    def test_formats_and_sizes(self):
        svg, png, pdf = (self.draw("links", name="x." + ending) for ending in ("svg", "png", "pdf"))
        root = xml.parse(svg).getroot()
        self.assertEqual(struct.unpack(">II", png.read_bytes()[16:24]),
                         (float(root.get("width")), float(root.get("height"))))
        for path in (svg, png, pdf):
            self.assertEqual(path.read_bytes(), self.draw("links", name="y" + path.suffix).read_bytes())

    def test_what_is_refused(self):
        out, expected = ["-o", "refused.svg"], "expected {} `engine: events` and `trace: true`"
        cases = [
            (f"{self.results}: run 1 kept no trace of the engine; " + expected.format("one of a scenario with"),
             ["links", "--run", "1", *out]),
            (f"{self.results}: no run 'nobody'; expected the name or number of one, or SCENARIO/NAME",
             ["links", "--run", "nobody", *out]),
            ("figure: --run is of links and memory-kinds; expected RESULTS.h5 links or memory-kinds beside it", ["--run", "2", *out]),
            ("figure: --top is of links and memory-kinds; expected RESULTS.h5 links or memory-kinds beside it", ["links.zb-h1", "--top", "2", *out]),
            ("--top: 65: out of range; expected a whole number from 1 to 64", ["links", "--top", "65", *out]),
        ]
        for message, arguments in cases:
            done = run("figure", self.results, *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))
        untraced = str(self.folder / "r.h5")
        done = run("figure", untraced, "links", *out, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: {untraced}: no run kept a trace of the engine; "
                                                             + expected.format("a scenario with") + "\n"))
        self.assertFalse((self.folder / "refused.svg").exists())

    def test_a_run_or_chart_of_that_name_is_meant_first(self):
        """With --run it is the links all the same."""
        self.results, whole = str(self.folder / "named.h5"), self.results
        self.addCleanup(setattr, self, "results", whole)
        shutil.copyfile(whole, self.results)
        with_h5py.work_on(self.results, "f['runs/name'][1] = b'links'")
        self.assertTrue(self.shapes(self.draw("links"), "pass"))
        self.assertTrue(self.shapes(self.draw("links", "--run", "2"), "load"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
