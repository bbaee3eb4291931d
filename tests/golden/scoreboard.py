"""Measured training runs of others beside their forecasts: the tables of docs/scoreboard.md, and its picture.

All figures are what `pipecast score` says of the tables in ../shared/data/training, whose rows may not stand in the project.
Where these are not at hand, the page stays as it is.

usage: scoreboard.py PIPECAST SOURCE_ROOT [--update]
  --update  rewrites the parts of the page, each between its two marks, and draws the picture (gnuplot)
"""
import itertools
import os
import pathlib
import re
import statistics
import sys
import tempfile
import typing

import low_precision
from compared import percent, signed, table
from measured_tables import (FILES, MENDS, SCALES, SHARED, ask, gpu, is_asked, is_at_hand, is_compared, is_inside,
                             is_refused, number, read, scale, score, shards, write)

PAGE, PICTURE = "docs/scoreboard.md", "docs/scoreboard.svg"


def draw(pipecast, root, said):
    """All runs that were asked, in one table."""
    columns = list(read(root, next(iter(FILES)))[0])
    rows = [{column: row[column] for column in columns} for found in said.values() for row in found["rows"] if is_compared(row)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "runs that others measured")
        write(path, sorted(rows, key=lambda row: row["program"]))
        score(pipecast, path, "--by", "program", "--figure", str(root / PICTURE))


# ---- what a row has ----

FEATURES = {"FSDP, ZeRO 3": lambda row: shards(row) and row["zero"] != "2",
            "ZeRO 2": lambda row: row["zero"] == "2",
            "ZeRO 1, over all replicas, or nothing said": lambda row: not shards(row) and row["zero"] in ("", "1", "1 group=DP"),
            "ZeRO 1, over a group": lambda row: "group=" in row["zero"] and "DP" not in row["zero"],
            "tensor parallel": lambda row: number(row, "tp") > 1,
            "pipeline": lambda row: number(row, "pp") > 1,
            "pipeline, interleaved": lambda row: number(row, "pp") > 1 and number(row, "vp") > 1,
            "full recomputation": lambda row: row["recompute"] == "full",
            "selective recomputation": lambda row: row["recompute"].startswith("selective ") or row["recompute"] == "selective",
            "expert parallel": lambda row: number(row, "ep") > 1,
            "16,384 tokens and more": lambda row: number(row, "seq") >= 16384}


# ---- the bars, and rows that a fit has seen ----

is_low = low_precision.is_low


def has_context(row):
    return number(row, "cp") > 1


def is_tuned(row, task):
    """LoRA, or SFT."""
    return row["task"] == task


def has_experts(row):
    return number(row, "ep") > 1


def is_plain(row):
    """Pre-training of dense models that cuts no sequence over ranks: what could be asked first, whose bars are the oldest."""
    return not (has_experts(row) or has_context(row) or is_tuned(row, "LoRA") or is_tuned(row, "SFT"))


def is_mixture(row):
    """Verification cards and pairs of one microbatch a step are no runs for speed."""
    cards = row["file"] in ("megatron_bridge_verification_cards", "megatron_bridge_ablations")
    return has_experts(row) and (not cards or row["task"] == "pretrain_performance")


def is_host_fitted(row):
    """Those to which the host's numbers of GPUs' files are fitted, module and expert: nine runs of two configurations."""
    name = row["model"].lower()
    return is_mixture(row) and ((name.startswith("deepseekv3") and gpu(row) == "B200" and row["pp"] == "16")
                                or (name.startswith("qwen3_30b") and gpu(row) == "H100"))


def is_for_speed(row):
    """Of NVIDIA's programs and MLPerf. Verification cards are of runs that check that a recipe works: 1% of a GPU's rate."""
    return (row["program"] in ("NeMo", "Megatron-Bridge", "others, of MLPerf") and row["file"] != "megatron_bridge_verification_cards"
            and not gpu(row).startswith("MI"))


def is_context_of_h100(row):
    return row["framework"] == "NeMo" and gpu(row) == "H100" and number(row, "cp") == 2


def is_nvidia(row):
    return is_plain(row) and row["program"] in ("NeMo", "Megatron-Bridge") and gpu(row) in ("H100", "GB200") and not is_low(row)


def is_mosaic(row):
    return row["program"] == "llm-foundry" and not is_low(row)


def is_low_nemo(row):
    return is_plain(row) and row["program"] == "NeMo" and gpu(row) == "H100" and is_low(row)


def is_blackwell(row):
    return is_plain(row) and gpu(row) in ("B200", "GB200")


