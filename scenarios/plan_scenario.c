#include "scenarios/plan_scenario.h"

#include "engine/alloc.h"
#include "scenarios/cluster.h"
#include "scenarios/plan_section.h"

#include <string.h>

/* ---- the setting on each of the machines ---- */

static int precisions_of(const pc_plan_scenario *scenario) {
    int count = scenario->list[PC_CHOICE_PRECISION].count;
    return count > 0 ? count : 1;
}

int pc_plan_base_count(const pc_plan_scenario *scenario) {
    int machines = scenario->list[PC_CHOICE_MACHINE].count;
    return (machines > 0 ? machines : 1) * precisions_of(scenario);
}

int pc_plan_machine_of(const pc_plan_scenario *scenario, int base) {
    return base / precisions_of(scenario);
}

int pc_plan_precision_of(const pc_plan_scenario *scenario, int base) {
    return base % precisions_of(scenario);
}

pc_setting pc_plan_base_setting(const pc_plan_scenario *scenario, int base) {
    const pc_choice_list *machines = &scenario->list[PC_CHOICE_MACHINE], *prices = &scenario->list[PC_CHOICE_PRICE],
                         *precisions = &scenario->list[PC_CHOICE_PRECISION];
    int machine = pc_plan_machine_of(scenario, base), precision = pc_plan_precision_of(scenario, base);
    pc_setting setting = scenario->given;
    if (machines->count > 0) pc_setting_set(&setting, PC_KEY_MACHINE, machines->values[machine]);
    if (prices->count > 0) pc_setting_set(&setting, PC_KEY_PRICE, prices->values[prices->count > 1 ? machine : 0]);
    if (precisions->count > 0) pc_setting_set(&setting, PC_KEY_PRECISION, precisions->values[precision]);
    pc_setting_complete(&setting);
    if (!pc_setting_has(&setting, PC_KEY_SEARCH_EFFORT))
        pc_setting_set(&setting, PC_KEY_SEARCH_EFFORT, (pc_value){.whole = PC_EFFORT_QUICK});
    setting.given[PC_KEY_RECOMPUTE_MODULES] = setting.given[PC_KEY_RECOMPUTE_METHOD] =
        setting.given[PC_KEY_RECOMPUTE_LAYERS] = false; /* they are in the names that the plan lists */
    return setting;
}

/* The type of dispatcher that says whether keys of flex have a place: one of collectives if any is listed. */
static void set_dispatcher(const pc_plan_scenario *scenario, pc_setting *setting) {
    const pc_choice_list *types = &scenario->list[PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE];
    pc_value value = {.whole = PC_DISPATCHER_DEEPEP};
    for (int i = 0; i < types->count; i++)
        if (types->values[i].whole < value.whole) value = types->values[i];
    if (types->count > 0 || pc_plan_key_of_flex(scenario))
        pc_setting_set(setting, PC_KEY_MOE_TOKEN_DISPATCHER_TYPE, value);
}

/* What a plan chooses is put out of the way: one GPU, one microbatch, nothing recomputed. */
static pc_setting plain_setting(const pc_plan_scenario *scenario, int base) {
    static const pc_key ones[] = {PC_KEY_TP, PC_KEY_PP, PC_KEY_DP, PC_KEY_MICROBATCHES, PC_KEY_MICROBATCH_SIZE};
    pc_setting setting = pc_plan_base_setting(scenario, base);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) pc_setting_set(&setting, ones[i], (pc_value){.whole = 1});
    pc_setting_set(&setting, PC_KEY_SCHEDULE, (pc_value){.generator = pc_generator_find("1f1b")});
    pc_setting_set(&setting, PC_KEY_RECOMPUTE, (pc_value){.text = "none"});
    pc_setting_set(&setting, PC_KEY_OFFLOAD, (pc_value){.text = "none"});
    setting.given[PC_KEY_GPUS] = setting.given[PC_KEY_CHUNKS] = setting.given[PC_KEY_LAYOUT] = false;
    setting.given[PC_KEY_SHARD_GROUP] = setting.given[PC_KEY_EP] = setting.given[PC_KEY_ETP] = false;
    set_dispatcher(scenario, &setting);
    return setting;
}

