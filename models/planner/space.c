#include "models/planner/space.h"

#include "engine/numbers.h"
#include "models/workload/layout.h"

#include <inttypes.h>
#include <stddef.h>

/* ---- lists ---- */

typedef struct list_rule {
    const char *name;
    size_t at; /* of the list in the space */
    plan_digit digit;
    int64_t least, most;
} list_rule;

#define AT(field) offsetof(pc_plan_space, field)

static const list_rule rules[] = {
    {"gpus", AT(gpus), DIGIT_GPUS, 1, INT32_MAX},
    {"global_batch", AT(global_batch), DIGIT_BATCH, 1, INT64_C(1) << 40},
    {"tp", AT(tp), DIGIT_TP, 1, INT32_MAX},
    {"pp", AT(pp), DIGIT_PP, 1, PC_DEVICES_MAX},
    {"dp", AT(dp), DIGIT_DP, 1, INT32_MAX},
    {"cp", AT(cp), DIGIT_CP, 1, INT32_MAX},
    {"cp_comm_type", AT(cp_comm), DIGIT_CP_COMM, PC_CP_P2P, PC_CP_A2A_P2P},
    {"ep", AT(ep), DIGIT_EP, 1, PC_DEVICES_MAX},
    {"etp", AT(etp), DIGIT_ETP, 1, PC_DEVICES_MAX},
    {"dispatchers", AT(dispatchers), DIGIT_DISPATCHER, PC_DISPATCHER_ALLGATHER, PC_DISPATCHER_HYBRIDEP},
    {"chunks", AT(chunks), DIGIT_CHUNKS, 1, PC_CHUNKS_MAX},
    {"sequence_slices", AT(slices), DIGIT_SLICES, 1, PC_CHUNKS_MAX},
    {"layouts", AT(layouts), DIGIT_LAYOUT, PC_CUT_EVEN, PC_PLAN_LAYOUT_AUTO},
    {"microbatch_size", AT(microbatch_size), DIGIT_SIZE, 1, INT32_MAX},
    {"recompute", AT(recompute), DIGIT_RECOMPUTE, PC_RECOMPUTE_NONE, PC_RECOMPUTATION_CODE_MAX},
    {"offload", AT(offload), DIGIT_OFFLOAD, 0, PC_OFFLOAD_ACTIVATIONS | PC_OFFLOAD_STATE},
    {"zero", AT(zero), DIGIT_ZERO, 0, 3},
    {"shard_group", AT(shard_group), DIGIT_SHARD, 0, INT32_MAX},
    {"sequence_parallel", AT(sequence_parallel), DIGIT_SEQUENCE, 0, 1},
    {"overlaps_tp", AT(overlaps_tp), DIGIT_OVERLAPS_TP, 0, 1},
    {"overlaps_gradients", AT(overlaps_gradients), DIGIT_OVERLAPS_GRADIENTS, 0, 1},
    {"overlaps_parameters", AT(overlaps_parameters), DIGIT_OVERLAPS_PARAMETERS, 0, 1},
    {"overlaps_p2p", AT(overlaps_p2p), DIGIT_OVERLAPS_P2P, 0, 1},
};
enum { RULES = sizeof rules / sizeof *rules };

static const pc_plan_list *list_at(const pc_plan_space *space, const list_rule *rule) {
    return (const pc_plan_list *)((const char *)space + rule->at);
}

/* What there is without a list: docs of pc_plan_space. */
static bool may_be_empty(plan_digit digit) {
    return digit == DIGIT_DP || digit == DIGIT_SLICES || digit == DIGIT_CP || digit == DIGIT_EP || digit == DIGIT_ETP ||
           digit == DIGIT_DISPATCHER || digit == DIGIT_SHARD || digit == DIGIT_OFFLOAD || digit == DIGIT_CP_COMM;
}

static pc_code check_list(const pc_plan_space *space, const list_rule *rule, pc_error *error) {
    const pc_plan_list *list = list_at(space, rule);
    if (list->count < 0 || (list->count == 0 && !may_be_empty(rule->digit)) || (list->count > 0 && !list->values))
        return pc_error_set(error, PC_ERROR_INPUT, "plan: %s: an empty list; expected at least one value", rule->name);
    for (int i = 0; i < list->count; i++)
        if (list->values[i] < rule->least || list->values[i] > rule->most)
            return pc_error_set(error, PC_ERROR_INPUT, "plan: %s %" PRId64 "; expected %" PRId64 " to %" PRId64,
                                rule->name, list->values[i], rule->least, rule->most);
        else if (rule->digit == DIGIT_LAYOUT && list->values[i] == PC_CUT_LISTED)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "plan: layouts: a list; expected a layout that any number of parts can have");
    return PC_OK;
}

