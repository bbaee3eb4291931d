/* Makes a schedule, and says what it comes to if a transfer takes a tenth of an F: span and bubble, and what memory
 * each device needs, in microbatches of a stage.
 *
 * cc judge_schedule.c $(pkg-config --cflags --libs pipecast) -o judge_schedule
 * ./judge_schedule zb-h1 8 24 */
#include <pipecast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_replay(const pipecast_replay *replay) {
    int64_t devices = pipecast_replay_devices(replay, NULL, NULL, NULL, NULL); /* how many there are, */
    double *peak = malloc((size_t)devices * sizeof *peak);
    printf("span %g, bubble rate %.4f, peak", pipecast_replay_number(replay, PIPECAST_SPAN),
           pipecast_replay_number(replay, PIPECAST_BUBBLE_RATE_SPAN));
    if (peak) pipecast_replay_devices(replay, NULL, NULL, NULL, peak); /* and of each its peak */
    for (int64_t d = 0; peak && d < devices; d++) printf(" %g", peak[d]);
    printf("\n");
    free(peak);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: judge_schedule NAME DEVICES MICROBATCHES\n"), 2;
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    pipecast_replay *replay = NULL;
    pipecast_costs costs = PIPECAST_COSTS; /* F, B and W of 1 */
    costs.transfer = 0.1;
    int code = pipecast_schedule_generate(argv[1], strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10), 0, &costs,
                                          NULL, NULL, &schedule, &error);
    if (!code) code = pipecast_schedule_replay(schedule, &costs, &replay, &error);
    if (!code)
        print_replay(replay);
    else
        fprintf(stderr, "%s\n", error.message);
    pipecast_replay_free(replay);
    pipecast_schedule_free(schedule);
    return code ? 1 : 0;
}
