#include "results/table_view.h"

#include <stddef.h>
#include <string.h>

enum {
    WAITS = PC_SACRIFICE_WAITS,
    TOKENS = PC_SACRIFICE_TOKENS,
    BESIDE_COMPARED = PC_SACRIFICE_BESIDE_COMPARED,
    COMPARED = PC_SACRIFICE_COMPARED,
    NARROW = PC_SACRIFICE_NARROW,
};

static const pc_table_view views[] = {
    {"run", NULL, "run", "", PC_STYLE_INTEGER, PC_SHOWN_ALWAYS, 0, NULL},
    {"scenario", NULL, "scenario", "", PC_STYLE_TEXT, PC_SHOWN_VARYING, 5, NULL},
    {"name", NULL, "name", "", PC_STYLE_TEXT, PC_SHOWN_ALWAYS, 0, NULL},
    {"model", NULL, "model", "", PC_STYLE_TEXT, PC_SHOWN_UNNAMED, NARROW + 9, NULL},
    {"parameters", NULL, "para-", "meters", PC_STYLE_COUNT, PC_SHOWN_VARYING, 8, NULL},
    {"machine", NULL, "machine", "", PC_STYLE_TEXT, PC_SHOWN_VARYING, NARROW + 9, NULL},
    {"schedule", NULL, "schedule", "", PC_STYLE_TEXT, PC_SHOWN_UNNAMED, NARROW + 9, NULL},
    {"gpus", NULL, "GPUs", "", PC_STYLE_INTEGER, PC_SHOWN_VARYING, NARROW + 8, NULL},
    {"tp", NULL, "tp", "", PC_STYLE_INTEGER, PC_SHOWN_VARYING, NARROW + 8, NULL},
    {"pp", NULL, "pp", "", PC_STYLE_INTEGER, PC_SHOWN_VARYING, NARROW + 8, NULL},
    {"dp", NULL, "dp", "", PC_STYLE_INTEGER, PC_SHOWN_VARYING, NARROW + 4, NULL},
    {"virtual_pp", NULL, "chunks", "", PC_STYLE_INTEGER, PC_SHOWN_UNNAMED, NARROW + 4, NULL},
    {"microbatch_size", NULL, "microbatch", "size", PC_STYLE_INTEGER, PC_SHOWN_UNNAMED, NARROW + 3, NULL},
    {"microbatches", NULL, "micro-", "batches", PC_STYLE_INTEGER, PC_SHOWN_VARYING, NARROW + 1, NULL},
    {"global_batch", NULL, "global", "batch", PC_STYLE_INTEGER, PC_SHOWN_UNNAMED, 7, NULL},
    {"seq_len", NULL, "sequence", "[tokens]", PC_STYLE_INTEGER, PC_SHOWN_UNNAMED, NARROW + 3, NULL},
    {"recompute", NULL, "recompute", "", PC_STYLE_TEXT, PC_SHOWN_UNNAMED, NARROW + 3, NULL},
    {"layout", NULL, "layout", "", PC_STYLE_TEXT, PC_SHOWN_VARYING, NARROW + 3, NULL},
    {"zero", NULL, "ZeRO", "", PC_STYLE_INTEGER, PC_SHOWN_UNNAMED, NARROW + 3, NULL},
    {"iteration_s", NULL, "iteration", "[s]", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS, 0, NULL},
    {"iteration_mean_s", NULL, "mean of", "samples [s]", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, 0, NULL},
    {"iteration_p50_s", NULL, "median", "[s]", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, NARROW + 1, NULL},
    {"iteration_p95_s", NULL, "95%", "[s]", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, NARROW + 2, NULL},
    {"slowdown_mean", NULL, "mean over", "good day", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, NARROW + 1, NULL},
    {"goodput_mean", NULL, "goodput", "mean", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, 0, NULL},
    {"goodput_p05", NULL, "goodput", "5%", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, NARROW + 2, NULL},
    {"published_iteration_s", NULL, "published", "[s]", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS, COMPARED, NULL},
    {"iteration_s", "published_iteration_s", "differ-", "ence", PC_STYLE_PERCENT, PC_SHOWN_ALWAYS, COMPARED, NULL},
    {"tokens_per_s_per_gpu", NULL, "tokens/s", "per GPU", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, TOKENS, NULL},
    {"samples_per_s_per_gpu", NULL, "samples/s", "per GPU", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, 3, "mfu"},
    {"published_samples_per_s_per_gpu", NULL, "published", "", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS, 3, NULL},
    {"samples_per_s_per_gpu", "published_samples_per_s_per_gpu", "differ-", "ence", PC_STYLE_PERCENT, PC_SHOWN_ALWAYS,
     3, NULL},
    {"tflops_per_gpu", NULL, "TFLOP/s", "per GPU", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALIKE_ABOVE, 2, NULL},
    {"published_tflops_per_gpu", NULL, "published", "", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS, COMPARED, NULL},
    {"tflops_per_gpu", "published_tflops_per_gpu", "differ-", "ence", PC_STYLE_PERCENT, PC_SHOWN_ALWAYS, COMPARED,
     NULL},
    {"hardware_tflops_per_gpu", NULL, "hardware", "TFLOP/s", PC_STYLE_FOUR_DIGITS, PC_SHOWN_COMPARED, 9, NULL},
    {"published_hardware_tflops_per_gpu", NULL, "published", "hardware", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS,
     COMPARED, NULL},
    {"hardware_tflops_per_gpu", "published_hardware_tflops_per_gpu", "differ-", "ence", PC_STYLE_PERCENT,
     PC_SHOWN_ALWAYS, COMPARED, NULL},
    {"peak_tflops", NULL, "peak", "TFLOP/s", PC_STYLE_PLAIN, PC_SHOWN_VARYING, NARROW, NULL},
    {"mfu", NULL, "MFU", "", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, NARROW + 12, NULL},
    {"published_mfu", NULL, "published", "MFU", PC_STYLE_RATE, PC_SHOWN_ALWAYS, NARROW + 6, NULL},
    {"mfu", "published_mfu", "differ-", "ence", PC_STYLE_DIFFERENCE, PC_SHOWN_ALWAYS, NARROW + 6, NULL},
    {"hfu", NULL, "HFU", "", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, 1, NULL},
    {"exposed_tp_s", "iteration_s", "TP", "wait", PC_STYLE_SHARE, PC_SHOWN_ALIKE_ABOVE, WAITS, NULL},
    {"exposed_pp_s", "iteration_s", "PP", "wait", PC_STYLE_SHARE, PC_SHOWN_ALIKE_ABOVE, WAITS, NULL},
    {"exposed_dp_s", "iteration_s", "DP", "wait", PC_STYLE_SHARE, PC_SHOWN_ALIKE_ABOVE, WAITS, NULL},
    {"exposed_optimizer_s", "iteration_s", "opti-", "mizer", PC_STYLE_SHARE, PC_SHOWN_ALIKE_ABOVE, WAITS, NULL},
    {"bubble_rate_span", NULL, "bubble", "(span)", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, BESIDE_COMPARED, "mfu"},
    {"published_bubble_rate_span", NULL, "published", "(span)", PC_STYLE_RATE, PC_SHOWN_ALWAYS, NARROW + 5, NULL},
    {"bubble_rate_span", "published_bubble_rate_span", "differ-", "ence", PC_STYLE_DIFFERENCE, PC_SHOWN_ALWAYS,
     NARROW + 5, NULL},
    {"bubble_rate_makespan", NULL, "bubble", "(makespan)", PC_STYLE_RATE, PC_SHOWN_ALIKE_ABOVE, 4, NULL},
    {"activation_gib_max", NULL, "activ.", "max [GiB]", PC_STYLE_GIB, PC_SHOWN_ALIKE_ABOVE, 6, "memory_gib_max"},
    {"published_activation_gib", NULL, "published", "[GiB]", PC_STYLE_GIB, PC_SHOWN_ALWAYS, NARROW + 5, NULL},
    {"memory_gib_max", NULL, "memory", "max [GiB]", PC_STYLE_GIB, PC_SHOWN_ALIKE_ABOVE, NARROW + 11, NULL},
    {"cost_per_million_tokens", NULL, "cost of 1M", "tokens", PC_STYLE_FOUR_DIGITS, PC_SHOWN_ALWAYS, 0, NULL},
    {"status", NULL, "status", "", PC_STYLE_TEXT, PC_SHOWN_FAILED, 0, NULL},
};

