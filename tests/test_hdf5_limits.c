/* HDF5 files that ask for what a results file or a profile has no need of: other files, filters from elsewhere, more
 * memory than they are long. Each is made by h5py, so that it has no seal, of a file that is fine. */
#include "calib/profile/profile.h"
#include "storage/h5.h"
#include "tests/profile_example.h"
#include "tests/store_example.h"

/* A piece of Python over `f`, and what the message of the refusal names. `other` is another file, which is fine. */
typedef struct request {
    const char *python, *part;
} request;

/* Copies of `good`, "<folder>/0.h5" and on, each with its change; all of them in one start of Python. */
static void make_copies(const folder *at, const char *good, const request *requests, size_t count) {
    char lines[16384];
    int used = snprintf(lines, sizeof lines,
                        "f.close()\nimport shutil\nother = '%s/other.h5'\nshutil.copy('%s', other)\n", at->path, good);
    for (size_t i = 0; i < count; i++)
        used += snprintf(lines + used, sizeof lines - (size_t)used,
                         "shutil.copy('%s', '%s/%zu.h5')\nf = h5py.File('%s/%zu.h5', 'r+')\n%s\nf.close()\n", good,
                         at->path, i, at->path, i, requests[i].python);
    assert_true((size_t)used < sizeof lines);
    run_h5py(at, "r", lines);
}

static void assert_named(const pc_error *error, const request *asked) {
    if (!strstr(error->message, asked->part))
        fail_msg("'%s' is not in '%s', after: %s", asked->part, error->message, asked->python);
}

/* A chunk of 64 MiB and one number; compressed twice; by a filter that only h5py has; data in other files. */
#define HUGE_CHUNK(group, name)                                                                                        \
    "x = f['" group "/" name "'][...]; del f['" group "/" name "']\n"                                                  \
    "f['" group "'].create_dataset('" name                                                                             \
    "', data=x, maxshape=(None,), chunks=(2**23 + 1,), compression='gzip', compression_opts=1)"
#define TWICE(group, name)                                                                                             \
    "x = f['" group "/" name "'][...]; del f['" group "/" name "']\n"                                                  \
    "p = h5py.h5p.create(h5py.h5p.DATASET_CREATE); p.set_chunk((len(x),)); p.set_deflate(9); p.set_deflate(9)\n"       \
    "d = h5py.h5d.create(f['" group "'].id, b'" name                                                                   \
    "', h5py.h5t.py_create(x.dtype), h5py.h5s.create_simple(x.shape), p)\n"                                            \
    "d.write(h5py.h5s.ALL, h5py.h5s.ALL, x)"
#define FILTER(group, name)                                                                                            \
    "x = f['" group "/" name "'][...]; del f['" group "/" name "']\n"                                                  \
    "f['" group "'].create_dataset('" name "', data=x, compression='lzf')"
#define ELSEWHERE(group, name)                                                                                         \
    "x = f['" group "/" name "'][...]; del f['" group "/" name "']\n"                                                  \
    "x.tofile(other + '.raw')\n"                                                                                       \
    "f['" group "'].create_dataset('" name "', x.shape, x.dtype, external=[(other + '.raw', 0, x.nbytes)])"
#define VIRTUAL(group, name)                                                                                           \
    "x = f['" group "/" name "']; v = h5py.VirtualLayout(x.shape, x.dtype)\n"                                          \
    "v[...] = h5py.VirtualSource(other, '" group "/" name "', x.shape, x.dtype); del f['" group "/" name "']\n"        \
    "f['" group "'].create_virtual_dataset('" name "', v)"
#define LINKED(path) "del f['" path "']; f['" path "'] = h5py.ExternalLink(other, '/" path "')"
#define LINKED_TWICE(path)                                                                                             \
    "del f['" path "']; f['out'] = h5py.ExternalLink(other, '/" path "'); f['" path "'] = h5py.SoftLink('/out')"
