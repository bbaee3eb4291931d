"""`pipecast profile`, and runs with a profile, from outside.

The profile is made of numbers that follow from simple formulas, as CSV; no device is needed.

usage: test_profile.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PIPECAST = os.path.abspath(sys.argv[1])
GPU = "a100-sxm-80gb"


def find_h5py():
    """Debian's h5py belongs to Debian's Python, which need not be the first one on the path."""
    for name in ("python3", "/usr/bin/python3"):
        if subprocess.run([name, "-c", "import h5py"], capture_output=True).returncode == 0:
            return name
    return None


H5_PYTHON = find_h5py()


def run(*arguments, **options):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120, **options)


def products(rate=2e14):
    """Products on three axes: 5 us, and 2 m n k at a rate."""
    rows = ["op,dtype,layout,b,m,n,k,time_us"]
    for layout in ("TN", "NN", "NT"):
        for m in (1024, 4096, 16384):
            for n in (1024, 4096, 16384):
                for k in (1024, 4096, 16384):
                    rows.append(f"matmul,bf16,{layout},1,{m},{n},{k},{5 + 2e6 * m * n * k / rate:.6f}")
    return "\n".join(rows) + "\n"


def collectives(rate=1e11):
    """All-reduces of 8 ranks: 20 us, and bytes at a rate."""
    sizes = [2**i for i in range(12, 31)]
    return "collective,ranks,size_bytes,time_us\n" + "".join(
        f"all_reduce,8,{size},{20 + 1e6 * size / rate:.6f}\n" for size in sizes)


RUN = ("run", "--model", "gpt3-175b", "--gpus", "64", "--tp", "8", "--pp", "8", "--microbatches", "8", "--format", "csv")


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.write_in(cls.shared.name, "gemm.csv", products())
        cls.write_in(cls.shared.name, "nccl.csv", collectives())
        cls.profile = os.path.join(cls.shared.name, "a100.h5")
        done = cls.fit(cls.profile)
        assert done.returncode == 0, done

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    @classmethod
    def fit(cls, output, *more):
        inputs = [os.path.join(cls.shared.name, name) for name in ("gemm.csv", "nccl.csv")]
        return run("profile", "fit", *inputs, "-o", output, "--gpu", GPU, "--processors", "108", "--link", "nvlink",
                   "--device", "A100 of a test", *more)

    @staticmethod
    def write_in(folder, name, text):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def good(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done)
        return done

    def bad(self, message, *arguments, status=2):
        """One line on standard error that has the message, nothing on standard output, no file left."""
        done = run(*arguments, cwd=self.folder.name)
        before = self.files
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertTrue(done.stderr.startswith("pipecast: "), done)
        self.assertIn(message, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)

    @property
    def files(self):
        return sorted(self.known)

    known = ()


class Help(Profile):
    def test_help_has_examples(self):
        for arguments in (["--help"], ["show", "--help"], ["fit", "-h"]):
            self.assertIn("\nexample: pipecast profile", self.good("profile", *arguments).stdout)

    def test_usage(self):
        self.bad("no subcommand; expected show, fit, tune or compare", "profile")
        self.bad("unknown subcommand 'shw' (did you mean show?); expected show, fit, tune or compare", "profile", "shw")
        self.bad("0 files; expected one PROFILE.h5", "profile", "show")
        self.bad("1 file; expected A.h5 B.h5", "profile", "compare", self.profile)
        self.bad("no output; expected -o PROFILE.h5", "profile", "fit", self.profile)
        self.bad("has no option --ranks", "profile", "show", self.profile, "--ranks", "8")
        self.bad("--fit without --figure or --residuals", "profile", "show", self.profile, "--fit", "gemm")
        self.bad("unknown format 'xml'; expected table, csv or json", "profile", "show", self.profile, "--format", "xml")
        self.bad("out of range", "profile", "fit", self.profile, "-o", "x.h5", "--processors", "0")


class Show(Profile):
    def test_table_has_fits_and_errors(self):
        shown = self.good("profile", "show", self.profile).stdout
        for part in ("A100 of a test", GPU, "gemm_forward bf16 cold", "gemm_weight_gradient", "all_reduce, 8 ranks, nvlink",
                     "+-", "TFLOP/s", "cross-validated", "27 points, batch 1, m 1024 to 16384", "4 KiB to 1 GiB"):
            self.assertIn(part, shown)

    def test_json_is_everything(self):
        shown = json.loads(self.good("profile", "show", self.profile, "--format", "json").stdout)
        self.assertEqual(shown["device"]["gpu"], GPU)
        self.assertEqual(shown["device"]["processors"], 108)
        self.assertEqual((len(shown["kernels"]), len(shown["transfers"])), (81, 19))
        fits = {fit["name"]: fit for fit in shown["fits"]}
        parameters = {p["name"]: p for p in fits["all_reduce, 8 ranks, nvlink"]["parameters"]}
        alpha = next(p for name, p in parameters.items() if name.startswith("alpha"))
        beta = next(p for name, p in parameters.items() if name.startswith("beta"))
        self.assertAlmostEqual(alpha["value"] / 20e-6, 1, places=3)
        self.assertAlmostEqual(beta["value"] / 1e11, 1, places=3)
        rate = next(p for p in fits["gemm_forward bf16 cold"]["parameters"] if p["name"] == "rate")
        self.assertAlmostEqual(rate["value"] / 2e14, 1, delta=0.1)

    def test_csv_has_a_line_a_parameter(self):
        rows = list(csv.DictReader(io.StringIO(self.good("profile", "show", self.profile, "--format", "csv").stdout)))
        self.assertEqual({row["fit"] for row in rows if row["form"] == "transfer"}, {"all_reduce, 8 ranks, nvlink"})
        self.assertTrue(all(float(row["value"]) >= 0 for row in rows))

    def test_figures(self):
        starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
        for option, name in (("--figure", "figure"), ("--residuals", "residuals")):
            for ending, start in starts.items():
                figure = self.path(f"{name}.{ending}")
                self.good("profile", "show", self.profile, option, figure, "--fit", "gemm")
                with open(figure, "rb") as file:
                    first = file.read()
                self.assertTrue(first.startswith(start))
                self.good("profile", "show", self.profile, option, figure, "--fit", "gemm")
                with open(figure, "rb") as file:
                    self.assertEqual(file.read(), first)
        self.known = tuple(f"{name}.{ending}" for name in ("figure", "residuals") for ending in starts)
        with open(self.path("figure.svg")) as file:
            picture = file.read()
        self.assertNotIn("#171717", picture.lower())
        for option, name in (("--figure", "figure"), ("--residuals", "residuals")):
            self.good("profile", "show", self.profile, option, self.path(f"{name}.svg"), "--fit", "gemm", "--dark")
            drawn = pathlib.Path(self.path(f"{name}.svg")).read_text()
            self.assertIn("#171717", drawn.lower())
            self.assertNotRegex(drawn, r'fill="(?:black|rgb\(0,0,0\))" font-family')
        self.bad("--dark without --figure or --residuals", "profile", "show", self.profile, "--dark")
        for panel in ("gemm_forward", "gemm_input_gradient", "gemm_weight_gradient", "TFLOP/s"):
            self.assertIn(panel, picture)
        # The library's have shapes, which surfaces stand on, but no times.
        self.good("profile", "show", "b200", "--figure", self.path("figure.svg"), "--fit", "gemm")
        self.bad("a profile without measurements has no residuals; expected a file of", "profile", "show", "b200",
                 "--residuals", "x.svg")
        self.bad("ends in .svg, .png or .pdf", "profile", "show", self.profile, "--figure", "x.jpg")
        self.bad("no fit's name has 'softmax' in it; expected one of", "profile", "show", self.profile, "--figure", "x.svg",
                 "--fit", "softmax")


class Fit(Profile):
    def test_same_input_same_bytes(self):
        again = self.path("again.h5")
        self.assertEqual(self.fit(again).returncode, 0)
        with open(again, "rb") as one, open(self.profile, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_a_profile_is_fitted_again(self):
        again = self.path("again.h5")
        done = self.good("profile", "fit", self.profile, "-o", again, "--gpu", "h100-sxm")
        self.assertIn("4 fits of 100 measurements", done.stderr)
        shown = json.loads(self.good("profile", "show", again, "--format", "json").stdout)
        self.assertEqual((shown["device"]["gpu"], shown["device"]["name"]), ("h100-sxm", "A100 of a test"))
        compared = json.loads(self.good("profile", "compare", self.profile, again, "--format", "json").stdout)
        self.assertEqual(compared["device_differences"], ["gpu"])
        self.assertEqual(len(compared["fits"]), 4)
        for fit in compared["fits"]:
            for shape in fit["shapes"]:
                self.assertEqual((shape["ratio"], shape["within"]), (1, True))

    def test_bad_input(self):
        self.write_in(self.folder.name, "bad.csv", products().replace(",1024,", ",1o24,", 1))
        self.write_in(self.folder.name, "few.csv", "\n".join(products().splitlines()[:4]) + "\n")
        self.known = ("bad.csv", "few.csv")
        self.bad("bad.csv:2: ", "profile", "fit", "bad.csv", "-o", "x.h5", "--gpu", GPU, "--processors", "108")
        self.bad("too few", "profile", "fit", "few.csv", "-o", "x.h5", "--gpu", GPU, "--processors", "108")
        self.bad("No such file", "profile", "fit", "nothing.csv", "-o", "x.h5")
        self.bad("there is no folder", "profile", "fit", self.profile, "-o", "no/x.h5")

    def test_what_the_file_does_not_say_has_an_option(self):
        """Each line names the option that says it."""
        fit = ("profile", "fit", "-o", "x.h5")
        self.write_in(self.folder.name, "ranks.csv", "ranks,size_bytes,time_us\n8,1000,10\n")
        self.write_in(self.folder.name, "op.csv", "op,size_bytes,time_us\nall_reduce,1000,10\n")
        self.write_in(self.folder.name, "two.csv", "device,op,ranks,size_bytes,time_us\nA,all_reduce,8,1,1\n"
                      "B,all_reduce,8,1,1\n")
        self.write_in(self.folder.name, "gemm.csv", products())
        self.known = ("ranks.csv", "op.csv", "two.csv", "gemm.csv")
        self.bad("ranks.csv:2: no column says which collective this is; expected one named collective, or --collective "
                 "with send_recv, all_reduce", *fit, "ranks.csv")
        self.bad("op.csv:2: all_reduce without ranks or bytes; expected columns ranks and bytes, or --ranks N", *fit, "op.csv")
        self.bad("two.csv:3: a row of the device 'B' beside rows of 'A'; expected one device, or the name of the one to "
                 "take (--device)", *fit, "two.csv")
        self.bad("beside rows of 'A', and none of 'C'; expected", *fit, "two.csv", "--device", "C")
        self.bad("which fits of gemm_forward need; expected their number, as `pipecast profile fit --processors N` gives",
                 *fit, "gemm.csv")
        self.bad("the collective 'gather' (did you mean all_gather?); expected send_recv", *fit, "ranks.csv", "--collective", "gather")
        self.bad("the link 'wire'; expected nvlink, pcie, network or loopback", *fit, self.profile, "--link", "wire")
        self.bad("--ranks: 1: out of range; expected a whole number from 2", *fit, self.profile, "--ranks", "1")
        for option in ("--gpu", "--device"):
            self.bad(f"{option}: 0 characters; expected 1 to 127", *fit, self.profile, option, "")
            self.bad(f"{option}: 128 characters; expected 1 to 127", *fit, self.profile, option, "x" * 128)

    def test_a_gpu_that_is_not_in_the_library_is_warned_of(self):
        done = self.good("profile", "fit", self.profile, "-o", self.path("x.h5"), "--gpu", "a100-smx")
        self.assertIn("warning: --gpu: 'a100-smx' is no GPU of `pipecast list machines`", done.stderr)
        self.assertNotIn("warning", self.good("profile", "fit", self.profile, "-o", self.path("x.h5"), "--gpu",
                                              "H100-SXM").stderr)

    def test_links_in_any_spelling(self):
        """A link that is not taken for what it is would be taken for the machine's own."""
        path = self.path("loopback.h5")
        done = self.good("profile", "fit", os.path.join(self.shared.name, "nccl.csv"), "-o", path, "--link", "Loopback",
                         "--gpu", GPU)
        self.assertIn("loopback.h5: 1 fit of 19 measurements", done.stderr)
        self.assertIn("all_reduce, 8 ranks, loopback", self.good("profile", "show", path).stdout)
        warnings = self.good("run", *RUN[1:], "--machine", "dgx-a100", "--profile", path).stderr
        self.assertRegex(warnings, "all_reduce of .*8 ranks in a domain: not in the profile")

    def shown(self, path):
        return json.loads(self.good("profile", "show", path, "--format", "json").stdout)

    def test_profiles_of_several_devices_are_not_mixed(self):
        other = self.path("other.h5")
        self.good("profile", "fit", self.profile, "-o", other, "--device", "Another", "--processors", "7")
        self.known = ("other.h5",)
        self.bad("other.h5: measured on 'Another'; expected 'A100 of a test', of which the others are, or one name for "
                 "all (--device)", "profile", "fit", self.profile, "other.h5", "-o", "x.h5")
        self.good("profile", "fit", other, self.profile, "-o", self.path("x.h5"), "--device", "Both")
        device = self.shown(self.path("x.h5"))["device"]
        self.assertEqual((device["name"], device["processors"]), ("Both", 7))
        self.assertEqual(device["origin"], "gemm.csv, nccl.csv, gemm.csv, nccl.csv")

    def test_a_profile_tells_of_its_device_behind_a_table_too(self):
        """In any order of the inputs."""
        table, path = os.path.join(self.shared.name, "nccl.csv"), self.path("x.h5")
        for inputs, origin in (((table, self.profile), "nccl.csv, gemm.csv, nccl.csv"),
                               ((self.profile, table), "gemm.csv, nccl.csv, nccl.csv")):
            self.good("profile", "fit", *inputs, "-o", path)
            device = self.shown(path)["device"]
            self.assertEqual((device["name"], device["gpu"], device["processors"], device["origin"]),
                             ("A100 of a test", GPU, 108, origin))

    @unittest.skipUnless(H5_PYTHON, "no Python with h5py")
    def test_what_is_not_complete_stays_so(self):
        path, again = self.path("part.h5"), self.path("again.h5")
        with open(self.profile, "rb") as whole, open(path, "wb") as part:
            part.write(whole.read())
        self.assertEqual(subprocess.run([H5_PYTHON, "-c", "import h5py, sys\nf = h5py.File(sys.argv[1], 'r+')\n"
                                         "a = f['device'].attrs\na['is_complete'] = a['is_complete'].dtype.type(0)", path]
                                        ).returncode, 0)
        self.good("profile", "fit", path, self.profile, "-o", again)
        self.assertFalse(self.shown(again)["device"]["is_complete"])
        self.assertIn("complete        no", self.good("profile", "show", again).stdout)

    def test_wrong_transfers_stand_in_no_fit(self):
        rows = [f"{2**i} {2**i // 4} float sum -1 {20 + 2**i / 1e5:.2f} {2**i / (20 + 2**i / 1e5) / 1e3:.2f} 0.00 {i % 2} "
                "N/A N/A N/A N/A" for i in range(10, 30)]
        self.write_in(self.folder.name, "out.txt", "# all_reduce_perf\n# size count type redop root time algbw busbw #wrong "
                      "time algbw busbw #wrong\n# (B) (elements) (us) (GB/s) (GB/s)\n" + "\n".join(rows) + "\n")
        done = self.good("profile", "fit", self.path("out.txt"), "-o", self.path("x.h5"), "--ranks", "8")
        self.assertIn("warning: 10 measurements stand in no fit: too few of their kind, or wrong\n", done.stderr)
        self.assertEqual([fit["points"] for fit in self.shown(self.path("x.h5"))["fits"]], [10])


    def test_a_pipe_is_read_from_its_beginning(self):
        self.good("profile", "fit", "/dev/stdin", "-o", self.path("x.h5"), input=collectives())
        self.assertEqual(len(self.shown(self.path("x.h5"))["transfers"]), len(collectives().splitlines()) - 1)

    def test_a_full_disk_is_a_fault_of_the_machine(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PIPECAST, "profile", "show", self.profile, "--format", "json"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output: ", done.stderr)
        self.assertIn("; expected room for the results", done.stderr)


class Compare(Profile):
    def test_ratios(self):
        slower = self.path("slower.h5")
        self.write_in(self.folder.name, "gemm.csv", products(rate=1e14))
        self.good("profile", "fit", self.path("gemm.csv"), "-o", slower, "--gpu", GPU, "--processors", "108", "--device",
                  "A slower one")
        shown = self.good("profile", "compare", self.profile, slower).stdout
        self.assertIn("A100 of a test  ->  A slower one", shown)
        self.assertIn("outside the intervals", shown)
        self.assertIn("all_reduce, 8 ranks, nvlink\n  only in the first", shown)
        rows = list(csv.DictReader(io.StringIO(
            self.good("profile", "compare", self.profile, slower, "--format", "csv").stdout)))
        self.assertEqual(len(rows), 9)
        large = [float(row["ratio"]) for row in rows if float(row["m"]) > 6000]
        self.assertTrue(large and all(abs(ratio - 2) < 0.1 for ratio in large), large)


    def test_differences_by_operation(self):
        """Another library's products, each in 1.25 times the seconds: 25% by every role, and its own are left alone."""
        header, *rows = products().splitlines()
        other = [header + ",library"]
        for row in rows:
            *shape, time = row.split(",")
            other.append(",".join([*shape, str(1.25 * float(time)), "other"]))
        self.write_in(self.folder.name, "other.csv", "\n".join(other) + "\n")
        self.good("profile", "fit", self.path("other.csv"), "-o", self.path("other.h5"), "--gpu", GPU, "--processors", "108")
        shown = json.loads(self.good("profile", "compare", self.profile, self.path("other.h5"), "--format", "json").stdout)
        found = {row["operation"]: row for row in shown["differences"]}
        self.assertEqual(shown["judged"], [], "no fit of the first is of that library")
        self.assertEqual(sorted(found), ["gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"])
        for row in found.values():
            self.assertEqual((row["shapes"], row["beyond"]), (27, 0))
            self.assertAlmostEqual(row["median"], 1.25, delta=0.02)
            self.assertLessEqual(row["q1"], row["median"])
            self.assertLessEqual(row["median"], row["q3"])
        table = self.good("profile", "compare", self.profile, self.path("other.h5")).stdout
        self.assertIn("by operation\n     median  quartile", table)

    def test_a_profile_of_the_library_is_compared_by_name(self):
        """Its products are of others, and larger than ours in part: what lies beyond is counted, not judged."""
        def compared(profile):
            shown = self.good("profile", "compare", "h200-sxm", profile, "--format", "json").stdout
            return json.loads(shown)["differences"]

        bf16 = [row for row in compared(self.profile) if row["fit"] == "gemm_forward bf16 cold, trtllm of h200_sxm"]
        self.assertEqual([row["shapes"] + row["beyond"] for row in bf16], [27])
        self.bad("none.h5", "profile", "compare", "h200-sxm", "none.h5")
        # Eight ranks over NVLink are those of a table that names no link; ranks that share a GPU are not.
        for link, seen in (("nvlink", {"all_reduce"}), ("loopback", set())):
            path = self.path(link + ".h5")
            self.good("profile", "fit", os.path.join(self.shared.name, "nccl.csv"), "-o", path, "--gpu", GPU, "--link", link)
            self.assertEqual({row["operation"] for row in compared(path)}, seen, link)


class Runs(Profile):
    def row(self, *arguments):
        done = self.good(*arguments)
        return next(csv.DictReader(io.StringIO(done.stdout))), done.stderr

    def test_products_take_what_was_measured(self):
        shown = json.loads(self.good("profile", "show", self.profile, "--format", "json").stdout)
        with_profile, warnings = self.row(*RUN, "--machine", "dgx-a100", "--profile", self.profile)
        self.assertEqual(with_profile["profile_hash"], shown["hash"])
        self.assertTrue(self.profile.endswith(with_profile["profile"]))
        self.assertIn("the roofline of the machine's file answers: ", warnings)
        self.assertIn("layer_norm_forward bf16", warnings)
        self.assertIn("all_gather of 8 ranks in a domain: not in the profile", warnings)
        self.assertNotIn("gemm_forward bf16: not", warnings)
        without, quiet = self.row(*RUN, "--machine", "dgx-a100")
        self.assertEqual((without["profile"], without["profile_hash"], quiet), ("", "", ""))
        self.assertNotEqual(with_profile["iteration_s"], without["iteration_s"])

    def test_slower_products_make_slower_iterations(self):
        slower = self.path("slower.h5")
        self.write_in(self.folder.name, "gemm.csv", products(rate=1e14))
        self.good("profile", "fit", self.path("gemm.csv"), "-o", slower, "--gpu", GPU, "--processors", "108")
        fast, _ = self.row(*RUN, "--machine", "dgx-a100", "--profile", self.profile)
        slow, _ = self.row(*RUN, "--machine", "dgx-a100", "--profile", slower)
        ratio = float(slow["iteration_s"]) / float(fast["iteration_s"])
        self.assertTrue(1.4 < ratio < 2, ratio)  # products are most of it

    def test_scenarios_name_profiles_from_their_folder(self):
        self.write_in(self.folder.name, "study.yaml", "scenario: study\nsetting:\n  machine: dgx-a100\n  gpus: 64\n"
                      "  tp: 8\n  pp: 8\n  microbatches: 8\n  model: {from: gpt3-175b}\nsweep:\n"
                      "  profile: [one.h5, two.h5]\n")
        self.good("profile", "fit", self.profile, "-o", self.path("one.h5"))
        self.write_in(self.folder.name, "gemm.csv", products(rate=1e14))
        self.good("profile", "fit", self.path("gemm.csv"), "-o", self.path("two.h5"), "--gpu", GPU, "--processors", "108")
        one_thread = self.good("run", self.path("study.yaml"), "--format", "csv", "--jobs", "1", "-o", self.path("r.h5"))
        many = self.good("run", self.path("study.yaml"), "--format", "csv", "--jobs", "4")
        self.assertEqual((one_thread.stdout, one_thread.stderr), (many.stdout, many.stderr))
        rows = list(csv.DictReader(io.StringIO(many.stdout)))
        self.assertEqual([row["profile"] for row in rows], ["one.h5", "two.h5"])
        self.assertEqual([row["name"] for row in rows], ["study.1f1b.one", "study.1f1b.two"])
        self.assertEqual(len({row["profile_hash"] for row in rows}), 2)
        self.assertIn("warning: " + self.path("one.h5") + ": ", many.stderr)
        self.assertEqual(self.good("run", self.path("study.yaml"), "-q").stderr, "")

    def test_bad_profiles(self):
        self.write_in(self.folder.name, "a.jpg", "\u00ff\u00d8 JFIF")
        self.write_in(self.folder.name, "short.h5", "")
        with open(self.profile, "rb") as whole, open(self.path("short.h5"), "wb") as short:
            short.write(whole.read()[:-5000])
        self.good(*RUN, "--machine", "dgx-a100", "-o", self.path("results.h5"))
        self.known = ("a.jpg", "short.h5", "results.h5")
        for name, message in {"nothing.h5": "nothing.h5: No such file or directory; expected a profile",
                              "a.jpg": "a.jpg: is not an HDF5 file; expected a profile of pipecast",
                              "short.h5": "short.h5: the file is damaged or was cut short; expected it as pipecast wrote it",
                              "results.h5": "results.h5: is an HDF5 file of another kind; expected a profile of pipecast"}.items():
            self.bad(message, *RUN, "--machine", "dgx-a100", "--profile", name, "-o", "out.h5")
            self.bad(message, "profile", "show", name)
        self.bad("is of the GPU a100-sxm-80gb; expected one of the machine's, h100-sxm (if it is one: `pipecast profile fit` "
                 "with --gpu h100-sxm says so)", *RUN, "--machine", "dgx-h100",
                 "--profile", self.profile, "-o", "out.h5")

    def test_far_shapes_are_warned_of(self):
        rows = products().splitlines()
        small = [rows[0]] + [row for row in rows[1:] if max(int(x) for x in row.split(",")[4:7]) <= 4096]
        self.write_in(self.folder.name, "small.csv", "\n".join(small) + "\n")
        done = self.good("profile", "fit", self.path("small.csv"), "-o", self.path("small.h5"), "--gpu", GPU,
                         "--processors", "108")
        self.assertIn("3 fits of 24 measurements", done.stderr)
        _, warnings = self.row(*RUN, "--machine", "dgx-a100", "--profile", self.path("small.h5"),
                               "--microbatch-size", "16", "--memory", "9 TB")
        self.assertRegex(warnings, r"gemm_forward bf16 cold: m 32768 \(batch 1, .*\) is 8 times above what was measured, "
                                   "1024 to 4096; the roofline goes on from there")


class Tune(Profile):
    """Runs that take 1.2 times what is forecast, and 0.25 s more."""
    HEADER = "software,model,system,gpus,gbs,mbs,seq,tp,pp,step_s"
    CLOSED = ("--set", "setting.network=closed")

    def rows(self, software="megatron", system="dgx-a100"):
        return [f"{software},{model},{system},{8 * dp},{8 * dp * rounds},1,2048,1,1,"
                for model in ("gpt3-1.3b", "gpt3-2.7b") for dp in (1, 4) for rounds in (1, 2, 4)]

    def write_table(self, name, rows):
        self.write_in(self.folder.name, name, "\n".join([self.HEADER, *rows]) + "\n")
        return self.path(name)

    def measure(self, name, rows):
        """The table, each row with what it is forecast at, 1.2 times and 0.25 s."""
        path = self.write_table(name, rows)
        scored = csv.DictReader(io.StringIO(self.good("score", path, "--format", "csv", *self.CLOSED).stdout))
        return self.write_table(name, [row + repr(1.2 * float(x["forecast_s"]) + 0.25) for row, x in zip(rows, scored)])

    def check_interval(self, ran, scored):
        """Around the tuned forecast itself: the ends of the library's line over its middle, which is the bias that tuning takes away."""
        with open(os.path.join(sys.argv[2], "scenarios/intervals.csv"), encoding="utf-8", newline="") as file:
            line, = (row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                     if [row[name] for name in ("quantity", "gpu", "software", "sharding", "least_gpus")] == ["time", "a100", "megatron", "zero-1", "1"])
        forecast, low, middle, high = float(ran["iteration_s"]), *(float(line[name]) for name in ("low", "middle", "high"))
        self.assertGreater(abs(middle - 1), 0.01) # or the two would not differ
        for row, names in ((ran, ("iteration_s_low", "iteration_s_high")), (scored, ("forecast_s_low", "forecast_s_high"))):
            self.assertAlmostEqual(float(row[names[0]]) / forecast, low / middle, delta=2e-4)
            self.assertAlmostEqual(float(row[names[1]]) / forecast, high / middle, delta=2e-4)

    def test_what_was_fitted_is_used_everywhere(self):
        table, tuned = self.measure("m.csv", self.rows()), self.path("tuned.h5")
        done = self.good("profile", "tune", table, "-o", tuned, *self.CLOSED)
        self.assertEqual(done.stderr, f"pipecast: {tuned}: tuned to 12 runs\n")
        self.assertIn("fitted to 12 runs of 12 configurations of m.csv; 0 left out", done.stdout)
        self.assertRegex(done.stdout, r"launch +times +1, within 2.01 +1.000 +0.7  not determined by these runs\n")
        self.assertRegex(done.stdout, r"gemm +times +1, within 1.11 +1\.\d+ +0\.\d+  yes\n")
        self.assertRegex(done.stdout, r"unseen, 10 folds +\d\.\d%")
        self.assertIn(done.stdout, self.good("profile", "show", tuned).stdout)
        shown = json.loads(self.good("profile", "show", tuned, "--format", "json").stdout)["tuning"]
        self.assertEqual([x["name"] for x in shown["numbers"]],
                         ["gemm", "attention", "memory", "launch", "network", "overlap", "overhead"])
        self.assertGreater(shown["before_mean"], 0.15)
        self.assertLess(shown["after_mean"], 0.02)
        self.assertAlmostEqual(shown["numbers"][6]["value"], 0.25, delta=0.1)
        scored = list(csv.DictReader(io.StringIO(
            self.good("score", table, "--format", "csv", *self.CLOSED, "--set", "setting.profile=" + tuned).stdout)))
        mean = sum(abs(float(row["error"])) for row in scored) / 12
        self.assertAlmostEqual(mean, shown["after_mean"], delta=1e-12)
        one = ("--machine", "dgx-a100", "--profile", tuned, "--software", "megatron", "--global-batch", "8", "--network", "closed")
        ran = list(csv.DictReader(io.StringIO(
            self.good("run", "--model", "gpt3-1.3b", "--gpus", "8", "--dp", "8", *one, "--format", "csv").stdout)))
        self.assertEqual((ran[0]["iteration_s"], len(ran[0]["profile_hash"])), (scored[0]["forecast_s"], 16))
        self.check_interval(ran[0], scored[0])
        self.write_in(self.folder.name, "s.yaml",
                      "scenario: s\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100, gpus: 8, dp: 8, software: megatron,\n"
                      "  global_batch: 8, network: closed}\nsweep: {profile: [tuned.h5]}\n")
        swept = list(csv.DictReader(io.StringIO(self.good("run", self.path("s.yaml"), "--format", "csv").stdout)))
        self.assertEqual(swept[0]["iteration_s"], ran[0]["iteration_s"])
        plans = list(csv.DictReader(io.StringIO(
            self.good("plan", "--model", "gpt3-1.3b", "--gpus", "8", *one, "--format", "csv").stdout)))
        self.assertEqual(min(float(plan["iteration_s"]) for plan in plans), float(plans[0]["iteration_s"]))
        self.assertEqual({plan["profile_hash"] for plan in plans if "profile_hash" in plan} - {ran[0]["profile_hash"]}, set())

    def test_the_same_table_gives_the_same_file(self):
        table = self.measure("m.csv", self.rows())
        for name, jobs in (("a.h5", "1"), ("b.h5", "3")):
            self.good("profile", "tune", table, "-o", self.path(name), "--jobs", jobs, *self.CLOSED)
        with open(self.path("a.h5"), "rb") as a, open(self.path("b.h5"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_by(self):
        """Every software for itself: a file each, named for it; what has too few rows has none."""
        rows = self.rows() + self.rows("NeMo") + self.rows("FSDP")[:2] + ["megatron,gpt3-1.3b,dgx-a100,8,8,1,2048,1,1,"]
        table = self.measure("m.csv", rows)
        done = self.good("profile", "tune", table, "-o", self.path("t.h5"), "--by", "software", "--parameters", "gemm,overhead",
                         *self.CLOSED)
        self.assertIn("software fsdp\n  2 runs to fit to: too few\n", done.stdout)
        self.assertEqual(sorted(name for name in os.listdir(self.folder.name) if name.endswith(".h5")),
                         ["t-megatron.h5", "t-nemo.h5"])
        self.assertIn("fitted to 13 runs of 12 configurations of m.csv, software megatron; 0 left out", done.stdout)
        self.assertRegex(done.stdout, r"attention +times +1, within 1.35 +1.000 +not fitted\n")
        many = json.loads(self.good("profile", "tune", table, "--by", "software", "--format", "json", *self.CLOSED).stdout)
        self.assertEqual([(group["only"], group["rows"], group["tuning"] is None) for group in many],
                         [("software megatron", 13, False), ("software nemo", 12, False), ("software fsdp", 2, True)])
        text = self.good("profile", "tune", table, "--by", "software", "--format", "csv", *self.CLOSED).stdout
        self.assertEqual([(row["fit"], row["parameter"]) for row in csv.DictReader(io.StringIO(text))][6:8],
                         [("megatron", "overhead"), ("nemo", "gemm")])

    def test_over_a_measured_profile(self):
        """Its fits travel along, and go on answering; the tuning is over them."""
        table, tuned = self.measure("m.csv", self.rows()), self.path("tuned.h5")
        done = self.good("profile", "tune", table, "-o", tuned, "--profile", self.profile, "-q", *self.CLOSED)
        base = json.loads(self.good("profile", "show", self.profile, "--format", "json").stdout)
        over = json.loads(self.good("profile", "show", tuned, "--format", "json").stdout)
        self.assertIn(f"over the profile {base['hash']}\n", done.stdout)
        self.assertEqual((over["fits"], over["kernels"], over["device"]), (base["fits"], base["kernels"], base["device"]))
        self.assertNotEqual(over["hash"], base["hash"])
        self.assertLess(over["tuning"]["after_mean"], over["tuning"]["before_mean"])
        for profile, side in ((self.profile, "before"), (tuned, "after")):
            scored = list(csv.DictReader(io.StringIO(self.good(
                "score", table, "-q", "--format", "csv", *self.CLOSED, "--set", "setting.profile=" + profile).stdout)))
            mean = sum(abs(float(row["error"])) for row in scored) / 12
            self.assertAlmostEqual(mean, over["tuning"][side + "_mean"], delta=1e-12)
        both = self.good("profile", "compare", self.profile, tuned).stdout
        self.assertRegex(both, r"(?m)^tuned gemm +1 -> \d+\.\d+$")
        both = json.loads(self.good("profile", "compare", tuned, self.profile, "--format", "json").stdout)["tuning"]
        self.assertEqual((both["gemm"]["second"], both["launch"]), (1, {"first": over["tuning"]["numbers"][3]["value"], "second": 1}))
        self.known = ("m.csv", "tuned.h5")
        self.bad(": is tuned already; expected the profile that it was tuned over", "profile", "tune", table, "--profile", tuned)

    def test_what_stands_beside_it(self):
        """A tuning alone has measured no kernel: what the setting says of them holds. A measured profile has."""
        table, tuned = self.measure("m.csv", self.rows()), self.path("tuned.h5")
        self.good("profile", "tune", table, "-o", tuned, *self.CLOSED)
        self.known = ("m.csv", "tuned.h5")
        one = ("run", "--model", "gpt3-1.3b", "--gpus", "8", "--dp", "8", "--machine", "dgx-a100", "--global-batch", "8",
               "--format", "csv", "-q", "--profile")
        seconds = [float(list(csv.DictReader(io.StringIO(self.good(*one, tuned, *more).stdout)))[0]["iteration_s"])
                   for more in ((), ("--set", "setting.unfused=2"))]
        self.assertGreater(seconds[1], 1.02 * seconds[0])
        self.bad("a100.h5: has measured kernels, and unfused stands beside it; expected one of the two", *one, self.profile,
                 "--set", "setting.unfused=2")
        self.bad("tuned.h5: is tuned to runs on the GPU a100-sxm-80gb; expected runs on the machine's, h100-sxm",
                 *(word.replace("dgx-a100", "dgx-h100") for word in one), tuned)

    def test_refusals(self):
        table = self.measure("m.csv", self.rows())
        rows = [row + "1.5" for row in self.rows()]
        self.write_table("none.csv", [])
        self.write_table("two.csv", rows[:2] + [self.rows()[2]])
        self.write_table("full.csv", [row.replace("gpt3-1.3b", "gpt3-175b") for row in rows[:6]])
        self.write_table("both.csv", rows + [row.replace("a100", "h100") for row in rows])
        self.known = ("both.csv", "full.csv", "m.csv", "none.csv", "two.csv")
        tune = ("profile", "tune")
        self.bad("0 files; expected one MEASURED.csv", *tune)
        self.bad("has no option --gpu", *tune, table, "--gpu", "h100-sxm")
        self.bad("none.csv: 0 rows to fit to; expected 3 at least", *tune, "none.csv")
        self.bad("two.csv: 2 rows to fit to, 1 without a measured time; expected 3 at least", *tune, "two.csv")
        self.bad("full.csv: 0 rows to fit to, 6 called out of memory; expected 3 at least", *tune, "full.csv")
        self.bad("full.csv: 0 rows to fit to in a group at most, 6 called out of memory", *tune, "full.csv", "--by", "software")
        self.bad("both.csv:14: a run on h100-sxm behind runs on a100-sxm-80gb; expected one GPU in a fit: --by system", *tune,
                 "both.csv")
        self.bad("m.csv: is there already; expected the name of a new file", *tune, table, "-o", "m.csv")
        self.bad("no/t.h5", *tune, table, "-o", "no/t.h5")
        self.bad("profile tune: --parameters: 'speed' is none; expected some of gemm,attention,", *tune, table, "--parameters",
                 "gemm,speed")
        self.bad("m.csv: --by: no column 'cluster'; expected columns of the header", *tune, table, "--by", "cluster")
        self.bad("No such file or directory", *tune, table, "--profile", "none.h5")
        self.bad("No such file or directory", *tune, "other.csv")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
