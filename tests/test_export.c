/* Exports of a trace: out of bounds nowhere, whatever the file says; without memory. What they write is tested from
 * outside, in tests/golden/test_export.py. */
#include "results/export.h"
#include "tests/refusals.h"
#include "tests/store_example.h"

/* --- damage --- */

/* What stands in the trace leads wherever an export follows it. */
static void export_all(const pc_run_row *row, const pc_trace_record *record) {
    pc_error error = {0};
    FILE *sink = fopen("/dev/null", "w");
    assert_non_null(sink);
    pc_code code = pc_export_chrome(row, record, sink, &error);
    assert_true(code == PC_OK || (code == PC_ERROR_INPUT && error.message[0]));
    assert_int_equal(pc_export_csv(row, record, sink, &error), PC_OK);
    for (int sort = 0; sort < PC_EXPORT_SORTS; sort++) {
        bool is_there = sort < PC_EXPORT_LINKS || record->replay.engine.queue_count > 0;
        if (sort == PC_EXPORT_KINDS) is_there = record->memory && record->replay.trace.level_kinds;
        code = pc_export_table((pc_export_sort)sort, record, sink, &error);
        assert_int_equal(code, is_there ? PC_OK : PC_ERROR_INPUT);
    }
    fclose(sink);
}

/* How many traces can be read; of the others it wants an error of the user's input. */
static int read_traces(const pc_results_reader *reader) {
    int count = 0;
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        pc_trace_record record = {0};
        pc_error error = {0};
        pc_code code = pc_results_read_trace(reader, pc_results_row(reader, i)->run, &record, &error);
        assert_true(code == PC_OK || (code == PC_ERROR_INPUT && error.message[0]));
        if (!code) export_all(pc_results_row(reader, i), &record);
        count += !code;
        pc_trace_record_free(&record);
    }
    return count;
}

/* Any number in a trace may be any other where another program wrote it: it is refused, or leads nowhere out of bounds.
 * (What flipped bytes do to HDF5's own tables is HDF5's affair, and what the seal is for.) */
static void odd_values_do_no_harm(void **state) {
    const folder *at = *state;
    char lines[2048];
    long cases = test_cases(40, 200), refused = 0;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    snprintf(lines, sizeof lines,
             "f.close()\n"
             "import random, shutil\n"
             "r = random.Random(6)\n"
             "def damage(t):\n"
             "    if 'engine' in t and r.random() < 0.5: t = t['engine']\n"
             "    known = [n for n in t.attrs if n in ('chunks', 'devices', 'placement')]\n"
             "    name = r.choice(sorted(n for n in t if n != 'engine' and len(t[n])) + known)\n"
             "    odd = [-2, -1, 0, 1, 2, 3, 4, 5]\n"
             "    if name == 'placement':\n"
             "        t.attrs[name] = r.choice(['linear', 'interleaved', 'v', 'bidirectional'])\n"
             "    elif name in t.attrs:\n"
             "        t.attrs[name] = r.choice(odd)\n"
             "    elif t[name].dtype.kind == 'f':\n"
             "        t[name][r.randrange(len(t[name]))] = r.choice(odd + [numpy.nan, numpy.inf, 1e300, 1e-300])\n"
             "    else:\n"
             "        odd = [max(x, 0) for x in odd] if t[name].dtype.kind == 'u' else odd\n"
             "        range_of = numpy.iinfo(t[name].dtype)\n"
             "        t[name][r.randrange(len(t[name]))] = r.choice(odd + [range_of.min, range_of.max])\n"
             "for i in range(%ld):\n"
             "    path = '%s/%%d.h5' %% i\n"
             "    shutil.copy('%s', path)\n"
             "    f = h5py.File(path, 'r+')\n"
             "    for k in range(r.choice([1, 1, 2, 5])): damage(f['traces'][r.choice(['1', '3'])])\n"
             "    f.close()\n",
             cases, at->path, at->file);
    run_h5py(at, "r", lines);
    for (long i = 0; i < cases; i++) {
        char path[160];
        pc_results_reader *reader;
        snprintf(path, sizeof path, "%s/%ld.h5", at->path, i);
        assert_int_equal(pc_results_open(path, &reader, NULL), PC_OK);
        refused += read_traces(reader) < 2;
        pc_results_close(reader);
    }
    assert_true(refused > cases / 5 && refused < cases);
}

/* --- memory --- */

static void every_refused_allocation_of_an_export_is_reported(void **state) {
    const folder *at = *state;
    pc_results_reader *reader;
    pc_trace_record record;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &record, NULL), PC_OK);
    FILE *sink = fopen("/dev/null", "w");
    assert_non_null(sink);
    for (int chrome = 0; chrome < 2; chrome++) {
        refusals x = {.most = 100};
        while (next_refusal(&x))
            x.code = (chrome ? pc_export_chrome : pc_export_csv)(pc_results_row(reader, 0), &record, sink, NULL);
        assert_true(x.tried > (chrome ? 5 : 1)); /* offsets, index, two of transfers, text */
    }
    for (int sort = 0; sort < PC_EXPORT_SORTS; sort++) {
        refusals x = {.most = 100};
        if (sort == PC_EXPORT_KINDS && !record.replay.trace.level_kinds) continue; /* the example is no cluster's */
        while (next_refusal(&x)) x.code = pc_export_table((pc_export_sort)sort, &record, sink, NULL);
        assert_true(x.tried > (sort == PC_EXPORT_LINKS ? 2 : 1)); /* use, text */
    }
    fclose(sink);
    pc_trace_record_free(&record);
    pc_results_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(odd_values_do_no_harm),
        TEST(every_refused_allocation_of_an_export_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
