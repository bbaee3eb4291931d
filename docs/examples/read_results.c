/* Prints the MFU of all runs of a results file, and the peak of activation memory of one run that kept its trace.
 *
 * cc read_results.c $(pkg-config --cflags --libs pipecast) -o read_results
 * ./read_results RESULTS.h5 RUN */
#include <pipecast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_runs(const pipecast_results *results) {
    int name = pipecast_results_find(results, "name"), mfu = pipecast_results_find(results, "mfu");
    printf("run, MFU [%s]\n", pipecast_results_column_unit(results, mfu));
    for (int64_t row = 0; row < pipecast_results_row_count(results); row++) {
        char text[128];
        pipecast_results_text(results, row, name, text, sizeof text);
        printf("%s, %.17g\n", text, pipecast_results_real(results, row, mfu)); /* nan: not defined */
    }
}

/* The row of the run of this number; -1 if there is none. */
static int64_t find_run(const pipecast_results *results, int64_t run) {
    int64_t row = pipecast_results_row_count(results) - 1;
    int column = pipecast_results_find(results, "run");
    while (row >= 0 && pipecast_results_integer(results, row, column) != run) row--;
    return row;
}

static void print_peak(const pipecast_replay *replay, const char *run) {
    int64_t peak = 0, count = pipecast_replay_levels(replay, NULL, NULL, NULL); /* how many there are, */
    int64_t *device = malloc((size_t)count * sizeof *device);
    double *time = malloc((size_t)count * sizeof *time), *level = malloc((size_t)count * sizeof *level);
    if (count > 0 && device && time && level) {
        pipecast_replay_levels(replay, device, time, level); /* and these: seconds and bytes */
        for (int64_t i = 1; i < count; i++)
            if (level[i] > level[peak]) peak = i;
        printf("peak of run %s: %.0f B on stage %" PRId64 " at %.0f ps\n", run, level[peak], device[peak],
               time[peak] * 1e12);
    }
    free(device);
    free(time);
    free(level);
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: read_results RESULTS.h5 RUN\n"), 2;
    pipecast_error error = {0};
    pipecast_results *results = NULL;
    pipecast_replay *replay = NULL;
    int code = pipecast_results_open(argv[1], &results, &error);
    if (!code) code = pipecast_results_replay(results, find_run(results, strtoll(argv[2], NULL, 10)), &replay, &error);
    if (!code) {
        print_runs(results);
        print_peak(replay, argv[2]);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    pipecast_replay_free(replay);
    pipecast_results_free(results);
    return code ? 1 : 0;
}
