/* The profile's file: what is written comes back, here and in h5py; the same profile, the same bytes; its hash; whose
 * it is. */
#include "calib/profile/profile_cost.h"
#include "tests/profile_example.h"
#include "tests/refusals.h"
#include "tests/store_example.h"

#include <math.h>

static pc_profile example_profile(void) {
    pc_profile profile;
    assert_int_equal(make_profile(&profile, NULL), PC_OK);
    return profile;
}

static void samples_stand_behind_each_other(void **state) {
    (void)state;
    pc_profile profile = example_profile();
    assert_int_equal(profile.sample_count, 3 + 2 + 3);
    assert_int_equal(profile.kernel[0].first_sample, 0);
    assert_int_equal(profile.transfer[0].first_sample, 3);
    assert_int_equal(profile.kernel[1].first_sample, 5);
    assert_int_equal(profile.kernel[2].first_sample, -1);
    assert_int_equal(profile.transfer[1].first_sample, -1);
    assert_true(profile.sample[5] == 1.25e-3 && profile.sample[3] == 1e-6);
    pc_profile_free(&profile);
    assert_null(profile.kernel);
    pc_profile_free(&profile);
}

/* Kernels come before transfers: of the other's eight samples three are the first kernel's, then three the second's,
 * and its third has none. */
static void what_another_measured_is_added(void **state) {
    (void)state;
    pc_profile other = example_profile(), profile = example_profile();
    assert_int_equal(pc_profile_append(&profile, &other, NULL), PC_OK);
    assert_int_equal(profile.kernel_count, 3 + 3);
    assert_int_equal(profile.transfer_count, 2 + 2);
    assert_int_equal(profile.replay_count, 1 + 1);
    assert_int_equal(profile.fit_count, other.fit_count);
    assert_int_equal(profile.sample_count, 8 + 8);
    assert_int_equal(profile.kernel[3].first_sample, 8);
    assert_int_equal(profile.kernel[4].first_sample, 8 + 3);
    assert_int_equal(profile.kernel[5].first_sample, -1);
    assert_int_equal(profile.transfer[2].first_sample, 8 + 3 + 3);
    assert_memory_equal(profile.sample + 8 + 3, other.sample + 5, 3 * sizeof *other.sample);
    pc_profile_free(&profile);
    for (refusals x = {.most = 20}; next_refusal(&x);) {
        pc_error error;
        pc_profile nothing = {0};
        x.code = pc_profile_append(&nothing, &other, &error);
        if (x.code)
            assert_int_equal(
                nothing.kernel_count + nothing.transfer_count + nothing.replay_count + nothing.sample_count, 0);
        pc_profile_free(&nothing);
    }
    pc_profile_free(&other);
}

static void what_is_written_comes_back(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    pc_profile profile = example_profile(), found;
    assert_int_equal(pc_profile_write(&profile, at->file, &error), PC_OK);
    assert_int_equal(count_entries(at->path), 1);
    if (pc_profile_read(at->file, &found, &error)) fail_msg("%s", error.message);
    assert_true(profiles_equal(&profile, &found));
    pc_profile_free(&found);
    pc_profile_free(&profile);
}

/* A collective measured from 64 MiB to 1 TiB, 1 us and 100 GB/s of ranks alike: its smallest size is no side of a
 * shape. With a grid, of which each number comes back; a grid whose values are powers of ten is refused. */
