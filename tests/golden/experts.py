"""What measured runs of mixtures of experts did that their rows do not say: columns of settings, from the recipes of the programs.

Megatron-Bridge's are scripts/performance/configs/*/*_workload_base_configs.py of its releases. Names of recipes say a model, a
GPU and a precision. They changed between releases: what a row of a release prints of its cut says which one it was.
"""
import re

COLUMNS = ("setting.moe_token_dispatcher_type", "setting.moe_flex_dispatcher_backend", "setting.moe_hybridep_num_sms",
           "setting.fp8_dot_product_attention", "setting.use_transformer_engine_op_fuser", "setting.model.layout", "setting.model.mtp_num_layers",
           "setting.model.attention", "setting.model.moe_expert_capacity_factor", "setting.model.moe_pad_expert_input_to_capacity",
           "setting.schedule", "setting.overlap.moe_expert_parallel_comm", "setting.overlap.delay_wgrad_compute",
           "setting.main_grads_dtype", "setting.exp_avg_dtype", "setting.exp_avg_sq_dtype", "setting.moe_load",
           "setting.moe_shared_expert_overlap", "setting.lora.rank", "setting.lora.targets")

# Layers of DeepSeek-V3's and Kimi K2's parts by (pp, vp): set_deepseek_v3_pipeline_model_parallel_layout of
# megatron/bridge/recipes/deepseek/deepseek_v3.py, and pp_layout of the H100 recipe. MTP and loss stand in the last part.
SIXTEEN = "Et*4|(t*4|)*14tL"
LAYOUTS = {(4, 1): "Et*16|(t*16|)*2t*13L", (8, 1): "Et*8|(t*8|)*6t*5L", (4, 2): "Et*8|(t*8|)*6t*5L",
           (2, 4): "Et*8|(t*8|)*6t*5L", (16, 1): SIXTEEN, (8, 2): SIXTEEN, (4, 4): SIXTEEN, (2, 8): SIXTEEN, (8, 4): "Et|(tt|)*30L"}


def number(cell):
    return int(cell) if cell.isdigit() else 1


def is_like_deepseek(row):
    return re.match("deepseek.?v3|kimi", row["model"].lower()) is not None


def layout_of(row):
    """Of MLPerf's the row says it; `m`, multi-token prediction, is the last part's in any case."""
    said = re.search(r"layout=(\S+)", row["variant"])
    if said:
        return said[1].replace("m", "")
    if row["framework"] == "NeMo AutoModel":  # generate_hf_model_fqn_per_model_part: what is left over goes to the first parts
        return "Ett|(tt|)*28(t|)*2tL"
    return LAYOUTS.get((number(row["pp"]), number(row["vp"])), "")


def parts_of(row):
    return {"setting.model.layout": layout_of(row)} if is_like_deepseek(row) and number(row["pp"]) > 1 else {}


def predicts_more(row):
    """w/o MTP: 25.11's rows say so, and their FLOPs a token are 4% fewer."""
    return {"setting.model.mtp_num_layers": "0"} if "w/o MTP" in row["variant"] else {}


# Megatron-LM's moe_expert_capacity_factor 1.0 and moe_pad_expert_input_to_capacity.
DROPPED = {"setting.model.moe_expert_capacity_factor": "1", "setting.model.moe_pad_expert_input_to_capacity": "true"}


def drops(row):
    """Tokens that are dropped."""
    return DROPPED if "tokendrop" in row["variant"] else {}


def is_bridge(row):
    return row["framework"] == "Megatron-Bridge" and row["task"] in ("Pre-Training", "pretrain_performance")


def gpu_of(row):
    return re.search(r"[A-Z]*[0-9]{3}", row["system"].upper())[0]


def without_fused_attention(row):
    """dgxc-benchmarking's DeepSeek-V3 of 25.05, on GB200. Its launch.sh has nemo:25.04.01, and recompute_modules core_attn (on H100 mla_up_proj).
    Transformer Engine has attention with heads of 192 and 128 numbers fused backward on Blackwell since 2.5 with cuDNN 9.11 (its pull request 1797;
    nemo:25.09 is the first with both), and never by flash-attn (its issue 2285): what is left is UnfusedDotProductAttention, with scores in memory.
    NeMo's pretrain_deepseek_v3.py of r2.3.0 has MegatronTokenDropCallback."""
    if not (row["framework"] == "NeMo" and row["release"] == "v25.05" and family_of(row) == "deepseek"):
        return {}
    return {"setting.model.attention": "materialised", "setting.recompute": "selective:core_attn", **DROPPED}


def is_mx(row):
    return re.sub("[^a-z0-9]", "", row["precision"].lower()) in ("mxfp8", "fp8mx")


def release_of(row):
    """(26, 6) of "NeMo 26.06.01", and of a verification card's date."""
    found = re.match(r"(?:NeMo |20)(\d\d)[.-](\d\d)", row["release"])
    return (int(found[1]), int(found[2])) if found else (0, 0)


