/* Results files, by what a reader may find in them (fake_hdf5.h): all that compare, export, figure and merge read. */
#include "engine/alloc.h"
#include "results/compare.h"
#include "results/export.h"
#include "results/figures/figure_private.h"
#include "results/figures/links_private.h"
#include "results/memory_curve.h"
#include "results/store/plan_share.h"
#include "results/store/store.h"
#include "results/table.h"
#include "tests/fuzz/fake_hdf5.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/held_file.h"

#include <string.h>

/* Of one input in sixteen: up to a million passes are made of a block, and the others would wait for it. */
static bool repeats_blocks;

static void read_rows(const pc_results_reader *reader) {
    pc_error error = {0};
    int64_t count = pc_results_run_count(reader);
    const pc_run_row *rows = count ? pc_results_row(reader, 0) : NULL;
    pc_compare_options options = {.format = PC_FORMAT_CSV};
    pc_compare_summary summary;
    for (int64_t i = 0; i < count; i++) fuzz_check_row(&rows[i]);
    pc_code code = pc_table_write(rows, count < 2 ? count : 2, PC_FORMAT_CSV, held_nowhere(), &error);
    fuzz_require(code == PC_OK, "rows can be written");
    code = pc_compare(rows, count, rows, count, &options, held_nowhere(), &summary, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code || summary.different == 0, "a file does not differ from itself");
    pc_run_row row, key;
    if (count == 0 || pc_results_read_rows(reader, count - 1, 1, &row, &error)) return;
    fuzz_require(strcmp(row.name, rows[count - 1].name) == 0, "a row read alone is the one read with all");
    code = pc_results_read_row_keys(reader, count - 1, 1, &key, &error);
    fuzz_check_error(code, &error);
}

static void use_trace(const pc_run_row *row, const pc_trace_record *record) {
    pc_error error = {0};
    pc_schedule shape = pc_trace_record_schedule(record, row->schedule);
    pc_run_detail detail = pc_trace_record_detail(record);
    fuzz_require(shape.devices >= 1 && detail.replay.devices == shape.devices, "a trace has devices");
    fuzz_check_error(pc_export_csv(row, record, held_nowhere(), &error), &error);
    for (int sort = 0; sort < PC_EXPORT_SORTS; sort++) {
        pc_code code = pc_export_table((pc_export_sort)sort, record, held_nowhere(), &error);
        fuzz_check_error(code, &error);
        bool is_asked =
            sort == PC_EXPORT_KINDS ? pc_memory_curve_is_known(record) : record->replay.engine.queue_count > 0;
        fuzz_require(!code || !is_asked, "what is known can be written");
    }
    int64_t all = (int64_t)record->devices * record->chunks * record->microbatches;
    /* Of a run that ended for want of memory the shape alone decides what is made room for: 450 MB at most. */
    if (all < 1 << 16) fuzz_check_error(pc_export_chrome(row, record, held_nowhere(), &error), &error);
    pc_links_figure links = {.trace = &record->replay.engine, .most = 2};
    pc_links_data data;
    if (repeats_blocks) fuzz_check_error(pc_links_collect(&links, &data, &error), &error);
    if (repeats_blocks) pc_links_free(&data);
    if (all < 1 << 16) fuzz_check_error(pc_export_torch_csv(row, record, held_nowhere(), &error), &error);
    if (record->block.devices == 0 || !repeats_blocks) return;
    pc_replay_trace repeated = {0};
    int64_t full;
    fuzz_check_error(pc_figure_repeat_block(&record->block, &repeated, &full, &error), &error);
    pc_replay_free(&(pc_replay){.trace = repeated});
}

static void read_traces(const pc_results_reader *reader) {
    for (int64_t i = 0; i < pc_results_run_count(reader) && i < 4; i++) {
        const pc_run_row *row = pc_results_row(reader, i);
        pc_trace_record record = {0};
        pc_error error = {0};
        pc_code code = pc_results_read_trace(reader, row->run, &record, &error);
        fuzz_check_error(code, &error);
        if (!code) use_trace(row, &record);
        pc_trace_record_free(&record);
    }
}

static void read_scenarios(const pc_results_reader *reader) {
    char name[PC_COLUMN_TEXT_SIZE], *text = NULL;
    for (int64_t number = 1; number < 5; number++) {
        size_t size = 0;
        pc_error error = {0};
        pc_code code = pc_results_scenario_at(reader, number, name, &text, &size, &error);
        if (code || !text) {
            fuzz_check_error(code, &error);
            return;
        }
        fuzz_require(text[size] == '\0', "a scenario's text ends");
        pc_free(text);
        text = NULL;
        code = pc_results_scenario_text(reader, name, &text, &size, &error);
        fuzz_check_error(code, &error);
        if (!code) pc_free(text);
    }
}

static void read_share(const pc_results_reader *reader) {
    pc_plan_share share;
    pc_error error = {0};
    if (!pc_results_has_share(reader)) return;
    pc_code code = pc_results_read_share(reader, &share, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    int64_t plans = 0;
    for (int64_t i = 0; i < share.search_count; i++) plans += share.searches[i].plans;
    fuzz_require(plans == share.found_count, "every plan is of one search");
    fuzz_require(share.shard >= 1 && share.shard <= share.shard_count, "a share is one of all");
    fuzz_require(strlen(share.words) < SIZE_MAX, "words end");
    pc_plan_share_free(&share);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_results_reader *reader = NULL;
    pc_error error = {0};
    const char *path = held_file_sealed();
    repeats_blocks = size % 16 == 0;
    fake_hdf5_begin(data, size);
    pc_code code = pc_results_open(path, &reader, &error);
    fuzz_check_error(code, &error);
    if (!code) {
        read_rows(reader);
        read_traces(reader);
        read_scenarios(reader);
        read_share(reader);
        pc_results_close(reader);
    }
    fuzz_require(fake_hdf5_end(), "all that was opened is closed");
    return 0;
}
