/* plan_table.h: what a search for plans found, as text: a table for people, CSV and JSON for programs.
 *
 * Beside the numbers of a run, a plan has what limits it, by what it is behind the best, and whether that is sure.
 *
 * `limits`: of what the iteration waits for (exposed_* of columns.h) the largest, as a share of the iteration: "bubble
 * 9.1%"; behind it ", memory" where something that would be faster does not fit (pc_plan_found.memory_limits).
 *
 * `behind`: the value v of a plan by the first objective is, to be small, THROUGHPUT: seconds that the cluster takes
 * for a token; COST: the same times GPUs and the price of one; MEMORY: bytes on the fullest GPU. A plan is behind plan
 * 1 by v / v1 - 1. With v = sum of v_k over kinds k, it is the sum of (v_k - v1_k) / v1, so that kinds add up to the
 * whole. Kinds of THROUGHPUT and COST are the shares that TP, CP, EP, PP, DP, optimizer and bubble have of the
 * iteration, and the kernels (with the setting's overhead), which have the rest. Kinds of MEMORY are what the fullest
 * GPU holds: parameters, gradients, optimizer, buffers, activations. As text, in percent and in points of v1, the
 * largest first:
 * "+3.1%: bubble +2.4, DP +0.9, kernels -0.2"; what rounds to nothing is left out; of plan 1 it is empty.
 *
 * `ties`: the plan's interval of 80% (scenarios/intervals.h), of v as of the time or the memory in it, overlaps that of
 * plan 1. Two plans share much of the model's error, so most that overlap can be told apart all the same. Hence
 * `close`: v is beyond v1 by no more than what the ratio of two runs of one model on as many GPUs is off by in
 * 80% of the pairs that were measured (pc_interval_line.pair). On other GPUs than plan 1, or another number of them, no
 * plan is close. Plan 1 is neither.
 */
#ifndef PC_RESULTS_PLAN_TABLE_H
#define PC_RESULTS_PLAN_TABLE_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "results/row.h"
#include "results/table.h"
#include "scenarios/plan_scenario.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a row answers: which plans are the best; which is the best of one value; what becomes of plan 1 if something
 * else changes (plan_cells.h). The rows of a goal are EACH, or GOAL if rows of EACH stand beside them. */
typedef enum pc_plan_part {
    PC_PLAN_PART_PLANS,
    PC_PLAN_PART_EACH,
    PC_PLAN_PART_MAP,
    PC_PLAN_PART_SENSITIVITY,
    PC_PLAN_PART_MIX,
    PC_PLAN_PART_GOAL,
    PC_PLAN_PARTS
} pc_plan_part;

/* "plan", "each", "map", "sensitivity", "mix", "goal". */
const char *pc_plan_part_name(pc_plan_part part);

/* Without a plan `found` is zero, and `row` says why in `message`. */
typedef struct pc_plan_row {
    pc_plan_part part;
    bool lacks_plan;
    pc_plan_rule rule; /* that stops the points of a cell without a plan that come furthest; PC_PLAN_RULES: none does */
    double factor;     /* of SENSITIVITY: how many times as much of `what` there is */
    char what[128];    /* of EACH and MAP the values, "tp 8, pp 4"; of SENSITIVITY what is changed */
    pc_plan_found found;
    pc_run_row row;           /* of the run that the plan is */
    pc_device_memory fullest; /* the stage whose GPU holds most */
    double ratio_error[2];    /* of its kind of run, by pc_interval_quantity */
    const char *command;      /* that does this run; borrowed */
} pc_plan_row;

/* Does the run of a plan, in full, and fills in `row`, its key too, `fullest` and `ratio_error`. `detail` is
 * pc_run_row_make's. */
pc_code pc_plan_row_run(const pc_run_spec *spec, const pc_run_labels *labels, pc_plan_row *plan, pc_run_detail *detail,
                        pc_error *error);

struct pc_plan_cells;
typedef struct pc_plan_report {
    const char *scenario;              /* its name */
    const struct pc_plan_cells *parts; /* part_count, what else was asked; NULL: nothing */
    int part_count;
    pc_plan_goal goal;
    const pc_plan_row *rows;
    int64_t count;
    const pc_plan_row *best; /* what rows are compared with; NULL: the first one */
    pc_plan_request request;
    const char *rule; /* pc_plan_rule_text's, or NULL if no point broke any */
    pc_plan_log log;  /* seconds are not written: the same input gives the same bytes */
    pc_table_look look;
} pc_plan_report;

/* The columns of a plan, for pc_column_choice_parse: rank, those of a run, and the others that the CSV has. */
const char *pc_plan_column_name(int number);

enum { PC_PLAN_KINDS = 8, PC_PLAN_TEXT_SIZE = 256, PC_PLAN_REASON_SIZE = 512 };

/* v_k of a plan by `objective`, in units that cancel out, and their names; the sum is v. `names` are static. */
void pc_plan_parts(pc_plan_objective objective, const pc_plan_row *plan, double parts[PC_PLAN_KINDS],
                   const char *names[PC_PLAN_KINDS]);

/* Call both within a number scope (text.h) or in the C locale. */
void pc_plan_limits(const pc_plan_row *plan, char text[PC_PLAN_TEXT_SIZE]);
void pc_plan_behind(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan,
                    char text[PC_PLAN_TEXT_SIZE]);

/* Whether the plan ties with the best, and whether it is close to it. */
bool pc_plan_ties(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan);
bool pc_plan_is_close(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *plan);

/* The rule to blame, and what lifts one, if anything does: "126 layers do not divide by pp x chunks (1040 points);
 * --layout ends lifts that for 208 points". */
void pc_plan_rule_text(const pc_plan_space *space, const pc_plan_log *log, const pc_plan_remedy *remedy,
                       char text[PC_PLAN_REASON_SIZE]);

/* Gibibytes, "1.52 of 1.00", and other amounts, "0.01234, of 0.01 at most": with more digits if they would look alike,
 * and, of a limit, if it would look like none. `decimals`: of gibibytes, the fewest. */
enum { PC_PLAN_AMOUNT_SIZE = 32 };
typedef struct pc_plan_amounts {
    char found[PC_PLAN_AMOUNT_SIZE], limit[PC_PLAN_AMOUNT_SIZE];
} pc_plan_amounts;
pc_plan_amounts pc_plan_write_gib(int64_t found_bytes, int64_t limit_bytes, int decimals);
pc_plan_amounts pc_plan_write_amounts(double found, double limit);

/* "throughput", "memory", "cost". */
const char *pc_plan_objective_name(pc_plan_objective objective);

/* How context ranks come to each other's keys: cp_comm_type, "none" where cp is 1. */
const char *pc_plan_cp_comm(const pc_plan_row *plan);

/* How its tokens come to their experts: a word, "none" without expert parallelism. */
const char *pc_plan_dispatcher(const pc_plan_row *plan);

/* TABLE has the choices on which all plans agree in lines above, the others and the results in columns; a terminal that
 * is too narrow has fewer. Below stand by what plans are behind, where the points went, which rule most of them broke,
 * and the command of plan 1. CSV: rank, every column of columns.h, rank_order, offload, cp_comm_type, dispatcher,
 * overlap_p2p, overlap_tp, overlap_gradients, overlap_parameters, limits, behind, ties, close, part, what, factor,
 * command. JSON: an object of `scenario`, `objective`, `plans`, each with what a row of the CSV has, and `log`, the
 * numbers of pc_plan_log and `rule`. PC_ERROR_IO if the stream fails. */
pc_code pc_plan_table_write(const pc_plan_report *report, pc_format format, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
