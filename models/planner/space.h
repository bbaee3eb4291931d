/* space.h: the points of a space as numbers. Private to models/planner/.
 *
 * A point's number has a digit a list, its radix the list's length: the shape first (what memory depends on), then what
 * is left, its variants. Where a digit makes no difference, or the same as an earlier one, the number is no point: of
 * numbers that mean the same iteration only the lowest counts.
 */
#ifndef PC_MODELS_PLANNER_SPACE_H
#define PC_MODELS_PLANNER_SPACE_H

#include "models/planner/planner.h"

/* The digits, from the one that counts most. */
typedef enum plan_digit {
    DIGIT_BASE,
    DIGIT_GPUS,
    DIGIT_BATCH,
    DIGIT_TP,
    DIGIT_PP,
    DIGIT_DP,
    DIGIT_GENERATOR,
    DIGIT_CHUNKS,
    DIGIT_SIZE,
    DIGIT_RECOMPUTE,
    DIGIT_ZERO,
    DIGIT_SEQUENCE,
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
    int64_t shapes, variants; /* how many numbers of both; a point's is shape * variants + variant */
} plan_numbers;

/* PC_ERROR_INPUT where a list is empty or has a value that no point can have, or where there are too many numbers. */
pc_code plan_numbers_make(const pc_plan_space *space, plan_numbers *numbers, pc_error *error);

/* The choice of a number. Where the lists cannot be (what does not divide), dp or microbatches are 0. */
pc_plan_choice plan_choice_of(const plan_numbers *numbers, int64_t number);

/* Whether the number is a point: the lowest of those that mean the same. And whether two that differ in one digit mean
 * the same. */
bool plan_is_point(const plan_numbers *numbers, int64_t number);
bool plan_is_same(const plan_numbers *numbers, int64_t number, int64_t other);

/* The same for all numbers of a shape, as far as its own digits say; and for one variant of a choice of that shape. */
bool plan_is_shape(const plan_numbers *numbers, int64_t shape);
bool plan_is_variant(const plan_numbers *numbers, const pc_plan_choice *choice, int64_t variant);

/* How many variants the shape of this choice has. */
int64_t plan_count_variants(const plan_numbers *numbers, const pc_plan_choice *choice);

/* The shape's number with one digit put in place of its own; and what that digit is now. */
int64_t plan_with_digit(const plan_numbers *numbers, int64_t number, plan_digit digit, int value);
int plan_digit_of(const plan_numbers *numbers, int64_t number, plan_digit digit);

/* PC_OK where the choice breaks no rule. */
pc_code plan_check_rules(const pc_plan_space *space, const pc_plan_choice *choice, pc_error *error);

#endif
