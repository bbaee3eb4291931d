"""What cluster runs say beside published and measured figures: the tables of docs/accuracy.md, and the bars.

The scenarios of scenarios/validation are run as they are, with the profiles of the library; each row is one published
figure. Measured iterations that may not stand in the project are read from ../shared/data/measured where that is there,
and left out where it is not. Rows are printed in full; the document has those of published tables in full, and of the
others the errors alone, without what they are of.

usage: accuracy.py PIPECAST SOURCE_ROOT [--update|--check] [GROUP...]
  --update  rewrites the part of docs/accuracy.md between its two marks
  --check   exits with 1 where a bar is missed
"""
import csv
import dataclasses
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BEGIN, END = "<!-- made by tests/golden/accuracy.py: begin -->", "<!-- made by tests/golden/accuracy.py: end -->"
NAN = float("nan")


@dataclasses.dataclass
class Row:
    """One figure: relative error, or points where the figure is a percentage. An error of None: nothing to compare."""
    name: str
    what: str
    published: str
    ours: str
    error: float | None
    is_points: bool = False

    def error_text(self):
        if self.error is None:
            return ""
        return f"{100 * self.error:+.1f}" + (" points" if self.is_points else "%")


@dataclasses.dataclass
class Bar:
    """A demand: `value` is to be at most (or, where is_least, at least) `bar`; texts say both as people read them."""
    name: str
    value: float
    bar: float
    value_text: str
    bar_text: str
    is_least: bool = False

    def is_reached(self):
        return self.value >= self.bar if self.is_least else self.value <= self.bar


@dataclasses.dataclass
class Group:
    name: str
    title: str
    rows: list
    bars: list
    in_document: list  # lines of Markdown under the title


def percent(name, value, bar):
    return Bar(name, value, bar, f"{100 * value:.1f}%", f"{100 * bar:.0f}%")


