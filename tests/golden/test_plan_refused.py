"""`pipecast plan` where there is no plan, and where the question is wrong: one line each.

usage: test_plan_refused.py PIPECAST SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from command import PIPECAST, run
from planning import PLAN, SETTING, Plan

ROOT = pathlib.Path(sys.argv[2]).resolve()


class Nothing(Plan):
    """No plan: status 1, and what is nearest."""

    def check(self, message, *arguments):
        done = run("plan", self.write(PLAN), *arguments, "--format", "csv")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done)
        self.assertRegex(done.stderr, rf"^pipecast: no plan fits: {message}\n$")

    def test_memory(self):
        least = self.plan(self.write(PLAN), "--objective", "memory")["plans"][0]["memory_gib_max"]
        self.check(rf"the least memory is {least:.2f} GiB of 0\.10 GiB \(.*\); with --offload selective\+optimizer a plan fits",
                   "--memory", "0.1 GiB")

    def test_host(self):
        """58 M parameters have 12 bytes each on the host, whose eighth of 1 GiB is too little, for a GPU has them all."""
        dgx = (ROOT / "scenarios" / "machines" / "dgx-a100.yaml").read_text()
        little = self.write(re.sub(r"(?m)^host_memory: .*$", "host_memory: 1 GiB", dgx), "little.yaml")
        path = self.write(SETTING.replace("machine: dgx-a100", f"machine: {little}").replace("0.4 GiB", "4 GiB")
                          .replace("  offload: none\n", ""))
        only = ("--tp", "1", "--pp", "1", "--zero", "0", "--schedule", "1f1b", "--format", "csv")
        done = run("plan", path, *only, "--offload", "optimizer")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done)
        self.assertRegex(done.stderr, r"^pipecast: no plan fits: with --offload optimizer a GPU has room, but not its host, with 0\.12 GiB "
                                      r"for each GPU \(tp 1, pp 1, dp 8, 1f1b, microbatches of 1, ZeRO 0\)\n$")
        self.assertEqual(run("plan", path, *only, "--offload", "none,optimizer").returncode, 0)

    def test_time(self):
        best = self.plan(self.write(PLAN))["plans"][0]["iteration_s"]
        self.check(rf"the fastest takes {best:.6g} s, of 1e-06 s at most \(.*\)", "--most-iteration", "1 us")

    def test_cost(self):
        best = self.plan(self.write(PLAN), "--objective", "cost", "--price", "3/h")["plans"][0]["cost_per_million_tokens"]
        self.check(rf"in the cheapest a million tokens cost {best:.6g}, of 1e-06 at most \(.*\)", "--most-cost", "0.000001",
                   "--price", "3/h")

    def test_what_nearly_fits(self):
        """What is found and the limit are told apart, and a limit does not look like none."""
        best = self.plan(self.write(PLAN), "--objective", "cost", "--price", "3/h")["plans"][0]["cost_per_million_tokens"]
        less = f"{best * (1 - 1e-9):.17g}"
        done = run("plan", self.write(PLAN), "--price", "3/h", "--most-cost", less)
        cost, limit = re.search(r"a million tokens cost (\S+), of (\S+) at most", done.stderr).groups()
        self.assertTrue(float(cost) > float(limit) > 0, done.stderr)
        path = self.write(PLAN)
        least = round(self.plan(path, "--objective", "memory")["plans"][0]["memory_gib_max"] * 2**30)
        for room in (least - 1, 2**20):
            done = run("plan", path, "--memory", f"{room} B", "--each", "schedule")
            gib, limit = re.search(r"the least memory is (\S+) GiB of (\S+) GiB", done.stderr).groups()
            self.assertTrue(float(gib) > float(limit) > 0, done.stderr)
            self.assertIn(f"of {limit} GiB", done.stdout)

    def test_cost_beside_time_enough(self):
        """Of two limits the one that nothing keeps is named."""
        best = self.plan(self.write(PLAN), "--objective", "cost", "--price", "3/h")["plans"][0]["cost_per_million_tokens"]
        self.check(rf"in the cheapest a million tokens cost {best:.6g}, of 1e-06 at most \(.*\)", "--most-cost", "0.000001",
                   "--price", "3/h", "--most-iteration", "1000 s")

    def test_rules(self):
        """All points break rules: the last one, which nothing else stands before, and what lifts it."""
        self.check(r"of \d+ points all break a rule, those that come furthest: tp x pp does not divide the GPUs \(\d+ points\); --tp [24] "
                   r"lifts that", "--tp", "3")
        self.check(r"of (\d+) points all break a rule, those that come furthest: 4 layers do not divide by pp x chunks, laid out own "
                   r"\(\1 points\); --layout even lifts that for \1 points", "--pp", "2", "--schedule", "1f1b", "--layout",
                   "own", "--memory", "40 GiB", "--microbatch-size", "1")

    def test_the_rule_of_those_that_come_furthest(self):
        """More points break a rule before it, which other values of the lists do not: it is named all the same."""
        for (arguments, rule, why, lifts) in (
                (("--ep", "2"), r"ep or etp is above 1, and the model has no experts \(num_experts\)", "", "; --ep 1 lifts that"),
                (("--microbatch-size", "3"), "dp x microbatch size does not divide the batch", "", "; --microbatch-size 2 lifts that"),
                (("--tp", "3", "--gpus", "12", "--global-batch", "36"), "tp or cp does not divide the model's heads, widths or sequence",
                 r", such as tp 3 does not divide \d+ heads; expected a divisor", "; --tp 2 lifts that"),
                (("--schedule", "dualpipe", "--pp", "3", "--gpus", "12", "--global-batch", "36", "--layout", "balanced,ends"),
                 "the schedule cannot have these stages, chunks or microbatches",
                 r", such as dualpipe: 3 devices, \d+ microbatches; expected an even number of both, or schedule dualpipe-v", r"; .*"),
                (("--dp", "3"), "tp x pp x dp is not the number of GPUs", "", "; --dp [24] lifts that")):
            self.check(rf"of \d+ points all break a rule, those that come furthest: {rule} \(\d+ points?\){why}{lifts}", *arguments)

    def test_experts(self):
        """What divides no number of experts is named, with theirs."""
        given = ("plan", "--model", "mixtral-8x7b", "--machine", "dgx-h100", "--gpus", "16", "--global-batch", "64", "--schedule", "1f1b")
        for (arguments, rule) in ((("--ep", "3"), "ep 3 does not divide the model's 8 experts (num_experts)"),
                                  (("--ep", "16,32"), "ep 16, 32 does not divide the model's 8 experts (num_experts)"),
                                  (("--ep", "2", "--etp", "3"), "etp 3 does not divide the experts' width of 14336")):
            done = run(*given, *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"those that come furthest: {rule} (", done.stderr)
            self.assertRegex(" ".join(done.stdout.split()), r"rule that stops the points that come furthest: e[tp]+ .* --e[tp]+ \d lifts that")


class BadInput(Plan):
    def check(self, text, line, message):
        path = self.write(text)
        done = run("plan", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(done.stderr, f"pipecast: {path}:{line}: {message}\n")

    def test_values(self):
        last = SETTING.count("\n") + 2
        whole = "not a whole number; expected a whole number from 1 to"
        for text, message in (
                ("tp: [x]", f"plan.tp[0]: x: {whole} 65536"),
                ("pp: [1, 0]", "plan.pp[1]: 0: out of range; expected a whole number from 1 to 65536"),
                ("gpus: [1..]", "plan.gpus[0]: empty; expected a whole number from 1 to 2147483647"),
                ("gpus: [8..2]", "plan.gpus[0]: 8..2: runs backwards; expected a range such as 1..8, 8..64+8, 4..64x2, or 1,2,4..16"),
                ("gpus: [1..5000]", "plan.gpus[0]: 1..5000: more than 4096 values; expected fewer, as of 1..4096x2, which doubles"),
                ("dp: [1..3, 2]", "plan.dp: the same twice, values 1 and 3; expected values that differ"),
                ("chunks: []", "plan.chunks: an empty list; expected at least one entry"),
                ("global_batch: 16", "plan.global_batch: is a single value; expected a list"),
                ("microbatch_size: [1.5]", f"plan.microbatch_size[0]: 1.5: {whole} 2147483647"),
                ("zero: [0..4]", "plan.zero[0]: 4: out of range; expected a whole number from 0 to 3"),
                ("sequence_parallel: [yes]", "plan.sequence_parallel[0]: yes: not a truth value (did you mean true?); expected true or false"),
                ("overlap: {tp: [true, true]}",
                 "plan.overlap.tp: the same twice, values 0 and 1; expected values that differ"),
                ("recompute: ['full,none']",
                 "plan.recompute[0]: full,none: unknown recomputation; expected one of none, selective, full, full-uniform-N, "
                 "full-block-N, selective-N, selective-op, minimal_with_context, minimal, save_dot_with_context_except_mlp, "
                 "save_dot_except_mlpwi, save_dot_except_mlp, save_qkv_proj, save_out_proj, "
                 "selective:core_attn+layernorm+mlp+..."),
                ("objective: [speed]",
                 "plan.objective[0]: speed: unknown word; expected one of throughput, memory, cost"),
                ("top: 0", "plan.top: 0: out of range; expected a whole number from 1 to 1000000"),
                ("most_iteration: 30",
                 "plan.most_iteration: 30: no unit; expected a time such as 12.96 ms (ps, ns, us, ms, s, min, h)"),
                ("most_iteration: 0 s", "plan.most_iteration: 0 s: is zero; expected what an iteration may take"),
                ("most_cost: 0", "plan.most_cost: 0: is zero; expected what a million tokens may cost"),
                ("price: [2.10/day]",
                 "plan.price[0]: 2.10/day: unknown unit '/day'; expected a price above zero of a GPU-hour such as 2.10, $2.10/h "
                 "or 2.10 EUR/h"),
                ("price: [2 USD/h, 1 EUR/h]", "plan.price[1]: is in EUR, and one before in USD; expected one currency"),
                ("price: [2 USD/h, 1/h]", "plan.price[1]: is in no currency, and one before in USD; expected one currency"),
                ("price: [2/h, 1 EUR/h]", "plan.price[1]: is in EUR, and one before in none; expected one currency"),
                ("price: [1/h, 2/h]", "plan.price: 2 prices for 1 machines; expected one for all, or one each"),
        ):
            with self.subTest(text):
                self.check(SETTING + f"plan:\n  {text}\n", last, message)
        for text, start in (("speed: [1]", "plan.speed: unknown key"), ("zeros: [1]", "plan.zeros: unknown key (did you mean zero?)"),
                            ("layout: ['2,2']", "plan.layout[0]: 2,2: unknown word; expected one of even, ends, own, balanced, balanced-memory, auto"),
                            ("schedule: [2f2b]", "plan.schedule[0]: 2f2b: unknown schedule; expected one of gpipe,"),
                            ("rank_order: [tp]", "plan.rank_order[0]: "), ("machine: [abacus]", "plan.machine[0]: abacus: ")):
            with self.subTest(text):
                path = self.write(SETTING + f"plan:\n  {text}\n")
                done = run("plan", path)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
                self.assertTrue(done.stderr.startswith(f"pipecast: {path}:{last}: {start}"), done.stderr)

    def test_settings(self):
        """What a setting may have, and a plan not."""
        last = SETTING.count("\n") + 1
        for text, message in (
                ("microbatches: 4", "setting.microbatches: follow from the other choices; expected global_batch"),
                ("first_stage_layers: 9", "setting.first_stage_layers: of one number of stages; expected layout balanced in a plan"),
                ("last_stage_layers: 9", "setting.last_stage_layers: of one number of stages; expected layout balanced in a plan"),
                ("moe_fp8_dispatch: true", "setting.moe_fp8_dispatch: for dispatchers, and the model has no experts (num_experts); expected none"),
                ("moe_hybridep_num_sms: 32", "setting.moe_hybridep_num_sms: for dispatchers, and the model has no experts (num_experts); expected none"),
                ("expand: true", "setting.expand: true; expected false in a plan, whose replicas are alike"),
                ("out_of_memory: wait", "setting.out_of_memory: wait; expected fail in a plan, which is of what fits"),
                ("recompute: 'full,none'", "setting.recompute: a word for every part; expected none, selective or full, for a "
                 "plan chooses the parts"),
                ("times: {F: 1 ms}", "setting.times: given; expected a machine, from which they follow in a plan")):
            with self.subTest(text):
                self.check(SETTING + f"  {text}\n", last, message)
        self.check(SETTING.replace("vocab: 8000", "vocab: 8000, layout: '1,3'"), 3,
                   "setting.model.layout: no word for a layout; expected even, ends, own, balanced, balanced-memory or auto, for a plan chooses the parts")
        self.check(SETTING.replace("  gpus: 8\n", ""), 2,
                   "setting.gpus: missing; expected it, or plan.gpus, or one value each of tp, pp and dp")
        self.check(SETTING + "  samples: 10\n  jitter: 0.01\n  bad_days: {robust: mean}\n", last + 2,
                   "setting.bad_days.robust: given; expected none in a plan, which compares good days")
        goal = "plan:\n  deadline: 30d\n"
        self.check(SETTING + goal, 2, "setting.tokens: missing; expected those of the training beside a deadline or a budget")
        self.check(SETTING + "  tokens: 1T\n" + goal.replace("deadline: 30d", "budget: 2M$"), 2,
                   "setting.price: missing; expected that of a GPU-hour beside a budget")
        self.check(SETTING + "  tokens: 1T\n" + goal.replace("30d", "0d"), last + 2,
                   "plan.deadline: 0d: is zero; expected what the training may take")
        self.check(SETTING + "  tokens: 1T\nplan:\n  budget: 2M$\n  price: [2 EUR/h]\n", last + 3,
                   "plan.price[0]: is in EUR, and the budget in USD; expected one currency")
        self.check(SETTING.replace("  global_batch: 16\n", ""), 2,
                   "setting.global_batch: missing; expected it, or plan.global_batch, since the model's file has none")
        self.check(SETTING.replace("  machine: dgx-a100\n", ""), 2, "setting.machine: missing; expected one of `pipecast list "
                   "machines` or a file, or times or stages")
        self.check(SETTING + "sweep:\n  memory: [1 GiB, 2 GiB]\n", last + 1,
                   "sweep.memory: no choice of a plan; expected one value, in the setting")
        self.check(SETTING + "cases:\n  - {name: a}\n  - {name: b}\n", last,
                   "cases: 2 cases; expected one at most, for a plan is for one setting")

    def test_options(self):
        for message, arguments in (
                ("plan: no scenario; expected SCENARIO.yaml, or options such as --model and --machine", []),
                ("plan: two scenarios, a and b; expected one", ["a", "b"]),
                ("--tp: x: not a whole number; expected a whole number from 1 to 65536", ["--tp", "1,x"]),
                ("--tp: '1,,2': a list with an empty entry; expected one comma between two values", ["--tp", "1,,2"]),
                ("--objective: speed: unknown word; expected one of throughput, memory, cost", ["--objective", "speed"]),
                ("--layout: 16: unknown word; expected one of even, ends, own, balanced, balanced-memory, auto", ["--layout", "16,16"]),
                ("--top: 0: out of range; expected a whole number from 1 to 1000000", ["--top", "0"]),
                ("--gpus: missing; expected it, or plan.gpus, or one value each of tp, pp and dp", []),
                ("--seq-len: no choice of a plan; expected one value, in the setting", ["--seq-len", "512,1024"]),
                ("--format: unknown format 'xml'; expected table, csv, json, megatron or torchtitan", ["--format", "xml"]),
                ("--shard: '2'; expected I/N such as 1/4", ["--gpus", "8", "--shard", "2"]),
                ("--shard: 3: out of range; expected a whole number from 1 to 2", ["--gpus", "8", "--shard", "3/2"]),
                ("plan: --fresh without --cache and --output; expected a file to begin anew", ["--gpus", "8", "--fresh"]),
                ("plan: unknown option '--microbatches' (did you mean --microbatch-size?); expected one that `pipecast plan --help` lists",
                 ["--microbatches", "4"])):
            with self.subTest(message):
                given = [] if message.startswith(("plan: no", "plan: two")) else ["--model", "gpt3-1.3b", "--machine",
                                                                                  "dgx-a100"]
                self.bad(2, message, "plan", *given, *arguments)

    def test_help_has_no_defaults_of_a_run(self):
        """Of what a plan chooses, and no layouts that it cannot."""
        text = self.good("plan", "--help")
        lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("      --")}
        for option in ("--tp", "--pp", "--schedule", "--microbatch-size", "--layout", "--recompute", "--zero"):
            self.assertNotIn("default", lines[option])
        self.assertNotIn("15,16", lines["--layout"])
        self.assertIn("(default: the model's)", lines["--global-batch"])

    def test_machine(self):
        """A full disk is one line and status 3; a scenario is not written over."""
        path = self.write(PLAN)
        with open("/dev/full", "w") as full:
            done = subprocess.run([PIPECAST, "plan", path], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done)
        done = run("plan", path, "-o", path)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"pipecast: -o: {path}: is the scenario; expected another file\n"))
        self.assertEqual(os.listdir(self.folder.name), ["plan.yaml"])


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
