/* Profiles as text: what answers survives, by algebra and against the fits that were written; what is wrong is refused
 * with its line; those that come with pipecast are whole. */
#include "calib/profile/profile_text.h"
#include "scenarios/library.h"
#include "tests/profile_example.h"
#include "tests/refusals.h"

#include <math.h>
#include <string.h>

/* ---- by algebra ---- */

#define HEAD "pipecast-profile-text,1\ngpu,own\nprocessors,100\n"
/* Seconds are 1 us + bytes / 100 GB/s, from 1 kB to 1 GB. */
#define LINE                                                                                                           \
    "form,transfer\nsubject,all_reduce\nlink,nvlink\nranks,8\nresidual_deviation,0.01\ncv_p95,\n"                      \
    "parameters,1e-06,1e+11,0.01\ncovariance,0,0,0,0,0,0\nleast,1000\nmost,1e+09\n"

#define GEMM                                                                                                           \
    "form,gemm\nsubject,gemm_forward\nprocessors,100\nparameters,1e+15,1,1e+12,1e-06\n"                                \
    "covariance,0,0,0,0,0,0,0,0,0,0\nleast,1,1,1,1\nmost,1,65536,65536,65536\n"
#define TABLE(burst, settle)                                                                                           \
    "form,gemm\nsubject,gemm_forward\nprocessors,100\nparameters,1e+15,1,1e+12,1e-06,0," burst "," settle "\n"         \
    "covariance,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\nleast,1,1,1,1\nmost,1,65536,65536,65536\n"

static pc_profile read_text(const char *text) {
    pc_profile profile;
    pc_error error = {0};
    if (pc_profile_text_read(text, "own", &profile, &error)) fail_msg("%s", error.message);
    return profile;
}

/* 10^6 bytes: 1 us + 10 us. */
static void a_text_answers_as_it_says(void **state) {
    (void)state;
    pc_profile profile = read_text(HEAD LINE "fits,1\n");
    const double bytes = 1e6;
    assert_true(profile.is_shipped);
    assert_string_equal(profile.device.gpu, "own");
    assert_int_equal(profile.device.processors, 100);
    assert_int_equal(profile.fit_count, 1);
    assert_string_equal(profile.fit[0].key.subject, "all_reduce");
    assert_int_equal(profile.fit[0].key.ranks, 8);
    assert_string_equal(profile.fit[0].parameter_name[1], pc_fit_label(PC_FIT_TRANSFER, 1).name);
    assert_true(isnan(profile.fit[0].cv_p95) && profile.fit[0].cv_median == 0.0);
    assert_true(fabs(pc_fit_predict(&profile.fit[0], &bytes).seconds - 11e-6) < 1e-15);
    pc_profile_free(&profile);
}

/* A grid of one axis, n, with nodes at log n = 0 and 10 and 0.5 and -0.25 there: at log n = 4 it adds 0.2. */
static void a_grid_answers_as_it_says(void **state) {
    (void)state;
    static const char gemm[] = "form,gemm\nsubject,gemm_forward\ndtype,fp8\nprocessors,100\n"
                               "parameters,1e+15,1,1e+12,1e-06\ncovariance,0,0,0,0,0,0,0,0,0,0\n"
                               "least,1,1,1,1\nmost,1,65536,65536,65536\n";
    char text[2048];
    const double point[PC_FIT_DIMENSIONS] = {1, 4096, exp(4.0), 4096};
    snprintf(text, sizeof text, HEAD "%sgrid,2,0,10\ngrid_value,5000,-2500\nfits,1\n", gemm);
    pc_profile profile = read_text(text);
    assert_int_equal(profile.fit[0].grid.axes, 1);
    assert_true(fabs(pc_log_grid_at(&profile.fit[0].grid, point) - 0.2) < 1e-12);
    pc_profile_free(&profile);
}

/* ---- what was written ---- */

static pc_text write_profile(const pc_profile *profile) {
    pc_text text = {0};
    assert_int_equal(pc_profile_text_write(profile, &text, NULL), PC_OK);
    return text;
}

