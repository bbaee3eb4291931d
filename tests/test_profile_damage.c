/* The profile's file: refused where it is damaged, foreign or of the future; no memory. */
#include "tests/profile_example.h"
#include "tests/refusals.h"
#include "tests/store_example.h"

enum { SEAL_SIZE = 35 }; /* "\npipecast-fnv1a64 ", 16 digits, a newline: docs/profile-format.md */

static pc_code write_profile(const char *path, pc_error *error) {
    pc_profile profile;
    pc_code code = make_profile(&profile, error);
    if (code) return code;
    code = pc_profile_write(&profile, path, error);
    pc_profile_free(&profile);
    return code;
}

static void assert_unreadable(const char *path, const char *part) {
    pc_profile profile = {.kernel_count = 77};
    pc_error error = {0};
    if (pc_profile_read(path, &profile, &error) != PC_ERROR_INPUT) fail_msg("%s is read, and has '%s'", path, part);
    assert_int_equal(profile.kernel_count, 77); /* as it was */
    if (!strstr(error.message, path) || !strstr(error.message, part))
        fail_msg("'%s' or '%s' is not in '%s'", path, part, error.message);
}

/* ---- foreign files ---- */

static void what_is_no_profile_is_refused(void **state) {
    const folder *at = *state;
    assert_unreadable(at->file, "No such file");
    assert_unreadable(at->path, "not a regular file; expected a profile");
    assert_unreadable("/dev/zero", "not a regular file");
    write_bytes(at->file, "", 0);
    assert_unreadable(at->file, "is not an HDF5 file; expected a profile of pipecast");
    write_bytes(at->file, "size,time\n1024,7.5\n", 19);
    assert_unreadable(at->file, "not an HDF5 file");
    write_bytes(at->file, "\xff\xd8\xff\xe0\0\x10JFIF\0", 11); /* a JPEG begins so */
    assert_unreadable(at->file, "not an HDF5 file");
    write_bytes(at->file, "\x89HDF\r\n\x1a\n", 8);
    assert_unreadable(at->file, "damaged");
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    assert_unreadable(at->file, "is an HDF5 file of another kind; expected a profile of pipecast");
}

static void profiles_are_no_results(void **state) {
    const folder *at = *state;
    pc_results_reader *reader = NULL;
    pc_error error = {0};
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    assert_int_equal(pc_results_open(at->file, &reader, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "expected a results file"));
}

static void a_newer_profile_is_refused(void **state) {
    const folder *at = *state;
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    run_h5py(at, "r+", "f.attrs['format_version'] = 4");
    assert_unreadable(at->file, "format version 4, from a newer pipecast; this one reads up to 3");
}

static void a_profile_that_cannot_be_written_leaves_what_was_there(void **state) {
    const folder *at = *state;
    char path[200];
    pc_error error = {0};
    snprintf(path, sizeof path, "%s/no/such.h5", at->path);
    assert_int_equal(write_profile(path, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "there is no folder"));
    assert_int_equal(write_profile(at->path, &error), PC_ERROR_INPUT);
    assert_int_equal(count_entries(at->path), 0);
}

/* ---- changed by another program: then there is no seal, and every value is looked at ---- */

