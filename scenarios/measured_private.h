/* measured_private.h: what the files measured*.c share. Private to scenarios/. */
#ifndef PC_SCENARIOS_MEASURED_PRIVATE_H
#define PC_SCENARIOS_MEASURED_PRIVATE_H

#include "scenarios/measured.h"

#include <stdbool.h>

/* Whether a cell says nothing: "", "-", "n/a", "none" and the like. */
bool pc_measured_is_nothing(const char *cell);

#endif
