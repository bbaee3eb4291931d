"""The page of the papers (results/paper/README.md) says what the scenarios say now.

Quick: the parts of the page whose scenarios take a moment are made anew and must stand on the page, line by line; and
the README's table likewise. Slow: all scenarios, the whole page (report --check).

usage: test_paper.py PIPECAST SOURCE_ROOT [all]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
IS_WHOLE = "all" in sys.argv[3:]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "results/report"))

import headline  # noqa: E402
import paper  # noqa: E402
from document import Document  # noqa: E402
from markdown import to_markdown  # noqa: E402
from results import Results  # noqa: E402

QUICK = ("controllable_memory_timelines", "controllable_memory_table1", "controllable_memory_table2",
         "controllable_memory_table5", "controllable_memory_figure5", "controllable_memory_figure7",
         "controllable_memory_figure12", "zero_bubble_table2", "zero_bubble_table9")


class NoPictures:
    """The numbers alone are compared."""

    def ask(self, path, arguments):
        return path


def scenarios():
    files = sorted((ROOT / "scenarios/paper").glob("*.yaml"))
    return files if IS_WHOLE else [file for file in files if file.stem in QUICK]


class Paper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name) / "paper.h5"
        done = subprocess.run([PIPECAST, "run", *map(str, scenarios()), "-o", str(cls.path), "--format", "csv", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise AssertionError(done.stderr)
        cls.results = Results(PIPECAST, cls.path, NoPictures())

    def test_every_scenario_is_on_the_page(self):
        read = {name for names, _ in paper.PARTS for name in names}
        self.assertEqual({file.stem for file in (ROOT / "scenarios/paper").glob("*.yaml")}, read)

    def test_parts_stand_on_the_page(self):
        page = (ROOT / "results/paper/README.md").read_text(encoding="utf-8")
        known, count = set(self.results.scenarios()), 0
        for names, write in paper.PARTS:
            if set(names) <= known:
                text = to_markdown(Document("", write(self.results))).split("-->\n\n", 1)[1]
                for line in text.splitlines():
                    if line not in page:
                        self.fail(f"{names[0]}: not on the page (./reproduce makes it): {line}")
                self.assertTrue(text in page, f"{names[0]}: its lines stand apart on the page")
                count += 1
        self.assertGreaterEqual(count, len(QUICK))

    def test_table_of_the_readme(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(headline.replaced(text, self.results, "README.md"), text)

    @unittest.skipUnless(IS_WHOLE, "the slow suite's")
    def test_whole_page(self):
        done = subprocess.run([sys.executable, str(ROOT / "results/report"), PIPECAST, str(self.path), "--check",
                               str(ROOT / "results/paper")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
