/* Times of passes as people write them: three numbers, a list of three for each stage or part, or a file. */
#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"
#include "scenarios/pass_times_file.h"
#include "scenarios/units.h"

#include <string.h>

#define TIMES_EXPECTED "expected three numbers F,B,W such as 18.5,18.1,9.3"

/* Three numbers; `rest` is cut. */
static pc_code read_three(const pc_schedule_request *r, const char *text, char *rest, double times[3],
                          pc_error *error) {
    for (int i = 0; i < 3; i++) {
        char *word = strsep(&rest, ",");
        if (!word || (i == 2 && rest)) return pc_schedule_refuse(r, PC_ASK_TIMES, error, "'%s'; " TIMES_EXPECTED, text);
        pc_code code = pc_schedule_take_number(r, PC_ASK_TIMES, word, &times[i], error);
        if (code) return code;
    }
    return PC_OK;
}

pc_code pc_schedule_take_vocab_times(pc_schedule_request *r, const char *text, pc_error *error) {
    char *copy = pc_strdup(text), *rest = copy;
    if (!copy) return pc_error_no_memory(error);
    char *first = strsep(&rest, ","), *second = first ? strsep(&rest, ",") : NULL;
    pc_code code = second && !rest ? PC_OK
                                   : pc_schedule_refuse(r, PC_ASK_VOCAB_TIMES, error,
                                                        "'%s'; expected two numbers S,T such as 2.5,4.1", text);
    if (!code) code = pc_schedule_take_number(r, PC_ASK_VOCAB_TIMES, first, &r->units.vocab_times[0], error);
    if (!code) code = pc_schedule_take_number(r, PC_ASK_VOCAB_TIMES, second, &r->units.vocab_times[1], error);
    pc_free(copy);
    return code;
}

/* F,B,W, or F,B,W*N, N times, into the list, which has room for `most` of them. */
static pc_code read_group(pc_schedule_request *r, const char *text, char *group, int64_t most, pc_error *error) {
    char *star = strchr(group, '*');
    int64_t times = 1;
    double three[3];
    if (star) *star = '\0';
    if (star && pc_parse_count(star + 1, 1, most, &times, error)) {
        pc_error_set_key(error, pc_schedule_option_name(r, PC_ASK_TIMES));
        return PC_ERROR_INPUT;
    }
    pc_code code = read_three(r, text, group, three, error);
    if (code) return code;
    if (r->units.part_count + times > most)
        return pc_schedule_refuse(r, PC_ASK_TIMES, error,
                                  "over %lld parts; expected one F,B,W for each stage, or for each part of the model",
                                  (long long)most);
    for (int64_t i = 0; i < times; i++) memcpy(r->part_times[r->units.part_count++], three, sizeof three);
    return PC_OK;
}

pc_code pc_schedule_take_times(pc_schedule_request *r, const char *text, pc_error *error) {
    enum { PARTS_MAX = 65536, LENGTH_MAX = 1 << 20 };
    r->times_file = NULL;
    if (pc_pass_times_is_file(text)) {
        r->times_file = text;
        return PC_OK;
    }
    if (strnlen(text, LENGTH_MAX) == LENGTH_MAX)
        return pc_schedule_refuse(r, PC_ASK_TIMES, error, "too long; " TIMES_EXPECTED);
    char *copy = pc_strdup(text), *rest = copy;
    pc_free(r->part_times);
    r->units.part_count = 0;
    r->part_times = pc_alloc(PARTS_MAX, sizeof *r->part_times);
    pc_code code = copy && r->part_times ? PC_OK : pc_error_no_memory(error);
    for (char *group; !code && (group = strsep(&rest, "/"));) code = read_group(r, text, group, PARTS_MAX, error);
    pc_free(copy);
    r->units.part_times = (const double(*)[3])r->part_times;
    if (code || strpbrk(text, "/*")) return code;
    memcpy(r->units.times, r->part_times[0], sizeof r->units.times);
    r->units.part_count = 0;
    return PC_OK;
}
