"""`pipecast score` from outside: published runs as `run` forecasts them, bad rows, forms of tables, results files, pictures.

usage: test_score.py PIPECAST SOURCE_ROOT
"""
import csv
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import with_h5py  # noqa: E402
from command import IS_QUICK, ROOT, run  # noqa: E402

MEASURED = ROOT / "scenarios/validation/measured.csv"
SCENARIOS = [str(ROOT / f"scenarios/validation/{name}.yaml") for name in ("h100_scaling", "korthikanti", "korthikanti_larger")]
OWN = ["status", "missing", "measured_s", "forecast_s", "forecast_s_low", "forecast_s_high", "error", "memory_gib_forecast",
       "memory_error", "memory_gib_low", "memory_gib_high", "kind", "basis", "message"]
HEADER = "model,system,gpus,gbs,mbs,seq,tp,pp,step_s,memory_gib"
ROW = "gpt3-1.3b,dgx-a100,8,64,1,2048,1,1,1.0,40"


class Score(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text, name="m.csv"):
        path = self.folder / name
        path.write_bytes(text.encode())
        return str(path)

    def score(self, path, *options, status=0, message=""):
        done = run("score", str(path), *options)
        self.assertEqual((done.returncode, done.stderr.replace(str(self.folder) + "/", "")), (status, message), done)
        return done.stdout

    def rows(self, path, *options, **expected):
        return list(csv.DictReader(io.StringIO(self.score(path, "--format", "csv", *options, **expected), newline="")))

    def test_published_runs_are_forecast_as_run_does(self):
        """The table has the cases of three scenarios: to the last digit the same."""
        done = run("run", *SCENARIOS, "--format", "csv")
        ours = self.rows(MEASURED)
        theirs = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(len(theirs), 14)
        self.assertEqual([(row["forecast_s"], row["memory_gib_forecast"]) for row in ours],
                         [(row["iteration_s"], row["memory_gib_max"]) for row in theirs])
        self.assertEqual([float(row["step_s"]) for row in ours], [float(row["published_iteration_s"]) for row in theirs])
        for row in ours:
            self.assertAlmostEqual(float(row["error"]), float(row["forecast_s"]) / float(row["step_s"]) - 1, places=14)

    def test_a_program_is_known_by_the_longest_name(self):
        """AutoModel is a program of its own; that its name begins with NeMo does not make it NeMo."""
        row = ROW.replace(",1,1,1.0,40", ",1,1,1.0,40,8")
        text = "framework," + HEADER + ",fsdp_shard\n" + "".join(f"{name},{row}\n" for name in ("NeMo AutoModel", "automodel", "NeMo"))
        auto, own, nemo = (found["forecast_s"] for found in self.rows(self.write(text)))
        self.assertEqual(auto, own)
        self.assertNotEqual(auto, nemo)

    def test_table_says_what_rows_come_to(self):
        text = self.score(MEASURED)
        self.assertIn("the fastest configuration is chosen in 4 of 4 groups", text)
        self.assertRegex(text, r"\nall rows +14 +14 +14 ")
        self.assertRegex(text, r"\ngpus and gbs +5 +1 of 1 ")

    def test_columns(self):
        """The input's, as they stand, and ours behind them; one that is called as one of ours gives way."""
        path = self.write(f'{HEADER},"my, own",STATUS,\xe9\n{ROW},"a ""b"",c",old,\xfc\n')
        text = self.score(path, "--format", "csv", message="pipecast: columns that are kept and not read: my, own, \xe9\n")
        row = list(csv.reader(io.StringIO(text)))
        self.assertEqual(row[0], HEADER.split(",") + ["my, own", "\xe9"] + OWN)
        self.assertEqual(row[1][:12], ROW.split(",") + ['a "b",c', "\xfc"])
        self.assertEqual(row[1][12:15], ["ok", "", "1"])
        again = self.rows(self.write(text, "again.csv"), "--quiet")
        self.assertEqual([again[0][name] for name in OWN], row[1][12:])

    def test_forms_of_files(self):
        """A byte order mark, CRLF, a repeated header and empty lines change nothing."""
        plain = self.score(self.write(f"{HEADER}\n{ROW}\n{ROW}\n"), "--format", "csv")
        for text in (f"\ufeff{HEADER}\n{ROW}\n{ROW}", f"{HEADER}\r\n{ROW}\r\n{ROW}\r\n", f"{HEADER}\n{ROW}\n\n{HEADER}\n{ROW}\n",
                     "\n" + HEADER.replace(",", " , ") + "\n" + f"{ROW}\n{ROW}\n"):
            self.assertEqual(self.score(self.write(text), "--format", "csv"), plain)

    def test_bad_rows(self):
        """One line each, with its number; the others are scored."""
        bad = [ROW.replace("8,64", "eight,64"), ROW + ",more", '"' + ROW, ROW.replace("gpt3-1.3b", "./none.yaml"),
               ROW.replace("1.0,40", "fast,40")]
        path = self.write("\n".join([HEADER, ROW, *bad, ROW]) + "\n")
        rows = self.rows(path, status=1, message=(
            "pipecast: m.csv:4: 11 fields; expected 10, as in the header\n"
            'pipecast: m.csv:5: a quote that does not end its field; expected "..."\n'
            "pipecast: m.csv:3: gpus: 'eight'; expected a whole number above zero\n"
            "pipecast: m.csv:7: step_s: 'fast'; expected a number above zero\n"
            "pipecast: m.csv:6: model: ./none.yaml: No such file or directory; expected a model file (YAML) or a "
            "config.json of at most 4 MiB\n"))
        self.assertEqual([row["status"] for row in rows], ["ok", "ok"])
        self.assertEqual(rows[0], rows[1])

    def test_statuses(self):
        rows = self.rows(self.write("\n".join([
            HEADER + ",ep,setting.memory", ROW + ",,", ROW + ",,1 GiB", ROW.replace("8,64", "9,64") + ",,", ROW + ",8,",
            ROW.replace("dgx-a100", "my cluster") + ",8,"])), status=1)
        self.assertEqual([row["status"] for row in rows], ["ok", "out_of_memory", "infeasible", "infeasible", "not_asked"])
        self.assertEqual([row["missing"] for row in rows], ["", "", "", "", "machine"])
        self.assertEqual([bool(row["forecast_s"]) for row in rows], [True, True, False, False, False])
        self.assertEqual(rows[0]["forecast_s"], rows[1]["forecast_s"])
        self.assertIn("9", rows[2]["message"])
        self.assertIn("ep 8", rows[3]["message"])

    def test_empty(self):
        self.score(self.write(""), status=2, message="pipecast: m.csv: empty; expected a header and a row a run\n")
        self.assertEqual(self.rows(self.write(HEADER + "\n")), [])
        self.assertRegex(self.score(self.write(HEADER + "\n")), r"\nall rows +0 +0 ")
        self.assertEqual(json.loads(self.score(self.write(HEADER + "\n"), "--format", "json"))["rows"], [])

    def test_usage(self):
        for options, message in [
                ([], "score: no table; expected MEASURED.csv"),
                ([str(MEASURED), "x.csv"], f"score: 'x.csv' behind '{MEASURED}'; expected one table"),
                ([str(MEASURED), "--by", "model,none"], f"{MEASURED}: --by: no column 'none'; expected columns of the header, "
                 "with commas between, 8 at most"),
                ([str(MEASURED), "--figure", "a.gif"], "a.gif"), ([str(MEASURED), "--dark"], "--dark: nothing is drawn"), ([str(MEASURED), "-o", str(MEASURED)], "is the table"),
                ([str(MEASURED), "--set", "setting.none=1"], "--set setting.none=1"),
                ([str(self.folder / "none.csv")], "No such file")]:
            done = run("score", *options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_own_models_and_machines(self):
        """Files by their paths, which count from the table's folder; outside of it only with --allow-outside."""
        (self.folder / "tables").mkdir()
        for name, file in (("mine.yaml", "models/gpt3-1.3b.yaml"), ("tables/mine.yaml", "models/gpt3-1.3b.yaml")):
            (self.folder / name).write_text((ROOT / "scenarios" / file).read_text())
        plain = self.rows(self.write(f"{HEADER}\n{ROW}\n"))
        own = self.rows(self.write(f"{HEADER}\n{ROW.replace('gpt3-1.3b', 'mine.yaml')}\n", "tables/m.csv"))
        self.assertEqual(own[0]["forecast_s"], plain[0]["forecast_s"])
        outside = self.write(f"{HEADER}\n{ROW.replace('gpt3-1.3b', '../mine.yaml')}\n", "tables/m.csv")
        self.assertEqual(self.rows(outside, "--allow-outside")[0]["forecast_s"], plain[0]["forecast_s"])
        done = run("score", outside)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done)
        self.assertIn("../mine.yaml", done.stderr)

    def test_set(self):
        path = self.write(f"{HEADER}\n{ROW}\n")
        row, = self.rows(path, "--set", "setting.recompute=full")
        self.assertGreater(float(row["forecast_s"]), float(self.rows(path)[0]["forecast_s"]))

    def test_conditions_say_recomputation(self):
        """Megatron's arguments of several columns: as if the row said so; what it says itself counts first."""
        head = "framework,model,system,gpus,precision,gbs,mbs,seq,tp,pp,recompute"
        row = "Megatron-Bridge,LLAMA3-70B,DGX-H100,64,BF16,128,1,8192,4,4,"
        recipes = self.write("model,system,gpus,precision,tp,pp,mbs,recompute_granularity,recompute_modules\n"
                             "llama3_70b,h100,64,bf16,4,4,1,selective,['mlp'  'core_attn']\n", "recipes.csv")
        text = f"{head}\n{row}\n{row}selective core_attn+mlp\n{row}none\n"
        said = "pipecast: conditions: 3 rows have one, 0 none, 0 several that differ, of which none holds\n"
        found = self.rows(self.write(text), "--conditions", recipes, message=said)
        memory = [float(row["memory_gib_forecast"]) for row in found]
        self.assertEqual(memory[0], memory[1])
        self.assertLess(memory[0], memory[2])

    def test_ten_thousand_rows(self):
        """In their order, however many threads; each seventh contradicts itself: 8 replicas, and a batch that is odd. A
        quick run takes the first thousand."""
        count = 1000 if IS_QUICK else 10000
        lines = [ROW.replace("8,64", f"8,{8 * (1 + i % 50) + (i % 7 == 3)}") for i in range(count)]
        path = self.write("\n".join([HEADER, *lines]))
        rows = self.rows(path, status=1)
        self.assertEqual([row["gbs"] for row in rows], [line.split(",")[3] for line in lines])
        self.assertEqual([row["status"] for row in rows], ["infeasible" if i % 7 == 3 else "ok" for i in range(count)])
        self.assertEqual(len({row["forecast_s"] for row in rows}), 1 + 50)
        self.assertEqual(rows, self.rows(path, "--jobs", "1", status=1))

    def test_json(self):
        """The rows of the CSV, and the parts."""
        found = json.loads(self.score(MEASURED, "--by", "model,gpus", "--format", "json"))
        self.assertEqual(list(found), ["rows", "sums", "missing", "pairs", "groups"])
        for row, line in zip(found["rows"], self.rows(MEASURED)):
            self.assertEqual({key: "" if value is None else value if isinstance(value, str) else float(value)
                              for key, value in row.items() if key != "line"},
                             {key: float(value) if key in OWN and re.fullmatch(r"[-+.e\d]+", value) else value
                              for key, value in line.items()})
        self.assertEqual([row["line"] for row in found["rows"]], list(range(2, 16)))
        self.assertEqual((found["sums"][0]["by"], found["sums"][0]["rows"]), ("", 14))
        self.assertEqual({row["by"] for row in found["sums"][1:]}, {"model,gpus"})
        self.assertEqual(sum(row["rows"] for row in found["sums"][1:]), 14)
        self.assertEqual([group["regret"] for group in found["groups"]], [0] * 4)

    @unittest.skipUnless(with_h5py.PYTHON, "no h5py")
    def test_results_file(self):
        """What JSON says; the same score gives the same bytes."""
        paths = [str(self.folder / name) for name in ("a.h5", "b.h5")]
        found = json.loads(self.score(MEASURED, "-o", paths[0], "--format", "json"))
        self.score(MEASURED, "-o", paths[1], "--jobs", "1")
        self.assertEqual(*(pathlib.Path(path).read_bytes() for path in paths))
        said = json.loads(with_h5py.work_on(paths[0], (
            "import json\nt = lambda x: x.decode() if isinstance(x, bytes) else None if x != x else x.item()\n"
            "print(json.dumps({g: {n: [t(x) for x in f[g][n][:]] for n in f[g]} for g in f}))"), "r"))
        self.assertEqual(set(said), {"measured", "rows", "sums", "missing", "pairs", "groups"})
        self.assertEqual(said["measured"]["setting.bucket"], [row["setting.bucket"] for row in found["rows"]])
        for part in ("rows", "sums", "pairs", "groups"):
            for name, values in said[part].items():
                self.assertEqual(values, [row[name] for row in found[part]], (part, name))

    def test_picture(self):
        path = self.folder / "score.svg"
        self.score(MEASURED, "--figure", str(path))
        text = path.read_text()
        self.assertIn("Measured [s]", text)
        self.assertIn("within 10%", text)
        self.assertNotIn("#171717", text.lower())
        for name in ("table 5", "section 6.3"):  # sources that begin alike stay apart
            self.assertIn(f"Korthikanti et al. 2022 (arXiv 2205.05198), {name}<", text)
        self.assertNotIn("hollow", text)
        run("score", MEASURED, "--figure", str(path), "--set", "setting.memory=10 GiB", "-q")
        self.assertIn("hollow: called out of memory", path.read_text())
        self.score(MEASURED, "--figure", str(path), "--dark")
        dark = path.read_text().lower()
        self.assertIn("#171717", dark)
        self.assertNotIn("#dcdcdc", dark)  # the band's square in the legend is as dark as the band
        self.assertNotRegex(path.read_text(), r'fill="(?:black|rgb\(0,0,0\))" font-family')
        done = run("score", self.write(HEADER + "\n"), "--figure", str(path))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no run has a measured time and a forecast to draw", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
