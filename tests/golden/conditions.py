"""What measured runs did that their rows do not say: columns of settings ("setting.cuda_graph_impl"), from the recipes that
Megatron-Bridge publishes beside its figures, and from the source of the programs.

A recipe is a row of megatron_bridge_perf_recipes.csv; it is joined by model, GPU, precision and cut.
"""
import csv
import re
import typing

import experts

FILE = "megatron_bridge_perf_recipes"
COLUMNS = ("setting.cuda_graph_impl", "setting.cuda_graph_scope", "setting.activation_offload_layers", "setting.cross_entropy", "setting.overlap.tp_pieces",
           "setting.cp_comm_type", "setting.model.document_length", "setting.recompute", "setting.sequence_parallel", *experts.COLUMNS)

# Layers whose activations are on the host, where a recipe has cpu_offloading: (model, GPU, precision). Megatron-Bridge,
# scripts/performance/configs/llama/llama3_workload_base_configs.py: cpu_offloading_num_layers.
OFFLOADED = {("llama3_70b", "b200", "fp8cs"): 5, ("llama3_70b", "gb200", "bf16"): 20, ("llama3_70b", "gb200", "fp8cs"): 40,
             ("llama3_70b", "gb300", "bf16"): 30, ("llama3_70b", "gb300", "fp8cs"): 20}

# A cell of a precision, squeezed, as recipes name it; "FP8" of Megatron-Bridge is current scaling.
PRECISIONS = {"bf16": "bf16", "fp8": "fp8cs", "fp8cs": "fp8cs", "fp8mx": "fp8mx", "mxfp8": "fp8mx", "nvfp4": "nvfp4"}


class Key(typing.NamedTuple):
    """By which a row has its recipe."""
    task: str  # "pretrain" or "sft"
    model: str
    gpu: str
    precision: str
    cut: tuple  # tp, pp, cp, microbatch


def squeezed(text):
    return re.sub("[^a-z0-9]", "", text.lower())


def model_of(text):
    """"llama3_70b" of "LLAMA3_70B", "llama31_405b" of "LLAMA3.1_405B"."""
    return text.lower().replace(".", "")


def key_of_recipe(recipe):
    parts = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "micro_batch_size")
    tp, pp, cp, mbs = (recipe[part] for part in parts)
    return Key(recipe["task"], recipe["model"], recipe["system"], recipe["precision"], (tp, pp, cp or "1", mbs))


def key_of_row(row):
    gpu = re.sub("^dgx", "", squeezed(row["system"].split(" ")[0]))  # "H100 80GB", "DGX-GB200"
    parts = (row["tp"], row["pp"], row["cp"] or "1", row["mbs"])
    task = "sft" if row.get("task") == "SFT" else "pretrain"
    return Key(task, model_of(row["model"]), gpu, PRECISIONS.get(squeezed(row["precision"]), ""), parts)


def settings_of(recipe):
    """{column: cell}."""
    key, found = key_of_recipe(recipe), {}
    if recipe["cuda_graph_impl"] == "local" and "full_iteration" in recipe["cuda_graph_scope"]:
        found["setting.cuda_graph_impl"] = "full_iteration"
    if recipe["cuda_graph_impl"] == "transformer_engine" and recipe["task"] == "sft":
        found["setting.cuda_graph_impl"] = "transformer_engine"
        found["setting.cuda_graph_scope"] = ",".join(re.findall("[a-z_]+", recipe["cuda_graph_scope"]))
    if recipe["cpu_offloading"] == "True":
        found["setting.activation_offload_layers"] = str(OFFLOADED[key[1:4]])
    return found


def is_known(recipe):
    """What it offloads is known of those that are asked."""
    return recipe["cpu_offloading"] != "True" or key_of_recipe(recipe)[1:4] in OFFLOADED


def read(folder):
    """{key: settings} of the recipes; none where the table is not there."""
    path = folder / f"{FILE}.csv"
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        return {key_of_recipe(recipe): settings_of(recipe) for recipe in csv.DictReader(file)
                if recipe["task"] in ("pretrain", "sft") and is_known(recipe)}