static pc_code check_counts(const pc_plan_space *space, pc_error *error) {
    const struct {
        const char *name;
        const void *values;
        int count;
    } lists[] = {{"models and machines", space->bases, space->base_count},
                 {"schedules", space->generators, space->generator_count},
                 {"rank orders", space->orders, space->order_count}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].count < 1 || !lists[i].values)
            return pc_error_set(error, PC_ERROR_INPUT, "plan: %s: an empty list; expected at least one value",
                                lists[i].name);
    return PC_OK;
}

/* More numbers than this nobody waits for. */
static const int64_t numbers_max = INT64_C(1) << 48;

static pc_code multiply(const int *radix, int first, int behind, int64_t *product, pc_error *error) {
    *product = 1;
    for (int i = first; i < behind; i++) {
        if (*product > numbers_max / radix[i])
            return pc_error_set(error, PC_ERROR_INPUT, "plan: too many points; expected at most 2^48");
        *product *= radix[i];
    }
    return PC_OK;
}

static int count_different(const pc_plan_list *list) {
    int count = 0;
    for (int i = 0, k; i < list->count; i++) {
        for (k = 0; list->values[k] != list->values[i];) k++;
        count += k == i;
    }
    return count;
}

pc_code plan_numbers_make(const pc_plan_space *space, plan_numbers *numbers, pc_error *error) {
    plan_numbers made = {.space = space};
    int64_t all;
    pc_code code = check_counts(space, error);
    for (int i = 0; !code && i < RULES; i++) {
        code = check_list(space, &rules[i], error);
        int count = list_at(space, &rules[i])->count;
        made.radix[rules[i].digit] = count == 0 && may_be_empty(rules[i].digit) ? 1 : count;
    }
    if (code) return code;
    made.radix[DIGIT_BASE] = space->base_count;
    made.radix[DIGIT_GENERATOR] = space->generator_count;
    made.radix[DIGIT_ORDER] = space->order_count;
    made.sizes = count_different(&space->microbatch_size);
    code = multiply(made.radix, 0, FRAME_DIGITS, &made.frames, error);
    if (!code) code = multiply(made.radix, FRAME_DIGITS, SHAPE_DIGITS, &made.of_frame, error);
    if (!code) code = multiply(made.radix, 0, SHAPE_DIGITS, &made.shapes, error);
    if (!code) code = multiply(made.radix, CUT_DIGITS, DIGITS, &made.of_cut, error);
    if (!code) code = multiply(made.radix, SHAPE_DIGITS, DIGITS, &made.variants, error);
    if (!code) code = multiply(made.radix, 0, DIGITS, &all, error);
    if (!code) *numbers = made;
    return code;
}

/* ---- digits ---- */

static void split_number(const plan_numbers *numbers, int64_t number, int digits[DIGITS]) {
    for (int i = DIGITS; i-- > 0;) {
        digits[i] = 0;
        if (numbers->radix[i] == 1) continue; /* divisions take long, and most lists have one value */
        digits[i] = (int)(number % numbers->radix[i]);
        number /= numbers->radix[i];
    }
}

static int64_t weight_of(const plan_numbers *numbers, plan_digit digit) {
    int64_t weight = 1;
    for (int i = DIGITS; --i > (int)digit;) weight *= numbers->radix[i];
    return weight;
}

int plan_digit_of(const plan_numbers *numbers, int64_t number, plan_digit digit) {
    return (int)(number / weight_of(numbers, digit) % numbers->radix[digit]);
}

int64_t plan_with_digit(const plan_numbers *numbers, int64_t number, plan_digit digit, int value) {
    return number + (value - plan_digit_of(numbers, number, digit)) * weight_of(numbers, digit);
}

/* ---- choices ---- */

