"""docs/scoreboard.md: its sums agree with each other, forecasts of two small tables are no worse than it says, and the script
that makes it (scoreboard.py) does what it says.

The tables are those of ../shared/data/training; what needs them is skipped where they are not there.

usage: test_scoreboard.py PIPECAST SOURCE_ROOT
"""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import measured_tables  # noqa: E402
import scoreboard  # noqa: E402
from command import PIPECAST, ROOT  # noqa: E402

SMALL = ("internevo_a100", "torchtitan")
WORSE = 0.5  # points of the mean error that a table may get worse by before the page is to be made anew


def percentage(cell):
    return float(cell.rstrip("%"))


def page_table(part):
    """{first cell: {heading: cell}} of a part of the page that is one table."""
    lines = scoreboard.part_of((ROOT / scoreboard.PAGE).read_text(), part)[1]
    heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(heading, row)) for row in rows}


def made_up(**cells):
    """A row as score gives it, of a run that needed 10 s and is forecast at 9 s."""
    return {"framework": "NeMo", "program": "NeMo", "model": "llama3 8b", "system": "H100", "precision": "BF16", "gpus": "8", "gbs": "64", "mbs": "1",
            "seq": "8192", "tp": "1", "pp": "1", "cp": "", "task": "", "vp": "", "ep": "", "zero": "", "fsdp_shard": "", "recompute": "", "status": "ok", "missing": "",
            "measured_s": 10.0, "forecast_s": 9.0, "forecast_s_low": 8.5, "forecast_s_high": 10.5, "error": -0.1, "memory_error": None, "file": "torchtitan", **cells}


class Units(unittest.TestCase):
    def test_gb_is_not_gib(self):
        """What a row calls GB is of 10^9 bytes, as torch counts them."""
        for other in ("memory printed as GB; max_memory_allocated", "outcome; memory in GB"):
            row = measured_tables.with_unit({"memory_gib": "58.8", "other_metric": other})
            self.assertEqual((row["memory_gib"], row["memory_allocated_gb"]), ("", "58.8"), other)
        row = measured_tables.with_unit({"memory_gib": "58.8", "other_metric": ""})
        self.assertEqual((row["memory_gib"], row["memory_allocated_gb"]), ("58.8", ""))


class Page(unittest.TestCase):
    def test_parts_of_all_rows_add_up_to_all(self):
        for part in ("sources", "gpus", "programs", "scales"):
            found = page_table(part)
            everything = found.pop("**all**")
            for column in ("rows", "asked", "timed"):
                with self.subTest(f"{part}: {column}"):
                    self.assertEqual(sum(int(row[column]) for row in found.values()), int(everything[column]))
            with self.subTest(f"{part}: means"):
                weighted = sum(int(row["timed"]) * percentage(row["mean"]) for row in found.values() if row["mean"])
                self.assertAlmostEqual(weighted / int(everything["timed"]), percentage(everything["mean"]), delta=0.11)
                largest = max((row["worst"] for row in found.values() if row["worst"]), key=lambda cell: abs(percentage(cell)))
                self.assertEqual(largest, everything["worst"])

    def test_all_sums_speak_of_the_same_rows(self):
        self.assertEqual(len({tuple(page_table(part)["**all**"].items())[1:] for part in ("sources", "gpus", "programs", "scales")}), 1)

    def test_bars_and_missing_speak_of_the_same_rows(self):
        everything = page_table("sources")["**all**"]
        self.assertEqual(page_table("bars")["runs called out of memory, or infeasible"]["rows"], everything["asked"])
        not_asked = int(everything["rows"]) - int(everything["asked"])
        lines = scoreboard.part_of((ROOT / scoreboard.PAGE).read_text(), "missing")[1]
        self.assertTrue(lines[-1].startswith(f"Not asked: {not_asked} rows, "), lines[-1])
        alone = sum(int(row["rows that lack it alone"]) for row in page_table("missing").values())
        self.assertTrue(lines[-1].endswith(f", {not_asked - alone} of which lack more than one thing."), lines[-1])

    def test_bars_are_judged_by_their_figures(self):
        for name, row in page_table("bars").items():
            with self.subTest(name):
                of_bar, asked_for = abs(percentage(row["reached"])), percentage(row["asked for"])
                is_reached = of_bar >= asked_for if name == scoreboard.SPEED_UP else of_bar <= asked_for
                self.assertEqual(row[""], "yes" if is_reached else "no")

    def test_worst_twenty_are_in_order(self):
        lines = scoreboard.part_of((ROOT / scoreboard.PAGE).read_text(), "worst")[1][2:]
        errors = [abs(percentage(line.split("|")[-3].strip())) for line in lines]
        self.assertEqual(len(errors), 20)
        self.assertEqual(errors, sorted(errors, reverse=True))
        self.assertEqual(errors[0], abs(percentage(page_table("sources")["**all**"]["worst"])))