def is_mlperf_405b(row):
    """NVIDIA's submissions, whose configurations stand beside the results (NVIDIA/benchmarks/llama31_405b)."""
    return "NVIDIA NeMo" in row["framework"] and row["model"] == "llama31_405b"


def overlaps_in_pieces(row):
    """NeMo and Megatron-Bridge turn tp_comm_overlap on where tp is over 1, but for NVFP4 (comm_overlap of their performance recipes).
    MLPerf's configurations of Llama 3.1 405B say TP_COMM_OVERLAP=True, of FP8.
    Its buffers are taken to be those of one node, of 4 GPUs in a rack. In 16 bits it is left out: H100's file is fitted to such
    runs without it, so that its rate of products has it in."""
    low = squeezed(row["precision"]) not in ("", "bf16") and "nvfp4" not in squeezed(row["precision"])
    node = 4 if re.search(r"GB\d00", row["system"]) else 8
    is_known_to = row["framework"] in ("NeMo", "Megatron-Bridge") or is_mlperf_405b(row)
    return low and is_known_to and row["tp"].isdigit() and 1 < int(row["tp"]) <= node


# SQuAD's examples have about 120 words of context and 15 of question and answer. Any length below 500 tokens gives the same
# forecasts within 2%: attention is nearly gone.
SQUAD_TOKENS = "200"


def packs_squad(row):
    """NeMo's and Megatron-Bridge's fine-tuning recipes pack SQuAD's examples, of which none sees another (NeMo,
    scripts/performance/llm/finetune_llama3_8b.py: performance_mode, SquadDataModule, packed_sequence_specs)."""
    return row["framework"] in ("NeMo", "Megatron-Bridge") and row["task"] in ("LoRA", "SFT")


def of_automodel(row):
    """Automodel, examples/llm_benchmark: custom_llama3_1_70b_pretrain_benchmark_8nodes.yaml has activation_checkpointing;
    custom_llama3_3_70b_instruct_peft_benchmark.yaml sequence_parallel and enable_async_tensor_parallel, Qwen's neither."""
    if "fsdp2_prefetch" not in row["variant"] or "Llama3 70B" not in row["model"]:
        return {}
    if row["task"] == "Pre-Training":
        return {"setting.recompute": "full"}
    return {"setting.sequence_parallel": "true", "setting.overlap.tp_pieces": "true"}


def of_row(row, recipes):
    """The cells of COLUMNS for a row. torchtitan compiles its loss since 2025 (torchtitan/components/loss.py)."""
    found = dict.fromkeys(COLUMNS, "")
    if row["framework"] == "Megatron-Bridge":
        found.update(recipes.get(key_of_row(row), {}))
    if "h200_202506" in row["source"]:
        found["setting.cross_entropy"] = "compiled"
    if overlaps_in_pieces(row):
        found["setting.overlap.tp_pieces"] = "true"
    if is_mlperf_405b(row) and "_cg" in row["variant"]:  # config_common_cg.sh: FULL_CUDA_GRAPH=True
        found["setting.cuda_graph_impl"] = "full_iteration"
    if "NVIDIA NeMo" in row["framework"] and row["model"] == "llama31_8b" and "GB" in row["system"]:  # config_GB*_8b.sh: config_common_cg.sh
        found["setting.cuda_graph_impl"] = "full_iteration"
    if row["framework"] == "torchtitan" and row["cp"].isdigit() and int(row["cp"]) > 1:  # context_parallel_rotate_method: allgather
        found["setting.cp_comm_type"] = "all_gather"
    if row["model"] == "llama2_70b_lora" and row["cp"].isdigit() and int(row["cp"]) > 1:  # conf/*_tuning_config.yaml: CP_COMM_TYPE
        found["setting.cp_comm_type"] = "a2a"
    if packs_squad(row):
        found["setting.model.document_length"] = SQUAD_TOKENS
    return {**found, **of_automodel(row), **experts.of_row(row)}
