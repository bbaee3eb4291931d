/* Fields of structs: what is defined, texts, ranges, hashes; and a struct of every type as a table in an HDF5 file. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/field.h"
#include "engine/hash.h"
#include "storage/fields.h"

#include <math.h>

typedef struct everything {
    char text[8];
    uint8_t tiny;
    int16_t small;
    int32_t narrow, choice;
    int64_t wide;
    double real, any, number;
    bool flag;
    uint64_t hash;
} everything;

static const char *const words[] = {"red", "green", NULL};
static const char *const sorts[] = {"one", "two", "three", NULL};

#define MEMBER(member, kind)                                                                                           \
    .name = #member, .unit = "1", .description = "d", .type = PC_FIELD_##kind, PC_FIELD_AT(everything, member)
static const pc_field fields[] = {
    {MEMBER(text, TEXT), .is_optional = true},
    {MEMBER(tiny, UINT8), .choices = sorts},
    {MEMBER(small, INT16), .choices = sorts},
    {MEMBER(narrow, INT32), .least = -1, .most = 9},
    {MEMBER(choice, CHOICE), .choices = words, .is_optional = true},
    {MEMBER(wide, INT64)},
    {MEMBER(real, REAL)},
    {MEMBER(any, ANY)},
    {MEMBER(number, NUMBER)},
    {MEMBER(flag, FLAG)},
    {MEMBER(hash, HASH), .is_optional = true},
};
enum { FIELDS = sizeof fields / sizeof *fields };
static const pc_fields table = {fields, FIELDS, sizeof(everything)};

static everything example(int i) {
    return (everything){.text = "a text",
                        .tiny = (uint8_t)(i % 3),
                        .small = (int16_t)(2 - i % 3),
                        .narrow = i % 10,
                        .choice = i % 2,
                        .wide = INT64_MIN + i,
                        .real = 0.5 * i,
                        .any = i % 2 ? NAN : i,
                        .number = -INFINITY,
                        .flag = i % 2,
                        .hash = UINT64_MAX - (uint64_t)i};
}

/* A flag and a small number have no value that stands for none; all else is not defined when it is cleared. */
static void what_is_cleared_is_not_defined(void **state) {
    (void)state;
    everything row = example(2);
    for (int i = 0; i < FIELDS; i++) {
        bool has_none = fields[i].type != PC_FIELD_FLAG && !(fields[i].choices && !pc_field_is_text(&fields[i]));
        assert_true(pc_field_is_defined(&fields[i], &row) ==
                    (fields[i].type != PC_FIELD_NUMBER)); /* that is infinite */
        pc_field_clear(&fields[i], &row);
        assert_true(pc_field_is_defined(&fields[i], &row) == !has_none);
    }
    assert_true(row.wide == -1 && row.narrow == -1 && row.choice == -1 && row.hash == 0 && isnan(row.number));
}

static void texts_go_in_and_out(void **state) {
    (void)state;
    const pc_field *text = &fields[0], *choice = &fields[4], *hash = &fields[10];
    everything row = example(0);
    char out[32];
    assert_true(pc_field_set_text(choice, &row, "green") && row.choice == 1);
    assert_false(pc_field_set_text(choice, &row, "blue"));
    pc_field_get_text(choice, &row, out, sizeof out);
    assert_string_equal(out, "green");
    row.choice = 2; /* behind the last */
    pc_field_get_text(choice, &row, out, sizeof out);
    assert_string_equal(out, "");
    assert_true(pc_field_set_text(hash, &row, "00000000000000ff") && row.hash == 255);
    assert_false(pc_field_set_text(hash, &row, "00000000000000FF"));
    pc_field_get_text(hash, &row, out, sizeof out);
    assert_string_equal(out, "00000000000000ff");
    assert_true(pc_field_set_text(text, &row, "seven.."));
    assert_false(pc_field_set_text(text, &row, "eight..."));
    memcpy(row.text, "no zero!", 8); /* of a text without its zero no more than there is */
    pc_field_get_text(text, &row, out, sizeof out);
    assert_string_equal(out, "no zero!");
}

/* least and most of 0 are none: any number of the type. */
static void ranges_hold(void **state) {
    (void)state;
    everything row = example(0);
    assert_true(pc_field_set_integer(&fields[3], &row, -1) && row.narrow == -1);
    assert_false(pc_field_set_integer(&fields[3], &row, 10));
    assert_true(pc_field_set_integer(&fields[5], &row, INT64_MIN) && row.wide == INT64_MIN);
    assert_false(pc_field_set_integer(&fields[9], &row, 2));
    assert_false(pc_field_set_real(&fields[6], &row, NAN));
    assert_false(pc_field_set_real(&fields[6], &row, -1));
    assert_true(pc_field_set_real(&fields[7], &row, NAN));
    assert_true(pc_field_set_real(&fields[8], &row, -INFINITY) && row.number < 0);
}

/* Every field counts, and nothing between and behind them: padding and what stands behind a text's end are other bytes
 * here. */
