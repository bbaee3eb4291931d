/* From a choice of a plan to the run that it is. */
#include "scenarios/plan_section.h"

#include "engine/alloc.h"
#include "models/training/iteration_spec.h"
#include "models/workload/layout.h"
#include "scenarios/expand.h"

#include <inttypes.h>
#include <stdio.h>

static bool has_chunks(const pc_plan_choice *choice) {
    bool is_one_part = choice->generator->placement == PC_PLACEMENT_SLICES; /* of sequence_slices */
    return !is_one_part && choice->generator->chunks_min != choice->generator->chunks_max;
}

/* Kernels of their own, in the place of collectives. */
static bool is_flex(const pc_plan_choice *choice) {
    return choice->dispatcher >= PC_DISPATCHER_DEEPEP;
}

static int64_t number_of(const pc_plan_choice *from, pc_choice choice) {
    switch (choice) {
    case PC_CHOICE_GPUS:
        return from->gpus;
    case PC_CHOICE_GLOBAL_BATCH:
        return from->global_batch;
    case PC_CHOICE_TP:
        return from->tp;
    case PC_CHOICE_PP:
        return from->pp;
    case PC_CHOICE_DP:
        return from->dp;
    case PC_CHOICE_CP:
        return from->cp;
    case PC_CHOICE_CP_COMM_TYPE:
        return from->cp_comm;
    case PC_CHOICE_EP:
        return from->ep;
    case PC_CHOICE_ETP:
        return from->etp;
    case PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE:
        return is_flex(from) ? PC_DISPATCHER_DEEPEP : from->dispatcher;
    case PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND:
        return from->dispatcher - PC_DISPATCHER_DEEPEP;
    case PC_CHOICE_CHUNKS:
        return from->slices > 0 ? from->chunks / from->slices : from->chunks;
    case PC_CHOICE_SEQUENCE_SLICES:
        return from->slices;
    case PC_CHOICE_MICROBATCH_SIZE:
        return from->microbatch_size;
    case PC_CHOICE_ZERO:
        return from->zero;
    case PC_CHOICE_SHARD_GROUP:
        return from->shard_group;
    case PC_CHOICE_SEQUENCE_PARALLEL:
        return from->sequence_parallel;
    case PC_CHOICE_OVERLAP_P2P:
        return from->overlaps_p2p;
    case PC_CHOICE_OVERLAP_TP:
        return from->overlaps_tp;
    case PC_CHOICE_OVERLAP_GRADIENTS:
        return from->overlaps_gradients;
    default:
        return from->overlaps_parameters;
    }
}

static const char *recompute_name(const pc_plan_scenario *scenario, const pc_plan_choice *from) {
    const pc_choice_list *list = &scenario->list[PC_CHOICE_RECOMPUTE];
    int64_t code =
        pc_recomputation_code((pc_recomputation){from->recompute, from->recompute_layers, from->recompute_modules});
    int i = 0;
    while (i < list->count - 1 && list->values[i].whole != code) i++;
    return scenario->recompute_names[i];
}

static const char *offload_name(const pc_plan_scenario *scenario, const pc_plan_choice *from) {
    const pc_choice_list *list = &scenario->list[PC_CHOICE_OFFLOAD];
    int i = 0;
    while (i < list->count - 1 && list->values[i].whole != from->offload) i++;
    return scenario->offload_names[i];
}

static pc_value value_of(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_choice choice) {
    const pc_choice_list *prices = &scenario->list[PC_CHOICE_PRICE];
    int machine = pc_plan_machine_of(scenario, from->base);
    switch (choice) {
    case PC_CHOICE_MACHINE:
        return scenario->list[PC_CHOICE_MACHINE].values[machine];
    case PC_CHOICE_PRICE:
        return prices->values[prices->count > 1 ? machine : 0];
    case PC_CHOICE_PRECISION:
        return scenario->list[PC_CHOICE_PRECISION].values[pc_plan_precision_of(scenario, from->base)];
    case PC_CHOICE_SCHEDULE:
        return (pc_value){.generator = from->generator};
    case PC_CHOICE_RECOMPUTE:
        return (pc_value){.text = recompute_name(scenario, from)};
    case PC_CHOICE_OFFLOAD:
        return (pc_value){.text = offload_name(scenario, from)};
    case PC_CHOICE_LAYOUT:
        return (pc_value){.text = pc_layout_name(from->layout)};
    case PC_CHOICE_RANK_ORDER:
        return (pc_value){.order = from->order};
    default:
        return (pc_value){.whole = number_of(from, choice)};
    }
}

