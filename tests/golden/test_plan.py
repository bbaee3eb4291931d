"""`pipecast plan` from outside: its plans are those of an enumeration by `pipecast run`, and its words are true.

usage: test_plan.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from command import PIPECAST, on_a_terminal, run, full_only, plain_only
from planning import KINDS, LISTS, ORDERS, PLAN, SETTING, SWEEP, SWITCHES, USUAL, Plan, numbers


def key_of(row, order, overlap):
    """What tells plans apart. Where a choice makes no difference there is one point: chunks of schedules that have none,
    the order of axes that have one rank, sharding over one replica, layouts of one or two model parts."""
    has_replicas = row["dp"] > 1
    layout = row["layout"] if row["pp"] * row["virtual_pp"] > 2 else None
    return (*(row[key] for key in ("tp", "pp", "dp", "virtual_pp", "schedule", "microbatch_size", "recompute",
                                   "sequence_parallel")),
            layout, row["zero"] if has_replicas else None, overlap if has_replicas else None,
            tuple(axis for axis in order.split("-") if row[axis] > 1))


def cut_of(row):
    return tuple(row[axis] for axis in ("machine", "gpus", "tp", "pp", "dp"))


class Enumeration(Plan):
    """All points by `pipecast run`: a sweep for what sweeps can list, and a call for each combination of the rest."""

    @classmethod
    def setUpClass(cls):
        cls.points = {}

    def enumerate(self):
        if not Enumeration.points:
            path = self.write(SWEEP, "sweep.yaml")
            for order, parallel, overlap in itertools.product(ORDERS, SWITCHES, SWITCHES):
                sets = [f"setting.rank_order={order}", f"setting.sequence_parallel={parallel}",
                        f"setting.overlap.gradients={overlap}", "setting.price=2.5/h"]
                for row in self.rows(path, *[word for text in sets for word in ("--set", text)]):
                    interleaves = row["virtual_pp"] > 1 if row["pp"] > 1 else row["schedule"] == "1f1b"
                    if row["status"] == "ok" and (interleaves or row["schedule"] == "1f1b"):
                        Enumeration.points[key_of(row, order, overlap)] = row
        return list(Enumeration.points.values())

    def check_best(self, of, count, *arguments):
        """The values of the best, in order, of each cut and of all: which of equals comes first is the planner's."""
        path, cuts = self.write(PLAN), {}
        for row in self.enumerate():
            cuts.setdefault(cut_of(row), []).append(of(row))
        for best, more in ((sorted(map(min, cuts.values())), ()),
                           (sorted(itertools.chain(*cuts.values())), ("--all-variants",))):
            found = self.plan(path, "--top", str(count), *arguments, *more)["plans"]
            self.assertEqual([of(plan) for plan in found], best[:count])
            if not more:
                self.assertEqual(len({cut_of(plan) for plan in found}), len(found))

    def test_the_enumeration_is_one(self):
        """More than a few points fit, and more than a few do not."""
        self.assertGreater(len(self.enumerate()), 200)
        log = self.plan(self.write(PLAN))["log"]
        self.assertGreater(log["broken_rule"], 50)
        self.assertGreater(log["over_memory"], 50)

    def test_throughput(self):
        for top in (1, 3, 10, 40):
            self.check_best(lambda row: row["iteration_s"], top)

    def test_memory(self):
        self.check_best(lambda row: row["memory_gib_max"], 10, "--objective", "memory")

    def test_cost(self):
        self.check_best(lambda row: row["cost_per_million_tokens"], 10, "--objective", "cost", "--price", "2.5/h")

    def test_limits(self):
        points = sorted(row["iteration_s"] for row in self.enumerate())
        middle = points[len(points) // 2]
        found = self.plan(self.write(PLAN), "--objective", "memory", "--most-iteration", f"{middle * 1.0000001:.12f} s")
        least = min(row["memory_gib_max"] for row in self.enumerate() if row["iteration_s"] <= middle)
        self.assertEqual(found["plans"][0]["memory_gib_max"], least)
        self.assertLessEqual(max(plan["iteration_s"] for plan in found["plans"]), middle * 1.0000001)

    def test_front(self):
        """No point is better in one and as good in the other; as many values as the enumeration's front has."""
        values = {(row["iteration_s"], row["memory_gib_max"]) for row in self.enumerate()}
        front = sorted(a for a in values if not any(b[0] <= a[0] and b[1] <= a[1] and b != a for b in values))
        found = self.plan(self.write(PLAN), "--objective", "throughput,memory")["plans"]
        self.assertGreater(len(front), 3)
        self.assertEqual([(plan["iteration_s"], plan["memory_gib_max"]) for plan in found], front)

    @full_only
    def test_exhaustive_finds_the_same(self):
        path = self.write(PLAN)
        for objective in ("throughput", "memory", "cost", "throughput,memory"):
            found = [self.plan(path, "--objective", objective, *more) for more in ((), ("--exhaustive",))]
            self.assertEqual(found[0]["plans"], found[1]["plans"])
            self.assertGreater(found[1]["log"]["simulated"], found[0]["log"]["simulated"])


class Runs(Plan):
    """A plan is a run."""

    def check_commands(self, found):
        for plan in found["plans"]:
            words = shlex.split(plan["command"])
            self.assertEqual(words[:2], ["pipecast", "run"])
            rows = self.rows(*words[2:])
            self.assertEqual(len(rows), 1, plan["command"])
            for column in ("iteration_s", "memory_gib_max", "mfu", "trace_hash", "key", "cost_per_million_tokens", *LISTS):
                column = "virtual_pp" if column == "chunks" else column
                self.assertEqual(str(numbers({"x": "" if plan[column] is None else str(plan[column])})["x"]),
                                 str(rows[0][column]), (plan["command"], column))

    def test_commands_of_a_file(self):
        self.check_commands(self.plan(self.write(PLAN), "--price", "2.10/h", "--set", "setting.pass_overhead=0.01",
                                      "--top", "6"))

    def test_commands_of_options(self):
        self.check_commands(self.plan("--model", "gpt3-1.3b", "--machine", "dgx-a100,dgx-h100", "--price", "1/h,2/h",
                                      "--gpus", "8,16", "--tp", "1..2", "--zero", "1,3", "--objective", "cost",
                                      "--schedule", "zb-h1,v-min", "--recompute", "none", "--top", "4"))

    def test_commands_of_one_layout(self):
        """Which stands in quotes in the set that the option is short for, and in none in the command."""
        for layout in ("ends", "auto"):
            found = self.plan("--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "16", "--tp", "4", "--pp", "2",
                              "--chunks", "17", "--layout", layout, "--schedule", "1f1b-interleaved", "--top", "2")
            command = found["plans"][0]["command"]
            self.assertEqual(command.count(" --layout "), 1)  # what `auto` comes to is said alone
            self.assertIn(f" --layout {layout if layout != 'auto' else found['plans'][0]['layout']} ", command)
            self.check_commands(found)

    def test_machines_count_from_the_files_folder(self):
        """A scenario in another folder, whose machine lies beside it."""
        folder = pathlib.Path(self.path("own folder"))
        folder.mkdir()
        (folder / "ours.yaml").write_text("machine: ours\nfrom: dgx-a100\nsource: a test\noversubscription: 2\n")
        path = folder / "plan.yaml"
        path.write_text(PLAN + "  machine: [./ours.yaml, dgx-a100]\n  top: 2\n")
        self.check_commands(self.plan(str(path)))

    def test_profile(self):
        """Costs from a profile, in the search and in the plans; warnings are of the plans alone."""
        kernels, profile = self.path("k.csv"), self.path("p.h5")
        with open(kernels, "w") as file:
            file.write("op,role,b,m,n,k,causal,bytes,time_us\n")
            for role, *sizes in itertools.product(("forward", "input_gradient", "weight_gradient"), *[(256, 1024, 4096)] * 3):
                m, n, k = sizes
                file.write(f"gemm,{role},1,{m},{n},{k},,,{4 + 2 * m * n * k / 2e7:.6f}\n")
        run("profile", "fit", kernels, "-o", profile, "--gpu", "a100-sxm-80gb", "--processors", "108")
        done = run("plan", self.write(PLAN), "--profile", profile, "--top", "1", "--format", "json")
        found = json.loads(done.stdout)
        self.check_commands(found)
        self.assertGreater(found["plans"][0]["iteration_s"], 1.5 * self.plan(self.write(PLAN))["plans"][0]["iteration_s"])
        self.assertEqual(done.stderr, run(*shlex.split(found["plans"][0]["command"])[1:]).stderr)
        self.assertIn("warning", done.stderr)

    def test_results_file(self):
        """Rows as they are printed; the scenario with what was set; one run a plan, and its trace where it asks."""
        path, output = self.write(PLAN), self.path("plans.h5")
        found = self.plan(path, "-o", output, "--set", "setting.trace=true", "--top", "3")["plans"]
        rows = json.loads(self.good("export", output, "--to", "json"))
        self.assertEqual(rows, [{key: plan[key] for key in rows[0]} for plan in found])
        self.assertEqual([row["name"] for row in rows], ["plan-1", "plan-2", "plan-3"])
        self.assertIn("plan-2", self.good("export", output, "--run", "plan-2", "--to", "chrome"))

    def test_results_replace_nothing_else(self):
        output = self.write("precious", "notes.txt")
        done = run("plan", self.write(PLAN), "-o", output)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"pipecast: {output}: is not an HDF5 file; expected a results file of pipecast; what is "
                                      "no results file is not replaced\n")
        self.assertEqual(pathlib.Path(output).read_text(), "precious")

    def test_run_passes_over_the_plan(self):
        self.assertEqual(self.rows(self.write(PLAN))[0]["iteration_s"],
                         self.rows(self.write(SETTING, "setting.yaml"))[0]["iteration_s"])

    def test_price(self):
        """A GPU-hour for so many tokens, by hand."""
        row, = self.rows("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--price", "2.10 /h",
                         "--microbatch-size", "2", "--recompute", "full")
        hours = 8 * row["iteration_s"] / 3600 / (row["global_batch"] * row["seq_len"]) * 1e6
        self.assertAlmostEqual(row["gpu_hours_per_million_tokens"] / hours, 1, places=12)
        self.assertAlmostEqual(row["cost_per_million_tokens"] / hours, 2.10, places=12)


