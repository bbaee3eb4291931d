/* measured.h: a table of measured runs (CSV, one row each), and the run that each row was, as a setting of a scenario.
 *
 * Columns are known by their names; those that nobody here reads are kept with the rest. Numbers may be missing (empty,
 * "-", "N/A", "nan", "none", "null"). Docs: docs/score.md.
 */
#ifndef PC_SCENARIOS_MEASURED_H
#define PC_SCENARIOS_MEASURED_H

#include "engine/error.h"
#include "models/workload/recompute.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Columns with a meaning. */
typedef enum pc_measured_column {
    PC_MEASURED_MODEL,
    PC_MEASURED_SYSTEM,
    PC_MEASURED_GPUS,
    PC_MEASURED_PRECISION,
    PC_MEASURED_GBS,
    PC_MEASURED_MBS,
    PC_MEASURED_SEQ,
    PC_MEASURED_FSDP_SHARD,
    PC_MEASURED_TP,
    PC_MEASURED_PP,
    PC_MEASURED_CP,
    PC_MEASURED_VP,
    PC_MEASURED_EP,
    PC_MEASURED_ETP,
    PC_MEASURED_GA,
    PC_MEASURED_ZERO,
    PC_MEASURED_RECOMPUTE,
    PC_MEASURED_SCHEDULE,
    PC_MEASURED_VARIANT,
    PC_MEASURED_TASK,
    PC_MEASURED_FRAMEWORK,
    PC_MEASURED_RELEASE,
    PC_MEASURED_TOKENS,
    PC_MEASURED_STEP,
    PC_MEASURED_MEMORY,
    PC_MEASURED_ALLOCATED,
    PC_MEASURED_COLUMNS
} pc_measured_column;

/* The table. Owned: pc_measured_free; texts lie in `text`. */
typedef struct pc_measured {
    char *path;
    char *text;
    int column_count;
    char **column;               /* their names, as written */
    bool *is_known;              /* of each */
    int at[PC_MEASURED_COLUMNS]; /* which column has it; -1: none */
    int64_t row_count;           /* those with as many fields as there are columns */
    char **cell;                 /* [row_count * column_count] */
    int64_t *line;               /* [row_count]: on which the row begins */
} pc_measured;

/* Takes what is wrong with a row: one line, "FILE:LINE: COLUMN: ...". */
typedef void pc_measured_say(void *context, const pc_error *error);

/* Reads all of it. A row that cannot be one goes to `say`, and is left out; empty lines and repeated headers are
 * skipped. PC_ERROR_INPUT where the file cannot be read, has no header, a column twice, or no column for the model, the
 * machine or the GPUs. *measured is to be freed in any case. */
pc_code pc_measured_read(const char *path, pc_measured_say *say, void *context, pc_measured *measured, pc_error *error);
void pc_measured_free(pc_measured *measured);

/* "" where the table has no such column. */
const char *pc_measured_cell(const pc_measured *measured, int64_t row, pc_measured_column column);

/* The run that a row was. Whole numbers that are not given are -1, texts empty, times NaN. */
enum { PC_MEASURED_MISSING_SIZE = 192, PC_MEASURED_NAME_SIZE = 256 };
typedef struct pc_measured_run {
    char model[PC_MEASURED_NAME_SIZE];    /* of the library, or a path as it is written; "": unknown */
    char machine[PC_MEASURED_NAME_SIZE];  /* likewise */
    char software[PC_MEASURED_NAME_SIZE]; /* of the library, or a path; "": none that is known */
    const char *settings;                 /* "memory=92 GiB": what the machine's name adds; "": nothing */
    char schedule[32], recompute[PC_RECOMPUTATION_SIZE],
        precision[16]; /* as scenarios have them; "": the model's precision */
    int64_t gpus, global_batch, microbatch_size, seq_len, tp, pp, cp, ep, etp, chunks, zero, shard_group;
    const char *adapters;                 /* "lora.rank=16;...": what a LoRA run trains; "": no such run */
    const char *experts;                  /* "etp=1;...": how its program runs experts where ep > 1; "": nothing */
    int64_t layers;                       /* of a model that was cut short: `layers=N` in the variant */
    const struct pc_measured *conditions; /* where what its row does not say stands, or NULL: in this row */
    int64_t condition;
    bool says_recompute; /* the row does; else `recompute` is none */
    double step_s;       /* measured: the step, or global_batch * seq_len / (tokens/s a GPU * gpus) */
    double memory_gib;   /* measured */
    bool is_allocated;   /* that is what torch counts (memory_allocated_gib) */
    char missing[PC_MEASURED_MISSING_SIZE]; /* features and facts without which it cannot be asked: "moe;cp" */
} pc_measured_run;

/* PC_ERROR_INPUT, with file, line and column, where a cell has not what its column is for. */
pc_code pc_measured_run_of(const pc_measured *measured, int64_t row, pc_measured_run *run, pc_error *error);

/* Adds the run as a case of a scenario of the name r<row>, one line of YAML: "- {name: r7, gpus: 8, ...}\n". Columns
 * "setting.KEY" say keys of their own. Only of a run in which nothing is missing. */
void pc_measured_add_case(const pc_measured *measured, int64_t row, const pc_measured_run *run, pc_text *yaml);

/* "overlap.gradients" of "overlap_grad_reduce": the key that a column of Megatron's arguments sets; NULL for others. */
const char *pc_measured_key_of_argument(const char *name);

/* Conditions of runs: a table of the same columns, of configurations in place of runs, whose arguments are settings.
 * *found: its row of the same model, machine, precision and task (LoRA or not), and of the same tp, pp, cp and mbs.
 * These it must say; one with as many GPUs counts before others. -1: there is none, or there are several that say
 * different things. Returns how many fit. */
int64_t pc_measured_condition_of(const pc_measured *conditions, const pc_measured_run *run, int64_t *found);

/* The column, as written, that a key of the case comes from: "model.from" from "model"; the key itself where it comes
 * from none. */
const char *pc_measured_column_of_key(const pc_measured *measured, const char *key);

#ifdef __cplusplus
}
#endif
#endif