int plan_slices_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed) {
    int slices = listed > 0 ? (int)listed : space->bases[choice->base].spec.sequence_slices;
    if (!pc_placement_has_slices(choice->generator->placement)) return 0;
    return slices > 0 ? slices : pc_generator_slices(choice->generator, 0, 0);
}

int plan_chunks_of(const pc_plan_choice *choice, int64_t listed) {
    const pc_generator *generator = choice->generator;
    int slices = choice->slices;
    if (generator->placement == PC_PLACEMENT_SLICES) return slices;
    if (slices > 0) return (int)pc_min(listed, PC_CHUNKS_MAX) * slices; /* too many are refused later */
    bool is_out = listed < generator->chunks_min || (generator->chunks_max && listed > generator->chunks_max);
    return is_out ? generator->chunks_default : (int)listed;
}

int plan_parts_of(const pc_plan_choice *choice) {
    pc_placement placement = pc_generator_placement(choice->generator, choice->chunks, choice->slices);
    return pc_placement_parts(placement, choice->pp, choice->chunks);
}

static int dp_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    int64_t stage = (int64_t)choice->tp * choice->pp, group; /* both below 2^31 */
    if (__builtin_mul_overflow(stage, (int64_t)choice->cp, &group) || choice->gpus % group != 0) return 0;
    int64_t dp = choice->gpus / group;
    return space->dp.count == 0 || space->dp.values[digit] == dp ? (int)dp : 0;
}

static int64_t microbatches_of(const pc_plan_choice *choice) {
    if (choice->dp == 0) return 0;
    int64_t sequences = choice->dp * choice->microbatch_size;
    return choice->global_batch % sequences == 0 ? choice->global_batch / sequences : 0;
}

/* With context ranks the order of ranks would have a say; experts have other replicas. */
static bool divides_replicas(const pc_plan_space *space, const pc_plan_choice *choice, int64_t group) {
    bool has_two = choice->generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    return group > 0 && group < choice->dp && choice->dp % group == 0 && choice->cp <= 1 && !has_two &&
           !plan_folds_experts(space, choice);
}

/* 0: all replicas. */
static int shard_group_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    int64_t group = space->shard_group.count > 0 ? space->shard_group.values[digit] : 0;
    return choice->zero > 0 && divides_replicas(space, choice, group) ? (int)group : 0;
}

pc_cut_layout plan_layout_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed) {
    int parts = plan_parts_of(choice);
    if (listed != PC_PLAN_LAYOUT_AUTO) return (pc_cut_layout)listed;
    return parts > PC_PARTS_MAX ? PC_CUT_EVEN : pc_layout_auto(space->bases[choice->base].spec.model.layers, parts);
}

static int32_t offload_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    if (space->offload.count > 0) return (int32_t)space->offload.values[digit];
    return space->bases[choice->base].spec.cut.offload.kinds;
}

/* One rank has all keys and values: the base's word then. */
static pc_cp_comm cp_comm_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    bool is_listed = space->cp_comm.count > 0 && choice->cp > 1;
    return is_listed ? (pc_cp_comm)space->cp_comm.values[digit] : space->bases[choice->base].spec.cut.cp_comm;
}

/* Of all that are listed: without a list, the base's. */
static int etp_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    return space->etp.count ? (int)space->etp.values[digit] : space->bases[choice->base].spec.cut.etp;
}

static int slices_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    return plan_slices_of(space, choice, space->slices.count > 0 ? space->slices.values[digit] : 0);
}