def is_fitted(row):
    """GPT-3 175B on H100, whose step times H100's file is fitted to."""
    return is_nvidia(row) and re.search(r"nemo.megatron|gpt.?175b", row["model"].lower()) is not None


class Bar(typing.NamedTuple):
    name: str
    holds: typing.Callable
    mean: float
    worst: float | None = None
    bias: float | None = None


LEFT_OUT = "FSDP: MosaicML, each model by numbers fitted to the others"
BARS = [Bar("NeMo and Megatron on H100 and GB200, not fitted", lambda row: is_nvidia(row) and not is_fitted(row), 0.04, 0.12),
        Bar("the same with GPT-3 175B, to which H100 is fitted", is_nvidia, 0.04, 0.12),
        Bar("FSDP: torchtitan, not fitted", lambda row: row["program"] == "torchtitan" and not is_low(row), 0.08),
        Bar("FSDP: MosaicML, to which three numbers are fitted", is_mosaic, 0.08),
        Bar(LEFT_OUT, is_mosaic, 0.08),
        Bar("InternEvo, not fitted", lambda row: row["program"] == "InternEvo", 0.08),
        Bar("NeMo in 8 bits on H100, not fitted", is_low_nemo, 0.06),
        Bar("B200 and GB200 in any precision, not fitted", is_blackwell, 0.06),
        Bar("context parallelism: NeMo's Llama with cp 2 on H100", is_context_of_h100, 0.04),
        Bar("context parallelism: NVIDIA's programs, MLPerf; pre-training",
            lambda row: is_for_speed(row) and has_context(row) and not has_experts(row) and not is_tuned(row, "LoRA"), 0.06, 0.15),
        Bar("LoRA: NVIDIA's programs, MLPerf on NVIDIA's GPUs", lambda row: is_for_speed(row) and is_tuned(row, "LoRA"), 0.06, 0.15),
        Bar("SFT: NVIDIA's programs", lambda row: is_for_speed(row) and is_tuned(row, "SFT"), 0.06, 0.15),
        Bar("mixtures of experts: NeMo, Megatron-Bridge, AutoModel, MLPerf", is_mixture, 0.10, bias=0.04),
        Bar("the same without nine rows to which two numbers are fitted", lambda row: is_mixture(row) and not is_host_fitted(row), 0.10, bias=0.04)]
SPEED_UP = "speed-up of fewer bits off by 6 points or less: share of pairs, at least"


# Of software `mosaic`: the numbers that are fitted, and the grid that they are chosen from.
UNFUSED, SLOWDOWN, OVERHEAD = (1, 1.5, 2, 2.5), (0, 0.1, 0.2, 0.3), ("0 ms", "20 ms", "40 ms", "60 ms")


def mosaic_grid(pipecast, root):
    """{(unfused, slowdown, overhead): compared rows} of MosaicML's table."""
    grid = {}
    for point in itertools.product(UNFUSED, SLOWDOWN, OVERHEAD):
        said = ask(pipecast, root, ("mosaicml_llm_foundry",), tuple(f"--set=setting.{key}={value}" for key, value in
                                                                    zip(("unfused", "overlap.slowdown", "overhead"), point)))
        grid[point] = [row for row in rows_of(said) if is_compared(row)]
    return grid


def left_out(grid):
    """The rows of every model, forecast with the numbers that fit the other models best."""
    rows = []
    for model in sorted({row["model"] for row in next(iter(grid.values()))}):
        best = min(grid, key=lambda point: statistics.mean(sizes([row for row in grid[point] if row["model"] != model])))
        rows += [row for row in grid[best] if row["model"] == model]
    return rows


def distinct(rows):
    """Releases print the same figure again."""
    return len({(gpu(row), *(row[column] for column in ("gpus", "gbs", "mbs", "seq", "tp", "pp", "vp", "recompute", "zero")),
                 round(row["measured_s"], 3)) for row in rows})


def sizes(rows):
    return [abs(row["error"]) for row in rows]


def worst(rows):
    return max(rows, key=lambda row: abs(row["error"]))["error"]


def verdict(is_reached):
    return "yes" if is_reached else "no"


