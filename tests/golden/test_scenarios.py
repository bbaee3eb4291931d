"""Scenarios from outside: the reference of their keys, the charts they declare, and what options sweep.

usage: test_scenarios.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SCENARIO = """\
scenario: small
setting:
  devices: 4
  microbatches: 8
  times: {F: 3 ms, B: 4 ms, W: 2 ms}
  activation: {size: 1 GiB}
sweep:
  schedule: [v-adaptive, 1f1b]
  memory: [3 GiB, 4.5 GiB]
  making: [costs, equal]
figures:
  - name: bubble
    x: memory_limit_gib
    y: [bubble_rate_span, activation_gib_max]
    series: making
"""


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


class Scenarios(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, text):
        path = pathlib.Path(self.folder.name, "small.yaml")
        path.write_text(text)
        return str(path)

    def rows(self, *arguments, status=0):
        done = run("run", *arguments, "--format", "csv")
        self.assertEqual((done.returncode, done.stderr), (status, ""), done)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def bad(self, message, *arguments):
        done = run(*arguments, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))


class Counts(Scenarios):
    """`moe_load: given`: of 8 experts over two ranks one has half of the tokens, so a rank has (4 + 3) / 8 of all, 1.75 times
    its even share; and what is refused."""

    SETTING = "scenario: counted\nsetting: {model: {from: mixtral-8x7b}, machine: dgx-h100, gpus: 8, ep: 2, global_batch: 64, memory: 400 GiB%s}\n"

    def count(self, text):
        pathlib.Path(self.folder.name, "counts.csv").write_text(text)
        return self.write(self.SETTING % ", moe_load: given, moe_load_counts: counts.csv")

    def test_the_fullest_rank_decides(self):
        def seconds(path):
            return float(self.rows(path)[0]["iteration_s"])

        even, uneven, other = (seconds(self.count(text)) for text in ("1,1,1,1,1,1,1,1\n", "4,1,1,1,1,0,0,0\n", "0,0,0,1,4,1,1,1\n"))
        self.assertGreater(uneven, even)
        self.assertEqual(uneven, other)  # as full a rank, but the other one

    def test_refusals(self):
        path = self.write(self.SETTING % ", moe_load_counts: counts.csv")
        pathlib.Path(self.folder.name, "counts.csv").write_text("1,1,1,1,1,1,1,1\n")
        self.bad(f"{path}:2: setting.moe_load_counts: stands without moe_load: given; expected both or none", "run", path)
        row = self.rows(self.count("1,1,1\n"), status=1)[0]
        self.assertEqual((row["status"], row["message"]), ("infeasible", "moe_load_counts has 3 experts a layer; expected the 8 of num_experts"))
        for text, what in (("1,1,1,1,1,1,1,-1\n", "counts.csv:1: "), ("", "counts.csv")):
            done = run("run", self.count(text))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertIn(what, done.stderr)
            self.assertIn("; expected ", done.stderr)


class Keys(Scenarios):
    def test_the_reference_is_what_the_command_prints(self):
        done = run("list", "keys", "--format", "markdown")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((ROOT / "docs/scenario-reference.md").read_text(), done.stdout,
                         "docs/scenario-reference.md: expected `pipecast list keys --format markdown`")

    def test_the_table_says_the_same(self):
        """Every key, in the same order; no line too wide for a terminal."""
        page, table = run("list", "keys", "--format", "markdown").stdout, run("list", "keys").stdout
        keys = re.findall(r"^\| `(\S+)` \|", page, re.M)
        self.assertGreater(len(keys), 120)
        self.assertEqual(re.findall(r"^  (\S+)$", table, re.M), keys)
        self.assertEqual(table, run("list", "keys", "--format", "table").stdout)
        self.assertEqual([line for line in table.splitlines() if len(line) > 100 or line != line.rstrip()], [])
        self.assertNotIn("`", table)

    def test_tables_are_whole(self):
        """Every row of a table has as many cells as its head."""
        columns = 0
        for line in (ROOT / "docs/scenario-reference.md").read_text().splitlines():
            if not line.startswith("|"):
                columns = 0
                continue
            columns = columns or line.count("|")
            self.assertEqual(line.count("|"), columns, line)

    def test_bad_words(self):
        self.bad("list: --format: unknown format 'html'; expected table, json, markdown or flags", "list", "keys", "--format", "html")
        self.bad("list: --format: unknown format 'markdown'; expected table or json", "list", "models", "--format", "markdown")
        self.bad("list: 'key' (did you mean keys?); expected schedules, models, machines, software, precisions, profiles, scenarios or keys", "list", "key")


class Sweeps(Scenarios):
    def test_memory_and_making(self):
        rows = {row["name"]: row for row in self.rows(self.write(SCENARIO), status=1)}
        self.assertEqual(len(rows), 8)
        for room in ("3GiB", "4.5GiB"):
            for making in ("costs", "equal"):
                row = rows[f"small.v-adaptive.making-{making}.mem{room}"]
                self.assertEqual((row["status"], row["making"], row["memory_limit_gib"]), ("ok", making, room[:-3]))
                self.assertLessEqual(float(row["activation_gib_max"]), float(room[:-3]))
                other = rows[f"small.1f1b.making-{making}.mem{room}"]
                self.assertEqual((other["status"], other["making"]), ("out_of_memory" if room == "3GiB" else "ok", ""))

    def test_chunks(self):
        """Searches over several chunks keep the memory that there is, and are refused numbers of chunks that they have not."""
        text = SCENARIO.replace("[v-adaptive, 1f1b]", "[v-adaptive, interleaved-adaptive]").replace("sweep:", "sweep:\n  chunks: [2, 3, 4]")
        rows = self.rows(self.write(text))
        self.assertEqual(len(rows), 2 * 3 * 2 * 2)
        for row in rows:
            self.assertEqual(row["status"], "ok")
            self.assertLessEqual(float(row["activation_gib_max"]), float(row["memory_limit_gib"]))
        self.assertEqual({row["virtual_pp"] for row in rows}, {"2", "3", "4"})
        done = run("run", self.write(text.replace("[2, 3, 4]", "[5]")))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("v-adaptive: 5 chunks a device; expected 2 to 4", done.stdout + done.stderr)

    def test_chunks_of_plans(self):
        """Of numbers that a schedule cannot have, it takes its own: 2 in the place of 1 and 5."""
        done = run("plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--global-batch", "16", "--tp", "2", "--pp", "4",
                   "--zero", "0", "--recompute", "none", "--microbatch-size", "2", "--schedule", "v-adaptive", "--chunks", "1,2,3,5", "--all-variants",
                   "--format", "csv")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual({row["virtual_pp"] for row in rows}, {"2", "3"})

    def test_from_outside(self):
        path = self.write(SCENARIO)
        names = [row["name"] for row in self.rows(path, "--memory", "5 GiB", "--making", "equal")]
        self.assertEqual(names, ["small.v-adaptive", "small.1f1b"])
        names = [row["name"] for row in self.rows(path, "--set", "sweep.memory=[5 GB, 6 GiB, 7000 MB]", "--making", "equal")]
        self.assertEqual(names[::2], [f"small.v-adaptive.mem{room}" for room in ("5GB", "6GiB", "7GB")])

    def test_options_of_a_cluster(self):
        rows = self.rows("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--pp", "4", "--microbatches", "8", "--schedule",
                         "v-half", "--memory", "40 GiB,60 GiB", "--making", "costs,equal", "--attention",
                         "flash,materialised", "--layout", "even")
        self.assertEqual([row["name"] for row in rows],
                         [f"flags.v-half.{attention}.making-{making}.mem{room}GiB" for room in (40, 60)
                          for attention in ("flash", "materialised") for making in ("costs", "equal")])
        for row in rows:
            self.assertEqual(row["memory_limit_gib"], re.search(r"mem(\d+)GiB", row["name"])[1])
        self.bad("--making: even: unknown word; expected one of costs, equal, published, torch, megatron", "run", "--model", "gpt3-1.3b", "--machine",
                 "dgx-a100", "--making", "even")


class Figures(Scenarios):
    def test_columns_are_checked_before_the_first_run(self):
        for figure in ["x: memory_limit", "series: makings", "y: [making]"]:
            key = figure.split(":")[0]
            path = self.write(re.sub(rf"^    {key}: .*$", f"    {figure}", SCENARIO, flags=re.M))
            done = run("run", path, "-o", os.path.join(self.folder.name, "r.h5"))
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, rf"^pipecast: {re.escape(path)}: figures: bubble: {key}.*; expected .*\n$")
            self.assertEqual(os.listdir(self.folder.name), ["small.yaml"])

    def test_good_ones_do_not_stand_in_the_way(self):
        self.assertEqual(len(self.rows(self.write(SCENARIO), status=1)), 8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