class Choices(Plan):
    def test_options_say_what_a_file_says(self):
        setting, lists = self.write(SETTING, "setting.yaml"), [f"--{k.replace('_', '-')}={','.join(v)}"
                                                               for k, v in LISTS.items()]
        said = self.plan(setting, *lists, "--rank-order", ",".join(ORDERS), "--sequence-parallel", ",".join(SWITCHES),
                         "--set", "plan.overlap.gradients=[true, false]")
        written = self.plan(self.write(PLAN))
        for plan in said["plans"] + written["plans"]:
            del plan["command"]
        self.assertEqual(said, written)

    def test_a_sweep_is_a_choice_and_a_set_wins(self):
        path = self.write(SWEEP)
        whole = self.plan(path, "--rank-order", "tp-dp-pp")
        self.assertEqual(whole["log"]["points"], self.plan(self.write(PLAN), "--rank-order", "tp-dp-pp", "--set",
                                                           "setting.sequence_parallel=true", "--set",
                                                           "setting.overlap.gradients=true")["log"]["points"])
        fixed = self.plan(path, "--rank-order", "tp-dp-pp", "--tp", "2")
        self.assertEqual({plan["tp"] for plan in fixed["plans"]}, {2})
        self.assertEqual({plan["tp"] for plan in self.plan(path, "--tp", "2", "--tp", "1,4")["plans"]} - {1, 4}, set())

    def test_defaults(self):
        """Every list that nobody gives, counted: all others have one value. Of GPT-3 1.3B: 24 layers, 16 heads. Of 64
        GPUs pp is a divisor, too; 26 layers, as `ends` counts them, do not divide over 4 parts."""
        fixed = {"tp": "1", "pp": "2", "chunks": "2", "microbatch_size": "1", "schedule": "1f1b-interleaved",
                 "layout": "even", "recompute": "none", "zero": "1", "rank_order": "tp-dp-pp", "offload": "none",
                 "shard_group": "64"}  # which is all replicas
        divisors = [n for n in range(1, 25) if 24 % n == 0]
        counts = {"tp": len([1, 2, 4, 8]), "pp": len([1, 2, 4, 8]), "layout": len(["even", "own", "balanced"]), "chunks": len(divisors) - 1,
                  "microbatch_size": len([1, 2, 4, 8, 16, 32]), "schedule": 9, "recompute": 3, "zero": 4, "rank_order": 2,
                  "offload": len(["none", "optimizer"]), "shard_group": len(["all", 8]),
                  "overlap.tp": 1, "sequence_parallel": 1}
        for name, count in counts.items():
            given = {**fixed, **({"tp": "2"} if name == "sequence_parallel" else {}),
                     **({"pp": "all"} if name == "chunks" else {})}
            given.pop(name, None)
            if given.get("pp") == "all":
                given["pp"] = ",".join(map(str, divisors))
            log = self.plan("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "64", "--global-batch", "96",
                            *[f"--{key.replace('_', '-')}={value}" for key, value in given.items()])["log"]
            points = log["points"] // len(divisors) if name == "chunks" else log["points"]
            self.assertEqual(points, count, name)
        flash, materialised = (self.plan("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--attention", kind,
                                         *[f"--{key.replace('_', '-')}={value}" for key, value in fixed.items()
                                           if key != "recompute"])["log"]["points"] for kind in ("flash", "materialised"))
        self.assertEqual((flash, materialised), (3, 4))

    def test_all_schedules(self):
        names = [line.split()[0] for line in self.good("list", "schedules").splitlines()]
        path = self.write(SETTING)
        fixed = ["--tp", "1", "--pp", "2", "--chunks", "2", "--microbatch-size", "1", "--zero", "1", "--recompute", "none",
                 "--rank-order", "tp-dp-pp", "--memory", "40 GiB", "--layout", "even", "--offload", "none"]
        found = self.plan(path, *fixed, "--schedule", "all", "--top", "100", "--all-variants")
        names = [name for name in names if "-vocab-" not in name]  # those are asked for by name
        self.assertEqual(found["log"]["points"], len(names))
        self.assertLessEqual({plan["schedule"] for plan in found["plans"]}, set(names))
        self.assertGreater(len(found["plans"]), 15)

    def test_threads_leave_no_mark(self):
        path = self.write(PLAN)
        for form in ("table", "csv", "json"):
            outputs = {self.good("plan", path, "--format", form, "--jobs", jobs) for jobs in ("1", "2", "3")}
            self.assertEqual(len(outputs), 1)


