/* What the files of this folder share. */
#ifndef PC_RESULTS_SCHEDULE_PRIVATE_H
#define PC_RESULTS_SCHEDULE_PRIVATE_H

#include "results/schedule/answer.h"

/* The option as messages call it. */
const char *pc_schedule_option_name(const pc_schedule_request *r, pc_schedule_option option);

/* PC_ERROR_INPUT about one option: "<option>: <format>". */
pc_code pc_schedule_refuse(const pc_schedule_request *r, pc_schedule_option option, pc_error *error, const char *format,
                           ...) PC_PRINTF(4, 5);

/* F,B,W, a list of them, or a file. */
pc_code pc_schedule_take_times(pc_schedule_request *r, const char *text, pc_error *error);
pc_code pc_schedule_take_vocab_times(pc_schedule_request *r, const char *text, pc_error *error);

/* Parses a number of an option. */
pc_code pc_schedule_take_number(const pc_schedule_request *r, pc_schedule_option option, const char *text,
                                double *number, pc_error *error);

/* ---- limits.c ---- */

/* The limit for costs, device by device, of the answer's request. */
pc_code pc_schedule_read_limits(pc_schedule_answer *a, int devices, pc_error *error);
pc_memory_limit pc_schedule_limit(const pc_schedule_answer *a);

/* The limit that it is replayed with: where nothing waits, the replay is to say what the schedule needs, not where it
 * stops. */
pc_memory_limit pc_schedule_limit_of_replay(const pc_schedule_answer *a);

/* PC_ERROR_INPUT, with does_not_fit: which limit is too small and the least that would do; any that is too small for
 * every order of this generator; and which pass waits for memory that nobody gives back. */
pc_code pc_schedule_refuse_limit(pc_schedule_answer *a, int device, double enough, pc_error *error);
pc_code pc_schedule_check_limits(pc_schedule_answer *a, const pc_generator *generator, pc_error *error);
pc_code pc_schedule_refuse_standstill(pc_schedule_answer *a, pc_error *error);

/* ---- measured.c ---- */

/* Reads the file; its number of stages is that of devices, and its scatter the jitter, if nobody says. */
pc_code pc_schedule_take_measured(pc_schedule_request *r, pc_error *error);

/* Whether memory counts in bytes: all of them say what F takes. */
bool pc_schedule_counts_bytes(const pc_schedule_request *r);

/* One word of the memory limit, as GiB that device `d` has for activations. */
pc_code pc_schedule_read_size(const pc_schedule_request *r, const char *word, int device, double *limit,
                              pc_error *error);

/* Costs, and the units of the report. */
pc_code pc_schedule_prepare_measured(const pc_unit_shape *shape, pc_schedule_answer *a, pc_error *error);

/* ---- slices.c ---- */

/* The chunks of a schedule of slices become those, and the costs have their times. `generator`: NULL of a file. */
pc_code pc_schedule_take_slices(pc_schedule_answer *a, const pc_generator *generator, pc_error *error);

/* ---- best.c ---- */

/* Whether the name is that of all schedules together; and the answer of the one whose span is the shortest of those
 * that measured stages can have, within the limit. */
bool pc_schedule_asks_for_best(const pc_schedule_request *r);
pc_code pc_schedule_find_best(const pc_schedule_request *r, pc_schedule_answer *best, pc_error *error);

/* ---- answer.c ---- */

/* Answers a request of one schedule, which the answer has already. */
pc_code pc_schedule_work_out(pc_schedule_answer *a, pc_error *error);

/* Has the report point into the answer, which has just been filled in or moved. */
void pc_schedule_link_report(pc_schedule_answer *a);

#endif
