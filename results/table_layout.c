#include "results/table_layout.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "engine/numbers.h"
#include "results/lines.h"

#include <math.h>
#include <string.h>

enum {
    CELL_MAX = 60,  /* characters of a text in a cell */
    CELL_LEAST = 12 /* and on a terminal that is too narrow for more */
};

/* --- the columns that there may be --- */

static bool is_one_of(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Whether the table has it as it is, with no need to ask for it. */
static bool has_look(const pc_column *column) {
    return column && column->shown_at > 0 && !column->share_of;
}

/* Whether the names of runs say nothing that the columns which were swept do not. */
static bool names_repeat(const pc_table_look *look) {
    for (int i = 0; i < look->swept_count; i++)
        if (!has_look(pc_column_find(look->swept[i]))) return false;
    return look->names_repeat;
}

static pc_table_entry entry_of(const pc_column *column, const pc_table_view *view) {
    return (pc_table_entry){.view = *view, .column = column, .facts = {.least = INFINITY}, .text_most = CELL_MAX};
}

static pc_table_entry own_entry(const pc_column *column) {
    const pc_table_view view = {.column = column->field.name,
                                .top = column->top,
                                .bottom = column->bottom,
                                .style = column->style,
                                .shown = column->shown,
                                .sacrifice = column->sacrifice,
                                .instead = column->instead};
    return entry_of(column, &view);
}

/* Ours less what others published, or over it, which goes where theirs goes. */
static pc_table_entry difference_entry(const pc_column *published) {
    const pc_table_view view = {.column = published->of,
                                .top = "differ-",
                                .bottom = "ence",
                                .style = published->style == PC_STYLE_RATE ? PC_STYLE_DIFFERENCE : PC_STYLE_PERCENT,
                                .shown = PC_SHOWN_ALWAYS,
                                .sacrifice = published->sacrifice};
    pc_table_entry entry = entry_of(pc_column_find(published->of), &view);
    entry.minus = published;
    return entry;
}

static const char *unit_below(const char *unit) {
    static const char *const units[][2] = {
        {"s", "[s]"}, {"1/s", "[1/s]"}, {"h", "[h]"}, {"GiB", "[GiB]"}, {"TFLOP/s", "[TFLOP/s]"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i][0], unit) == 0) return units[i][1];
    return "";
}

static pc_column_style style_of(const pc_field *field) {
    if (field->type == PC_FIELD_INT64) return PC_STYLE_INTEGER;
    if (pc_field_is_text(field)) return PC_STYLE_TEXT;
    if (strcmp(field->unit, "GiB") == 0) return PC_STYLE_GIB;
    return strcmp(field->unit, "1") == 0 ? PC_STYLE_PLAIN : PC_STYLE_FOUR_DIGITS;
}

/* Of a column that the table does not have by itself: its unit stands below its name. */
static pc_table_entry plain_entry(const pc_column *column) {
    const pc_table_view view = {.column = column->field.name,
                                .top = column->field.name,
                                .bottom = unit_below(column->field.unit),
                                .style = style_of(&column->field),
                                .shown = PC_SHOWN_ALWAYS};
    return entry_of(column, &view);
}

/* The column that stands next behind this place; NULL if none does. */
static const pc_column *next_shown(int place) {
    int count;
    const pc_column *columns = pc_columns(&count), *next = NULL;
    for (int i = 0; i < count; i++)
        if (columns[i].shown_at > place && (!next || columns[i].shown_at < next->shown_at)) next = &columns[i];
    return next;
}

/* Rounded gibibytes are compared by eye. */
static bool has_difference(const pc_column *column) {
    return column->of && column->style != PC_STYLE_GIB;
}

static void add_own(pc_table_layout *table) {
    const pc_table_look *look = table->rows->look;
    bool repeat = names_repeat(look);
    for (const pc_column *column = next_shown(0); column; column = next_shown(column->shown_at)) {
        const char *name = column->field.name;
        pc_table_entry *entry = &table->entry[table->count++];
        *entry = own_entry(column);
        entry->minus = column->share_of ? pc_column_find(column->share_of) : NULL;
        entry->is_swept = repeat && !entry->minus && is_one_of(name, look->swept, look->swept_count);
        if (repeat && strcmp(name, "name") == 0) entry->view.sacrifice = PC_SACRIFICE_NAME;
        if (has_difference(column)) table->entry[table->count++] = difference_entry(column);
    }
}

