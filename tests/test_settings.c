/* The table of settings is whole: every line has its words, its default, its option or why it has none; and what it
 * says of a default is what a run gets. */
#include "scenarios/settings.h"
#include "tests/support.h"

/* ---- words, options, places ---- */

static void test_every_line_is_whole(void **state) {
    (void)state;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = pc_setting_rule_of(key);
        const char *path = rule->field.name;
        if (!path || !rule->field.description || !rule->field.unit) fail_msg("key %d lacks words", (int)key);
        bool has_standard = rule->has_standard || rule->standard_text;
        if (!rule->otherwise && !has_standard) fail_msg("%s: nothing says what it is where it is not given", path);
        if (!rule->flag.name == !rule->flag.why_not) fail_msg("%s: has an option, or says why not", path);
        if (rule->flag.name && (!rule->flag.help || !rule->flag.value || rule->flag.place <= 0))
            fail_msg("%s: its option lacks words or a place", path);
        if (rule->sweep.name && (!rule->sweep.letters || rule->sweep.key != key || rule->sweep.loop_place <= 0))
            fail_msg("%s: what a sweep has of it is not whole", path);
        if (rule->twin > 0 && rule->twin < rule->field.place) fail_msg("%s: the iteration's comes first", path);
        for (pc_key other = 0; other < key; other++) {
            const pc_setting_rule *before = pc_setting_rule_of(other);
            if (strcmp(before->field.name, path) == 0) fail_msg("%s stands twice", path);
            if (rule->flag.name && rule->flag.place == before->flag.place) fail_msg("%s: its option's place", path);
            if (rule->field.size > 0 && before->field.size > 0 && rule->field.place == before->field.place)
                fail_msg("%s: its field is another's", path);
        }
    }
}

/* Sorted, each once: of a page and of loops all, of names all but the schedule, which stands before them. */
static void test_orders(void **state) {
    (void)state;
    pc_dimension page[PC_DIMENSIONS], loops[PC_DIMENSIONS], names[PC_DIMENSIONS];
    assert_int_equal(pc_dimensions_in_order(PC_ORDER_OF_PAGE, page), PC_DIMENSIONS);
    assert_int_equal(pc_dimensions_in_order(PC_ORDER_OF_LOOPS, loops), PC_DIMENSIONS);
    assert_int_equal(pc_dimensions_in_order(PC_ORDER_OF_NAMES, names), PC_DIMENSIONS - 1);
    assert_int_equal(loops[0], PC_DIMENSION_MODEL);
    assert_int_equal(loops[PC_DIMENSIONS - 1], PC_DIMENSION_SCHEDULE);
    for (int i = 1; i < PC_DIMENSIONS; i++) {
        assert_true(pc_dimension_rule_of(page[i - 1])->page_place < pc_dimension_rule_of(page[i])->page_place);
        assert_true(pc_dimension_rule_of(loops[i - 1])->loop_place < pc_dimension_rule_of(loops[i])->loop_place);
        if (i < PC_DIMENSIONS - 1)
            assert_true(pc_dimension_rule_of(names[i - 1])->name_place < pc_dimension_rule_of(names[i])->name_place);
    }
}

/* ---- defaults ---- */

static double number_of(const pc_setting_rule *rule, pc_value value) {
    return pc_field_is_real(&rule->field) || rule->kind == PC_VALUE_JITTER ? value.real : (double)value.whole;
}

/* What the page says of a default, read as a value of the key, is the default: "`true`", "1", "0: none", "30 days". */
static void test_defaults_are_what_the_page_says(void **state) {
    (void)state;
    int numbers = 0, texts = 0;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = pc_setting_rule_of(key);
        char words[96], *text = words;
        pc_value value;
        pc_error error;
        if (!rule->has_standard && !rule->standard_text) continue;
        pc_key_otherwise(key, words, sizeof words);
        if (strchr(text, ':')) *strchr(text, ':') = '\0';
        if (*text == '`') text[strlen(text) - 1] = '\0', text++;
        bool is_time = rule->kind == PC_VALUE_TIME || rule->kind == PC_VALUE_DURATION;
        bool has_no_unit = is_time && strcmp(text, "0") == 0; /* 0 of whatever unit */
        memset(&value, 0, sizeof value);
        if (!has_no_unit && pc_value_parse(key, text, &value, &error))
            fail_msg("%s: %s", rule->field.name, error.message);
        if (rule->has_standard && number_of(rule, value) != rule->standard)
            fail_msg("%s: the page says %s", rule->field.name, text);
        numbers += rule->has_standard;
        texts += rule->standard_text != NULL;
    }
    assert_true(numbers > 40 && texts == 4);
}

