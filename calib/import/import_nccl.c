/* What nccl-tests print: comment lines, a header, and a line a size, out of place and then in place. */
#include "calib/import/import_private.h"

#include "engine/numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_SIZE = 64 };

/* What the comments of one run have said so far. */
typedef struct run {
    const char *collective;
    int ranks;
    int nodes;
    char last_host[HOST_SIZE]; /* ranks of a node stand together */
    bool has_header;
    double unit_s; /* of times */
} run;

/* ---- comments ---- */

/* "all_reduce_perf" anywhere in a line. */
static const char *program_of(const char *line) {
    const char *end = strstr(line, "_perf");
    char name[32];
    if (!end) return NULL;
    const char *begin = end;
    while (begin > line && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
    snprintf(name, sizeof name, "%.*s", (int)(end - begin < 31 ? end - begin : 31), begin);
    return pc_import_collective(name);
}

/* "#  Rank  0 Group  0 Pid  1234 on  host device  0 [0x07] NVIDIA A100-SXM4-80GB". */
static pc_code read_rank(pc_import *import, run *r, const char *line, pc_error *error) {
    char host[HOST_SIZE] = "";
    const char *on = strstr(line, " on "), *bracket = strchr(line, ']');
    if (!on || sscanf(on + 4, " %63s", host) != 1) return PC_OK;
    r->ranks++;
    if (strcmp(host, r->last_host) != 0) r->nodes++;
    snprintf(r->last_host, sizeof r->last_host, "%s", host);
    if (!bracket) return PC_OK;
    bracket++;
    while (*bracket == ' ') bracket++;
    if (import->device[0] == '\0')
        snprintf(import->device, sizeof import->device, "%s", bracket);
    else if (strncmp(import->device, bracket, sizeof import->device - 1) != 0 && !import->options->device)
        return pc_import_refuse(&import->text, error, "a rank on '%.60s'; expected all on '%.60s'", bracket,
                                import->device);
    return PC_OK;
}

static pc_code read_units(pc_import *import, run *r, const char *line, pc_error *error) {
    bool is_micro = strstr(line, "(us)") != NULL;
    if (!is_micro && !strstr(line, "(ms)")) return PC_OK;
    r->unit_s = is_micro ? 1e-6 : 1e-3;
    if (strstr(line, "(GB/s)")) return PC_OK;
    return pc_import_refuse(&import->text, error, "units of columns without (GB/s); expected those of nccl-tests");
}

static pc_code read_comment(pc_import *import, run *r, const char *line, pc_error *error) {
    const char *program = program_of(line);
    if (strstr(line, "nThread")) *r = (run){.collective = r->collective, .unit_s = 1e-6};
    if (program) r->collective = program;
    if (strstr(line, "Rank ")) return read_rank(import, r, line, error);
    if (strstr(line, "size") && strstr(line, "algbw")) r->has_header = true;
    return read_units(import, r, line, error);
}

/* ---- measurements ---- */

static bool is_absent(const char *field) {
    return strcmp(field, "N/A") == 0 || strcmp(field, "-") == 0;
}

/* As printed: with two decimals, or four digits. */
static bool fits(double seconds, double size_bytes, double algbw) {
    double expected = size_bytes / seconds / PC_BYTES_PER_GB;
    return fabs(algbw - expected) <= 0.02 + 0.02 * expected;
}

/* Rates of small sizes are printed as 0.00, which is no number above zero. */
static bool read_rate(const char *field, double *rate) {
    *rate = 0.0;
    return (field[strspn(field, "0.")] == '\0' && field[0] != '\0') || pc_import_number(field, rate);
}

static bool read_wrong(const char *field, int64_t *wrong) {
    double rate;
    *wrong = -1;
    if (is_absent(field)) return true;
    if (!read_rate(field, &rate) || rate != floor(rate)) return false;
    *wrong = (int64_t)rate;
    return true;
}

/* Four fields: time, algbw, busbw, wrong elements. */
static pc_code read_result(pc_import *import, const run *r, char *const *field, pc_transfer_measurement transfer,
                           pc_error *error) {
    double seconds, algbw, busbw;
    if (is_absent(field[0])) return PC_OK;
    if (!pc_import_time(field[0], r->unit_s, &seconds))
        return pc_import_refuse(&import->text, error, "a time of '%.40s'; expected " PC_IMPORT_TIME, field[0]);
    if (!read_rate(field[1], &algbw) || !read_rate(field[2], &busbw))
        return pc_import_refuse(&import->text, error, "rates of '%.40s' and '%.40s'; expected numbers", field[1],
                                field[2]);
    if (!read_wrong(field[3], &transfer.wrong))
        return pc_import_refuse(&import->text, error, "'%.40s' wrong elements; expected a whole number or N/A",
                                field[3]);
    if (!fits(seconds, transfer.size_bytes, algbw))
        return pc_import_refuse(&import->text, error, "an algbw of %g GB/s; expected size / time, %.4g GB/s", algbw,
                                transfer.size_bytes / seconds / PC_BYTES_PER_GB);
    return pc_import_add_transfer(import, &transfer, seconds, error);
}

static pc_code name_transfer(const pc_import *import, const run *r, pc_transfer_measurement *transfer,
                             pc_error *error) {
    const pc_import_options *options = import->options;
    const char *collective = r->collective;
    if (!collective && options->collective) collective = pc_import_collective(options->collective);
    if (!collective)
        return pc_import_refuse(&import->text, error,
                                "nothing says which collective this is; expected a line that names the program "
                                "(all_reduce_perf), or --collective with " PC_IMPORT_COLLECTIVES);
    transfer->ranks = r->ranks > 0 ? r->ranks : options->ranks;
    if (transfer->ranks < 2)
        return pc_import_refuse(&import->text, error,
                                "%d ranks; expected '# Rank' lines of 2 or more, or their number with --ranks",
                                (int)transfer->ranks);
    transfer->nodes = options->nodes > 0 ? options->nodes : r->nodes > 0 ? r->nodes : 1;
    snprintf(transfer->collective, sizeof transfer->collective, "%s", collective);
    snprintf(transfer->link, sizeof transfer->link, "%s", pc_import_link(options->link ? options->link : ""));
    return PC_OK;
}

/* size, count, type, with or without redop and root, and twice four results. */
static pc_code read_measurement(pc_import *import, const run *r, char *line, pc_error *error) {
    enum { HEAD = 3, RESULT = 4 };
    char *field[PC_IMPORT_FIELDS];
    pc_transfer_measurement x = {.first_sample = -1};
    int64_t size, elements;
    int count = pc_import_split_spaces(line, field);
    if (count < HEAD + 2 * RESULT || count > HEAD + 2 * RESULT + 2)
        return pc_import_refuse(&import->text, error,
                                "%d columns; expected size, count, type, perhaps redop and root, "
                                "and twice time, algbw, busbw, #wrong",
                                count);
    if (strcmp(field[0], "0") == 0) return PC_OK; /* no bytes: nothing that a rate could be of */
    if (!pc_import_integer(field[0], &size) || !pc_import_integer(field[1], &elements))
        return pc_import_refuse(&import->text, error, "a size of '%.40s' and '%.40s' elements; expected whole numbers",
                                field[0], field[1]);
    x.size_bytes = (double)size;
    pc_code code = name_transfer(import, r, &x, error);
    if (!code) code = read_result(import, r, &field[count - 2 * RESULT], x, error);
    x.is_in_place = true;
    if (!code) code = read_result(import, r, &field[count - RESULT], x, error);
    return code;
}

/* Before the header stands what the shell and the launcher said; behind it, beside measurements, what NCCL logs. */
pc_code pc_import_nccl(pc_import *import, pc_error *error) {
    run r = {.unit_s = 1e-6};
    pc_code code = PC_OK;
    for (char *line; !code && (line = pc_import_line(&import->text));) {
        while (*line == ' ' || *line == '\t') line++;
        if (*line == '#')
            code = read_comment(import, &r, line, error);
        else if (*line == '\0' || strstr(line, "NCCL "))
            continue;
        else if (r.has_header || isdigit((unsigned char)*line))
            code = read_measurement(import, &r, line, error);
        else if (program_of(line))
            r.collective = program_of(line);
    }
    return code;
}