/* Eight sizes times eight, with what is no roofline on top of it, so that there is a surface. */
static void add_products(pc_profile *profile) {
    const pc_fit_key key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16"};
    double points[64 * 4], seconds[64];
    pc_fit fit;
    for (int i = 0; i < 64; i++) {
        double m = 512.0 * (double)(1 + i % 8), n = 256.0 * (double)(1 + (i >> 3)), *x = points + 4 * i;
        x[0] = 1, x[1] = m, x[2] = n, x[3] = 2048;
        seconds[i] = (5e-6 + 2.0 * m * n * 2048.0 / 5e14) * (1.0 + 0.1 * sin(m / 600.0));
    }
    assert_int_equal(pc_fit_make(&key, 100, points, seconds, 64, &fit, NULL), PC_OK);
    assert_int_equal(pc_profile_add_fit(profile, &fit, NULL), PC_OK);
}

static void add_messages(pc_profile *profile) {
    const pc_fit_key key = {.form = PC_FIT_TRANSFER, .subject = "all_gather", .link = "nvlink", .ranks = 4};
    double points[24], seconds[24];
    pc_fit fit;
    for (int i = 0; i < 24; i++) {
        points[i] = 1024.0 * exp2(0.75 * i);
        seconds[i] = (3e-6 + points[i] / 2e11) * (1.0 + 0.05 * sin((double)i));
    }
    assert_int_equal(pc_fit_make(&key, 0, points, seconds, 24, &fit, NULL), PC_OK);
    assert_int_equal(pc_profile_add_fit(profile, &fit, NULL), PC_OK);
}

/* Six digits of numbers and seven of weights, of which hundreds may cancel: a ten-thousandth. */
static void what_is_read_answers_as_what_was_written(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "own", .processors = 100}};
    add_products(&profile);
    add_messages(&profile);
    assert_non_null(profile.fit[0].weight);
    pc_text text = write_profile(&profile);
    pc_profile found = read_text(text.data);
    assert_int_equal(found.fit_count, profile.fit_count);
    for (int64_t i = 0; i < profile.fit_count; i++)
        for (int64_t k = 0; k < profile.fit[i].count; k++) {
            const double *x = profile.fit[i].x + k * profile.fit[i].dimensions;
            pc_estimate was = pc_fit_predict(&profile.fit[i], x), is = pc_fit_predict(&found.fit[i], x);
            assert_true(fabs(is.seconds / was.seconds - 1.0) < 1e-4);
            assert_true(fabs(is.standard_error / was.standard_error - 1.0) < 1e-2);
        }
    assert_true(found.fit[0].seconds == NULL && found.fit[0].residual == NULL);
    pc_text_free(&text);
    pc_profile_free(&found);
    pc_profile_free(&profile);
}

/* What has been rounded once is not rounded again; and the hash is that of what answers. */
static void the_same_profile_gives_the_same_text(void **state) {
    (void)state;
    char hash[17], hash_again[17];
    pc_profile profile = {.device = {.gpu = "own", .origin = "by hand, twice", .sm_clock_hz = NAN}};
    add_products(&profile);
    pc_text text = write_profile(&profile);
    pc_profile found = read_text(text.data);
    pc_text again = write_profile(&found);
    pc_profile twice = read_text(again.data);
    assert_string_equal(text.data, again.data);
    assert_string_equal(found.device.origin, "by hand, twice");
    assert_true(isnan(found.device.sm_clock_hz));
    pc_profile_hash(&found, hash);
    pc_profile_hash(&twice, hash_again);
    assert_string_equal(hash, hash_again);
    pc_text_free(&text);
    pc_text_free(&again);
    pc_profile_free(&profile);
    pc_profile_free(&found);
    pc_profile_free(&twice);
}

