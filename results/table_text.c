/* The table of runs for people, as lines. */
#include "results/lines.h"
#include "results/stream_text.h"
#include "results/table_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- what all runs have in common --- */

/* "mean of samples", "optimizer"; and the unit of "[s]", or nothing. */
static void add_header_words(pc_text *text, const pc_table_view *view) {
    size_t length = strlen(view->top), end = strcspn(view->bottom, "[");
    bool joins = length > 0 && view->top[length - 1] == '-';
    while (end > 0 && view->bottom[end - 1] == ' ') end--;
    pc_text_add(text, view->top, joins ? length - 1 : length);
    if (end > 0) pc_text_printf(text, "%s%.*s", joins ? "" : " ", (int)end, view->bottom);
}

static void add_header_unit(pc_text *text, const pc_table_view *view) {
    const char *unit = strchr(view->bottom, '[');
    if (unit) pc_text_printf(text, " %.*s", (int)strcspn(unit + 1, "]"), unit + 1);
}

/* A column's name as words: "microbatch size". */
static void add_words(pc_text *text, const char *name) {
    for (; *name; name++) pc_text_add(text, *name == '_' ? " " : name, 1);
}

/* Where people write it another way than the CSV does. */
static const char *label_of(const pc_table_entry *entry) {
    return entry->column && entry->column->label ? entry->column->label : entry->view.column;
}

/* "tp 8", "32.76B parameters", "memory max 52.62 GiB". */
static void add_constant(pc_items *items, const pc_table_entry *entry, const char *value) {
    pc_text item = {0};
    if (entry->is_moved) {
        add_header_words(&item, &entry->view);
        pc_text_printf(&item, " %s", value);
        add_header_unit(&item, &entry->view);
    } else if (entry->view.style == PC_STYLE_COUNT) {
        pc_text_printf(&item, "%s %s", value, entry->view.column);
    } else {
        add_words(&item, label_of(entry));
        pc_text_printf(&item, " %s", value);
    }
    if (!item.failed) pc_items_add(items, item.data);
    items->text->failed = items->text->failed || item.failed;
    pc_text_free(&item);
}

/* A setting of 1 is none, and some columns have a plain value. */
static bool goes_without_saying(const pc_table_entry *entry, const char *value) {
    if (entry->is_moved) return false;
    return (entry->view.style == PC_STYLE_INTEGER && strcmp(value, "1") == 0) ||
           (entry->column && entry->column->plain && strcmp(entry->column->plain, value) == 0);
}

/* Settings first, and then results. */
static void add_constants(const pc_table_layout *table, pc_text *lines, pc_text *cell) {
    pc_items items = {.text = lines, .width = table->width};
    for (int k = 0; k < 2 * table->count && !cell->failed; k++) {
        const pc_table_entry *entry = &table->entry[k % table->count];
        if (!pc_table_is_above(table, entry) || entry->is_moved != (k >= table->count)) continue;
        pc_table_set_cell(cell, table, entry, &table->first);
        if (!cell->failed && !goes_without_saying(entry, cell->data)) add_constant(&items, entry, cell->data);
    }
    if (items.used > 0) pc_text_add(lines, "\n", 1);
}

static int count_lines(const pc_text *lines) {
    int count = 0;
    for (size_t i = 0; i < lines->size; i++) count += lines->data[i] == '\n';
    return count;
}

/* Of the results that all rows have in common the one that matters least; NULL if there is none to give up. */
static pc_table_entry *least_moved(pc_table_layout *table) {
    pc_table_entry *least = NULL;
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        bool may = entry->is_moved && entry->view.sacrifice != PC_SACRIFICE_NEVER;
        if (may && (!least || entry->view.sacrifice < least->view.sacrifice)) least = entry;
    }
    return least;
}

/* Few enough lines to be read. */
static void add_few_constants(pc_table_layout *table, pc_text *lines, pc_text *cell) {
    enum { LINES_MAX = 4 };
    pc_table_entry *least;
    add_constants(table, lines, cell);
    while (!lines->failed && !cell->failed && count_lines(lines) > LINES_MAX && (least = least_moved(table))) {
        least->is_moved = false;
        least->is_sacrificed = true;
        lines->size = 0;
        add_constants(table, lines, cell);
    }
}

/* Above the table: "model gpt-1.5b, 1.56B parameters, machine a100, tp 8"; and what else there is to say. */
static void add_heading(pc_table_layout *table, pc_text *text, pc_text *cell) {
    const pc_table_look *look = table->rows->look;
    pc_text lines = {0};
    add_few_constants(table, &lines, cell);
    if (lines.size > 0 && !lines.failed) pc_lines_add_block(text, lines.data, PC_INK_DIM, look->is_coloured);
    for (int i = 0; i < look->note_count; i++) pc_lines_add_wrapped(text, look->notes[i], table->width);
    if (lines.size > 0 || look->note_count > 0) pc_text_add(text, "\n", 1);
    text->failed = text->failed || lines.failed;
    pc_text_free(&lines);
}

/* --- the table --- */

static pc_line line_of(const pc_table_layout *table, pc_text *text) {
    return (pc_line){.text = text, .is_coloured = table->rows->look->is_coloured};
}

