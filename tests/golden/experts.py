"""What measured runs of mixtures of experts did that their rows do not say: columns of settings, from the recipes of the programs.

Megatron-Bridge's are scripts/performance/configs/*/*_workload_base_configs.py of its releases. Names of recipes say a model, a
GPU and a precision. They changed between releases: what a row of a release prints of its cut says which one it was.
"""
import re

COLUMNS = ("setting.model.layout", "setting.model.mtp_num_layers", "setting.model.moe_expert_capacity_factor",
           "setting.model.moe_pad_expert_input_to_capacity")

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


def drops(row):
    """Tokens that are dropped: Megatron-LM's moe_expert_capacity_factor 1.0 and moe_pad_expert_input_to_capacity."""
    if "tokendrop" not in row["variant"]:
        return {}
    return {"setting.model.moe_expert_capacity_factor": "1", "setting.model.moe_pad_expert_input_to_capacity": "true"}


def of_row(row):
    return {**parts_of(row), **predicts_more(row), **drops(row)}
