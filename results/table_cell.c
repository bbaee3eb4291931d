/* What a cell of the table for people says. */
#include "results/table_layout.h"

#include <inttypes.h>
#include <math.h>

static double number_of(const pc_table_entry *entry, const pc_run_row *row) {
    double value = pc_column_real(entry->column, row);
    if (!entry->minus) return value;
    double theirs = pc_column_real(entry->minus, row);
    if (entry->view.style == PC_STYLE_SHARE) return 100 * value / theirs;
    return entry->view.style == PC_STYLE_PERCENT ? 100 * (value / theirs - 1) : value - theirs;
}

/* A difference that rounds to nothing has no sign of its own. */
static double without_negative_zero(double value, int decimals) {
    return fabs(value) < 0.5 * pow(10, -decimals) ? 0.0 : value;
}

static void add_signed(pc_text *cell, double value, int decimals, const char *unit) {
    pc_text_printf(cell, "%+.*f%s", decimals, without_negative_zero(value, decimals), unit);
}

static void add_text(pc_text *cell, const pc_table_entry *entry, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    pc_column_text(entry->column, row, text, sizeof text);
    pc_text_add_line(cell, text, entry->text_most);
}

static void add_number(pc_text *cell, double value, int decimals) {
    if (decimals < 0)
        pc_text_printf(cell, "%.4g", value);
    else
        pc_text_printf(cell, "%.*f", decimals, value);
}

static bool is_defined(const pc_table_entry *entry, const pc_run_row *row) {
    return pc_column_defined(entry->column, row) && (!entry->minus || pc_column_defined(entry->minus, row));
}

static void add_value(pc_text *cell, const pc_table_entry *entry, const pc_run_row *row) {
    switch (entry->view.style) {
    case PC_STYLE_TEXT:
        return add_text(cell, entry, row);
    case PC_STYLE_INTEGER:
        return pc_text_printf(cell, "%" PRId64, pc_column_integer(entry->column, row));
    case PC_STYLE_PLAIN:
        return pc_text_printf(cell, "%.6g", number_of(entry, row));
    case PC_STYLE_COUNT:
        return pc_text_add_count(cell, number_of(entry, row));
    case PC_STYLE_SHARE:
        return pc_text_printf(cell, "%.1f%%", number_of(entry, row));
    case PC_STYLE_DIFFERENCE:
        return add_signed(cell, number_of(entry, row), 4, "");
    case PC_STYLE_PERCENT:
        return add_signed(cell, number_of(entry, row), 1, "%");
    case PC_STYLE_RATE:
    case PC_STYLE_GIB:
    case PC_STYLE_FOUR_DIGITS:
        return add_number(cell, number_of(entry, row), entry->decimals);
    }
}

void pc_table_set_cell(pc_text *cell, const pc_table_layout *table, const pc_table_entry *entry,
                       const pc_run_row *row) {
    const pc_table_extras *extras = &table->rows->extras;
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (!entry->column)
        extras->add(extras->context, table->rows->index, entry->extra, cell);
    else if (is_defined(entry, row))
        add_value(cell, entry, row);
}