static void add_header_line(const pc_table_layout *table, pc_text *text, bool is_top) {
    pc_line line = line_of(table, text);
    for (int i = 0; i < table->count; i++) {
        const pc_table_entry *entry = &table->entry[i];
        if (!entry->is_shown) continue;
        pc_line_add(&line, is_top ? entry->view.top : entry->view.bottom, entry->width, pc_table_entry_is_text(entry),
                    PC_INK_PLAIN);
    }
    pc_line_end(&line);
}

static bool has_second_line(const pc_table_layout *table) {
    for (int i = 0; i < table->count; i++)
        if (table->entry[i].is_shown && table->entry[i].view.bottom[0] != '\0') return true;
    return false;
}

static void add_rule(const pc_table_layout *table, pc_text *text) {
    pc_line line = line_of(table, text);
    for (int i = 0; i < table->count; i++)
        if (table->entry[i].is_shown) pc_line_add_rule(&line, table->entry[i].width);
    pc_line_end(&line);
}

static pc_ink ink_of_status(int64_t status) {
    if (status == PC_RUN_OUT_OF_MEMORY) return PC_INK_RED;
    return status == PC_RUN_INFEASIBLE ? PC_INK_YELLOW : PC_INK_PLAIN;
}

/* What stands out of a row that is not ok: its number, and its status. */
static pc_ink ink_of(const pc_table_entry *entry, const pc_run_row *row) {
    bool stands_out = strcmp(entry->view.column, "run") == 0 || strcmp(entry->view.column, "status") == 0;
    return stands_out ? ink_of_status(row->status) : PC_INK_PLAIN;
}

static void add_row(const pc_table_layout *table, pc_text *text, pc_text *cell, const pc_run_row *row) {
    pc_line line = line_of(table, text);
    for (int i = 0; i < table->count && !cell->failed; i++) {
        const pc_table_entry *entry = &table->entry[i];
        if (!entry->is_shown) continue;
        pc_table_set_cell(cell, table, entry, row);
        if (!cell->failed)
            pc_line_add(&line, cell->data, entry->width, pc_table_entry_is_text(entry), ink_of(entry, row));
    }
    pc_line_end(&line);
}

static bool write_rows(const pc_table_layout *table, pc_text *text, pc_text *cell, FILE *stream) {
    for (int64_t i = 0; i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        add_row(table, text, cell, row);
        if (cell->failed || !pc_stream_text_flush(text, stream)) return false;
    }
    return true;
}

/* --- below it --- */

static void add_message(const pc_table_layout *table, pc_text *text, const pc_run_row *row) {
    char start[32];
    snprintf(start, sizeof start, "run %" PRId64 ":", row->run);
    pc_lines_add_inked(text, start, ink_of_status(row->status), table->rows->look->is_coloured);
    pc_text_add(text, " ", 1);
    pc_text_add_line(text, row->message, sizeof row->message);
    pc_text_add(text, "\n", 1);
}

/* Why rows are not ok, one a line. */
static bool write_messages(const pc_table_layout *table, pc_text *text, FILE *stream) {
    bool any = false;
    for (int64_t i = 0; !table->all_ok && i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        if (row->status == PC_RUN_OK || row->message[0] == '\0') continue;
        pc_text_printf(text, "%s", any ? "" : "\n");
        add_message(table, text, row);
        any = true;
        if (!pc_stream_text_flush(text, stream)) return false;
    }
    return true;
}

static void add_sacrificed(const pc_table_layout *table, pc_text *text) {
    pc_text names = {0};
    for (int i = 0; i < table->count; i++) {
        const pc_table_entry *entry = &table->entry[i];
        if (!entry->is_sacrificed || (entry->minus && entry->view.style != PC_STYLE_SHARE)) continue;
        pc_text_printf(&names, "%s%s", names.size > 0 ? ", " : PC_LINES_LEFT_OUT, entry->view.column);
    }
    if (names.size > 0 && !names.failed) {
        pc_text_add(text, "\n", 1);
        pc_lines_add_wrapped(text, names.data, table->width);
    }
    text->failed = text->failed || names.failed;
    pc_text_free(&names);
}

/* --- all of it --- */

static bool write_table(pc_table_layout *table, pc_text *text, pc_text *cell, FILE *stream) {
    add_heading(table, text, cell);
    add_header_line(table, text, true);
    if (has_second_line(table)) add_header_line(table, text, false);
    add_rule(table, text);
    if (!write_rows(table, text, cell, stream) || !write_messages(table, text, stream)) return false;
    add_sacrificed(table, text);
    return true;
}

bool pc_table_text_write(pc_table_rows *rows, pc_text *text, FILE *stream) {
    pc_table_layout table = {.rows = rows};
    pc_text cell = {0};
    bool going = true;
    if (rows->count == 0)
        pc_text_printf(text, "no runs\n");
    else
        going = pc_table_lay_out(rows, &table, &cell) && write_table(&table, text, &cell, stream);
    text->failed = text->failed || cell.failed;
    pc_table_layout_free(&table);
    pc_text_free(&cell);
    return going && pc_stream_text_flush(text, stream);
}