class Layouts(Plan):
    """Models whose layers do not divide: 126 as `ends` are 128 over 32 stages x 4 chunks, 46 are 48 over 16."""

    def best(self, *arguments):
        return self.plan("--top", "3", *USUAL, *arguments)

    def test_llama3_405b(self):
        given = ("--model", "llama3-405b", "--machine", "dgx-h100", "--gpus", "16384", "--tp", "8")
        plan, *_ = self.best(*given)["plans"]
        self.assertEqual((plan["layout"], plan["pp"], plan["virtual_pp"]), ("ends", 32, 4))
        alone = self.best(*given, "--layout", "ends")["plans"][0]
        self.assertEqual(alone["iteration_s"], plan["iteration_s"])
        self.assertGreater(plan["mfu"], 1.1 * self.best(*given, "--layout", "even")["plans"][0]["mfu"])

    def test_a_model_of_46_layers(self):
        given = ("--model", "cm-21b", "--machine", "dgx-a100", "--gpus", "1024")
        found = self.best(*given)["plans"]
        self.assertEqual({plan["layout"] for plan in found} - {"ends", "own"}, set())
        self.assertEqual(self.best(*given, "--layout", "even", "--tp", "1,2,4,8")["plans"], [])
        even = self.best(*given, "--layout", "even")["plans"]  # a batch of 96 on 128 nodes: tp over two of them
        self.assertEqual({plan["tp"] for plan in even}, {16})
        self.assertGreater(even[0]["iteration_s"], found[0]["iteration_s"])

    def test_rows_are_cuts(self):
        """One row a cut, and a command for it; all variants of the best of them behind the flag."""
        path = self.write(PLAN)
        cuts, every = self.plan(path, "--top", "100")["plans"], self.plan(path, "--top", "5000", "--all-variants")["plans"]
        self.assertEqual(len({cut_of(plan) for plan in cuts}), len(cuts))
        self.assertEqual({cut_of(plan) for plan in cuts}, {cut_of(plan) for plan in every})
        self.assertGreater(len(every), 10 * len(cuts))
        self.assertEqual(cuts[0]["command"], every[0]["command"])
        self.assertIn("--layout", cuts[0]["command"])

    def test_nothing_is_interleaved_on_one_stage(self):
        log = self.plan("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--pp", "1", "--top", "1000",
                        "--all-variants", *USUAL)
        self.assertEqual({plan["schedule"] for plan in log["plans"]}, {"1f1b", "zb-h1"})
        self.assertGreater(log["log"]["broken"]["interleaving"], 0)

    def test_what_lifts_the_rule(self):
        """6 layers over 4 stages: `ends` has 8 for them, and the same command with it finds plans."""
        path = self.write(SETTING.replace("layers: 4", "layers: 6"))
        given = (path, "--tp", "1,2", "--pp", "4", "--layout", "even", "--schedule", "1f1b", "--memory", "40 GiB")
        found = self.plan(*given)
        self.assertEqual(found["plans"], [])
        self.assertRegex(found["log"]["rule"], r"^6 layers do not divide by pp x chunks, laid out even \((\d+) points\); "
                         r"--layout ends lifts that for \d+ points$")
        option = re.search(r"--layout ends", found["log"]["rule"]).group().split()
        self.assertGreater(len(self.plan(*given, *option)["plans"]), 0)
        table = run("plan", *given).stdout
        self.assertIn(f" rule that stops the points that come furthest: {found['log']['rule']} ", " ".join(table.split()) + " ")  # which is broken into lines