/* What has no place in a plan, which compares iterations that take one time, though a run could have it. */
static pc_code check_place(const pc_setting *setting, pc_error *error) {
    for (pc_key key = PC_KEY_TIMES; key < PC_KEY_TIMES + PC_PASS_KINDS; key++)
        if (pc_setting_has(setting, key))
            return pc_error_blame(error, "times", "given; expected a machine, from which they follow in a plan");
    if (pc_setting_has(setting, PC_KEY_PASS_TIMES))
        return pc_error_blame(error, "pass_times", "given; expected a machine, from which times follow in a plan");
    if (setting->stages)
        return pc_error_blame(error, "stages", "given; expected a machine, from which they follow in a plan");
    if (pc_setting_whole(setting, PC_KEY_FIRST_STAGE_LAYERS, 0) > 0)
        return pc_error_blame(error, "first_stage_layers",
                              "of one number of stages; expected layout balanced in a plan");
    if (pc_setting_whole(setting, PC_KEY_LAST_STAGE_LAYERS, 0) > 0)
        return pc_error_blame(error, "last_stage_layers",
                              "of one number of stages; expected layout balanced in a plan");
    if (pc_setting_has(setting, PC_KEY_MICROBATCHES))
        return pc_error_blame(error, "microbatches", "follow from the other choices; expected global_batch");
    if (pc_setting_whole(setting, PC_KEY_EXPAND, false))
        return pc_error_blame(error, "expand", "true; expected false in a plan, whose replicas are alike");
    if (pc_setting_has(setting, PC_KEY_ROBUST))
        return pc_error_blame(error, "bad_days.robust", "given; expected none in a plan, which compares good days");
    if (pc_setting_has(setting, PC_KEY_OTHER_GPU))
        return pc_error_blame(error, "bad_days.other_gpu", "given; expected none in a plan, whose GPUs are alike");
    if (pc_setting_whole(setting, PC_KEY_OUT_OF_MEMORY, 0) != 0)
        return pc_error_blame(error, "out_of_memory", "wait; expected fail in a plan, which is of what fits");
    return PC_OK;
}

/* Some of the plans would have no rows of exchanged heads. */
static pc_code check_exchange(const pc_plan_scenario *scenario, pc_error *error) {
    bool is_listed = scenario->list[PC_CHOICE_CP_COMM_TYPE].origin == PC_CHOICE_LISTED;
    if (!is_listed || !pc_setting_has(&scenario->given, PC_KEY_CP_A2A)) return PC_OK;
    return pc_error_blame(error, "cp_a2a",
                          "given beside a list of cp_comm_type; expected none, for it follows from each cut, or "
                          "cp_comm_type: a2a+p2p in the setting");
}

/* A run of a dense model would want the dispatcher's type beside such a key, which its plan has no word for. */
static pc_code check_flex(const pc_plan_scenario *scenario, const pc_run_spec *run, pc_error *error) {
    const char *key = pc_plan_key_of_flex(scenario);
    if (!key || pc_model_has_experts(&run->iteration.model)) return PC_OK;
    return pc_error_blame(error, key, "for dispatchers, and the model has no experts (num_experts); expected none");
}

/* Plans are compared on a good day; the runs that they are may have others. */
static void forget_bad_days(pc_iteration_spec *spec) {
    spec->bad_days = pc_iteration_spec_default().bad_days;
    spec->jitter = 0.0;
}