# Modules that run again, (model, GPU, precision or "") as recipes have them.
RECOMPUTED = {("deepseek", "H100"): "mla_up_proj+mlp", ("deepseek", "GB300"): "moe_act", ("deepseek", ""): "mla_up_proj",
              ("kimi", ""): "mla_up_proj", ("gptoss", "H100"): "layernorm+moe_act", ("gptoss", "GB200"): "layernorm+moe_act",
              ("gptoss", "B200"): "layernorm+moe_act"}


def family_of(row):
    name = re.sub("[^a-z0-9]", "", row["model"].lower())
    return next((family for family in ("deepseek", "kimi", "gptoss", "qwen3235b", "qwen330b", "moonlight") if name.startswith(family)), name)


def recomputes(row):
    """Recipes in MXFP8 on GB300 have no recompute_modules since 26.06; B200's second one, of 8 stages, has the MLP's beside."""
    family, gpu = family_of(row), gpu_of(row)
    modules = RECOMPUTED.get((family, gpu), RECOMPUTED.get((family, ""), ""))
    if family == "gptoss" and is_mx(row):
        modules = ""
    if (family, gpu, row["pp"]) == ("deepseek", "B200", "8"):
        modules = "mla_up_proj+mlp"
    return {"setting.recompute": f"selective:{modules}"} if modules and not row["recompute"] else {}


def dispatches(row):
    """25.09's DeepSeek-V3 on H100 has enable_deepep, B200's of 8 stages moe_flex_dispatcher_backend deepep.
    GPT-OSS in bf16 and Qwen3 235B on GPUs outside of racks have moe_token_dispatcher_type alltoall, but GPT-OSS on B300.
    So has Moonlight, where its verification cards do not name another."""
    family, gpu = family_of(row), gpu_of(row)
    if (family, gpu, release_of(row)) == ("deepseek", "H100", (25, 9)) or (family, gpu, row["pp"]) == ("deepseek", "B200", "8"):
        return {"setting.moe_token_dispatcher_type": "flex", "setting.moe_flex_dispatcher_backend": "deepep"}
    plain_gptoss = family == "gptoss" and not is_mx(row) and gpu != "B300"
    plain_moonlight = family == "moonlight" and "dispatcher=" not in row["variant"]
    plain_qwen = family == "qwen3235b" and not gpu.startswith("GB")
    return {"setting.moe_token_dispatcher_type": "alltoall"} if plain_gptoss or plain_qwen or plain_moonlight else {}


def takes(row):
    """HybridEP, which score takes of rows that name no other dispatcher, has 32 processors since 25.11: _set_common_perf_overrides of
    scripts/performance/utils/overrides.py, and _benchmark_common of later recipes."""
    is_other = dispatches(row) or "dispatcher=deepep" in row["variant"]
    return {} if is_other or release_of(row) < (25, 11) else {"setting.moe_hybridep_num_sms": "32"}


def is_mlperf(row):
    """Its configurations are named ..._full_cg.sh."""
    return "MLPerf" in row["release"] and "full_cg" in row["variant"]


def captures(row):
    """MLPerf's of v6.0, and from 26.06 on recipes in MXFP8 capture the whole iteration, with grouped products in one kernel and attention in 8 bits
    (_enable_deepseek_full_iteration_mxfp8, _apply_gpt_oss_120b_full_iter_fp8mx_configs): cutedsl_fused_grouped_mlp."""
    if not is_mx(row) or (release_of(row) < (26, 6) and not is_mlperf(row)):
        return {}
    found = {"setting.cuda_graph_impl": "full_iteration", "setting.use_transformer_engine_op_fuser": "true"}
    eight = gpu_of(row) in ("GB300", "B300") and family_of(row) != "gptoss"  # whose windows in 8 bits cannot be asked
    return {**found, "setting.fp8_dot_product_attention": "true"} if eight else found


ATTENTION_TOO, ROUTER_ALONE = "attn,moe_router,moe_preprocess", "moe_router,moe_preprocess"


def scope_of(row):
    """cuda_graph_scope of recipes that capture modules, "" of those that capture none. DeepSeek-V3 of 25.11 has it in 16 bits alone."""
    family, gpu = family_of(row), gpu_of(row)
    in_rack = gpu.startswith("GB")
    if family == "deepseek" and in_rack and release_of(row) < (26, 2):
        return "" if is_mx(row) else "attn"
    if family == "deepseek":
        return ATTENTION_TOO if in_rack or (gpu, row["pp"]) == ("B200", "8") else ""
    if family == "qwen330b":
        return {"B200": ATTENTION_TOO, "GB200": ATTENTION_TOO, "B300": ROUTER_ALONE, "GB300": ROUTER_ALONE}.get(gpu, "")
    return ATTENTION_TOO if (family == "qwen3235b" and in_rack) or (family, gpu) == ("gptoss", "B300") else ""


def captures_modules(row):
    """What is captured of a layer where no iteration is: the rest takes the host its Python. With tokens dropped GB200's Qwen3 235B of 25.09
    captures iterations (set_cuda_graph_overrides of qwen3_235b_a22b_llm_pretrain.py)."""
    if (family_of(row), gpu_of(row)) == ("qwen3235b", "GB200") and "tokendrop" in row["variant"]:
        return {"setting.cuda_graph_impl": "full_iteration"}
    scope = scope_of(row)
    return {"setting.cuda_graph_impl": "transformer_engine", "setting.cuda_graph_scope": scope} if scope else {}


