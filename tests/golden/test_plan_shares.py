"""`pipecast plan --shard` and `pipecast merge`: shares put together are the plan of all, whatever was asked.

usage: test_plan_shares.py PIPECAST SOURCE_ROOT
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from command import IS_QUICK, PIPECAST, Command, run

SETTING = """\
scenario: tiny
setting:
  model: {name: tiny, layers: 4, hidden: 1024, heads: 8, seq_len: 512, vocab: 8000}
  machine: dgx-a100
  gpus: 8
  global_batch: 16
  offload: none
  search_effort: quick
"""
LISTS = {"gpus": ["4", "8"], "tp": ["1", "2", "3", "4"], "pp": ["1", "2", "4"], "chunks": ["2", "4"], "microbatch_size": ["1", "2"],
         "schedule": ["1f1b", "1f1b-interleaved", "v-half", "zb-h1"], "layout": ["even", "ends", "own"], "recompute": ["none", "full"],
         "zero": ["0", "1"]}
# What the shares' own best plans decide, and no other.
OWN = ("too_slow", "simulated", "simulated_over_memory", "simulated_infeasible", "worst_bound", "mean_bound")


def questions(draw):
    """Options of a plan, each asked or not."""
    words = ["--memory", draw.choice(["0.2 GiB", "0.4 GiB", "40 GiB", "0.01 GiB"])]
    words += draw.choice([[], ["--objective", "memory"], ["--objective", "throughput,memory"], ["--objective", "cost", "--price", "2/h"]])
    words += draw.choice([[], ["--top", "2"], ["--all-variants", "--top", "5"]])
    words += draw.choice([[], ["--each", "tp"], ["--each", "gpus,schedule"]])
    words += draw.choice([[], ["--map", "tp,pp"]])
    words += draw.choice([[], ["--sensitivity"]])
    words += draw.choice([[], ["--seq-mix", "256:0.5,512:0.5"]])
    words += draw.choice([[], ["--tokens", "1B"], ["--most-iteration", "30 ms"], ["--set", "setting.trace=true"]])
    return words


class Shares(Command):
    def plan(self, text, name="plan.yaml"):
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def read(self, name):
        return pathlib.Path(self.path(name)).read_bytes()

    def share(self, count, *words, name="share"):
        """Names of the files, which are made."""
        paths = [self.path(f"{name}-{i + 1}.h5") for i in range(count)]
        for i, path in enumerate(paths):
            self.good("plan", *words, "--shard", f"{i + 1}/{count}", "-o", path, "--quiet")
            self.assertFalse(os.path.exists(path + ".journal"))
        return paths

    def compare(self, one, other, is_exhaustive):
        whole, merged = json.loads(one.stdout), json.loads(other.stdout)
        logs = whole.pop("log"), merged.pop("log")
        self.assertEqual(whole, merged)
        if is_exhaustive:
            means = [log.pop("mean_bound") for log in logs]
            self.assertTrue(means[0] == means[1] or abs(means[0] - means[1]) < 1e-5, means)
            self.assertEqual(logs[0], logs[1])
        self.assertEqual(logs[0]["too_slow"] + logs[0]["simulated"], logs[1]["too_slow"] + logs[1]["simulated"])
        for log in logs:
            for key in OWN:
                log.pop(key, None)
        self.assertEqual(logs[0], logs[1])

    def check(self, count, *words, is_exhaustive=False):
        one = run("plan", *words, "-o", self.path("whole.h5"), "--format", "json")
        paths = self.share(count, *words)
        random.Random(count).shuffle(paths)
        other = run("merge", self.path("merged.h5"), *paths, "--format", "json")
        self.assertIn(one.returncode, (0, 1), one)
        self.assertEqual((one.returncode, one.stderr), (other.returncode, other.stderr))
        self.compare(one, other, is_exhaustive)
        self.assertEqual(self.read("whole.h5"), self.read("merged.h5"))
        self.assertFalse(os.path.exists(self.path("merged.h5.journal")))
        return len(json.loads(one.stdout)["plans"])

    def test_any_question(self):
        draw, found = random.Random(26), 0
        for _ in range(6 if IS_QUICK else 40):
            lists = {key: draw.sample(values, draw.randint(1, len(values))) for key, values in LISTS.items()}
            lists["gpus"] = lists["gpus"] if draw.random() < 0.5 else ["8"]
            path = self.plan(SETTING + "plan:\n" + "".join(f"  {key}: [{', '.join(values)}]\n" for key, values in lists.items()))
            words, is_exhaustive = questions(draw), draw.random() < 0.2
            with self.subTest(lists=lists, words=words):
                found += self.check(draw.randint(1, 5), path, *words, *(["--exhaustive"] if is_exhaustive else []),
                                    is_exhaustive=is_exhaustive)
        self.assertGreater(found, 0)

    def test_the_table(self):
        """As the plan of all prints it, but for the line of the points."""
        words = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16", "--global-batch", "64", "--schedule", "1f1b,zb-h1")
        whole = self.good("plan", *words).splitlines()
        merged = self.good("merge", self.path("m.h5"), *self.share(3, *words)).splitlines()
        self.assertEqual([line for line in whole if " points: " not in line], [line for line in merged if " points: " not in line])
        self.assertEqual(self.good("merge", self.path("m.h5"), *[self.path(f"share-{i}.h5") for i in (3, 2, 1)], "--columns", "rank,tp").splitlines()[0:1],
                         self.good("plan", *words, "--columns", "rank,tp").splitlines()[0:1])
        self.assertIn("--tensor-model-parallel-size", self.good("merge", self.path("m.h5"), *[self.path(f"share-{i}.h5") for i in (1, 2, 3)],
                                                                "--format", "megatron", "--quiet"))

    def test_share_says_what_it_is(self):
        path = self.plan(SETTING)
        text = self.good("plan", path, "--shard", "2/3", "-o", self.path("s.h5"), "--sensitivity")
        self.assertIn("\nshare 2 of 3 of the cuts; what is asked of the best plans waits for the merge\n", text)
        self.assertNotIn("of what there is", text)
        self.assertIn("front", self.good("figure", self.path("s.h5"), "--list"))

    def test_killed_and_resumed(self):
        """What was killed goes on from its journal, and is then what it would have been."""
        words = ("--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "16", "--global-batch", "64", "--tp", "1,2,4", "--each", "pp",
                 "--schedule", "1f1b,v-adaptive", "--top", "3", "--jobs", "1", "--quiet")
        undisturbed = self.share(2, *words, name="undisturbed")
        killed = self.path("killed.h5")
        share = ("plan", *words, "--shard", "2/2", "-o", killed)
        for size in (1000, 4000):
            process = subprocess.Popen([PIPECAST, *share], stdout=subprocess.DEVNULL)
            until = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < until:
                if os.path.exists(killed + ".journal") and os.path.getsize(killed + ".journal") > size:
                    break
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.good(*share)
        self.assertEqual(pathlib.Path(killed).read_bytes(), pathlib.Path(undisturbed[1]).read_bytes())
        self.good("plan", *words, "-o", self.path("whole.h5"))
        self.good("merge", self.path("merged.h5"), killed, undisturbed[0])
        self.assertEqual(self.read("whole.h5"), self.read("merged.h5"))

    def refused(self, message, *arguments, output="merged.h5"):
        done = run("merge", self.path(output), *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pipecast: {message}\n"))
        self.assertFalse(os.path.exists(self.path("merged.h5")))

    def test_wrong_shares(self):
        path = self.plan(SETTING)
        one, two, three = self.share(3, path)
        half = self.share(2, path, name="half")
        other = self.share(3, path, "--tp", "1,2", name="other")
        sweep, plans, words = self.path("sweep.h5"), self.path("plans.h5"), self.path("words.h5")
        self.good("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--tp", "1", "--dp", "1", "-o", sweep)
        self.good("plan", path, "-o", plans)
        pathlib.Path(words).write_text("no HDF5 file")
        no_share = "is no share of a plan, as others are; expected files of `pipecast plan --shard`"
        for message, shares in (
                ("of 3 shares of the plan 1 is in no file: 2; expected all of them", (three, one)),
                ("of 3 shares of the plan 2 are in no file: 1, 3; expected all of them", (two,)),
                (f"{one}: is share 1 of 3, and so is {one}; expected each share once", (one, one, two)),
                (f"{half[1]}: is one of 2 shares, and {one} one of 3; expected shares of one number", (one, half[1])),
                (f"{other[1]}: is a share of another plan than {one}; expected shares of one, made by the same words", (one, other[1])),
                (f"{sweep}: {no_share}", (one, sweep)),
                (f"{plans}: {no_share}", (one, plans)),
                (f"{words}: is not an HDF5 file; expected a results file of pipecast", (one, words)),
                (f"{self.path('no.h5')}: No such file or directory; expected a results file", (self.path("no.h5"), one))):
            with self.subTest(message):
                self.refused(message, *shares)
        before = pathlib.Path(two).read_bytes()
        self.refused(f"-o: {two}: is one of the shares; expected another file", one, two, three, output=os.path.basename(two))
        self.assertEqual(pathlib.Path(two).read_bytes(), before)
        self.refused("merge: --format beside shards of a sweep; expected it beside shares of a plan", sweep, "--format", "csv")

    def test_what_has_changed_since(self):
        """Shares of a scenario that is another one now are no answer to it; nor of a file that it names."""
        pathlib.Path(self.path("tiny.yaml")).write_text("model: tiny\nlayers: 4\nhidden: 1024\nheads: 8\nseq_len: 512\nvocab: 8000\n")
        text = SETTING.replace("{name: tiny, layers: 4, hidden: 1024, heads: 8, seq_len: 512, vocab: 8000}", "{from: tiny.yaml}")
        path = self.plan(text)
        shares = self.share(2, path)
        changed = (f"{shares[0]}: is of another question: the scenario, or a file that it names, has changed since; expected shares "
                   "of what is there")
        self.plan(text.replace("global_batch: 16", "global_batch: 32"))
        self.refused(changed, *shares)
        self.plan(text)
        model = pathlib.Path(self.path("tiny.yaml"))
        model.write_text(model.read_text().replace("1024", "2048"))
        self.refused(changed, *shares)
        model.write_text(model.read_text().replace("2048", "1024"))
        self.good("merge", self.path("merged.h5"), *shares)

    def test_what_cannot_be(self):
        given = ("--model", "gpt3-1.3b", "--machine", "dgx-a100")
        to_file = ("--shard", "1/2", "-o", "x.h5")
        for message, words in (
                ("plan: --shard without -o and --cache; expected a file of the share, for `pipecast merge`", ("--shard", "1/2")),
                ("plan: --shard beside -o job.toml: a share's plans are not the best of all; expected a file such as share.h5, for "
                 "`pipecast merge`", ("--shard", "1/2", "-o", "job.toml", "--format", "torchtitan")),
                ("plan: --shard beside several models, of which one is chosen before the search for plans; expected one model",
                 (*to_file, "--model", "gpt3-1.3b,gpt3-13b")),
                ("plan: --shard beside --anew, which searches for what becomes of plan 1, and no share knows that; expected "
                 "--sensitivity alone, or the plan of all", (*to_file, "--sensitivity", "--anew")),
                ("plan: --shard beside a word with a line break, or a scenario whose name begins with -; expected words that a line "
                 "can have", (*to_file, "--set", "setting.gpus=\n8")),
                ("plan: --shard beside a deadline or a budget: no share knows on how few GPUs the others keep to it; expected --each gpus, "
                 "which shows that, or these of the plan of all", (*to_file, "--tokens", "1B", "--deadline", "30d"))):
            with self.subTest(message):
                self.bad(2, message, "plan", *given, "--gpus", "8,16", *words)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
