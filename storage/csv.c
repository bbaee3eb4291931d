#include "storage/csv.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static char *skip_blanks(char *at) {
    while (is_blank(*at)) at++;
    return at;
}

/* At the end of a record: NUL, LF or CRLF. */
static bool is_end(const char *at) {
    return *at == '\0' || *at == '\n' || (at[0] == '\r' && (at[1] == '\n' || at[1] == '\0'));
}

pc_csv pc_csv_begin(char *text) {
    bool has_mark = strncmp(text, "\xef\xbb\xbf", 3) == 0;
    return (pc_csv){has_mark ? text + 3 : text, 0, 1};
}

/* The quote that ends the field which begins behind `from`; NULL if none does. */
static char *closing_quote(char *from) {
    for (char *at = from; *at; at++) {
        if (*at != '"') continue;
        if (at[1] != '"') return at;
        at++;
    }
    return NULL;
}

static int64_t lines_within(const char *from, const char *to) {
    int64_t lines = 0;
    for (; from < to; from++) lines += *from == '\n';
    return lines;
}

/* Makes doubled quotes single. */
static void take_quoted(char *from, const char *end) {
    char *to = from;
    while (from < end) {
        from += *from == '"';
        *to++ = *from++;
    }
    *to = '\0';
}

/* What follows a field: behind it, or behind its closing quote. NULL where a quote is at fault. */
static char *take_field(pc_csv *csv, char *at, char **field) {
    if (*at != '"') {
        *field = at;
        while (*at != ',' && !is_end(at)) at++;
        return at;
    }
    char *end = closing_quote(at + 1), *behind = end ? skip_blanks(end + 1) : NULL;
    if (!end || (*behind != ',' && !is_end(behind))) return NULL;
    csv->next_line += lines_within(at, end);
    *field = at + 1;
    take_quoted(at + 1, end);
    return behind;
}

static void trim(char *field, const char *end) {
    size_t size = (size_t)(end - field);
    while (size > 0 && is_blank(field[size - 1])) size--;
    field[size] = '\0';
}

/* Goes on behind the line that `at` is on. */
static void skip_line(pc_csv *csv, char *at) {
    char *end = strchr(at, '\n');
    csv->next = end ? end + 1 : at + strlen(at);
    csv->next_line += end != NULL;
}

int pc_csv_record(pc_csv *csv, char **field, int most) {
    char *at = csv->next;
    csv->line = csv->next_line;
    if (*at == '\0') return PC_CSV_END;
    for (int count = 0;; at++) {
        at = skip_blanks(at);
        char *begin = at;
        bool is_quoted = *at == '"';
        if (count < most)
            at = take_field(csv, at, &field[count++]);
        else
            at = NULL;
        if (!at) {
            skip_line(csv, begin);
            return is_quoted && count <= most ? PC_CSV_BAD_QUOTE : PC_CSV_TOO_MANY;
        }
        bool is_last = is_end(at);
        char *behind = at + (*at == '\r');
        bool is_line = *behind == '\n';
        if (is_last && !is_line) behind = at + strlen(at);
        if (!is_quoted) trim(field[count - 1], at);
        if (!is_last) {
            *at = '\0';
            continue;
        }
        *at = '\0';
        csv->next = is_line ? behind + 1 : behind;
        csv->next_line += is_line;
        return count;
    }
}