static void large_messages_come_back(void **state) {
    const folder *at = *state;
    const pc_fit_key key = {
        .form = PC_FIT_LAW, .subject = "all_gather", .link = "nvlink", .nodes = 1, .library = "nccl"};
    double points[2 * 48], seconds[48];
    pc_fit fit;
    pc_error error = {0};
    pc_profile profile = {0}, found;
    for (int i = 0; i < 48; i++) {
        points[2 * i] = ldexp(1.0, 26 + i % 16);
        points[2 * i + 1] = 2 << i / 16;
        seconds[i] = 1e-6 + points[2 * i] / 1e11;
    }
    if (pc_fit_make(&key, 0, points, seconds, 48, &fit, &error)) fail_msg("%s", error.message);
    fit.grid = (pc_log_grid){.axes = 1, .nodes = {2}, .place = {{18.0, 22.0}}, .value = pc_alloc(2, sizeof(double))};
    fit.grid.value[1] = 0.125;
    assert_int_equal(pc_profile_add_fit(&profile, &fit, NULL), PC_OK);
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    if (pc_profile_read(at->file, &found, &error)) fail_msg("%s", error.message);
    assert_true(found.fit[0].least[0] == 0x1p26 && found.fit[0].most[0] == 0x1p41);
    assert_true(found.fit[0].grid.nodes[0] == 2 && found.fit[0].grid.value[1] == 0.125);
    pc_profile_free(&found);
    profile.fit[0].grid.value[0] = -31.0;
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    assert_int_equal(pc_profile_read(at->file, &found, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "'fits/0/grid_value'"));
    pc_profile_free(&profile);
}

static void a_profile_may_be_empty(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    pc_profile nothing = {0}, found;
    assert_int_equal(pc_profile_write(&nothing, at->file, &error), PC_OK);
    if (pc_profile_read(at->file, &found, &error)) fail_msg("%s", error.message);
    assert_true(profiles_equal(&nothing, &found));
    assert_false(found.device.is_complete);
    pc_profile_free(&found);
}

/* Rooms and what lies behind the end of a text do not count. */
static void the_same_profile_gives_the_same_bytes(void **state) {
    const folder *at = *state;
    pc_profile profile = example_profile(), found;
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    bytes first = read_bytes(at->file);
    assert_int_equal(pc_profile_read(at->file, &found, NULL), PC_OK);
    memset(found.device.driver + 4, 'x', sizeof found.device.driver - 4);
    memset(found.kernel[1].function + strlen(found.kernel[1].function) + 1, 'y', 10);
    assert_int_equal(pc_profile_write(&found, at->file, NULL), PC_OK);
    bytes second = read_bytes(at->file);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    free(first.data);
    free(second.data);
    pc_profile_free(&found);
    pc_profile_free(&profile);
}

static void h5py_reads_all_of_it(void **state) {
    const folder *at = *state;
    pc_profile profile = example_profile();
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    pc_profile_free(&profile);
    run_h5py(
        at, "r",
        "assert f.attrs['format'] == 'pipecast-profile' and f.attrs['format_version'] == 3 and f.attrs['has_tuning'] "
        "== 1\n"
        "d = f['device'].attrs\n"
        "assert d['name'] == 'Example GPU 80GB' and d['processors'] == 132 and d['is_complete'] == 1\n"
        "assert d['blas'] == '' and d['copy_bytes_per_s'] == 2.5e12 and numpy.isnan(d['sm_clock_hz'])\n"
        "k = f['kernels']\n"
        "assert list(k['m']) == [1, 2, 2] and k['k'][0] == 2**40 and k['flops'][0] == 2**63 - 1\n"
        "assert k['role'][0] == b'weight_gradient' and k['cache'][0] == b'hot' and k['kind'][0] == b'gemm'\n"
        "assert k['function'][0].decode() == 'a kernel \\u00e9' and k['registers'][0] == -1\n"
        "assert k['median_s'].attrs['unit'] == 's' and k['median_s'].attrs['description']\n"
        "assert numpy.isnan(k['p95_s'][0]) and k['p95_s'].attrs['missing'] == 'NaN'\n"
        "s = f['samples/seconds']\n"
        "assert list(s[k['first_sample'][1]:][:k['samples'][1]]) == [1.25e-3, 1.75e-3, 1e-6]\n"
        "t = f['transfers']\n"
        "assert list(t['size_bytes']) == [1024, 2048] and t['collective'][0] == b'all_reduce'\n"
        "g = f['fits/0']\n"
        "assert f['fits'].attrs['count'] == 2 and g.attrs['form'] == 'gemm' and g.attrs['cache'] == 'hot'\n"
        "assert g.attrs['subject'] == 'gemm_forward' and g.attrs['cv_median'] == 0.03\n"
        "n = g.attrs['parameter_count']\n"
        "c = g['covariance'][:].reshape(n, n)\n"
        "assert numpy.allclose(numpy.sqrt(c.diagonal()), g['parameter_standard_error'][:]) and c[0, 1] == 0.125\n"
        "assert g['parameter_name'][1] == b'ramp' and g['parameter_unit'][1] == b'k'\n"
        "assert list(g['n']) == [3 + 4 * i for i in range(7)] and list(g['weight'])[0] == -3\n"
        "assert 'weight' not in f['fits/1'] and list(f['fits/1/bytes']) == [1, 2, 3]\n"
        "r = f['replays/0']\n"
        "assert r.attrs['schedule'] == 'zb-1p' and list(r['kind']) == [b'F', b'BW'] and r['count'][1] == 24\n"
        "u = f['tuning']\n"
        "assert u.attrs['source'] == 'measured.csv' and u.attrs['rows'] == 12 and u.attrs['after_median'] == 0.02\n"
        "assert numpy.isnan(u.attrs['unseen_mean']) and list(u['name'])[:2] == [b'gemm', b'attention']\n"
        "assert list(u['value']) == [1.125, 1, 1, 1, 1, -0.25, 0] and list(u['is_fitted']) == [1, 0, 0, 0, 0, 1, 0]\n"
        "assert list(u['is_determined'])[:1] == [1] and u['standard_error'][5] == 0.09\n"
        "def check(name, x):\n"
        "    assert not isinstance(x, h5py.Dataset) or ('unit' in x.attrs and x.attrs['description']), name\n"
        "f.visititems(check)\n");
}