/* Every word of a key says which fit it is. */
static void keys_come_back(void **state) {
    (void)state;
    const pc_fit_key key = {.form = PC_FIT_GEMM,
                            .subject = "gemm_forward",
                            .dtype = "nvfp4",
                            .link = "nvlink",
                            .cache = PC_CACHE_HOT,
                            .ranks = 4,
                            .nodes = 2,
                            .is_causal = true,
                            .library = "sglang",
                            .site = "here",
                            .out_dtype = "fp32",
                            .variant = "some kernel, some load",
                            .head_dim = 128,
                            .window = INT64_C(1) << 40};
    pc_profile profile = {.device = {.gpu = "own"}};
    add_products(&profile);
    profile.fit[0].key = key;
    pc_text text = write_profile(&profile);
    pc_profile found = read_text(text.data);
    assert_true(pc_fit_key_is(&found.fit[0].key, &key));
    assert_string_equal(found.fit[0].key.variant, key.variant);
    assert_string_equal(found.fit[0].key.site, key.site);
    assert_true(found.fit[0].key.window == key.window && found.fit[0].key.head_dim == 128);
    pc_text_free(&text);
    pc_profile_free(&found);
    pc_profile_free(&profile);
}

/* A name cannot end its line. */
static void names_stay_on_their_line(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "own", .origin = "a file\nfits,7\r\n"}};
    add_products(&profile);
    snprintf(profile.fit[0].key.site, sizeof profile.fit[0].key.site, "here\nform,gemm");
    pc_text text = write_profile(&profile);
    pc_profile found = read_text(text.data);
    assert_string_equal(found.device.origin, "a file fits,7  ");
    assert_string_equal(found.fit[0].key.site, "here form,gemm");
    pc_text_free(&text);
    pc_profile_free(&found);
    pc_profile_free(&profile);
}

/* ---- what is refused ---- */

static void refused_texts_say_where(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "own: ends too soon; expected 'fits'"},
        {"gpu,own\n", "own:1: gpu: begins the text; expected 'pipecast-profile-text,1'"},
        {"pipecast-profile-text,2\n", "own:1: pipecast-profile-text: version 2; expected 1"},
        {HEAD "colour,red\n", "own:4: colour: is no key of a device; expected one that"},
        {HEAD "l2_bytes,many\n", "own:4: l2_bytes: 'many'; expected cache"},
        {HEAD "fits,1\n", "own:4: fits: 1; expected 0, as many as stand above"},
        {HEAD "fits,0\nfits,0\n", "own:5: fits: stands behind the end"},
        {HEAD LINE, "own:13: ends too soon; expected 'fits'"},
        {HEAD "form,magic\n", "own:4: form: 'magic'; expected form of the model"},
        {HEAD "form,transfer\nparameters,1e-6,1e11\n", "own:5: parameters: 2 numbers; expected those of the form"},
        {HEAD "form,transfer\nparameters,1e-6,inf,0\n", "own:5: parameters: 1 numbers; expected"},
        {HEAD "form,transfer\nparameter_count,3\n", "own:5: parameter_count: is no key of a fit"},
        {HEAD "form,transfer\nfits,1\n", "own:5: form: the fit above has no parameters or no covariance"},
        {HEAD "form,transfer\nparameters,1e-06,1e+11,0.01\ncovariance,0\n",
         "own:6: covariance: too few numbers; expected 6"},
        {HEAD "form,transfer\nparameters,1e-06,1e+11,0.01\ncovariance,0,0,0,0,0,0\nfits,1\n",
         "own:7: form: the fit above has no range; expected least and most"},
        {HEAD LINE "least,0\nfits,1\n", "own:15: form: the fit above has no range"},
        {HEAD LINE "most,1,2\n", "own:14: most: more behind; expected 1 number"},
        {HEAD LINE "point,1,2\n", "own:14: point: one more than the 0 of points"},
        {HEAD LINE "points,1000000\n", "own:14: points: no count; expected 0 to "},
        {HEAD LINE "points,2\npoint,-1,2\n", "own:15: point: -1; expected a size above zero"},
        {HEAD LINE "points,1\nfits,1\n", "own:15: form: the fit above has 0 points; expected 1"},
        {HEAD LINE "grid,1,0,1\n", "own:14: grid: no axis; expected at most 5, each a dimension from 0 to 0"},
        {HEAD LINE "grid,0,1,0\n", "own:14: grid: nodes that fall; expected them to rise"},
        {HEAD LINE "grid_value,1\n", "own:14: grid_value: 0 values of the axes above; expected 1 to"},
        {HEAD LINE "grid,0,1,2\ngrid_value,1,2\ngrid,0,1,2\n",
         "own:16: grid: stands behind grid_value; expected all axes before it"},
        {HEAD LINE "grid,0,1,2\ngrid_value,1,400000\nfits,1\n",
         "own:16: form: the fit above has a grid that changes times beyond reason"},
        {HEAD LINE "parameters,1e-06,1e+11,0.01\n", "own:14: parameters: stands there twice"},
        {HEAD LINE "covariance,0,0,0,0,0,0\n", "own:14: covariance: has no place here; expected it once"},
        {HEAD "form,transfer\ncovariance\n", "own:5: covariance: has no place here"},
        {HEAD LINE "most,\t\n7\n", "own:14: most: number 1 of it; expected 1 of them"},
        {HEAD LINE "most,1e300\nfits,1\n", "own:15: form: the fit above has no range"},
        {HEAD GEMM "processors,0\nfits,1\n", "own:12: form: the fit above has no parameters"},
        {HEAD GEMM "least,0.5,1,1,1\nfits,1\n", "own:12: form: the fit above has no range"},
        {HEAD TABLE("-1", "0.005") "fits,1\n", "own:11: form: the fit above foretells nothing"},
        {HEAD TABLE("0.1", "0") "fits,1\n", "own:11: form: the fit above foretells nothing"},
        {HEAD LINE "grid,0,1,2\nfits,1\n", "own:15: form: the fit above has axes of a grid alone"},
        {HEAD LINE "grid,0,1,2\ngrid_value,1,2,3\n", "own:15: grid_value: more behind; expected 2 numbers"},
        {HEAD
         "form,transfer\nsubject,x\nparameters,1e-6,-1e+11,0.01\ncovariance,0,0,0,0,0,0\nleast,1\nmost,1e9\nfits,1\n",
         "own:10: form: the fit above foretells nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_profile untouched = {.fit_count = 77};
        pc_error error = {0};
        assert_int_equal(pc_profile_text_read(cases[i].text, "own", &untouched, &error), PC_ERROR_INPUT);
        if (strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("case %zu: %s", i, error.message);
        assert_int_equal(untouched.fit_count, 77);
    }
}

