/* The run of a plan, what limits it, and by what it is behind the best: plan_table.h has the definitions. */
#include "results/plan_table.h"

#include "engine/numbers.h"
#include "models/workload/layout.h"
#include "scenarios/run_key.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static pc_device_memory fullest_of(const pc_run_detail *detail) {
    pc_device_memory fullest = {.peak_bytes = -1};
    for (int d = 0; d < detail->devices; d++)
        if (detail->memory[d].peak_bytes > fullest.peak_bytes) fullest = detail->memory[d];
    return fullest;
}

pc_code pc_plan_row_run(const pc_run_spec *spec, const pc_run_labels *labels, pc_plan_row *plan, pc_run_detail *detail,
                        pc_error *error) {
    pc_code code = pc_run_row_make(spec, labels, &plan->row, detail, error);
    if (code) return code;
    pc_run_key_text(pc_run_key_of(spec), plan->row.key);
    plan->fullest = fullest_of(detail);
    pc_interval_kind kind = pc_interval_kind_of(spec, labels->software);
    plan->ratio_error[PC_INTERVAL_TIME] = pc_interval_find(PC_INTERVAL_TIME, &kind)->pair;
    plan->ratio_error[PC_INTERVAL_MEMORY] = pc_interval_find(PC_INTERVAL_MEMORY, &kind)->pair;
    return PC_OK;
}

pc_plan_amounts pc_plan_write_gib(int64_t found_bytes, int64_t limit_bytes, int decimals) {
    enum { MOST = 9 }; /* a byte */
    pc_plan_amounts text = {.found = ""};
    bool is_told = false;
    for (; decimals <= MOST && !is_told; decimals++) {
        snprintf(text.found, sizeof text.found, "%.*f", decimals, (double)found_bytes / PC_BYTES_PER_GIB);
        snprintf(text.limit, sizeof text.limit, "%.*f", decimals, (double)limit_bytes / PC_BYTES_PER_GIB);
        is_told = strcmp(text.found, text.limit) != 0 && strpbrk(text.limit, "123456789");
    }
    return text;
}

pc_plan_amounts pc_plan_write_amounts(double found, double limit) {
    enum { FEWEST = 6, MOST = 17 };
    pc_plan_amounts text = {.found = ""};
    bool is_told = false;
    for (int digits = FEWEST; digits <= MOST && !is_told; digits++) {
        snprintf(text.found, sizeof text.found, "%.*g", digits, found);
        snprintf(text.limit, sizeof text.limit, "%.*g", digits, limit);
        is_told = strcmp(text.found, text.limit) != 0;
    }
    return text;
}

const char *pc_plan_objective_name(pc_plan_objective objective) {
    static const char *const names[PC_PLAN_OBJECTIVES] = {
        [PC_PLAN_THROUGHPUT] = "throughput", [PC_PLAN_MEMORY] = "memory", [PC_PLAN_COST] = "cost"};
    return names[objective];
}

static double or_zero(double number) {
    return isfinite(number) ? number : 0.0;
}

static void memory_parts(const pc_device_memory *m, double parts[PC_PLAN_KINDS], const char *names[PC_PLAN_KINDS]) {
    static const char *const kinds[PC_PLAN_KINDS] = {"parameters",  "gradients", "optimizer", "buffers",
                                                     "activations", "",          "",          ""};
    const double bytes[PC_PLAN_KINDS] = {(double)m->parameters,
                                         (double)m->gradients,
                                         (double)m->optimizer,
                                         (double)m->buffers,
                                         (double)m->activations,
                                         0.0,
                                         0.0,
                                         0.0};
    memcpy(parts, bytes, sizeof bytes);
    memcpy(names, kinds, sizeof kinds);
}

