/* schedule_show.h: the picture of `pipecast schedule`. */
#ifndef PC_CLI_SCHEDULE_SHOW_H
#define PC_CLI_SCHEDULE_SHOW_H

#include "results/schedule/answer.h"

/* Draws the figure, if one was asked for; dark: light on a dark ground. */
pc_code draw_answer(const pc_schedule_answer *a, bool is_dark, pc_error *error);

#endif
