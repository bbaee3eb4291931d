/* csv.h: the records of a CSV, cut up in place (RFC 4180).
 *
 *     pc_csv csv = pc_csv_begin(text);
 *     for (int count; (count = pc_csv_record(&csv, field, MOST)) != PC_CSV_END;) ...
 *
 * Lines end in LF or CRLF; a byte order mark is skipped. A field may stand in quotes: then it may hold commas, ends of
 * lines, and quotes that are doubled. Blanks around a field, or around its quotes, are no part of it.
 */
#ifndef PC_STORAGE_CSV_H
#define PC_STORAGE_CSV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_csv {
    char *next;   /* what is not read yet; borrowed, and written to: every field ends in a NUL */
    int64_t line; /* on which the record that was read begins, from 1 */
    int64_t next_line;
} pc_csv;

pc_csv pc_csv_begin(char *text);

/* Of a record; then the next one begins on the line behind the fault. */
enum { PC_CSV_END = 0, PC_CSV_BAD_QUOTE = -1, PC_CSV_TOO_MANY = -2 };

/* Puts the fields of the next record, `most` of them at most, into `field`, and returns their number; an empty line is
 * one empty field. PC_CSV_END: there is none. PC_CSV_BAD_QUOTE: a quote does not end, or something follows it;
 * PC_CSV_TOO_MANY: more fields than `most`. */
int pc_csv_record(pc_csv *csv, char **field, int most);

#ifdef __cplusplus
}
#endif
#endif
