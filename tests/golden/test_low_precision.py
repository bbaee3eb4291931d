"""The speed-ups of low precision that the scoreboard compares (low_precision.py), and what runs did beside what their
rows say (conditions.py), on rows that are made up.

usage: test_low_precision.py
"""
import re
import sys
import unittest

sys.dont_write_bytecode = True
import conditions  # noqa: E402
import experts  # noqa: E402
import low_precision  # noqa: E402


def made_up(**cells):
    """A row of NeMo that took 10 s and is forecast at 10 s."""
    return {"file": "f", "release": "v1", "task": "Pre-Training", "framework": "NeMo", "program": "NeMo", "model": "llama3 8b", "system": "H100", "precision": "BF16",
            "gpus": "8", "gbs": "64", "mbs": "1", "seq": "8192", "fsdp_shard": "", "tp": "1", "pp": "1", "cp": "", "vp": "", "ep": "",
            "zero": "", "recompute": "", "schedule": "", "variant": "", "measured_s": 10.0, "forecast_s": 10.0, **cells}


class SpeedUps(unittest.TestCase):
    def test_which_precisions_are_low(self):
        self.assertFalse(any(low_precision.is_low(made_up(precision=word)) for word in ("", "BF16", "amp_bf16", "fp16", "bfloat16")))
        self.assertTrue(all(low_precision.is_low(made_up(precision=word)) for word in ("FP8", "FP8-CS", "amp_fp8", "MXFP8", "NVFP4", "FP8 rowwise")))

    def test_a_pair_differs_in_precision_alone(self):
        wide, low = made_up(model="Llama3 8b 24.11 BF16"), made_up(model="Llama3 8b 24.11 FP8", precision="FP8")
        self.assertEqual(low_precision.pairs([wide, low]), [(wide, low)])
        for column in low_precision.SAME:
            self.assertEqual(low_precision.pairs([wide, {**low, column: "other"}]), [], column)
        self.assertEqual(low_precision.pairs([wide, wide]), [])
        self.assertEqual(low_precision.pairs([low, low]), [])

    def test_float8_in_the_variant_is_no_difference(self):
        wide, low = made_up(variant="FSDP+compile"), made_up(variant="FSDP+compile+float8", precision="FP8 tensorwise")
        self.assertEqual(len(low_precision.pairs([wide, low])), 1)
        self.assertEqual(len(low_precision.pairs([{**wide, "variant": "FSDP"}, low])), 0)

    def test_a_miss_is_of_the_ratio(self):
        """Measured 10 / 8 = 1.25, forecast 12 / 9 = 1.333: 8.3 points too much, though both times are too long."""
        pair = made_up(forecast_s=12.0), made_up(precision="FP8", measured_s=8.0, forecast_s=9.0)
        self.assertAlmostEqual(low_precision.miss(pair), 12 / 9 - 10 / 8)
        near = made_up(), made_up(precision="FP8", measured_s=8.0, forecast_s=8.2)
        self.assertEqual(low_precision.share_within([pair, near]), 0.5)

    def test_a_table_has_a_line_for_each_precision(self):
        rows = [made_up(), made_up(precision="FP8", measured_s=8.0, forecast_s=8.2), made_up(precision="MXFP8", measured_s=9.0, forecast_s=8.0)]
        lines = low_precision.pair_table(rows, lambda row: row["system"])[2:]
        self.assertEqual(lines, ["| NeMo | H100 | FP8 | 1 | 1.25 | 1.22 | 3.0% | -3.0% | 1 of 1 |",
                                 "| NeMo | H100 | MXFP8 | 1 | 1.11 | 1.25 | 13.9% | +13.9% | 0 of 1 |"])


RECIPE = {"task": "pretrain", "model": "llama3_70b", "system": "gb200", "precision": "fp8cs", "tensor_model_parallel_size": "1",
          "pipeline_model_parallel_size": "1", "context_parallel_size": "1", "micro_batch_size": "2", "cuda_graph_impl": "",
          "cuda_graph_scope": "", "cpu_offloading": "True"}