static pc_table_entry entry_of_extra(const pc_table_extra *extra, int number) {
    pc_table_view view = {.column = extra->name,
                          .top = extra->name,
                          .bottom = "",
                          .style = extra->is_text ? PC_STYLE_TEXT : PC_STYLE_INTEGER};
    return (pc_table_entry){.view = view, .extra = number};
}

static void add_asked(pc_table_layout *table, int number) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_table_entry *entry = &table->entry[table->count++];
    if (number < count) {
        *entry = has_look(&columns[number]) ? own_entry(&columns[number]) : plain_entry(&columns[number]);
    } else {
        *entry = entry_of_extra(&table->rows->extras.extra[number - count], number - count);
    }
    entry->is_asked = true;
}

static bool add_entries(pc_table_layout *table) {
    const pc_column_choice *choice = table->rows->look->columns;
    int columns;
    pc_columns(&columns);
    table->entry = pc_alloc(2 * (size_t)columns + (choice ? (size_t)choice->count : 0), sizeof *table->entry);
    if (!table->entry) return false;
    add_own(table);
    for (int i = 0; choice && i < choice->count; i++) add_asked(table, choice->column[i]);
    return true;
}

/* --- what there is: the first look --- */

static bool same_value(const pc_column *column, const pc_run_row *a, const pc_run_row *b) {
    if (pc_column_defined(column, a) != pc_column_defined(column, b)) return false;
    if (!pc_column_defined(column, a)) return true;
    if (pc_field_is_real(&column->field)) return pc_column_real(column, a) == pc_column_real(column, b);
    if (pc_column_is_number(column)) return pc_column_integer(column, a) == pc_column_integer(column, b);
    char text_a[PC_COLUMN_TEXT_SIZE], text_b[PC_COLUMN_TEXT_SIZE];
    pc_column_text(column, a, text_a, sizeof text_a);
    pc_column_text(column, b, text_b, sizeof text_b);
    return strcmp(text_a, text_b) == 0;
}

static void look_at_value(const pc_table_layout *table, pc_table_entry *entry, const pc_run_row *row) {
    pc_table_facts *facts = &entry->facts;
    if (!entry->column) {
        facts->any = true;
        return;
    }
    facts->varies = facts->varies || !same_value(entry->column, &table->first, row);
    if (!pc_column_defined(entry->column, row) || (entry->minus && !pc_column_defined(entry->minus, row))) return;
    facts->any = true;
    if (entry->view.style != PC_STYLE_FOUR_DIGITS) return;
    double value = fabs(pc_column_real(entry->column, row));
    if (value > 0 && value < facts->least) facts->least = value;
    if (value > facts->most) facts->most = value;
}

static bool equals(const pc_run_row *row, const char *one, const char *other) {
    const pc_column *a = pc_column_find(one), *b = pc_column_find(other);
    if (pc_column_defined(a, row) != pc_column_defined(b, row)) return false;
    return memcmp((const char *)row + a->field.place, (const char *)row + b->field.place, 8) == 0;
}

static void look_at_row(pc_table_layout *table, const pc_run_row *row) {
    table->named = table->named && row->name[0] != '\0';
    table->all_ok = table->all_ok && row->status == PC_RUN_OK;
    table->pp_is_gpus = table->pp_is_gpus && equals(row, "pp", "gpus");
    table->hfu_is_mfu = table->hfu_is_mfu && equals(row, "hfu", "mfu");
    for (int i = 0; i < table->count; i++) look_at_value(table, &table->entry[i], row);
}

static bool look(pc_table_layout *table) {
    table->named = table->all_ok = table->pp_is_gpus = table->hfu_is_mfu = true;
    for (int64_t i = 0; i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        if (i == 0) table->first = *row;
        look_at_row(table, row);
    }
    return true;
}

/* --- which columns are shown --- */

/* Of a pipeline of all GPUs pp says nothing more; without recomputation HFU is MFU. */
static bool repeats_another(const pc_table_layout *table, const pc_table_entry *entry) {
    return (table->pp_is_gpus && strcmp(entry->view.column, "pp") == 0) ||
           (table->hfu_is_mfu && strcmp(entry->view.column, "hfu") == 0);
}

/* Whether any row has a value of the column, which has a view of its own. */
static bool has_values(const pc_table_layout *table, const char *column) {
    for (int i = 0; i < table->count; i++) {
        const pc_table_entry *entry = &table->entry[i];
        if (!entry->minus && strcmp(entry->view.column, column) == 0) return entry->facts.any;
    }
    return false;
}

