#include "sweep/sweep_files.h"

#include "engine/alloc.h"
#include "results/store/build.h"
#include "storage/replace.h"
#include "sweep/agenda.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK_ROWS = 4096 }; /* of the results file, read at once: a chunk of its columns */

/* ---- names ---- */

/* "PATH.journal", of rank n > 0 "PATH.journal.n"; the caller frees it. */
static char *journal_path(const char *path, int rank) {
    size_t room = strlen(path) + 32;
    char *name = pc_alloc(room, 1);
    if (!name) return NULL;
    if (rank > 0)
        snprintf(name, room, "%s.journal.%d", path, rank);
    else
        snprintf(name, room, "%s.journal", path);
    return name;
}

/* The rank whose journal the name is, of the file whose name without folder is `base`; -1: it is none. */
static int rank_of(const char *name, const char *base) {
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || strncmp(name + length, ".journal", 8) != 0) return -1;
    const char *rest = name + length + 8;
    if (*rest == '\0') return 0;
    if (*rest++ != '.' || *rest < '1' || *rest > '9' || strlen(rest) > 6) return -1;
    return strspn(rest, "0123456789") == strlen(rest) ? (int)strtol(rest, NULL, 10) : -1;
}

static int compare_ranks(const void *a, const void *b) {
    int one = *(const int *)a, other = *(const int *)b;
    return (one > other) - (one < other);
}

static pc_code add_rank(int **ranks, int *count, int rank, pc_error *error) {
    int *all = pc_realloc(*ranks, (size_t)*count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    *ranks = all;
    all[(*count)++] = rank;
    return PC_OK;
}

/* The ranks that have journals beside the path, ascending; the caller frees them. */
static pc_code list_ranks(const char *path, int **ranks, int *count, pc_error *error) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *folder = pc_strdup(path);
    if (!folder) return pc_error_no_memory(error);
    folder[slash ? slash - path + 1 : 0] = '\0';
    DIR *entries = opendir(*folder ? folder : ".");
    pc_code code = PC_OK;
    if (!entries) code = pc_error_set_file(error, PC_ERROR_IO, path, "its folder cannot be read: %s", strerror(errno));
    for (const struct dirent *entry; !code && entries && (entry = readdir(entries));) {
        int rank = rank_of(entry->d_name, base);
        if (rank >= 0) code = add_rank(ranks, count, rank, error);
    }
    if (entries) closedir(entries);
    pc_free(folder);
    if (*count > 1) qsort(*ranks, (size_t)*count, sizeof **ranks, compare_ranks);
    return code;
}

/* ---- the file that is there ---- */

/* Whoever is at work there would replace what is put in the place now. */
static pc_code check_free(const char *path, pc_error *error) {
    char *target, *name;
    pc_code code = pc_replacement_target(path, &target, error);
    if (code) return code;
    name = journal_path(target, 0);
    code = name ? pc_journal_check_free(name, error) : pc_error_no_memory(error);
    pc_free(name);
    pc_free(target);
    return code;
}

pc_code pc_sweep_files_check_target(const char *path, pc_standing *found, pc_error *error) {
    pc_results_reader *reader;
    pc_code code = pc_replacement_probe(path, error);
    if (!code) code = check_free(path, error);
    if (!code) code = pc_replacement_look(path, found, error); /* before it is judged: what comes then is not it */
    if (code || !found->is_there) return code;
    if (found->size == 0) /* who made it may be about to write it */
        code =
            pc_error_set_file(error, PC_ERROR_INPUT, path, "is an empty file; expected a results file, or none there");
    else
        code = pc_results_open_part(path, &reader, error);
    if (!code) pc_results_close(reader);
    if (code == PC_ERROR_INPUT) pc_error_note(error, "what is no results file is not replaced");
    return code;
}

/* ---- journals ---- */

static pc_code open_journal(const pc_sweep_files *files, int rank, pc_journal_mode mode, pc_journal **journal,
                            pc_error *error) {
    char *name = journal_path(files->path, rank);
    if (!name) return pc_error_no_memory(error);
    pc_code code = pc_journal_open(name, mode, journal, error);
    pc_free(name);
    return code;
}