void pc_plan_parts(pc_plan_objective objective, const pc_plan_row *plan, double parts[PC_PLAN_KINDS],
                   const char *names[PC_PLAN_KINDS]) {
    static const char *const kinds[PC_PLAN_KINDS] = {"kernels", "TP", "CP", "EP", "PP", "DP", "optimizer", "bubble"};
    const pc_run_row *row = &plan->row;
    if (objective == PC_PLAN_MEMORY) {
        memory_parts(&plan->fullest, parts, names);
        return;
    }
    const double waits[PC_PLAN_KINDS] = {0.0,
                                         or_zero(row->exposed_tp_s),
                                         or_zero(row->exposed_cp_s),
                                         or_zero(row->exposed_ep_s),
                                         or_zero(row->exposed_pp_s),
                                         or_zero(row->exposed_dp_s),
                                         or_zero(row->exposed_optimizer_s),
                                         or_zero(row->exposed_bubble_s)};
    double tokens = (double)row->global_batch * (double)row->seq_len, weight = 1.0, rest = row->iteration_s;
    double price =
        isnan(row->cost_per_million_tokens) ? 1.0 : row->cost_per_million_tokens / row->gpu_hours_per_million_tokens;
    if (objective == PC_PLAN_COST) weight = (double)row->gpus * price;
    for (int k = 1; k < PC_PLAN_KINDS; k++) {
        parts[k] = waits[k] / tokens * weight;
        rest -= waits[k];
    }
    parts[0] = rest / tokens * weight;
    memcpy(names, kinds, sizeof kinds);
}

static const double SHOWN = 0.05; /* points: what does not round to 0.0 */

void pc_plan_limits(const pc_plan_row *plan, char text[PC_PLAN_TEXT_SIZE]) {
    static const char *const words[PC_PLAN_KINDS] = {
        "", "TP traffic", "CP traffic", "EP traffic", "PP transfers", "DP traffic", "optimizer", "bubble"};
    double parts[PC_PLAN_KINDS], whole = 0.0;
    const char *names[PC_PLAN_KINDS];
    int most = 1;
    pc_plan_parts(PC_PLAN_THROUGHPUT, plan, parts, names);
    for (int k = 0; k < PC_PLAN_KINDS; k++) whole += parts[k];
    for (int k = 2; k < PC_PLAN_KINDS; k++)
        if (parts[k] > parts[most]) most = k;
    int used = 100 * parts[most] >= SHOWN * whole
                   ? snprintf(text, PC_PLAN_TEXT_SIZE, "%s %.1f%%", words[most], 100 * parts[most] / whole)
                   : snprintf(text, PC_PLAN_TEXT_SIZE, "kernels");
    if (plan->found.memory_limits) snprintf(text + used, (size_t)(PC_PLAN_TEXT_SIZE - used), ", memory");
}

void pc_plan_behind(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan,
                    char text[PC_PLAN_TEXT_SIZE]) {
    double ours[PC_PLAN_KINDS], theirs[PC_PLAN_KINDS], whole = 0.0, total = 0.0;
    const char *names[PC_PLAN_KINDS];
    text[0] = '\0';
    if (plan == best) return;
    pc_plan_parts(objective, best, theirs, names);
    pc_plan_parts(objective, plan, ours, names);
    for (int k = 0; k < PC_PLAN_KINDS; k++) whole += theirs[k];
    for (int k = 0; k < PC_PLAN_KINDS; k++) {
        ours[k] = 100 * (ours[k] - theirs[k]) / whole;
        total += ours[k];
    }
    int used = snprintf(text, PC_PLAN_TEXT_SIZE, "%+.1f%%", fabs(total) < SHOWN ? 0.0 : total);
    for (int shown = 0; shown < PC_PLAN_KINDS && used < PC_PLAN_TEXT_SIZE; shown++) {
        int most = 0;
        for (int k = 1; k < PC_PLAN_KINDS; k++)
            if (fabs(ours[k]) > fabs(ours[most])) most = k;
        if (fabs(ours[most]) < SHOWN) break;
        used += snprintf(text + used, (size_t)(PC_PLAN_TEXT_SIZE - used), "%s %s %+.1f", shown ? "," : ":", names[most],
                         ours[most]);
        ours[most] = 0.0;
    }
}

/* ---- whether it is sure ---- */

static double value_of(pc_plan_objective objective, const pc_plan_row *plan) {
    double parts[PC_PLAN_KINDS], whole = 0.0;
    const char *names[PC_PLAN_KINDS];
    pc_plan_parts(objective, plan, parts, names);
    for (int k = 0; k < PC_PLAN_KINDS; k++) whole += parts[k];
    return whole;
}