/* Whether any row has a published value of the column. */
static bool is_published(const pc_table_layout *table, const char *column) {
    const pc_column *of = pc_column_find(column), *published = of ? pc_column_published(of) : NULL;
    return published && has_values(table, published->field.name);
}

static bool is_shown_by_itself(const pc_table_layout *table, const pc_table_entry *entry) {
    switch (entry->view.shown) {
    case PC_SHOWN_ALWAYS:
    case PC_SHOWN_ALIKE_ABOVE:
        return true;
    case PC_SHOWN_VARYING:
        return entry->facts.varies;
    case PC_SHOWN_UNNAMED:
        return !table->named && entry->facts.varies;
    case PC_SHOWN_COMPARED:
        return is_published(table, entry->view.column);
    case PC_SHOWN_FAILED:
        return !table->all_ok;
    }
    return false;
}

static bool must_show(const pc_table_layout *table, const pc_table_entry *entry) {
    const pc_column_choice *choice = table->rows->look->columns;
    if (choice) return entry->is_asked && (entry->facts.any || !choice->is_all);
    if (!entry->facts.any) return false;
    if (entry->is_swept && entry->facts.varies) return true;
    return !repeats_another(table, entry) && is_shown_by_itself(table, entry);
}

static bool is_asked_elsewhere(const pc_table_layout *table, const pc_table_entry *entry) {
    for (int i = 0; i < table->count; i++)
        if (table->entry[i].is_asked && strcmp(table->entry[i].view.column, entry->view.column) == 0) return true;
    return false;
}

bool pc_table_is_above(const pc_table_layout *table, const pc_table_entry *entry) {
    bool may = entry->view.shown == PC_SHOWN_VARYING || entry->view.shown == PC_SHOWN_UNNAMED;
    if (entry->is_moved) return true;
    return may && !entry->is_shown && entry->facts.any && !entry->facts.varies && !repeats_another(table, entry) &&
           !is_asked_elsewhere(table, entry);
}

/* --- how wide they are: the second look --- */

/* Enough that the smallest number has four digits; -1 if that would write the largest with ten. */
static int decimals_for_four_digits(const pc_table_facts *facts) {
    if (facts->most == 0) return 0;
    if (facts->most / facts->least > 1e5 || facts->most >= 1e9 || facts->least < 1e-6) return -1;
    int decimals = 3 - (int)floor(log10(facts->least));
    return decimals < 0 ? 0 : decimals;
}

static int decimals_of(const pc_table_entry *entry) {
    switch (entry->view.style) {
    case PC_STYLE_RATE:
        return 4;
    case PC_STYLE_GIB:
        return 2;
    case PC_STYLE_FOUR_DIGITS:
        return decimals_for_four_digits(&entry->facts);
    default:
        return 0;
    }
}

static void measure_row(pc_table_layout *table, const pc_run_row *row, pc_text *cell) {
    for (int i = 0; i < table->count && !cell->failed; i++) {
        pc_table_entry *entry = &table->entry[i];
        if (!entry->is_shown) continue;
        pc_table_set_cell(cell, table, entry, row);
        if (cell->failed) return;
        uint64_t hash = pc_hash_bytes(cell->data, cell->size); /* whether all say the same matters, and not what */
        if (table->rows->index == 0) entry->facts.first = hash;
        entry->facts.differs = entry->facts.differs || hash != entry->facts.first;
        entry->width = pc_max(entry->width, pc_utf8_length(cell->data));
    }
}

static bool measure(pc_table_layout *table, pc_text *cell) {
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        entry->decimals = decimals_of(entry);
        entry->width = pc_max(strlen(entry->view.top), strlen(entry->view.bottom));
    }
    for (int64_t i = 0; i < table->rows->count && !cell->failed; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        measure_row(table, row, cell);
    }
    return !cell->failed;
}

/* What all of several rows say alike is said once; what stands beside published values stays there. */
static void move_alike(pc_table_layout *table) {
    if (table->rows->look->columns || table->rows->count < 2) return;
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        bool is_alike = entry->is_shown && entry->view.shown == PC_SHOWN_ALIKE_ABOVE && !entry->facts.differs;
        if (!is_alike || is_published(table, entry->view.column)) continue;
        entry->is_shown = false;
        entry->is_moved = true;
    }
}

/* --- what is given up --- */

static size_t total_width(const pc_table_layout *table) {
    size_t total = 0;
    for (int i = 0; i < table->count; i++)
        if (table->entry[i].is_shown) total += table->entry[i].width + PC_LINES_GAP;
    return total > 0 ? total - PC_LINES_GAP : 0;
}

static bool is_too_wide(const pc_table_layout *table) {
    return total_width(table) > table->width;
}

