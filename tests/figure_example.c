#include "tests/figure_example.h"

#include <sys/stat.h>

/* --- files --- */

char *read_text(const char *path, size_t *size) {
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    fseek(stream, 0, SEEK_END);
    *size = (size_t)ftell(stream);
    rewind(stream);
    char *text = calloc(*size + 1, 1);
    assert_int_equal(fread(text, 1, *size, stream), *size);
    fclose(stream);
    return text;
}

void write_file(const char *path, const char *text) {
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

/* --- a schedule --- */

void make_figure_example(figure_example *made, int devices, int microbatches, int chunks) {
    int64_t count = (int64_t)devices * microbatches * chunks * 3, i = 0;
    *made = (figure_example){.trace = {.pass_count = count,
                                       .pass_device = calloc((size_t)count, sizeof(int32_t)),
                                       .pass = calloc((size_t)count, sizeof(pc_pass)),
                                       .pass_start_ps = calloc((size_t)count, sizeof(pc_time)),
                                       .pass_end_ps = calloc((size_t)count, sizeof(pc_time))}};
    for (int d = 0; d < devices; d++) {
        for (int k = 0; k < 3 * chunks * microbatches; k++, i++) {
            made->trace.pass_device[i] = d;
            made->trace.pass[i] = (pc_pass){.microbatch = k / (3 * chunks),
                                            .chunk = (int16_t)(k / 3 % chunks),
                                            .kind = (int16_t)(PC_PASS_F + k % 3)};
            made->trace.pass_start_ps[i] = (d + k) * PC_PICOSECONDS_PER_SECOND;
            made->trace.pass_end_ps[i] = (d + k + 1) * PC_PICOSECONDS_PER_SECOND;
        }
    }
    made->timeline = (pc_timeline){.title = "example",
                                   .subtitle = "of a timeline",
                                   .time_unit = "s",
                                   .time_unit_ps = (double)PC_PICOSECONDS_PER_SECOND,
                                   .devices = devices,
                                   .chunks = chunks,
                                   .trace = &made->trace};
}

void add_levels(figure_example *made) {
    pc_replay_trace *trace = &made->trace;
    trace->level_device = calloc((size_t)trace->pass_count, sizeof(int32_t));
    trace->level_time_ps = calloc((size_t)trace->pass_count, sizeof(pc_time));
    trace->level_bytes = calloc((size_t)trace->pass_count, sizeof(int64_t));
    for (int64_t i = 0; i < trace->pass_count; i++) {
        int kind = trace->pass[i].kind;
        if (kind == PC_PASS_B) continue;
        int64_t row = trace->level_count++;
        trace->level_device[row] = trace->pass_device[i];
        trace->level_time_ps[row] = kind == PC_PASS_F ? trace->pass_start_ps[i] : trace->pass_end_ps[i];
        trace->level_bytes[row] = kind == PC_PASS_F ? INT64_C(1) << 30 : 0;
    }
    made->timeline.memory = true;
    made->timeline.memory_unit_bytes = 0x1p30;
    made->timeline.memory_unit = "GiB";
}

void add_block(figure_example *made) {
    int p = made->timeline.devices, v = made->timeline.chunks;
    size_t count = (size_t)p * (size_t)v * PC_PASS_KINDS;
    pc_block *block = &made->block;
    *block = (pc_block){.devices = p,
                        .chunks = v,
                        .microbatches = 1,
                        .interval = 3 * v,
                        .start = malloc(count * sizeof *block->start),
                        .duration = calloc(PC_PASS_KINDS, sizeof *block->duration)};
    for (size_t i = 0; i < count; i++) block->start[i] = PC_TIME_NOT_GIVEN;
    for (int d = 0; d < p; d++)
        for (int c = 0; c < v; c++)
            for (int kind = PC_PASS_F; kind <= PC_PASS_W; kind++) {
                int64_t start = kind == PC_PASS_F ? d : p + 2 * (p - 1 - d) + (kind == PC_PASS_W);
                block->start[pc_block_index(block, 0, d, c, kind)] = start + (int64_t)c * 3 * p;
                block->duration[kind] = 1;
            }
    made->timeline.block = block;
}

void free_example(figure_example *made) {
    free(made->trace.pass_device);
    free(made->trace.pass);
    free(made->trace.pass_start_ps);
    free(made->trace.pass_end_ps);
    free(made->trace.level_device);
    free(made->trace.level_time_ps);
    free(made->trace.level_bytes);
    free(made->block.start);
    free(made->block.duration);
}

/* --- drawing --- */

void need_gnuplot(void) {
    if (system("gnuplot --version >/dev/null 2>&1") == 0) return;
    print_message("gnuplot is not installed\n");
    skip();
}

void assert_drawn(const pc_timeline *timeline, const char *path) {
    pc_error error = {0};
    if (pc_figure_timeline(timeline, path, &error) != PC_OK) fail_msg("%s", error.message);
}

pc_code draw_with_programs_of(const char *path, const pc_timeline *timeline, const char *svg, pc_error *error) {
    char *before = strdup(getenv("PATH"));
    setenv("PATH", path, 1);
    pc_code code = pc_figure_timeline(timeline, svg, error);
    setenv("PATH", before, 1);
    free(before);
    return code;
}

char *script_of(const folder *at, const pc_timeline *timeline) {
    char program[128];
    pc_error error = {0};
    size_t size;
    snprintf(program, sizeof program, "%s/gnuplot", at->path);
    write_file(program, "#!/bin/sh\nexec /bin/cat\n"); /* the script is the picture */
    assert_int_equal(chmod(program, 0755), 0);
    if (draw_with_programs_of(at->path, timeline, at->file, &error) != PC_OK) fail_msg("%s", error.message);
    assert_int_equal(unlink(program), 0);
    return read_text(at->file, &size);
}
