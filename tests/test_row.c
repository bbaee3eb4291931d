/* Labels of a row: which runs have the same, and how a row gets those of another run. */
#include "tests/support.h"

#include "results/columns.h"
#include "results/row.h"

#include <math.h>

/* A new label does not pass before it is among those that test_labels changes. `software` has no column of its name:
 * tests/test_intervals.c has it. */
#if defined(__x86_64__) || defined(__aarch64__)
_Static_assert(sizeof(pc_run_labels) == 8 + 5 * PC_LABEL_SIZE + 32 + 8 + 10 * 8, "a new label");
#endif

typedef struct member {
    const char *name;
    size_t place;
    bool is_text;
} member;

#define NUMBER(name)                                                                                                   \
    { #name, offsetof(pc_run_labels, name), false }
#define TEXT(name)                                                                                                     \
    { #name, offsetof(pc_run_labels, name), true }

/* The number of a run is not a double, but as one it is another. */
static const member members[] = {NUMBER(run),
                                 TEXT(scenario),
                                 TEXT(name),
                                 TEXT(model),
                                 TEXT(machine),
                                 TEXT(layout),
                                 TEXT(profile),
                                 NUMBER(published_bubble_rate_span),
                                 NUMBER(published_samples_per_s_per_gpu),
                                 NUMBER(published_iteration_s),
                                 NUMBER(published_mfu),
                                 NUMBER(published_tflops_per_gpu),
                                 NUMBER(published_hardware_tflops_per_gpu),
                                 NUMBER(published_activation_gib),
                                 NUMBER(published_pass_f_s),
                                 NUMBER(published_memory_gib),
                                 NUMBER(published_best_mfu)};

static pc_run_labels changed(const member *one) {
    const double number = 1.5;
    pc_run_labels labels = pc_run_labels_none();
    char *place = (char *)&labels + one->place;
    if (one->is_text)
        strcpy(place, "new");
    else
        memcpy(place, &number, sizeof number);
    return labels;
}

/* The number of columns in which rows differ, and the name of the last. */
static int differences(const pc_run_row *a, const pc_run_row *b, const char **name) {
    int count, different = 0;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        const size_t place = columns[i].field.place;
        if (memcmp((const char *)a + place, (const char *)b + place, columns[i].field.size) == 0) continue;
        *name = columns[i].field.name;
        different++;
    }
    return different;
}

/* Every one changes the hash, and in a row the column of its name and no other. */
static void test_labels(void **state) {
    (void)state;
    pc_run_spec spec = pc_run_spec_default();
    const pc_run_labels none = pc_run_labels_none();
    pc_run_row plain;
    pc_run_row_clear(&plain);
    pc_run_row_relabel(&spec, &none, &plain);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const pc_run_labels labels = changed(&members[i]);
        const char *name = "";
        pc_run_row row = plain;
        assert_true(pc_run_labels_hash(&labels) != pc_run_labels_hash(&none));
        pc_run_row_relabel(&spec, &labels, &row);
        assert_int_equal(differences(&row, &plain, &name), 1);
        assert_string_equal(name, members[i].name);
        pc_run_row_relabel(&spec, &none, &row);
        assert_string_equal(row.name, "");
        assert_true(row.run == plain.run && isnan(row.published_mfu));
    }
}

/* What was worked out stays. */
static void test_relabelled(void **state) {
    (void)state;
    pc_run_spec spec = pc_run_spec_default();
    pc_run_labels labels = pc_run_labels_none();
    pc_run_row row = {.run = 7, .name = "a much longer name than before", .profile = "old.h5", .iteration_s = 3};
    labels.run = 8;
    strcpy(labels.name, "new");
    strcpy(labels.profile, "new.h5");
    labels.published_mfu = 0.5;
    pc_run_row_relabel(&spec, &labels, &row);
    assert_int_equal(row.run, 8);
    assert_string_equal(row.name, "new");
    assert_string_equal(row.profile, "new.h5");
    assert_true(row.published_mfu == 0.5 && isnan(row.published_iteration_s) && row.iteration_s == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_relabelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
