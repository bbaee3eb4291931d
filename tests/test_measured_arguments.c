/* Megatron's arguments in tables of measured runs: what columns that belong together come to. */
#include "tests/support.h"

#include "scenarios/measured_arguments.h"

enum { COLUMNS = 10 };
static char columns[COLUMNS][40] = {"recompute_granularity",
                                    "recompute_method",
                                    "recompute_num_layers",
                                    "recompute_modules",
                                    "use_megatron_fsdp",
                                    "Data_Parallel_Sharding_Strategy",
                                    "offload_modules",
                                    "fine_grained_activation_offloading",
                                    "overlap_moe_expert_parallel_comm",
                                    "delay_wgrad_compute"};

/* Of a row whose cells stand in `line`, with bars between. */
static void check_row(const char *line, pc_measured_said said, const char *expected) {
    char cells[COLUMNS][80] = {""}, *column[COLUMNS], *cell[COLUMNS], found[PC_MEASURED_ARGUMENTS_SIZE];
    for (int i = 0; i < COLUMNS; i++) {
        size_t length = strcspn(line, "|");
        snprintf(cells[i], sizeof cells[i], "%.*s", (int)length, line);
        line += length + (line[length] == '|');
        column[i] = columns[i];
        cell[i] = cells[i];
    }
    const pc_measured m = {.column = column, .column_count = COLUMNS, .cell = cell, .row_count = 1};
    pc_measured_read_arguments(&m, 0, said, found);
    assert_string_equal(found, expected);
}

static const pc_measured_said nothing = {false, false};

/* Megatron-LM reads modules with `selective` alone, method and number with `full`. */
static void test_recomputation(void **state) {
    (void)state;
    check_row("", nothing, "");
    check_row("None|None|None|[]", nothing, "");
    check_row("selective", nothing, "recompute=selective");
    check_row("selective|None|None|[]", nothing, "recompute=selective");
    check_row("selective|None|None|None", nothing, "recompute=selective");
    check_row("selective|||['mlp'  'layernorm']", nothing, "recompute=selective:mlp+layernorm");
    check_row("selective|||mlp core_attn", nothing, "recompute=selective:mlp+core_attn");
    check_row("selective|||['moe_act']", nothing, "recompute=selective:moe_act"); /* which the scenario refuses */
    check_row("|||['mlp']", nothing, "");
    check_row("full", nothing, "recompute=full");
    check_row("full|uniform|1|['mlp']", nothing, "recompute=full");
    check_row("full|uniform|2", nothing, "recompute=full-uniform-2");
    check_row("full|block|1", nothing, "recompute=full-block-1");
    check_row("full|block|None", nothing, "recompute=full");
    check_row("full|block|5", (pc_measured_said){.recompute = true}, "");
}

/* Megatron-FSDP runs unit by unit where it shards parameters. */
static void test_sharding(void **state) {
    (void)state;
    check_row("||||True|no_shard", nothing, "zero=0");
    check_row("||||True|optim", nothing, "zero=1");
    check_row("||||True|optim_grads", nothing, "zero=2");
    check_row("||||True|optim_grads_params", nothing, "zero=3;fsdp_unit=layer;fsdp_version=megatron");
    check_row("||||True|optim_grads_params", (pc_measured_said){.zero = true}, "");
    check_row("||||True|", nothing, "");
    check_row("||||False|optim_grads_params", nothing, "");
}

static void test_offload(void **state) {
    (void)state;
    check_row("||||||['core_attn'  'attn_proj']|True", nothing,
              "offload=fine-grained;offload_modules=core_attn+attn_proj");
    check_row("||||||['core_attn']|False", nothing, "");
    check_row("||||||[]|True", nothing, "");
    check_row("selective|||['mlp']|True|optim|['core_attn']|True", nothing,
              "recompute=selective:mlp;zero=1;offload=fine-grained;offload_modules=core_attn");
}

/* Megatron-LM has a 1F1B of its own for it, which alone knows delayed products. */
static void test_overlap(void **state) {
    (void)state;
    check_row("||||||||True|False", nothing, "schedule=1f1b-interleaved-overlap;overlap.moe_expert_parallel_comm=true");
    check_row(
        "||||||||True|True", nothing,
        "schedule=1f1b-interleaved-overlap;overlap.moe_expert_parallel_comm=true;overlap.delay_wgrad_compute=true");
    check_row("||||||||False|True", nothing, "");
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < COLUMNS; i++) assert_true(pc_measured_is_argument(columns[i]));
    assert_false(pc_measured_is_argument("recompute"));
    assert_false(pc_measured_is_argument("cpu_offloading"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputation), cmocka_unit_test(test_sharding), cmocka_unit_test(test_offload),
        cmocka_unit_test(test_overlap),       cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
