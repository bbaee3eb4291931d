/* Vocabulary parallelism in an iteration: what cannot be with it; soft caps of logits in S and T; what stages exchange
 * where context ranks cut the sequence. */
#include "tests/iteration_example.h"

#include "models/schedule/generate.h"
#include "models/training/outline.h"
#include "models/workload/operation.h"

#include <string.h>

/* Of the vocabulary, padded to 51,200, a rank of a stage's two has these, of four stages. */
enum { COLUMNS = 51200 / 8 };

static pc_iteration_spec spec_of(const char *schedule) {
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find(schedule);
    spec.cut.chunks = spec.generator->chunks_default;
    spec.cut.cross_entropy = PC_CROSS_ENTROPY_FUSED;
    spec.model.vocab_multiple = 1024;
    return spec;
}

/* ---- what cannot be ---- */

static void check_runs(const pc_iteration_spec *spec) {
    pc_iteration x = run_spec(spec);
    pc_iteration_free(&x);
}

/* `words` go on behind the schedule's name. */
static void check_refused(const pc_iteration_spec *spec, const char *what, const char *words) {
    char expected[256];
    snprintf(expected, sizeof expected, "%s with %s%s", what, spec->generator->name, words);
    check_infeasible(spec, expected);
}

static void check_refusals(const char *schedule) {
    static const char trained[] = ", whose T is the gradient of both ends; expected another schedule";
    static const char copies[] = ", which has S and T; expected fine-grained, or another schedule";
    pc_iteration_spec spec = spec_of(schedule);
    check_runs(&spec);
    spec.cut.cross_entropy = PC_CROSS_ENTROPY_CHUNKED;
    check_refused(&spec, "cross_entropy chunked",
                  ", which keeps the logits from S to T; expected fused, or another schedule");
    spec = spec_of(schedule);
    spec.cut.zero = 3;
    check_refused(&spec, "zero 3",
                  ", whose stages keep their slices of the vocabulary; expected zero 0 to 2, or another schedule");
    spec.cut.dp = 1; /* where nobody shares, there is nothing to gather */
    check_runs(&spec);
    spec = spec_of(schedule);
    spec.cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_ALL};
    check_refused(&spec, "lora", trained);
    static const int32_t frozen[] = {PC_FROZEN_EMBEDDING, PC_FROZEN_HEAD, PC_FROZEN_EMBEDDING | PC_FROZEN_HEAD};
    for (int i = 0; i < 3; i++) {
        spec = spec_of(schedule);
        spec.model.is_tied = false; /* or both ends are one */
        spec.cut.frozen = frozen[i];
        check_refused(&spec, "frozen", trained);
    }
    static const int32_t kinds[] = {PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER};
    for (int i = 0; i < 3; i++) {
        spec = spec_of(schedule);
        spec.machine.host_link_bytes_per_s = 50e9;
        spec.machine.host_memory_bytes_per_s = 100e9;
        spec.cut.offload = (pc_offload){.kinds = kinds[i], .fraction = 1, .optimizer_fraction = 1};
        check_refused(&spec, "offload beside passes", copies);
    }
}

static void test_refusals(void **state) {
    (void)state;
    int count, checked = 0;
    const pc_generator *all = pc_generators(&count);
    for (int i = 0; i < count; i++) {
        if (all[i].barriers == PC_BARRIERS_NONE) continue;
        check_refusals(all[i].name);
        checked++;
    }
    assert_int_equal(checked, 4);
}

/* ---- soft caps ---- */

/* What kernels named so move in a pass, and their launches. */
static int64_t softcap_bytes(const pc_iteration_spec *spec, pc_pass_kind kind, int64_t *launches) {
    pc_outline outline;
    pc_operations operations;
    int64_t bytes = 0;
    *launches = 0;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    const pc_part *part = &pc_outline_part(&outline, 1, 0)->part;
    assert_int_equal(pc_pass_operations(&spec->model, &outline.cut, part, kind, false, &operations, NULL), PC_OK);
    for (int i = 0; i < operations.count; i++) {
        const pc_operation *x = &operations.list[i];
        if (strcmp(x->name, "logit_softcap") != 0) continue;
        bytes += x->bytes * x->repeat;
        *launches += x->launches * x->repeat;
    }
    pc_outline_free(&outline);
    return bytes;
}

/* Of a stage's 1,024 tokens and an eighth (tp 2, four stages) of the vocabulary: F reads and writes 2 bytes a logit,
 * the way back reads what F wrote besides. With two barriers S goes forward and T back; with one S has the input's
 * gradient, too, of the softmax before it is scaled, and T goes back again with that of all. */