/* Journals of ranks that are not there; held while they go, and nothing but journals. */
static pc_code remove_left_over(const pc_sweep_files *files, pc_error *error) {
    int *ranks = NULL, count = 0;
    pc_code code = list_ranks(files->path, &ranks, &count, error);
    for (int i = 0; i < count && !code; i++) {
        pc_journal *journal = NULL;
        if (ranks[i] >= files->rank_count) code = open_journal(files, ranks[i], PC_JOURNAL_FRESH, &journal, error);
        pc_journal_remove(journal);
    }
    pc_free(ranks);
    return code;
}

pc_code pc_sweep_files_open(pc_sweep_files *files, const pc_sweep_request *request, const pc_sweep_sink *sink,
                            pc_error *error) {
    const char *path = request->output;
    *files = (pc_sweep_files){.rank = pc_team_rank(request->team),
                              .rank_count = pc_team_size(request->team),
                              .is_fresh = request->is_fresh,
                              .sink = sink};
    pc_journal_mode mode = files->is_fresh ? PC_JOURNAL_FRESH : PC_JOURNAL_GO_ON;
    if (!path) return pc_journal_open(NULL, mode, &files->own, error);
    pc_code code = files->rank == 0 ? pc_sweep_files_check_target(path, &files->standing, error) : PC_OK;
    if (!code) code = pc_replacement_target(path, &files->path, error);
    if (!code) code = open_journal(files, files->rank, mode, &files->own, error);
    return code || files->rank > 0 || !files->is_fresh ? code : remove_left_over(files, error);
}

static void close_others(pc_sweep_files *files) {
    for (int i = 0; i < files->journal_count; i++)
        if (files->journals[i] != files->own) pc_journal_close(files->journals[i]);
    pc_free(files->journals);
    pc_free(files->keys);
    files->journals = NULL;
    files->keys = NULL;
    files->journal_count = 0;
    files->count = 0;
}

static pc_code open_other(pc_sweep_files *files, int rank, pc_error *error) {
    pc_code code = open_journal(files, rank, PC_JOURNAL_READ, &files->journals[files->journal_count], error);
    if (!code) files->journal_count++;
    return code;
}

static pc_code open_journals(pc_sweep_files *files, pc_error *error) {
    int *ranks = NULL, count = 0;
    pc_code code = files->path ? list_ranks(files->path, &ranks, &count, error) : PC_OK;
    files->journals = code ? NULL : pc_alloc((size_t)count + 1, sizeof(pc_journal *));
    if (!code && !files->journals) code = pc_error_no_memory(error);
    if (!code) files->journals[files->journal_count++] = files->own;
    for (int i = 0; i < count && !code; i++)
        if (ranks[i] != files->rank) code = open_other(files, ranks[i], error);
    pc_free(ranks);
    return code;
}

pc_code pc_sweep_files_collect(pc_sweep_files *files, pc_error *error) {
    close_others(files);
    pc_code code = open_journals(files, error);
    if (code) return code;
    int64_t count = 0;
    for (int i = 0; i < files->journal_count; i++) count += pc_journal_count(files->journals[i]);
    files->keys = pc_alloc((size_t)count, sizeof *files->keys);
    if (!files->keys) return pc_error_no_memory(error);
    for (int i = 0; i < files->journal_count; i++)
        for (int64_t k = 0; k < pc_journal_count(files->journals[i]); k++)
            files->keys[files->count++] = pc_journal_key(files->journals[i], k);
    return PC_OK;
}

/* ---- the results file of an earlier time ---- */

/* How many rows stand in the block that begins at `first`. */
static int64_t block_of(const pc_results_reader *reader, int64_t first) {
    int64_t left = pc_results_run_count(reader) - first;
    return left < BLOCK_ROWS ? left : BLOCK_ROWS;
}