def bar_lines(bar, rows):
    of = list(rows)
    if not of:
        return []
    mean = statistics.mean(sizes(of))
    count = f"{len(of)}, {distinct(of)} distinct"
    lines = [[f"{bar.name}: mean", count, percent(mean), percent(bar.mean), verdict(mean <= bar.mean)]]
    if bar.worst is not None:
        lines.append([f"{bar.name}: worst", count, signed(worst(of)), percent(bar.worst), verdict(abs(worst(of)) <= bar.worst)])
    if bar.bias is not None:
        bias = statistics.mean(row["error"] for row in of)
        lines.append([f"{bar.name}: bias", count, signed(bias), percent(bar.bias), verdict(abs(bias) <= bar.bias)])
    return lines


def bars(said, grid):
    """`grid`: of mosaic_grid()."""
    rows = rows_of(said)
    asked, memory = [row for row in rows if is_asked(row)], [row for row in rows if row["memory_error"] is not None]
    refused = sum(map(is_refused, asked)) / len(asked)
    error = statistics.mean(abs(row["memory_error"]) for row in memory)
    compared = [row for row in rows if is_compared(row)]
    lines = [line for bar in BARS for line in bar_lines(bar, filter(bar.holds, left_out(grid) if bar.name == LEFT_OUT else compared))]
    speeds = low_precision.pairs([row for row in compared if not has_experts(row)])
    if speeds:
        within = low_precision.share_within(speeds)
        lines.append([SPEED_UP, str(len(speeds)), percent(within), percent(low_precision.SHARE), verdict(within >= low_precision.SHARE)])
    lines.append(["runs called out of memory, or infeasible", str(len(asked)), percent(refused), "2.0%", verdict(refused <= 0.02)])
    lines.append(["memory of the fullest GPU, mean", str(len(memory)), percent(error), "5.0%", verdict(error <= 0.05)])
    return table(["bar", "rows", "reached", "asked for", ""], lines, "lrrrl")


# ---- sums ----

SUMS = ["rows", "asked", "timed", "mean", "median", "worst", "bias", "out of memory", "inside"]


def sums(rows):
    """Cells, as SUMS names them."""
    asked, compared = [row for row in rows if is_asked(row)], [row for row in rows if is_compared(row)]
    counts = [str(len(rows)), str(len(asked)), str(len(compared))]
    if not compared:
        return counts + [""] * 4 + [str(sum(map(is_refused, asked))) if asked else "", ""]
    errors = [row["error"] for row in compared]
    return counts + [percent(statistics.mean(sizes(compared))), percent(statistics.median(sizes(compared))), signed(worst(compared)),
                     signed(statistics.mean(errors)), str(sum(map(is_refused, asked))), percent(statistics.mean(map(is_inside, compared)), 0)]


def rows_of(said):
    return [{**row, "file": name} for name, found in said.items() for row in found["rows"]]


def sum_table(heading, kinds, all_rows):
    """`kinds`: {name: rows}; a line for all unless `all_rows` is None."""
    lines = [[name, *sums(rows)] for name, rows in kinds.items()]
    if all_rows is not None:
        lines.append(["**all**", *sums(all_rows)])
    return table([heading, *SUMS], lines, "l" + "r" * len(SUMS))


def by(rows, key):
    """{value: rows}, those with most asked rows first."""
    kinds = {}
    for row in rows:
        kinds.setdefault(key(row), []).append(row)
    return dict(sorted(kinds.items(), key=lambda kind: (-sum(map(is_asked, kind[1])), -len(kind[1]), kind[0])))


def sources(said):
    rows = rows_of(said)
    return sum_table("table", {FILES[name]: of for name, of in by(rows, lambda row: row["file"]).items()}, rows)


def gpus(said):
    rows = rows_of(said)
    return sum_table("GPU", by(rows, gpu), rows)


def precisions(said):
    """Of rows that low precision or a new GPU lets be asked: by GPU, program and precision."""
    rows = [row for row in rows_of(said) if is_asked(row) and (is_low(row) or re.match("B|GB", gpu(row)))]
    kinds = by(rows, lambda row: f"{gpu(row)}, {row['program']}, {row['precision']}")
    return sum_table("GPU, program, precision", dict(sorted(kinds.items())), rows)


def speed_ups(said):
    return low_precision.pair_table(list(filter(is_compared, rows_of(said))), gpu)


def programs(said):
    rows = rows_of(said)
    return sum_table("program", by(rows, lambda row: row["program"]), rows)


def scales(said):
    rows = rows_of(said)
    return sum_table("GPUs", {name: [row for row in rows if scale(row) == name] for name in SCALES}, rows)


def features(said):
    rows = rows_of(said)
    return sum_table("feature", {name: [row for row in rows if has(row)] for name, has in FEATURES.items()}, None)


# ---- the worst rows ----

