"""Building blocks of one's own, from outside: `pipecast schedule --block`, `--format block`, and blocks in scenarios.

usage: test_block.py PIPECAST SOURCE_ROOT
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from command import ROOT, Command, run  # noqa: E402

BLOCKS = ROOT / "docs/examples/blocks"
NAMES = ("gpipe", "1f1b", "1f1b-r", "eager-1f1b", "1f1b-interleaved", "1f1b-interleaved-overlap",
         "1f1b-interleaved-low-memory", "looped-bfs",
         "1f1b-v", "zb-h1", "zb-h2", "zb-interleaved", "gis", "gis-h", "gis-uniform", "gis-h-uniform", "zb-1p", "zb-2p", "zb-two-thirds", "v-min", "v-half", "v-zb",
         "zb-v", "v-adaptive", "gems", "chimera")  # all that have one: dualpipe-v mixes BW, and B and W
PAIR = "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 3*p - 2 - 2*d}\n"
OWN = "block: own\nplacement: linear\ninterval: 3\n" + PAIR


class Block(Command):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return str(path)

    def block(self, *arguments):
        return json.loads(self.good("schedule", "--block", *arguments, "--format", "json"))

    # ---- schedule --block ----

    def test_examples_are_what_they_say(self):
        """Idle cells of the paper's table 1 at p 8: V-Min 4p-5 (of its rule; the best within its memory is 23), V-Half
        17, V-ZB 0; 1F1B 3(p-1) in stages, 42 in cells of half a stage."""
        for name, idle, peak in (("v-min", 27, 4), ("v-half", 17, 5), ("v-zb", 0, 8), ("1f1b", 42, 8)):
            answer = self.block(str(BLOCKS / f"{name}.yaml"), "-p", "8", "-m", "64")
            self.assertEqual(2 * answer["span"] - 6 * 64, idle, name)
            self.assertEqual(answer["max_peak_activation"], peak, name)

    def test_parallel_chunks_are_not_balanced(self):
        """Lifespans without W's wait: chunk 0 of device d from d to the end of B, 4p-1-d, and chunk 1 from p+d to 3p-1-d:
        6p - 4d together; of V-Min 4p + 2 on every device. On 8 devices the first one holds 5 and the last 2, of V-Min all
        3.5 to 4, at the same number of cells."""
        parallel = self.block(str(BLOCKS / "parallel.yaml"), "-p", "8", "-m", "64")
        folded = self.block(str(BLOCKS / "v-min.yaml"), "-p", "8", "-m", "64")
        lifespans = [sum(of) for of in parallel["block"]["lifespan"]]
        for d, lifespan in enumerate(lifespans):
            self.assertTrue(6 * 8 - 4 * d <= lifespan <= 6 * 8 - 4 * d + 8, lifespan)
        self.assertEqual((parallel["peak_activation"][0], parallel["peak_activation"][-1]), (5, 2))
        self.assertEqual(max(folded["peak_activation"]) - min(folded["peak_activation"]), 1)

    def test_json_has_bound_and_peak_of_each_device(self):
        answer = self.block(str(BLOCKS / "v-half.yaml"), "-p", "6", "-m", "48")
        block = answer["block"]
        self.assertEqual((block["interval"], block["microbatches"]), (6, 1))
        for key in ("lifespan", "peak_bound", "peak"):
            self.assertEqual(len(block[key]), 6, key)
        for bound, peak, here in zip(block["peak_bound"], block["peak"], answer["peak_activation"]):
            self.assertTrue(here <= peak <= bound)

    def test_table_tells_of_the_block(self):
        text = self.good("schedule", "--block", self.write("own.yaml", OWN), "-p", "2", "-m", "8")
        self.assertEqual(text, """\
own: 2 devices, 8 microbatches, 1 chunk a device, placement linear
  span                   27
  makespan               27
  bubble rate, span      0.1111
  bubble rate, makespan  0.1111
  bound of the span      27; proved optimal
  interval               3 a microbatch in the middle; repeating bubble 0.0000
  peak activation        2 of a stage's microbatches
  device by device       2 1
  engine                 longest paths; nothing shares a link or waits for memory, so events would give the same, to the picosecond
  block                  interval 3 cells, 1 microbatch

  device  bound  repeated  here  lifespan of each chunk in cells
       0      2         2     2  6
       1      1         1     1  3
