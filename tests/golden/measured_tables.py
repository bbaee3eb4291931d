"""Tables of training runs that others measured, ../shared/data/training: what is mended in them, what a row is, and what
`pipecast score` says of them. Their rows may not stand in the project.
"""
import csv
import json
import pathlib
import re
import subprocess
import tempfile
import typing

import conditions

SHARED = "shared/data/training"

# What each table is, and whose. Not here are the tables without a measured step: conditions of recipes, single layers, a trace.
FILES = {"nvidia_dgxc_benchmarking_2024": "NVIDIA dgxc-benchmarking, v24.11 to v25.02",
         "nvidia_dgxc_benchmarking": "NVIDIA dgxc-benchmarking, to v25.05",
         "nemo_megatron_bridge": "NVIDIA Megatron-Bridge, performance summaries",
         "megatron_bridge_verification_cards": "Megatron-Bridge, verification cards",
         "megatron_bridge_ablations": "Megatron-Bridge, runs that differ in one thing",
         "nvidia_nemo_2407": "NVIDIA NeMo 24.07",
         "nvidia_nemo_long_sequence": "NVIDIA NeMo, long sequences",
         "nvidia_automodel": "NVIDIA NeMo AutoModel",
         "mosaicml_llm_foundry": "MosaicML llm-foundry",
         "internevo_a100": "InternEvo, train_performance.md",
         "torchtitan": "torchtitan, benchmarks",
         "nanotron_hf_bench": "nanotron, benchmarks",
         "mlperf_training": "MLPerf Training v5.0 and v5.1",
         "mlperf_training_v60_deepseek": "MLPerf Training v6.0, a copy"}


# ---- the tables, and what is mended in them ----

class Mend(typing.NamedTuple):
    """Cells of `file` in which `column` says `says` become `becomes`, where the other columns match `where`."""
    file: str
    where: dict
    column: str
    says: str  # a regular expression, of the whole cell
    becomes: str
    rows: int  # so many; another number is an error
    why: str

    def fits(self, row):
        return (re.fullmatch(self.says, row[self.column]) is not None
                and all(re.fullmatch(value, row[column]) for column, value in self.where.items()))


