#include "calib/trace/rank_trace.h"

#include "engine/alloc.h"

#include <string.h>

void pc_rank_trace_free(pc_rank_trace *trace) {
    pc_free(trace->passes);
    pc_free(trace->messages);
    memset(trace, 0, sizeof *trace);
}

/* ---- names ---- */

/* Digits, at most eight; false if there are none. */
static bool take_number(const char **text, int32_t *number) {
    int digits = 0;
    for (*number = 0; **text >= '0' && **text <= '9' && digits <= 8; digits++)
        *number = 10 * *number + (*(*text)++ - '0');
    return digits >= 1 && digits <= 8;
}

static bool take_word(const char **text, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) return false;
    *text += length;
    return true;
}

static bool is_at_end(const char *text) {
    return *text == '\0';
}

/* "2F3" of PyTorch's pipelining runtime: part, kind, microbatch. */
static bool parse_torch(const char *text, pc_traced_name *name) {
    static const char letters[] = "FIBW";
    static const pc_traced_kind kinds[] = {PC_TRACED_F, PC_TRACED_INPUT, PC_TRACED_WHOLE, PC_TRACED_W};
    if (!take_number(&text, &name->chunk) || is_at_end(text)) return false;
    const char *letter = strchr(letters, *text++);
    if (!letter) return false;
    name->kind = kinds[letter - letters];
    name->has_part = true;
    return take_number(&text, &name->microbatch) && is_at_end(text);
}

static bool parse_words(const char *text, pc_traced_name *name) {
    if (take_word(&text, "Forward "))
        name->kind = PC_TRACED_F;
    else if (take_word(&text, "Backward "))
        name->kind = PC_TRACED_WHOLE;
    else
        return false;
    return take_number(&text, &name->microbatch) && is_at_end(text);
}

/* "F3", "f3", "F3.1": as `pipecast schedule --format text` calls them. */
static bool parse_own(const char *text, pc_traced_name *name) {
    static const struct {
        const char *upper, *lower;
        pc_traced_kind kind;
    } letters[] = {{"BW", "bw", PC_TRACED_WHOLE},
                   {"F", "f", PC_TRACED_F},
                   {"B", "b", PC_TRACED_B},
                   {"W", "w", PC_TRACED_W},
                   {"R", "r", PC_TRACED_R}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        bool is_upper = take_word(&text, letters[i].upper);
        if (!is_upper && !take_word(&text, letters[i].lower)) continue;
        name->kind = letters[i].kind;
        name->chunk = !is_upper;
        if (!take_number(&text, &name->microbatch)) return false;
        if (is_upper && *text == '.') return text++, take_number(&text, &name->chunk) && is_at_end(text);
        return is_at_end(text);
    }
    return false;
}

bool pc_traced_name_parse(const char *text, pc_traced_name *name) {
    *name = (pc_traced_name){.chunk = 0};
    if (take_word(&text, "PP:")) return parse_torch(text, name);
    return parse_words(text, name) || (*name = (pc_traced_name){.chunk = 0}, parse_own(text, name));
}
