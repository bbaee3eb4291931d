/* Points that are like nothing, of every form, and texts of shipped profiles and tables with a value changed: answers
 * that are times, or a refusal. Numbers of choices that nobody has. */
#include "calib/fit/fit.h"
#include "calib/import/import.h"
#include "calib/profile/profile_text.h"
#include "engine/alloc.h"
#include "scenarios/library.h"
#include "tests/folder.h"

#include <math.h>
#include <string.h>

static double between(test_random *random, double low, double high) {
    return low * exp(test_draw_unit(random) * log(high / low));
}

static bool is_time(pc_estimate estimate) {
    return estimate.seconds > 0.0 && isfinite(estimate.seconds) && estimate.standard_error >= 0.0 &&
           isfinite(estimate.standard_error);
}

static void check_times(const pc_fit *fit, const double *point, const char *what) {
    double low, high, seconds = pc_fit_seconds(fit, point);
    pc_estimate burst = pc_fit_predict(fit, point), sustained = pc_fit_predict_sustained(fit, point);
    pc_fit_interval(fit, point, 0.95, &low, &high);
    bool is_interval = low >= 0.0 && low <= burst.seconds && high >= burst.seconds;
    if (!is_time(burst) || !is_time(sustained) || !is_interval || !(fabs(seconds / burst.seconds - 1.0) < 1e-9))
        fail_msg("%s: %g +- %g s (%g, %g to %g), sustained %g +- %g s", what, burst.seconds, burst.standard_error,
                 seconds, low, high, sustained.seconds, sustained.standard_error);
}

/* ---- points that are like nothing ---- */

enum { MOST = 420 };

/* Sizes of a few powers of ten or of many; some of them always the same, as tables have it. */
static int draw_points(test_random *random, int dimensions, double *x, double *seconds) {
    double spread[PC_FIT_DIMENSIONS], longest = between(random, 1.01, 1e9);
    int count = (int)between(random, 1.0, test_draw_unit(random) < 0.1 ? MOST : 60.0);
    for (int d = 0; d < dimensions; d++) spread[d] = test_draw_unit(random) < 0.2 ? 1.0 : between(random, 1.0, 1e6);
    for (int i = 0; i < count; i++) {
        for (int d = 0; d < dimensions; d++)
            x[i * dimensions + d] = spread[d] > 1.0 ? ceil(between(random, 1.0, spread[d])) : 8.0;
        seconds[i] = between(random, 1e-7, 1e-7 * longest);
    }
    return count;
}

static void check_random_fit(test_random *random, pc_fit_form form) {
    static double x[PC_FIT_DIMENSIONS * MOST], seconds[MOST];
    static const char *const subjects[PC_FIT_FORMS] = {
        [PC_FIT_TRANSFER] = "all_reduce",     [PC_FIT_MEMORY] = "copy",
        [PC_FIT_GEMM] = "gemm_forward",       [PC_FIT_ATTENTION] = "attention_forward",
        [PC_FIT_FLASH] = "attention_forward", [PC_FIT_GROUPED_GEMM] = "grouped_gemm_forward",
        [PC_FIT_MOE] = "moe_layer",           [PC_FIT_LAW] = "all_reduce",
        [PC_FIT_DISPATCH] = "dispatch"};
    pc_fit_key key = {.form = form, .dtype = "bf16", .library = "any", .head_dim = 64};
    pc_fit fit;
    int dimensions;
    snprintf(key.subject, sizeof key.subject, "%s", subjects[form]);
    pc_fit_form_dimensions(form, &dimensions);
    int count = draw_points(random, dimensions, x, seconds);
    pc_code code = pc_fit_make(&key, 132, x, seconds, count, &fit, NULL);
    assert_true(code == PC_OK || code == PC_ERROR_INPUT);
    if (code) return;
    for (int i = 0; i < 20; i++) {
        double at[PC_FIT_DIMENSIONS];
        for (int d = 0; d < dimensions; d++) at[d] = between(random, fit.least[d], 1.01 * fit.most[d]);
        check_times(&fit, i < 10 && i < count ? x + i * dimensions : at, subjects[form]);
    }
    pc_fit_free(&fit);
}