NEMO_26_02_01 = {"release": r"NeMo 26\.02\.01", "model": "LLAMA3_70B", "system": "DGX-GB300"}
MENDS = [Mend("nvidia_dgxc_benchmarking", {"release": r"v25\.04.*", "model": "nemotron 340b"}, "vp", "", "12", 8,
              "not printed; 12 in all other releases"),
         *[Mend("nvidia_dgxc_benchmarking", {"release": r"v25\.05", "model": "llama4 400b"}, "variant", f"layers=32 ETP={cut}", f"layers=48 ETP={cut}", rows,
                "v25.05.01 prints the same steps beside 48, the model's own; 32 are no multiple of the 24 chunks of 2 stages")
           for cut, rows in ((1, 3), (4, 1))],
         Mend("nvidia_dgxc_benchmarking", {}, "gbs", "1204", "1024", 1, "misprint: 1204 is no multiple of the 16 replicas"),
         Mend("nvidia_dgxc_benchmarking_2024", {"model": "Llama3 8b Finetuning.*"}, "pp", "41", "1", 8,
              "misprint: 41 stages on 8 to 32 GPUs"),
         Mend("nemo_megatron_bridge", {"release": r"NeMo 25\.09", "model": "LLAMA3_70B", "system": "DGX-GB200", "precision": "FP8-MX"}, "mbs", "2", "1", 1,
                "8 replicas of 16 microbatches (ga) make 128 sequences of one each"),
         Mend("nemo_megatron_bridge", {"release": r"NeMo 25\.11", "model": "GPT OSS 120B", "system": "DGX-B200"}, "ep", "8", "64", 1,
              "its recipe has 64, and so prints 26.02, as fast within 2%; on GPUs of one node it would be twice as fast, as B300 is"),
         Mend("nemo_megatron_bridge", {"release": r"NeMo 25\.11", "model": "GPT OSS 120B", "system": "DGX-H100"}, "mbs", "4", "1", 1,
              "its recipe has 1; 2 microbatches (ga) of 4, as B200's row has, are not the 32 sequences of a replica, and do not fit"),
         *[Mend("nemo_megatron_bridge", {**NEMO_26_02_01, "precision": "MXFP8"}, column, says, becomes, 1,
                "pp 4, vp 5 and mbs 1 in the releases before and behind, as fast, and in its recipe")
           for column, says, becomes in (("mbs", "2", "1"), ("vp", "", "5"))],
         *[Mend("nemo_megatron_bridge", {**NEMO_26_02_01, "precision": "NVFP4"}, column, says, becomes, 1,
                "a whole replica does not fit a GPU; its recipe has pp 4, vp 5, mbs 1")
           for column, says, becomes in (("mbs", "2", "1"), ("vp", "", "5"), ("pp", "1", "4"))],
         Mend("megatron_bridge_verification_cards", {"variant": "recipe=qwen3_235b_a22b_pretrain_256gpu_gb300_fp8mx_config .*"}, "vp", "", "12", 1,
              "that recipe has 12, and hides exchanges, for which Megatron-LM wants chunks"),
         Mend("mlperf_training_v60_deepseek", {"model": "deepseekv3_671b"}, "vp", "", "4", 2, "INTERLEAVED_PIPELINE of the configurations that the rows name"),
         Mend("mlperf_training", {"model": "llama31_8b", "system": r".*\(B200-SXM-180GB\) 2x8"}, "precision", "", "FP8", 1,
              "not printed; two others ran the same configuration on such machines in FP8, as fast within 1.2%"),
         Mend("mlperf_training", {"model": "llama2_70b_lora", "system": r".*\(B200-SXM-180GB\) 1x8", "ga": "1"}, "precision", "", "FP8", 3,
              "not printed; as fast as six others of this configuration in FP8, within 2%"),
         Mend("mlperf_training", {"model": "llama2_70b_lora", "system": r".*\(B200-SXM-180GB\) 1x8", "ga": "2"}, "precision", "", "not printed", 1,
              "nor is the cut, and it is faster than the others in FP8"),
         Mend("mlperf_training", {"model": "llama2_70b_lora", "system": r"NVIDIA H200.* 1x8"}, "cp", "1", "2", 6,
              "8 sequences in 2 microbatches are 4 replicas of 2 GPUs; Dell's configuration of these machines has cp 2"),
         Mend("mlperf_training", {"model": "llama2_70b_lora", "system": r"AMD Instinct MI300X .*"}, "recompute", "", "full block 21", 8,
              "MangoBoost's configuration of the same name: ACG=full, ACM=block, ACL=21"),
         *[Mend("mlperf_training", {"model": model, "system": rf".*\(B200-SXM-180GB\) {nodes}x8"}, "precision", "", "not printed", 1,
                "nor have others run the same configuration")
           for model, nodes in (("llama2_70b_lora", 4), ("llama31_8b", 4), ("llama31_8b", 16), ("llama31_8b", 32))],
         Mend("mlperf_training", {"model": "llama31_8b", "system": "AMD .*MI35.*"}, "precision", "", "not printed", 5,
              "at 57 to 65% of the datasheet's 16-bit rate these may be in 8 bits; the model's 16 are not to be assumed"),
         Mend("nvidia_nemo_long_sequence", {"tp": ""}, "precision", ".*", "not printed", 5, "nor is the cut, and no GPU holds such a sequence by itself"),
         Mend("nvidia_nemo_long_sequence", {"tp": "4", "cp": "8", "gpus": "512"}, "precision", ".*", "not printed", 1,
              "a cut that has 16 replicas for 8 sequences: misprinted"),
         *[Mend("torchtitan", {"schedule": schedule}, "mbs", f"local {local}", mbs, rows, why)
           for schedule, local, mbs, rows, why in (
               ("1F1B", 8, "1", 3, "the batch of a replica; there are as many microbatches as stages, 8 (pipeline_parallel_microbatches)"),
               ("1F1B", 32, "4", 1, "likewise"), ("Interleaved 1F1B", 32, "", 1, "the batch of a replica; nor are chunks printed"))]]