/* Whether the key says something of this choice's run: chunks are some schedules' own, sequence parallelism needs
 * ranks, and a price somebody who says it. */
static bool is_said(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_choice choice) {
    if (choice == PC_CHOICE_OBJECTIVE) return false;
    bool may_be_unsaid = choice == PC_CHOICE_PRICE || choice == PC_CHOICE_PRECISION || choice == PC_CHOICE_OFFLOAD ||
                         choice == PC_CHOICE_EP || choice == PC_CHOICE_ETP ||
                         choice == PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE;
    if (may_be_unsaid) return scenario->list[choice].count > 0;
    if (choice == PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND) return scenario->list[choice].count > 0 && is_flex(from);
    if (choice == PC_CHOICE_CP_COMM_TYPE) return scenario->list[choice].count > 0 && from->cp > 1;
    if (choice == PC_CHOICE_CHUNKS) return has_chunks(from);
    if (choice == PC_CHOICE_SEQUENCE_SLICES) return from->slices > 0 && scenario->list[choice].count > 0;
    if (choice == PC_CHOICE_SHARD_GROUP) return from->shard_group > 0;
    return choice != PC_CHOICE_SEQUENCE_PARALLEL || from->tp > 1;
}

static void set_choice(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_setting *setting) {
    if (from->shard_group == 0) setting->given[PC_KEY_SHARD_GROUP] = false;
    if (!from->generator->searches && !pc_setting_has(&scenario->given, PC_KEY_SEARCH_EFFORT))
        setting->given[PC_KEY_SEARCH_EFFORT] = false; /* as in the command, which has no need of it */
    if (!(from->offload & PC_OFFLOAD_FINE_GRAINED)) setting->given[PC_KEY_OFFLOAD_MODULES] = false;
    for (pc_choice c = 0; c < PC_CHOICES; c++)
        if (is_said(scenario, from, c)) pc_setting_set(setting, pc_choice_rule_of(c).key, value_of(scenario, from, c));
}

/* Of choices whose passes cannot run together it is as if nobody had asked. */
static bool leave_pairs(pc_run_spec *spec) {
    pc_iteration_spec *x = &spec->iteration;
    if (!x->overlaps_pairs || pc_iteration_can_pair(x)) return false;
    x->overlaps_pairs = x->delays_weights = false;
    return true;
}

pc_code pc_plan_scenario_run_spec(const pc_plan_scenario *scenario, const pc_plan_choice *from, int64_t rank,
                                  pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    return pc_plan_scenario_run_of_length(scenario, from, 0, rank, spec, labels, error);
}

pc_code pc_plan_scenario_run_of_length(const pc_plan_scenario *scenario, const pc_plan_choice *from, int64_t seq_len,
                                       int64_t rank, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    pc_setting setting = pc_plan_base_setting(scenario, from->base);
    set_choice(scenario, from, &setting);
    if (seq_len > 0) pc_setting_set(&setting, PC_KEY_SEQ_LEN, (pc_value){.whole = seq_len});
    pc_code code = pc_setting_expand(&setting, spec, labels, error);
    if (code) return code;
    leave_pairs(spec);
    labels->run = rank;
    snprintf(labels->scenario, sizeof labels->scenario, "%s", pc_plan_scenario_name(scenario));
    snprintf(labels->name, sizeof labels->name, "plan-%" PRId64, rank);
    return PC_OK;
}

/* ---- as text ---- */

static bool is_switch(pc_choice choice) {
    return choice == PC_CHOICE_SEQUENCE_PARALLEL || choice >= PC_CHOICE_OVERLAP_P2P;
}

/* What a run has without a word, where the setting has none either. */
static bool is_standard(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_choice choice) {
    bool is_word = choice == PC_CHOICE_CP_COMM_TYPE && from->cp_comm == PC_CP_P2P;
    bool is_on = is_switch(choice) && number_of(from, choice) == 1;
    return (is_word || is_on) && !pc_setting_has(&scenario->given, pc_choice_rule_of(choice).key);
}

/* What `pipecast run` would take without a word, or has from the setting: dp follows from the rest, and switches are
 * on. */
static bool goes_without_saying(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_choice choice) {
    const pc_choice_list *list = &scenario->list[choice];
    if (choice == PC_CHOICE_GLOBAL_BATCH && scenario->batch_follows_dp) return false;
    if (!is_said(scenario, from, choice) || choice == PC_CHOICE_DP || list->origin == PC_CHOICE_FIXED) return true;
    if (choice == PC_CHOICE_GLOBAL_BATCH && list->origin == PC_CHOICE_DEFAULT) return true; /* the model's */
    if (choice == PC_CHOICE_CP && from->cp == 1) return true;
    if (choice == PC_CHOICE_EP && from->ep == 1) return true;
    if (choice == PC_CHOICE_ETP && from->etp == from->tp) return true;
    if (choice == PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE && from->dispatcher == PC_DISPATCHER_ALLTOALL) return true;
    if (choice == PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND && from->dispatcher == PC_DISPATCHER_DEEPEP) return true;
    if (choice == PC_CHOICE_OFFLOAD && from->offload == 0) return true;
    return is_standard(scenario, from, choice);
}