/* As far apart as those of the time or the memory that it follows from. */
static pc_interval interval_of(pc_plan_objective objective, const pc_plan_row *plan) {
    const pc_run_row *row = &plan->row;
    double value = value_of(objective, plan);
    if (objective == PC_PLAN_MEMORY)
        return (pc_interval){value * row->memory_gib_low / row->memory_gib_max,
                             value * row->memory_gib_high / row->memory_gib_max};
    return (pc_interval){value * row->iteration_s_low / row->iteration_s,
                         value * row->iteration_s_high / row->iteration_s};
}

bool pc_plan_ties(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan) {
    pc_interval theirs = interval_of(objective, best), ours = interval_of(objective, plan);
    return plan != best && ours.low <= theirs.high && theirs.low <= ours.high;
}

/* GPUs of one family, with one software, however sharded. */
static bool is_on_as_many(const pc_run_row *a, const pc_run_row *b) {
    const char *sharding = strrchr(a->kind, ' ');
    return sharding && strncmp(a->kind, b->kind, (size_t)(sharding - a->kind + 1)) == 0 && a->gpus == b->gpus;
}

bool pc_plan_is_close(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan) {
    double beyond = value_of(objective, plan) / value_of(objective, best) - 1.0;
    return plan != best && is_on_as_many(&best->row, &plan->row) &&
           beyond <= best->ratio_error[objective == PC_PLAN_MEMORY ? PC_INTERVAL_MEMORY : PC_INTERVAL_TIME];
}

/* ---- rules ---- */

/* As `plan` lists it. */
static const char *layout_name(int64_t listed) {
    return listed == PC_PLAN_LAYOUT_AUTO ? "auto" : pc_layout_name((pc_cut_layout)listed);
}

/* Whether some plan has context ranks. */
static bool has_context(const pc_plan_space *space) {
    for (int i = 0; i < space->cp.count; i++)
        if (space->cp.values[i] > 1) return true;
    return false;
}

static const char *rule_text(const pc_plan_space *space, pc_plan_rule rule) {
    switch (rule) {
    case PC_PLAN_RULE_GPUS:
        return space->dp.count      ? "tp x pp x dp is not the number of GPUs"
               : has_context(space) ? "tp x cp x pp does not divide the GPUs"
                                    : "tp x pp does not divide the GPUs";
    case PC_PLAN_RULE_INTERLEAVING:
        return "one stage, or one chunk, has nothing to interleave";
    case PC_PLAN_RULE_BATCH:
        return "dp x microbatch size does not divide the batch";
    case PC_PLAN_RULE_SCHEDULE:
        return "the schedule cannot have these stages, chunks or microbatches";
    case PC_PLAN_RULE_OFFLOAD:
        return "offload has no place beside the recomputation, the ZeRO level, the schedule or the machine";
    case PC_PLAN_RULE_TENSOR:
        return "tp or cp does not divide the model's heads, widths or sequence";
    default:
        return "the machine has fewer GPUs, or a size is too large";
    }
}

static int write_layers(const pc_plan_space *space, char text[PC_PLAN_REASON_SIZE]) {
    int used = snprintf(text, PC_PLAN_REASON_SIZE, "%" PRId64 " layers do not divide by pp x chunks, laid out ",
                        space->bases[0].spec.model.layers);
    for (int i = 0; i < space->layouts.count; i++) {
        const char *before = i == 0 ? "" : i + 1 < space->layouts.count ? ", " : " or ";
        used += snprintf(text + used, (size_t)(PC_PLAN_REASON_SIZE - used), "%s%s", before,
                         layout_name(space->layouts.values[i]));
    }
    return used;
}

/* How many of a list's numbers divide another one. */
static int count_divisors(const pc_plan_list *list, int64_t number) {
    int count = 0;
    for (int i = 0; i < list->count; i++) count += list->values[i] > 0 && number % list->values[i] == 0;
    return count;
}

/* "3", "3, 5", "3, 5, 7 and so on". */
static void write_numbers(const pc_plan_list *list, char text[64]) {
    int used = 0, most = list->count < 3 ? list->count : 3;
    text[0] = '\0';
    for (int i = 0; i < most; i++)
        used += snprintf(text + used, (size_t)(64 - used), "%s%" PRId64, i ? ", " : "", list->values[i]);
    if (list->count > most) snprintf(text + used, (size_t)(64 - used), " and so on");
}

