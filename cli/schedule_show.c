#include "cli/schedule_show.h"

#include "results/figures/figure.h"

#include <stdio.h>

pc_code draw_answer(const pc_schedule_answer *a, bool is_dark, pc_error *error) {
    char title[PC_SCHEDULE_NAME_SIZE + 64], subtitle[128];
    const pc_schedule *schedule = &a->schedule;
    if (!a->request.figure) return PC_OK;
    snprintf(title, sizeof title, "%s: %d devices, %d microbatches", schedule->name, schedule->devices,
             schedule->microbatches);
    const char *memory_unit = a->report.memory_unit ? a->report.memory_unit : "microbatches";
    pc_write_message(subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan); at most %.4g %s held",
                     a->replay.bubble_rate_span, a->replay.bubble_rate_makespan,
                     pc_schedule_answer_memory(a, a->replay.peak_bytes), memory_unit);
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = a->report.time_unit ? a->report.time_unit : "",
                            .time_unit_ps = a->report.time_unit_ps,
                            .devices = schedule->devices,
                            .chunks = schedule->chunks,
                            .slices = pc_placement_slices(schedule->placement, schedule->chunks),
                            .trace = &a->replay.trace,
                            .block = a->report.block,
                            .explains_block = a->given != NULL,
                            .memory = true,
                            .is_dark = is_dark,
                            .memory_unit_bytes = a->report.microbatch_bytes,
                            .memory_unit = memory_unit};
    return pc_figure_timeline(&timeline, a->request.figure, error);
}
