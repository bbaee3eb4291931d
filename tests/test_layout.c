/* Layouts: what divides, what is said where nothing does, and lists as text, in both kinds and back. */
#include "tests/support.h"

#include "models/workload/layout.h"
#include "models/workload/layout_stages.h"

#include <ctype.h>

static int32_t layers[PC_PARTS_MAX];

static pc_layout_shape read_shape(const char *text) {
    pc_layout_shape shape = {.parts = -1};
    pc_error error = {0};
    if (pc_layout_parse(text, layers, &shape, &error)) fail_msg("%s", error.message);
    return shape;
}

static int parse(const char *text) {
    return read_shape(text).parts;
}

static void expect_layers(const char *text, const int32_t *expected, int count) {
    pc_layout_shape counted;
    assert_int_equal(parse(text), count);
    for (int i = 0; i < count; i++) assert_int_equal(layers[i], expected[i]);
    assert_int_equal(pc_layout_parse(text, NULL, &counted, NULL), PC_OK);
    assert_int_equal(counted.parts, count);
}

static void expect_predictions(const char *text, const int32_t *expected, pc_layout_shape of) {
    pc_layout_shape shape = read_shape(text);
    expect_layers(text, expected, of.parts);
    assert_int_equal(shape.mtp_layers, of.mtp_layers);
    assert_int_equal(shape.mtp_ahead, of.mtp_ahead);
}

/* "Et*3|(tt|)*29m|L" is DeepSeek-V3's: 61 layers, the 62nd in a part of its own in front of the loss. */
static void test_predictions(void **state) {
    (void)state;
    int32_t example[32] = {3};
    for (int i = 1; i < 30; i++) example[i] = 2;
    expect_predictions("Et*3|(tt|)*29m|L", example, (pc_layout_shape){32, 1, 1});
    expect_predictions("Et|tmL", (int32_t[]){1, 1}, (pc_layout_shape){2, 1, 0});
    expect_predictions("Et|tm,m*2|(|)*2L", (int32_t[]){1, 1, 0, 0, 0}, (pc_layout_shape){5, 3, 3});
    expect_predictions("Et|t(m)*2(mm)*1|L", (int32_t[]){1, 1, 0}, (pc_layout_shape){3, 4, 1});
    expect_predictions("Em*0t|tL", (int32_t[]){1, 1}, (pc_layout_shape){2, 0, 0});
    expect_predictions("12,12", (int32_t[]){12, 12}, (pc_layout_shape){2, 0, 0});
}

/* The examples of Megatron-LM's parser, without multi-token prediction: "Ettt|(tt|)*29,L" is 3 layers, 29 times 2, and
 * the loss alone. */
static void test_lists(void **state) {
    (void)state;
    int32_t example[31] = {3};
    for (int i = 1; i < 30; i++) example[i] = 2;
    expect_layers("Ettt|(tt|)*29,L", example, 31);
    expect_layers("15,16,16,15", (int32_t[]){15, 16, 16, 15}, 4);
    expect_layers(" 3 , 4,4 ,3", (int32_t[]){3, 4, 4, 3}, 4);
    expect_layers("24", (int32_t[]){24}, 1);
    expect_layers("Et*4|(t*4|)*2t*3L", (int32_t[]){4, 4, 4, 3}, 4);
    expect_layers("E|t*12|t*12|L", (int32_t[]){0, 12, 12, 0}, 4);
    expect_layers("Et,t|(|t)*2,tL", (int32_t[]){2, 0, 1, 2}, 4);
    expect_layers("Et|*3L", (int32_t[]){1, 0, 0, 0}, 4);
    expect_layers("Et*1,2|(t,t|)*1,0,L", (int32_t[]){12, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}, 12);
    expect_layers("(Et|)*1(t*3)*5|t*0(t|L)*0(tL)*1", (int32_t[]){1, 15, 1}, 3);
    expect_layers("EL", (int32_t[]){0}, 1);
}

