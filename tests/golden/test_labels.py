"""Names that would be commands, markup or formulas somewhere are drawn, written and printed as the names they are.

usage: test_labels.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest
import xml.etree.ElementTree as xml
import zlib

import with_h5py
from command import Command, count, run, full_only

# Every program that sees a label could take one of these for more than a name: gnuplot, a shell, XML, CSV, JSON, printf.
NAMES = ('"; system("touch canary")', "'; system('touch canary') #", "`touch canary`", "$(touch canary)", "| touch canary",
         "!touch canary", "set output 'canary'", "\\", "\\\"", "\\n\\t{/Symbol x}", "a^b_c @d {e} ~f", "%s %n %d %%", "${HOME} $PATH",
         "<script>alert(1)</script>", "]]> & &#x1; <![CDATA[", "&lt;\"'>", "--><!--", "=cmd|' /C calc'!A0", "+1", "-rf", "@SUM(1)", "a,b;c",
         "#comment", "Ångström 模型 🚀", "e\u0301 \u202egnp", "null", "' OR 1=1", "{{7*7}}",
         "a\u2066b\u2069", "\ufeffa\u200b\u200db\u00ad", "\u061c\u200f\u202d", "a\U000e0041\U000e0001b", "\u3164\uffa0", "\ufff9a\ufdd0")
SVG = "{http://www.w3.org/2000/svg}"


def quoted(text):
    """As YAML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


def scenario(names, title):
    lines = ["scenario: labels", "title: " + quoted(title), "setting:", "  devices: 2", "  microbatches: 2", "  schedule: 1f1b",
             "  trace: true", "  times: {F: 1 ms, B: 1 ms, W: 1 ms}", "cases:"]
    for number, name in enumerate(names):
        lines.append(f"  - {{name: c{number}, model: {{name: {quoted(name)}}}, times: {{F: {number + 1} ms}}}}")
    lines += ["figures:", "  - {name: chart, x: bubble_rate_span, x_label: " + quoted(title) + ", y: [iteration_s], series: model, title: "
              + quoted(title) + "}"]
    return "\n".join(lines) + "\n"


FILLERS = "\u3164\uffa0"  # letters that are blank


def is_hidden(c):
    """What would command a terminal, turn a line around or be nowhere to be seen in it."""
    return unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") or c in FILLERS or 0xFDD0 <= ord(c) <= 0xFDEF or ord(c) & 0xFFFE == 0xFFFE


def hidden_in(text):
    return [c for c in text if is_hidden(c) and c != "\n"]


def shown(name):
    """As figures and tables show a name: a '?' for each of those; ' as the quotation mark that gnuplot cannot take for its own."""
    return "".join("?" if is_hidden(c) else c for c in name)