/* All zero, which is nobody's, where a row has none. */
static pc_run_key key_of_row(const pc_run_row *row) {
    pc_run_key key = {0, 0};
    if (!pc_run_key_parse(row->key, &key)) key = (pc_run_key){0, 0};
    return key;
}

static pc_code read_keys(const pc_results_reader *reader, pc_run_row *rows, pc_run_key *keys, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t first = 0, count; first < pc_results_run_count(reader) && !code; first += count) {
        count = block_of(reader, first);
        code = pc_results_read_row_keys(reader, first, count, rows, error);
        for (int64_t i = 0; i < count && !code; i++) keys[first + i] = key_of_row(&rows[i]);
    }
    return code;
}

/* Marks, of the keys behind the journals', the first of each that a run has. */
static pc_code mark_wanted(const pc_sweep_files *files, const pc_run_key *keys, int64_t key_count,
                           const pc_run_key *runs, int64_t run_count, bool *is_wanted, int64_t *wanted,
                           pc_error *error) {
    pc_agenda agenda = {0};
    pc_code code = pc_agenda_make(runs, run_count, keys, key_count, &agenda, error);
    for (int64_t i = 0; i < agenda.count && !code; i++) {
        int64_t row = agenda.place[i] - files->count;
        if (agenda.place[i] < 0 || row < 0 || is_wanted[row]) continue;
        is_wanted[row] = true;
        ++*wanted;
    }
    pc_agenda_free(&agenda);
    return code;
}

static pc_code take_row_over(pc_sweep_files *files, const pc_results_reader *reader, pc_run_row *row, pc_error *error) {
    pc_run_key key = key_of_row(row);
    int64_t run = row->run;
    row->key[0] = '\0';
    if (!pc_results_has_trace(reader, run)) return pc_journal_add(files->own, key, 0, row, NULL, NULL, error);
    pc_trace_record record;
    pc_code code = pc_results_read_trace(reader, run, &record, error);
    if (code) return code;
    pc_schedule shape = pc_trace_record_schedule(&record, row->schedule);
    pc_run_detail detail = pc_trace_record_detail(&record);
    code = pc_journal_add(files->own, key, 0, row, &shape, &detail, error);
    pc_trace_record_free(&record);
    return code;
}

static pc_code take_rows_over(pc_sweep_files *files, const pc_results_reader *reader, const bool *is_wanted,
                              pc_run_row *rows, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t first = 0, count; first < pc_results_run_count(reader) && !code; first += count) {
        count = block_of(reader, first);
        code = pc_results_read_rows(reader, first, count, rows, error);
        for (int64_t i = 0; i < count && !code; i++)
            if (is_wanted[first + i]) code = take_row_over(files, reader, &rows[i], error);
    }
    return code;
}

/* Of the file that is there, in one line. */
static void warn(const pc_sweep_files *files, const char *format, ...) {
    char text[2 * PATH_MAX];
    va_list values;
    int used = snprintf(text, sizeof text, "%s: ", files->path);
    if (!files->sink->warn || used < 0 || used >= (int)sizeof text) return;
    va_start(values, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, values);
    va_end(values);
    pc_error_make_plain(text);
    files->sink->warn(files->sink->context, text);
}

/* The file that stands there makes room for this sweep's: who had other runs in it hears so before they go. */
static pc_code note_dropped(const pc_sweep_files *files, const pc_run_key *rows, int64_t row_count,
                            const pc_run_key *runs, int64_t run_count, pc_error *error) {
    pc_agenda agenda = {0};
    pc_code code = pc_agenda_make(rows, row_count, runs, run_count, &agenda, error);
    int64_t dropped = row_count - agenda.done_count;
    if (!code && dropped > 0)
        warn(files, "%" PRId64 " of its %" PRId64 " run%s not of this sweep and will not be kept", dropped, row_count,
             row_count == 1 ? " is" : "s are");
    pc_agenda_free(&agenda);
    return code;
}