#define FULL(group, name, type)                                                                                        \
    "del f['" group "/" name "']\n"                                                                                    \
    "f['" group "'].create_dataset('" name "', data=numpy.zeros(2**19, " type                                          \
    "), chunks=(2**15,), compression='gzip', compression_opts=9)"

/* ---- results ---- */

static const request of_results[] = {
    {LINKED("runs"), "group /runs"},
    {LINKED_TWICE("runs"), "group /runs"},
    {LINKED("runs/mfu"), "/runs/mfu"},
    {LINKED_TWICE("runs/mfu"), "/runs/mfu"},
    {ELSEWHERE("runs", "mfu"), "/runs/mfu"},
    {VIRTUAL("runs", "mfu"), "/runs/mfu"},
    {FILTER("runs", "mfu"), "/runs/mfu"},
    {TWICE("runs", "mfu"), "/runs/mfu"},
    {HUGE_CHUNK("runs", "mfu"), "/runs/mfu"},
    {FULL("runs", "run", "'i8'"), "/runs/run has 524288 runs, more than the file can hold"},
};

static void results_stay_within_their_file(void **state) {
    enum { COUNT = sizeof of_results / sizeof of_results[0] };
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    make_copies(at, at->file, of_results, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        pc_results_reader *reader = NULL;
        pc_error error = {0};
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        if (pc_results_open(path, &reader, &error) != PC_ERROR_INPUT) fail_msg("read: %s", of_results[i].python);
        assert_named(&error, &of_results[i]);
    }
}

static const request of_traces[] = {
    {LINKED("traces"), "the trace of run 1 is damaged"},      {LINKED("traces/1"), "the trace of run 1 is damaged"},
    {LINKED("traces/1/pass_end_ps"), "pass_end_ps"},          {ELSEWHERE("traces/1", "pass_end_ps"), "pass_end_ps"},
    {VIRTUAL("traces/1", "pass_end_ps"), "pass_end_ps"},      {TWICE("traces/1", "pass_end_ps"), "pass_end_ps"},
    {FULL("traces/1", "pass_end_ps", "'i8'"), "pass_end_ps"},
};

static void traces_stay_within_their_file(void **state) {
    enum { COUNT = sizeof of_traces / sizeof of_traces[0] };
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    make_copies(at, at->file, of_traces, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        pc_results_reader *reader = NULL;
        pc_trace_record record;
        pc_error error = {0};
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_int_equal(pc_results_open(path, &reader, &error), PC_OK);
        if (pc_results_read_trace(reader, 1, &record, &error) != PC_ERROR_INPUT)
            fail_msg("read: %s", of_traces[i].python);
        assert_named(&error, &of_traces[i]);
        pc_results_close(reader);
    }
}

static const request of_scenarios[] = {
    {LINKED("scenarios"), "no scenario 'zero-bubble'"},
    {LINKED("scenarios/zero-bubble"), "no scenario 'zero-bubble'"},
    {"s = f['scenarios']; del s['zero-bubble']\n"
     "d = s.create_dataset('zero-bubble', (), 'S18', external=[('/etc/passwd', 0, 18)])\n"
     "d.attrs['name'] = 'zero-bubble'",
     "scenario 'zero-bubble' is damaged"},
    {"s = f['scenarios']; del s['zero-bubble']\n"
     "v = h5py.VirtualLayout((1,), 'S18'); v[...] = h5py.VirtualSource(other, 'scenarios/zero-bubble', (1,), 'S18')\n"
     "d = s.create_virtual_dataset('zero-bubble', v)\nd.attrs['name'] = 'zero-bubble'",
     "scenario 'zero-bubble' is damaged"},
};

static void scenarios_stay_within_their_file(void **state) {
    enum { COUNT = sizeof of_scenarios / sizeof of_scenarios[0] };
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    make_copies(at, at->file, of_scenarios, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160], *text = NULL;
        size_t size;
        pc_results_reader *reader = NULL;
        pc_error error = {0};
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_int_equal(pc_results_open(path, &reader, &error), PC_OK);
        if (pc_results_scenario_text(reader, "zero-bubble", &text, &size, &error) != PC_ERROR_INPUT)
            fail_msg("read: %s", of_scenarios[i].python);
        assert_named(&error, &of_scenarios[i]);
        pc_results_close(reader);
    }
}