/* What none of the listed values can have is to blame alone. */
static int write_experts(const pc_plan_space *space, char text[PC_PLAN_REASON_SIZE]) {
    const pc_experts *experts = &space->bases[0].spec.model.experts;
    char numbers[64];
    int divide = count_divisors(&space->ep, experts->num_experts);
    int divide_width = count_divisors(&space->etp, experts->ffn_hidden);
    if (experts->num_experts == 0)
        return snprintf(text, PC_PLAN_REASON_SIZE, "ep or etp is above 1, and the model has no experts (num_experts)");
    if (space->ep.count > 0 && divide == 0) {
        write_numbers(&space->ep, numbers);
        return snprintf(text, PC_PLAN_REASON_SIZE, "ep %s does not divide the model's %d experts (num_experts)",
                        numbers, (int)experts->num_experts);
    }
    if (space->etp.count > 0 && divide_width == 0) {
        write_numbers(&space->etp, numbers);
        return snprintf(text, PC_PLAN_REASON_SIZE, "etp %s does not divide the experts' width of %" PRId64, numbers,
                        (int64_t)experts->ffn_hidden);
    }
    if (divide == space->ep.count && divide_width == space->etp.count)
        return snprintf(text, PC_PLAN_REASON_SIZE,
                        "ep x etp does not divide the tp x cp x dp GPUs of a stage; or no order of ranks, or the "
                        "schedule, can have it");
    return snprintf(text, PC_PLAN_REASON_SIZE,
                    "ep x etp does not divide a stage's GPUs, ep the %d experts or etp their width; or no order of "
                    "ranks, or the schedule, can have them",
                    (int)experts->num_experts);
}

static int write_rule(const pc_plan_space *space, pc_plan_rule rule, char text[PC_PLAN_REASON_SIZE]) {
    if (rule == PC_PLAN_RULE_LAYERS) return write_layers(space, text);
    if (rule == PC_PLAN_RULE_EXPERTS) return write_experts(space, text);
    return snprintf(text, PC_PLAN_REASON_SIZE, "%s", rule_text(space, rule));
}

static void write_option(const pc_plan_remedy *remedy, char text[64]) {
    static const char *const options[] = {[PC_PLAN_WAY_TP] = "tp",
                                          [PC_PLAN_WAY_PP] = "pp",
                                          [PC_PLAN_WAY_DP] = "dp",
                                          [PC_PLAN_WAY_CP] = "cp",
                                          [PC_PLAN_WAY_EP] = "ep",
                                          [PC_PLAN_WAY_ETP] = "etp",
                                          [PC_PLAN_WAY_CHUNKS] = "chunks",
                                          [PC_PLAN_WAY_MICROBATCH_SIZE] = "microbatch-size",
                                          [PC_PLAN_WAY_BATCH] = "global-batch"};
    if (remedy->way == PC_PLAN_WAY_LAYOUT)
        snprintf(text, 64, "--layout %s", layout_name(remedy->value));
    else if (remedy->way == PC_PLAN_WAY_SCHEDULE)
        snprintf(text, 64, "--schedule %s", remedy->generator->name);
    else
        snprintf(text, 64, "--%s %" PRId64, options[remedy->way], remedy->value);
}

void pc_plan_rule_text(const pc_plan_space *space, const pc_plan_log *log, const pc_plan_remedy *remedy,
                       char text[PC_PLAN_REASON_SIZE]) {
    char option[64];
    int used = write_rule(space, remedy->blamed, text);
    used += snprintf(text + used, (size_t)(PC_PLAN_REASON_SIZE - used), " (%" PRId64 " point%s)",
                     log->broken[remedy->blamed], log->broken[remedy->blamed] == 1 ? "" : "s");
    if (remedy->why[0])
        used += snprintf(text + used, (size_t)(PC_PLAN_REASON_SIZE - used), ", such as %s", remedy->why);
    if (remedy->way == PC_PLAN_WAY_NONE) return;
    write_option(remedy, option);
    bool is_that = remedy->rule == remedy->blamed;
    used += snprintf(text + used, (size_t)(PC_PLAN_REASON_SIZE - used), "; %s lifts %s", option,
                     is_that ? "that" : "another");
    if (remedy->way == PC_PLAN_WAY_LAYOUT)
        snprintf(text + used, (size_t)(PC_PLAN_REASON_SIZE - used), " for %" PRId64 " point%s", remedy->points,
                 remedy->points == 1 ? "" : "s");
}