def run(pipecast, scenario, *options):
    """The rows of a run by name. Exit status 1: something did not fit, which is an answer."""
    done = subprocess.run([pipecast, "run", str(scenario), "--format", "csv", "--quiet", *options], capture_output=True,
                          text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{scenario}: {done.stderr.strip() or done.returncode}")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def case_of(row):
    """The name of a run without its schedule: <case>.<schedule> and what is swept."""
    return row["name"].removesuffix("." + row["schedule"])


def number(row, column):
    return float(row[column]) if row.get(column) else NAN


def mean_and_worst(rows):
    errors = [abs(row.error) for row in rows if row.error is not None and row.error == row.error]
    if not errors or len(errors) < sum(row.error is not None for row in rows):
        return NAN, NAN
    return statistics.mean(errors), max(errors)


def table(rows):
    lines = ["| run | figure | published | ours | error |", "|---|---|---|---|---|"]
    return lines + [f"| {r.name} | {r.what} | {r.published} | {r.ours} | {r.error_text()} |" for r in rows]


def iteration_row(row):
    published, ours = number(row, "published_iteration_s"), number(row, "iteration_s")
    name = case_of(row)
    ours_text = f"{ours:.3f} s" if row["status"] == "ok" else row["status"]
    return Row(name, "iteration", f"{published:.3f} s", ours_text, ours / published - 1)


def megatron(pipecast, root):
    rows = []
    for row in run(pipecast, root / "scenarios/validation/megatron_sc21.yaml"):
        published, ours = number(row, "published_hardware_tflops_per_gpu"), number(row, "hardware_tflops_per_gpu")
        name = case_of(row)
        ours_text = f"{ours:.1f}" if row["status"] == "ok" else row["status"]
        rows.append(Row(name, "hardware TFLOP/s a GPU", f"{published:.0f}", ours_text, ours / published - 1))
    mean, worst = mean_and_worst(rows)
    bars = [percent("SC'21, ten models, mean", mean, 0.06), percent("SC'21, worst", worst, 0.12)]
    return Group("megatron_sc21", "Megatron SC'21 (arXiv 2104.04473), table 1, on Selene", rows, bars, table(rows))


def korthikanti(pipecast, root):
    rows = [iteration_row(row) for row in run(pipecast, root / "scenarios/validation/korthikanti.yaml")]
    bars = [percent("Korthikanti 22B and 175B, worst of four", mean_and_worst(rows)[1], 0.05)]
    return Group("korthikanti", "Korthikanti et al. (arXiv 2205.05198), table 5, on Selene", rows, bars, table(rows))


def korthikanti_larger(pipecast, root):
    """Not asked for; looked at while the A100 was fitted, but no bar of the fit hung on it."""
    rows = [iteration_row(row) for row in run(pipecast, root / "scenarios/validation/korthikanti_larger.yaml")]
    bars = [percent("Korthikanti 530B and 1T (looked at while fitting), worst of five", mean_and_worst(rows)[1], 0.05)]
    title = "Korthikanti et al., the two larger models of table 5, and 530B with eight replicas"
    return Group("korthikanti_larger", title, rows, bars, table(rows))


def korthikanti_memory(pipecast, root):
    rows = []
    for row in run(pipecast, root / "scenarios/validation/korthikanti_memory.yaml"):
        published, ours = number(row, "published_activation_gib"), number(row, "activation_gib_max")
        name = case_of(row)
        rows.append(Row(name, "activations", f"{published:.4g} GiB", f"{ours:.4g} GiB", ours / published - 1))
    bars = [percent("Korthikanti's formulas for activations, worst of eight", mean_and_worst(rows)[1], 0.01)]
    title = "Activation memory by Korthikanti's formulas, 22B and 175B"
    return Group("korthikanti_memory", title, rows, bars, table(rows))


def h100(pipecast, root):
    rows = [iteration_row(row) for row in run(pipecast, root / "scenarios/validation/h100_scaling.yaml")]
    published, ours = [[float(text.split()[0]) for text in column]
                       for column in ([r.published for r in rows], [r.ours if " s" in r.ours else "nan" for r in rows])]
    slopes = ours[-1] / ours[0] - 1, published[-1] / published[0] - 1
    bars = [percent("H100 scaling, worst of five", mean_and_worst(rows)[1], 0.05),
            Bar("H100 scaling, slope from 128 to 2,048 GPUs", abs(slopes[0] - slopes[1]), 0.01,
                f"{100 * slopes[0]:+.1f}% for {100 * slopes[1]:+.1f}%", "within 1 point")]
    return Group("h100_scaling", "GPT-3 175B on H100, dgxc-benchmarking, bf16 step times", rows, bars, table(rows))


# Points of figure 7, as the paper's legend names them. MFU was read off to about 0.7 points.
def figure7_pairs(points):
    """Pairs of schedules of one model whose order by MFU is not that of the paper; equal ones there have none."""
    wrong = []
    for model in sorted({name.rsplit(".", 1)[0] for name in points}):
        of_model = [(name, *pair) for name, pair in points.items() if name.rsplit(".", 1)[0] == model]
        for a, published_a, ours_a in of_model:
            wrong += [f"{a} and {b.rsplit('.', 1)[1]}" for b, published_b, ours_b in of_model
                      if published_a > published_b and not ours_a > ours_b]
    return wrong


def figure7_rows(row):
    """MFU and activation of one point, and whether its activation may be held against the plot."""
    name = case_of(row)
    if not row["published_mfu"]:
        is_right = row["status"] == "out_of_memory"
        return [Row(name, "fits", "out of memory", row["status"].replace("_", " "), 0.0 if is_right else NAN, True)]
    published, ours = number(row, "published_mfu"), number(row, "mfu")
    text = f"{100 * ours:.1f}%" if row["status"] == "ok" else row["status"]
    held, gib = number(row, "published_activation_gib"), number(row, "activation_gib_max")
    return [Row(name, "MFU", f"{100 * published:.1f}%", text, ours - published, True),
            Row(name, "activations", f"{held:.0f} GiB", f"{gib:.1f} GiB", gib / held - 1)]


def figure7(pipecast, root):
    rows, points, misfits, out_of_memory = [], {}, [], False
    for row in run(pipecast, root / "scenarios/paper/controllable_memory_figure7.yaml"):
        made = figure7_rows(row)
        rows += made
        if len(made) == 1:
            out_of_memory = row["status"] == "out_of_memory"
            continue
        points[made[0].name] = number(row, "published_mfu"), number(row, "mfu")
        difference = abs(number(row, "activation_gib_max") - number(row, "published_activation_gib"))
        if row["recompute"] != "full" and not (abs(made[1].error) <= 0.1 or difference <= 1.5):
            misfits.append(made[0].name)
    near = sum(abs(published - ours) <= 0.02 for published, ours in points.values()) + out_of_memory
    wrong = figure7_pairs(points)
    bars = [Bar("figure 7: MFU within 2 points (out of memory counts where the paper has it)", near, 22,
                f"{near} of 24", "22 of 24", True),
            Bar("figure 7: pairs of schedules in another order by MFU", len(wrong), 0, ", ".join(wrong) or "none",
                "none"),
            Bar("figure 7: activations beyond 10% and 1.5 GiB, 1F1B-R left out", len(misfits), 0,
                ", ".join(misfits) or "none", "none"),
            Bar("figure 7: ZB-2P on 38.5B out of memory", out_of_memory, 1, "yes" if out_of_memory else "no", "yes",
                True)]
    title = "'Controllable Memory' (arXiv 2405.15362), figure 7, on five nodes of A100 over RoCE"
    return Group("figure7", title, rows, bars, table(rows))


TABLE3 = {  # best MFU in percent, by the case and the schedule (with recompute: full where it ends on -r)
    "s1024": {"1f1b": 49.81, "1f1b-r": 37.15, "zb-1p": 54.52, "v-half": 52.60, "v-min": 48.02, "v-zb": 57.58},
    "s3072": {"1f1b": 57.25, "1f1b-r": 45.81, "zb-1p": 56.55, "v-half": 60.34, "v-min": 55.51, "v-zb": 56.89},
}


def table3_best(pipecast, root):
    """The row of the highest MFU for each case and schedule."""
    best = {}
    rows = [row for name in ("table3", "table3_r") for row in run(pipecast, root / f"scenarios/paper/controllable_memory_{name}.yaml")]
    for row in rows:
        case = case_of(row).split(".")[0]
        key = case.removesuffix("-r"), row["schedule"] + ("-r" if case.endswith("-r") else "")
        if row["status"] == "ok" and number(row, "mfu") > number(best.get(key, {"mfu": "-1"}), "mfu"):
            best[key] = row
    return best


def table3(pipecast, root):
    best, rows, same, gaps = table3_best(pipecast, root), [], 0, []
    for case, published in TABLE3.items():
        ours = {}
        for schedule, mfu in published.items():
            row = best.get((case, schedule))
            ours[schedule] = 100 * number(row, "mfu") if row else NAN
            cut = "dp {dp}, tp {tp}, pp {pp}, b {microbatch_size}".format(**row) if row else "nothing fits"
            rows.append(Row(f"{case} {schedule}", "best MFU", f"{mfu:.2f}%", f"{ours[schedule]:.1f}% ({cut})",
                            (ours[schedule] - mfu) / 100, True))
        first = max(published, key=published.get)
        same += first == max(ours, key=lambda schedule: ours[schedule] if ours[schedule] == ours[schedule] else -1)
        gaps.append(abs(ours[first] - published[first]) / 100)
    bars = [Bar("table 3: set-ups whose best schedule is the published one", same, 2, f"{same} of 2", "2 of 2", True),
            Bar("table 3: MFU of the best", max(gaps), 0.03,
                ", ".join(f"{100 * gap:.1f}" for gap in gaps) + " points off", "within 3 points")]
    title = "'Controllable Memory', table 3: grid search for 98.5B on 40 A100"
    return Group("table3", title, rows, bars, table(rows))


def iteration_case(number_, row):
    """A case of a scenario from one line of the measured iterations of vTrain."""
    size = {key: int(row[key]) for key in ("hidden size", "attention heads", "# layers", "sequence length")}
    tp, dp, pp = (int(row[f"{kind} parallelism"]) for kind in ("tensor", "data", "pipeline"))
    model = {"name": f"h{size['hidden size']}", "layers": size["# layers"], "hidden": size["hidden size"],
             "heads": size["attention heads"], "max_positions": size["sequence length"],
             "seq_len": size["sequence length"]}
    return {"name": f"row{number_:03}", "model": model, "tp": tp, "dp": dp, "pp": pp,
            "global_batch": int(row["global batch"]), "microbatch_size": int(row["micro batch"]),
            "published": [{"schedule": "1f1b", "iteration": f"{float(row['iteration time (ms)'])} ms"}]}


def iterations_scenario(rows, setting):
    """JSON, which is YAML: the setting is that of docs/accuracy.md."""
    model = {"vocab": 51200, "vocab_multiple": 128, "positions": "learned", "norm": "layernorm", "mlp": "gelu",
             "attention": "materialised", "precision": "fp16", "tied": True, "bias": True, "dropout": True}
    common = {"schedule": "1f1b", "model": model, "sequence_parallel": False, "zero": 0}
    return json.dumps({"scenario": "iterations", "setting": common | setting,
                       "cases": [iteration_case(i, row) for i, row in enumerate(rows)]}, indent=0)


def run_iterations(pipecast, path, setting):
    """Each row of a table of vTrain's with what `run` says of it. In the file some headers have spaces around and a '#' in front."""
    with path.open() as file:
        rows = [{key.strip(" #") if "GPUs" in key else key.strip(): value for key, value in row.items()}
                for row in csv.DictReader(file)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(iterations_scenario(rows, setting))
        file.flush()
        return list(zip(rows, run(pipecast, file.name), strict=True))


def measured_iterations(pipecast, path, setting):
    """Rows with names that say the cut."""
    made = []
    for row, result in run_iterations(pipecast, path, setting):
        one = iteration_row(result)
        one.name = (f"h {row['hidden size']} L {row['# layers']} s {row['sequence length']}: tp {result['tp']} dp "
                    f"{result['dp']} pp {result['pp']} b {result['microbatch_size']} m {result['microbatches']}")
        made.append(one)
    return made


def quantiles(errors):
    ordered = sorted(abs(error) for error in errors)
    return [ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0.5, 0.9)] + [ordered[-1]]


def iterations(pipecast, root, name, title, bar, setting, lists_rows):
    path = root.parent / "shared/data/measured" / f"a100_{name}_gpus.csv"
    if not path.exists():
        return None
    rows = measured_iterations(pipecast, path, setting)
    mean, _ = mean_and_worst(rows)
    middle, most, worst = quantiles([row.error for row in rows])
    lines = [f"{len(rows)} iterations: mean error {100 * mean:.1f}%, median {100 * middle:.1f}%, nine in ten within "
             f"{100 * most:.1f}%, worst {100 * worst:.1f}%; on average "
             f"{100 * statistics.mean(row.error for row in rows):+.1f}%."]
    if lists_rows:
        lowest_first = sorted(rows, key=lambda row: row.error)
        lines += ["Each, from the lowest: " + ", ".join(row.error_text() for row in lowest_first) + "."]
    else:
        lines += [""] + by_cut(rows)
    return Group(name, title, rows, [percent(title + ", mean", mean, bar)], lines)


# On nodes of 8 A100 with 4 NICs: everything recomputed, gradients at the end, tensor parallel all-reduces beside W.
FROM_64_TO_256 = {"machine": "a100-hdr-4-nics", "recompute": "full", "gradient_bytes": 2,
                  "overlap": {"p2p": False, "tp": True, "gradients": False, "parameters": False}}


def iterations_64_to_256(pipecast, root):
    title = "measured iterations on 64 to 256 A100 (vTrain, MICRO 2024)"
    return iterations(pipecast, root, "iterations_64_to_256", title, 0.06, FROM_64_TO_256, True)


# Composed from layers that were profiled one by one: nothing recomputed, nothing overlapped.
FROM_2_TO_4 = {"machine": "a100-hdr-4-nics", "recompute": "none", "gradient_bytes": 2,
               "overlap": {"p2p": False, "tp": False, "gradients": False, "parameters": False}}


def iterations_2_to_4(pipecast, root):
    title = "measured iterations on 2 to 4 A100 (vTrain, MICRO 2024)"
    return iterations(pipecast, root, "iterations_2_to_4", title, 0.08, FROM_2_TO_4, False)


def by_cut(rows):
    """Errors together for each tp, dp, pp."""
    cuts = {}
    for row in rows:
        cuts.setdefault(row.name.split(": ")[1].split(" b ")[0], []).append(row.error)
    lines = ["| cut | iterations | mean | mean with sign | worst |", "|---|---|---|---|---|"]
    for cut, errors in sorted(cuts.items()):
        mean, signed = statistics.mean(abs(e) for e in errors), statistics.mean(errors)
        lines.append(f"| {cut} | {len(errors)} | {100 * mean:.1f}% | {100 * signed:+.1f}% | "
                     f"{100 * max(errors, key=abs):+.1f}% |")
    return lines


GROUPS = {
    "megatron_sc21": megatron,
    "korthikanti": korthikanti,
    "korthikanti_larger": korthikanti_larger,
    "korthikanti_memory": korthikanti_memory,
    "h100_scaling": h100,
    "figure7": figure7,
    "table3": table3,
    "iterations_64_to_256": iterations_64_to_256,
    "iterations_2_to_4": iterations_2_to_4,
}


def summary(groups):
    lines = ["| what | ours | asked | reached |", "|---|---|---|---|"]
    for group in groups:
        lines += [f"| {bar.name} | {bar.value_text} | {bar.bar_text} | {'yes' if bar.is_reached() else 'no'} |"
                  for bar in group.bars]
    return lines


def document(groups):
    lines = summary(groups)
    for group in groups:
        lines += ["", f"### {group.title[0].upper()}{group.title[1:]}", ""] + group.in_document
    return "\n".join(lines) + "\n"


def update(path, groups):
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{path}: no part to rewrite; expected the two marks {BEGIN} and {END}")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{document(groups)}{END}{after}")


def measure(pipecast, root, names=()):
    """The groups that can be had; unknown names are an error."""
    unknown = set(names) - set(GROUPS)
    if unknown:
        raise SystemExit(f"{sorted(unknown)[0]}: no such group; expected one of {', '.join(GROUPS)}")
    made = [GROUPS[name](pipecast, root) for name in names or GROUPS]
    return [group for group in made if group is not None]


def main(pipecast, root, arguments):
    flags, names = [a for a in arguments if a.startswith("--")], [a for a in arguments if not a.startswith("--")]
    groups = measure(os.path.abspath(pipecast), pathlib.Path(root).resolve(), names)
    for group in groups:
        print("\n".join([f"## {group.title}", ""] + table(group.rows) + [""]))
    print("\n".join(summary(groups)))
    if "--update" in flags:
        if len(groups) < len(GROUPS):
            raise SystemExit("docs/accuracy.md: not written; expected all groups, with ../shared/data/measured at hand")
        update(pathlib.Path(root, "docs/accuracy.md"), groups)
    missed = [bar.name for group in groups for bar in group.bars if not bar.is_reached()]
    return 1 if "--check" in flags and missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