static void hashes_are_of_values(void **state) {
    (void)state;
    everything a, b;
    memset(&a, 0x55, sizeof a);
    memset(&b, 0xaa, sizeof b);
    const everything from = example(1);
    for (int i = 0; i < FIELDS; i++) {
        memcpy((char *)&a + fields[i].place, (const char *)&from + fields[i].place, pc_field_size(&fields[i]));
        memcpy((char *)&b + fields[i].place, (const char *)&from + fields[i].place, pc_field_size(&fields[i]));
    }
    b.text[7] = 'x'; /* "a text" ends before it */
    for (int i = 0; i < FIELDS; i++) {
        pc_hash one = {1, 2}, other = {1, 2};
        pc_field_hash(&fields[i], &a, &one);
        pc_field_hash(&fields[i], &b, &other);
        assert_true(pc_hash_equal(one, other));
        pc_field_clear(&fields[i], &b);
        other = (pc_hash){1, 2};
        pc_field_hash(&fields[i], &b, &other);
        bool is_same = fields[i].type == PC_FIELD_ANY; /* NaN, as before */
        assert_true(pc_hash_equal(one, other) == is_same);
    }
}

static void assert_same(const everything *a, const everything *b) {
    for (int i = 0; i < FIELDS; i++) {
        pc_hash one = {1, 2}, other = {1, 2};
        pc_field_hash(&fields[i], a, &one);
        pc_field_hash(&fields[i], b, &other);
        if (!pc_hash_equal(one, other)) fail_msg("%s", fields[i].name);
    }
}

/* As a small table, and as a whole one; more rows than a chunk of 64 KiB has. */
static void tables_come_back(void **state) {
    (void)state;
    enum { ROWS = 70000 };
    everything *rows = pc_alloc(ROWS, sizeof *rows);
    for (int i = 0; i < ROWS; i++) rows[i] = example(i);
    rows[3].text[0] = '\0';
    rows[3].choice = -1;
    rows[3].hash = 0;
    hid_t file = pc_h5_memory_file(rows);
    const int64_t counts[] = {0, 5, ROWS};
    for (int k = 0; k < 6; k++) {
        char name[16];
        void *back = NULL;
        int64_t count = -1;
        snprintf(name, sizeof name, "t%d", k);
        hid_t group = pc_h5_group_create(file, name);
        pc_code (*write)(hid_t, const pc_fields *, const void *, int64_t, pc_error *) =
            k < 3 ? pc_fields_write : pc_fields_write_whole;
        assert_int_equal(write(group, &table, rows, counts[k % 3], NULL), PC_OK);
        assert_int_equal(pc_fields_read(group, name, &table, &back, &count, NULL), PC_OK);
        assert_int_equal(count, counts[k % 3]);
        for (int64_t i = 0; i < count; i++) assert_same(&((everything *)back)[i], &rows[i]);
        pc_free(back);
        H5Gclose(group);
    }
    H5Fclose(file);
    pc_free(rows);
}

/* In the file, sorts have their names in a byte each, and what may be missing says how that looks. */
static void files_say_names_and_what_is_missing(void **state) {
    (void)state;
    everything row = example(1);
    char missing[16];
    hid_t file = pc_h5_memory_file(&row), root = H5Gopen2(file, "/", H5P_DEFAULT);
    assert_int_equal(pc_fields_write(root, &table, &row, 1, NULL), PC_OK);
    for (int i = 0; i < FIELDS; i++) {
        hid_t dataset = H5Dopen2(root, fields[i].name, H5P_DEFAULT), type = H5Dget_type(dataset);
        if (fields[i].choices == sorts) {
            assert_int_equal(H5Tget_class(type), H5T_ENUM);
            assert_int_equal(H5Tget_size(type), 1);
            assert_int_equal(H5Tget_nmembers(type), 3);
        }
        bool has_missing = pc_h5_get_text(dataset, "missing", missing, sizeof missing);
        assert_true(has_missing == (fields[i].is_optional || fields[i].type == PC_FIELD_ANY));
        if (has_missing) assert_string_equal(missing, fields[i].is_optional ? "empty text" : "NaN");
        H5Tclose(type);
        H5Dclose(dataset);
    }
    H5Gclose(root);
    H5Fclose(file);
}

/* A number beyond its range, a text that is no choice, a column that is gone: each is named. */
static void damage_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"narrow", "choice", "any"};
    for (int k = 0; k < 3; k++) {
        everything row = example(1);
        const char *const others[] = {"red", "blue", NULL};
        pc_field wider[FIELDS];
        const pc_fields written = {wider, FIELDS, sizeof(everything)};
        void *back = NULL;
        int64_t count;
        pc_error error = {0};
        memcpy(wider, fields, sizeof fields);
        if (k == 0) row.narrow = 77;
        if (k == 1) wider[4].choices = others;
        if (k == 2) wider[7].name = "another";
        hid_t file = pc_h5_memory_file(&row), root = H5Gopen2(file, "/", H5P_DEFAULT);
        assert_int_equal(pc_fields_write(root, &written, &row, 1, NULL), PC_OK);
        pc_h5_quiet quiet = pc_h5_quiet_begin();
        assert_int_equal(pc_fields_read(root, k ? "table" : NULL, &table, &back, &count, &error), PC_ERROR_INPUT);
        pc_h5_quiet_end(quiet);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "'%s%s' is missing or damaged", k ? "table/" : "", names[k]);
        assert_string_equal(error.message, wanted);
        pc_free(back);
        H5Gclose(root);
        H5Fclose(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cleared_is_not_defined),
        cmocka_unit_test(texts_go_in_and_out),
        cmocka_unit_test(ranges_hold),
        cmocka_unit_test(hashes_are_of_values),
        cmocka_unit_test(tables_come_back),
        cmocka_unit_test(files_say_names_and_what_is_missing),
        cmocka_unit_test(damage_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