static pc_plan_choice choice_of_digits(const pc_plan_space *space, const int *digits) {
    pc_recomputation recomputation = pc_recomputation_of_code(space->recompute.values[digits[DIGIT_RECOMPUTE]]);
    pc_plan_choice x = {
        .base = digits[DIGIT_BASE],
        .gpus = space->gpus.values[digits[DIGIT_GPUS]],
        .global_batch = space->global_batch.values[digits[DIGIT_BATCH]],
        .tp = (int)space->tp.values[digits[DIGIT_TP]],
        .pp = (int)space->pp.values[digits[DIGIT_PP]],
        .cp = space->cp.count ? (int)space->cp.values[digits[DIGIT_CP]] : 1,
        .ep = space->ep.count ? (int)space->ep.values[digits[DIGIT_EP]] : 1,
        .generator = space->generators[digits[DIGIT_GENERATOR]],
        .microbatch_size = space->microbatch_size.values[digits[DIGIT_SIZE]],
        .recompute = recomputation.kind,
        .recompute_layers = recomputation.layers,
        .recompute_modules = recomputation.modules,
        .zero = (int)space->zero.values[digits[DIGIT_ZERO]],
        .sequence_parallel = space->sequence_parallel.values[digits[DIGIT_SEQUENCE]] != 0,
        .overlaps_tp = space->overlaps_tp.values[digits[DIGIT_OVERLAPS_TP]] != 0,
        .overlaps_gradients = space->overlaps_gradients.values[digits[DIGIT_OVERLAPS_GRADIENTS]] != 0,
        .overlaps_parameters = space->overlaps_parameters.values[digits[DIGIT_OVERLAPS_PARAMETERS]] != 0,
        .overlaps_p2p = space->overlaps_p2p.values[digits[DIGIT_OVERLAPS_P2P]] != 0,
    };
    x.etp = etp_of(space, &x, digits[DIGIT_ETP]);
    x.slices = slices_of(space, &x, digits[DIGIT_SLICES]);
    x.chunks = plan_chunks_of(&x, space->chunks.values[digits[DIGIT_CHUNKS]]);
    x.layout = plan_layout_of(space, &x, space->layouts.values[digits[DIGIT_LAYOUT]]);
    x.dp = dp_of(space, &x, digits[DIGIT_DP]);
    if (space->batch_follows_dp) x.global_batch *= x.dp;
    x.order = plan_order_of(space, &x, digits[DIGIT_ORDER]);
    x.cp_comm = cp_comm_of(space, &x, digits[DIGIT_CP_COMM]);
    x.dispatcher = plan_dispatcher_of(space, &x, digits[DIGIT_DISPATCHER]);
    x.offload = offload_of(space, &x, digits[DIGIT_OFFLOAD]);
    x.shard_group = shard_group_of(space, &x, digits[DIGIT_SHARD]);
    x.microbatches = microbatches_of(&x);
    return x;
}

void plan_settle(const pc_plan_space *space, pc_plan_choice *choice) {
    int dp = dp_of(space, choice, 0);
    for (int i = 1; i < space->dp.count && dp == 0; i++) dp = dp_of(space, choice, i);
    choice->dp = dp;
    if (!divides_replicas(space, choice, choice->shard_group)) choice->shard_group = 0;
    choice->microbatches = microbatches_of(choice);
}

pc_plan_choice plan_choice_of(const plan_numbers *numbers, int64_t number) {
    int digits[DIGITS];
    split_number(numbers, number, digits);
    return choice_of_digits(numbers->space, digits);
}

/* ---- what makes no difference ---- */

/* Whether gradients are reduced and state shared at all: two replicas in one pipeline are two ranks, and experts may
 * have replicas where nothing else has. */
static bool has_data_parallel(const pc_plan_space *space, const pc_plan_choice *choice) {
    bool has_two = choice->generator->placement == PC_PLACEMENT_BIDIRECTIONAL && choice->pp > 1;
    return choice->dp != 1 || choice->cp != 1 || has_two || plan_folds_experts(space, choice);
}

/* What the schedule and the model make of it: flash attention has nothing that is recomputed selectively. */
static int64_t recompute_made_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed) {
    if (choice->generator->recomputes && listed == PC_RECOMPUTE_NONE) return PC_RECOMPUTE_FULL;
    bool is_flash = space->bases[choice->base].spec.model.attention == PC_ATTENTION_FLASH;
    return is_flash && listed == PC_RECOMPUTE_SELECTIVE && !choice->generator->recomputes ? PC_RECOMPUTE_NONE : listed;
}

/* Axes of more ranks than one, from the innermost: all of an order that shows. Where tp and dp stand says where ep and
 * the experts' replicas do, too. */
static int order_made_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    const pc_rank_order order = plan_order_of(space, choice, digit);
    const bool folds = plan_folds_experts(space, choice);
    const int ranks[PC_AXES] = {[PC_AXIS_TP] = folds ? 2 : choice->tp,
                                [PC_AXIS_PP] = choice->pp,
                                [PC_AXIS_DP] = folds ? 2 : choice->dp,
                                [PC_AXIS_CP] = choice->cp};
    int made = 0;
    for (int i = 0; i < PC_AXES; i++)
        if (ranks[order.axis[i]] != 1) made = made * (PC_AXES + 1) + (int)order.axis[i] + 1;
    return made;
}