static void reading_and_writing_may_be_refused_memory(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "own"}};
    add_products(&profile);
    pc_text text = write_profile(&profile), part = {0};
    for (refusals x = {.most = 50}; next_refusal(&x);) {
        pc_profile found = {0};
        x.code = pc_profile_text_read(text.data, "own", &found, NULL);
        pc_profile_free(&found);
    }
    for (refusals x = {.most = 50}; next_refusal(&x);) {
        pc_text_free(&part);
        part = (pc_text){0};
        x.code = pc_profile_text_write(&profile, &part, NULL);
    }
    assert_string_equal(part.data, text.data);
    pc_text_free(&part);
    pc_text_free(&text);
    pc_profile_free(&profile);
}

/* ---- those that come with pipecast ---- */

enum { BYTES_MOST = 400000 };

static void shipped_profiles_are_whole(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_PROFILES, &count);
    assert_true(count >= 7);
    for (int i = 0; i < count; i++) {
        pc_profile profile;
        pc_error error = {0};
        if (pc_profile_text_read(files[i].text, files[i].name, &profile, &error)) fail_msg("%s", error.message);
        assert_true(strlen(files[i].text) < BYTES_MOST);
        assert_true(profile.device.origin[0] != '\0' && profile.device.gpu[0] != '\0');
        pc_text again = write_profile(&profile);
        assert_string_equal(again.data, files[i].text); /* as make_profiles wrote it */
        pc_text_free(&again);
        pc_profile_free(&profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_answers_as_it_says),
        cmocka_unit_test(a_grid_answers_as_it_says),
        cmocka_unit_test(what_is_read_answers_as_what_was_written),
        cmocka_unit_test(the_same_profile_gives_the_same_text),
        cmocka_unit_test(keys_come_back),
        cmocka_unit_test(names_stay_on_their_line),
        cmocka_unit_test(refused_texts_say_where),
        cmocka_unit_test(reading_and_writing_may_be_refused_memory),
        cmocka_unit_test(shipped_profiles_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
