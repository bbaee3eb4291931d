#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/pass_times_private.h"
#include "scenarios/setting.h"
#include "scenarios/units.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- keys ---- */

typedef enum cell_sort { STAGE, CHUNK, TIME, SCATTER, COUNT, BYTES, PLACEMENT } cell_sort;

typedef struct cell_rule {
    const char *key;
    cell_sort sort;
    bool is_of_all;
    size_t place; /* in pc_pass_row, or of all in pc_pass_rows */
} cell_rule;

#define OF_ROW(member) false, offsetof(pc_pass_row, member)
#define OF_ALL(member) true, offsetof(pc_pass_rows, member)
#define OF_KIND(letter, kind)                                                                                          \
    {letter, TIME, OF_ROW(part.time_ps[kind])}, {letter "_scatter", SCATTER, OF_ROW(part.scatter[kind])}, {            \
        letter "_count", COUNT, OF_ROW(part.count[kind])                                                               \
    }

static const cell_rule rules[] = {
    {"stage", STAGE, OF_ROW(stage)},
    {"chunk", CHUNK, OF_ROW(chunk)},
    OF_KIND("F", PC_PASS_F),
    OF_KIND("B", PC_PASS_B),
    OF_KIND("W", PC_PASS_W),
    OF_KIND("BW", PC_PASS_BW),
    OF_KIND("R", PC_PASS_R),
    {"activation", BYTES, OF_ROW(part.activation_bytes)},
    {"freed_by_b", BYTES, OF_ROW(part.b_bytes)},
    {"held", BYTES, OF_ROW(held_bytes)},
    {"placement", PLACEMENT, OF_ALL(placement)},
    {"transfer", TIME, OF_ALL(transfer_ps)},
    {"transfer_scatter", SCATTER, OF_ALL(transfer_scatter)},
    {"transfer_size", BYTES, OF_ALL(transfer_bytes)},
};
enum { RULES = sizeof rules / sizeof *rules };

/* What may stand behind a key's last '_', in place of a unit behind the number. */
static const char *const units[][2] = {{"ps", "ps"},   {"ns", "ns"},   {"us", "us"},   {"ms", "ms"},
                                       {"s", "s"},     {"bytes", "B"}, {"kib", "KiB"}, {"mib", "MiB"},
                                       {"gib", "GiB"}, {"kb", "kB"},   {"mb", "MB"},   {"gb", "GB"}};

static const cell_rule *find_rule(const char *key, size_t length) {
    for (int i = 0; i < RULES; i++)
        if (strlen(rules[i].key) == length && memcmp(rules[i].key, key, length) == 0) return &rules[i];
    return NULL;
}

/* Of "F_ms" the rule of F, and the unit; of "F" that, and none. */
static const cell_rule *find_key(const char *key, const char **unit) {
    const cell_rule *rule = find_rule(key, strlen(key));
    const char *last = strrchr(key, '_');
    *unit = NULL;
    if (rule || !last) return rule;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(last + 1, units[i][0]) == 0) *unit = units[i][1];
    return *unit ? find_rule(key, (size_t)(last - key)) : NULL;
}

bool pc_pass_key_is_of_all(const char *key) {
    const char *unit;
    const cell_rule *rule = find_key(key, &unit);
    return rule && rule->is_of_all;
}

static pc_code refuse_key(const char *key, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = key};
    for (int i = 0; i < RULES; i++) pc_nearest_offer(&nearest, rules[i].key);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.40s: unknown key%s; expected stage, chunk, F, B, W, BW, R, activation, freed_by_b, held, "
                        "placement, transfer or transfer_size, with or without a unit as in F_ms",
                        *key ? key : "''", pc_nearest_hint(&nearest, hint));
}

/* ---- values ---- */

static pc_code take_placement(const char *text, int64_t *placement, pc_error *error) {
    int64_t index;
    pc_code code = pc_word_parse("linear|interleaved|v", text, &index, error);
    if (code) return code;
    if (*placement >= 0 && *placement != index)
        return pc_error_set(error, PC_ERROR_INPUT, "%s, and another one above; expected one placement", text);
    *placement = index;
    return PC_OK;
}

