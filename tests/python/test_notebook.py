"""The example notebook: its cells run one after the other, as a notebook's would, and what the last line of each gives
shows itself."""
import ast
import contextlib
import io
import json
import unittest

from common import ROOT

PATH = ROOT / "docs/examples/python.ipynb"


def run_cell(source, names):
    """Executes it; gives what it printed, and the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(PATH), "exec"), names)  # pylint: disable=exec-used
        value = eval(compile(ast.Expression(last.value), str(PATH), "eval"), names) if last else None
    return printed.getvalue(), value


@unittest.skipUnless(PATH.exists(), f"no {PATH}")
class Notebook(unittest.TestCase):
    def test_cells(self):
        book = json.loads(PATH.read_text(encoding="utf-8"))
        self.assertEqual((book["nbformat"], book["cells"][0]["cell_type"]), (4, "markdown"))
        names, said, shown = {"__name__": "__main__"}, "", []
        for cell in book["cells"]:
            if cell["cell_type"] != "code":
                continue
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), "the notebook is kept without outputs")
            printed, value = run_cell("".join(cell["source"]), names)
            said += printed
            if value is not None:
                shown.append(value)
        self.assertIn("12 runs", said)
        self.assertIn("MFU 0.", said)
        self.assertIn("setting.gpus - ", said)
        self.assertEqual(sum("<svg" in value._repr_html_() for value in shown if hasattr(value, "_repr_html_")), 2)


if __name__ == "__main__":
    unittest.main()