""")

    def test_all_formats(self):
        own = self.write("own.yaml", OWN)
        for form in ("text", "torch-csv"):
            self.assertEqual(self.good("schedule", "--block", own, "-p", "4", "-m", "8", "--format", form),
                             self.good("schedule", "1f1b", "-p", "4", "-m", "8", "--format", form))

    def test_steps(self):
        """A block that leaves ten cells between F and BW: squeezed and reordered it is 1F1B; left as it is, it is not,
        and holds more."""
        own = self.write("own.yaml", "block: own\nplacement: linear\ninterval: 4\npasses:\n"
                                     "  - {kind: F, offset: 2*d}\n  - {kind: BW, offset: 14 - 2*d}\n")
        spans = {}
        for steps in ("none", "squeeze", "reorder"):
            spans[steps] = self.block(own, "-p", "2", "-m", "16", "--block-steps", steps)["span"]
        self.assertEqual(self.block(own, "-p", "2", "-m", "16")["span"], spans["reorder"])
        self.assertGreater(spans["none"], spans["squeeze"])
        self.assertGreaterEqual(spans["squeeze"], spans["reorder"])
        # The last F starts in cell 4 x 15, its BW ends 16 cells later; the first F in 0.
        self.assertEqual(spans["none"], 4 * 15 + 16)

    def test_devices_of_the_file(self):
        own = self.write("own.yaml", "devices: 4\n" + OWN)
        self.assertEqual(self.block(own, "-m", "8")["devices"], 4)
        self.bad("own: 5 devices; expected the 4 of that file", "schedule", "--block", own, "-p", "5", "-m", "8")

    def test_refusals(self):
        own = self.write("own.yaml", OWN)
        clash = self.write("clash.yaml", OWN.replace("3*p - 2", "3*p - 3"))
        for expected, arguments in (
                ("--block: stands beside the name '1f1b'", ("1f1b", "--block", own, "-p", "2", "-m", "4")),
                ("--block-steps: no block", ("1f1b", "--block-steps", "none", "-p", "2", "-m", "4")),
                ("--block-steps", ("--block", own, "--block-steps", "squeese", "-p", "2", "-m", "4")),
                ("-p is missing", ("--block", own, "-m", "4")),
                ("-m is missing", ("--block", own, "-p", "4")),
                ("1 chunk", ("--block", own, "-p", "4", "-m", "4", "-v", "2")),
                ("No such file", ("--block", own + "x", "-p", "4", "-m", "4")),
                ("empty; expected a mapping of keys", ("--block", self.write("e.yaml", ""), "-p", "4", "-m", "4")),
                ("--engine: events, of a block with steps none", ("--block", own, "--block-steps", "none", "-p", "4", "-m", "4", "--engine", "events")),
                ("--out-of-memory: wait, of a block with steps none", ("--block", own, "--block-steps", "none", "-p", "4", "-m", "4",
                                                                       "--memory-limit", "2", "--out-of-memory", "wait")),
                ("no regular file", ("--block", "/dev/null", "-p", "4", "-m", "4")),
                ("F of chunk 0 and BW of chunk 0 collide on device 0: both take cell 0 of the interval of 3",
                 ("--block", clash, "-p", "2", "-m", "4"))):
            if expected == "1 chunk":
                expected = "2 chunks a device; expected 1"
            self.bad(expected, "schedule", *arguments)

    def test_an_end_is_named_once(self):
        own = self.write("own.yaml", OWN + "ends: [{kind: F, microbatch: 9, offset: 0}]\n")
        self.bad(f"pipecast: {own}:7: ends[0]: microbatch 9 of an iteration of 4", "schedule", "--block", own, "-p", "2",
                 "-m", "4")

    def test_a_grid_is_not_called_longest_paths(self):
        own = self.write("own.yaml", OWN)
        self.assertEqual(self.block(own, "-p", "4", "-m", "8", "--block-steps", "none")["engine"], "cells")
        self.assertEqual(self.block(own, "-p", "4", "-m", "8")["engine"], "paths")
        self.assertIn("every pass starts where its cell does",
                      self.good("schedule", "--block", own, "-p", "4", "-m", "8", "--block-steps", "none"))

    def bad(self, expected, *arguments):
        """Status 2, nothing on standard output, one line that has what is expected."""
        result = run(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(expected, result.stderr)

    def test_memory_limit(self):
        """What the repeated block holds does not fit: it is shown, and what would do is said."""
        v_min = str(BLOCKS / "v-min.yaml")
        for steps in ("none", "squeeze", "reorder"):
            result = run("schedule", "--block", v_min, "-p", "4", "-m", "8", "--memory-limit", "1.5", "--block-steps",
                         steps)
            self.assertEqual(result.returncode, 1)
            self.assertIn("--memory-limit: 1.5 is too little for v-min-own; expected at least 2", result.stderr)

    def test_a_limit_of_zero_is_one(self):
        """What waits for memory where there is none says so, and no table of a run without limit follows."""
        result = run("schedule", "1f1b", "-p", "4", "-m", "8", "--memory-limit", "0", "--out-of-memory", "wait")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("F0 on device 0 waits for 1 where 0 are held, and nothing else can run", result.stderr)

    # ---- figures ----

    def test_figure_has_lifespans_and_stable_phase(self):
        picture = pathlib.Path(self.folder.name) / "own.svg"
        self.good("schedule", "--block", str(BLOCKS / "v-min.yaml"), "-p", "4", "-m", "20", "--figure", str(picture))
        drawn = picture.read_text()
        self.assertIn("Lifespans in cells", drawn)
        self.assertIn("the stable phase, which repeats itself every 3", drawn)
        self.good("schedule", "v-min", "-p", "4", "-m", "20", "--figure", str(picture))
        self.assertNotIn("Lifespans", picture.read_text())
        # Too few microbatches for one: nothing is shaded.
        self.good("schedule", "--block", str(BLOCKS / "v-min.yaml"), "-p", "4", "-m", "2", "--figure", str(picture))
        self.assertNotIn("stable phase", picture.read_text())

    # ---- there and back ----

    def test_every_name_reads_back(self):
        for name in NAMES:
            for times in ("1,1,1", "18,17,9"):
                made = ("-p", "4", "-m", "10", "--times", times)
                own = self.write("own.yaml", self.good("schedule", name, *made, "--format", "block"))
                again = self.good("schedule", "--block", own, "-m", "10", "--format", "text")
                self.assertEqual(again, self.good("schedule", name, *made, "--format", "text"), name)
                # And what is written of that is the same but for its name, which it keeps.
                text = self.good("schedule", "--block", own, "-m", "10", "--format", "block")
                self.assertEqual(text.splitlines()[0], f"block: own-{name}")

    def test_mixed_passes_are_no_block(self):
        done = run("schedule", "dualpipe-v", "-p", "4", "-m", "10", "--format", "block")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("dualpipe-v: has both BW and W; expected one or the other", done.stderr)

    def test_a_block_is_golden(self):
        self.assertEqual(self.good("schedule", "zb-h1", "-p", "4", "-m", "8", "--format", "block"), """\