static void a_profile_may_have_no_tuning(void **state) {
    const folder *at = *state;
    pc_profile profile = example_profile(), read;
    profile.tuning = (pc_tuning){0};
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    run_h5py(at, "r", "assert f.attrs['has_tuning'] == 0 and 'tuning' not in f\n");
    assert_int_equal(pc_profile_read(at->file, &read, NULL), PC_OK);
    assert_true(profiles_equal(&profile, &read) && !read.tuning.is_there);
    pc_profile_free(&read);
    pc_profile_free(&profile);
}

/* What versions 1 and 2 did not have; of version 1 the tuning either. */
static const char before_version_3[] =
    "del f.attrs['has_tuning']\n"
    "for c in 'out_dtype library library_version site variant window experts topk moe_tp moe_ep'.split():\n"
    "    del f['kernels/' + c]\n"
    "for c in 'dtype library library_version site hidden tokens topk experts sms'.split():\n"
    "    del f['transfers/' + c]\n";

static void check_older(const folder *at, const pc_profile *profile, const char *change, bool is_tuned) {
    pc_profile read;
    pc_error error = {0};
    assert_int_equal(pc_profile_write(profile, at->file, NULL), PC_OK);
    run_h5py(at, "r+", before_version_3);
    run_h5py(at, "r+", change);
    if (pc_profile_read(at->file, &read, &error)) fail_msg("%s", error.message);
    assert_int_equal(read.tuning.is_there, is_tuned);
    assert_string_equal(read.kernel[0].dtype, "bf16");
    assert_true(read.kernel[0].m == 1 && read.kernel[0].experts == 0 && read.transfer[0].sms == 0);
    assert_string_equal(read.kernel[0].site, "");
    assert_string_equal(read.transfer[0].library, "");
    pc_profile_free(&read);
}

static void older_profiles_are_read(void **state) {
    pc_profile profile = example_profile();
    check_older(*state, &profile, "f.attrs['format_version'] = 2\n", true);
    check_older(*state, &profile, "f.attrs['format_version'] = 1\ndel f['tuning']\n", false);
    pc_profile_free(&profile);
}

/* ---- the hash ---- */

static void assert_hash(const pc_profile *profile, const char *other, bool is_same) {
    char hash[17];
    pc_profile_hash(profile, hash);
    assert_int_equal(strlen(hash), 16);
    assert_true((strcmp(hash, other) == 0) == is_same);
}

