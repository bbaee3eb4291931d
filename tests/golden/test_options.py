"""A cluster by options alone: what they ask for, numbers as people write them, and what was probably meant by what cannot be.

usage: test_options.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import IS_QUICK, PIPECAST, ROOT, Command, run  # noqa: E402


class Cluster(Command):
    """Whole iterations, by options alone: what README promises, and what an answer has."""
    OPTIONS = ("run", "--model", "gpt3-13b", "--machine", "dgx-a100", "--gpus", "64", "--tp", "4", "--pp", "4")

    def rows(self, *arguments, status=0):
        done = run(*arguments, "--format", "csv")
        self.assertEqual((done.returncode, done.stderr), (status, ""), done)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_the_common_question(self):
        row, = self.rows("run", "--model", "llama3-70b", "--machine", "dgx-h100", "--gpus", "512", "--tp", "8", "--pp", "4",
                         "--schedule", "v-half")
        self.assertEqual([row[c] for c in ("model", "machine", "gpus", "tp", "pp", "dp", "virtual_pp", "schedule", "status")],
                         ["llama3-70b", "dgx-h100", "512", "8", "4", "16", "2", "v-half", "ok"])
        self.assertTrue(0.2 < float(row["mfu"]) < 0.7)
        self.assertAlmostEqual(float(row["tflops_per_gpu"]), float(row["mfu"]) * float(row["peak_tflops"]))
        for column in ("iteration_s", "tokens_per_s_per_gpu", "exposed_tp_s", "exposed_bubble_s", "memory_gib_max",
                       "parameters_gib_max", "standard_error_s", "trace_hash"):
            self.assertNotEqual(row[column], "", column)

    def made_up(self, backward):
        """A machine of GPUs that lose nothing but in products; attention takes `backward` times as long a FLOP in B."""
        gpu, machine = self.path("made-up.yaml"), self.path("machine.yaml")
        pathlib.Path(gpu).write_text(f"""
gpu: made-up
source: nobody
matrix: 100 TFLOP/s
vector: 1000 TFLOP/s
memory_bandwidth: 100 TB/s
memory: 1 TB
l2: 50 MiB
processors: 8
profile: {{source: nobody, tile: 64x64, gemm_efficiency: 0.7, gemm_ramp_k: 0, attention_efficiency: 1,
          attention_backward: {backward}, memory_efficiency: 1, kernel: 0 us, launch: 0 us, estimated_error: 0}}