static void points_like_nothing(void **state) {
    (void)state;
    test_random random = {41};
    for (long i = test_cases(10, 200); i > 0; i--)
        for (int form = 0; form < PC_FIT_FORMS; form++) check_random_fit(&random, (pc_fit_form)form);
}

/* ---- shipped texts, damaged ---- */

enum { TEXT_MOST = 1 << 19 };

/* Where the text asks: in its range, at both ends and in the middle. */
static void check_read(const pc_profile *profile, const char *what) {
    for (int64_t i = 0; i < profile->fit_count; i++) {
        const pc_fit *fit = &profile->fit[i];
        double middle[PC_FIT_DIMENSIONS];
        for (int d = 0; d < fit->dimensions; d++) middle[d] = sqrt(fit->least[d] * fit->most[d]);
        check_times(fit, fit->least, what);
        check_times(fit, fit->most, what);
        check_times(fit, middle, what);
    }
}

static void read_damaged(const char *text, const char *what) {
    pc_profile profile;
    pc_error error = {0};
    pc_code code = pc_profile_text_read(text, "own", &profile, &error);
    assert_true(code == PC_OK || code == PC_ERROR_INPUT);
    if (code && (strncmp(error.message, "own", 3) != 0 || !strstr(error.message, "; expected ")))
        fail_msg("%s: '%s'", what, error.message);
    if (code) return;
    check_read(&profile, what);
    pc_profile_free(&profile);
}

/* A text of one fit of the profile: its lines from `first` to the next fit. */
static size_t one_fit(const char *first, char *text) {
    const char *next = strstr(first, "\nform,"), *last = strstr(first, "\nfits,");
    const char *end = next && next < last ? next : last;
    int size = snprintf(text, TEXT_MOST, "pipecast-profile-text,1\ngpu,own\nprocessors,100\n%.*s\nfits,1\n",
                        (int)(end - first), first);
    assert_true(size > 0 && size < TEXT_MOST);
    return (size_t)size;
}

/* In each line that has one, the value at a place drawn is another: of a number too large, below zero, none, or no
 * number; or the line is not there, or twice. */
static void damage_line(test_random *random, const char *text, const char *line, char *made) {
    static const char *const values[] = {
        "nan", "inf", "-1", "0", "", "1e308", "1e-308", "99999999999999999999", "x", "0x1p2000", "-1e-5", "2.5"};
    const char *end = strchr(line, '\n') + 1, *comma = line;
    char what[120];
    for (int64_t skip = test_between(random, 1, 12); skip > 0; skip--) {
        const char *next = memchr(comma + (comma > line), ',', (size_t)(end - comma) - (comma > line));
        if (next) comma = next;
    }
    const char *behind = comma + 1 + strcspn(comma + 1, ",\n");
    const char *value = values[test_between(random, 0, sizeof values / sizeof *values - 1)];
    snprintf(what, sizeof what, "%.60s: %s", line, value);
    if (*comma == ',') {
        snprintf(made, TEXT_MOST, "%.*s,%s%s", (int)(comma - text), text, value, behind);
        read_damaged(made, what);
    }
    snprintf(made, TEXT_MOST, "%.*s%s", (int)(line - text), text, end);
    read_damaged(made, "a line less");
    snprintf(made, TEXT_MOST, "%.*s%s", (int)(end - text), text, line);
    read_damaged(made, "a line twice");
    snprintf(made, TEXT_MOST, "%.*s", (int)(comma - text), text);
    read_damaged(made, "cut short");
}