/* The layers of the first and of the second part, which tell all others; -1 if they do not divide so. Of two parts, or
 * one, all layouts that divide give the same. What is balanced is known where costs are: it is like no other. */
static int64_t layout_made_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed) {
    const pc_model *model = &space->bases[choice->base].spec.model;
    pc_cut cut = {.layout = plan_layout_of(space, choice, listed)};
    int parts = plan_parts_of(choice);
    if (!plan_layout_divides(space, choice, cut.layout)) return -1;
    if (pc_layout_is_balanced(cut.layout)) return parts == 1 ? 0 : INT64_MAX - (int64_t)cut.layout;
    int64_t first = pc_cut_part(model, &cut, parts, 0).layers;
    return parts < 3 ? 0 : first << 32 | pc_cut_part(model, &cut, parts, 1).layers;
}

static int64_t value_at(const pc_plan_space *space, plan_digit digit, int value) {
    switch (digit) {
    case DIGIT_GPUS:
        return space->gpus.values[value];
    case DIGIT_BATCH:
        return space->global_batch.values[value];
    case DIGIT_TP:
        return space->tp.values[value];
    case DIGIT_PP:
        return space->pp.values[value];
    default:
        return space->microbatch_size.values[value];
    }
}

/* What a digit's value comes to: digits of equal ones are one choice. */
static int64_t made_of(const pc_plan_space *space, const pc_plan_choice *choice, plan_digit digit, int value) {
    switch (digit) {
    case DIGIT_BASE:
        return value;
    case DIGIT_DP:
        return space->dp.count ? space->dp.values[value] : 0;
    case DIGIT_CP:
        return space->cp.count ? space->cp.values[value] : 1;
    case DIGIT_EP:
        return space->ep.count ? space->ep.values[value] : 1;
    case DIGIT_ETP:
        return etp_of(space, choice, value);
    case DIGIT_GENERATOR:
        return (int64_t)(intptr_t)space->generators[value];
    case DIGIT_SLICES:
        return slices_of(space, choice, value);
    case DIGIT_CHUNKS:
        return plan_chunks_of(choice, space->chunks.values[value]);
    case DIGIT_LAYOUT:
        return layout_made_of(space, choice, space->layouts.values[value]);
    case DIGIT_RECOMPUTE:
        return recompute_made_of(space, choice, space->recompute.values[value]);
    case DIGIT_OFFLOAD:
        return offload_of(space, choice, value);
    case DIGIT_ZERO:
        return has_data_parallel(space, choice) ? space->zero.values[value] : 0;
    case DIGIT_SHARD:
        return shard_group_of(space, choice, value);
    case DIGIT_SEQUENCE:
        return choice->tp > 1 ? space->sequence_parallel.values[value] : 0;
    case DIGIT_CP_COMM:
        return cp_comm_of(space, choice, value);
    case DIGIT_DISPATCHER:
        return plan_dispatcher_of(space, choice, value);
    case DIGIT_ORDER:
        return order_made_of(space, choice, value);
    case DIGIT_OVERLAPS_TP:
        return choice->tp > 1 ? space->overlaps_tp.values[value] : 0;
    case DIGIT_OVERLAPS_GRADIENTS:
        return has_data_parallel(space, choice) ? space->overlaps_gradients.values[value] : 0;
    case DIGIT_OVERLAPS_PARAMETERS:
        return has_data_parallel(space, choice) && choice->zero > 0 ? space->overlaps_parameters.values[value] : 0;
    case DIGIT_OVERLAPS_P2P:
        return choice->pp > 1 ? space->overlaps_p2p.values[value] : 0;
    default:
        return value_at(space, digit, value);
    }
}

/* Whether some listed layout but the first divides the layers. */
static bool divides_otherwise(const pc_plan_space *space, const pc_plan_choice *choice) {
    for (int i = 1; i < space->layouts.count; i++)
        if (made_of(space, choice, DIGIT_LAYOUT, i) >= 0) return true;
    return false;
}

