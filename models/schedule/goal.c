#include "models/schedule/goal.h"

#include <stddef.h>

const char *const pc_goal_names[PC_GOALS + 1] = {"span", "makespan", "iteration", NULL};