class Conditions(unittest.TestCase):
    def row(self, **cells):
        return made_up(framework="Megatron-Bridge", model="LLAMA3_70B", system="DGX-GB200", precision="FP8-CS", mbs="2", source="s", **cells)

    def test_a_row_has_its_recipe(self):
        recipes = {conditions.key_of_recipe(RECIPE): conditions.settings_of(RECIPE)}
        self.assertEqual(conditions.of_row(self.row(), recipes),
                         {**dict.fromkeys(conditions.COLUMNS, ""), "setting.activation_offload_layers": "40"})
        for other in ({"precision": "FP8-MX"}, {"pp": "2"}, {"mbs": "1"}, {"system": "DGX-B200"}, {"framework": "NeMo"}):
            self.assertEqual(set(conditions.of_row({**self.row(), **other}, recipes).values()), {""}, other)

    def test_a_mixture_has_its_layout(self):
        """Layers of DeepSeek-V3's parts by its recipe's table, or as the row has them; a row without MTP has none."""
        deepseek = {**self.row(), "model": "DeepSeekV3", "pp": "8", "vp": "2", "variant": "w/o MTP"}
        found = conditions.of_row(deepseek, {})
        self.assertEqual(found["setting.model.layout"], "Et*4|(t*4|)*14tL")
        self.assertEqual(found["setting.model.mtp_num_layers"], "0")
        said = conditions.of_row({**deepseek, "variant": "layout=Et*3|(tt|)*29mL hybridep"}, {})
        self.assertEqual(said["setting.model.layout"], "Et*3|(tt|)*29L")
        self.assertEqual(said["setting.model.mtp_num_layers"], "")
        self.assertEqual(conditions.of_row({**deepseek, "pp": "1"}, {})["setting.model.layout"], "")
        dropped = conditions.of_row({**deepseek, "variant": "tokendrop"}, {})
        self.assertEqual(dropped["setting.model.moe_expert_capacity_factor"], "1")

    def test_every_layout_has_all_layers(self):
        for (stages, chunks), layout in experts.LAYOUTS.items():
            plain = re.sub(r"\(([^)]*)\)\*(\d+)", lambda at: at[1] * int(at[2]), re.sub(r"t\*(\d+)", lambda at: "t" * int(at[1]), layout))
            self.assertEqual((plain.count("t"), plain.count("|") + 1), (61, stages * chunks), layout)

    def test_what_a_recipe_says(self):
        graphs = {**RECIPE, "cpu_offloading": "", "cuda_graph_impl": "local", "cuda_graph_scope": "['full_iteration']"}
        self.assertEqual(conditions.settings_of(graphs), {"setting.cuda_graph_impl": "full_iteration"})
        self.assertEqual(conditions.settings_of({**graphs, "cuda_graph_scope": "['mlp']"}), {})
        self.assertEqual(conditions.settings_of({**graphs, "cuda_graph_impl": "none"}), {})

    def test_fine_tuning_has_recipes_of_its_own(self):
        """Its GPU may be written with its memory, and one rank of context parallelism not at all."""
        sft = {**RECIPE, "task": "sft", "system": "h100", "context_parallel_size": "", "cpu_offloading": "",
               "cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "['attn', 'mlp']"}
        recipes = {conditions.key_of_recipe(sft): conditions.settings_of(sft)}
        row = self.row(task="SFT", gpus="64", cp="1")
        found = conditions.of_row({**row, "system": "H100 80GB"}, recipes)
        self.assertEqual((found["setting.cuda_graph_impl"], found["setting.cuda_graph_scope"]), ("transformer_engine", "attn,mlp"))
        for other in ({"task": "Pre-Training"}, {"system": "H200"}):
            found = conditions.of_row({**row, "system": "H100 80GB", **other}, recipes)
            self.assertEqual(found["setting.cuda_graph_impl"], "", other)

    def test_of_what_is_offloaded_the_number_must_be_known(self):
        self.assertTrue(conditions.is_known(RECIPE))
        self.assertFalse(conditions.is_known({**RECIPE, "model": "llama31_405b"}))
        self.assertTrue(conditions.is_known({**RECIPE, "model": "llama31_405b", "cpu_offloading": ""}))

    def test_names(self):
        self.assertEqual(conditions.key_of_row(self.row()), conditions.key_of_recipe(RECIPE))
        self.assertEqual(conditions.model_of("LLAMA3.1_405B"), "llama31_405b")

    def test_tensor_parallelism_in_pieces_is_of_a_node(self):
        def cell(**cells):
            return conditions.of_row(self.row(**cells), {})["setting.overlap.tp_pieces"]
        self.assertEqual([cell(tp="1"), cell(tp="4"), cell(tp="8")], ["", "true", ""])
        self.assertEqual(conditions.of_row({**self.row(tp="8"), "system": "DGX-H100"}, {})["setting.overlap.tp_pieces"], "true")
        for other in ({"precision": "BF16"}, {"precision": "NVFP4"}, {"framework": "torchtitan"}):
            self.assertEqual(conditions.of_row({**self.row(tp="4"), **other}, {})["setting.overlap.tp_pieces"], "", other)

    def test_what_mlperf_and_fine_tuning_do(self):
        def of(**cells):
            return {key: cell for key, cell in conditions.of_row({**self.row(), **cells}, {}).items() if cell}
        mlperf = {"framework": "NVIDIA NeMo Framework Release 25.01", "model": "llama31_405b", "system": "NVIDIA H100-SXM5-80GB 256x8", "tp": "8", "precision": "FP8"}
        self.assertEqual(of(**mlperf), {"setting.overlap.tp_pieces": "true"})
        self.assertEqual(of(**mlperf, variant="config_a_cg.sh"), {"setting.overlap.tp_pieces": "true", "setting.cuda_graph_impl": "full_iteration"})
        self.assertEqual(of(model="llama2_70b_lora", cp="8", framework="PyTorch", task="LoRA"), {"setting.cp_comm_type": "a2a"})
        for task, length in {"LoRA": "200", "SFT": "200", "Pre-Training": ""}.items():
            self.assertEqual(of(task=task).get("setting.model.document_length", ""), length)

    def test_what_automodels_benchmarks_do(self):
        def of(**cells):
            row = {**self.row(), "framework": "NeMo AutoModel", "precision": "BF16", "variant": "TE + fsdp2_prefetch", **cells}
            return {key: cell for key, cell in conditions.of_row(row, {}).items() if cell}
        self.assertEqual(of(model="Llama3 70B", task="Pre-Training"), {"setting.recompute": "full"})
        self.assertEqual(of(model="Llama3 70B 2-node", task="LoRA"), {"setting.sequence_parallel": "true", "setting.overlap.tp_pieces": "true"})
        self.assertEqual(of(model="Qwen2.5 32B", task="LoRA"), {})
        self.assertEqual(of(model="Llama3 70B", task="LoRA", variant=""), {})
        self.assertEqual(of(framework="torchtitan", cp="8", variant="")["setting.cp_comm_type"], "all_gather")

    def test_torchtitan_compiles_its_loss_since_2025(self):
        found = [conditions.of_row({**made_up(), "source": source}, {})["setting.cross_entropy"]
                 for source in ("torchtitan benchmarks/llama3_h100_202412_torchtitan.md", "torchtitan benchmarks/llama3-8b_h200_202506_x.md")]
        self.assertEqual(found, ["", "compiled"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
