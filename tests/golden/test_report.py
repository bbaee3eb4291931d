"""The report's machinery: both forms of a page, pictures drawn once, a page that is whole or not there, and --check.

usage: test_report.py PIPECAST SOURCE_ROOT
"""
import html.parser
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PIPECAST, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
REPORT = ROOT / "results/report"
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPORT))

import document as d  # noqa: E402
import make  # noqa: E402
from failure import Failure  # noqa: E402
from markdown import to_markdown  # noqa: E402
from results import Results  # noqa: E402
from webpage import to_html  # noqa: E402

# In place of the command where a test counts what is drawn: rows and pictures come from the "results file", JSON here.
COMMAND = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words[:1] + words[2:3]) + "\\n")
file = json.loads(pathlib.Path(words[1]).read_text())
if words[0] == "export":
    print(json.dumps(file["rows"]))
elif words[2] in file["pictures"]:
    pathlib.Path(words[words.index("-o") + 1]).write_text(file["pictures"][words[2]])
else:
    sys.exit("pipecast: no run or chart '%s'; expected another" % words[2])
"""
SVG = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg width="1200" height="600" viewBox="0 0 1200 600" xmlns="http://www.w3.org/2000/svg"
 xmlns:xlink="http://www.w3.org/1999/xlink"><title>timeline</title>
<defs><circle id='dot' r="1"/></defs><use xlink:href='#dot'/><g filter='url(#dot)'><polygon data-id="kept"
 points="0,0 1,1 2,0"><title>%s
</title></polygon></g></svg>
"""
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Tree(html.parser.HTMLParser):
    """Refuses what does not nest, and notes what is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        links = ("href", "xlink:href") if tag in ("link", "use", "image") else ()
        self.loads += [value for name, value in attrs if name in ("src", "srcset", "data", "poster", *links)]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> at {self.getpos()} ends nothing")

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def tree_of(text):
    tree = Tree()
    tree.feed(text)
    tree.close()
    assert not tree.open, tree.open
    return tree


def page(*blocks, title="T"):
    return d.Document(title, list(blocks))


def markdown_of(*blocks):
    """Without title and note."""
    return to_markdown(page(*blocks)).split("\n\n", 2)[2].removesuffix("\n")


def html_of(*blocks, read=lambda path: SVG % path):
    return to_html(page(*blocks), read)


def body_of(*blocks):
    return html_of(*blocks).split("<main>\n")[1].split("\n</main>")[0]


class Text(unittest.TestCase):
    def test_marks(self):
        text = "a `b|c` **bold `x` [l](m.md)** [t](http://x/_a_) \\*no\\* a < b & c"
        self.assertEqual(markdown_of(d.Paragraph(text)),
                         "a `b|c` **bold `x` [l](m.md)** [t](http://x/_a_) \\*no\\* a \\< b & c")
        self.assertEqual(body_of(d.Paragraph(text)),
                         '<p>a <code>b|c</code> <strong>bold <code>x</code> <a href="m.md">l</a></strong> '
                         '<a href="http://x/_a_">t</a> *no* a &lt; b &amp; c</p>')

    def test_plain_text_stays_plain_in_markdown(self):
        cases = {"2 * 3 * 4": "2 \\* 3 \\* 4", "a_b and _c_": "a_b and \\_c\\_", "<b>": "\\<b\\>", "&lt;": "\\&lt;",
                 "# no heading": "\\# no heading", "- no list": "\\- no list", "1. no list": "1\\. no list",
                 "-3.5": "\\-3.5", "2024": "2024", "[GiB]": "\\[GiB\\]", "$x$": "\\$x\\$", "`` ` ``": "`` ` ``",
                 "two\nlines": "two lines"}
        for text, expected in cases.items():
            self.assertEqual(markdown_of(d.Paragraph(text)), expected)

    def test_plain_text_stays_plain_in_html(self):
        for text in ("<script>alert(1)</script>", "a & b", "&lt;", "a < b > c", "'\"", "</p>"):
            with self.subTest(text=text):
                tree = tree_of(html_of(d.Paragraph(text), d.Table([text, "x"], [[text, text]], text), d.Code(text),
                                       d.Details(text, [d.Heading(2, text)]), d.Figure("f", text, text)))
                self.assertEqual("".join(tree.text).count(text), 10)  # the heading a second time in the contents

    def test_addresses(self):
        self.assertIn('href="x&quot;y"', body_of(d.Paragraph('[a](x"y)')))
        for link in ("javascript:x", "data:x", "file:///x"):
            with self.assertRaisesRegex(d.DocumentError, "expected http"):
                html_of(d.Paragraph(f"[a]({link})"))

    def test_relative_links_are_told_from_where_the_file_stands(self):
        text = to_html(page(d.Paragraph("[a](../x.md#y) [b](#c) [e](https://f)")), None, lambda path: "made/" + path)
        self.assertEqual([attributes["href"] for tag, attributes in tree_of(text).tags if tag == "a"],
                         ["made/../x.md#y", "#c", "https://f"])

    def test_headings_have_names_as_github_makes_them(self):
        blocks = [d.Heading(2, "V-Half: `a_b`, 50%"), d.Heading(3, "Same"), d.Heading(2, "Same"), d.Heading(3, "T")]
        tree = tree_of(html_of(*blocks))
        ids = [attributes["id"] for tag, attributes in tree.tags if tag in ("h2", "h3")]
        self.assertEqual(ids, ["v-half-a_b-50", "same", "same-1", "t-1"])
        links = [attributes["href"] for tag, attributes in tree.tags if tag == "a" and "class" not in attributes]
        self.assertEqual(links, ["#" + name for name in ids])


class Tables(unittest.TestCase):
    def test_markdown_columns_are_as_wide_as_their_cells(self):
        rows = [["a|b", "45.1%", "-"], ["`c|d`", "9.25%", "out of memory"]]
        table = d.Table(["run", "MFU", "ours"], rows, "A *caption*")
        self.assertEqual(markdown_of(table).splitlines(), [
            "A \\*caption\\*", "",
            "| run    |   MFU | ours          |",
            "|--------|------:|---------------|",
            "| a\\|b   | 45.1% | -             |",
            "| `c\\|d` | 9.25% | out of memory |"])

    def test_columns_of_numbers_stand_to_the_right(self):
        rows = [["1f1b", "12", "+1.5 points", "", "1 024", "3 of 4", "OOM"],
                ["zb", "-3e5", "\u22120.2%", "n/a", "x", "", "12 GiB"]]
        self.assertEqual(d.alignment(d.Table(list("abcdefg"), rows)), "lrrlllr")
        self.assertEqual(d.alignment(d.Table(list("abcdefg"), rows, align="rcllrrr")), "rcllrrr")

    def test_html(self):
        body = body_of(d.Table(["run", "MFU"], [["a", "1"]], "C"))
        self.assertIn('<table>\n<caption>C</caption>\n<thead>\n<tr><th>run</th><th class="number">MFU</th></tr>', body)
        self.assertIn('<tr><td class="short">a</td><td class="number">1</td></tr>', body)

    def test_bad_tables(self):
        with self.assertRaisesRegex(d.DocumentError, "table 'C': a row of 1 cells; expected 2"):
            html_of(d.Table(["a", "b"], [["1"]], "C"))
        for align in ("l", "lx"):
            with self.assertRaisesRegex(d.DocumentError, "table 'a': align .*; expected 2 letters"):
                markdown_of(d.Table(["a", "b"], [], align=align))


class Blocks(unittest.TestCase):
    BLOCKS = [d.Heading(2, "H"), d.Paragraph("p"), d.Bullets(["- a", "b"]), d.Table(["x"], [["1"]]),
              d.Figure("sub/f 1.svg", "**Figure**", "alt [x]", "timeline"), d.Code("a\n```\nb\n"),
              d.Details("`s` & t", [d.Paragraph("in"), d.Figure("g.svg", "", "g")])]

    def test_markdown(self):
        self.assertEqual(markdown_of(*self.BLOCKS[4:]),
                         "![alt \\[x\\]](sub/f%201.svg)\n\n**Figure**\n\n````\na\n```\nb\n````\n\n<details>\n<summary>"
                         "<code>s</code> &amp; t</summary>\n\nin\n\n![g](g.svg)\n\n</details>")
        self.assertEqual(markdown_of(*self.BLOCKS[:3]), "## H\n\np\n\n- \\- a\n- b")

    def test_html_is_well_formed_and_loads_nothing(self):
        tree = tree_of(html_of(*self.BLOCKS))
        self.assertEqual([load for load in tree.loads if not load.startswith(("data:", "#"))], [])
        style = (REPORT / "page.css").read_text()
        script = (REPORT / "page.js").read_text()
        for text in (style, script):
            for word in ("http:", "https:", "url(", "@import", "import(", "fetch", "XMLHttp", "console."):
                self.assertNotIn(word, text)
        self.assertTrue(script.startswith('"use strict";'))

    def test_pictures_stand_within_and_their_ids_do_not_clash(self):
        text = html_of(*self.BLOCKS)
        svgs = text.split("<svg ")[1:]
        self.assertEqual(len(svgs), 2)
        for number, (svg, alt) in enumerate(zip(svgs, ("alt [x]", "g")), 1):
            element = xml.etree.ElementTree.fromstring("<svg " + svg.split("</svg>")[0] + "</svg>")
            self.assertEqual((element.get("aria-label"), element.get("viewBox"), element.get("width")),
                             (alt, "0 0 1200 600", None))
            self.assertIn(f"id='f{number}-dot'", svg)
            self.assertIn(f"xlink:href='#f{number}-dot'", svg)
            self.assertIn(f"url(#f{number}-dot)", svg)
            self.assertIn('data-id="kept"', svg)
            self.assertEqual(svg.split("</svg>")[0].count("<title>"), 1)  # the pass keeps its own
        self.assertNotIn("<?xml", text)

    def test_a_picture_without_viewbox_gets_one(self):
        text = html_of(d.Figure("f", "", "f"), read=lambda path: '<svg width="30px" height="20"><g/></svg>')
        self.assertIn('viewBox="0 0 30 20"', text)
        for svg in ("no picture", "<svg><g/></svg>"):
            with self.assertRaises(d.DocumentError):
                html_of(d.Figure("f", "", "f"), read=lambda path: svg)


class Folder(unittest.TestCase):
    """make() and check() over a command that counts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out, self.html = self.folder / "made/page", self.folder / "made/page.html"
        self.results, self.log = self.folder / "r.h5", self.folder / "log"
        self.command = self.folder / "command"
        self.command.write_text(COMMAND.format(python=sys.executable, log=str(self.log)))
        self.command.chmod(self.command.stat().st_mode | stat.S_IXUSR)
        self.write_results(0.25)

    def write_results(self, mfu, pictures=("s/a", "chart")):
        rows = [{"scenario": "s", "name": "a", "mfu": mfu, "hfu": None},
                {"scenario": "s", "name": "b", "mfu": 0.5, "hfu": 1}]
        self.results.write_text(json.dumps({"rows": rows, "pictures": {name: SVG % name for name in pictures}}))

    @staticmethod
    def build(results):
        rows = [[row.name, f"{row['mfu']:.3f}"] for row in results.rows("s")]
        return page(d.Table(["run", "MFU"], rows), d.Figure(results.draw("s/a", "a.svg"), "A", "a", "timeline"),
                    d.Figure(results.draw("chart", "sub/chart.svg"), "B", "b"))

    def make(self, build=None, html=True):
        self.log.write_text("")
        return make.make(build or self.build, self.command, self.results, self.out, self.html if html else None)

    def drawn(self):
        return sorted(line.split()[1] for line in self.log.read_text().splitlines() if line.startswith("figure"))

    def standing(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def test_page_and_pictures_are_there(self):
        self.assertEqual(self.make(), (2, 2))
        self.assertEqual(self.standing(), ["command", "log", "made/page.html", "made/page/README.md", "made/page/a.svg",
                                           "made/page/sub/chart.svg", "r.h5", "r.h5.pictures.json"])
        self.assertIn("| a   | 0.250 |", (self.out / "README.md").read_text())
        tree_of(self.html.read_text())
        self.assertEqual(stat.S_IMODE(self.html.stat().st_mode), stat.S_IMODE(self.results.stat().st_mode))

    def test_a_second_run_draws_nothing_and_writes_the_same(self):
        self.make()
        before = {path: (self.folder / path).read_bytes() for path in self.standing() if path != "log"}
        self.assertEqual(self.make(), (0, 2))
        self.assertEqual(self.drawn(), [])
        self.assertEqual({path: (self.folder / path).read_bytes() for path in before}, before)

    def test_what_changed_is_drawn_anew(self):
        def change_picture():
            (self.out / "a.svg").write_text("changed by hand")

        def other_name(results):
            results.draw("s/a", "a.svg", "--title", "x")
            return page(d.Figure("a.svg", "A", "a"))
        cases = [(lambda: self.write_results(0.26), None, ["chart", "s/a"]),
                 (change_picture, None, ["s/a"]),
                 ((self.out / "sub/chart.svg").unlink, None, ["chart"]),
                 (lambda: self.command.write_text(self.command.read_text() + "# newer\n"), None, ["chart", "s/a"]),
                 (lambda: pathlib.Path(f"{self.results}.pictures.json").write_text("[]"), None, ["chart", "s/a"]),
                 (lambda: None, other_name, ["s/a"])]
        self.make()
        for change, build, expected in cases:
            change()
            self.make(build)
            self.assertEqual(self.drawn(), expected)
            self.assertEqual((self.out / "a.svg").read_text(), SVG % "s/a")

    def test_a_failure_leaves_all_as_it_was(self):
        self.make()
        before = {path: (self.folder / path).read_bytes() for path in self.standing() if path != "log"}
        self.write_results(0.26, pictures=["s/a"])
        before["r.h5"] = self.results.read_bytes()
        with self.assertRaisesRegex(Failure, "^no run or chart 'chart'; expected another$"):
            self.make()
        self.assertEqual({path: (self.folder / path).read_bytes() for path in self.standing() if path != "log"}, before)
        self.out, self.html = self.folder / "new/page", self.folder / "new/page.html"
        with self.assertRaises(Failure):
            self.make()
        self.assertFalse((self.folder / "new").exists())

    def test_a_full_disk_is_one_line_and_leaves_all_as_it_was(self):
        small = self.folder / "small"
        small.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small],
                                               capture_output=True).returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.out, self.html = small / "page", small / "page.html"
        self.make()
        before = {path: path.read_bytes() for path in small.rglob("*") if path.is_file()}
        self.write_results(0.26)
        with self.assertRaisesRegex(Failure, "No space left on device") as caught:
            self.make(lambda results: page(*self.build(results).blocks, d.Paragraph("long " * 20000)))
        self.assertEqual(caught.exception.status, 3)
        self.assertEqual({path: path.read_bytes() for path in small.rglob("*") if path.is_file()}, before)

    def test_only_files_are_replaced(self):
        self.html = pathlib.Path("/dev/full")
        with self.assertRaisesRegex(Failure, "^/dev/full: not a file; expected a name for one$"):
            self.make()
        self.out, self.html = self.results, None
        with self.assertRaisesRegex(Failure, "r.h5: not a folder; expected a name for one$"):
            self.make()

    def test_pictures_and_figures_belong_together(self):
        cases = [("x.svg: a figure that nobody draws", lambda r: page(d.Figure("x.svg", "", "x"))),
                 ("x.svg: drawn, and not on the page", lambda r: page(d.Paragraph(r.draw("s/a", "x.svg")))),
                 ("x.svg: two pictures; expected a name for each",
                  lambda r: page(d.Paragraph(r.draw("s/a", "x.svg") + r.draw("chart", "x.svg")))),
                 ("../x.svg: not a picture of the page", lambda r: r.draw("s/a", "../x.svg")),
                 ("x.png: not a picture of the page", lambda r: r.draw("s/a", "x.png"))]
        for message, build in cases:
            with self.assertRaisesRegex(Failure, message):
                self.make(build)
        self.assertFalse(self.out.exists())

    def test_check(self):
        self.make(html=False)
        self.log.write_text("")

        def check():
            return make.check(self.build, self.command, self.results, self.out)
        self.assertIsNone(check())
        self.assertEqual(self.drawn(), [])
        readme = self.out / "README.md"
        text = readme.read_text()
        lines = text.splitlines()
        number = lines.index("| a   | 0.250 |") + 1
        readme.write_text(text.replace("0.250", "0.251"))  # one digit
        self.assertEqual(check(), f"{readme}:{number}: '| a   | 0.251 |'; these results say '| a   | 0.250 |'")
        readme.write_text(text + "more\n")
        self.assertEqual(check(), f"{readme}:{len(lines) + 1}: 'more'; these results say no such line")
        readme.write_text(text)
        (self.out / "old.svg").write_text("")
        self.assertEqual(check(), f"{self.out}/old.svg: not of this page")
        (self.out / "a.svg").unlink()
        self.assertEqual(check(), f"{self.out}/a.svg: missing")
        readme.unlink()
        with self.assertRaisesRegex(Failure, "README.md: No such file or directory; expected a page made by -o"):
            check()

    def test_rows(self):
        results = Results(self.command, self.results)
        row = results.row("s", "b")
        self.assertEqual((row.mfu, row["hfu"], results.row("s", "a").hfu), (0.5, 1, None))
        self.assertEqual([row.name for row in results.rows("s", mfu=0.5)], ["b"])
        for message, ask in [("no scenario 't'; expected one of s", lambda: results.rows("t")),
                             ("0 runs 's/c'; expected one", lambda: results.row("s", "c")),
                             ("run b: no column 'mfuu'; expected", lambda: row.mfuu),
                             ("no column 'x'", lambda: results.rows("s", x=1)),
                             ("f.svg: nowhere to draw it", lambda: results.draw("s/a", "f.svg"))]:
            with self.assertRaisesRegex(Failure, message):
                ask()


    def test_models(self):
        """`list models` as it is, and in another form than is known."""
        self.assertEqual(Results(PIPECAST, self.results).models()["gpt3-175b"],
                         {"layers": 96, "hidden": 12288, "heads": 96})
        with self.assertRaisesRegex(Failure, "list models begins with .*; expected names, layers, hidden, heads"):
            Results("/bin/echo", self.results).models()


