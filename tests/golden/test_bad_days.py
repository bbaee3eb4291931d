"""Bad days from outside: samples, jobs, and the studies of docs/bad-days.md, beside what algebra says.

usage: test_bad_days.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import math
import unittest

import command

SMALL = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--tp", "1", "--pp", "4", "--dp", "4", "--microbatches", "8")
NEW = ("samples", "iteration_good_s", "iteration_mean_s", "iteration_p50_s", "iteration_p99_high_s", "slowdown_mean",
       "goodput_mean", "failures_mean", "checkpoint_interval_s", "slow_factor", "mtbf_s")


def numbers(row, *names):
    return [float(row[name]) for name in names]


class BadDays(command.Command):
    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.good("run", *arguments, "--format", "csv"))))

    def row(self, *arguments):
        rows = self.rows(*SMALL, *arguments)
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_a_good_day_says_nothing_of_bad_ones(self):
        row = self.row()
        self.assertEqual([row[name] for name in NEW], [""] * len(NEW))
        sampled = self.row("--samples", "20", "--jitter", "0.05", "--mtbf", "5years", "--checkpoint", "10s")
        kept = [name for name in row if row[name] and name not in ("key", "name")]
        self.assertEqual([sampled[name] for name in kept], [row[name] for name in kept])
        self.assertTrue(all(sampled[name] for name in NEW if name not in ("slow_factor", "iteration_p99_high_s")))

    def test_what_was_asked_is_in_the_row(self):
        """A factor stands in the row with whatever it is of, and stays away where nothing has it."""
        columns = ("slow_gpus", "slow_stage", "slow_factor", "bad_links", "bad_factor")
        for given, expected in [(("--slow-stage", "1", "--slow-factor", "1.5"), ["0", "1", "1.5", "0", ""]),
                                (("--slow-gpus", "2", "--slow-factor", "1.25"), ["2", "", "1.25", "0", ""]),
                                (("--set", "setting.bad_days.bad_links=3", "--set", "setting.bad_days.bad_factor=0.5"),
                                 ["0", "", "", "3", "0.5"])]:
            row = self.row("--samples", "2", *given)
            self.assertEqual([row[name] for name in columns], expected)

    def test_a_robust_order(self):
        """Another order of a schedule that searches, better on bad days of which none was looked at to find it; of the
        others, and of other makings, the order stays. The samples are the same."""
        days = ("--samples", "300", "--jitter", "0.05")
        good, mean, p95 = self.rows(*SMALL, *days, "--dp", "1", "--schedule", "v-min", "--robust", "none,mean,p95")
        self.assertLess(float(mean["iteration_mean_s"]), float(good["iteration_mean_s"]))
        self.assertLess(float(p95["iteration_p95_s"]), float(good["iteration_p95_s"]))
        self.assertEqual(mean["memory_gib_max"], good["memory_gib_max"])
        rows = self.rows(*SMALL, *days, "--schedule", "1f1b,zb-1p", "--making", "equal", "--robust", "none,p95")
        by_name = {row["name"]: row["iteration_p95_s"] for row in rows}
        for name in by_name:
            self.assertEqual(by_name[name], by_name[name.replace("robust-p95", "robust-none")])
        self.assertEqual(len(by_name), 4)
        self.bad(2, "--robust: means nothing without samples; expected samples: 1000 or so beside it", "run", *SMALL,
                 "--robust", "p95")

    def test_a_robust_order_holds_no_more(self):
        """Where B recomputes or leaves gradients for W, a name limits microbatches and not bytes."""
        cut = ("--model", "gpt3-6.7b", "--machine", "dgx-h100", "--pp", "4", "--microbatches", "8", "--schedule", "v-half",
               "--samples", "20", "--jitter", "0.02", "--slow-gpus", "1", "--slow-factor", "1.1", "--robust", "none,mean")
        for more in (("--recompute", "full"), ("--tp", "2")):
            good, mean = self.rows(*cut, *more)
            self.assertNotEqual(mean["trace_hash"], good["trace_hash"])
            self.assertLessEqual(*(float(row["activation_gib_max"]) for row in (mean, good)))

    def test_the_room_is_that_of_the_smaller_gpu(self):
        """Two of the last stage's GPUs have 40 GB; a limit that the user sets is one for all."""
        (own,), (small,) = (self.rows(*SMALL, "--machine", machine) for machine in ("dgx-a100", "dgx-a100-40gb"))
        other = ("--samples", "2", "--set", "setting.bad_days.other_gpu=dgx-a100-40gb", "--set", "setting.bad_days.other_nodes=1")
        self.assertEqual(self.row(*other)["memory_limit_gib"], small["memory_limit_gib"])
        self.assertGreater(float(own["memory_limit_gib"]), float(small["memory_limit_gib"]))
        self.assertEqual(float(self.row(*other, "--memory", "50 GiB")["memory_limit_gib"]), 50)
        for more, status in ((("--set", "setting.microbatch_size=64"), "out_of_memory"),
                             (("--tp", "3"), "infeasible")):
            done = command.run("run", *SMALL, *other, *more, "--format", "csv")
            row, = csv.DictReader(io.StringIO(done.stdout))
            self.assertEqual((row["status"], row["memory_limit_gib"]), (status, small["memory_limit_gib"]), done)

    def test_quantiles_are_in_order(self):
        row = self.row("--samples", "500", "--jitter", "0.05")
        for name in ("p05", "p50", "p95"):
            low, value, high = numbers(row, *(f"iteration_{name}_{part}s" for part in ("low_", "", "high_")))
            self.assertTrue(low <= value <= high)
        ordered = numbers(row, *(f"iteration_{name}_s" for name in ("p05", "p50", "p95", "p99")))
        self.assertEqual(ordered, sorted(ordered))
        good, mean, error = numbers(row, "iteration_good_s", "iteration_mean_s", "iteration_mean_error_s")
        self.assertGreater(mean, good)  # who waits for the latest waits longer
        self.assertLess(error, 0.01 * mean)

    def test_threads_do_not_show(self):
        given = (*SMALL, "--samples", "50", "--gpu-jitter", "0.03", "--jitter", "0.02", "--mtbf", "1years",
                 "--checkpoint", "10s", "--format", "json")
        one = self.good("run", *given, "--jobs", "1")
        for jobs in ("2", "8"):
            self.assertEqual(self.good("run", *given, "--jobs", jobs), one)

    def test_all_gpus_slow_is_all_passes_slow(self):
        """All 16 GPUs half as slow again: the passes are, so the iteration lies between as before and half as much."""
        for schedule in ("1f1b", "zb-h1"):
            row = self.row("--samples", "1", "--slow-gpus", "16", "--slow-factor", "1.5", "--schedule", schedule)
            self.assertTrue(1.4 < float(row["slowdown_mean"]) <= 1.5, row["slowdown_mean"])
            one = self.row("--samples", "1", "--slow-gpus", "1", "--slow-factor", "1.5", "--schedule", schedule)
            self.assertTrue(1 < float(one["slowdown_mean"]) < float(row["slowdown_mean"]))

    def test_goodput_is_as_daly_says(self):
        """Of a job of 100 years the end does not count: tau / (M e^(R/M) (e^((tau + delta)/M) - 1))."""
        row = self.row("--samples", "10", "--mtbf", "100d", "--checkpoint", "1min", "--set", "setting.job.restart=10min",
                       "--set", "setting.job.horizon=20years")
        mtbf, tau = 100 * 86400 / 16, float(row["checkpoint_interval_s"])
        expected = tau / (mtbf * math.exp(600 / mtbf) * math.expm1((tau + 60) / mtbf))
        goodput, error = numbers(row, "goodput_mean", "goodput_mean_error")
        self.assertLess(abs(goodput - expected), 5 * error + 1e-4)

    def test_what_is_swept_names_runs(self):
        rows = self.rows(*SMALL, "--samples", "5", "--jitter", "0,0.02", "--gpu-jitter", "0,0.01", "--mtbf", "900s,2years",
                         "--checkpoint", "0s,90s")
        self.assertEqual(len(rows), 16)
        self.assertEqual(rows[0]["name"], "flags.1f1b.jitter0.gpu-jitter0.mtbf15min.checkpoint0s")
        self.assertEqual(rows[-1]["name"], "flags.1f1b.jitter0.02.gpu-jitter0.01.mtbf2y.checkpoint90s")
        self.assertEqual(len({row["name"] for row in rows}), 16)

    def test_refused(self):
        given = ("run", *SMALL)
        self.bad(2, "--slow-gpus: means nothing without samples; expected samples: 1000 or so beside it", *given,
                 "--slow-gpus", "1")
        self.bad(2, "--slow-stage: 4 of 4 stages; expected at most 3", *given, "--samples", "1", "--slow-stage", "4",
                 "--slow-factor", "2")
        self.bad(2, "--jitter: 1.5: out of range; expected a fraction from 0 to 1", *given, "--jitter", "1.5")
        self.bad(2, "--mtbf: 5: no unit; expected a duration such as 90 days (ms, s, min, h, d, days, y, years)", *given,
                 "--samples", "1", "--mtbf", "5")

    def test_profile_without_samples(self):
        """Others' measurements come without raw samples: nothing is known of how they scatter."""
        with open(self.path("nccl.csv"), "w", encoding="utf-8") as file:
            file.write("collective,ranks,size_bytes,time_us\n")
            file.writelines(f"all_reduce,8,{2**i},{20 + 2**i / 1e5}\n" for i in range(12, 31))
        profile = self.path("a100.h5")
        done = command.run("profile", "fit", self.path("nccl.csv"), "-o", profile, "--gpu", "a100-sxm-80gb", "--link",
                           "nvlink")
        self.assertEqual(done.returncode, 0, done)
        given = ("run", *SMALL, "--profile", profile, "--samples", "5", "--jitter")
        done = command.run(*given, "profile")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(done.stderr, f"pipecast: {profile}: jitter: profile: no kernel has raw samples, so nothing is "
                         "known of how their times scatter; expected a profile of `pipecast calibrate`\n")

    @command.full_only
    def test_slow_gpu_study(self):
        """What docs/bad-days.md makes of it: the fewer bubbles, the more of a slow first stage is passed on."""
        rows = self.rows(str(command.ROOT / "scenarios/studies/slow_gpu.yaml"), "--slow-factor", "1.5", "--slow-stage", "0",
                         "--schedule", "1f1b,v-min,v-half,v-zb")
        passed_on = {row["schedule"]: (float(row["slowdown_mean"]) - 1) / 0.5 for row in rows}
        self.assertEqual(sorted(passed_on, key=passed_on.get), ["1f1b", "v-min", "v-half", "v-zb"])
        self.assertGreater(passed_on["v-zb"], 0.89)
        self.assertLess(passed_on["1f1b"], 0.55)


if __name__ == "__main__":
    unittest.main(argv=["test_bad_days.py"], verbosity=2)