static bool is_first(const pc_plan_space *space, const pc_plan_choice *choice, plan_digit digit, int value) {
    if (value == 0 && digit != DIGIT_LAYOUT) return true;
    int64_t made = made_of(space, choice, digit, value);
    if (digit == DIGIT_LAYOUT && made < 0) return value == 0 && !divides_otherwise(space, choice);
    for (int i = 0; i < value; i++)
        if (made_of(space, choice, digit, i) == made) return false;
    return true;
}

static bool are_first(const plan_numbers *numbers, const pc_plan_choice *choice, const int *digits, int first,
                      int behind) {
    for (int i = first; i < behind; i++)
        if (!is_first(numbers->space, choice, (plan_digit)i, digits[i])) return false;
    return true;
}

bool plan_is_point(const plan_numbers *numbers, int64_t number) {
    int digits[DIGITS];
    split_number(numbers, number, digits);
    pc_plan_choice x = choice_of_digits(numbers->space, digits);
    return are_first(numbers, &x, digits, 0, DIGITS);
}

bool plan_is_same(const plan_numbers *numbers, int64_t number, int64_t other) {
    pc_plan_choice x = plan_choice_of(numbers, number);
    for (int i = 0; i < DIGITS; i++) {
        int a = plan_digit_of(numbers, number, (plan_digit)i), b = plan_digit_of(numbers, other, (plan_digit)i);
        if (made_of(numbers->space, &x, (plan_digit)i, a) != made_of(numbers->space, &x, (plan_digit)i, b))
            return false;
    }
    return true;
}

bool plan_is_frame(const plan_numbers *numbers, int64_t frame) {
    int digits[DIGITS];
    split_number(numbers, frame * numbers->of_frame * numbers->variants, digits);
    pc_plan_choice x = choice_of_digits(numbers->space, digits);
    return are_first(numbers, &x, digits, 0, FRAME_DIGITS);
}

bool plan_is_shape(const plan_numbers *numbers, const pc_plan_choice *choice, int64_t shape) {
    int digits[DIGITS];
    split_number(numbers, shape * numbers->variants, digits);
    return are_first(numbers, choice, digits, FRAME_DIGITS, SHAPE_DIGITS);
}

bool plan_is_variant(const plan_numbers *numbers, const pc_plan_choice *choice, int64_t variant) {
    int digits[DIGITS];
    split_number(numbers, variant, digits);
    return are_first(numbers, choice, digits, SHAPE_DIGITS, DIGITS);
}

static int64_t count_first(const plan_numbers *numbers, const pc_plan_choice *choice, plan_digit digit) {
    int64_t count = 0;
    for (int value = 0; value < numbers->radix[digit]; value++) count += is_first(numbers->space, choice, digit, value);
    return count;
}

int64_t plan_count_variants(const plan_numbers *numbers, const pc_plan_choice *choice) {
    int64_t count = 1;
    for (int i = SHAPE_DIGITS; i < DIGITS; i++) count *= count_first(numbers, choice, (plan_digit)i);
    return count;
}

/* How many variants there are depends, of a frame's shapes, on zero alone. */
int64_t plan_count_points(const plan_numbers *numbers, const pc_plan_choice *choice) {
    const pc_plan_list *zero = &numbers->space->zero;
    pc_plan_choice x = *choice;
    int64_t shapes = numbers->sizes, variants = 0;
    shapes *= count_first(numbers, choice, DIGIT_RECOMPUTE) * count_first(numbers, choice, DIGIT_SEQUENCE) *
              count_first(numbers, choice, DIGIT_OFFLOAD) * count_first(numbers, choice, DIGIT_CP_COMM) *
              count_first(numbers, choice, DIGIT_DISPATCHER);
    for (int i = 0; i < zero->count; i++) {
        x.zero = (int)zero->values[i];
        if (is_first(numbers->space, &x, DIGIT_ZERO, i))
            variants += count_first(numbers, &x, DIGIT_SHARD) * plan_count_variants(numbers, &x);
    }
    return shapes * variants;
}

int64_t plan_numbers_of_base(const plan_numbers *numbers) {
    int64_t count = numbers->of_cut;
    for (int i = DIGIT_BASE + 1; i < CUT_DIGITS; i++) count *= numbers->radix[i];
    return count;
}

int64_t plan_cut_of(const plan_numbers *numbers, int64_t number) {
    return number / numbers->of_cut;
}