static void expect_refused(const char *text, const char *message) {
    pc_layout_shape shape;
    pc_error error = {0};
    assert_int_equal(pc_layout_parse(text, layers, &shape, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refused(void **state) {
    (void)state;
    expect_refused("", ": at 1: no embedding; expected E at the start");
    expect_refused("3,,4", "3,,4: at 3: no number; expected one");
    expect_refused("3,4,", "3,4,: at 5: no number; expected one");
    expect_refused("3;4", "3;4: at 2: no list; expected numbers with commas between them");
    expect_refused("3,-4", "3,-4: at 3: no number; expected one");
    expect_refused("3,4294967296", "3,4294967296: at 3: too large a number; expected up to 2147483647");
    expect_refused("12,012", "12,012: at 4: begins with a zero; expected a number that does not");
    expect_refused("Et*04|tL", "Et*04|tL: at 4: begins with a zero; expected a number that does not");
    expect_refused("tt|tL", "tt|tL: at 1: no embedding; expected E at the start");
    expect_refused("Ett|t", "Ett|t: at 6: no loss; expected L at the end");
    expect_refused("Et|EtL", "Et|EtL: at 4: E here; expected E once, at the start, and L once, at the end");
    expect_refused("E*2tL", "E*2tL: at 1: E here; expected E once, at the start, and L once, at the end");
    expect_refused("EtL*2", "EtL*2: at 3: L here; expected E once, at the start, and L once, at the end");
    expect_refused("Et|tL|", "Et|tL|: at 6: behind the loss; expected L once, at the end");
    expect_refused("EtL(t)*2", "EtL(t)*2: at 5: behind the loss; expected L once, at the end");
    expect_refused("E(tL)*2", "E(tL)*2: at 3: behind the loss; expected L once, at the end");
    expect_refused("Et|xL", "Et|xL: at 4: 'x'; expected E, t, m, L, |, *, ( or )");
    expect_refused("Et| tL", "Et| tL: at 4: '?'; expected E, t, m, L, |, *, ( or )");
    expect_refused("Et|mtL", "Et|mtL: at 5: t behind m; expected L alone, or more m");
    expect_refused("Et|tm|mL", "Et|tm|mL: at 7: m in a second part; expected all m in one");
    expect_refused("Et(m|)*2L", "Et(m|)*2L: at 4: m in a second part; expected all m in one");
    expect_refused("Et|Lm", "Et|Lm: at 5: behind the loss; expected L once, at the end");
    expect_refused("mEtL", "mEtL: at 2: E here; expected E once, at the start, and L once, at the end");
    expect_refused("E(t|tL", "E(t|tL: at 2: '(' without ')'; expected a group such as (tt|)*4");
    expect_refused("Et|)*2L", "Et|)*2L: at 4: ')' without '('; expected a group such as (tt|)*4");
    expect_refused("E(t|)tL", "E(t|)tL: at 6: a group without a factor; expected one such as (tt|)*4");
    expect_refused("E()*2tL", "E()*2tL: at 2: an empty group; expected one such as (tt|)*4");
    expect_refused("E((t|)*2t|)*3L", "E((t|)*2t|)*3L: at 3: a group in a group; expected none, as in Megatron-LM");
    expect_refused("E*tL", "E*tL: at 3: no number; expected one");
    expect_refused("*2EtL", "*2EtL: at 1: '*' behind nothing; expected what to repeat before it");
    expect_refused("Et*2*3L", "Et*2*3L: at 5: a second factor; expected one");
    expect_refused("E(t|)*2*3L", "E(t|)*2*3L: at 8: a second factor; expected one");
}

/* Texts of a few bytes that would make gigabytes, and deep ones: refused at once. */
static void test_hostile(void **state) {
    (void)state;
    static char deep[4097];
    pc_layout_shape shape;
    expect_refused("E(m)*2000000000L", "E(m)*2000000000L: at 3: too many m; expected up to 32767");
    expect_refused("Et*99999999999999999999L",
                   "Et*99999999999999999999L: at 4: too large a number; expected up to 2147483647");
    expect_refused("E(t*2000000000)*2000000000L",
                   "E(t*2000000000)*2000000000L: at 2: too many layers; expected up to 2147483647");
    expect_refused("Et*2000000000|t*2000000000L",
                   "Et*2000000000|t*2000000000L: at 15: too many layers; expected up to 2147483647");
    expect_refused("E|*2147483647L", "E|*2147483647L: at 2: too many parts; expected up to 4096");
    expect_refused("E(|*4095t)*2147483647L", "E(|*4095t)*2147483647L: at 3: too many parts; expected up to 4096");
    assert_int_equal(parse("E|*4095L"), PC_PARTS_MAX);
    assert_int_equal(parse("E(t*0)*2147483647(t*0,)*2147483647L"), 1);
    assert_int_equal(parse("Et*2147483647L"), 1);
    memset(deep, '(', sizeof deep - 1);
    assert_int_equal(pc_layout_parse(deep, layers, &shape, NULL), PC_ERROR_INPUT);
    memset(deep, '1', sizeof deep - 1);
    assert_int_equal(pc_layout_parse(deep, layers, &shape, NULL), PC_ERROR_INPUT);
    for (size_t i = 1; i < sizeof deep - 1; i += 2) deep[i] = ',';
    deep[sizeof deep - 2] = '1';
    assert_int_equal(parse(deep), 2048);
}

/* What is written reads the same; what cannot be written short enough says so. */
static void test_written_and_read(void **state) {
    (void)state;
    test_random random = {18};
    int written = 0;
    for (int n = 0; n < 4000; n++) {
        int32_t list[PC_PARTS_MAX];
        int parts = (int)test_between(&random, 1, n % 2 ? 12 : 300), most = (int)test_between(&random, 0, 20);
        char text[PC_LAYOUT_SIZE];
        for (int i = 0; i < parts; i++)
            list[i] = i > 0 && test_between(&random, 0, 9) > 0 ? list[i - 1] : (int32_t)test_between(&random, 0, most);
        pc_layout_shape shape = {parts, (int16_t)test_between(&random, 0, 2), 0};
        if (shape.mtp_layers > 0) shape.mtp_ahead = (int16_t)test_between(&random, 0, parts - 1);
        for (int i = parts - shape.mtp_ahead; i < parts; i++) list[i] = 0; /* no t behind m */
        pc_layout_write(list, &shape, text);
        if (strcmp(text, "listed") == 0) continue;
        expect_predictions(text, list, shape);
        written++;
    }
    assert_true(written > 3000);
}

static void expect_written(const int32_t *list, int parts, const char *expected) {
    char text[PC_LAYOUT_SIZE];
    pc_layout_write(list, &(pc_layout_shape){.parts = parts}, text);
    assert_string_equal(text, expected);
}

static void test_written(void **state) {
    (void)state;
    int32_t many[PC_PARTS_MAX] = {15};
    expect_written((int32_t[]){15, 16, 16, 15}, 4, "15,16,16,15");
    expect_written((int32_t[]){24}, 1, "24");
    for (int i = 1; i < 16; i++) many[i] = i < 15 ? 16 : 15;
    expect_written(many, 16, "Et*15|(t*16|)*14t*15L");
    for (int i = 0; i < PC_PARTS_MAX; i++) many[i] = i % 2;
    expect_written(many, PC_PARTS_MAX, "listed");
}

/* 126 layers, as Llama 3 405B has: of 16 parts embedding and head must count, of 9 they need not, and for 11 only
 * parts of their own do; 26 have none. */
static void test_auto(void **state) {
    (void)state;
    assert_int_equal(pc_layout_auto(126, 16), PC_CUT_ENDS);
    assert_int_equal(pc_layout_auto(126, 128), PC_CUT_ENDS);
    assert_int_equal(pc_layout_auto(126, 9), PC_CUT_EVEN);
    assert_int_equal(pc_layout_auto(126, 2), PC_CUT_EVEN); /* ends would do too */
    assert_int_equal(pc_layout_auto(126, 11), PC_CUT_OWN);
    assert_int_equal(pc_layout_auto(126, 26), PC_CUT_EVEN);
    assert_false(pc_layout_divides(PC_CUT_EVEN, 126, 26));
    assert_false(pc_layout_divides(PC_CUT_OWN, 126, 2));
    assert_false(pc_layout_divides(PC_CUT_LISTED, 126, 2));
}

/* ---- remedies ---- */

/* The list behind "--layout ", with quotes or without. */
static void check_list(const char *text, int64_t expected_layers, int parts) {
    char list[PC_LAYOUT_SIZE];
    bool is_quoted = *text == '\'';
    int64_t sum = 0;
    snprintf(list, sizeof list, "%s", text + is_quoted);
    if (is_quoted) list[strlen(list) - 1] = '\0';
    assert_int_equal(parse(list), parts);
    for (int i = 0; i < parts; i++) sum += layers[i];
    assert_int_equal(sum, expected_layers);
}

static void check_names(const char *text, int64_t model_layers, int parts) {
    int named = 0;
    for (pc_cut_layout layout = PC_CUT_EVEN; layout <= PC_CUT_OWN; layout++) {
        bool is_named = strstr(text, pc_layout_name(layout)) != NULL;
        assert_int_equal(is_named, pc_layout_divides(layout, model_layers, parts));
        named += is_named;
    }
    assert_true(named > 0);
}

static void check_stages(const char *text, int64_t model_layers, int chunks) {
    for (bool is_number = true; is_number;) {
        char *next;
        int parts = chunks * (int)strtol(text, &next, 10);
        assert_true(pc_layout_divides(pc_layout_auto(model_layers, parts), model_layers, parts));
        is_number = strncmp(next, " or ", 4) == 0 && isdigit((unsigned char)next[4]);
        text = next + 4;
    }
}

/* Whatever does not divide, what is said instead does. */
static void test_every_remedy_works(void **state) {
    (void)state;
    for (int64_t model_layers = 1; model_layers <= 130; model_layers++)
        for (int pp = 1; pp <= 24; pp++)
            for (int chunks = 1; chunks <= 3; chunks++) {
                char text[PC_LAYOUT_REMEDY_SIZE];
                pc_cut cut = {.pp = pp, .chunks = chunks};
                pc_layout_remedy(model_layers, &cut, pp * chunks, text);
                const char *list = strstr(text, "a list such as --layout ");
                bool has_stages = strncmp(text, "pp ", 3) == 0;
                if (strncmp(text, "--layout ", 9) == 0) {
                    check_names(text, model_layers, pp * chunks);
                    continue;
                }
                if (has_stages) check_stages(text + 3, model_layers, chunks);
                if (list) check_list(list + strlen("a list such as --layout "), model_layers, pp * chunks);
                assert_true(has_stages || list || (strcmp(text, "fewer parts") == 0 && model_layers + 2 < pp * chunks));
            }
}

static void test_remedies(void **state) {
    (void)state;
    char text[PC_LAYOUT_REMEDY_SIZE];
    pc_layout_remedy(126, &(pc_cut){.pp = 16}, 16, text);
    assert_string_equal(text, "--layout ends or own");
    pc_layout_remedy(13, &(pc_cut){.pp = 8}, 8, text);
    assert_string_equal(text, "pp 5 or 13, or a list such as --layout 'E|(tt|)*6tL'");
    pc_layout_remedy(126, &(pc_cut){.pp = 16}, 48, text);
    assert_string_equal(text, "pp 14 or 21, or a list such as --layout 'Et|(ttt|)*32(tt|)*14tL'");
    pc_layout_remedy(24, &(pc_cut){.pp = 64}, 64, text);
    assert_string_equal(text, "pp 26");
    pc_layout_remedy(INT32_MAX, &(pc_cut){.pp = 4000}, 4000, text);
    assert_true(strlen(text) < PC_LAYOUT_REMEDY_SIZE - 1);
}

static void expect_stages(pc_stage_layout asked, int64_t all, pc_placement placement, int devices, int chunks,
                          const int32_t *expected) {
    pc_error error = {0};
    int parts = pc_placement_parts(placement, devices, chunks);
    layers[parts] = -1;
    if (pc_stage_layout_list(&asked, all, placement, devices, chunks, layers, &error)) fail_msg("%s", error.message);
    for (int i = 0; i < parts; i++) assert_int_equal(layers[i], expected[i]);
    assert_int_equal(layers[parts], -1); /* which is no part */
}

/* What is left lies evenly over the stages between, and a stage's layers over its chunks: of 4 stages 2 + 6 + 6 + 4 are
 * 18. Counted as layers, embedding and loss leave their part one less: 7 + 1 over 4. */
static void test_stages(void **state) {
    (void)state;
    const pc_placement linear = PC_PLACEMENT_LINEAR, two = PC_PLACEMENT_INTERLEAVED, v = PC_PLACEMENT_V;
    expect_stages((pc_stage_layout){.first = 2, .last = 4}, 18, linear, 4, 1, (int32_t[]){2, 6, 6, 4});
    expect_stages((pc_stage_layout){.last = 3}, 18, linear, 4, 1, (int32_t[]){5, 5, 5, 3});
    expect_stages((pc_stage_layout){.first = 8, .last = 2}, 10, linear, 2, 1, (int32_t[]){8, 2});
    expect_stages((pc_stage_layout){.first = 5}, 5, linear, 1, 1, (int32_t[]){5});
    expect_stages((pc_stage_layout){.first = 2, .last = 4}, 18, two, 4, 2, (int32_t[]){1, 3, 3, 2, 1, 3, 3, 2});
    expect_stages((pc_stage_layout){.first = 2, .last = 4}, 18, v, 4, 2, (int32_t[]){1, 3, 3, 2, 2, 3, 3, 1});
    expect_stages((pc_stage_layout){.first = 4, .last = 4}, 18, PC_PLACEMENT_SLICES, 4, 2, (int32_t[]){4, 5, 5, 4});
    expect_stages((pc_stage_layout){.first = 2, .last = 4}, 18, PC_PLACEMENT_OF_SLICES(3), 4, 6,
                  (int32_t[]){1, 3, 3, 2, 1, 3, 3, 2}); /* slices share a part's layers */
    expect_stages((pc_stage_layout){.counts_embedding = true}, 7, linear, 4, 1, (int32_t[]){1, 2, 2, 2});
    expect_stages((pc_stage_layout){.counts_loss = true}, 7, linear, 4, 1, (int32_t[]){2, 2, 2, 1});
    expect_stages((pc_stage_layout){.counts_embedding = true, .counts_loss = true}, 6, two, 2, 2,
                  (int32_t[]){1, 2, 2, 1});
    expect_stages((pc_stage_layout){.counts_loss = true}, 3, linear, 4, 1, (int32_t[]){1, 1, 1, 0});
}

static void expect_no_stages(pc_stage_layout asked, int64_t all, int devices, int chunks, const char *why) {
    pc_error error = {0};
    pc_placement placement = chunks > 1 ? PC_PLACEMENT_INTERLEAVED : PC_PLACEMENT_LINEAR;
    assert_int_equal(pc_stage_layout_list(&asked, all, placement, devices, chunks, layers, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, why)) fail_msg("'%s' lacks '%s'", error.message, why);
}

/* The remedy divides: 26 - 2 over 6 stages. */
static void test_stages_that_cannot_be(void **state) {
    (void)state;
    expect_no_stages((pc_stage_layout){.first = 4, .last = 2}, 32, 8, 1,
                     "26 layers on the 6 stages beside first_stage_layers and last_stage_layers; expected a multiple "
                     "of them: last_stage_layers 4");
    expect_no_stages((pc_stage_layout){.first = 3}, 32, 8, 1, "first_stage_layers 4");
    expect_no_stages((pc_stage_layout){.first = 9, .last = 2}, 10, 2, 1, "expected all of them to have a stage");
    expect_no_stages((pc_stage_layout){.first = 9, .last = 1}, 10, 1, 1, "expected all of them to have a stage");
    expect_no_stages((pc_stage_layout){.first = 3}, 15, 4, 2, "3 layers of the first stage over 2 chunks");
    expect_no_stages((pc_stage_layout){.counts_loss = true}, 32, 8, 1, "32 layers, the loss do not divide over 8");
    expect_no_stages((pc_stage_layout){.first = 3, .counts_loss = true}, 32, 8, 1, "expected one or the other");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_every_remedy_works),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_stages_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