""")
        pathlib.Path(machine).write_text("machine: made-up\nfrom: dgx-h100\ngpu: made-up.yaml\nspeed_variation: 0\n")
        return machine

    def warning(self, command, *arguments):
        done = run(command, "--model", "llama3-8b", "--machine", self.made_up(1), "--gpus", "8", "--global-batch", "8", *arguments)
        self.assertEqual(done.returncode, 0, done)
        return done.stderr

    def test_more_than_the_peak_is_warned_of(self):
        """Of 8k tokens attention is little, of 64k most, and half of it is masked: without that MFU is below 1, for no
        kernel is faster than the peak."""
        seq = ("--seq-len", "8192,65536")
        text = self.warning("run", *seq)
        self.assertRegex(text, r"\Apipecast: warning: run 2 \(flags\.1f1b\.s65536\): MFU 1\.\d+, HFU 1\.\d+, over 1 of the peak that they "
                               r"divide by \(matrix: 100 TFLOP/s\); they count the whole s x s of attention, of which a causal mask leaves half "
                               r"to compute: without the other half MFU 0\.\d+, HFU 0\.\d+\n\Z")
        self.assertEqual(self.warning("run", *seq, "--quiet"), "")
        self.assertEqual(self.warning("run", "--seq-len", "8192"), "")
        output = self.path("over.h5")
        self.assertEqual(self.warning("run", *seq, "-o", output), text)
        self.assertEqual(self.warning("run", *seq, "-o", output, "--format", "csv"), text)  # and of what was done before
        both = self.warning("run", "--seq-len", "65536", "--recompute", "none,selective")
        self.assertRegex(both, r"\Apipecast: warning: runs 1-2: MFU or HFU over 1, most in run \d \(flags\.1f1b\.recompute-\w+\): MFU ")
        self.assertRegex(self.warning("plan", "--seq-len", "65536", "--top", "2"), r"\Apipecast: warning: plans 1-2: MFU or HFU over 1, most in plan ")
        self.assertEqual(self.warning("plan", "--seq-len", "65536", "--top", "2", "--quiet"), "")

    def test_more_than_a_gpu_can_do_is_said(self):
        machine = self.made_up(0.125)
        done = run("run", "--model", "llama3-8b", "--machine", machine, "--gpus", "8", "--global-batch", "8", "--seq-len", "65536")
        self.assertRegex(done.stderr, r"without the other half MFU 1\.\d+, HFU 1\.\d+, still more than a GPU can do: kernels take less than at "
                                      r"that peak\n\Z")

    def test_options_are_sets(self):
        by_options = self.good(*self.OPTIONS, "--zero", "0", "--seq-len", "1024", "--format", "csv")
        sets = ["model.from=gpt3-13b", "machine=dgx-a100", "gpus=64", "tp=4", "pp=4", "zero=0", "model.seq_len=1024"]
        path = self.path("x.yaml")
        pathlib.Path(path).write_text("scenario: flags\n")
        by_sets = self.good("run", path, *[word for s in sets for word in ("--set", "setting." + s)], "--format", "csv")
        self.assertEqual(by_options, by_sets)

    def test_lists_sweep(self):
        rows = self.rows(*self.OPTIONS, "--tp", "2,4", "--schedule", "1f1b,zb-h1", "--machine", "dgx-a100,dgx-h100")
        self.assertEqual([row["name"] for row in rows],
                         [f"flags.{s}.{m}.tp{t}" for m in ("dgx-a100", "dgx-h100") for t in (2, 4) for s in ("1f1b", "zb-h1")])
        self.assertEqual([row["dp"] for row in rows], ["8", "8", "4", "4"] * 2)

    def test_layout_without_a_word(self):
        """Llama 3 405B: 126 layers do not divide over 16 stages, and 126 + 2 do; over 9 they do, and over 11 those
        between embedding and head. What was taken is in the row, above the table if it is not even, and equals what
        `--layout` says. A quick run takes the last of the three alone; the others' layouts are in its sweep."""
        llama = ("run", "--model", "llama3-405b", "--machine", "dgx-h100", "--tp", "8", "--memory", "400 GiB")
        for pp, gpus, layout in ((16, 8192, "ends"), (9, 9216, "even"), (11, 5632, "own"))[2 if IS_QUICK else 0:]:
            cut = (*llama, "--pp", str(pp), "--gpus", str(gpus))
            row, = self.rows(*cut)
            self.assertEqual((row["status"], row["layout"]), ("ok", layout))
            self.assertEqual(self.rows(*cut, "--layout", layout), [row])
            self.assertEqual(self.rows(*cut, "--layout", "auto"), [row])
            heading = self.good(*cut).split("\n\n")[0].replace("\n", " ")
            self.assertEqual(f", layout {layout}" in heading, layout != "even", heading)
        row, = self.rows(*llama, "--pp", "16", "--gpus", "8192", "--layout", "even", status=1)
        self.assertEqual(row["message"], "layers 126 do not divide over 16 model parts; expected --layout ends or own")
        rows = self.rows(*llama, "--gpus", "9216", "--pp", "9,16", "--schedule", "1f1b,v-half", "--microbatches", "32")
        self.assertEqual([row["layout"] for row in rows], ["even", "even", "ends", "ends"])

    def test_layouts_as_lists(self):
        """The layers of every part, in numbers or as Megatron-LM writes them: one layout has the same row in both."""
        twice = ("Et*9|t*11|t*12|t*8L", "9,11,12,8")
        rows = self.rows(*self.OPTIONS, "--layout", ";".join(twice))
        self.assertEqual([row["name"] for row in rows], [f"flags.1f1b.layout-{layout}" for layout in twice])
        self.assertEqual({row["layout"] for row in rows}, {"9,11,12,8"})
        self.assertEqual(len({row["trace_hash"] for row in rows}), 1)
        rows = self.rows(*self.OPTIONS, "--layout", "even,9,11,12,8,own,Et*8|(t*12,|)*2,t*8L", "--memory", "200 GiB")
        self.assertEqual([row["layout"] for row in rows], ["even", "9,11,12,8", "own", "8,12,12,8"])
        for row in rows:  # what is printed can be asked for
            again, = self.rows(*self.OPTIONS, "--layout", row["layout"], "--memory", "200 GiB")
            self.assertEqual([again[name] for name in ("key", "layout", "iteration_s")],
                             [row[name] for name in ("key", "layout", "iteration_s")])
        for layout, message in (
                ("9,11,12", "3 parts for 4 devices x 1 chunks; expected the layers of 4 parts of the model"),
                ("Et*4|(t*4|)*14mtL", "Et*4|(t*4|)*14mtL: at 16: t behind m; expected L alone, or more m"),
                ("E'|tL", "E'|tL: at 2: '''; expected E, t, m, L, |, *, ( or )"),
                ("E(t)*2000000000(t)*2000000000L", "E(t)*2000000000(t)*2000000000L: at 16: too many layers; "
                                                   "expected up to 2147483647")):
            done = run(*self.OPTIONS, "--layout", layout)
            self.assertEqual((done.returncode, done.stderr), (2, f"pipecast: --layout: {message}\n"))

    def test_table_names_the_peak_and_where_time_goes(self):
        text = self.good(*self.OPTIONS)
        self.assertIn(", peak TFLOP/s 312", text.split("\n\n")[0])
        header = text.split("\n\n")[1].split()
        for word in ("MFU", "TP", "PP", "DP", "bubble", "memory"):
            self.assertIn(word, header)

    def test_what_does_not_fit_is_an_answer(self):
        row, = self.rows(*self.OPTIONS, "--memory", "10 GiB", status=1)
        self.assertEqual((row["status"], row["iteration_s"]), ("out_of_memory", ""))
        self.assertRegex(row["message"], "^stage [0-3]: .* of 10 GiB: .* too much$")
        done = run(*self.OPTIONS, "--memory", "10 GiB")
        self.assertEqual(done.returncode, 1)
        self.assertIn("\nrun 1: " + row["message"] + "\n", done.stdout)
        done = run(*self.OPTIONS, "--memory", "10 GiB", "--format", "json")
        self.assertEqual(json.loads(done.stdout)[0]["message"], row["message"])
        row, = self.rows(*self.OPTIONS, "--tp", "3", "--gpus", "48", status=1)
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("heads", row["message"])
        rows = self.rows(*self.OPTIONS, "--pp", "4,5", status=1)
        self.assertEqual([row["status"] for row in rows], ["ok", "infeasible"])
        self.assertIn("64 GPUs for tp 4 x pp 5", rows[1]["message"])
        self.assertEqual((rows[1]["dp"], rows[1]["gpus"]), ("", "64"))

    def test_memory_by_kind_in_the_results_file(self):
        path = self.path("r.h5")
        self.good(*self.OPTIONS, "--trace", "true", "-o", path)
        self.good("figure", path, "1", "-o", self.path("f.svg"))
        done = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True)
        for name in ("parameters_bytes", "gradients_bytes", "optimizer_bytes", "buffers_bytes", "activations_bytes",
                     "peak_total_bytes", "peak_ps", "capacity_bytes"):
            self.assertIn(f'DATASET "device_{name}"', done.stdout)

    def test_a_file_and_options(self):
        """An option wins over the file; a machine of one's own stands beside it."""
        pathlib.Path(self.path("own.yaml")).write_text("machine: own\nfrom: dgx-a100\nnodes: 2\n")
        pathlib.Path(self.path("x.yaml")).write_text("scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: own.yaml}\n"
                                                     "sweep: {tp: [1, 2]}\n")
        rows = self.rows("run", self.path("x.yaml"))
        self.assertEqual([(row["machine"], row["tp"], row["model"]) for row in rows],
                         [("own", "1", "gpt3-1.3b"), ("own", "2", "gpt3-1.3b")])
        row, = self.rows("run", self.path("x.yaml"), "--tp", "4", "--model", "gpt3-2.7b")
        self.assertEqual((row["machine"], row["tp"], row["model"]), ("own", "4", "gpt3-2.7b"))
        done = run("run", self.path("x.yaml"), "-o", self.path("x.yaml"))
        self.assertIn("x.yaml: is the scenario; expected another file\n", done.stderr)
        row, = self.rows("run", self.path("x.yaml"), "--tp", "4", "--gpus", "64", status=1)
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("16", row["message"])

    def test_results_do_not_depend_on_threads(self):
        texts = {self.good(*self.OPTIONS, "--tp", "1,2,4", "--zero", "0,1", "--format", "csv", "--jobs", jobs)
                 for jobs in ("1", "3")}
        self.assertEqual(len(texts), 1)

    def test_lists_of_the_library(self):
        for what, known in (("models", "gpt3-175b"), ("machines", "dgx-h100")):
            lines = self.good("list", what, cwd="/").splitlines()
            names = [line.split()[0] for line in lines[1:]]
            self.assertEqual(sorted(names), sorted(p.stem for p in (ROOT / "scenarios" / what).glob("*.yaml")))
            self.assertIn(known, names)
            self.assertNotIn("does not load", "".join(lines))

    def test_lists_as_json(self):
        """Of each kind the table's things, in its order."""
        folder = {**os.environ, "PIPECAST_SCENARIOS": str(ROOT / "tests/data/scenarios")}
        for what, key in (("schedules", "name"), ("models", "name"), ("machines", "name"), ("software", "name"), ("precisions", "name"),
                          ("profiles", "name"), ("scenarios", "path"), ("keys", "key")):
            with self.subTest(what):
                said, table = (subprocess.run([PIPECAST, "list", what, "--format", form], capture_output=True, text=True, env=folder,
                                              timeout=120) for form in ("json", "table"))
                self.assertEqual((said.returncode, said.stderr, table.returncode), (0, "", 0))
                rows, lines = json.loads(said.stdout), table.stdout.splitlines()
                names = [row[key] for row in rows]
                if what == "keys":
                    self.assertEqual(names, [line[2:] for line in lines if re.match("  [^ ]", line)])
                else:
                    heads = what in ("models", "machines", "profiles")
                    self.assertEqual(names, [line.split()[0] for line in lines[heads:] if line[:1] not in ("", " ")])
                self.assertGreater(len(rows), 3)
        by_name = {what: {row["name"]: row for row in json.loads(self.good("list", what, "--format", "json"))}
                   for what in ("models", "machines", "schedules", "software")}
        self.assertEqual(by_name["models"]["gpt3-175b"]["layers"], 96)
        self.assertEqual(round(by_name["models"]["gpt3-175b"]["parameters"] / 1e9), 175)
        self.assertEqual([by_name["machines"]["dgx-h100"][name] for name in ("gpu", "gpus_per_node", "gpus")], ["h100-sxm", 8, None])
        self.assertIn("megatron", by_name["schedules"]["1f1b-interleaved"]["makings"])
        self.assertIn("cross_entropy: ", by_name["software"]["automodel"]["settings"])

    def test_bad_input(self):
        cases = [
            ("--tp: 0: out of range; expected a whole number from 1 to 65536", ["--tp", "0"]),
            ("--gpus: 60 GPUs for tp 4 x pp 4 x dp 1, of which dp is to follow; expected a "
             "multiple of the product of the other two", ["--gpus", "60"]),
            ("--gpus: 60 GPUs for tp 4 x cp 2 x pp 4 x dp 1, of which dp is to follow; expected a "
             "multiple of the product of the others", ["--gpus", "60", "--cp", "2"]),
            ("--machine: dgx-h10: no such machine in the library (did you mean "
             "dgx-h100?); expected one of `pipecast list machines`, or a file such as ./own.yaml", ["--machine", "dgx-h10"]),
            ("--tp: 0: out of range; expected a whole number from 1 to 65536", ["--tp", "1,0"]),
            ("--set setting.tp=0: setting.tp: 0: out of range; expected a whole number from 1 to 65536",
             ["--set", "setting.tp=0"]),
            ("run: --tp: no value; expected --tp N", ["--tp"]),
            ("--tp: '1,,2': a list with an empty entry; expected one comma between two values", ["--tp", "1,,2"]),
            ("--global-batch: stands beside --microbatches; expected one of the two",
             ["--microbatches", "8", "--global-batch", "128"]),
        ]
        for message, arguments in cases:
            with self.subTest(arguments=arguments):
                self.bad(2, message, *self.OPTIONS, *arguments)
        self.bad(2, "--machine: missing; expected one of `pipecast list machines` or a file, or times or stages",
                 "run", "--model", "gpt3-13b")