/* "(default 1)" of an option's help. */
static void test_help_says_the_same(void **state) {
    (void)state;
    static const char start[] = "(default ";
    int count = 0;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = pc_setting_rule_of(key);
        const char *found = rule->flag.help ? strstr(rule->flag.help, start) : NULL;
        char words[96], said[64];
        if (!found || (!rule->has_standard && !rule->standard_text)) continue;
        pc_key_otherwise(key, words, sizeof words);
        snprintf(said, sizeof said, "%.*s", (int)strcspn(found + strlen(start), ")"), found + strlen(start));
        if (strcmp(words, said) != 0 && (words[0] != '`' || strncmp(words + 1, said, strlen(said)) != 0))
            fail_msg("%s: the help says %s, the page %s", rule->field.name, said, words);
        count++;
    }
    assert_true(count >= 3);
}

/* ---- fields ---- */

static int64_t integer_at(const pc_setting_rule *rule, size_t place, const pc_run_spec *spec) {
    pc_field field = rule->field;
    field.place = place;
    return pc_field_of(&field, spec).integer;
}

/* A value that a setting gives stands in the field, and in the iteration's; one that it does not is the default. */
static void test_fields_take_values(void **state) {
    (void)state;
    static pc_setting given, nothing;
    int count = 0;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = pc_setting_rule_of(key);
        if (!pc_setting_has_field(rule, true)) continue;
        pc_run_spec spec = pc_run_spec_default(), other = pc_run_spec_default();
        bool is_real = pc_field_is_real(&rule->field), is_flag = rule->field.type == PC_FIELD_FLAG;
        given.given[key] = true;
        given.value[key].whole = is_flag ? rule->standard == 0 : 7;
        if (is_real) given.value[key].real = 0.75;
        pc_setting_fill(&given, true, &spec);
        pc_setting_fill(&nothing, true, &other);
        given.given[key] = false;
        if (is_real) {
            assert_true(pc_field_of(&rule->field, &spec).real == 0.75);
            if (rule->has_standard) assert_true(pc_field_of(&rule->field, &other).real == rule->standard);
        } else {
            assert_int_equal(integer_at(rule, rule->field.place, &spec), is_flag ? rule->standard == 0 : 7);
            if (rule->twin > 0)
                assert_int_equal(integer_at(rule, rule->twin, &spec), is_flag ? rule->standard == 0 : 7);
            if (rule->has_standard)
                assert_int_equal(integer_at(rule, rule->field.place, &other), (int64_t)rule->standard);
        }
        count++;
    }
    assert_true(count > 50);
}

/* What is of clusters alone stays as it was where times are given. */
static void test_times_have_no_fields_of_clusters(void **state) {
    (void)state;
    static pc_setting nothing;
    pc_run_spec spec = pc_run_spec_default();
    pc_setting_fill(&nothing, false, &spec);
    assert_int_equal(spec.iteration.cut.zero, 0);
    assert_false(spec.iteration.overlaps_p2p);
    assert_int_equal(spec.iteration.model.vocab_multiple, 0);
    pc_setting_fill(&nothing, true, &spec);
    assert_int_equal(spec.iteration.cut.zero, 1);
    assert_true(spec.iteration.overlaps_p2p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_line_is_whole),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_defaults_are_what_the_page_says),
        cmocka_unit_test(test_help_says_the_same),
        cmocka_unit_test(test_fields_take_values),
        cmocka_unit_test(test_times_have_no_fields_of_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
