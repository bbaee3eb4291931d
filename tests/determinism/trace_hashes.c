/* The results of 200 scenarios, to the last bit: `trace_hashes THREADS` prints a line each, `trace_hashes THREADS FILE`
 * compares with the lines of a file. tests/data/trace_hashes.txt has those of all builds and any number of threads.
 *
 * Numbers are written as C writes a double in hexadecimal, so that nothing is rounded. Noise is drawn by logarithms and
 * exponentials, whose last bit is the mathematics library's own. The first line of the file says what these gave where
 * it was made. If they give something else, the lines of scenarios with noise are not compared.
 *
 * A change that is to change results writes the file anew: trace_hashes 1 > tests/data/trace_hashes.txt. */
#include "tests/support.h"

#include "engine/parallel.h"
#include "results/columns.h"
#include "results/row.h"
#include "scenarios/plan_scenario.h"
#include "scenarios/scenario.h"
#include "storage/sealed.h"
#include "tests/determinism/scenarios.h"

#include <inttypes.h>
#include <math.h>

enum { LINE_SIZE = 1200, THREADS_MAX = 64 };

typedef struct answers {
    int threads, count; /* of scenarios: the first so many, of which ten have every kind */
    drawn_scenario scenario[SCENARIOS];
    char line[SCENARIOS][LINE_SIZE];
} answers;

/* ---- sums of many numbers ---- */

typedef uint64_t digest;

/* The signs of what is no number are nobody's. */
static digest add_real(digest sum, double value) {
    double told = isnan(value) ? 0.0 : value;
    return pc_sealed_hash(pc_sealed_hash(sum, isnan(value) ? "n" : "r", 1), &told, sizeof told);
}

static digest add_integer(digest sum, int64_t value) {
    return pc_sealed_hash(sum, &value, sizeof value);
}

/* What noise is made with, at arguments all over where it is used. */
static digest sum_of_library(void) {
    digest sum = PC_SEALED_HASH_START;
    test_random random = {5};
    for (int i = 0; i < 20000; i++) {
        double x = test_draw_unit(&random);
        sum = add_real(add_real(add_real(sum, log(x)), log1p(-x)), exp(8 * x - 4));
    }
    return sum;
}

/* ---- runs ---- */

/* What comes of scenarios/intervals.csv changes with that file, not with the machine that works it out;
 * test_intervals.c has it. */
static bool is_learned(const pc_column *column) {
    static const char *const names[] = {
        "iteration_s_low", "iteration_s_high", "memory_gib_low", "memory_gib_high", "kind",
        "iteration_basis", "memory_basis"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(column->field.name, names[i]) == 0) return true;
    return false;
}

static digest sum_of_row(const pc_run_row *row) {
    digest sum = PC_SEALED_HASH_START;
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        char text[PC_COLUMN_TEXT_SIZE] = "";
        if (is_learned(&columns[i])) continue;
        if (columns[i].field.type == PC_FIELD_NUMBER)
            sum = add_real(sum, pc_column_real(&columns[i], row));
        else if (columns[i].field.type == PC_FIELD_INT64)
            sum = add_integer(sum, pc_column_integer(&columns[i], row));
        else
            pc_column_text(&columns[i], row, text, sizeof text);
        sum = pc_sealed_hash(sum, text, strlen(text));
    }
    return sum;
}

/* A number that is not defined is "-". */
static const char *write_real(double value, char text[32]) {
    if (isnan(value)) return "-";
    snprintf(text, 32, "%a", value);
    return text;
}

static void write_run(const pc_run_row *row, const char *start, char *line) {
    char text[4][32], status[32];
    pc_column_text(pc_column_find("status"), row, status, sizeof status);
    snprintf(line, LINE_SIZE, "%s %s hash %016" PRIx64 " iteration %s bubble %s memory %s p95 %s all %016" PRIx64,
             start, status, row->trace_hash, write_real(row->iteration_s, text[0]),
             write_real(row->bubble_rate_span, text[1]),
             write_real(isnan(row->memory_gib_max) ? row->activation_gib_max : row->memory_gib_max, text[2]),
             write_real(row->iteration_p95_s, text[3]), sum_of_row(row));
}