static void the_hash_is_of_what_counts(void **state) {
    (void)state;
    char hash[17];
    pc_profile x = example_profile();
    pc_profile_hash(&x, hash);
    assert_hash(&x, hash, true);
    snprintf(x.device.origin, sizeof x.device.origin, "elsewhere");
    snprintf(x.device.driver, sizeof x.device.driver, "9.9");
    x.kernel[0].seconds.median *= 2.0; /* no fit was made of it yet */
    assert_hash(&x, hash, true);
#define CHANGE(place, value)                                                                                           \
    do {                                                                                                               \
        double before = (double)(place);                                                                               \
        (place) = (value);                                                                                             \
        assert_hash(&x, hash, false);                                                                                  \
        *&(place) = (__typeof__(place))before;                                                                         \
        assert_hash(&x, hash, true);                                                                                   \
    } while (0)
    CHANGE(x.device.launch_s, 5e-6);
    CHANGE(x.device.processors, 131);
    CHANGE(x.fit[0].parameter[3], 1.0);
    CHANGE(x.fit[0].covariance[15], 1.0);
    CHANGE(x.fit[0].x[27], 5.0);
    CHANGE(x.fit[0].weight[6], 5.0);
    CHANGE(x.fit[1].key.ranks, 4);
    CHANGE(x.fit[1].key.subject[3], 'x');
    CHANGE(x.fit[1].residual_deviation, 0.5);
    CHANGE(x.fit_count, 1);
    CHANGE(x.device.name[0], 'e');
    CHANGE(x.tuning.number[PC_TUNED_MEMORY].value, 1.5);
    x.tuning.rows = 13; /* to whom it was fitted changes nothing */
    assert_hash(&x, hash, true);
    pc_profile_free(&x);
}

/* ---- whose profile it is ---- */

static void profiles_are_of_one_gpu(void **state) {
    (void)state;
    static const struct {
        const char *name, *gpu, *wanted;
        bool fits;
    } cases[] = {
        {"NVIDIA A100-SXM4-80GB", "", "a100-sxm-80gb", true},
        {"NVIDIA A100-SXM4-40GB", "", "a100-sxm-80gb", false},
        {"NVIDIA A100 80GB PCIe", "", "a100-pcie-80gb", true},
        {"NVIDIA A100 80GB PCIe", "", "a100-sxm-80gb", false},
        {"NVIDIA H100 80GB HBM3", "", "h100-sxm", true},
        {"NVIDIA H100 PCIe", "", "h100-sxm", false},
        {"NVIDIA H200", "", "h200-sxm", true},
        {"NVIDIA H200 NVL", "", "h200-sxm", false},
        {"NVIDIA H200", "", "h100-sxm", false},
        {"NVIDIA B200", "", "b200", true},
        {"NVIDIA GB200", "", "b200", false},
        {"AMD Instinct MI300X", "", "mi300x", true},
        {"NVIDIA H100 80GB HBM3", "h200-sxm", "h100-sxm", false},
        {"whatever", "H100-SXM", "h100-sxm", true},
        {"", "", "h100-sxm", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_profile profile = {0};
        pc_error error = {0};
        snprintf(profile.device.name, sizeof profile.device.name, "%s", cases[i].name);
        snprintf(profile.device.gpu, sizeof profile.device.gpu, "%s", cases[i].gpu);
        pc_code code = pc_profile_check_gpu(&profile, cases[i].wanted, &error);
        if (code != (cases[i].fits ? PC_OK : PC_ERROR_INPUT)) fail_msg("%s, %s", cases[i].name, cases[i].wanted);
        if (cases[i].fits) continue;
        assert_non_null(strstr(error.message, cases[i].wanted));
        assert_non_null(strstr(error.message, cases[i].gpu[0] ? cases[i].gpu : cases[i].name));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(samples_stand_behind_each_other),
        TEST(what_is_written_comes_back),
        TEST(large_messages_come_back),
        TEST(a_profile_may_be_empty),
        TEST(the_same_profile_gives_the_same_bytes),
        TEST(h5py_reads_all_of_it),
        TEST(a_profile_may_have_no_tuning),
        TEST(older_profiles_are_read),
        TEST(the_hash_is_of_what_counts),
        cmocka_unit_test(profiles_are_of_one_gpu),
        cmocka_unit_test(what_another_measured_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
