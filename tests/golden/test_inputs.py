"""The same scenario said in several ways gives the same numbers: a schedule by the options of `pipecast schedule`, by a
scenario of given times, and by the CSV that the command itself exports; a cluster by the options of `pipecast run`, by a
scenario's cases, and by --set.

usage: test_inputs.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
from command import IS_QUICK, MORE, PASSES, SLICED, Command, count, run  # noqa: E402
from command import SEARCHED as ALL_SEARCHED  # noqa: E402

OWN = ("run", "scenario", "name")  # what a row is called, and not what is in it
SEARCHED = ("zb-1p", "v-half", "v-adaptive", "zb-v")
NAMED = ("gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "chimera", "gems")


class Inputs(Command):
    def rows(self, *arguments):
        text = self.good("run", *arguments, "--format", "csv", "--quiet")
        return list(csv.DictReader(io.StringIO(text)))

    def file(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)


class Schedules(Inputs):
    """Times are in ms in the scenario, and there is 1 MiB of activations a microbatch and stage."""

    def draw(self, draws, name):
        devices = draws.choice((2, 4, 6))
        return {"name": name, "devices": devices, "microbatches": devices * draws.randint(2 if name == "dualpipe-v" else 1, 3),
                "times": [draws.randint(1, 40) / 4 for _ in "FBW"], "comm": draws.choice((0, 0.25, 0.5, 1.75)),
                "release_b": draws.choice((0, 0.5, 0.25))}

    def case(self, number, x):
        f, b, w = x["times"]
        return (f"  - {{name: s{number}, schedule: {x['name']}, devices: {x['devices']}, microbatches: {x['microbatches']},"
                f" times: {{F: {f} ms, B: {b} ms, W: {w} ms}}, transfer: {{time: {x['comm']} ms}},"
                f" activation: {{size: 1 MiB, release_b: {x['release_b']}}}}}\n")

    def costs(self, x):
        return ["-p", str(x["devices"]), "-m", str(x["microbatches"]), "--times", ",".join(map(str, x["times"])), "--comm",
                str(x["comm"]), "--release-b", str(x["release_b"])]

    def answer(self, *arguments):
        return json.loads(self.good("schedule", *arguments, "--format", "json"))

    def check_csv(self, x, by_options):
        """What it exports, read again with the same costs, is the same schedule. A name's bound is for its limit, that of a file for what
        it holds, and a file's order has no goal."""
        path = self.file("schedule.csv", self.good("schedule", x["name"], *self.costs(x), "--format", "torch-csv"))
        by_csv = self.answer(path, *self.costs(x), "-v", str(by_options["chunks"]))
        of_limit = {"bound", "gap", "optimal"} if x["name"] in ALL_SEARCHED else set()
        for key in by_options.keys() - {"name", "generate_s", "replay_s", "block", "goal"} - of_limit:
            self.assertEqual(by_csv[key], by_options[key], (x, key))

    def check_row(self, x, by_options, row):
        self.assertEqual(row["trace_hash"], by_options["trace_hash"], x)
        self.assertAlmostEqual(float(row["iteration_s"]) * 1e3, by_options["makespan"], delta=1e-9 * by_options["makespan"])
        for key in ("bubble_rate_span", "bubble_rate_makespan"):
            self.assertEqual(float(row[key]), by_options[key], (x, key))
        self.assertAlmostEqual(float(row["activation_gib_max"]) * 1024, by_options["max_peak_activation"], delta=1e-5)

    def test_options_scenario_and_csv(self):
        draws = random.Random(41)
        drawn = [self.draw(draws, name) for name in (PASSES * 2 + MORE + SLICED)[::4 if IS_QUICK else 1]]
        scenario = "scenario: schedules\ncases:\n" + "".join(self.case(i, x) for i, x in enumerate(drawn))
        rows = self.rows(self.file("schedules.yaml", scenario))
        self.assertEqual(len(rows), len(drawn))
        for x, row in zip(drawn, rows):
            by_options = self.answer(x["name"], *self.costs(x))
            self.check_row(x, by_options, row)
            if x["name"] in PASSES:
                self.check_csv(x, by_options)
        count("inputs.equal", len(drawn))


class Lines(Inputs):
    """What YAML 1.1 takes for the end of a line: behind it, a value of the command line would give keys of its own, and the comment
    in which a results file keeps it would end."""

    BREAKS = ("\u2028", "\u2029", "\x85", "\n", "\r", "\r\n")
    FIGURES = "figures: [{name: injected, x: run, y: [iteration_s]}]"

    def refused(self, start, *arguments):
        done = run(*arguments, "-o", self.path("r.h5"))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
        self.assertTrue(done.stderr.startswith("pipecast: " + start), done)
        self.assertTrue(done.stderr.endswith(": the value has a line break; expected one line\n"), done)
        self.assertFalse(any(name.startswith("r.h5") for name in os.listdir(self.folder.name)))

    def test_a_value_is_one_line(self):
        path = self.file("s.yaml", "scenario: s\nsetting: {devices: 2, microbatches: 2, schedule: 1f1b,"
                         " times: {F: 1 ms, B: 1 ms, W: 1 ms}}\n")
        cluster = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8")
        for end in self.BREAKS:
            for value in (f'title="a{end}{self.FIGURES} #"', f"title=a{end}{self.FIGURES}", f"title=a #{end}]", f"setting.tp=1{end}",
                          f"{end}title=a", f"setting.machine=a{end}title: b", f'setting.model.name="{end}"'):
                self.assertEqual(run("run", path, "--set", value).returncode, 2, value)
            self.refused("--set title", "run", path, "--set", f'title="a{end}{self.FIGURES} #"')
            for option, value in (("model", "gpt3-1.3b"), ("schedule", "1f1b"), ("machine", "dgx-a100"), ("profile", "x.h5"),
                                  ("recompute", "none"), ("layout", "even"), ("price", "2/h")):
                self.refused(f"--{option}", "run", *cluster, f"--{option}", f"{value} #{end}title: b")
                self.refused(f"--{option}", "plan", *cluster, f"--{option}", f"{value} #{end}title: b")
            self.refused("--objective", "plan", *cluster, "--objective", f"cost #{end}x")

    def test_what_is_kept_can_be_read(self):
        """Of a value with everything that may stand in a line the results file can be read again, and declares nothing."""
        path = self.file("s.yaml", "scenario: s\nsetting: {devices: 2, microbatches: 2, schedule: 1f1b,"
                         " times: {F: 1 ms, B: 1 ms, W: 1 ms}}")  # without an end of its last line
        for title in ('"\ufeff\u200b\u202e\u2066\u00ad\U000e0041 #"', "'# ] }'", '"%TAG --- ..."'):
            self.good("run", path, "--set", f"title={title}", "-o", self.path("r.h5"), "--fresh")
            self.assertNotIn("chart", self.good("figure", self.path("r.h5"), "--list"))