block: own-zb-h1
title: as repeated on 4 devices, with 8 microbatches
devices: 4
chunks: 1
placement: linear
interval: 3
steps: squeeze
passes:
  - {kind: F, offset: d}
  - {kind: B, offset: 10 - 2*d}
  - {kind: W, offset: d + 11}
""")

    def test_a_file_of_passes_has_a_block_too(self):
        """Of an order that was loaded the whole iteration is the block."""
        order = self.write("order.csv", self.good("schedule", "zb-h1", "-p", "3", "-m", "6", "--format", "torch-csv"))
        own = self.write("own.yaml", self.good("schedule", order, "--format", "block"))
        self.assertTrue(pathlib.Path(own).read_text().startswith("block: own-order.csv\n"))
        self.assertEqual(self.good("schedule", "--block", own, "-m", "6", "--format", "text"),
                         self.good("schedule", order, "--format", "text"))

    # ---- in scenarios ----

    SCENARIO = ("scenario: s\nsetting:\n  devices: 4\n  microbatches: 8\n  times: {{F: 1 ms, BW: 2 ms}}\n{rest}")

    def rows(self, scenario, *arguments):
        return json.loads(self.good("run", scenario, "--format", "json", *arguments))

    def test_scenarios_take_blocks(self):
        self.write("own.yaml", OWN)
        scenario = self.write("s.yaml", self.SCENARIO.format(rest="sweep:\n  schedule: [1f1b, {block: own.yaml}]\n"))
        rows = self.rows(scenario)
        self.assertEqual([row["schedule"] for row in rows], ["1f1b", "own"])
        self.assertEqual([row["name"] for row in rows], ["s.1f1b", "s.own"])
        self.assertEqual(rows[0]["iteration_s"], rows[1]["iteration_s"])
        for text in ("  schedule: {block: own.yaml}\n", "  schedule: {block: own.yaml, steps: squeeze}\n",
                     "  schedule:\n    block: own.yaml\n    steps: squeeze\n",
                     "  schedule:\n    block: own.yaml  # of one's own\n\ncases:\n  - {name: s}\n"):
            self.assertEqual(self.rows(self.write("s.yaml", self.SCENARIO.format(rest=text)))[0]["schedule"], "own")

    def test_on_a_cluster(self):
        """1F1B as a block of one's own costs what 1F1B costs."""
        own = self.write("own.yaml", OWN)
        machine = ("--model", "gpt3-175b", "--machine", "dgx-h100", "--gpus", "128", "--tp", "8", "--pp", "16",
                   "--microbatches", "32")
        rows = json.loads(self.good("run", *machine, "--schedule", "1f1b", "--format", "json"))
        mine = json.loads(self.good("run", *machine, "--set", f"setting.schedule={{block: {own}}}", "--format", "json"))
        self.assertEqual(mine[0]["schedule"], "own")
        self.assertEqual(mine[0]["status"], "ok")
        for key in ("iteration_s", "bubble_rate_span", "memory_gib_max", "trace_hash"):
            self.assertEqual(mine[0][key], rows[0][key], key)

    def test_scenarios_refuse_blocks_with_file_line_and_key(self):
        self.write("own.yaml", OWN)
        self.write("bad.yaml", OWN.replace("offset: d", "offset: e"))
        self.write("grid.yaml", "steps: none\n" + OWN)
        for text, expected in (
                ("  schedule: {blok: own.yaml}\n", "s.yaml:6: setting.schedule: blok: no key of a schedule (did you mean "
                                                   "block?)"),
                ("  schedule: {steps: squeeze}\n", "s.yaml:6: setting.schedule.block: missing"),
                ("  schedule: {block: own.yaml, steps: none}\n", "expected squeeze or reorder"),
                ("  schedule: {block: own.yaml, steps: squeese}\n", "squeese: unknown"),
                ("  schedule: {block: [own.yaml]}\n", "setting.schedule.block: no text"),
                ("  schedule: {block: none.yaml}\n", "setting.schedule: "),
                ("  schedule: {block: ../own.yaml}\n", "leads out of the folder"),
                ("  schedule: {block: /etc/passwd}\n", "leads out of the folder"),
                ("  schedule: {block: grid.yaml}\n", "steps: none"),
                ("  schedule: {block: bad.yaml}\n", "bad.yaml:5: passes[0].offset: 'e' at byte 1"),
                ("  schedule: {block: own.yaml}\n  chunks: 2\n", "2 chunks a device, and schedule own has 1"),
                ("  schedule: {block: own.yaml}\nsweep:\n  microbatch: [1]\n", "s.yaml:8: sweep.microbatch: unknown key")):
            self.bad(expected, "run", self.write("s.yaml", self.SCENARIO.format(rest=text)))

    def test_a_block_that_collides_is_infeasible(self):
        """For these devices: others may be fine, so that a sweep goes on."""
        self.write("own.yaml", OWN.replace("3*p - 2 - 2*d", "3*p - 2 - 2*d - (p == 4)"))
        rest = "  schedule: {block: own.yaml}\nsweep:\n  devices: [3, 4]\n"
        result = run("run", self.write("s.yaml", self.SCENARIO.format(rest=rest)), "--format", "json")
        rows = json.loads(result.stdout)
        self.assertEqual([row["status"] for row in rows], ["ok", "infeasible"])
        self.assertIn("collide", rows[1]["message"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