static pc_code take_time(const char *text, pc_time *time_ps, pc_error *error) {
    pc_time found;
    pc_code code = pc_parse_time(text, &found, error);
    if (!code) *time_ps = found;
    return code;
}

static pc_code take_number(const char *text, double most, double *number, pc_error *error) {
    double found;
    pc_code code = pc_parse_number(text, &found, error);
    if (code) return code;
    if (found > most) return pc_error_set(error, PC_ERROR_INPUT, "%s; expected a share from 0 to %g", text, most);
    *number = found;
    return PC_OK;
}

static pc_code take_value(const cell_rule *rule, const char *text, void *field, pc_error *error) {
    enum { SCATTER_MOST = 10 };
    switch (rule->sort) {
    case STAGE:
        return pc_parse_integer(text, 0, PC_DEVICES_MAX - 1, field, error);
    case CHUNK:
        return pc_parse_integer(text, 0, PC_CHUNKS_MAX - 1, field, error);
    case TIME:
        return take_time(text, field, error);
    case SCATTER:
        return take_number(text, SCATTER_MOST, field, error);
    case COUNT:
        return pc_parse_integer(text, 0, INT64_MAX, field, error);
    case BYTES:
        return pc_parse_size(text, field, error);
    default:
        return take_placement(text, field, error);
    }
}

pc_code pc_pass_rows_take(pc_pass_rows *rows, const char *key, const char *text, pc_error *error) {
    char with_unit[128];
    const char *unit;
    const cell_rule *rule = find_key(key, &unit);
    if (!rule) return refuse_key(key, error);
    if (unit && rule->sort != TIME && rule->sort != BYTES) return refuse_key(key, error);
    if (unit) {
        snprintf(with_unit, sizeof with_unit, "%.64s %s", text, unit);
        text = with_unit;
    }
    char *record = rule->is_of_all ? (char *)rows : (char *)&rows->rows[rows->count - 1];
    return take_value(rule, text, record + rule->place, error);
}

/* ---- rows ---- */

pc_pass_rows pc_pass_rows_none(void) {
    return (pc_pass_rows){.placement = -1, .transfer_ps = PC_TIME_NOT_GIVEN, .transfer_bytes = PC_BYTES_NOT_GIVEN};
}

void pc_pass_rows_free(pc_pass_rows *rows) {
    pc_free(rows->rows);
    rows->rows = NULL;
}

pc_code pc_pass_rows_add(pc_pass_rows *rows, unsigned line, pc_error *error) {
    if (rows->count == rows->room) {
        int64_t room = rows->room ? 2 * rows->room : 16;
        void *larger = pc_realloc(rows->rows, (size_t)room, sizeof *rows->rows);
        if (!larger) return pc_error_no_memory(error);
        rows->rows = larger;
        rows->room = room;
    }
    pc_pass_row *row = &rows->rows[rows->count++];
    *row = (pc_pass_row){.stage = -1, .chunk = -1, .held_bytes = PC_BYTES_NOT_GIVEN, .line = line};
    row->part.activation_bytes = row->part.b_bytes = PC_BYTES_NOT_GIVEN;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) row->part.time_ps[kind] = PC_TIME_NOT_GIVEN;
    return PC_OK;
}

/* ---- in their places ---- */

/* Of a row that does not say its stage that is its own number. */
static int64_t stage_of(const pc_pass_rows *rows, int64_t i) {
    return rows->rows[i].stage >= 0 ? rows->rows[i].stage : i;
}

static int64_t chunk_of(const pc_pass_rows *rows, int64_t i) {
    return rows->rows[i].chunk >= 0 ? rows->rows[i].chunk : 0;
}