class Words(Plan):
    def test_the_log_adds_up(self):
        for more in ((), ("--exhaustive",), ("--objective", "memory"), ("--memory", "1 MiB")):
            log = self.plan(self.write(PLAN), *more)["log"]
            self.assertEqual(sum(log[key] for key in ("broken_rule", "over_memory", "too_slow", "simulated")), log["points"])
            self.assertEqual(sum(log["broken"].values()), log["broken_rule"])
            self.assertLessEqual(log["simulated_over_memory"] + log["simulated_infeasible"], log["simulated"])

    @full_only
    def test_more_points_than_are_kept_at_once(self):
        """The search keeps 1,024 candidates at first: with more of them none is lost, and none is simulated twice."""
        given = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--set", "setting.global_batch=64",
                 "--top", "1100", "--all-variants", *USUAL)
        searched, every = self.plan(*given), self.plan(*given, "--exhaustive")
        self.assertEqual(every["log"]["simulated"], every["log"]["points"] - every["log"]["broken_rule"])
        self.assertGreater(every["log"]["simulated"], 1100)
        self.assertEqual(searched["plans"], every["plans"])
        self.assertEqual(len({plan["command"] for plan in every["plans"]}), len(every["plans"]))
        alone = [plan for plan in every["plans"] if 1 in (plan["pp"], plan["dp"])]  # orders of both are one
        self.assertEqual(len({plan["rank_order"] for plan in alone}), 1)

    @plain_only
    def test_the_bar(self):
        """It is gone before the last words. Work that is done at once draws none: the faster the machine, the larger the search."""
        for batch in (64, 256, 1024, 4096, 16384, 65536):
            given = ("plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "32", "--schedule", "v-half,zb-v,zb-1p",
                     "--layout", "even", "--offload", "none", "--zero", "0,1", "--tp", "1,2", "--microbatch-size", "1,2",
                     "--set", f"setting.global_batch={batch}", "--exhaustive", "--jobs", "1")
            status, said = on_a_terminal(self, *given)
            if "\r[" in said:
                break
            self.assertRegex(said, r"^pipecast: \d+ points: ")
        *drawn, gone, words = said.rstrip().split("\r")
        self.assertEqual((status, drawn[0], gone.strip()), (0, "", ""))
        self.assertRegex(words, r"^pipecast: \d+ points: ")
        best = r"(?:; \S+ s: tp \d+, pp \d+, dp \d+, \S+)?"
        shape = re.compile(rf"\[(#*)( *)\] (\d+)/(\d+) (?:shapes|plans), \d+ s left{best} *")
        seen = [shape.fullmatch(bar) for bar in drawn[1:] if bar.strip()]
        self.assertGreater(len(seen), 0)
        self.assertNotIn(None, seen, drawn)
        for bar in seen:
            self.assertLess(len(bar[0]), 80)  # else the terminal begins another row, which stays
            self.assertLess(int(bar[3]), int(bar[4]))
            self.assertEqual(len(bar[1]), len(bar[1] + bar[2]) * int(bar[3]) // int(bar[4]))
        self.assertGreaterEqual(len(gone), len(seen[-1][0]) + len("^C"))  # where the cursor stood, and what a key echoes there
        self.assertEqual(on_a_terminal(self, *given, "--quiet"), (0, ""))

    def share(self, plan, kind):
        return plan[f"exposed_{kind}_s"] / plan["iteration_s"]

    def test_limits(self):
        """The largest wait, by the row's own columns."""
        names = {"TP traffic": "tp", "CP traffic": "cp", "EP traffic": "ep", "PP transfers": "pp", "DP traffic": "dp", "optimizer": "optimizer", "bubble": "bubble"}
        for plan in self.plan(self.write(PLAN), "--top", "30", "--all-variants")["plans"]:
            word, percent, memory = re.fullmatch(r"(\D+) (\d+\.\d)%(, memory)?", plan["limits"]).groups()
            largest = max(KINDS, key=lambda kind: self.share(plan, kind))
            self.assertEqual(self.share(plan, names[word]), self.share(plan, largest))
            self.assertAlmostEqual(float(percent), 100 * self.share(plan, largest), delta=0.0501)

    def test_behind_adds_up(self):
        """v / v1 - 1 from iteration_s; each kind from exposed_*; what is not named rounds to nothing."""
        best, *others = self.plan(self.write(PLAN), "--top", "30", "--all-variants")["plans"]
        self.assertEqual(best["behind"], "")
        for plan in others:
            total, rest = re.fullmatch(r"([+-]\d+\.\d)%(?:: (.*))?", plan["behind"]).groups()
            said = {word.rsplit(" ", 1)[0].lower(): float(word.rsplit(" ", 1)[1])
                    for word in (rest.split(", ") if rest else [])}
            points = {kind: 100 * (plan[f"exposed_{kind}_s"] - best[f"exposed_{kind}_s"]) / best["iteration_s"]
                      for kind in KINDS}
            whole = 100 * (plan["iteration_s"] / best["iteration_s"] - 1)
            points["kernels"] = whole - sum(points.values())
            self.assertAlmostEqual(float(total), whole, delta=0.0501)
            for kind, number in points.items():
                self.assertAlmostEqual(said.get(kind, 0), number, delta=0.0501, msg=(kind, plan["behind"]))
            self.assertAlmostEqual(sum(said.values()), whole, delta=0.31)

    def test_behind_in_memory(self):
        """In percent of what the fullest GPU of the best holds."""
        best, *others = self.plan(self.write(PLAN), "--objective", "memory", "--all-variants", "--top", "30", "--all-variants")["plans"]
        for plan in others:
            total = float(re.match(r"[+-]\d+\.\d", plan["behind"]).group())
            self.assertAlmostEqual(total, 100 * (plan["memory_gib_max"] / best["memory_gib_max"] - 1), delta=0.0501)

    def test_behind_in_cost(self):
        """In percent of what a token costs in the best, whatever the number of GPUs and their prices; its parts add up."""
        best, *others = self.plan(self.write(PLAN), "--objective", "cost", "--gpus", "4,8", "--machine", "dgx-a100,dgx-h100",
                                  "--price", "2/h,3/h", "--top", "1000")["plans"]
        for column in ("gpus", "machine"):
            self.assertEqual(len({plan[column] for plan in [best, *others]}), 2, column)
        for plan in others:
            total, rest = re.fullmatch(r"([+-]\d+\.\d)%(?:: (.*))?", plan["behind"]).groups()
            whole = 100 * (plan["cost_per_million_tokens"] / best["cost_per_million_tokens"] - 1)
            self.assertAlmostEqual(float(total), whole, delta=0.0501)
            parts = [float(word.rsplit(" ", 1)[1]) for word in (rest.split(", ") if rest else [])]
            self.assertAlmostEqual(sum(parts), whole, delta=0.31)

    def test_training(self):
        """Days, hours, energy and money by hand, from tokens a second; with failures by the goodput."""
        tokens = 10e9
        for more, watts in (((), 400), (("--watts", "1275"), 1275), (("--samples", "10", "--mtbf", "1y", "--checkpoint", "1min"), 400)):
            best = self.plan(self.write(PLAN), "--tokens", "10B", "--price", "2.5/h", "--top", "1", *more)["plans"][0]
            days = tokens / (best["gpus"] * best["tokens_per_s_per_gpu"]) / 86400
            if "--mtbf" in more:
                self.assertTrue(0 < best["goodput_mean"] < 1)
                days /= best["goodput_mean"] * best["iteration_s"] / best["iteration_good_s"]
            self.assertAlmostEqual(best["training_days"] / days, 1, places=9)
            self.assertAlmostEqual(best["training_gpu_hours"] / (days * 24 * 8), 1, places=9)
            self.assertAlmostEqual(best["training_cost"] / (days * 24 * 8 * 2.5), 1, places=9)
            self.assertAlmostEqual(best["training_mwh"] / (days * 24 * 8 * watts / 1e6), 1, places=9)

    def test_parts(self):
        """Cells and changes: their rows in csv and json, their runs in a file, and the pictures of these."""
        path, results = self.write(PLAN), self.path("plans.h5")
        given = ("plan", path, "--each", "gpus", "--map", "tp,pp", "--sensitivity", "--top", "2", "--gpus", "4,8")
        found = json.loads(self.good(*given, "--format", "json", "-o", results))
        rows = list(csv.DictReader(io.StringIO(self.good(*given, "--format", "csv"))))
        parts = {"plan": found["plans"], **{part: found[part] for part in ("each", "map", "sensitivity")}}
        self.assertEqual([row["part"] for row in rows], [part for part, of in parts.items() for _ in of])
        self.assertEqual([row["what"] for row in rows if row["part"] == "each"], ["gpus 4", "gpus 8"])
        self.assertEqual(len(parts["map"]), 9)
        for row in rows:
            self.assertEqual(row["rank"] != "", row["part"] == "plan")
            self.assertEqual(row["factor"] != "", row["part"] == "sensitivity")
            self.assertEqual(row["message"] == "", row["status"] == "ok", row)
        for cell in [*parts["each"], *parts["map"]]:
            self.assertIsNone(cell["rank"])
            if cell["status"] == "ok":
                again, = self.rows(*shlex.split(cell["command"])[2:])
                self.assertEqual(again["iteration_s"], cell["iteration_s"])
        best = max(cell["tokens_per_s_per_gpu"] * cell["gpus"] for cell in parts["each"])
        self.assertEqual(best, found["plans"][0]["tokens_per_s_per_gpu"] * found["plans"][0]["gpus"])
        self.assertEqual(self.good("figure", results, "--list").count("plans  "), 4)
        for name in ("front", "scaling", "map", "sensitivity"):
            self.good("figure", results, name, "-o", self.path(name + ".svg"))
            self.assertIn("</svg>", pathlib.Path(self.path(name + ".svg")).read_text())
        self.good("plan", path, "--top", "1", "-o", results)
        done = run("figure", results, "map", "-o", self.path("map.svg"))
        self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: {results}: nothing to draw a map of; expected results of "
                                                             "`pipecast plan --map AXIS,AXIS -o`\n"))

    def test_mix(self):
        """Means by hand, of runs with as many tokens an iteration; the fastest first."""
        path, lengths = self.write(PLAN), {128: 0.2, 256: 0.3, 512: 0.5}
        mix = ",".join(f"{n}:{weight}" for n, weight in lengths.items())
        found = self.plan(path, "--seq-mix", mix, "--top", "4", "--tokens", "1B")
        rates = []
        for row in found["mix"]:
            plan = found["plans"][int(row["what"].split()[1]) - 1]
            seconds, memory = 0, 0
            for n, weight in lengths.items():
                sets = [f"setting.model.seq_len={n}", f"setting.global_batch={plan['global_batch'] * 512 // n}",
                        f"setting.microbatch_size={int(plan['microbatch_size']) * 512 // n}"]
                run_, = self.rows(*shlex.split(plan["command"])[2:], *[word for text in sets for word in ("--set", text)])
                if run_["status"] != "ok":
                    break
                seconds += weight / run_["tokens_per_s_per_gpu"]
                memory = max(memory, run_["memory_gib_max"])
            else:
                self.assertAlmostEqual(row["tokens_per_s_per_gpu"] * seconds, 1, places=9)
                self.assertAlmostEqual(row["training_days"] / (1e9 * seconds / 8 / 86400), 1, places=9)
                self.assertEqual(row["memory_gib_max"], memory)
                rates.append(row["tokens_per_s_per_gpu"])
                continue
            self.assertNotEqual(row["status"], "ok")
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertTrue(rates)
        for bad, message in (("512", "512: expected lengths with their parts of the tokens, such as 8k:0.8,128k:0.2, at most 8"),
                             ("512:0.5,256:1", "512:0.5,256:1: the parts of the tokens add up to 1.5; expected 1"),
                             ("512:0.5,512:0.5", "512: stands twice; expected lengths that differ"),
                             ("512:1,100:1", "100 does not divide 512; expected lengths that do"),
                             ("256:1", "the longest is 256, and plans are of 512; expected seq_len 256")):
            done = run("plan", path, "--seq-mix", bad)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: --seq-mix: {message}\n"))

    def test_goal(self):
        """The fewest GPUs within a deadline; and none."""
        path = self.write(PLAN)
        of = {n: self.plan(path, "--gpus", str(n), "--tokens", "10B", "--top", "1")["plans"][0]["training_days"] for n in (4, 8)}
        for days in of.values():  # two GPUs have too little memory
            deadline = f"{1.0001 * days:.9f}d"
            found = self.plan(path, "--gpus", "2,4,8", "--tokens", "10B", "--deadline", deadline, "--top", "1")
            least = min(n for n in of if of[n] <= 1.0001 * days)
            self.assertEqual(found["plans"][0]["gpus"], least)
            self.assertEqual((found["goal"]["gpus"], found["goal"]["misses"]), (least, least // 2))
            self.assertEqual((found["goal"]["step"], found["goal"]["every_step"]), (1, True))
            self.assertEqual([cell["gpus"] for cell in found["each"] if cell["status"] != "ok"], [2])
        both = self.plan(path, "--gpus", "4,8", "--tokens", "10B", "--deadline", "1000d", "--each", "gpus", "--top", "1")
        self.assertEqual([cell["what"] for cell in both["each"]], ["gpus 4", "gpus 8"])
        self.assertEqual([cell["what"] for cell in both["goal"]["each"]], ["machine dgx-a100, gpus 4"])
        said = run("plan", path, "--gpus", "4,8", "--tokens", "10B", "--deadline", "1000d", "--each", "gpus", "--top", "1").stdout
        self.assertEqual(said.count("fewest GPUs within"), 1)
        self.assertIn("no fewer were tried", said)
        done = run("plan", path, "--gpus", "2,4,8", "--tokens", "10B", "--deadline", "1min")
        self.assertEqual((done.returncode, done.stderr), (1, "pipecast: plan: no plan that was tried keeps to the deadline\n"))
        self.assertRegex(" ".join(done.stdout.split()), r"keeps to 0.000694444 days; the nearest above is 4 of dgx-a100, \S+ days; 1 "
                                                        r"more would be too slow even at the GPU's peak rate$")

    def test_what_is_said_of_machines(self):
        """No energy, and one price for two, are said above the table; each machine's memory is a number."""
        given = ("plan", "--model", "llama3-8b", "--machine", "dgx-h100,dgx-b300", "--gpus", "64", "--schedule", "1f1b", "--tp", "1",
                 "--pp", "1", "--layout", "even", "--top", "1", "--each", "machine")
        energy = "no energy of dgx-b300: the file of its GPU has no power; --watts says what a GPU takes"
        price = "one price, for a GPU-hour of every machine; --price 2.50/h,1.20/h says one for each"
        said = run(*given, "--tokens", "1T", "--price", "2/h").stdout
        self.assertEqual((said.count(energy), said.count(price)), (1, 1))
        self.assertEqual([line for line in said.splitlines() if line.startswith("dgx-") and "GiB" in line], [])  # the header has it
        self.assertNotIn(energy, run(*given, "--tokens", "1T", "--watts", "1000").stdout)
        other = run(*given, "--price", "2/h,3/h").stdout
        self.assertNotIn(energy, other)
        self.assertNotIn(price, other)

    def test_table(self):
        """Choices stand above where plans agree, and in a column where not; every line is of the JSON."""
        path = self.write(PLAN)
        plans, text = self.plan(path)["plans"], self.good("plan", path)
        head, body = text.split("\n\n")[:2]
        rows = body.splitlines()[3:]
        self.assertEqual(len(rows), len(plans))
        for name, column in (("tp", "tp"), ("pp", "pp"), ("recompute", "recompute"), ("schedule", "schedule")):
            values = {plan[column] for plan in plans}
            above = re.search(rf"(?:^|[ ,]){name} ([\w-]+)", head.replace("overlap tp", "").replace("\n", " "))
            self.assertEqual([above.group(1)] if above else None, [str(*values)] if len(values) == 1 else None, name)
        for row, plan in zip(rows, plans):
            self.assertTrue(row.endswith(plan["limits"]))
            self.assertIn(f"{plan['mfu']:.4f}", row)
        self.assertEqual(re.findall(r"^ +\d+[ ~=] (\S.*)$", text.split("where it comes from:\n")[1].split("\n\n")[0], re.M),
                         [plan["behind"] for plan in plans[1:]])
        self.assertIn(f"\nplan 1: {plans[0]['command']}\n", text)
        self.assertNotRegex(text, r" \n")

    def test_csv_says_what_json_says(self):
        path = self.write(PLAN)
        rows = list(csv.DictReader(io.StringIO(self.good("plan", path, "--format", "csv"))))
        plans = self.plan(path)["plans"]
        self.assertEqual([list(row) for row in rows], [list(plan) for plan in plans])
        for row, plan in zip(rows, plans):
            self.assertEqual({key: numbers({key: text})[key] for key, text in row.items()},
                             {key: "" if value is None else numbers({key: str(value)})[key] for key, value in plan.items()})


class Kept(Plan):
    def setUp(self):
        super().setUp()
        self.words = ("plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16", "--global-batch", "64", "--tp", "1,2,4",
                      "--schedule", "1f1b,v-adaptive", "--top", "3", "--format", "json")
        self.file = self.path("a.kept")

    def test_another_search_finds_it(self):
        """The second simulates nothing: its file does not grow. With more plans wanted it goes on."""
        alone = self.good(*self.words)
        self.assertEqual(self.good(*self.words, "--cache", self.file), alone)
        size = os.path.getsize(self.file)
        self.assertEqual(self.good(*self.words, "--cache", self.file), alone)
        self.assertEqual(os.path.getsize(self.file), size)
        more = (*self.words, "--top", "9")
        self.assertEqual(self.good(*more, "--cache", self.file), self.good(*more))
        self.assertEqual(self.good(*self.words, "--cache", self.file, "--fresh"), alone)
        self.assertEqual(os.path.getsize(self.file), size)

    def refused(self, message, *arguments):
        done = run(*self.words, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))

    def test_other_files(self):
        no_journal = f"{self.file}: is no journal of pipecast; expected one, or no file, since finished runs are kept there"
        pathlib.Path(self.file).write_text("something else, and long enough to be a header")
        self.refused(no_journal, "--cache", self.file)
        self.refused(no_journal, "--cache", self.file, "--fresh")
        self.refused(no_journal, "--cache", self.path("b.kept"), "--cache", self.file)
        missing = self.path("no/a.kept")
        self.refused(f"{missing}: cannot be opened: No such file or directory; expected a file for finished runs", "--cache", missing)

    def test_damage(self):
        self.good(*self.words, "--cache", self.file)
        data = pathlib.Path(self.file).read_bytes()
        pathlib.Path(self.file).write_bytes(data[:20] + b"x" + data[21:])
        self.refused(f"{self.file}: the journal is damaged at its start; expected it as pipecast wrote it (--fresh simulates everything "
                     "again)", "--cache", self.file)
        pathlib.Path(self.file).write_bytes(data[:-1])  # half written: the last record is worked out again
        self.good(*self.words, "--cache", self.file)
        self.assertEqual(pathlib.Path(self.file).read_bytes(), data)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