static pc_code make_run(pc_plan_scenario *scenario, int base, pc_error *error) {
    pc_error fault;
    pc_setting setting = plain_setting(scenario, base);
    pc_run_labels labels; /* a base has none */
    pc_code code = check_place(&scenario->given, &fault);
    if (!code) code = check_exchange(scenario, &fault);
    if (!code) code = pc_cluster_check(&setting, &fault);
    if (!code) code = pc_cluster_expand(&setting, &scenario->runs[base], &labels, &fault);
    if (!code) code = check_flex(scenario, &scenario->runs[base], &fault);
    if (!code) forget_bad_days(&scenario->runs[base].iteration);
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    if (!code) return PC_OK;
    const char *key = pc_error_part_of(&fault, PC_ERROR_PART_KEY);
    if (scenario->list[PC_CHOICE_MACHINE].origin == PC_CHOICE_LISTED && strcmp(key, "machine") == 0)
        return pc_choice_pass_on(scenario, PC_CHOICE_MACHINE, pc_plan_machine_of(scenario, base), &fault, error);
    if (scenario->list[PC_CHOICE_PRECISION].origin == PC_CHOICE_LISTED && strcmp(key, "model.precision") == 0)
        return pc_choice_pass_on(scenario, PC_CHOICE_PRECISION, pc_plan_precision_of(scenario, base), &fault, error);
    return pc_plan_refuse_setting(scenario, &fault, error);
}

static pc_code make_runs(pc_plan_scenario *scenario, pc_error *error) {
    int count = pc_plan_base_count(scenario);
    scenario->runs = pc_alloc((size_t)count, sizeof *scenario->runs);
    if (!scenario->runs) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = make_run(scenario, i, error);
    return code;
}

/* ---- the space ---- */

static pc_plan_list numbers_of(const pc_plan_scenario *scenario, pc_choice choice) {
    return (pc_plan_list){scenario->numbers[choice], scenario->list[choice].count};
}

static pc_code copy_numbers(pc_plan_scenario *scenario, pc_error *error) {
    for (pc_choice c = 0; c < PC_CHOICES; c++) {
        const pc_choice_list *list = &scenario->list[c];
        bool is_number = c >= PC_CHOICE_GPUS && c != PC_CHOICE_SCHEDULE && c != PC_CHOICE_RANK_ORDER;
        if (!is_number) continue;
        scenario->numbers[c] = pc_alloc((size_t)list->count, sizeof **scenario->numbers);
        if (!scenario->numbers[c]) return pc_error_no_memory(error);
        for (int i = 0; i < list->count; i++) scenario->numbers[c][i] = list->values[i].whole;
    }
    return PC_OK;
}

static pc_code copy_others(pc_plan_scenario *scenario, pc_error *error) {
    const pc_choice_list *schedules = &scenario->list[PC_CHOICE_SCHEDULE],
                         *orders = &scenario->list[PC_CHOICE_RANK_ORDER];
    scenario->generators = pc_alloc((size_t)schedules->count, sizeof *scenario->generators);
    scenario->orders = pc_alloc((size_t)orders->count, sizeof *scenario->orders);
    scenario->bases = pc_alloc((size_t)pc_plan_base_count(scenario), sizeof *scenario->bases);
    if (!scenario->generators || !scenario->orders || !scenario->bases) return pc_error_no_memory(error);
    for (int i = 0; i < schedules->count; i++) scenario->generators[i] = schedules->values[i].generator;
    for (int i = 0; i < orders->count; i++) scenario->orders[i] = orders->values[i].order;
    return PC_OK;
}

static pc_code name_recomputations(pc_plan_scenario *scenario, pc_error *error) {
    const pc_choice_list *list = &scenario->list[PC_CHOICE_RECOMPUTE];
    scenario->recompute_names = pc_alloc((size_t)list->count, sizeof *scenario->recompute_names);
    if (!scenario->recompute_names) return pc_error_no_memory(error);
    for (int i = 0; i < list->count; i++)
        pc_recomputation_write(pc_recomputation_of_code(list->values[i].whole), scenario->recompute_names[i]);
    return PC_OK;
}