class Numbers(Command):
    """Numbers as people write them mean what those that were always read mean."""
    OPTIONS = ("run", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "64", "--recompute", "full", "--format", "csv")

    def test_two_ways_of_one_number(self):
        for one, other in [
            (["--seq-len", "4k"], ["--seq-len", "4096"]),
            (["--gpus", "1k", "--tp", "8"], ["--gpus", "1024", "--tp", "8"]),
            (["--memory", "80G"], ["--memory", "80 GiB"]),
            (["--memory", "80G,40G"], ["--memory", "80 GiB,40 GiB"]),
            (["--price", "2.10"], ["--price", "2.10/h"]),
            (["--price", "$2.10/h"], ["--price", "2.10/h"]),
            (["--price", "2.10 USD/GPU-hour"], ["--price", "2.10/h"]),
            (["--pp", "1..4"], ["--pp", "1,2,3,4"]),
            (["--pp", "1,2,4..16"], ["--pp", "1,2,4,8,16"]),
            (["--gpus", "64..512x2", "--pp", "2"], ["--gpus", "64,128,256,512", "--pp", "2"]),
            (["--microbatch-size", "2..6+2"], ["--microbatch-size", "2,4,6"]),
            (["--zero", "0..3"], ["--zero", "0,1,2,3"]),
            (["--pp", "2", "--samples", "20", "--mtbf", "2111 days", "--checkpoint", "0.1 hours"],
             ["--pp", "2", "--samples", "20", "--mtbf", "2111d", "--checkpoint", "6min"]),
            (["--set", "setting.overhead=0.001 hours"], ["--set", "setting.overhead=3600 ms"]),
            (["--set", "sweep.tp=[1, 2, 4..8]"], ["--tp", "1,2,4,8"]),
        ]:
            with self.subTest(one):
                found, wanted = (run(*self.OPTIONS, *words) for words in (one, other))
                self.assertEqual((found.returncode, found.stdout, found.stderr), (wanted.returncode, wanted.stdout, ""))
                self.assertIn(found.returncode, (0, 1))  # some do not fit

    def test_a_file_has_them_too(self):
        path = self.path("x.yaml")
        pathlib.Path(path).write_text("scenario: x\nsetting: {model: {from: llama3-8b, seq_len: 4k}, machine: dgx-h100, gpus: 64, "
                                      "recompute: full}\nsweep:\n  pp: [1, 2, 4..16]\n  microbatch_size: [1..2]\n")
        done = run("run", path, "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([(row["pp"], row["microbatch_size"]) for row in rows],
                         [(str(p), str(b)) for p in (1, 2, 4, 8, 16) for b in (1, 2)])
        self.assertEqual({row["seq_len"] for row in rows}, {"4096"})

    def test_a_file_of_a_folder_above_is_no_range(self):
        """Dots of a path: the machine's name stays that of a setting, and runs are not named by it."""
        pathlib.Path(self.path("own.yaml")).write_text("machine: own\nfrom: dgx-h100\n")
        os.mkdir(self.path("sub"))
        row, = csv.DictReader(io.StringIO(self.good("run", "--model", "gpt3-1.3b", "--machine", "../own.yaml", "--gpus", "8",
                                                    "--format", "csv", cwd=self.path("sub"))))
        self.assertEqual((row["name"], row["machine"]), ("flags.1f1b", "own"))

    def test_bad_input(self):
        whole = "expected a whole number from 1 to 2147483647"
        shape = "expected a range such as 1..8, 8..64+8, 4..64x2, or 1,2,4..16"
        for message, arguments in [
            ("--gpus: 1,024 is 2 values, 1 and 024; expected 1024, without a comma", ["--gpus", "1,024"]),
            ("--gpus: 16,000,000 is 3 values, 16, 000 and 000; expected 16000000, without a comma", ["--gpus", "16,000,000"]),
            (f"--gpus: 024: begins with a zero; {whole}", ["--gpus", "024"]),
            (f"--gpus: 08: begins with a zero; {whole}", ["--gpus", "8,08"]),
            ("--slow-factor: 05: begins with a zero; expected a number of at least zero, without a unit",
             ["--slow-gpus", "1", "--samples", "2", "--slow-factor", "1,05"]),
            ("--layout: 012,12: at 1: begins with a zero; expected a number that does not", ["--pp", "2", "--layout", "012,12"]),
            ("--set setting.gpus=1,024: setting.gpus: 1,024: has a comma; expected 1024", ["--set", "setting.gpus=1,024"]),
            (f"--pp: 4..16: behind one number, which says neither step nor ratio; {shape}", ["--pp", "2,4..16"]),
            ("--pp: 4..20: goes from 16 to 32; expected one of these at its end", ["--pp", "1,2,4..20"]),
            (f"--pp: 8..2: runs backwards; {shape}", ["--pp", "8..2"]),
            ("--gpus: 512..16385: more than 4096 values; expected fewer, as of 512..16384x2, which doubles",
             ["--gpus", "512..16385"]),
            ("--pp: 4 twice; expected values that differ", ["--pp", "1..4,4"]),
            ("--samples: 1k: may mean thousands or 1024s; expected a whole number from 0 to 1000000", ["--samples", "1k"]),
            ("--price: $2.10/day: unknown unit '/day'; expected a price above zero of a GPU-hour such as 2.10, $2.10/h or 2.10 "
             "EUR/h", ["--price", "$2.10/day"]),
        ]:
            with self.subTest(arguments):
                self.bad(2, message, *self.OPTIONS, *arguments)


