/* An answer as text. */
#include "results/schedule/schedule_private.h"

#include "models/schedule/block_write.h"
#include "models/schedule/exchange.h"

/* What was given was read from a file already; it is written as its numbers for these devices. */
static pc_code write_block(const pc_schedule_answer *a, FILE *stream, pc_error *error) {
    pc_block_text_request wanted = {.schedule = &a->schedule,
                                    .block = a->block.devices ? &a->block : NULL,
                                    .costs = &a->costs,
                                    .memory_limit = pc_schedule_limit_of_replay(a),
                                    .is_own = a->given != NULL};
    return pc_block_write(&wanted, stream, error);
}

pc_code pc_schedule_answer_write(pc_schedule_answer *a, pc_schedule_format format, FILE *stream, pc_error *error) {
    pc_code code = format <= PC_SCHEDULE_JSON ? pc_schedule_answer_judge(a, error) : PC_OK;
    if (code) return code;
    switch (format) {
    case PC_SCHEDULE_TABLE:
        return pc_schedule_report_write(&a->report, false, stream, error);
    case PC_SCHEDULE_JSON:
        return pc_schedule_report_write(&a->report, true, stream, error);
    case PC_SCHEDULE_TORCH_CSV:
        return pc_schedule_write_torch_csv(&a->schedule, stream, error);
    case PC_SCHEDULE_BLOCK:
        return write_block(a, stream, error);
    case PC_SCHEDULE_TEXT:
        pc_schedule_write_text(&a->schedule, stream);
        break;
    }
    return PC_OK;
}