UNKNOWN = "not known"
# The first that fits a row explains it. What is said of programs is read from their source, which is named on the page.
EXPLANATIONS = [
    (lambda row: has_experts(row) and row["file"] == "megatron_bridge_ablations",
     "one microbatch a step, bound by the host: Python of modules and optimizer, whose time is not known"),
    (lambda row: has_experts(row) and row["file"] == "megatron_bridge_verification_cards" and row["task"] != "pretrain_performance",
     "a run that checks a recipe: not made for speed"),
    (lambda row: "qwen3_30b" in row["model"].lower() and gpu(row) == "B200" and row["mbs"] == "1",
     "four sequences a microbatch take 1.45 times as long as one: its host decides, whose Python of 16 experts' products is not counted"),
    (lambda row: "qwen3_235b" in row["model"].lower() and gpu(row) == "B300" and row["release"].startswith("NeMo 26.02"),
     "a young recipe: 26.04.01 takes less than half as long, with two sequences a microbatch"),
    (lambda row: row["model"] == "GPT OSS 120B" and row["release"] == "NeMo 26.06.01",
     "a regression of its kernels, mended in 26.08 (release notes of Megatron-Bridge 0.5.1; cudnn-frontend, issue 256)"),
    (lambda row: "qwen3_30b" in row["model"].lower() and gpu(row) == "H100" and row["precision"] == "FP8",
     "its host decides: both ways through a layer take 9.6 ms, B200's as many tokens 8.8 ms, and in bf16 this run is faster (Megatron-Bridge, pull request 5225)"),
    (lambda row: has_experts(row) and row["release"] == "v25.05" and "deepseek" in row["model"],
     "attention with scores in memory makes a fifth of what was missing; the rest is not known"),
    (lambda row: row["program"] == "InternEvo" and row["zero"] == "1 group=DP" and int(row["gpus"]) > 8,
     "broadcasts take longer on many GPUs than NCCL's ring and the machine's latencies make them (note 1)"),
    (lambda row: row["program"] == "InternEvo" and row["tp"] == "2",
     "most of it on one node, so it is not the network; in part known, without a key (note 2)"),
    (lambda row: row["program"] == "torchtitan" and has_context(row),
     "an H100 at 500 W; attention is most of it, in steps of PyTorch's own, of unknown rate (note 3)"),
    (lambda row: row["program"] == "torchtitan", "an H100 at 500 W, whose rate is not published (note 3)"),
    (lambda row: row["program"] == "AutoModel" and number(row, "pp") > 1 and number(row, "tp") > 1,
     "its pipeline flushes each local batch of 4, 7% more, and eager DTensors are slow on the host; neither is modelled"),
    (lambda row: row["release"] == "NeMo 25.09" and row["precision"] == "FP8-MX" and gpu(row) == "GB200" and has_context(row),
     "GB200's first release with this recipe: B200 with the same cut took 7% less, and GB200 in FP8 14% less"),
    (lambda row: row["file"] == "megatron_bridge_verification_cards", "a run that checks a recipe, at 1% of the GPUs' rate: not made for speed"),
    (lambda row: row["model"] == "llama2_70b_lora" and gpu(row).startswith("MI"), "no kernels in 8 bits were measured on these GPUs"),
    (lambda row: row["file"] == "mosaicml_llm_foundry" and row["model"] == "MPT-1b" and row["gpus"] == "32"
     and row["system"] == "a100_40gb", "probably the measurement: 64 GPUs with the same work each took 18% less")]


def explanation(row):
    return next((text for fits, text in EXPLANATIONS if fits(row)), UNKNOWN)


def cut(row):
    """tp/pp/vp, as score's own table has it."""
    return "/".join(row[column] or "1" for column in ("tp", "pp", "vp"))


def sharding(row):
    return row["zero"] or (f"FSDP {row['fsdp_shard']}" if number(row, "fsdp_shard") > 1 else "1")


def worst_line(row):
    recompute = "" if row["recompute"] in ("", "none") else f", {row['recompute']} recomputation"
    return [f"{row['model']}, {row['seq']} tokens{recompute}", gpu(row), row["gpus"], f"{row['mbs']}/{row['gbs']}", cut(row),
            sharding(row), row["program"], f"{row['measured_s']:.4g} s", f"{row['forecast_s']:.4g} s", signed(row["error"]),
            explanation(row)]