/* ---- profiles ---- */

static const request of_profiles[] = {
    {LINKED("device"), "group 'device'"},
    {LINKED("kernels"), "group 'kernels'"},
    {LINKED("fits"), "group 'fits'"},
    {LINKED("fits/0"), "'fits/0'"},
    {LINKED_TWICE("fits/0"), "'fits/0'"},
    {LINKED("kernels/n"), "'kernels/n'"},
    {ELSEWHERE("kernels", "n"), "'kernels/n'"},
    {VIRTUAL("samples", "seconds"), "'samples/seconds'"},
    {FILTER("samples", "seconds"), "'samples/seconds'"},
    {TWICE("samples", "seconds"), "'samples/seconds'"},
    {HUGE_CHUNK("samples", "seconds"), "'samples/seconds'"},
    {FULL("kernels", "kernel", "'S4'"), "'kernels/kernel'"},
    {"f['fits'].attrs['count'] = 2**40", "'fits/count'"},
    {"f['fits'].attrs['count'] = 65537", "'fits/count'"},
    /* One fit of a million points under many names: each alone would do. */
    {"g = f['fits/1']\n"
     "for n in ('bytes', 'seconds', 'residual'):\n"
     "    del g[n]\n"
     "    g.create_dataset(n, data=numpy.ones(2**20), chunks=(2**15,), compression='gzip')\n"
     "for i in range(2, 100): f['fits/%d' % i] = g\n"
     "f['fits'].attrs['count'] = 100",
     "/seconds'"},
};

static void profiles_stay_within_their_file(void **state) {
    enum { COUNT = sizeof of_profiles / sizeof of_profiles[0] };
    const folder *at = *state;
    pc_profile profile;
    assert_int_equal(make_profile(&profile, NULL), PC_OK);
    assert_int_equal(pc_profile_write(&profile, at->file, NULL), PC_OK);
    pc_profile_free(&profile);
    make_copies(at, at->file, of_profiles, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        pc_error error = {0};
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        if (pc_profile_read(path, &profile, &error) != PC_ERROR_INPUT) fail_msg("read: %s", of_profiles[i].python);
        assert_named(&error, &of_profiles[i]);
    }
}

/* ---- what is still read, and what is not loaded ---- */

/* Another program's layouts, checksums and compression are fine. */
static void other_programs_columns_are_read(void **state) {
    const folder *at = *state;
    pc_results_reader *reader = NULL;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r+",
             "x = f['runs/mfu'][...]; del f['runs/mfu'], f['runs/hfu'], f['runs/gpus']\n"
             "f['runs'].create_dataset('mfu', data=x * 0 + 0.5, chunks=(2,), shuffle=True, fletcher32=True, "
             "compression='gzip')\n"
             "f['runs/hfu'] = x * 0 + 0.25\n"
             "f['elsewhere'] = [8, 9, 10]; f['runs/gpus'] = f['elsewhere']\n");
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_row(reader, 2)->gpus, 10);
    pc_results_close(reader);
}

/* While a file is read HDF5 may load no plugins; behind it, as before. */
static void no_plugins_are_loaded(void **state) {
    (void)state;
    unsigned before = 0, within = 1, behind = 0;
    assert_true(H5PLset_loading_state(H5PL_ALL_PLUGIN) >= 0);
    assert_true(H5PLget_loading_state(&before) >= 0);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    assert_true(H5PLget_loading_state(&within) >= 0);
    pc_h5_quiet_end(quiet);
    assert_true(H5PLget_loading_state(&behind) >= 0);
    assert_int_equal(within, 0);
    assert_int_equal(behind, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(results_stay_within_their_file),   TEST(traces_stay_within_their_file),
        TEST(scenarios_stay_within_their_file), TEST(profiles_stay_within_their_file),
        TEST(other_programs_columns_are_read),  TEST(no_plugins_are_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