static pc_code name_offloads(pc_plan_scenario *scenario, pc_error *error) {
    const pc_choice_list *list = &scenario->list[PC_CHOICE_OFFLOAD];
    scenario->offload_names = pc_alloc((size_t)list->count, sizeof *scenario->offload_names);
    if (!scenario->offload_names) return pc_error_no_memory(error);
    for (int i = 0; i < list->count; i++) pc_offload_write((int32_t)list->values[i].whole, scenario->offload_names[i]);
    return PC_OK;
}

/* Types, and in the place of flex its kernels: pc_dispatcher counts on from it. */
static void list_dispatchers(pc_plan_scenario *scenario) {
    const pc_choice_list *types = &scenario->list[PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE],
                         *kernels = &scenario->list[PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND];
    int count = 0;
    for (int i = 0; i < types->count; i++) {
        bool is_flex = types->values[i].whole == PC_DISPATCHER_DEEPEP;
        if (!is_flex || kernels->count == 0) scenario->dispatchers[count++] = types->values[i].whole;
        for (int k = 0; is_flex && k < kernels->count; k++)
            scenario->dispatchers[count++] = PC_DISPATCHER_DEEPEP + kernels->values[k].whole;
    }
    scenario->dispatcher_count = count;
}

static pc_code make_space(pc_plan_scenario *scenario, pc_error *error) {
    pc_code code = copy_numbers(scenario, error);
    if (!code) code = copy_others(scenario, error);
    if (!code) code = name_recomputations(scenario, error);
    if (!code) code = name_offloads(scenario, error);
    if (code) return code;
    list_dispatchers(scenario);
    scenario->space = (pc_plan_space){.bases = scenario->bases,
                                      .base_count = pc_plan_base_count(scenario),
                                      .gpus = numbers_of(scenario, PC_CHOICE_GPUS),
                                      .global_batch = numbers_of(scenario, PC_CHOICE_GLOBAL_BATCH),
                                      .batch_follows_dp = scenario->batch_follows_dp,
                                      .tp = numbers_of(scenario, PC_CHOICE_TP),
                                      .pp = numbers_of(scenario, PC_CHOICE_PP),
                                      .dp = numbers_of(scenario, PC_CHOICE_DP),
                                      .cp = numbers_of(scenario, PC_CHOICE_CP),
                                      .cp_comm = numbers_of(scenario, PC_CHOICE_CP_COMM_TYPE),
                                      .ep = numbers_of(scenario, PC_CHOICE_EP),
                                      .etp = numbers_of(scenario, PC_CHOICE_ETP),
                                      .dispatchers = {scenario->dispatchers, scenario->dispatcher_count},
                                      .chunks = numbers_of(scenario, PC_CHOICE_CHUNKS),
                                      .slices = numbers_of(scenario, PC_CHOICE_SEQUENCE_SLICES),
                                      .layouts = numbers_of(scenario, PC_CHOICE_LAYOUT),
                                      .microbatch_size = numbers_of(scenario, PC_CHOICE_MICROBATCH_SIZE),
                                      .recompute = numbers_of(scenario, PC_CHOICE_RECOMPUTE),
                                      .offload = numbers_of(scenario, PC_CHOICE_OFFLOAD),
                                      .zero = numbers_of(scenario, PC_CHOICE_ZERO),
                                      .shard_group = numbers_of(scenario, PC_CHOICE_SHARD_GROUP),
                                      .sequence_parallel = numbers_of(scenario, PC_CHOICE_SEQUENCE_PARALLEL),
                                      .overlaps_tp = numbers_of(scenario, PC_CHOICE_OVERLAP_TP),
                                      .overlaps_gradients = numbers_of(scenario, PC_CHOICE_OVERLAP_GRADIENTS),
                                      .overlaps_parameters = numbers_of(scenario, PC_CHOICE_OVERLAP_PARAMETERS),
                                      .overlaps_p2p = numbers_of(scenario, PC_CHOICE_OVERLAP_P2P),
                                      .generators = scenario->generators,
                                      .generator_count = scenario->list[PC_CHOICE_SCHEDULE].count,
                                      .orders = scenario->orders,
                                      .order_count = scenario->list[PC_CHOICE_RANK_ORDER].count};
    return PC_OK;
}