static const struct change {
    const char *python, *part;
} changes[] = {
    {"del f['device']", "group 'device'"},
    {"del f['device'].attrs['processors']", "'device/processors'"},
    {"f['device'].attrs['processors'] = -1", "'device/processors'"},
    {"f['device'].attrs['processors'] = 2**40", "'device/processors'"},
    {"f['device'].attrs['processors'] = 'many'", "'device/processors'"},
    {"f['device'].attrs['launch_s'] = float('nan')", "'device/launch_s'"},
    {"f['device'].attrs['launch_s'] = -1e-6", "'device/launch_s'"},
    {"f['device'].attrs['name'] = 'x' * 128", "'device/name'"},
    {"f['device'].attrs['is_complete'] = 2", "'device/is_complete'"},
    {"del f['kernels']", "group 'kernels'"},
    {"del f['kernels/n']", "'kernels/n'"},
    {"del f['kernels/n']; f['kernels/n'] = [1, 2]", "'kernels/n'"},
    {"del f['kernels/n']; f['kernels/n'] = ['a', 'b', 'c']", "'kernels/n'"},
    {"del f['kernels/n']; f['kernels/n'] = h5py.SoftLink('/nowhere')", "'kernels/n'"},
    {"f['kernels/n'][1] = -4", "'kernels/n'"},
    {"f['kernels/median_s'][1] = float('inf')", "'kernels/median_s'"},
    {"f['kernels/q1_s'][1] = float('inf')", "'kernels/q1_s'"},
    {"del f['kernels/role']; f['kernels/role'] = numpy.array([b'sideways'] * 3)", "'kernels/role'"},
    {"del f['kernels/kernel']; f['kernels/kernel'] = numpy.array([b'x' * 48] * 3)", "'kernels/kernel'"},
    {"f['kernels/first_sample'][1] = 6", "'kernels/first_sample'"},
    {"f['kernels/first_sample'][1] = 2**62", "'kernels/first_sample'"},
    {"f['kernels/samples'][1] = 2**63 - 1", "'kernels/first_sample'"},
    {"f['transfers/first_sample'][0] = 7", "'transfers/first_sample'"},
    {"f['transfers/ranks'][0] = -1", "'transfers/ranks'"},
    {"f['samples/seconds'][0] = float('nan')", "'samples/seconds'"},
    {"del f['samples/seconds']; f['samples/seconds'] = [[1.0]]", "'samples/seconds'"},
    {"del f['kernels/kernel']\nf.create_dataset('kernels/kernel', (2**50,), dtype='S4', chunks=(2**20,))",
     "'kernels/kernel'"},
    {"f['fits'].attrs['count'] = 3", "'fits/2'"},
    {"f['fits'].attrs['count'] = -1", "'fits/count'"},
    {"f['fits/0'].attrs['form'] = 'cubic'", "'fits/0/form'"},
    {"f['fits/0'].attrs['form'] = 'transfer'", "'fits/0/dimensions'"},
    {"f['fits/0'].attrs['parameter_count'] = 25", "'fits/0/parameter_count'"},
    {"f['fits/0'].attrs['parameter_count'] = 3", "'fits/0/parameter_count'"},
    {"f['fits/0'].attrs['processors'] = 0", "'fits/0/parameter_count'"},
    {"f['fits/1'].attrs['parameter_count'] = 24", "'fits/1/parameter_count'"},
    {"f['fits/1'].attrs['parameter_count'] = 19", "'fits/1/parameter_name'"},
    {"f['fits/0/parameter_name'][1] = b'\\x1b[31mramp'",
     "'fits/0/parameter_name': row 2 says '?[31mramp'; expected 'ramp'"},
    {"f['fits/0/parameter_name'][2] = b''", "'fits/0/parameter_name': row 3 says ''; expected 'memory'"},
    {"f['fits/0/parameter_unit'][3] = b'ms'", "'fits/0/parameter_unit': row 4 says 'ms'; expected 's'"},
    {"f['fits/1/parameter_name'][3] = b'begin 1'", "'fits/1/parameter_name': row 4 says 'begin 1'; expected 'begin 2'"},
    {"f['fits/1/parameter_name'][61] = b'scatter 15'", "row 62 says 'scatter 15'; expected 'beta 16'"},
    {"f['fits/1/parameter_unit'][2] = b'=cmd|x,\"'", "'fits/1/parameter_unit': row 3 says '=cmd|x,\"'; expected ''"},
    {"f['replays/0/kind'][1] = b'\\x1b[m'", "'replays/0/kind': row 2 says '?[m'; expected F, B, W, BW or R"},
    {"f['replays/0/kind'][0] = b''", "'replays/0/kind': row 1 says ''"},
    {"f['fits/0/parameter_value'][...] = -1", "'fits/0/parameter_value'"},
    {"f['fits/0/parameter_value'][2] = float('nan')", "'fits/0/parameter_value'"},
    {"f['fits/0/parameter_value'][0] = -1", "'fits/0/parameter_value'"},
    {"f['fits/0/covariance'][2] = float('inf')", "'fits/0/covariance'"},
    {"f['fits/0/m'][2] = 0", "'fits/0/m'"},
    {"f['fits/0/least'][2] = 0", "'fits/0/least'"},
    {"f['fits/0/least'][2] = 0.5", "'fits/0/least'"},
    {"f['fits/0/least'][2] = 103.5", "'fits/0/least'"},
    {"f['fits/0/least'][2] = 2.0**25; f['fits/0/most'][2] = 2.0**26", "'fits/0/least'"},
    {"f['fits/0/most'][2] = 1e213", "'fits/0/least'"},
    {"f['fits/1/most'][0] = 1e300", "'fits/1/least'"},
    {"f['fits/0/seconds'][2] = -1", "'fits/0/seconds'"},
    {"f['fits/0/weight'][2] = float('nan')", "'fits/0/weight'"},
    {"del f['fits/0/weight']; f['fits/0/weight'] = [1.0]", "'fits/0/weight'"},
    {"f['fits/0'].attrs['residual_deviation'] = -0.5", "'fits/0/residual_deviation'"},
    {"del f.attrs['has_tuning']", "'has_tuning'"},
    {"f.attrs['has_tuning'] = 2", "'has_tuning'"},
    {"f['kernels/experts'][1] = -1", "'kernels/experts'"},
    {"del f['kernels/site']; f['kernels/site'] = [1, 2, 3]", "'kernels/site'"},
    {"del f['transfers/sms']; f['transfers/sms'] = [1]", "'transfers/sms'"},
    {"del f['tuning/value']", "'tuning/value'"},
    {"del f['tuning'].attrs['rows']", "'tuning/rows'"},
    {"f['tuning'].attrs['rows'] = -1", "'tuning/rows'"},
    {"f['tuning'].attrs['scatter'] = float('nan')", "'tuning/scatter'"},
    {"f['tuning'].attrs['before_mean'] = -2.0", "'tuning/before_mean'"},
    {"f['tuning/value'][0] = float('nan')", "'tuning/value'"},
    {"f['tuning/value'][0] = 0", "'tuning/value': gemm is 0; expected 0.2 to 5"},
    {"f['tuning/value'][5] = 1.5", "'tuning/value': overlap is 1.5; expected -1 to 1"},
    {"f['tuning/name'][1] = b'gemm'", "'tuning/name': row 2 says 'gemm'; expected 'attention'"},
    {"f['tuning/is_fitted'][1] = 2", "'tuning/is_fitted'"},
    {"x = f['tuning/value'][:6]\ndel f['tuning/value']\nf['tuning/value'] = x", "'tuning/value'"},
    {"del f['tuning']", "group 'tuning'"},
    {"del f['replays/0/kind']; f['replays/0/kind'] = numpy.array([b'F'] * 3)", "'replays/0/count'"},
    {"for n in ('kind', 'count', 'measured_s', 'simulated_s'):\n"
     "    x = f['replays/0/' + n][:1]\n    del f['replays/0/' + n]\n    f['replays/0/' + n] = numpy.repeat(x, 9)",
     "'replays/0/kind'"},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static void values_out_of_range_are_refused(void **state) {
    const folder *at = *state;
    char lines[20480];
    int used = snprintf(lines, sizeof lines, "f.close()\nimport shutil\n");
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    for (int i = 0; i < CHANGES; i++)
        used += snprintf(lines + used, sizeof lines - (size_t)used,
                         "shutil.copy('%s', '%s/%d.h5')\nf = h5py.File('%s/%d.h5', 'r+')\n%s\nf.close()\n", at->file,
                         at->path, i, at->path, i, changes[i].python);
    assert_true((size_t)used < sizeof lines);
    run_h5py(at, "r", lines);
    for (int i = 0; i < CHANGES; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_unreadable(path, changes[i].part);
    }
}

/* A file that another program changed, and left as good as it was, is read. */
static void a_harmless_change_is_fine(void **state) {
    const folder *at = *state;
    pc_profile profile;
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    run_h5py(at, "r+", "f['device'].attrs['name'] = 'Another'\nf['kernels/extra'] = [1]");
    assert_int_equal(pc_profile_read(at->file, &profile, NULL), PC_OK);
    assert_string_equal(profile.device.name, "Another");
    pc_profile_free(&profile);
}

/* ---- damage ---- */

static bool reads_well(const char *path) {
    pc_profile profile;
    pc_error error = {0};
    pc_code code = pc_profile_read(path, &profile, &error);
    assert_true(code == PC_OK || (code == PC_ERROR_INPUT && error.message[0]));
    if (!code) pc_profile_free(&profile);
    return !code;
}

/* A file cut anywhere is refused, but for one that lacks exactly the seal. */
static void truncated_files_are_refused(void **state) {
    const folder *at = *state;
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    size_t image = whole.size - SEAL_SIZE;
    long cuts = 0;
    for (size_t size = 0; size < whole.size; size += size < 100 || size > image - 40 ? 1 : 197, cuts++) {
        write_bytes(at->file, whole.data, size);
        assert_int_equal(reads_well(at->file), size == image);
    }
    test_count("damage.profile", cuts);
    free(whole.data);
}

static void flipped_bytes_are_noticed(void **state) {
    const folder *at = *state;
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    test_random random = {1};
    long flips = 0;
    for (size_t i = 0; i < whole.size; i += i < 100 || i > whole.size - 100 ? 1 : 197, flips++) {
        char flip = (char)test_between(&random, 1, 255);
        whole.data[i] ^= flip;
        write_bytes(at->file, whole.data, whole.size);
        assert_false(reads_well(at->file));
        whole.data[i] ^= flip;
    }
    test_count("damage.profile", flips);
    free(whole.data);
}

/* ---- memory ---- */

static void every_refused_allocation_of_the_writer_is_reported(void **state) {
    const folder *at = *state;
    for (refusals x = {0}; next_refusal(&x);) {
        x.code = write_profile(at->file, NULL);
        assert_int_equal(count_entries(at->path), x.code == PC_OK);
    }
}

static void every_refused_allocation_of_the_reader_is_reported(void **state) {
    const folder *at = *state;
    assert_int_equal(write_profile(at->file, NULL), PC_OK);
    for (refusals x = {0}; next_refusal(&x);) {
        pc_profile profile;
        x.code = pc_profile_read(at->file, &profile, NULL);
        if (!x.code) pc_profile_free(&profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_profile_is_refused),
        TEST(profiles_are_no_results),
        TEST(a_newer_profile_is_refused),
        TEST(a_profile_that_cannot_be_written_leaves_what_was_there),
        TEST(values_out_of_range_are_refused),
        TEST(a_harmless_change_is_fine),
        TEST(truncated_files_are_refused),
        TEST(flipped_bytes_are_noticed),
        TEST(every_refused_allocation_of_the_writer_is_reported),
        TEST(every_refused_allocation_of_the_reader_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
