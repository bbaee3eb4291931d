"""The tables of `run` and `plan` on a terminal and off it: width, colour, the columns that are chosen, the lines above.

usage: test_table.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import re
import sys
import unittest

from command import Command, on_a_terminal, run

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Llama's dimensions as Qwen 2.5 32B has them, of which the published count is 32.76B: with biases of query, key and value,
# 64 * 7168 = 458,752 that have no place here, 32.76B.
OWN = ("model: own, layers: 64, hidden: 5120, ffn_hidden: 27648, heads: 40, kv_heads: 8, vocab: 152064, vocab_multiple: 1, "
       "seq_len: 4096, global_batch: 64")
TRAITS = ("positions: rotary", "tied: false", "bias: false", "dropout: false", "norm: rmsnorm", "mlp: swiglu")
CUT = ["--machine", "dgx-h100", "--gpus", "64", "--tp", "8"]
SWEEP = ["run", "--model", "gpt3-175b", "--machine", "dgx-a100", "--gpus", "1024", "--tp", "1,8", "--pp", "3,8", "--schedule", "1f1b,zb-h1"]
PLAN = ["plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--schedule", "1f1b", "--top", "4"]


class Table(Command):
    def on(self, columns, *arguments, term="xterm", **variables):
        """What stands on a terminal of this width; 0: one that does not know its own."""
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
        environment |= {"TERM": term, **variables}
        status, text = on_a_terminal(self, *arguments, "--quiet", stream="stdout", columns=columns, env=environment)
        self.assertIn(status, (0, 1), text)
        return text.replace("\r\n", "\n")

    def write(self, *traits, name="own.yaml"):
        path = self.path(name)
        pathlib.Path(path).write_text("{" + ", ".join([OWN, *traits]) + "}\n")
        return path


class Width(Table):
    def lines(self, text):
        """Those that are as wide as the terminal has it: not messages, logs and commands, which it breaks."""
        return [line for line in COLOUR.sub("", text).splitlines() if not re.match(r"run \d+:|plan 1:|\d+ points:|against|  *\d+  [+-]", line)]

    def test_run(self):
        for columns in (50, 80, 100, 120, 200):
            text = self.on(columns, *SWEEP)
            self.assertLessEqual(max(map(len, self.lines(text))), columns, text)
            header = COLOUR.sub("", text).split("\n\n")[1].splitlines()[0]
            for word in ("schedule", " tp", " pp", "iteration", "status"):  # what was swept stays
                self.assertIn(word, header)
            left = COLOUR.sub("", text).partition("left out for width")[2]
            self.assertEqual("memory" in header, "memory_gib_max" not in left)
            self.assertEqual("MFU" in header, re.search(r"\bmfu\b", left) is None)
            if columns == 80:
                self.assertIn("(--columns NAME,... shows them, csv and json have all):", left.replace("\n", " "))
                self.assertIn("tokens/s", header)

    def test_plan(self):
        for columns in (60, 80, 120):
            text = self.on(columns, *PLAN)
            self.assertLessEqual(max(map(len, self.lines(text))), columns, text)
            self.assertEqual("left out for width" in text, "  limits" not in text)

    def test_a_terminal_without_a_width(self):
        self.assertEqual(self.on(0, *SWEEP, COLUMNS="100"), self.on(100, *SWEEP))
        self.assertEqual(self.on(0, *SWEEP), self.on(80, *SWEEP))
        self.assertEqual(self.on(0, *SWEEP, COLUMNS="wide"), self.on(80, *SWEEP))
        self.assertEqual(self.on(90, *SWEEP, COLUMNS="100"), self.on(90, *SWEEP))

    def test_a_pipe_has_none(self):
        texts = {run(*SWEEP, env={**os.environ, "COLUMNS": columns, "TERM": "xterm"}).stdout for columns in ("40", "200")}
        self.assertEqual(texts, {run(*SWEEP).stdout})


class Colour(Table):
    def test_what_does_not_fit_stands_out(self):
        text = self.on(120, *SWEEP)
        self.assertIn("\x1b[31mout_of_memory\x1b[0m", text)
        self.assertIn("\x1b[33minfeasible\x1b[0m", text)
        self.assertRegex(text, r"\n\x1b\[31mrun \d+:\x1b\[0m stage ")
        self.assertTrue(text.startswith("\x1b[2mscenario flags"))
        self.assertTrue(self.on(120, *PLAN).startswith("\x1b[2mmodel gpt3-1.3b"))
        self.assertIn("\x1b[31mno plan\x1b[0m", self.on(120, *PLAN, "--memory", "1 MiB"))

    def test_where_it_is_plain(self):
        plain = COLOUR.sub("", self.on(120, *SWEEP))
        for text in (self.on(120, *SWEEP, NO_COLOR="1"), self.on(120, *SWEEP, NO_COLOR="0"), self.on(120, *SWEEP, term="dumb"),
                     self.on(120, *SWEEP, term=""), self.on(120, *SWEEP, "--color", "never")):
            self.assertEqual(text, plain)
        self.assertNotIn("\x1b", run(*SWEEP).stdout)
        for form in ("csv", "json"):
            self.assertNotIn("\x1b", self.on(120, *SWEEP, "--format", form, "--color", "always"))

    def test_what_the_user_says_wins(self):
        coloured = self.on(120, *SWEEP)
        self.assertEqual(self.on(120, *SWEEP, NO_COLOR=""), coloured)
        self.assertEqual(self.on(120, *SWEEP, "--color", "always", NO_COLOR="1"), coloured)
        piped = run(*SWEEP, "--color", "always").stdout
        self.assertIn("\x1b[31m", piped)
        self.assertEqual(COLOUR.sub("", piped), run(*SWEEP).stdout)
        self.bad(2, "--color: 'yes'; expected auto, always or never", *SWEEP, "--color", "yes")


class Columns(Table):
    def test_run(self):
        wanted = ["mfu", "iteration_s", "name", "published_mfu", "parameters", "tokens_per_s_per_gpu"]
        given = [*SWEEP, "--tp", "8", "--columns", ",".join(wanted)]
        rows = list(csv.DictReader(io.StringIO(run(*given, "--format", "csv").stdout)))
        self.assertEqual(list(rows[0]), wanted)
        whole = list(csv.DictReader(io.StringIO(run(*SWEEP, "--tp", "8", "--format", "csv").stdout)))
        self.assertEqual(rows, [{name: row[name] for name in wanted} for row in whole])
        self.assertEqual([list(row) for row in json.loads(run(*given, "--format", "json").stdout)], [wanted] * len(rows))
        text = run(*given).stdout.split("\n\n")[1].splitlines()
        self.assertEqual(text[0].split(), ["MFU", "iteration", "name", "published", "para-", "tokens/s"])
        self.assertEqual(len(text), 3 + len(rows))

    def test_plan(self):
        wanted = ["rank", "mfu", "limits", "overlap_tp", "behind"]
        given = [*PLAN, "--columns", ",".join(wanted)]
        rows = list(csv.DictReader(io.StringIO(self.good(*given, "--format", "csv"))))
        self.assertEqual(list(rows[0]), wanted)
        whole = list(csv.DictReader(io.StringIO(self.good(*PLAN, "--format", "csv"))))
        self.assertEqual(rows, [{name: row[name] for name in wanted} for row in whole])
        plans = json.loads(self.good(*given, "--format", "json"))["plans"]
        self.assertEqual([list(plan) for plan in plans], [wanted] * 4)
        text = self.good(*given).split("\n\n")[1].splitlines()
        self.assertEqual(text[0].split(), ["rank", "MFU", "limits", "overlap_tp", "behind"])
        self.assertEqual([line.split()[0] for line in text[-4:]], ["1", "2", "3", "4"])

    def test_all(self):
        for command in (["run", "--model", "gpt3-1.3b", *CUT], PLAN):
            for form in ("csv", "json"):
                self.assertEqual(self.good(*command, "--columns", "all", "--format", form), self.good(*command, "--format", form))
            self.assertIn("peak_tflops" if command is PLAN else "  key", self.good(*command, "--columns", "all").replace("peak", "peak_tflops"))

    def test_bad_names(self):
        expected = "; expected names of the columns that --format csv has, or all"
        for command in (SWEEP, PLAN):
            self.bad(2, "--columns: 'mfuu': no such column (did you mean mfu?)" + expected, *command, "--columns", "hfu,mfuu")
            self.bad(2, "--columns: 'hfu' twice; expected it once", *command, "--columns", "hfu,hfu")
            self.bad(2, "--columns: 'all' beside others; expected it alone, or names of columns", *command, "--columns", "hfu,all")
            self.bad(2, "--columns: an empty name; expected one comma between two names", *command, "--columns", "hfu,")
        self.bad(2, "--columns: 'behnid': no such column (did you mean behind?)" + expected, *PLAN, "--columns", "behnid")

    def test_a_price_is_answered(self):
        """However narrow the terminal."""
        self.assertIn("cost of 1M", self.on(60, *SWEEP, "--price", "2.10/h"))
        self.assertIn("cost of", self.on(60, *PLAN, "--price", "2.10/h"))


class Heading(Table):
    def test_parameters(self):
        """64 (5120 (2 (40 + 8) 128 + 3 * 27648) + 2 * 5120) + 2 * 152064 * 5120 + 5120 = 32,763,417,600; GPT's, tied and with
        biases and learned positions, are another number: a wrong file is seen at once."""
        path = self.write(*TRAITS)
        text = self.good("run", "--model", path, *CUT)
        self.assertTrue(text.startswith("scenario flags, model own, 32.76B parameters, "), text)
        self.assertIn(", 32.76B parameters, ", self.good("plan", "--model", path, *CUT, "--schedule", "1f1b", "--top", "2"))
        row, = csv.DictReader(io.StringIO(self.good("run", "--model", path, *CUT, "--format", "csv")))
        count = 64 * (5120 * (2 * (40 + 8) * 128 + 3 * 27648) + 2 * 5120) + 2 * 152064 * 5120 + 5120
        self.assertEqual(float(row["parameters"]), count)
        self.assertNotIn("32.76B", self.good("run", "--model", self.write("mlp: swiglu"), *CUT))

    def test_what_is_alike(self):
        """Settings and results on which all rows agree stand above, once; of one row all results below."""
        text = self.good("run", "--model", "gpt3-13b", "--machine", "dgx-a100", "--gpus", "64", "--pp", "2,4", "--microbatches", "16")
        head, table = text.split("\n\n")[:2]
        for words in ("GPUs 64", "microbatches 16", "TP wait 0.0%"):
            self.assertIn(words, head.replace("\n", " "))
        self.assertNotIn("GPUs", table)
        self.assertIn("dp", table)

    def test_what_is_assumed(self):
        words = ("positions learned", "tied true", "bias true", "dropout true", "norm layernorm", "mlp gelu")
        for left in range(len(TRAITS) + 1):
            path = self.write(*TRAITS[left:])
            said = [word for word in words[:left]]
            expected = f"not given, so as GPT's: {', '.join(said)}\n" if said else None
            for command in (["run"], ["plan", "--schedule", "1f1b", "--top", "2"]):
                text = self.good(*command, "--model", path, *CUT)
                self.assertIn(expected, text) if expected else self.assertNotIn("not given", text)
                for form in ("csv", "json"):
                    self.assertNotIn("not given", self.good(*command, "--model", path, *CUT, "--format", form))

    def test_what_a_scenario_gives_counts(self):
        path = self.write(*TRAITS[1:])
        self.assertIn("not given, so as GPT's: positions learned\n", self.good("run", "--model", path, *CUT))
        self.assertNotIn("not given", self.good("run", "--model", path, *CUT, "--set", "setting.model.positions=rotary"))

    def test_several_models(self):
        other = self.path("other.yaml")
        pathlib.Path(other).write_text("{" + OWN.replace("own", "other") + ", mlp: swiglu}\n")
        text = self.good("run", "--model", f"{self.write(*TRAITS[1:])},{other},llama3-8b", *CUT, "--set", "setting.global_batch=64")
        self.assertIn("\nown: not given, so as GPT's: positions learned\n"
                      "other: not given, so as GPT's: positions learned, tied true, bias true, dropout true, norm layernorm\n", text)
        for count in ("32.78B", "32.01B", "8.03B"):  # in a column, where models differ
            self.assertIn(f"  {count}", text)

    def test_one_of_several_models(self):
        """What is assumed of one model is said of it alone, also where models stand in files of their own."""
        path = self.write(*TRAITS[1:])
        note = "own: not given, so as GPT's: positions learned\n"
        self.assertIn("\n" + note, self.good("run", "--model", f"{path},llama3-8b", *CUT, "--set", "setting.global_batch=64"))
        files = [self.path(name) for name in ("a.yaml", "b.yaml", "c.yaml")]
        for file, model in zip(files, (os.path.basename(path), "llama3-8b", os.path.basename(path))):
            pathlib.Path(file).write_text(f"scenario: {pathlib.Path(file).stem}\nsetting: {{model: {{from: {model}}}, machine: dgx-h100, "
                                          "gpus: 64, tp: 8, pp: 8, global_batch: 64}\n")
        text = self.good("run", *files)
        self.assertEqual((text.count("not given"), text.count("\n" + note)), (1, 1), text)

    def test_it_is_wrapped(self):
        text = self.on(40, "run", "--model", self.write("mlp: swiglu"), *CUT)
        self.assertIn("not given, so as GPT's: positions\nlearned, tied true, bias true, dropout\ntrue, norm layernorm\n", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