const pc_table_view *pc_table_views(int *count) {
    *count = sizeof views / sizeof *views;
    return views;
}

const pc_table_view *pc_table_view_find(const char *column) {
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (!views[i].minus && strcmp(views[i].column, column) == 0) return &views[i];
    return NULL;
}

static const char *unit_below(const char *unit) {
    static const char *const units[][2] = {
        {"s", "[s]"}, {"1/s", "[1/s]"}, {"h", "[h]"}, {"GiB", "[GiB]"}, {"TFLOP/s", "[TFLOP/s]"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i][0], unit) == 0) return units[i][1];
    return "";
}

static pc_table_style style_of(const pc_column *column) {
    if (column->type == PC_COLUMN_INTEGER) return PC_STYLE_INTEGER;
    if (column->type != PC_COLUMN_REAL) return PC_STYLE_TEXT;
    if (strcmp(column->unit, "GiB") == 0) return PC_STYLE_GIB;
    return strcmp(column->unit, "1") == 0 ? PC_STYLE_PLAIN : PC_STYLE_FOUR_DIGITS;
}

pc_table_view pc_table_view_of(const pc_column *column) {
    return (pc_table_view){.column = column->name,
                           .top = column->name,
                           .bottom = unit_below(column->unit),
                           .style = style_of(column),
                           .shown = PC_SHOWN_ALWAYS};
}