/* ---- the interface ---- */

static pc_code load(pc_plan_scenario *scenario, const char *path, const pc_scenario_options *options, pc_error *error) {
    scenario->loaded = pc_alloc(1, sizeof *scenario->loaded);
    if (!scenario->loaded) return pc_error_no_memory(error);
    pc_code code = pc_loaded_read(scenario->loaded, path, options, error);
    if (!code) code = pc_loaded_build(scenario->loaded, error);
    if (!code) code = pc_plan_section_read(scenario, error);
    if (!code) code = make_runs(scenario, error);
    if (!code) code = pc_plan_defaults_fill(scenario, error);
    return code ? code : make_space(scenario, error);
}

pc_code pc_plan_scenario_load(const char *path, const char *const *sets, int set_count, pc_plan_scenario **scenario,
                              pc_error *error) {
    pc_scenario_options options = {.sets = sets, .set_count = set_count};
    return pc_plan_scenario_load_with(path, &options, scenario, error);
}

pc_code pc_plan_scenario_load_with(const char *path, const pc_scenario_options *options, pc_plan_scenario **scenario,
                                   pc_error *error) {
    pc_plan_scenario *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = load(made, path, options, error);
    if (code)
        pc_plan_scenario_free(made);
    else
        *scenario = made;
    return code;
}

void pc_plan_scenario_free(pc_plan_scenario *scenario) {
    if (!scenario) return;
    for (int i = 0; scenario->runs && i < pc_plan_base_count(scenario); i++) pc_run_spec_free(&scenario->runs[i]);
    for (pc_choice c = 0; c < PC_CHOICES; c++) {
        pc_free(scenario->list[c].values);
        pc_free(scenario->numbers[c]);
    }
    pc_free(scenario->runs);
    pc_free(scenario->bases);
    pc_free(scenario->generators);
    pc_free(scenario->orders);
    pc_free(scenario->recompute_names);
    pc_free(scenario->offload_names);
    pc_scenario_free(scenario->loaded);
    pc_free(scenario);
}

const char *pc_plan_scenario_name(const pc_plan_scenario *scenario) {
    return pc_scenario_name(scenario->loaded);
}

const char *pc_plan_scenario_text(const pc_plan_scenario *scenario, size_t *size) {
    return pc_scenario_text(scenario->loaded, size);
}

pc_run_spec *pc_plan_scenario_bases(pc_plan_scenario *scenario, int *count) {
    *count = pc_plan_base_count(scenario);
    return scenario->runs;
}

const pc_plan_space *pc_plan_scenario_space(pc_plan_scenario *scenario) {
    for (int i = 0; i < scenario->space.base_count; i++)
        scenario->bases[i] = (pc_plan_base){.spec = scenario->runs[i].iteration,
                                            .cost = scenario->runs[i].cost,
                                            .gpu_hour_price = scenario->runs[i].gpu_hour_price,
                                            .group = pc_plan_precision_of(scenario, i)};
    return &scenario->space;
}

bool pc_plan_scenario_shares_price(const pc_plan_scenario *scenario) {
    return scenario->list[PC_CHOICE_PRICE].count == 1 && scenario->list[PC_CHOICE_MACHINE].count > 1;
}

pc_plan_request pc_plan_scenario_request(const pc_plan_scenario *scenario) {
    return scenario->request;
}

pc_plan_goal pc_plan_scenario_goal(const pc_plan_scenario *scenario) {
    return scenario->goal;
}