static void test_soft_caps(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b-vocab-1", "1f1b-vocab-2"};
    for (int one = 0; one < 2; one++) {
        pc_iteration_spec spec = spec_of(schedules[one]);
        int64_t logits = 1024 * COLUMNS, s, t;
        assert_int_equal(softcap_bytes(&spec, PC_PASS_S, &s) + softcap_bytes(&spec, PC_PASS_T, &t), 0);
        spec.model.final_logit_softcapping = 30;
        assert_int_equal(softcap_bytes(&spec, PC_PASS_S, &s), logits * (one ? 4 + 6 : 4));
        assert_int_equal(softcap_bytes(&spec, PC_PASS_T, &t), logits * 6);
        assert_true(s == 1 + one && t == 1);
        int64_t eager_s, eager_t;
        spec.cut.kernels = PC_KERNELS_EAGER; /* division, tanh and product apart */
        assert_int_equal(softcap_bytes(&spec, PC_PASS_S, &eager_s), logits * (one ? 4 + 6 + 16 : 4 + 8));
        assert_int_equal(softcap_bytes(&spec, PC_PASS_T, &eager_t), logits * (6 + 8));
        assert_true(eager_s == 3 * s && eager_t == 3 * t);
        spec.cut.cross_entropy = PC_CROSS_ENTROPY_COMPILED; /* in whose kernels it is */
        assert_int_equal(softcap_bytes(&spec, PC_PASS_S, &s) + softcap_bytes(&spec, PC_PASS_T, &t), 0);
    }
}

/* ---- exchanges ---- */

static pc_vocab_costs vocab_of(const pc_iteration_spec *spec) {
    pc_outline outline;
    pc_error error = {0};
    if (pc_outline_make(spec, NULL, &outline, &error)) fail_msg("%s", error.message);
    pc_vocab_costs costs = outline.vocab;
    pc_outline_free(&outline);
    return costs;
}

/* Stages of c context ranks exchange what those of a c-th of the sequence do: input, three numbers a token and
 * gradient, and hold as much. With one barrier the gradient goes with the numbers. */
static void test_exchange_of_context_ranks(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b-vocab-1", "1f1b-vocab-2", "v-half-vocab-1", "v-half-vocab-2"};
    for (int i = 0; i < 4; i++)
        for (int cp = 2; cp <= 4; cp *= 2) {
            pc_iteration_spec whole = spec_of(schedules[i]), part, cut;
            whole.cut.dp = 2;
            assert_int_equal(pc_rank_order_parse("tp-pp-cp-dp", &whole.order, NULL), PC_OK);
            part = cut = whole;
            part.cut.seq_len /= cp;
            cut.cut.cp = cp;
            pc_vocab_costs x = vocab_of(&whole), y = vocab_of(&part), z = vocab_of(&cut);
            assert_true(z.broadcast_ps == y.broadcast_ps && y.broadcast_ps < x.broadcast_ps);
            assert_true(z.exchange_ps == y.exchange_ps && y.exchange_ps < x.exchange_ps);
            assert_true(z.reduce_ps == y.reduce_ps && (y.reduce_ps > 0) == (i % 2 == 0));
            assert_int_equal(z.held_bytes, y.held_bytes);
            assert_int_equal(x.held_bytes, cp * y.held_bytes);
        }
}

/* The input and its gradient are as long on their way as an all-gather and a reduce-scatter over the stages, the
 * numbers as three all-reduces. From S to T stands the input, the gradient of the logits in 16 bits in their place and,
 * with one barrier, the input's gradient. */
static void test_exchange(void **state) {
    (void)state;
    pc_iteration_spec two = spec_of("1f1b-vocab-1"), one = spec_of("1f1b-vocab-2");
    pc_vocab_costs x = vocab_of(&two), y = vocab_of(&one);
    pc_outline outline;
    assert_int_equal(pc_outline_make(&two, NULL, &outline, NULL), PC_OK);
    const double input = 2.0 * 1024 * 2048 / 2, numbers = 4.0 * 1024; /* sequence parallelism over tp 2 */
    double gather_s = pc_outline_alone(&two.machine, &outline.pp, PC_COLLECTIVE_ALL_GATHER, input).seconds;
    double numbers_s = 3 * pc_outline_alone(&two.machine, &outline.pp, PC_COLLECTIVE_ALL_REDUCE, numbers).seconds;
    double reduce_s = pc_outline_alone(&two.machine, &outline.pp, PC_COLLECTIVE_REDUCE_SCATTER, input).seconds;
    assert_float_equal((double)x.broadcast_ps, gather_s * 1e12, 2);
    assert_float_equal((double)x.exchange_ps, numbers_s * 1e12, 2);
    assert_float_equal((double)x.reduce_ps, reduce_s * 1e12, 2);
    assert_float_equal((double)y.exchange_ps, (numbers_s + reduce_s) * 1e12, 2);
    assert_true(y.broadcast_ps == x.broadcast_ps && y.reduce_ps == 0);
    int64_t logits = 2 * 1024 * COLUMNS;
    assert_int_equal(x.held_bytes, (int64_t)input + logits);
    assert_int_equal(y.held_bytes, 2 * (int64_t)input + logits);
    pc_outline_free(&outline);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_soft_caps),
        cmocka_unit_test(test_exchange_of_context_ranks),
        cmocka_unit_test(test_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
