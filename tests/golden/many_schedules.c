/* Schedules in one process, for tests that want many: reads a request a line from standard input,
 *     NAME P M F B W COMM RELEASE_B LIMIT
 * in the units of `pipecast schedule`, LIMIT 0 for none, and prints an answer a line,
 *     SPAN BUBBLE_RATE_SPAN PEAK GENERATE_S
 * PEAK in microbatches of a stage. One thread. The first request that cannot be answered ends it, with a message. */
#include "bench/bench.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/unit_costs.h"

typedef struct job {
    pc_unit_costs units;
    pc_unit_shape shape;
    double limit, ticks;
    pc_costs costs;
    pc_schedule schedule;
    pc_replay replay;
    double generate_s;
} job;

static double microbatch_bytes(const job *j) {
    return (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(j->shape.placement, j->shape.chunks);
}

static pc_code answer(job *j, const pc_generator *generator, pc_error *error) {
    pc_generate_request wanted = {.devices = j->shape.devices,
                                  .microbatches = j->shape.microbatches,
                                  .chunks = j->shape.chunks,
                                  .costs = &j->costs,
                                  .threads = 1};
    static int64_t limit_bytes[PC_DEVICES_MAX];
    j->ticks = pc_unit_ticks(&j->units, &j->shape);
    if (j->ticks == 0.0) return pc_error_set(error, PC_ERROR_INPUT, "times too far apart");
    pc_code code = pc_unit_costs_make(&j->units, &j->shape, j->ticks, &j->costs, error);
    if (code) return code;
    for (int d = 0; d < j->shape.devices; d++) limit_bytes[d] = (int64_t)(j->limit * microbatch_bytes(j));
    if (j->limit > 0) wanted.memory_limit.device_bytes = limit_bytes;
    double start = pc_now_s();
    code = pc_generate(generator, &wanted, &j->schedule, NULL, error);
    j->generate_s = pc_now_s() - start;
    return code ? code : pc_replay_run(&j->schedule, &j->costs, NULL, &j->replay, error);
}

static bool answer_line(const char *line, pc_error *error) {
    char name[64];
    int devices, microbatches;
    job j = {0};
    double *times = j.units.times;
    if (sscanf(line, "%63s %d %d %lf %lf %lf %lf %lf %lf", name, &devices, &microbatches, &times[0], &times[1],
               &times[2], &j.units.comm, &j.units.release_b, &j.limit) != 9)
        return pc_error_set(error, PC_ERROR_INPUT, "nine words expected") == PC_OK;
    const pc_generator *generator = pc_generator_find(name);
    if (!generator) return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule") == PC_OK;
    j.shape = (pc_unit_shape){.devices = devices,
                              .microbatches = microbatches,
                              .chunks = generator->chunks_default,
                              .placement = generator->placement};
    pc_code code = answer(&j, generator, error);
    if (!code)
        printf("%.17g %.17g %.17g %.6f\n", (double)j.replay.span_ps / j.ticks, j.replay.bubble_rate_span,
               (double)j.replay.peak_bytes / microbatch_bytes(&j), j.generate_s);
    pc_replay_free(&j.replay);
    pc_schedule_free(&j.schedule);
    pc_costs_free(&j.costs);
    return !code;
}

int main(void) {
    char line[512];
    pc_error error = {0};
    while (fgets(line, sizeof line, stdin))
        if (!answer_line(line, &error)) {
            fprintf(stderr, "%s%s\n", line, error.message);
            return 2;
        }
    return fflush(stdout) || ferror(stdout) ? 3 : 0;
}