def worst_rows(said):
    found = sorted((row for row in rows_of(said) if is_compared(row)), key=lambda row: -abs(row["error"]))[:20]
    header = ["model", "GPU", "GPUs", "mbs/gbs", "tp/pp/vp", "ZeRO", "program", "measured", "forecast", "error", "why"]
    return table(header, [worst_line(row) for row in found], "llrrrlrrrrl")


# ---- differences, and the choice of a configuration ----

def told(pair):
    return f"{pair['right']} of {pair['told']}" if pair["told"] else ""


def pairs(said):
    lines = [[FILES[name], pair["thing"], str(pair["pairs"]), told(pair), percent(pair["mean"]), signed(pair["worst"])]
             for name, found in said.items() for pair in found["pairs"]]
    return table(["table", "runs differ in", "pairs", "the faster one known", "ratio, mean error", "worst"], lines, "llrrrr")


def group_line(name, found):
    correlations = [group["rank_correlation"] for group in found if group["rank_correlation"] is not None]
    regrets = [group["regret"] for group in found]
    return [FILES[name], str(len(found)), str(sum(group["configurations"] for group in found)),
            f"{sum(regret == 0 for regret in regrets)} of {len(found)}", percent(statistics.mean(regrets)), percent(max(regrets)),
            f"{statistics.mean(correlations):.2f} ({len(correlations)})" if correlations else ""]


def groups(said):
    lines = [group_line(name, found["groups"]) for name, found in said.items() if found["groups"]]
    return table(["table", "groups", "configurations", "the best chosen", "mean regret", "worst", "rank correlation (groups)"],
                 lines, "lrrrrrr")


# ---- what cannot be asked ----

def missing(said):
    """A row lacks every feature that its cell names; `alone` counts the rows that lack nothing else."""
    rows = [row["missing"].split(";") for row in rows_of(said) if not is_asked(row)]
    names = {name for lacks in rows for name in lacks}
    counts = {name: (sum(name in lacks for lacks in rows), rows.count([name])) for name in names}
    order = sorted(names, key=lambda name: (-counts[name][1], -counts[name][0], name))
    several = sum(len(lacks) > 1 for lacks in rows)
    return [*table(["missing", "rows that need it", "rows that lack it alone"],
                   [[f"`{name}`", *map(str, counts[name])] for name in order], "lrr"), "",
            f"Not asked: {len(rows)} rows, {several} of which lack more than one thing."]


def mends(said):
    lines = [[FILES[mend.file], ", ".join(mend.where.values()).replace("\\", "").replace(".*", "*") or "all", str(mend.rows),
              f"`{mend.column}`", mend.says.replace(".*", "*") or "nothing", mend.becomes or "nothing", mend.why] for mend in MENDS]
    return table(["table", "of", "rows", "column", "said", "is read as", "why"], lines, "llrllll")


# ---- the page ----

PARTS = {"sources": sources, "gpus": gpus, "precisions": precisions, "speed_ups": speed_ups, "programs": programs, "scales": scales, "features": features,
         "worst": worst_rows, "pairs": pairs, "groups": groups, "missing": missing, "mends": mends}


OTHERS = {"coverage": "intervals.py", "intervals": "intervals.py"}  # parts that another script makes


def marks(part):
    return tuple(f"<!-- {part}, made by tests/golden/{OTHERS.get(part, 'scoreboard.py')}: {end} -->" for end in ("begin", "end"))


def part_of(text, part):
    """Before the part, its lines, and behind it."""
    begin, end = marks(part)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{PAGE}: no part '{part}' to rewrite; expected the two marks {begin} and {end}")
    before, behind = text.split(begin)
    inside, after = behind.split(end)
    return before, inside.strip("\n").split("\n"), after


def with_part(text, part, lines):
    before, _, after = part_of(text, part)
    begin, end = marks(part)
    return before + begin + "\n" + "\n".join(lines) + "\n" + end + after


def main(pipecast, root, is_update):
    if not is_at_hand(root):
        print(f"{PAGE}: left as it stands, for ../{SHARED} is not there", file=sys.stderr)
        return 0
    said = ask(pipecast, root)
    made = {"bars": bars(said, mosaic_grid(pipecast, root)), **{part: make(said) for part, make in PARTS.items()}}
    print("\n".join(line for part, lines in made.items() for line in (f"## {part}", "", *lines, "")))
    if is_update:
        text = (root / PAGE).read_text()
        for part, lines in made.items():
            text = with_part(text, part, lines)
        (root / PAGE).write_text(text)
        draw(pipecast, root, said)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or set(sys.argv[3:]) - {"--update"}:
        raise SystemExit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), "--update" in sys.argv))