static pc_code answer_run(const answers *all, const char *const *sets, int set_count, const char *start, char *line,
                          pc_error *error) {
    pc_scenario *scenario;
    pc_run_spec spec;
    pc_run_labels labels;
    pc_run_row row;
    pc_run_detail detail = {0};
    pc_code code = pc_scenario_load(NULL, sets, set_count, &scenario, error);
    if (code) return code;
    if ((code = pc_scenario_run_spec(scenario, 0, &spec, &labels, error)) == PC_OK) {
        spec.iteration.threads = all->threads;
        if ((code = pc_run_row_make(&spec, &labels, &row, &detail, error)) == PC_OK) write_run(&row, start, line);
        if (!code) pc_run_detail_free(&detail);
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
    return code;
}

/* ---- plans ---- */

static digest sum_of_answer(const pc_plan_answer *answer) {
    digest sum = PC_SEALED_HASH_START;
    for (int64_t i = 0; i < answer->count; i++) {
        const pc_plan_found *found = &answer->found[i];
        sum = add_integer(add_integer(add_integer(sum, found->number), found->memory_bytes), found->memory_limits);
        sum = add_real(add_real(add_real(sum, found->iteration_s), found->cost), found->bound_s);
        sum = add_real(add_real(add_real(sum, found->mfu), found->exposed.bubble), found->exposed.dp);
    }
    const pc_plan_log *log = &answer->log;
    sum = add_integer(add_integer(add_integer(sum, log->points), log->broken_rule), log->over_memory);
    return add_real(add_integer(add_integer(sum, log->too_slow), log->simulated), log->mean_bound);
}

static void write_plan(const pc_plan_answer *answer, const char *start, char *line) {
    char text[2][32];
    const pc_plan_found *best = answer->count > 0 ? &answer->found[0] : NULL;
    snprintf(line, LINE_SIZE,
             "%s %" PRId64 " plans of %" PRId64 " best %" PRId64 " iteration %s cost %s all %016" PRIx64, start,
             answer->count, answer->log.points, best ? best->number : -1,
             write_real(best ? best->iteration_s : NAN, text[0]), write_real(best ? best->cost : NAN, text[1]),
             sum_of_answer(answer));
}

static pc_code answer_plan(const answers *all, const char *const *sets, int set_count, const char *start, char *line,
                           pc_error *error) {
    pc_plan_scenario *scenario;
    pc_plan_answer answer;
    pc_code code = pc_plan_scenario_load(NULL, sets, set_count, &scenario, error);
    if (code) return code;
    pc_plan_request request = pc_plan_scenario_request(scenario);
    request.threads = all->threads;
    if ((code = pc_plan_run(pc_plan_scenario_space(scenario), &request, &answer, error)) == PC_OK) {
        write_plan(&answer, start, line);
        pc_plan_answer_free(&answer);
    }
    pc_plan_scenario_free(scenario);
    return code;
}

/* ---- all of them ---- */

static void answer(void *context, int worker, int64_t index) {
    (void)worker;
    answers *all = context;
    drawn_scenario *drawn = &all->scenario[index];
    char start[64];
    const char *sets[SCENARIO_SETS_MAX];
    pc_error error = {0};
    *drawn = draw_scenario((int)index);
    for (int i = 0; i < drawn->set_count; i++) sets[i] = drawn->set[i];
    snprintf(start, sizeof start, "%03d %s", (int)index, drawn->kind);
    pc_code code =
        (drawn->is_plan ? answer_plan : answer_run)(all, sets, drawn->set_count, start, all->line[index], &error);
    if (code) snprintf(all->line[index], LINE_SIZE, "%s fault %s", start, error.message);
}

static void print_sets(const drawn_scenario *drawn) {
    for (int i = 0; i < drawn->set_count; i++) fprintf(stderr, "    --set '%s'\n", drawn->set[i]);
}

/* Reads a line without its end. */
static bool read_line(FILE *file, char line[LINE_SIZE]) {
    if (!fgets(line, LINE_SIZE, file)) return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static int compare(const answers *all, FILE *file) {
    char line[LINE_SIZE], library[LINE_SIZE];
    int differ = 0, skipped = 0;
    snprintf(library, sizeof library, "library %016" PRIx64, sum_of_library());
    if (!read_line(file, line)) line[0] = '\0';
    bool is_same_library = strcmp(line, library) == 0;
    for (int i = 0; i < SCENARIOS; i++) {
        if (!read_line(file, line)) line[0] = '\0';
        if (i >= all->count) continue;
        bool is_skipped = all->scenario[i].draws_noise && !is_same_library;
        skipped += is_skipped;
        if (is_skipped || strcmp(line, all->line[i]) == 0) continue;
        differ++;
        fprintf(stderr, "expected %s\n     got %s\n", line, all->line[i]);
        print_sets(&all->scenario[i]);
    }
    printf("%d scenarios, %d threads: %d equal, %d not, %d not compared for another mathematics library\n", all->count,
           all->threads, all->count - differ - skipped, differ, skipped);
    test_count("determinism.hashes", all->count - differ - skipped);
    return differ > 0 || read_line(file, line);
}

static void print(const answers *all) {
    printf("library %016" PRIx64 "\n", sum_of_library());
    for (int i = 0; i < SCENARIOS; i++) puts(all->line[i]);
}

int main(int argc, char **argv) {
    static answers all;
    all.threads = argc > 1 ? atoi(argv[1]) : 0;
    if (argc < 2 || argc > 3 || all.threads < 1 || all.threads > THREADS_MAX) {
        fprintf(stderr, "usage: trace_hashes THREADS [FILE]\n");
        return 2;
    }
    FILE *file = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (argc == 3 && !file) {
        fprintf(stderr, "%s: cannot be read\n", argv[2]);
        return 2;
    }
    all.count = file && test_cases(100, SCENARIOS) < SCENARIOS ? (int)test_cases(100, SCENARIOS) : SCENARIOS;
    pc_parallel_run(all.threads, all.count, answer, &all);
    if (!file) {
        print(&all);
        return 0;
    }
    int status = compare(&all, file);
    fclose(file);
    return status;
}
