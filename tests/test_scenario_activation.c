/* What the passes of a scenario's model keep in memory: part by part, recomputed, in two replicas. */
#include "tests/scenario_files.h"

#include <stdio.h>

/* Interleaved, 22 layers and the ends on 4 devices x 3 chunks: two a part, but one in part 0 (stage 0, chunk 0) and in
 * part 11 (stage 3, chunk 2). */
static void test_activation_of_ends(void **state) {
    (void)state;
    pc_scenario *scenario = load_text("scenario: x\n"
                                      "setting:\n"
                                      "  model: {layers: 22, hidden: 64, heads: 4, seq_len: 128, layout: ends}\n"
                                      "  schedule: 1f1b-interleaved\n"
                                      "  chunks: 3\n"
                                      "  devices: 4\n"
                                      "  microbatches: 8\n"
                                      "  microbatch_size: 2\n"
                                      "  times: {F: 1 ms, BW: 1 ms}\n");
    pc_run_spec spec = spec_of(scenario, 0);
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 3; c++) {
            int layers = (d == 0 && c == 0) || (d == 3 && c == 2) ? 1 : 2;
            assert_int_equal(spec.costs.activation_bytes[3 * d + c], layers * 1212416);
            assert_int_equal(spec.costs.activation_b_bytes[3 * d + c], layers * 688128);
        }
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* Without a layout: 12 layers on 4 devices are three each; 10, which do not divide, count embedding and head: 2, 3, 3
 * and 2. A layout that is given is kept to, and of a size nobody asks how many layers it is of. */
static void test_layout_without_a_word(void **state) {
    (void)state;
    static const struct {
        const char *model, *layout;
        int layers[4];
    } cases[] = {{"layers: 12", "even", {3, 3, 3, 3}},
                 {"layers: 10", "ends", {2, 3, 3, 2}},
                 {"layers: 10, layout: auto", "ends", {2, 3, 3, 2}},
                 {"layers: 14, layout: ends", "ends", {3, 4, 4, 3}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "scenario: x\nsetting: {schedule: 1f1b, devices: 4, microbatches: 8, microbatch_size: 2, "
                 "times: {F: 1 ms, BW: 2 ms}, model: {%s, hidden: 64, heads: 4, seq_len: 128}}\n",
                 cases[i].model);
        pc_scenario *scenario = load_text(text);
        pc_run_spec spec = spec_of(scenario, 0);
        pc_run_labels labels = labels_of(scenario, 0);
        assert_string_equal(labels.layout, cases[i].layout);
        for (int d = 0; d < 4; d++) assert_int_equal(spec.costs.activation_bytes[d], cases[i].layers[d] * 1212416);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
    pc_scenario *scenario =
        load_text("scenario: x\nsetting: {schedule: 1f1b, devices: 4, microbatches: 8, model: {layers: 11}, "
                  "times: {F: 1 ms, BW: 2 ms}, activation: {size: 100 B}}\n");
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    assert_string_equal(labels.layout, "");
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* A layer of s 128, h 64, a 4, b 2 takes 1212416 bytes and has an input of 2*128*2*64 = 32768; 6 layers on 2 stages. R
 * takes what F takes, or what is said. */
static void test_recomputation(void **state) {
    (void)state;
    static const struct {
        const char *activation;
        int64_t taken, kept;
    } cases[] = {{"{}", 3 * 1212416, 3 * 32768},
                 {"{keep: 0.25}", 3 * 1212416, 3 * 1212416 / 4},
                 {"{size: 3400 B}", 3400, 200}, /* 2/34 */
                 {"{size: 3400 B, keep: 1}", 3400, 3400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "scenario: x\n"
                 "setting:\n"
                 "  model: {layers: 6, hidden: 64, heads: 4, seq_len: 128}\n"
                 "  schedule: 1f1b-r\n"
                 "  devices: 2\n"
                 "  microbatches: 4\n"
                 "  microbatch_size: 2\n"
                 "  stages: [{F: 3 ms, BW: 5 ms}, {F: 3 ms, BW: 5 ms, R: 2 ms}]\n"
                 "  activation: %s\n",
                 cases[i].activation);
        pc_scenario *scenario = load_text(text);
        pc_run_spec spec = spec_of(scenario, 0);
        for (int d = 0; d < 2; d++) {
            assert_int_equal(spec.costs.activation_bytes[d], cases[i].taken);
            assert_int_equal(spec.costs.activation_kept_bytes[d], cases[i].kept);
            assert_int_equal(pc_costs_duration(&spec.costs, d, 0, PC_PASS_R), (d ? 2 : 3) * MS);
        }
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* Two replicas of 4 layers and the ends on 3 devices, two slots each, so that the first part and the last have 1 layer.
 * Chunk 0 of device d is stage d and chunk 1 stage 2-d of the model, each whole, with that stage's times. A number of
 * chunks that is given is not heard. */
static void test_replicas(void **state) {
    (void)state;
    pc_scenario *scenario = load_text("scenario: x\n"
                                      "setting:\n"
                                      "  model: {layers: 4, hidden: 64, heads: 4, seq_len: 128, layout: ends}\n"
                                      "  schedule: chimera\n"
                                      "  chunks: 4\n"
                                      "  devices: 3\n"
                                      "  microbatches: 6\n"
                                      "  microbatch_size: 2\n"
                                      "  stages: [{F: 1 ms, BW: 4 ms}, {F: 2 ms, BW: 5 ms}, {F: 3 ms, BW: 6 ms}]\n");
    pc_run_spec spec = spec_of(scenario, 0);
    assert_int_equal(spec.chunks, 2);
    for (int d = 0; d < 3; d++)
        for (int c = 0; c < 2; c++) {
            int stage = c ? 2 - d : d;
            assert_int_equal(pc_costs_duration(&spec.costs, d, c, PC_PASS_F), (stage + 1) * MS);
            assert_int_equal(pc_costs_duration(&spec.costs, d, c, PC_PASS_BW), (stage + 4) * MS);
            assert_int_equal(spec.costs.activation_bytes[2 * d + c], (stage == 1 ? 2 : 1) * 1212416);
            assert_int_equal(spec.costs.activation_b_bytes[2 * d + c], (stage == 1 ? 2 : 1) * 688128);
        }
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    scenario =
        load_text("scenario: x\nsetting: {schedule: gems, devices: 3, microbatches: 6, times: {F: 1 ms, BW: 3 ms}, "
                  "activation: {size: 101 B}}\n");
    spec = spec_of(scenario, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(spec.costs.activation_bytes[i], 101);
        assert_int_equal(spec.costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW], 3 * MS);
    }
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* Folded to a V, 14 layers and the ends on 4 devices x 2 chunks: two a part, but one in the first part and in the last,
 * which both lie on device 0. */
static void test_activation_of_a_fold(void **state) {
    (void)state;
    pc_scenario *scenario = load_text("scenario: x\n"
                                      "setting:\n"
                                      "  model: {layers: 14, hidden: 64, heads: 4, seq_len: 128, layout: ends}\n"
                                      "  schedule: v-half\n"
                                      "  devices: 4\n"
                                      "  microbatches: 8\n"
                                      "  microbatch_size: 2\n"
                                      "  times: {F: 1 ms, B: 1 ms, W: 1 ms}\n");
    pc_run_spec spec = spec_of(scenario, 0);
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 2; c++)
            assert_int_equal(spec.costs.activation_bytes[2 * d + c], (d == 0 ? 1 : 2) * 1212416);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activation_of_ends),
        cmocka_unit_test(test_layout_without_a_word),
        cmocka_unit_test(test_activation_of_a_fold),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_replicas),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