/* What stands beside published values stays for comparison. */
static bool may_go(const pc_table_layout *table, const pc_table_entry *entry) {
    if (entry->is_swept) return false;
    if (!entry->view.instead) return true;
    bool is_compared = strcmp(entry->view.column, "activation_gib_max") == 0 && is_published(table, entry->view.column);
    return has_values(table, entry->view.instead) && !is_compared;
}

static void sacrifice(pc_table_entry *entry) {
    entry->is_shown = false;
    entry->is_sacrificed = true;
}

static void sacrifice_order(pc_table_layout *table, int order) {
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        if (entry->is_shown && entry->view.sacrifice == order && may_go(table, entry)) sacrifice(entry);
    }
}

static bool compares(const pc_table_layout *table) {
    for (int i = 0; i < table->count; i++)
        if (table->entry[i].is_shown && table->entry[i].column && !table->entry[i].minus && table->entry[i].column->of)
            return true;
    return false;
}

/* Where there is something to compare with, that matters more than where the time goes. */
static void sacrifice_columns(pc_table_layout *table) {
    bool is_compared = compares(table);
    if (is_compared && is_too_wide(table)) sacrifice_order(table, PC_SACRIFICE_WAITS);
    if (is_compared && is_too_wide(table)) sacrifice_order(table, PC_SACRIFICE_TOKENS);
    int last = is_compared ? PC_SACRIFICE_COMPARED : PC_SACRIFICE_WAITS;
    for (int order = 1; order <= last && is_too_wide(table); order++) sacrifice_order(table, order);
}

static bool is_compared_with(const pc_table_layout *table, const pc_table_entry *entry) {
    for (int i = 0; i < table->count; i++) {
        const pc_table_entry *other = &table->entry[i];
        if (other->is_shown && other->minus && !entry->minus && other->column == entry->column) return true;
    }
    return false;
}

/* Ours stays as long as theirs. */
static void sacrifice_order_of_all(pc_table_layout *table, int order, bool is_forced) {
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        bool may = may_go(table, entry) || (is_forced && !entry->is_swept);
        if (entry->is_shown && entry->view.sacrifice == order && may && !is_compared_with(table, entry))
            sacrifice(entry);
    }
}

/* A terminal would break the lines: at last even what nothing stands for goes. */
static void sacrifice_more(pc_table_layout *table) {
    for (int round = 0; round < 2; round++)
        for (int order = 1; order <= PC_SACRIFICE_LAST && is_too_wide(table); order++)
            sacrifice_order_of_all(table, order, round == 1);
}

static pc_table_entry *widest_text(pc_table_layout *table) {
    pc_table_entry *widest = NULL;
    for (int i = 0; i < table->count; i++) {
        pc_table_entry *entry = &table->entry[i];
        bool may = entry->is_shown && pc_table_entry_is_text(entry) && entry->width > CELL_LEAST &&
                   entry->view.shown != PC_SHOWN_FAILED;
        if (may && (!widest || entry->width > widest->width)) widest = entry;
    }
    return widest;
}

/* What can still be done is to cut long names. */
static void cut_texts(pc_table_layout *table) {
    pc_table_entry *widest;
    while (is_too_wide(table) && (widest = widest_text(table))) {
        size_t over = total_width(table) - table->width;
        widest->text_most = widest->width > over + CELL_LEAST ? widest->width - over : CELL_LEAST;
        widest->width = widest->text_most;
    }
}

static void fit(pc_table_layout *table) {
    const pc_table_look *look = table->rows->look;
    table->width = look->width > 0 ? (size_t)look->width : PC_LINES_WIDTH;
    if (look->columns) return;
    sacrifice_columns(table);
    if (look->width <= 0) {
        if (is_too_wide(table)) sacrifice_order(table, PC_SACRIFICE_TOKENS);
        return;
    }
    sacrifice_more(table);
    cut_texts(table);
}

bool pc_table_lay_out(pc_table_rows *rows, pc_table_layout *table, pc_text *cell) {
    *table = (pc_table_layout){.rows = rows};
    if (!add_entries(table)) {
        cell->failed = true;
        return false;
    }
    if (!look(table)) return false;
    for (int i = 0; i < table->count; i++) table->entry[i].is_shown = must_show(table, &table->entry[i]);
    if (!measure(table, cell)) return false;
    move_alike(table);
    fit(table);
    return true;
}

void pc_table_layout_free(pc_table_layout *table) {
    pc_free(table->entry);
    table->entry = NULL;
}
