/* measured_arguments.h: private to scenarios/: Megatron's arguments in tables of measured runs, where several columns
 * say one setting. Those that say one each are pc_measured_key_of_argument's (measured.h). */
#ifndef PC_SCENARIOS_MEASURED_ARGUMENTS_H
#define PC_SCENARIOS_MEASURED_ARGUMENTS_H

#include "scenarios/measured.h"

#include <stdbool.h>

enum { PC_MEASURED_ARGUMENTS_SIZE = 4 * PC_MEASURED_NAME_SIZE };

/* Whether a column of this name is one of them. */
bool pc_measured_is_argument(const char *name);

/* What the run's own columns say, so that arguments do not. */
typedef struct pc_measured_said {
    bool recompute, zero;
} pc_measured_said;

/* Writes what the row's arguments come to: "recompute=selective:mlp;zero=3", or "". What no setting has a name for is
 * written as it stands, for the scenario to refuse. */
void pc_measured_read_arguments(const pc_measured *measured, int64_t row, pc_measured_said said,
                                char settings[PC_MEASURED_ARGUMENTS_SIZE]);

#endif