class Program(unittest.TestCase):
    """`python3 results/report` itself: usage and errors."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_report(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(REPORT), *arguments], capture_output=True, text=True,
                              cwd=self.folder)

    def test_help_has_an_example(self):
        done = self.run_report("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("example: python3 results/report", " ".join(done.stdout.split()))

    def test_bad_input(self):
        pathlib.Path(self.folder, "x.h5").write_text("no results")
        missing = "no such file; expected a results file of `pipecast run -o`"
        for message, arguments in [
            ("the following arguments are required", []),
            ("one of the arguments -o --check is required", [PIPECAST, "x.h5"]),
            ("--html: expected with -o", [PIPECAST, "x.h5", "--check", "out", "--html", "x.html"]),
            (f"none.h5: {missing}", [PIPECAST, "none.h5", "-o", "out"]),
            ("nothing: No such file or directory; expected the command pipecast", ["nothing", "x.h5", "-o", "out"]),
            ("x.h5: ", [PIPECAST, "x.h5", "-o", "out"]),
        ]:
            with self.subTest(arguments=arguments):
                done = self.run_report(*arguments)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
                self.assertIn("report: " + message, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["x.h5"])


class RealFile(unittest.TestCase):
    """The real command: rows as the CSV of `run` has them, traces that say every pass, a picture."""

    def test_rows_traces_and_a_picture(self):
        scenario = ("scenario: x\nsetting: {devices: 2, microbatches: 3, times: {F: 1 ms, BW: 2 ms}, trace: true}\n"
                    "sweep: {schedule: [1f1b, gpipe]}\n")
        with tempfile.TemporaryDirectory() as folder:
            path, results_path = pathlib.Path(folder, "x.yaml"), pathlib.Path(folder, "x.h5")
            path.write_text(scenario)
            subprocess.run([PIPECAST, "run", path, "-o", results_path, "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)
            results = Results(PIPECAST, results_path)
            row = results.row("x", "x.1f1b")
            # (m + p - 1) times of F and BW: 4 x 3 ms; the bubble is 1 - 3 / 4.
            self.assertEqual((row.iteration_s, row.devices if "devices" in row else row.pp, row.mfu), (0.012, 2, None))
            self.assertAlmostEqual(row.bubble_rate_span, 0.25)
            passes = [event for event in results.trace("x", "x.1f1b") if event.event == "pass"]
            self.assertEqual(sorted((one.device, one.kind, one.microbatch) for one in passes),
                             sorted((device, kind, m) for device in (0, 1) for kind in ("F", "BW") for m in range(3)))
            self.assertEqual(max(one.end_ps for one in passes), 12 * 10**9)
            self.assertEqual(sum(one.end_ps - one.start_ps for one in passes), 2 * 3 * 3 * 10**9)
            build = lambda r: page(d.Figure(r.draw("x/x.gpipe", "g.svg"), "", "g"))  # noqa: E731
            self.assertEqual(make.make(build, PIPECAST, results_path, pathlib.Path(folder, "out")), (1, 1))
            xml.etree.ElementTree.parse(pathlib.Path(folder, "out/g.svg"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