class Clusters(Inputs):
    def draw(self, draws):
        """Options of `pipecast run`, without their dashes."""
        pp = draws.choice((1, 2, 4))
        x = {"model": draws.choice(("gpt3-1.3b", "gpt3-2.7b", "llama3-8b")), "machine": draws.choice(("dgx-a100", "mi300x")),
             "tp": draws.choice((1, 2, 8)), "pp": pp, "dp": draws.choice((1, 4)),
             "schedule": draws.choice(NAMED + SEARCHED), "microbatch-size": draws.choice((1, 2)),
             "microbatches": 2 * pp * draws.randint(1, 3), "seq-len": draws.choice((512, 1024)),
             "attention": draws.choice(("flash", "materialised")), "recompute": draws.choice(("none", "selective")),
             "zero": draws.randint(0, 3), "rank-order": draws.choice(("tp-dp-pp", "tp-pp-dp")),
             "memory": draws.choice(("64 GiB", "0.0625 TiB")), "pass-overhead": draws.choice((0, 0.03)),
             "price": "2.10/h"}
        x["cross-entropy"] = ("in-place", "plain", "fused", "chunked")[x["zero"]]
        x.update(draws.choice(({"network": "closed"}, {"network": "flows"}, {"granularity": "operations"},
                               {"samples": 3, "jitter": 0.05, "slow-gpus": 1, "slow-factor": 1.5, "network": "closed"},
                               {"samples": 2, "mtbf": "90 days", "checkpoint": "30 s", "spare-nodes": 1})))
        return x

    KEYS = {"model": "model.from", "seq-len": "model.seq_len", "attention": "model.attention", "slow-gpus": "bad_days.slow_gpus",
            "slow-factor": "bad_days.slow_factor", "mtbf": "job.mtbf", "checkpoint": "job.checkpoint",
            "spare-nodes": "job.spare_nodes"}

    def keys(self, x):
        """The key of a setting that each option stands for."""
        return {self.KEYS.get(option, option.replace("-", "_")): value for option, value in x.items()}

    def case(self, number, x):
        groups = {}
        for key, value in self.keys(x).items():
            outer, _, inner = key.partition(".")
            if inner:
                groups.setdefault(outer, []).append(f"{inner}: {value}")
            else:
                groups[outer] = value
        said = ", ".join(f"{key}: {{{', '.join(value)}}}" if isinstance(value, list) else f"{key}: {value}"
                         for key, value in groups.items())
        return f"  - {{name: c{number}, {said}}}\n"

    def compare(self, x, a, b):
        for key in a.keys() - set(OWN):
            self.assertEqual(a[key], b[key], (x, key))

    def test_options_scenario_and_sets(self):
        draws = random.Random(42)
        drawn = [self.draw(draws) for _ in range(8 if IS_QUICK else 20)]
        rows = self.rows(self.file("clusters.yaml", "scenario: clusters\ncases:\n" + "".join(map(self.case, range(20), drawn))))
        empty = self.file("empty.yaml", "scenario: empty\n")
        self.assertEqual(len(rows), len(drawn))
        self.assertGreater(len({row["key"] for row in rows}), 3 * len(drawn) // 4)
        for x, row in zip(drawn, rows):
            by_options = self.rows(*(word for option, value in x.items() for word in ("--" + option, str(value))))
            sets = (word for key, value in self.keys(x).items() for word in ("--set", f"setting.{key}={value}"))
            by_sets = self.rows(empty, *sets)
            self.compare(x, by_options[0], row)
            self.compare(x, by_sets[0], row)
        count("inputs.equal", len(drawn))

    def test_lists_are_a_sweep(self):
        sweep = ("scenario: sweep\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100, microbatches: 8}\n"
                 "sweep: {schedule: [1f1b, zb-h1], tp: [1, 2], pp: [2, 4]}\n")
        by_options = self.rows("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--microbatches", "8", "--schedule", "1f1b,zb-h1",
                               "--tp", "1,2", "--pp", "2,4")
        rows = {row["key"]: row for row in self.rows(self.file("sweep.yaml", sweep))}
        self.assertEqual(len(rows), 8)
        for row in by_options:
            self.compare("sweep", row, rows.pop(row["key"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