class Labels(Command):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)

    def tearDown(self):
        self.assertEqual([path for path in self.home.rglob("canary")], [], "a label was taken for a command")
        super().tearDown()

    def results(self, names, title="T"):
        (self.home / "labels.yaml").write_text(scenario(names, title), encoding="utf-8")
        return self.good("run", "labels.yaml", "-o", "labels.h5", "--fresh", "--format", "csv", cwd=self.home)

    def draw(self, *arguments, ending="svg"):
        path = self.home / f"out.{ending}"
        path.unlink(missing_ok=True)
        self.assertEqual(self.good("figure", "labels.h5", *arguments, "-o", path.name, cwd=self.home), "")
        return path.read_bytes()

    def text_of(self, svg):
        """All that is to be read in it; its tree has nothing that is run or fetched."""
        tree = xml.fromstring(svg)
        self.assertFalse({element.tag for element in tree.iter()} & {SVG + "script", SVG + "foreignObject", SVG + "image", SVG + "a"})
        for element in tree.iter():
            self.assertFalse([key for key in element.attrib if key.lower().startswith("on")])
        return "\n".join("".join(element.itertext()) for element in tree.iter() if element.tag in (SVG + "text", SVG + "title"))

    def is_drawn(self, name, text):
        """Word joiners keep apart what would be no XML; the quotation mark stands for an apostrophe."""
        self.assertIn(shown(name).replace("'", "\u2019"), text.replace("\u2060", ""), name)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot on the path")
    def test_figures(self):
        """Series, titles and axes of a chart, in three formats; then the run's own picture, by its scenario's title."""
        number = 0
        for part in (NAMES[:10], NAMES[10:20], NAMES[20:]):
            title = part[0]
            self.results(part, title)
            text = self.text_of(self.draw("chart"))
            for name in part:
                self.is_drawn(name, text)
                number += 1
            self.assertEqual(text.replace("\u2060", "").count(shown(title).replace("'", "\u2019")) >= 3, True)
            self.assertTrue(self.draw("chart", ending="pdf").startswith(b"%PDF-"))
            self.assertTrue(self.draw("chart", ending="png").startswith(b"\x89PNG\r\n\x1a\n"))
            self.text_of(self.draw("c0.1f1b"))
            text = self.text_of(self.draw("--x", "microbatches", "--y", "iteration_s", "--series", "model", "--title", part[1]))
            self.is_drawn(part[1], text)
        count("security.labels", number)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot on the path")
    def test_two_names_are_two_pictures(self):
        """The label reaches the drawing: another one, another picture, also where it cannot be read from the file."""
        pictures = set()
        for name in ('"; system("id")', '"; system("ls")', "{/Symbol a}", "{/Symbol b}"):
            self.results([name, "other"], name)
            pictures.add(self.draw("chart", ending="png"))
        self.assertEqual(len(pictures), 4)

    def test_tables(self):
        """CSV and JSON give back what was written; on a terminal nothing but what can be seen."""
        rows = list(csv.DictReader(io.StringIO(self.results(NAMES))))
        self.assertEqual([row["model"] for row in rows], list(NAMES))
        for command in (["run", "labels.yaml"], ["export", "labels.h5", "--to", "json"]):
            kind = ["--format", "json"] if command[0] == "run" else []
            text = self.good(*command, *kind, cwd=self.home)
            self.assertEqual([row["model"] for row in json.loads(text)], list(NAMES))
            self.assertEqual(hidden_in(text), [])  # escaped: JSON loses nothing by it
        for command in (["run", "labels.yaml"], ["figure", "labels.h5", "--list"]):
            self.assertEqual(hidden_in(self.good(*command, cwd=self.home)), [])
        count("security.labels", 3 * len(NAMES))

    def test_titles(self):
        """Of scenarios and charts, where they are listed, and in messages."""
        for name in ("a \u202egnp", "a\u2066b\u2069\u200b", "\ufeffa\U000e0041"):
            self.results(["plain"], name)
            for environment, command in (({}, ["figure", "labels.h5", "--list"]),
                                         ({"PIPECAST_SCENARIOS": str(self.home)}, ["list", "scenarios"])):
                said = self.good(*command, cwd=self.home, env={**os.environ, **environment})
                self.assertIn(shown(name), said)
                self.assertEqual(hidden_in(said), [])
            (self.home / "bad.yaml").write_text(scenario(["a"], "T").replace("schedule: 1f1b", "schedule: " + quoted(name)))
            for arguments in (["run", "bad.yaml"], ["run", name + ".yaml"], ["figure", name + ".h5", "-o", "x.svg"], [name],
                              ["run", "labels.yaml", "--set", f"setting.schedule={name}"], ["list", name], ["run", "--model", name]):
                done = run(*arguments, cwd=self.home)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
                self.assertEqual(hidden_in(done.stderr), [])
            (self.home / "bad.yaml").unlink()

    @full_only
    def test_trace_viewer(self):
        self.results(NAMES)
        for number, name in enumerate(NAMES):
            text = self.good("export", "labels.h5", "--run", f"c{number}.1f1b", "--to", "chrome", cwd=self.home)
            self.assertIn(name, json.dumps(json.loads(text), ensure_ascii=False).encode().decode()
                          if not set(name) & set('"\\') else json.loads(text)["otherData"]["model"])

    def test_names_that_are_refused(self):
        """Line breaks and control characters; a run's and a scenario's name may not have anything but letters and the like."""
        for name in ("a\nb", "a\rb", "a\x1b[31mb", "a\x00b", "a\x7fb", "a\tb", "a\u2028b", "a\u2029b"):
            (self.home / "labels.yaml").write_text(scenario([name], "T"))
            done = run("run", "labels.yaml", cwd=self.home)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertEqual(hidden_in(done.stderr), [])
        for name in NAMES:
            (self.home / "labels.yaml").write_text(scenario(["a"], "T").replace("name: c0", "name: " + quoted(name)))
            if not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
                self.assertEqual(run("run", "labels.yaml", cwd=self.home).returncode, 2, name)

    @unittest.skipUnless(with_h5py.PYTHON, "no h5py")
    def test_a_file_from_elsewhere(self):
        """What another program wrote into a results file does not reach the terminal as it is."""
        self.results(["plain"])
        path = str(self.home / "labels.h5")
        with_h5py.work_on(path, "for name in ('name', 'model', 'scenario', 'machine'):\n"
                          "    f['runs'][name][...] = 'x\\x1b]0;y\\x07\\n\\x9b\\u202e\\u2066\\u2028z'.encode()")
        shutil.copy(path, self.home / "other.h5")
        with_h5py.work_on(str(self.home / "other.h5"), "f['runs']['iteration_s'][...] = 9")
        seen = 0
        for arguments in (["figure", "labels.h5", "--list"], ["compare", "labels.h5", "other.h5"], ["figure", "labels.h5", "none"],
                          ["export", "labels.h5", "--run", "none"], ["export", "labels.h5", "--to", "json"]):
            done = run(*arguments, cwd=self.home)
            said = done.stdout + done.stderr
            seen += "z" in said
            self.assertEqual(hidden_in(said), [], (arguments, said))
        self.assertGreaterEqual(seen, 3)

    ROWS = "collective,ranks,size_bytes,time_us\n" + "".join(f"all_reduce,2,{2**i},{10 + 2**i / 1e5}\n" for i in range(10, 30))
    REPLAY = ("g = f['replays'].create_group('0')\nf['replays'].attrs['count'] = 1\n"
              "for key, value in (('scenario', HOSTILE), ('schedule', HOSTILE[:60])): g.attrs[key] = value\n"
              "for key in ('stage', 'passes', 'measured_peak_bytes', 'simulated_peak_bytes'): g.attrs[key] = 1\n"
              "for key in ('measured_s', 'simulated_s'): g.attrs[key] = 1.0\n"
              "g['kind'], g['count'], g['measured_s'], g['simulated_s'] = numpy.array([b'F']), [1], [1.0], [1.0]\n")
    HOSTILE = '=cmd|x,"\\nrow\\x1b]0;t\\x07\\x9b31m\\u202e\\u2066z'  # as Python writes it

    @unittest.skipUnless(with_h5py.PYTHON, "no h5py")
    def test_a_profile_from_elsewhere(self):
        """Every text that a profile has: shown as what it is, a field of CSV, or refused."""
        (self.home / "rows.csv").write_text(self.ROWS)
        done = run("profile", "fit", "rows.csv", "-o", "p.h5", "--gpu", "h100-sxm", cwd=self.home)
        self.assertEqual(done.returncode, 0, done)
        path = str(self.home / "q.h5")
        shutil.copy(self.home / "p.h5", path)
        texts = "name origin driver runtime blas nccl attention pipecast".split()
        start = f"import numpy\nHOSTILE = '{self.HOSTILE}'\n"
        with_h5py.work_on(path, start + f"for key in {texts}: f['device'].attrs[key] = HOSTILE\nx = f['fits/0'].attrs\n"
                          "x['subject'] = HOSTILE[:40]\nx['link'] = HOSTILE[:12]\n" + self.REPLAY)
        seen = 0
        for arguments in (["profile", "show", "q.h5"], ["profile", "compare", "p.h5", "q.h5"], ["profile", "show", "q.h5", "--format", "json"],
                          ["profile", "show", "q.h5", "--figure", "x.svg", "--fit", "none"], ["profile", "compare", "q.h5", "q.h5"],
                          ["profile", "fit", "p.h5", "q.h5", "-o", "r.h5"], ["run", "--model", "gpt3-1.3b", "--machine", "dgx-h100",
                           "--microbatches", "2", "--tp", "2", "--profile", "q.h5"]):
            done = run(*arguments, cwd=self.home)
            seen += "=cmd|x" in done.stdout + done.stderr
            self.assertEqual(hidden_in(done.stdout + done.stderr), [], (arguments, done))
        self.assertGreaterEqual(seen, 5)
        for command in (["show", "q.h5"], ["compare", "q.h5", "q.h5"]):
            rows = list(csv.reader(io.StringIO(self.good("profile", *command, "--format", "csv", cwd=self.home))))
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, rows)
            self.assertTrue(all(row[0].startswith('=cmd|x,"\nrow') for row in rows[1:]), rows)
        for place, value in (("fits/0/parameter_name", "b'=cmd|x,\"\\nrow'"), ("fits/0/parameter_unit", "b'\\x1b[31m'"),
                             ("replays/0/kind", "b'\\x1b[m'")):
            shutil.copy(path, self.home / "s.h5")
            with_h5py.work_on(str(self.home / "s.h5"), f"f['{place}'][0] = {value}")
            done = run("profile", "show", "s.h5", cwd=self.home)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertIn(f"'{place}': row 1 says '", done.stderr)
            self.assertEqual(hidden_in(done.stderr), [])

    def test_arguments(self):
        for arguments in (["run", "a\x1b[2Jb.yaml"], ["x\x1b]0;t\x07"], ["schedule", "\x1b[31m", "-p", "2", "-m", "2"],
                          ["figure", "no\x1b.h5", "-o", "x.svg"], ["list", "\x9b"],
                          ["schedule", "1f1b", "-p", "2", "-m", "2", "--memory-limit", "\u202e0.1"]):
            done = subprocess.run([os.path.abspath(sys.argv[1]), *arguments], capture_output=True, cwd=self.home)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1), done)
            self.assertFalse(set(done.stderr[:-1]) & set([*range(32), 127]), done)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