class Meant(Command):
    """What a newcomer types: one line, status 2, and what was probably meant."""
    RUN = ("run", "--model", "llama3-8b", "--machine", "dgx-h100", "--gpus", "64")
    CASES = [
        ("run", ["rnu"]), ("run", ["simulate"]), ("schedule", ["shedule"]), ("list models", ["models"]), ("figure", ["plot"]),
        ("compare", ["diff"]), ("calibrate", ["calibarte"]),
        ("--microbatches or --microbatch-size", [*RUN, "--microbatch", "8"]), ("--gpus", ["run", "--gpu", "8"]),
        ("--gpus", ["run", "-gpus", "8"]), ("--gpus", ["run", "--num-gpus=8"]), ("--tp", ["run", "--tensor-parallel", "8"]), ("--making", ["run", "--plan=equal"]),
        ("--seq-len", ["run", "--seq-length", "4k"]), ("--microbatch-size", ["run", "--micro-batch-size", "1"]),
        ("--output", ["run", "x.yaml", "-output", "x.h5"]), ("--microbatches", ["schedule", "1f1b", "--microbatchs", "8"]),
        ("--exit-code", ["compare", "a.h5", "b.h5", "--exitcode"]), ("--quick", ["calibrate", "--quik"]),
        ("zb-v", [*RUN, "--schedule", "zbv"]), ("zb-h1", [*RUN, "--schedule", "1f1b,ZB-H1"]),
        ("1f1b-interleaved", [*RUN, "--schedule", "Interleaved1F1B"]),
        ("1f1b-interleaved, seq-1f1b-interleaved or 1f1b-interleaved-overlap", ["schedule", "1f1b-inter", "-p", "4", "-m", "8"]),
        ("zb-h1 or zb-h2", ["schedule", "zb-h3", "-p", "4", "-m", "8"]),
        ("dgx-h100 or grand-teton", [*RUN, "--machine", "h100"]), ("dgx-h100", [*RUN, "--machine", "h100-sxm"]),
        ("hgx-h200", [*RUN, "--machine", "H200"]), ("dgx-a100, a100-pcie or a100-hdr-4-nics", [*RUN, "--machine", "a100"]),
        ("llama3-70b", [*RUN, "--model", "Llama-3-70B"]), ("gpt3-175b", [*RUN, "--model", "gpt-175b"]),
        ("json", [*RUN, "--format", "jsn"]), ("torch-csv", ["schedule", "1f1b", "-p", "4", "-m", "8", "--format", "torchcsv"]),
        ("flash", [*RUN, "--attention", "flashattention"]), ("materialised", [*RUN, "--attention", "materialized"]),
        ("selective", [*RUN, "--recompute", "selectiv"]), ("flows", [*RUN, "--network", "flow"]),
        ("even", [*RUN, "--layout", "EVEN"]), ("profile", [*RUN, "--jitter", "profil"]), ("always", [*RUN, "--color", "alwyas"]),
        ("all", [*RUN, "--columns", "ALL"]), ("true", [*RUN, "--trace", "yes"]), ("throughput", ["plan", *RUN[1:], "--objective", "troughput"]),
        ("setting.gpus, sweep.gpus or plan.gpus", [*RUN, "--set", "gpus=8"]),
        ("model.seq_len", [*RUN, "--set", "setting.seq_len=4k"]), ("gpus", [*RUN, "--set", "setting.gpu=8"]),
        ("microbatch_size", [*RUN, "--set", "sweep.microbatchsize=[1]"]),
        ("models", ["list", "model"]), ("machines", ["list", "gpus"]), ("markdown", ["list", "keys", "--format", "markdwn"]),
        ("show", ["profile", "shw", "x.h5"]), ("chrome", ["export", "x.h5", "--run", "1", "--to", "crome"]),
        ("nvlink", ["profile", "fit", "x.txt", "-o", "y.h5", "--link", "nvlnk"]),
    ]

    def test_what_was_meant(self):
        for meant, arguments in self.CASES:
            with self.subTest(arguments):
                done = run(*arguments, cwd=self.folder.name)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
                self.assertIn(f" (did you mean {meant}?); expected ", done.stderr)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_every_gpu_leads_to_its_machines(self):
        lines = [line.split() for line in self.good("list", "machines").splitlines()[1:]]
        for gpu in sorted({line[1] for line in lines}):
            has_it = {line[0] for line in lines if line[1] == gpu}
            if gpu in {line[0] for line in lines}:
                continue  # a machine of that name
            done = run("run", "--model", "llama3-8b", "--machine", gpu, "--gpus", "8")
            meant = done.stderr.partition("(did you mean ")[2].partition("?)")[0].replace(" or ", ", ").split(", ")
            self.assertTrue(meant[0] and has_it.issuperset(meant), (gpu, meant, has_it))

    def test_runs_and_charts_of_a_file(self):
        path, results = self.path("x.yaml"), self.path("r.h5")
        pathlib.Path(path).write_text(
            "scenario: gallery\nsetting: {devices: 2, microbatches: 2, trace: true, times: {F: 1 s, B: 1 s, W: 1 s}}\n"
            "sweep: {schedule: [1f1b, zb-h1]}\n"
            "figures: [{name: by-batch, x: microbatches, y: [iteration_s]}]\n")
        self.good("run", path, "-o", results)
        for meant, arguments in [
            ("gallery.zb-h1", ["export", results, "--run", "galery.zbh1", "--to", "csv"]),
            ("gallery/gallery.zb-h1", ["export", results, "--run", "galery/gallery.zb-h1", "--to", "csv"]),
            ("gallery", ["export", results, "--scenario", "galery", "--to", "csv"]),
            ("gallery.1f1b", ["figure", results, "gallery.1f1", "-o", self.path("f.svg")]),
            ("by-batch", ["figure", results, "by_bach", "-o", self.path("f.svg")]),
            ("gallery", ["figure", results, "--scenario", "Galery", "--x", "microbatches", "--y", "mfu", "-o", self.path("f.svg")]),
            ("lines", ["figure", results, "--style", "line", "--x", "microbatches", "--y", "mfu", "-o", self.path("f.svg")]),
        ]:
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
                self.assertIn(f" (did you mean {meant}?); expected ", done.stderr)
        done = run("figure", results, "--x", "microbatch_szie", "--y", "mfu", "-o", self.path("f.svg"))
        self.assertIn("there is no column 'microbatch_szie'; expected one such as 'microbatch_size'", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