class Now(unittest.TestCase):
    def test_small_tables_are_no_worse_than_the_page_says(self):
        if not measured_tables.is_at_hand(ROOT):
            self.skipTest(f"../{measured_tables.SHARED} is not there")
        said = measured_tables.ask(PIPECAST, ROOT, SMALL)
        on_page = page_table("sources")
        for name in SMALL:
            rows, asked, _, mean, *_ = scoreboard.sums(said[name]["rows"])
            row = on_page[measured_tables.FILES[name]]
            with self.subTest(name):
                self.assertEqual((rows, asked), (row["rows"], row["asked"]), f"make {scoreboard.PAGE} anew")
                self.assertLessEqual(percentage(mean), percentage(row["mean"]) + WORSE)
                of_all = next(of for of in said[name]["sums"] if of["by"] == "")
                self.assertEqual(scoreboard.percent(of_all["mean"]), mean)


class Script(unittest.TestCase):
    def test_without_the_tables_the_page_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder, "project")
            (root / "docs").mkdir(parents=True)
            (root / scoreboard.PAGE).write_text("as it was\n")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(scoreboard.main("no such command", root, True), 0)
            self.assertIn("left as it stands", said.getvalue())
            self.assertEqual((root / scoreboard.PAGE).read_text(), "as it was\n")
            self.assertEqual(sorted(path.name for path in (root / "docs").iterdir()), ["scoreboard.md"])

    def test_sums(self):
        """Errors of -10, +30 and -20%: mean 20, median 20, bias 0. One more row lacks something, and one did not fit."""
        rows = [made_up(), made_up(error=0.3, status="out_of_memory"), made_up(error=-0.2, forecast_s_low=10.1), made_up(error=None, status="not_asked")]
        self.assertEqual(scoreboard.sums(rows), ["4", "3", "3", "20.0%", "20.0%", "+30.0%", "0", "1", "67%"])
        self.assertEqual(scoreboard.sums(rows[3:]), ["1", "0", "0", "", "", "", "", "", ""])

    def test_a_misprint_is_mended_and_counted(self):
        cells = [("local 8", "1F1B")] * 3 + [("local 32", "1F1B"), ("local 32", "Interleaved 1F1B"), ("2", "")]
        rows = [{"mbs": mbs, "schedule": schedule, "mended": ""} for mbs, schedule in cells]
        self.assertEqual([row["mbs"] for row in measured_tables.mended("torchtitan", rows)], ["1"] * 3 + ["4", "", "2"])
        self.assertEqual([row["mended"] for row in rows], ["mbs"] * 5 + [""])
        with self.assertRaisesRegex(SystemExit, "torchtitan.csv: 0 rows to mend in 'mbs'; expected 3"):
            measured_tables.mended("torchtitan", rows)

    def test_kinds_of_rows(self):
        for system, gpu in {"DGX-GB200": "GB200", "NVIDIA H100-SXM5-80GB 16x8": "H100", "a100_40gb": "A100 40 GB", "DGX-A100": "A100 80 GB",
                            "NVIDIA Blackwell GPU (B200-SXM-180GB) 1x8": "B200", "AMD Instinct MI300X 192GB HBM3 1x8": "MI300X"}.items():
            self.assertEqual(measured_tables.gpu(made_up(system=system)), gpu)
        self.assertEqual([measured_tables.scale(made_up(gpus=gpus)) for gpus in ("8", "64", "65", "2048")],
                         ["to 8 GPUs", "9 to 64", "65 to 512", "513 and more"])
        self.assertTrue(scoreboard.is_fitted(made_up(model="NeMo Megatron 24.11 BF16")))
        self.assertFalse(scoreboard.is_fitted(made_up(model="nemotron 340b")))
        self.assertTrue(scoreboard.is_low_nemo(made_up(precision="FP8")))
        self.assertFalse(scoreboard.is_nvidia(made_up(precision="FP8")) or scoreboard.is_low_nemo(made_up()))
        self.assertTrue(scoreboard.is_blackwell(made_up(system="DGX-B200")) and not scoreboard.is_blackwell(made_up(system="DGX-B300")))

    def test_kinds_of_bars(self):
        """A row with context parallelism or fine-tuning is in no bar of plain rows, and each of these has its own."""
        context, lora, card = made_up(cp="2"), made_up(task="LoRA"), made_up(task="SFT", file="megatron_bridge_verification_cards")
        for row in (context, lora, card):
            self.assertFalse(scoreboard.is_nvidia(row))
        self.assertTrue(scoreboard.is_nvidia(made_up(cp="1")))
        self.assertTrue(scoreboard.is_context_of_h100(context) and not scoreboard.is_context_of_h100(made_up(cp="4")))
        self.assertEqual([scoreboard.is_for_speed(row) for row in (context, lora, card, made_up(system="MI300X"))], [True, True, False, False])

    def test_bars_of_speed_ups_are_reached_from_below(self):
        """Of three pairs two are right: two in three are asked for, so that one more miss is too many."""
        wide, right, wrong = made_up(forecast_s=10.0), {"precision": "FP8", "measured_s": 8.0, "forecast_s": 8.0}, {"forecast_s": 7.0}
        rows = [row for gpus, more in (("8", {}), ("16", {}), ("32", wrong))
                for row in ({**wide, "gpus": gpus, "cp": "", "ep": "", "release": "", "schedule": "", "variant": ""},
                            {**wide, "gpus": gpus, "cp": "", "ep": "", "release": "", "schedule": "", "variant": "", **right, **more})]
        found = scoreboard.low_precision.pairs(rows)
        self.assertEqual(len(found), 3)
        self.assertAlmostEqual(scoreboard.low_precision.share_within(found), 2 / 3)
        self.assertGreaterEqual(scoreboard.low_precision.share_within(found), scoreboard.low_precision.SHARE)

    def test_features(self):
        def of(**cells):
            return [name for name, has in scoreboard.FEATURES.items() if has(made_up(**cells))]
        self.assertEqual(of(), ["ZeRO 1, over all replicas, or nothing said"])
        self.assertEqual(of(zero="1 group=8", recompute="full"), ["ZeRO 1, over a group", "full recomputation"])
        self.assertEqual(of(fsdp_shard="8", pp="4", vp="2"), ["FSDP, ZeRO 3", "pipeline", "pipeline, interleaved"])
        self.assertEqual(of(zero="2", fsdp_shard="8", tp="2"), ["ZeRO 2", "tensor parallel"])

    def test_a_model_is_judged_by_numbers_fitted_to_the_others(self):
        """Of two models one is best at (1, 0), the other at (2, 0): each gets what suits the other."""
        grid = {(1, 0): [made_up(model="a", error=0.0), made_up(model="b", error=0.5)],
                (2, 0): [made_up(model="a", error=0.4), made_up(model="b", error=0.1)]}
        self.assertEqual([(row["model"], row["error"]) for row in scoreboard.left_out(grid)], [("a", 0.4), ("b", 0.5)])

    def test_missing(self):
        rows = [made_up(status="not_asked", error=None, missing=missing) for missing in ("moe;cp", "cp", "fp8")]
        self.assertEqual(scoreboard.missing({"torchtitan": {"rows": rows}})[2:],
                         ["| `cp` | 2 | 1 |", "| `fp8` | 1 | 1 |", "| `moe` | 1 | 0 |", "",
                          "Not asked: 3 rows, 1 of which lack more than one thing."])

    def test_a_part_is_rewritten_between_its_marks(self):
        begin, end = scoreboard.marks("bars")
        self.assertEqual(scoreboard.with_part(f"a\n{begin}\nold\n{end}\nb\n", "bars", ["new"]), f"a\n{begin}\nnew\n{end}\nb\n")
        with self.assertRaisesRegex(SystemExit, "no part 'bars' to rewrite"):
            scoreboard.with_part("a\n", "bars", ["new"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