static pc_code take_over(pc_sweep_files *files, const pc_results_reader *reader, const pc_run_key *runs,
                         int64_t run_count, pc_error *error) {
    int64_t row_count = pc_results_run_count(reader), wanted = 0;
    pc_run_row *rows = pc_alloc(BLOCK_ROWS, sizeof *rows);
    pc_run_key *keys = pc_alloc((size_t)(files->count + row_count), sizeof *keys);
    bool *is_wanted = pc_alloc((size_t)row_count, sizeof *is_wanted);
    pc_code code = rows && keys && is_wanted ? PC_OK : pc_error_no_memory(error);
    if (!code && files->count > 0) memcpy(keys, files->keys, (size_t)files->count * sizeof *keys);
    if (!code) code = read_keys(reader, rows, keys + files->count, error);
    if (!code) code = mark_wanted(files, keys, files->count + row_count, runs, run_count, is_wanted, &wanted, error);
    if (!code) code = note_dropped(files, keys + files->count, row_count, runs, run_count, error);
    if (!code && wanted > 0) code = take_rows_over(files, reader, is_wanted, rows, error);
    pc_free(is_wanted);
    pc_free(keys);
    pc_free(rows);
    return code || wanted == 0 ? code : pc_sweep_files_collect(files, error);
}

bool pc_sweep_files_is_of_this_build(const pc_results_reader *reader) {
    char build[PC_BUILD_TEXT_SIZE];
    pc_build_text(build);
    return strcmp(pc_results_build(reader), build) == 0;
}

static void note_other_build(const pc_sweep_files *files, const pc_results_reader *reader) {
    int64_t count = pc_results_run_count(reader);
    warn(files, "of another build of pipecast, whose results may differ: its %" PRId64 " run%s simulated again", count,
         count == 1 ? " is" : "s are");
}

pc_code pc_sweep_files_take_over(pc_sweep_files *files, const pc_run_key *runs, int64_t count, pc_error *error) {
    pc_results_reader *reader;
    if (!files->path || files->is_fresh || !files->standing.is_there) return PC_OK;
    pc_code code = pc_results_open_part(files->path, &reader, error);
    if (code) return code;
    if (pc_sweep_files_is_of_this_build(reader))
        code = take_over(files, reader, runs, count, error);
    else
        note_other_build(files, reader);
    pc_results_close(reader);
    return code;
}

/* ---- records ---- */

static const pc_journal *find_record(const pc_sweep_files *files, int64_t *place) {
    int i = 0;
    while (*place >= pc_journal_count(files->journals[i])) *place -= pc_journal_count(files->journals[i++]);
    return files->journals[i];
}

pc_code pc_sweep_files_row(const pc_sweep_files *files, int64_t place, pc_run_row *row, pc_error *error) {
    const pc_journal *journal = find_record(files, &place);
    return pc_journal_row(journal, place, row, error);
}

uint64_t pc_sweep_files_labels(const pc_sweep_files *files, int64_t place) {
    const pc_journal *journal = find_record(files, &place);
    return pc_journal_labels(journal, place);
}

pc_code pc_sweep_files_trace(const pc_sweep_files *files, int64_t place, pc_trace_record *record, pc_error *error) {
    const pc_journal *journal = find_record(files, &place);
    bool has_trace = false;
    *record = (pc_trace_record){0};
    pc_code code = pc_journal_has_trace(journal, place, &has_trace, error);
    return code || !has_trace ? code : pc_journal_trace(journal, place, record, error);
}

/* ---- the end ---- */

void pc_sweep_files_remove(pc_sweep_files *files) {
    close_others(files);
    if (files->path && files->rank == 0) remove_left_over(files, NULL); /* whose records are in the results file now */
    pc_journal_remove(files->own);
    files->own = NULL;
}

void pc_sweep_files_close(pc_sweep_files *files) {
    close_others(files);
    if (files->own && pc_journal_count(files->own) == 0)
        pc_journal_remove(files->own);
    else
        pc_journal_close(files->own);
    files->own = NULL;
    pc_free(files->path);
    files->path = NULL;
}
