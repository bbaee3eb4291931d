#include "results/link_use.h"

#include "engine/alloc.h"

#include <math.h>

pc_code pc_link_use_make(const pc_engine_trace *trace, pc_link_use **use, pc_error *error) {
    pc_link_use *made = pc_alloc((size_t)trace->link_count, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->load_count; i++) {
        pc_link_use *of = &made[trace->load_link[i]];
        of->carried_bytes += of->load_bytes_per_s * pc_time_to_seconds(trace->load_time_ps[i] - of->changed_ps);
        of->load_bytes_per_s = trace->load_bytes_per_s[i];
        of->changed_ps = trace->load_time_ps[i];
        of->peak_bytes_per_s = fmax(of->peak_bytes_per_s, of->load_bytes_per_s);
    }
    *use = made;
    return PC_OK;
}