static pc_code check_row(const pc_pass_row *row, pc_error *error) {
    const pc_time *time_ps = row->part.time_ps;
    bool has_split = time_ps[PC_PASS_B] != PC_TIME_NOT_GIVEN && time_ps[PC_PASS_W] != PC_TIME_NOT_GIVEN;
    if (time_ps[PC_PASS_F] == PC_TIME_NOT_GIVEN)
        return pc_error_set(error, PC_ERROR_INPUT, "F: missing; expected a time such as 12.96 ms");
    if (!has_split && time_ps[PC_PASS_BW] == PC_TIME_NOT_GIVEN)
        return pc_error_set(error, PC_ERROR_INPUT, "BW: missing; expected BW, or B and W");
    if (row->part.b_bytes > row->part.activation_bytes)
        return pc_error_set(error, PC_ERROR_INPUT, "freed_by_b: more than activation; expected a part of it");
    return PC_OK;
}

static pc_code put(const pc_pass_rows *rows, int64_t i, bool *is_there, pc_pass_times *times, pc_error *error) {
    const pc_pass_row *row = &rows->rows[i];
    int64_t stage = stage_of(rows, i), chunk = chunk_of(rows, i), place = stage * times->chunks + chunk;
    pc_code code = check_row(row, error);
    if (code) return code;
    if (is_there[place])
        return pc_error_set(error, PC_ERROR_INPUT,
                            "stage %" PRId64 ", chunk %" PRId64 ": stands twice; expected a row for each", stage,
                            chunk);
    is_there[place] = true;
    times->parts[place] = row->part;
    if (row->held_bytes > times->held_bytes[stage]) times->held_bytes[stage] = row->held_bytes;
    return PC_OK;
}

static pc_code put_all(const pc_pass_rows *rows, const char *name, bool *is_there, pc_pass_times *times,
                       pc_error *error) {
    for (int64_t i = 0; i < rows->count; i++) {
        pc_code code = put(rows, i, is_there, times, error);
        if (code) return pc_error_place(error, name, rows->rows[i].line, ""), code;
    }
    for (int64_t i = 0; i < (int64_t)times->devices * times->chunks; i++)
        if (!is_there[i])
            return pc_error_set_file(error, PC_ERROR_INPUT, name,
                                     "stage %" PRId64 ", chunk %" PRId64 ": no row; expected one for each of %d chunks "
                                     "of %d stages",
                                     i / times->chunks, i % times->chunks, times->chunks, times->devices);
    return PC_OK;
}

pc_code pc_pass_rows_place(const pc_pass_rows *rows, const char *name, pc_pass_times *times, pc_error *error) {
    int64_t stages = 0, chunks = 0;
    pc_pass_times made;
    for (int64_t i = 0; i < rows->count; i++) {
        stages = stage_of(rows, i) >= stages ? stage_of(rows, i) + 1 : stages;
        chunks = chunk_of(rows, i) >= chunks ? chunk_of(rows, i) + 1 : chunks;
    }
    if (stages == 0) return pc_error_set_file(error, PC_ERROR_INPUT, name, "has no stages; expected a row for each");
    if (stages * chunks > 2 * rows->count + 1) /* no room for rows that are not there */
        return pc_error_set_file(error, PC_ERROR_INPUT, name,
                                 "%" PRId64 " rows; expected one for each of %" PRId64 " chunks of %" PRId64 " stages",
                                 rows->count, chunks, stages);
    pc_placement several = rows->placement == PC_PLACEMENT_V ? PC_PLACEMENT_V : PC_PLACEMENT_INTERLEAVED;
    pc_code code =
        pc_pass_times_create((int)stages, (int)chunks, chunks == 1 ? PC_PLACEMENT_LINEAR : several, &made, error);
    if (code) return pc_error_place(error, name, 0, ""), code;
    made.transfer_ps = rows->transfer_ps;
    made.transfer_scatter = rows->transfer_scatter;
    made.transfer_bytes = rows->transfer_bytes;
    bool *is_there = pc_alloc((size_t)(stages * chunks), sizeof *is_there);
    code = is_there ? put_all(rows, name, is_there, &made, error) : pc_error_no_memory(error);
    pc_free(is_there);
    if (code)
        pc_pass_times_free(&made);
    else
        *times = made;
    return code;
}
