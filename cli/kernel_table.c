#include "cli/kernel_table.h"

#include "storage/replace.h"

#include <inttypes.h>
#include <math.h>

static const char header[] = "scenario,schedule,stage,pass,kernel,dtype,batch,m,n,k,bytes,count,measured_s,fitted_s\n";

static void add_line(pc_text *text, const pc_replay_report *report, const pc_replay_kernel *kernel) {
    pc_text_add_csv(text, report->scenario);
    pc_text_printf(text,
                   ",%s,%d,%s,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g,",
                   report->schedule, (int)report->stage, kernel->pass, kernel->name, kernel->dtype, kernel->batch,
                   kernel->m, kernel->n, kernel->k, kernel->bytes, kernel->count, kernel->measured_s);
    if (!isnan(kernel->fitted_s)) pc_text_printf(text, "%.9g", kernel->fitted_s);
    pc_text_add(text, "\n", 1);
}

void kernel_table_add(kernel_table *table, const pc_replay_outcome *outcome) {
    pc_number_scope scope = {0};
    table->text.failed = table->text.failed || !pc_number_scope_enter(&scope);
    if (table->text.size == 0) pc_text_printf(&table->text, "%s", header);
    for (int32_t i = 0; i < outcome->kernel_count; i++) add_line(&table->text, &outcome->report, &table->kernel[i]);
    pc_number_scope_leave(&scope);
}

pc_code kernel_table_write(kernel_table *table, const char *path, pc_error *error) {
    if (table->text.failed) return pc_error_no_memory(error);
    return pc_replacement_put(path, table->text.data, table->text.size, error);
}

void kernel_table_free(kernel_table *table) {
    pc_text_free(&table->text);
}
