/* What `pipecast schedule` says and draws of an answer, and whether it fits. */
#include "cli/schedule_answer.h"

#include "models/schedule/block_write.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/exchange.h"
#include "results/figures/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was given was read from a file already; it is written as its numbers for these devices. */
static pc_code print_block(const answer *a, pc_error *error) {
    pc_block_text_request wanted = {.schedule = &a->schedule,
                                    .block = a->block.devices ? &a->block : NULL,
                                    .costs = &a->costs,
                                    .memory_limit = limit_of_replay(a),
                                    .is_own = a->given != NULL};
    return pc_block_write(&wanted, stdout, error);
}

pc_code print_answer(const answer *a, pc_error *error) {
    switch (a->request->format) {
    case FORMAT_TABLE:
        return pc_schedule_report_write(&a->report, false, stdout, error);
    case FORMAT_JSON:
        return pc_schedule_report_write(&a->report, true, stdout, error);
    case FORMAT_TORCH_CSV:
        return pc_schedule_write_torch_csv(&a->schedule, stdout, error);
    case FORMAT_BLOCK:
        return print_block(a, error);
    case FORMAT_TEXT:
        pc_schedule_write_text(&a->schedule, stdout);
        break;
    }
    return PC_OK;
}

pc_code draw_answer(const answer *a, pc_error *error) {
    char title[PC_SCHEDULE_NAME_SIZE + 64], subtitle[128];
    const pc_schedule *schedule = &a->schedule;
    if (!a->request->figure) return PC_OK;
    snprintf(title, sizeof title, "%s: %d devices, %d microbatches", schedule->name, schedule->devices,
             schedule->microbatches);
    const char *memory_unit = a->report.memory_unit ? a->report.memory_unit : "microbatches";
    pc_write_message(subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan); at most %.4g %s held",
                     a->replay.bubble_rate_span, a->replay.bubble_rate_makespan,
                     in_microbatches(a, a->replay.peak_bytes), memory_unit);
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
                            .memory_unit_bytes = a->report.microbatch_bytes,
                            .memory_unit = memory_unit};
    return pc_figure_timeline(&timeline, a->request->figure, error);
}

/* Of measured passes the limit is of all that a device holds. */
static int report_too_few_bytes(const answer *a, int device, double enough) {
    int64_t held = a->report.held_bytes && a->report.held_bytes[device] > 0 ? a->report.held_bytes[device] : 0;
    report_usage("--memory-limit: %s is too little for %s: device %d needs %.4g GiB for activations and holds %.4g GiB "
                 "beside; expected at least %.4gGiB",
                 a->request->memory_limit, a->request->name, device, enough, in_microbatches(a, held),
                 enough + in_microbatches(a, held));
    return EXIT_DID_NOT_FIT;
}

int report_too_little(const answer *a, int device, double enough) {
    char least[32], where[48] = ""; /* as many digits as it takes to be accepted */
    if (a->request->keeps_quiet) return EXIT_DID_NOT_FIT;
    if (counts_bytes(a->request)) return report_too_few_bytes(a, device, enough);
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(least, sizeof least, "%.*g", digits, enough);
        if (strtod(least, NULL) >= enough) break;
    }
    if (strchr(a->request->memory_limit, ',')) snprintf(where, sizeof where, " on device %d", device);
    report_usage("--memory-limit: %.6g is too little for %s%s; expected at least %s", a->limit[device],
                 a->request->name, where, least);
    return EXIT_DID_NOT_FIT;
}

int report_standstill(const answer *a) {
    const pc_out_of_memory *oom = &a->replay.oom;
    if (a->request->keeps_quiet) return EXIT_DID_NOT_FIT;
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&a->schedule, oom->pass, name);
    report_usage(
        "--memory-limit: %.6g is too little for %s: %s on device %d waits for %.6g where %.6g are held, and nothing "
        "else can run",
        a->limit[oom->device], a->request->name, name, oom->device, in_microbatches(a, oom->requested_bytes),
        in_microbatches(a, oom->level_bytes));
    return EXIT_DID_NOT_FIT;
}

int judge_memory(const answer *a) {
    int worst = 0;
    for (int d = 1; d < a->schedule.devices; d++)
        if (in_microbatches(a, a->replay.device_peak_bytes[d]) - a->limit[d] >
            in_microbatches(a, a->replay.device_peak_bytes[worst]) - a->limit[worst])
            worst = d;
    double held = in_microbatches(a, a->replay.device_peak_bytes[worst]);
    return held <= a->limit[worst] ? EXIT_DONE : report_too_little(a, worst, held);
}
