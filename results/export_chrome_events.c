#include "results/export_chrome.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <inttypes.h>
#include <stdlib.h>

void pc_chrome_start(pc_chrome *chrome, char phase, int process, int thread) {
    pc_text_printf(&chrome->out.text, "%s\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%d", chrome->is_first ? "" : ",", phase,
                   process, thread);
    chrome->is_first = false;
}

void pc_chrome_end(pc_chrome *chrome) {
    pc_text_add(&chrome->out.text, "}", 1);
    pc_outlet_step(&chrome->out);
}

void pc_chrome_add_time(pc_chrome *chrome, const char *name, pc_time time) {
    pc_text_printf(&chrome->out.text, ",\"%s\":%" PRId64 ".%06" PRId64, name, time / 1000000, time % 1000000);
}

void pc_chrome_add_number(pc_chrome *chrome, const char *name, double value) {
    char number[PC_NUMBER_SIZE];
    pc_number_format(value, number);
    pc_text_printf(&chrome->out.text, ",\"%s\":%s", name, number);
}

void pc_chrome_add_gib(pc_chrome *chrome, const char *name, int64_t bytes) {
    pc_chrome_add_number(chrome, name, (double)bytes / PC_BYTES_PER_GIB);
}

void pc_chrome_add_name(pc_chrome *chrome, const char *what, int process, int thread, const char *name, int index) {
    pc_chrome_start(chrome, 'M', process, thread);
    pc_text_printf(&chrome->out.text, ",\"name\":\"%s_name\",\"args\":{\"name\":\"%s\"}", what, name);
    pc_chrome_end(chrome);
    pc_chrome_start(chrome, 'M', process, thread);
    pc_text_printf(&chrome->out.text, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%d}", what, index);
    pc_chrome_end(chrome);
}

/* --- which thread --- */

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_slices(const void *a, const void *b) {
    const pc_chrome_slice *x = a, *y = b;
    int order = compare(x->process, y->process);
    if (order == 0) order = compare(x->track, y->track);
    if (order == 0) order = compare(x->start_ps, y->start_ps);
    return order ? order : compare(x->row, y->row);
}

/* The first lane of its track that is free: `free_ps` says from when on, for those that there are. */
static void take_lane(pc_time *free_ps, int32_t *lanes, pc_chrome_slice *slice) {
    int32_t i = 0;
    while (i < *lanes && free_ps[i] > slice->start_ps) i++;
    slice->lane = i;
    slice->is_first = i == *lanes;
    if (slice->is_first) (*lanes)++;
    free_ps[i] = slice->end_ps;
}

pc_code pc_chrome_place(pc_chrome *chrome, pc_chrome_slice *slices, int64_t count, pc_error *error) {
    int32_t first = 0, lanes = 0;
    pc_time *free_ps = pc_alloc((size_t)count, sizeof *free_ps);
    if (!free_ps) return pc_error_no_memory(error);
    if (count > 0) qsort(slices, (size_t)count, sizeof *slices, compare_slices);
    for (int64_t i = 0; i < count; i++) {
        pc_chrome_slice *now = &slices[i];
        bool is_same = i > 0 && now[-1].process == now->process && now[-1].track == now->track;
        if (!is_same) {
            first = chrome->next_thread[now->process];
            lanes = 0;
        }
        take_lane(free_ps, &lanes, now);
        now->thread = first + now->lane;
        chrome->next_thread[now->process] = first + lanes;
    }
    pc_free(free_ps);
    return PC_OK;
}

void pc_chrome_add_thread(pc_chrome *chrome, const pc_chrome_slice *slice, const char *name) {
    char numbered[128];
    if (!slice->is_first) return;
    if (slice->lane > 0)
        snprintf(numbered, sizeof numbered, "%s (%d)", name, slice->lane + 1);
    else
        snprintf(numbered, sizeof numbered, "%s", name);
    pc_chrome_add_name(chrome, "thread", slice->process, slice->thread, numbered, slice->thread);
}
