/* space.h: the points of a space as numbers. Private to models/planner/.
 *
 * A point's number has a digit a list, its radix the list's length: the shape first (what memory depends on), then what
 * is left, its variants. Shapes that differ in what comes behind the layout share a frame, which breaks many rules for
 * all of them. Where a digit makes no difference, or the same as an earlier one, the number is no point: of
 * numbers that mean the same iteration only the lowest counts.
 */
#ifndef PC_MODELS_PLANNER_SPACE_H
#define PC_MODELS_PLANNER_SPACE_H

#include "models/planner/planner.h"

/* The digits, from the one that counts most. */
typedef enum plan_digit {
    DIGIT_BASE,
    DIGIT_GPUS,
    DIGIT_TP,
    DIGIT_PP,
    DIGIT_DP,
    DIGIT_CP,
    DIGIT_EP,
    DIGIT_ETP,
    CUT_DIGITS,
    DIGIT_BATCH = CUT_DIGITS,
    DIGIT_GENERATOR,
    DIGIT_SLICES,
    DIGIT_CHUNKS,
    DIGIT_LAYOUT,
    FRAME_DIGITS,
    DIGIT_SIZE = FRAME_DIGITS,
    DIGIT_RECOMPUTE,
    DIGIT_OFFLOAD,
    DIGIT_ZERO,
    DIGIT_SHARD,
    DIGIT_SEQUENCE,
    DIGIT_CP_COMM,
    DIGIT_DISPATCHER,
    SHAPE_DIGITS,
    DIGIT_ORDER = SHAPE_DIGITS,
    DIGIT_OVERLAPS_TP,
    DIGIT_OVERLAPS_GRADIENTS,
    DIGIT_OVERLAPS_PARAMETERS,
    DIGIT_OVERLAPS_P2P,
    DIGITS
} plan_digit;

typedef struct plan_numbers {
    const pc_plan_space *space; /* borrowed */
    int radix[DIGITS];
    int64_t frames, of_frame; /* frames, and shapes in one; a shape's number is frame * of_frame + the rest */
    int64_t shapes, variants; /* how many numbers of both; a point's is shape * variants + variant */
    int64_t of_cut;           /* points of a cut: a machine, a number of GPUs, tp, pp, dp, cp, ep and etp */
    int sizes;                /* microbatch sizes that differ */
} plan_numbers;

/* PC_ERROR_INPUT if a list is empty or has a value that no point can have, or where there are too many numbers. */
pc_code plan_numbers_make(const pc_plan_space *space, plan_numbers *numbers, pc_error *error);

/* The choice of a number. Where the lists cannot be (what does not divide), dp or microbatches are 0. */
pc_plan_choice plan_choice_of(const plan_numbers *numbers, int64_t number);

/* Of a choice's schedule the slices that it makes of a listed number, 0 if it has none; and the chunks, all parts'
 * slices. `listed` 0: nothing is listed, and the base says how many. And a choice's dp and microbatches by the rest of
 * it, 0 if they cannot be. */
int plan_slices_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed);
int plan_chunks_of(const pc_plan_choice *choice, int64_t listed);
void plan_settle(const pc_plan_space *space, pc_plan_choice *choice);

/* The parts into which the choice cuts the model. */
/* Whether the layers divide over the choice's parts; stages with two replicas' parts are not balanced. */
bool plan_layout_divides(const pc_plan_space *space, const pc_plan_choice *choice, pc_cut_layout layout);

/* What a listed layout comes to over the choice's parts: AUTO is one of the others. */
pc_cut_layout plan_layout_of(const pc_plan_space *space, const pc_plan_choice *choice, int64_t listed);

int plan_parts_of(const pc_plan_choice *choice);

/* Whether experts have other replicas than the rest (pc_cut_folds_experts); and if so whether their ranks, and their
 * share of an expert, come out even, and the choice's order and schedule can have them. Of a choice with a dp. */
bool plan_folds_experts(const pc_plan_space *space, const pc_plan_choice *choice);
bool plan_experts_divide(const pc_plan_space *space, const pc_plan_choice *choice);

/* The listed order, or, where it cannot have the experts, the first that can, if any; and the listed dispatcher, or,
 * where no token leaves its rank, the first. */
pc_rank_order plan_order_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit);
pc_dispatcher plan_dispatcher_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit);

/* Whether the number is a point: the lowest of those that mean the same. And whether two that differ in one digit mean
 * the same. */
bool plan_is_point(const plan_numbers *numbers, int64_t number);
bool plan_is_same(const plan_numbers *numbers, int64_t number, int64_t other);

/* The same for all numbers of a frame, as far as its own digits say; for a shape of a choice of that frame; and for one
 * variant of a choice of that shape. */
bool plan_is_frame(const plan_numbers *numbers, int64_t frame);
bool plan_is_shape(const plan_numbers *numbers, const pc_plan_choice *choice, int64_t shape);
bool plan_is_variant(const plan_numbers *numbers, const pc_plan_choice *choice, int64_t variant);

/* How many variants the shape of this choice has; and how many points its frame. */
int64_t plan_count_variants(const plan_numbers *numbers, const pc_plan_choice *choice);
int64_t plan_count_points(const plan_numbers *numbers, const pc_plan_choice *choice);

/* Numbers that share a base. */
int64_t plan_numbers_of_base(const plan_numbers *numbers);

/* The cut of a point, as a number. */
int64_t plan_cut_of(const plan_numbers *numbers, int64_t number);

/* The shape's number with one digit put in place of its own; and what that digit is now. */
int64_t plan_with_digit(const plan_numbers *numbers, int64_t number, plan_digit digit, int value);
int plan_digit_of(const plan_numbers *numbers, int64_t number, plan_digit digit);

/* PC_OK if the choice breaks no rule, else PC_ERROR_INPUT and the rule; of a frame only those that hold for all its
 * shapes. */
pc_code plan_check_rules(const pc_plan_space *space, const pc_plan_choice *choice, pc_plan_rule *broken);
/* What is wrong with a choice that breaks a rule of schedules, offload, tensors or sizes, in the words of its check. */
void plan_check_words(const pc_plan_space *space, const pc_plan_choice *choice, pc_error *error);
pc_code plan_check_frame(const pc_plan_space *space, const pc_plan_choice *choice, pc_plan_rule *broken);

#endif