def mended(name, rows):
    """The rows with what MENDS says of the file; how often each mend fitted is checked."""
    for mend in [mend for mend in MENDS if mend.file == name]:
        fitting = [row for row in rows if mend.fits(row)]
        if len(fitting) != mend.rows:
            raise SystemExit(f"{name}.csv: {len(fitting)} rows to mend in '{mend.column}'; expected {mend.rows}")
        for row in fitting:
            row[mend.column] = mend.becomes
            row["mended"] = mend.column
    return rows


def with_unit(row):
    """Megatron-Bridge prints torch's max_memory_allocated / 1e9 with five digits (megatron/bridge/training/utils/train_utils.py,
    report_memory): decimal GB, in a column that calls them GiB. torchtitan prints GiB."""
    is_decimal = re.search(r"memory (printed as|in) GB", row["other_metric"]) is not None
    return {**row, "memory_gib": "" if is_decimal else row["memory_gib"],
            "memory_allocated_gb": row["memory_gib"] if is_decimal else ""}


def read(root, name):
    recipes = conditions.read(root.parent / SHARED)
    with open(root.parent / SHARED / f"{name}.csv", newline="") as file:
        rows = mended(name, [{**with_unit(row), "mended": "", "program": program(row["framework"])} for row in csv.DictReader(file)])
    return [{**row, **conditions.of_row(row, recipes)} for row in rows]


def is_at_hand(root):
    return all((root.parent / SHARED / f"{name}.csv").exists() for name in FILES)


# ---- asking ----

def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def score(pipecast, path, *options):
    """What the command prints. Status 1 says that some measured run is called infeasible, which is a result."""
    done = subprocess.run([pipecast, "score", str(path), "-q", *options], capture_output=True, text=True)
    if done.returncode > 1 or done.stderr:
        raise SystemExit(f"{path.name}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def ask(pipecast, root, names=tuple(FILES), options=()):
    """{file: what score says of it}. A row's line is that of its table, for every row is one line there."""
    with tempfile.TemporaryDirectory() as folder:
        said = {}
        for name in names:
            path = pathlib.Path(folder, f"{name}.csv")
            write(path, read(root, name))
            said[name] = json.loads(score(pipecast, path, "--format", "json", *options))
        return said


# ---- what a row is ----

def is_asked(row):
    return row["status"] != "not_asked"


def is_compared(row):
    return row["error"] is not None


def is_inside(row):
    """Its interval of 80%, which may be learned from this very row, has the measured time."""
    return row["forecast_s_low"] <= row["measured_s"] <= row["forecast_s_high"]


def is_refused(row):
    """It ran, and is called out of memory or infeasible."""
    return row["status"] in ("out_of_memory", "infeasible")


def program(framework):
    """The family of a program's name: MLPerf's submitters name PyTorch's or NeMo's container."""
    for family in ("Megatron-Bridge", "AutoModel", "NeMo", "MaxText", "llm-foundry", "InternEvo", "torchtitan", "nanotron"):
        if family.lower() in framework.lower():
            return family
    return "others, of MLPerf"


def gpu(row):
    name = re.search(r"\b(GB\d+|[BH]\d+|A\d00|MI\d+X)", row["system"].upper().replace("_", " ").replace("-", " "))[1]
    return f"A100 {'40' if '40' in row['system'] else '80'} GB" if name == "A100" else name


SCALES = {"to 8 GPUs": (1, 8), "9 to 64": (9, 64), "65 to 512": (65, 512), "513 and more": (513, 1 << 30)}


def scale(row):
    return next(name for name, (least, most) in SCALES.items() if least <= int(row["gpus"]) <= most)


def number(row, column):
    return int(row[column]) if row[column].isdigit() else 1


def shards(row):
    return "fsdp" in row["zero"] or row["zero"].startswith("3") or number(row, "fsdp_shard") > 1