/* A file of the scenario's folder, as it counts from where we are. */
static pc_code put_reference(const pc_reference *named, pc_plan_put *put, void *context, pc_error *error) {
    const char *key = pc_key_path(named->key);
    if (!pc_library_is_path(named->text)) {
        put(context, key, named->text);
        return PC_OK;
    }
    char *path = pc_place_join(named->place.folder, named->text);
    if (!path) return pc_error_no_memory(error);
    put(context, key, path);
    pc_free(path);
    return PC_OK;
}

/* As it was written. */
static const char *price_text(const pc_plan_scenario *scenario, const pc_plan_choice *from) {
    const pc_choice_list *prices = &scenario->list[PC_CHOICE_PRICE];
    return pc_node_first(pc_choice_node(
        prices->document, PC_CHOICE_PRICE))[prices->count > 1 ? pc_plan_machine_of(scenario, from->base) : 0]
        .text;
}

static void write_value(pc_choice choice, pc_value value, char text[64]) {
    static const char *const types[] = {"allgather", "alltoall", "flex"};
    if (choice == PC_CHOICE_SCHEDULE)
        snprintf(text, 64, "%s", value.generator->name);
    else if (choice == PC_CHOICE_RECOMPUTE || choice == PC_CHOICE_LAYOUT || choice == PC_CHOICE_OFFLOAD)
        snprintf(text, 64, "%s", value.text);
    else if (choice == PC_CHOICE_RANK_ORDER)
        pc_rank_order_write(value.order, text);
    else if (choice == PC_CHOICE_CP_COMM_TYPE)
        snprintf(text, 64, "%s", pc_cp_comm_name((pc_cp_comm)value.whole));
    else if (choice == PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE)
        snprintf(text, 64, "%s", types[value.whole]);
    else if (choice == PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND)
        snprintf(text, 64, "%s", value.whole ? "hybridep" : "deepep");
    else if (is_switch(choice))
        snprintf(text, 64, "%s", value.whole ? "true" : "false");
    else
        snprintf(text, 64, "%" PRId64, value.whole);
}

/* What the choice does not have of what the scenario asks for. */
static pc_code put_pairs(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_plan_put *put, void *context,
                         pc_error *error) {
    pc_run_spec spec;
    pc_run_labels labels;
    pc_setting setting = pc_plan_base_setting(scenario, from->base);
    if (!pc_setting_has(&setting, PC_KEY_OVERLAP_PAIRS)) return PC_OK;
    set_choice(scenario, from, &setting);
    pc_code code = pc_setting_expand(&setting, &spec, &labels, error);
    if (code) return code;
    if (leave_pairs(&spec)) {
        put(context, pc_key_path(PC_KEY_OVERLAP_PAIRS), "false");
        if (pc_setting_has(&setting, PC_KEY_DELAY_WGRAD)) put(context, pc_key_path(PC_KEY_DELAY_WGRAD), "false");
    }
    pc_run_spec_free(&spec);
    return PC_OK;
}

pc_code pc_plan_scenario_put(const pc_plan_scenario *scenario, const pc_plan_choice *from, pc_plan_put *put,
                             void *context, pc_error *error) {
    char text[64];
    pc_code code = PC_OK;
    for (pc_choice c = 0; c < PC_CHOICES && !code; c++) {
        if (goes_without_saying(scenario, from, c)) continue;
        pc_value value = value_of(scenario, from, c);
        if (c == PC_CHOICE_MACHINE || c == PC_CHOICE_PRECISION) {
            code = put_reference(value.reference, put, context, error);
        } else if (c == PC_CHOICE_PRICE) {
            put(context, "price", price_text(scenario, from));
        } else {
            write_value(c, value, text);
            put(context, pc_key_path(pc_choice_rule_of(c).key), text);
        }
    }
    if (!code && from->generator->searches && !pc_setting_has(&scenario->given, PC_KEY_SEARCH_EFFORT))
        put(context, pc_key_path(PC_KEY_SEARCH_EFFORT), "quick");
    return code ? code : put_pairs(scenario, from, put, context, error);
}
