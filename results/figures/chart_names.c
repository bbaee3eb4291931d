/* Texts of charts: what columns and groups of runs are called. */
#include "results/figures/chart_private.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void pc_chart_spell(const pc_column *column, char *text, size_t size) {
    size_t length = strlen(column->field.name), unit = strlen(column->field.unit);
    bool ends_in_unit = unit > 0 && length > unit + 1 && column->field.name[length - unit - 1] == '_' &&
                        strncasecmp(column->field.name + length - unit, column->field.unit, unit) == 0;
    snprintf(text, size, "%.*s", (int)(ends_in_unit ? length - unit - 1 : length), column->field.name);
    for (char *c = text; *c; c++)
        if (*c == '_') *c = ' ';
}

/* "peak memory in all, the most over stages" is about peak memory in all. A formula, or what says less than the name of
 * the column, is nothing to stand beside an axis. */
static void shorten(const pc_column *column, char *text, size_t size) {
    const char *description = column->field.description;
    size_t length = strcspn(description, ",:;");
    bool is_formula = memchr(description, '/', length) || memchr(description, '=', length);
    if (is_formula || strncmp(description, "of ", 3) == 0 || strncmp(description, "the same", 8) == 0)
        pc_chart_spell(column, text, size);
    else
        snprintf(text, size, "%.*s", (int)length, description);
    if (text[0] >= 'a' && text[0] <= 'z') text[0] = (char)(text[0] - 'a' + 'A');
}

void pc_chart_axis_label(const pc_column *column, const char *given, char label[PC_CHART_LABEL_SIZE]) {
    if (given) {
        snprintf(label, PC_CHART_LABEL_SIZE, "%s", given);
        return;
    }
    shorten(column, label, PC_CHART_LABEL_SIZE);
    size_t used = strlen(label);
    if (column->field.unit[0] && strcmp(column->field.unit, "1") != 0)
        snprintf(label + used, PC_CHART_LABEL_SIZE - used, " [%s]", column->field.unit);
}

void pc_chart_group_label(const pc_chart_groups *groups, int group, char label[PC_CHART_LABEL_SIZE]) {
    const pc_column *column = groups->column[0];
    char name[PC_CHART_LABEL_SIZE - PC_CHART_NAME_SIZE] = "";
    if (groups->column_count == 0)
        return (void)snprintf(label, PC_CHART_LABEL_SIZE, "%s", groups->files ? groups->name[group] : "ours");
    bool is_number = pc_column_is_number(column);
    if (is_number && groups->column_count == 1) pc_chart_spell(column, name, sizeof name);
    snprintf(label, PC_CHART_LABEL_SIZE, "%s%s%s", name, name[0] ? " " : "", groups->name[group]);
}