def can_overlap(row):
    """Megatron-LM's rule: one stage, or several of several chunks."""
    return number(row["pp"]) == 1 or number(row["vp"]) > 1


def hides_exchanges(row):
    """moe_a2a_overlap of DeepSeek-V3's on H100 (with DeepEP) and B200 (of 8 stages), of Qwen3 235B's on H100 since 25.11 (its V1) and on B200 in 25.11
    alone (qwen3/workload_base_configs.py; pull request 1760 took it out), and of GPT-OSS 120B's in 16 bits on GB200. Since 26.06 recipes of DeepSeek-V3, Qwen3 and GPT-OSS in MXFP8 (_enable_deepseek_full_iteration_mxfp8,
    _enable_hybridep_full_iteration_mxfp8, _apply_gpt_oss_120b_full_iter_fp8mx_configs)."""
    family, gpu = family_of(row), gpu_of(row)
    if (family, gpu) == ("deepseek", "H100") or ((family, gpu) == ("qwen3235b", "H100") and release_of(row) >= (25, 11)):
        return True
    if (family, gpu, row["pp"]) == ("deepseek", "B200", "8") or (family, gpu, release_of(row)) == ("qwen3235b", "B200", (25, 11)):
        return True
    if (family, gpu) == ("gptoss", "GB200") and not is_mx(row):
        return row["gbs"] == "1280"
    return family in ("deepseek", "qwen3235b", "qwen330b", "gptoss") and is_mx(row) and release_of(row) >= (26, 6)


def overlaps(row):
    """The option of Megatron-Bridge sets both arguments of Megatron-LM (CommOverlapConfig)."""
    return hidden() if hides_exchanges(row) and can_overlap(row) else {}


def hidden():
    return {"setting.schedule": "1f1b-interleaved-overlap", "setting.overlap.moe_expert_parallel_comm": "true", "setting.overlap.delay_wgrad_compute": "true"}


def is_moonlight_peft(row):
    return family_of(row) == "moonlight" and row["task"] == "peft"


def adapts(row):
    """moonlight_16b_peft_4gpu_h100_bf16_config (megatron/bridge/recipes/moonlight/h100/moonlight_16b.py): default_peft_config with dim 8 and these
    targets; the dispatcher and overlap of the recipe for 2 GPUs, which it begins with. It packs SQuAD, as other recipes for fine-tuning do."""
    if not is_moonlight_peft(row):
        return {}
    return {"setting.lora.rank": "8", "setting.lora.targets": "linear_q_proj,linear_kv_down_proj,linear_kv_up_proj,linear_proj",
            "setting.moe_token_dispatcher_type": "alltoall", "setting.moe_shared_expert_overlap": "true", "setting.model.document_length": "200"}


def steps(row):
    """DeepSeek-V3's, Kimi K2's and Moonlight's recipes have use_precision_aware_optimizer, with gradients and both moments in bf16
    (megatron/bridge/recipes/deepseek/deepseek_v3.py, kimi, moonlight), but for Moonlight's PEFT. MLPerf's pretrain.py begins with the first."""
    is_of_recipe = row["framework"] == "Megatron-Bridge" or is_mlperf(row)
    if not is_of_recipe or family_of(row) not in ("deepseek", "kimi", "moonlight") or is_moonlight_peft(row):
        return {}
    return {f"setting.{name}_dtype": "bf16" for name in ("main_grads", "exp_avg", "exp_avg_sq")}


def spreads(row):
    """moe_router_force_load_balancing, which all recipes for speed have, is normal random logits in place of the router's, another seed a rank
    (megatron/core/transformer/moe/moe_utils.py, RandomSTE): tokens choose experts at random, not evenly. Moonlight's recipe does not force it."""
    return {} if family_of(row) == "moonlight" or "tokendrop" in row["variant"] else {"setting.moe_load": "uniform"}


def of_bridge(row):
    if not (is_bridge(row) and number(row["ep"]) > 1):
        return {}
    return {**recomputes(row), **dispatches(row), **takes(row), **(captures(row) or captures_modules(row)), **overlaps(row), **spreads(row)}


def of_mlperf(row):
    """Its config_*.sh: OVERLAP_MOE_EXPERT_PARALLEL_COMM, DELAY_WGRAD_COMPUTE, RECOMPUTE_MODULES=mlp on GB200; config_common_mxfp8.sh: FP8_DPA; and
    pretrain.py begins with Megatron-Bridge's recipe. Its router is not forced, on real text: how evenly tokens choose is not known."""
    if not (is_mlperf(row) and number(row["ep"]) > 1):
        return {}
    again = {"setting.recompute": "selective:mlp"} if gpu_of(row) == "GB200" and not row["recompute"] else {}
    return {**again, **captures(row), **hidden(), "setting.fp8_dot_product_attention": "true"}


def of_row(row):
    return {**adapts(row), **steps(row), **parts_of(row), **predicts_more(row), **drops(row), **without_fused_attention(row), **of_bridge(row), **of_mlperf(row)}