static void damaged_texts(void **state) {
    (void)state;
    int count;
    test_random random = {43};
    const pc_library_file *files = pc_library_files(PC_LIBRARY_PROFILES, &count);
    char *text = pc_alloc(TEXT_MOST, 1), *made = pc_alloc(TEXT_MOST, 1);
    assert_true(text && made);
    for (int i = 0; i < count; i++)
        for (const char *fit = strstr(files[i].text, "\nform,"); fit; fit = strstr(fit + 1, "\nform,")) {
            if (test_draw_unit(&random) > (double)test_cases(20, 100) / 100.0) continue;
            one_fit(fit + 1, text);
            for (const char *line = text; *line; line = strchr(line, '\n') + 1)
                if (strncmp(line, "point,", 6) != 0 || test_draw_unit(&random) < 0.02)
                    damage_line(&random, text, line, made);
        }
    pc_free(text);
    pc_free(made);
}

/* ---- tables, damaged ---- */

static const struct table {
    const char *header, *row; /* the row's %d: a size that rises */
    int fields;
} tables[] = {
    {"system,framework,version,dtype,m,n,k,latency_ms", "b200_sxm,trtllm,1.3,bfloat16,%d,4096,4096,0.5", 8},
    {"system,framework,version,kernel,dtype,tokens,hidden,inter,topk,experts,moe_tp,moe_ep,distribution,latency_ms",
     "b200_sxm,trtllm,1.3,cutlass,fp8,%d,4096,2048,6,256,2,32,power_law_1.2,0.08", 14},
    {"system,version,nodes,hidden,tokens,topk,experts,dispatch_sms,dispatch_us,combine_sms,combine_us",
     "b200_sxm,0.5,1,2048,%d,8,128,4,185.7,4,194.4", 11},
    {"system,framework,version,op,dtype,gpus,message_bytes_inferred,latency_ms",
     "b200_sxm,nccl,2.29.2,all_gather,half,2,%d,0.007", 8},
    {"system,framework,version,dtype,batch,seq,heads,kv_heads,head_dim,window,latency_ms",
     "b200_sxm,trtllm,1.3,bfloat16,4,%d,96,96,64,0,18.02", 11},
};

/* Nineteen rows, in the `damaged`th of which a field has another value. */
static void write_table(const char *path, const struct table *table, int field, const char *value, int damaged) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "%s\n", table->header);
    for (int i = 0; i < 19; i++) {
        char row[200], *at = row;
        snprintf(row, sizeof row, table->row, 256 * (i + 1));
        if (i != damaged) {
            fprintf(file, "%s\n", row);
            continue;
        }
        for (int skip = 0; skip < field; skip++) at = strchr(at, ',') + 1;
        fprintf(file, "%.*s%s%s\n", (int)(at - row), row, value, at + strcspn(at, ","));
    }
    fclose(file);
}

static void check_table(const char *path, const char *what) {
    pc_profile profile = {.device.processors = 148};
    pc_error error = {0};
    pc_code code = pc_profile_import(&profile, path, NULL, &error);
    assert_true(code == PC_OK || code == PC_ERROR_INPUT);
    if (code && (!strstr(error.message, path) || !strstr(error.message, "; expected ")))
        fail_msg("%s: '%s'", what, error.message);
    if (!code) assert_int_equal(pc_profile_fit(&profile, NULL, NULL), PC_OK);
    check_read(&profile, what);
    pc_profile_free(&profile);
}

/* In each field a number too large or too small, none, or no number; refused with its line, or of no harm. */
static void damaged_tables(void **state) {
    static const char *const values[] = {
        "nan",     "inf", "-1", "0", "", "1e308", "1e-30", "281474976710656", "x", "\"", "1,2", "281474976710655",
        "\"a\nb\""};
    const folder *at = *state;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (int field = 0; field < tables[t].fields; field++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                char what[120];
                snprintf(what, sizeof what, "table %d, field %d: %s", (int)t, field, values[v]);
                write_table(at->file, &tables[t], field, values[v], (int)(v % 19));
                check_table(at->file, what);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_like_nothing),
        cmocka_unit_test(damaged_texts),
        cmocka_unit_test_prestate_setup_teardown(damaged_tables, make_folder, remove_folder, "table.csv"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
