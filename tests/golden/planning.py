"""What tests of `pipecast plan` ask: a tiny model's plans, as options and as a file, and how their answers are read."""
import csv
import io
import json
import pathlib

from command import Command, run

SETTING = """\
scenario: tiny
setting:
  model: {name: tiny, layers: 4, hidden: 1024, heads: 8, seq_len: 512, vocab: 8000}
  machine: dgx-a100
  gpus: 8
  global_batch: 16
  memory: 0.4 GiB
  offload: none
  search_effort: quick
"""
USUAL = ("--schedule", "1f1b,1f1b-interleaved,zb-h1")
LISTS = {"tp": ["1", "2", "4"], "pp": ["1", "2", "4"], "chunks": ["2", "4"], "microbatch_size": ["1", "2"],
         "schedule": ["1f1b", "1f1b-interleaved", "v-half"], "layout": ["even", "ends", "own"], "recompute": ["none", "full"], "zero": ["0", "1"]}
ORDERS, SWITCHES = ["tp-dp-pp", "dp-tp-pp"], ["true", "false"]
PLAN = SETTING + "plan:\n" + "".join(f"  {key}: [{', '.join(values)}]\n" for key, values in LISTS.items()) + (
    f"  rank_order: [{', '.join(ORDERS)}]\n  sequence_parallel: [{', '.join(SWITCHES)}]\n"
    f"  overlap: {{gradients: [{', '.join(SWITCHES)}]}}\n")
SWEEP = SETTING + "sweep:\n" + "".join(f"  {key}: [{', '.join(values)}]\n" for key, values in LISTS.items())
KINDS = ("tp", "cp", "ep", "pp", "dp", "optimizer", "bubble")


def numbers(row):
    """A row of a CSV with its numbers as such."""
    def read(text):
        try:
            return float(text)
        except ValueError:
            return text
    return {key: read(value) for key, value in row.items()}


class Plan(Command):
    def write(self, text, name="plan.yaml"):
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def plan(self, *arguments):
        """What it finds; the status says whether that is anything."""
        done = run("plan", *arguments, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done)
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode == 0, len(found["plans"]) > 0)
        return found

    def rows(self, *arguments):
        done = run("run", *arguments, "--format", "csv")
        self.assertIn(done.returncode, (0, 1), done)
        return [numbers(row) for row in csv.DictReader(io.StringIO(done.stdout))]
