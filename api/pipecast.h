/* pipecast.h: the library: forecasts of pipeline-parallel training by simulation.
 *
 *     cc program.c $(pkg-config --cflags --libs pipecast)
 *
 * Names. Every function and type begins with `pipecast_`, every constant with `PIPECAST_`; only the version is
 * PC_VERSION and pc_version(). The library keeps `pc_` for itself and shows none of it.
 *
 * Handles. pipecast_scenario, pipecast_sweep, pipecast_plan, pipecast_results, pipecast_schedule, pipecast_replay,
 * pipecast_score and pipecast_profile are opaque. A function that makes one gives it to the caller, who frees it with
 * the function of that name; freeing NULL does nothing. A text or number that a function returns belongs to the handle
 * that it came from and lives as long. A function writes its outputs only if it succeeds. Pointers must not be NULL
 * unless it says so here.
 *
 * Errors. A function that can fail returns 0 (PIPECAST_OK) or one of the codes below, and takes a `pipecast_error *`
 * last, which may be NULL; if it fails it writes there what was wrong and where. The library never prints, never exits
 * and never aborts over bad input.
 *
 * Threads. There is no state that two handles share: calls on different handles may run at the same time. Calls that
 * take a handle as `const` may run at the same time on one handle; any other call must be alone with it. HDF5, which
 * reads and writes results and profiles, is not made for threads. The library lets one thread at a time use it, so
 * nobody needs to care, unless the program calls the same HDF5 itself. Such a program must not do so while a call here
 * opens or writes such a file. Simulations do not wait for that.
 *
 * Units are SI: seconds, bytes, fractions of one. Numbers that are not defined are NaN, whole numbers -1, texts "".
 * Arrays have one dimension. The language of numbers in the program's locale changes nothing.
 *
 * docs/library.md shows it at work; docs/examples has whole programs.
 */
#ifndef PIPECAST_H
#define PIPECAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PC_PUBLIC __attribute__((visibility("default")))
#else
#define PC_PUBLIC
#endif

/* ---- version ---- */

/* Of this header, and as one number for `#if`: 10000 * major + 100 * minor + patch. Before 1.0.0 a new minor version
 * may change what is here; after that only a new major version. The library's soname says the same. */
#define PC_VERSION              "0.1.0"
#define PIPECAST_VERSION_NUMBER 100

/* Of the library that the program runs with: "0.1.0". Static storage.
 *
 *     if (strcmp(pc_version(), PC_VERSION) != 0) puts("built with another version");
 */
PC_PUBLIC const char *pc_version(void);

/* ---- errors ---- */

/* What a function returns that can fail. */
typedef enum pipecast_code {
    PIPECAST_OK = 0,
    PIPECAST_ERROR_INPUT = 1,     /* what the caller gave is wrong: a file, a key, a value, a combination */
    PIPECAST_ERROR_NO_MEMORY = 2, /* the allocator gave nothing */
    PIPECAST_ERROR_IO = 3,        /* the machine's fault: disk, pipe */
    PIPECAST_ERROR_STOPPED = 4    /* the caller's own `stop` said so */
} pipecast_code;

/* What was wrong, and where, as far as that is known; the caller's. It never changes its size.
 *
 *     pipecast_error error = {0};
 *     if (pipecast_results_open("results.h5", &results, &error)) fprintf(stderr, "%s\n", error.message);
 */
typedef struct pipecast_error {
    int code;           /* as returned */
    int reserved_code;  /* 0 */
    int64_t line;       /* of `file`, from 1; 0: none */
    char file[256];     /* or "--set KEY=VALUE" for an override; "": none */
    char key[256];      /* "setting.microbatches"; "": none */
    char message[1024]; /* one line without its end, place and all: "a.yaml:3: setting.tp: 0; expected ..." */
    char expected[256]; /* what was expected, cut to that: "1 to 64"; "": no more can be said */
    char reserved[240];
} pipecast_error;

/* ---- scenarios ---- */

/* A scenario: settings and what is swept, as a list of runs (docs/scenario-format.md). */
typedef struct pipecast_scenario pipecast_scenario;

/* Flags of functions that load. ALLOW_OUTSIDE: what a file names may lie outside of its folder. */
enum { PIPECAST_ALLOW_OUTSIDE = 1 };

/* Loads a scenario and checks all of its runs. `path` is a file, and `text` NULL; or `text` is what stands in that
 * file, which then is not read and need not be there: names in the text count from the folder of `path`, and errors
 * call it so. Both NULL: an empty scenario, of which the overrides say everything. `sets` are `set_count` overrides,
 * KEY=VALUE with a key as in the file, of which the last one wins; NULL if there are none. `flags`: 0 or
 * PIPECAST_ALLOW_OUTSIDE. PIPECAST_ERROR_INPUT with file, line and key.
 *
 *     const char *sets[] = {"setting.microbatches=64"};
 *     pipecast_scenario_load("a.yaml", NULL, sets, 1, 0, &scenario, &error);
 */
PC_PUBLIC int pipecast_scenario_load(const char *path, const char *text, const char *const *sets, size_t set_count,
                                     int flags, pipecast_scenario **scenario, pipecast_error *error);

/* Frees it. Sweeps that have it must be freed before; their results may stay.
 *
 *     pipecast_scenario_free(scenario);
 */
PC_PUBLIC void pipecast_scenario_free(pipecast_scenario *scenario);

/* Its name: "zero_bubble_table5".
 *
 *     puts(pipecast_scenario_name(scenario));
 */
PC_PUBLIC const char *pipecast_scenario_name(const pipecast_scenario *scenario);

/* How many runs it has.
 *
 *     int64_t runs = pipecast_scenario_run_count(scenario);
 */
PC_PUBLIC int64_t pipecast_scenario_run_count(const pipecast_scenario *scenario);

/* The name of run `run` (0 ..) into name[0 .. size-1], cut to that with its zero; no name is longer than 127 bytes. The
 * same name stands in the column `name` of its results. PIPECAST_ERROR_INPUT if there is no such run.
 *
 *     char name[128];
 *     pipecast_scenario_run_name(scenario, 0, name, sizeof name, NULL);
 */
PC_PUBLIC int pipecast_scenario_run_name(const pipecast_scenario *scenario, int64_t run, char *name, size_t size,
                                         pipecast_error *error);

/* ---- sweeps ---- */

/* The runs of some scenarios, to be done. */
typedef struct pipecast_sweep pipecast_sweep;

/* A table: what runs came to, the plans that were found, or a list. */
typedef struct pipecast_results pipecast_results;

/* Whoever looks on. Only one of `progress` and `warn` is called at a time, from any thread; `stop` may be called by
 * several threads at once. They may call the library, but nothing on the handle that is at work. */
typedef void pipecast_progress(void *context, int64_t done, int64_t to_do);
typedef int pipecast_stop(void *context);
typedef void pipecast_warn(void *context, const char *text);

/* A sweep of `count` scenarios, at least one; their runs in this order are its rows. The scenarios are borrowed until
 * it is freed. By default: no file, a thread for every core, all runs.
 *
 *     const pipecast_scenario *list[] = {scenario};
 *     pipecast_sweep_create(list, 1, &sweep, &error);
 */
PC_PUBLIC int pipecast_sweep_create(const pipecast_scenario *const *scenarios, size_t count, pipecast_sweep **sweep,
                                    pipecast_error *error);

/* Frees it; NULL is fine. What it keeps on the disk stays.
 *
 *     pipecast_sweep_free(sweep);
 */
PC_PUBLIC void pipecast_sweep_free(pipecast_sweep *sweep);

/* How many threads do the runs; 0: one for every core. Results do not depend on it. PIPECAST_ERROR_INPUT for less than
 * 0 or more than 1024.
 *
 *     pipecast_sweep_set_threads(sweep, 4, NULL);
 */
PC_PUBLIC int pipecast_sweep_set_threads(pipecast_sweep *sweep, int threads, pipecast_error *error);

/* Keeps the results in an HDF5 file (docs/results-format.md); NULL: in none, which is the default. Runs whose results
 * stand there already, or in the journal beside it that a stopped or killed sweep leaves, are not done again, unless
 * `is_fresh` is not 0. The path is copied.
 *
 *     pipecast_sweep_set_output(sweep, "results.h5", 0, &error);
 */
PC_PUBLIC int pipecast_sweep_set_output(pipecast_sweep *sweep, const char *path, int is_fresh, pipecast_error *error);

/* Only share number `shard`, from 1, of `shard_count` equal shares. PIPECAST_ERROR_INPUT if there is none of that
 * number.
 *
 *     pipecast_sweep_set_shard(sweep, 1, 4, NULL);
 */
PC_PUBLIC int pipecast_sweep_set_shard(pipecast_sweep *sweep, int64_t shard, int64_t shard_count,
                                       pipecast_error *error);

/* Says who looks on; each may be NULL. `progress` is called when the first run begins and after each that is done;
 * `stop` before every run, and if it gives anything but 0 no other run begins; `warn` with a line about what the user
 * may not expect.
 *
 *     pipecast_sweep_watch(sweep, show, NULL, NULL, &bar);
 */
PC_PUBLIC void pipecast_sweep_watch(pipecast_sweep *sweep, pipecast_progress *progress, pipecast_stop *stop,
                                    pipecast_warn *warn, void *context);

/* Does the runs, and gives a row for each: the columns of `pipecast run --format csv`. A run that does not fit into
 * memory or cannot be is no error but a row that says so in its column `status`. Rows stay in memory, 3 kB each;
 * so do the traces that scenarios ask for (`trace: true`), unless there is a file. PIPECAST_ERROR_INPUT: a profile or
 * the output is not as it must be; PIPECAST_ERROR_STOPPED: `stop` said so, and with an output the same call goes on
 * from there.
 *
 *     if (pipecast_sweep_run(sweep, &results, &error)) fprintf(stderr, "%s\n", error.message);
 */
PC_PUBLIC int pipecast_sweep_run(pipecast_sweep *sweep, pipecast_results **results, pipecast_error *error);

/* A forecast in one call: loads a scenario of overrides alone and does its runs, by this thread. Arguments are those of
 * pipecast_scenario_load; `say`, which may be NULL, is told what the user may not expect.
 *
 *     const char *sets[] = {"setting.model.from=llama3-8b", "setting.machine=dgx-h100", "setting.gpus=64"};
 *     pipecast_run(sets, 3, 0, NULL, NULL, &results, &error);
 */
PC_PUBLIC int pipecast_run(const char *const *sets, size_t set_count, int flags, pipecast_warn *say, void *context,
                           pipecast_results **results, pipecast_error *error);

/* Makes one results file of those of all `count` shards of a sweep, byte for byte that of the sweep without shards. If
 * runs are missing, `warn`, which may be NULL, is told. PIPECAST_ERROR_INPUT if they are not shards of one sweep.
 *
 *     const char *shards[] = {"1.h5", "2.h5"};
 *     pipecast_sweep_merge("all.h5", shards, 2, NULL, NULL, &error);
 */
PC_PUBLIC int pipecast_sweep_merge(const char *output, const char *const *shards, size_t count, pipecast_warn *warn,
                                   void *context, pipecast_error *error);

/* ---- configurations of other programs ---- */

/* What another program was told, as a scenario (docs/import.md). */
typedef struct pipecast_imported pipecast_imported;

/* Reads the file at `path`. format: "hf", a config.json of Hugging Face or the folder that has one; "megatron",
 * Megatron-LM's arguments as a launch script, a log's block or YAML; "nemo", a recipe of NeMo or Megatron-Bridge as
 * YAML or JSON; "deepspeed", its configuration, JSON. `say`, which may be NULL, is told what was assumed, is not
 * modelled and is not known, a sentence each. To be freed. PIPECAST_ERROR_INPUT with file, line and key.
 *
 *     pipecast_import_file("megatron", "pretrain.sh", NULL, NULL, &imported, &error);
 *     pipecast_scenario_load("pretrain.sh", pipecast_imported_text(imported), sets, count, 0, &scenario, &error);
 */
PC_PUBLIC int pipecast_import_file(const char *format, const char *path, pipecast_warn *say, void *context,
                                   pipecast_imported **imported, pipecast_error *error);

/* Frees it, its text too.
 *
 *     pipecast_imported_free(imported);
 */
PC_PUBLIC void pipecast_imported_free(pipecast_imported *imported);

/* The scenario: YAML, whose comments name the keys that values are from. Of "megatron" and "nemo" it can be run as it
 * is, or with what the file does not say, such as a machine, as overrides.
 *
 *     puts(pipecast_imported_text(imported));
 */
PC_PUBLIC const char *pipecast_imported_text(const pipecast_imported *imported);

/* ---- results ---- */

/* The types of columns. */
typedef enum pipecast_type { PIPECAST_TEXT = 0, PIPECAST_INTEGER = 1, PIPECAST_REAL = 2 } pipecast_type;

/* Opens a results file. The file stays open until the results are freed. PIPECAST_ERROR_INPUT if there is none, if it
 * is something else, or of a newer layout.
 *
 *     pipecast_results_open("results.h5", &results, &error);
 */
PC_PUBLIC int pipecast_results_open(const char *path, pipecast_results **results, pipecast_error *error);

/* Frees it; NULL is fine.
 *
 *     pipecast_results_free(results);
 */
PC_PUBLIC void pipecast_results_free(pipecast_results *results);

/* How many rows and columns it has. Rows count from 0, columns too.
 *
 *     for (int64_t row = 0; row < pipecast_results_row_count(results); row++) ...
 */
PC_PUBLIC int64_t pipecast_results_row_count(const pipecast_results *results);
PC_PUBLIC int pipecast_results_column_count(const pipecast_results *results);

/* The column of this name; -1 if there is none.
 *
 *     int mfu = pipecast_results_find(results, "mfu");
 */
PC_PUBLIC int pipecast_results_find(const pipecast_results *results, const char *name);

/* What a column is: its name; its type, a pipecast_type; its unit ("s", "GiB", "1" for a fraction or a count, "" for
 * text); and what it means, in words. Static storage. If there is no such column: NULL, and -1 for the type.
 *
 *     printf("%s [%s]\n", pipecast_results_column_name(results, 0), pipecast_results_column_unit(results, 0));
 */
PC_PUBLIC const char *pipecast_results_column_name(const pipecast_results *results, int column);
PC_PUBLIC int pipecast_results_column_type(const pipecast_results *results, int column);
PC_PUBLIC const char *pipecast_results_column_unit(const pipecast_results *results, int column);
PC_PUBLIC const char *pipecast_results_column_words(const pipecast_results *results, int column);

/* A number of a column of any type but text; NaN if it is not defined, is a text, or if there is no such row or column.
 *
 *     double mfu = pipecast_results_real(results, row, pipecast_results_find(results, "mfu"));
 */
PC_PUBLIC double pipecast_results_real(const pipecast_results *results, int64_t row, int column);

/* A whole number of a column of that type; -1 if it is not defined, of another type, or not there.
 *
 *     int64_t tp = pipecast_results_integer(results, row, pipecast_results_find(results, "tp"));
 */
PC_PUBLIC int64_t pipecast_results_integer(const pipecast_results *results, int64_t row, int column);

/* A value of any column as text, as CSV has it, into text[0 .. size-1], cut to that with its zero; "" if it is not
 * defined or not there. Returns how long it is without its zero, however large `text` is; it is never longer than 511.
 *
 *     char status[64];
 *     pipecast_results_text(results, row, pipecast_results_find(results, "status"), status, sizeof status);
 */
PC_PUBLIC size_t pipecast_results_text(const pipecast_results *results, int64_t row, int column, char *text,
                                       size_t size);

/* A whole column into the caller's array, one number a row, each as pipecast_results_real or pipecast_results_integer
 * gives it. PIPECAST_ERROR_INPUT if there is no such column, or not of that type.
 *
 *     double *mfu = malloc(sizeof *mfu * (size_t)pipecast_results_row_count(results));
 *     pipecast_results_reals(results, pipecast_results_find(results, "mfu"), mfu, &error);
 */
PC_PUBLIC int pipecast_results_reals(const pipecast_results *results, int column, double *values,
                                     pipecast_error *error);
PC_PUBLIC int pipecast_results_integers(const pipecast_results *results, int column, int64_t *values,
                                        pipecast_error *error);

/* A whole column as texts, each as pipecast_results_text gives it and with its zero behind it, one behind the other
 * into text[0 .. size-1]. Returns the bytes that all of them take: where these are more than `size`, not all are there.
 * 0 if there is no such column. `text` may be NULL where `size` is 0.
 *
 *     size_t size = pipecast_results_texts(results, column, NULL, 0);
 */
PC_PUBLIC size_t pipecast_results_texts(const pipecast_results *results, int column, char *text, size_t size);

/* Draws a chart of runs by gnuplot, into a file that ends in .svg, .png or .pdf. The `count` options are KEY=VALUE. The
 * column x and those of y, at most four with commas between, must be there. The series and panels are a column, or
 * several with '+' between; style is points, lines or bars; published and dark are true or false. Texts are title,
 * x_label, and y_label once for each column. x_range and y_range are LOW:HIGH, LOW: or :HIGH, of y one for each column
 * with commas between; log is x, y or xy. PIPECAST_ERROR_INPUT if they are not as they must be, or the table is of
 * something else; PIPECAST_ERROR_IO if there is no gnuplot.
 *
 *     const char *options[] = {"x=gpus", "y=mfu", "series=schedule", "style=lines"};
 *     pipecast_results_draw(results, options, 4, "mfu.svg", &error);
 */
PC_PUBLIC int pipecast_results_draw(const pipecast_results *results, const char *const *options, size_t count,
                                    const char *path, pipecast_error *error);

/* When each pass of a row's run ran, if its scenario asked for that with `trace: true`; in seconds and bytes.
 * PIPECAST_ERROR_INPUT if the run kept none.
 *
 *     pipecast_results_replay(results, 0, &replay, &error);
 */
typedef struct pipecast_replay pipecast_replay;
PC_PUBLIC int pipecast_results_replay(const pipecast_results *results, int64_t row, pipecast_replay **replay,
                                      pipecast_error *error);

/* ---- schedules ---- */

/* For every device (stage) of a pipeline the order of its passes. A device holds `chunks` parts of the model. */
typedef struct pipecast_schedule pipecast_schedule;

/* Passes: forward; backward for the input; backward for the weights; both in one; recomputation; and of
 * an output layer that all devices share logits, and gradients. */
typedef enum pipecast_pass {
    PIPECAST_PASS_F = 0,
    PIPECAST_PASS_B = 1,
    PIPECAST_PASS_W = 2,
    PIPECAST_PASS_BW = 3,
    PIPECAST_PASS_R = 4,
    PIPECAST_PASS_S = 5,
    PIPECAST_PASS_T = 6
} pipecast_pass;

/* Which part of the model chunk c of device d of p is. LINEAR: d. INTERLEAVED: c p + d. V: the same for even c, and
 * c p + p - 1 - d for odd ones. BIDIRECTIONAL: two replicas of p parts; chunk 0 is part d of one, chunk 1 part p - 1 -
 * d of the other; even microbatches go through the first, odd ones through the second. SLICES: d, and slice c of each
 * microbatch, which is cut along its sequence. PIPECAST_SLICES_OF(k): k slices, of several parts a device; chunk c is
 * slice c % k in part (c / k) p + d. */
typedef enum pipecast_placement {
    PIPECAST_LINEAR = 0,
    PIPECAST_INTERLEAVED = 1,
    PIPECAST_V = 2,
    PIPECAST_BIDIRECTIONAL = 3,
    PIPECAST_SLICES = 4
} pipecast_placement;
#define PIPECAST_SLICES_OF(k) (PIPECAST_SLICES + 16 * (k))

/* What passes cost, for all devices alike: times in any one unit, in which results come back. It never changes its
 * size. Memory is counted in microbatches of a stage: the F of all its chunks together take 1, and give it back by the
 * end of W or BW. */
typedef struct pipecast_costs {
    double f, b, w;     /* times of one microbatch on one device, all of its chunks together; BW takes b + w, R f */
    double transfer;    /* time from one device to the next */
    double release_b;   /* the part of what F took that B gives back, 0 to 1; W gives the rest */
    double keep;        /* the part that an F keeps whose pass is recomputed, 0 to 1 */
    double reserved[6]; /* 0 */
} pipecast_costs;

/* F, B and W of 1, nothing else; of recomputed layers their input is kept (2 of 34 bytes an element).
 *
 *     pipecast_costs costs = PIPECAST_COSTS;
 *     costs.b = 1.5;
 */
#define PIPECAST_COSTS                                                                                                 \
    {                                                                                                                  \
        1.0, 1.0, 1.0, 0.0, 0.0, 2.0 / 34.0, {                                                                         \
            0.0                                                                                                        \
        }                                                                                                              \
    }

/* Makes the schedule of this name (pipecast_list) for `devices`, `microbatches` and `chunks`, 0 for the schedule's own
 * number of chunks. A name with a '/', or that ends in ".yaml", is the file of a building block (docs/schedules.md); of
 * one that is left on its grid, the schedule is the order alone. Schedules that are searched for look at `costs` (NULL:
 * PIPECAST_COSTS), at `memory_limit`, a number of microbatches for each device (INFINITY: none; NULL: none at all), and
 * at `making`: what the order is made for, as the key `making` of a setting ("costs", "equal", ...; NULL: "costs").
 * PIPECAST_ERROR_INPUT if there is no such schedule or file, if it cannot have this shape, or if none keeps the limit.
 *
 *     pipecast_schedule_generate("zb-h1", 8, 24, 0, &costs, NULL, NULL, &schedule, &error);
 */
PC_PUBLIC int pipecast_schedule_generate(const char *name, int64_t devices, int64_t microbatches, int64_t chunks,
                                         const pipecast_costs *costs, const double *memory_limit, const char *making,
                                         pipecast_schedule **schedule, pipecast_error *error);

/* Makes a schedule as `pipecast schedule` does, whose `--help` says what each option means. The `count` options are
 * KEY=VALUE, with these keys; of two with one key the last one holds:
 *
 *     devices microbatches chunks slices slice_times times vocab_times comm release_b keep memory_limit out_of_memory
 *     making goal improve robust jitter gpu_jitter link_jitter slow_factor slow_stage samples seed engine block
 *     block_steps
 *
 * `improve` is true or false; `times` are three numbers, a list of them, or a file of measured passes. `name` is that
 * of a schedule, "best", a file of PyTorch's runtime (.csv), or of a building block (.yaml); it is NULL beside
 * block=FILE. The schedule keeps its costs: for it, NULL stands for them in pipecast_schedule_replay and
 * pipecast_schedule_bound. PIPECAST_ERROR_INPUT if an option is not as it must be, if there is no such schedule, or if
 * it does not keep memory_limit.
 *
 *     const char *options[] = {"devices=8", "microbatches=24", "times=18.5,18.1,9.3", "improve=true"};
 *     pipecast_schedule_make("zb-h1", options, 4, &schedule, &error);
 */
PC_PUBLIC int pipecast_schedule_make(const char *name, const char *const *options, size_t count,
                                     pipecast_schedule **schedule, pipecast_error *error);

/* What `pipecast schedule --format` FORMAT prints of it: "table", "json", "text", "torch-csv" or "block". The schedule
 * owns the text. PIPECAST_ERROR_INPUT if there is no such format, it cannot be written so, or it is not of
 * pipecast_schedule_make.
 *
 *     const char *json;
 *     pipecast_schedule_report(schedule, "json", &json, &error);
 */
PC_PUBLIC int pipecast_schedule_report(pipecast_schedule *schedule, const char *format, const char **text,
                                       pipecast_error *error);

/* Makes one of the caller's orders: the passes of device d are `pass_count[d]` of the arrays, behind those of device
 * d - 1. kind: a pipecast_pass; chunk and microbatch from 0; placement: a pipecast_placement. Whether it can run,
 * pipecast_schedule_check says. PIPECAST_ERROR_INPUT for numbers out of range.
 *
 *     const int64_t count[] = {2}, kind[] = {PIPECAST_PASS_F, PIPECAST_PASS_BW}, zero[] = {0, 0};
 *     pipecast_schedule_create("mine", 1, 1, 1, PIPECAST_LINEAR, count, kind, zero, zero, &schedule, &error);
 */
PC_PUBLIC int pipecast_schedule_create(const char *name, int64_t devices, int64_t microbatches, int64_t chunks,
                                       int placement, const int64_t *pass_count, const int64_t *kind,
                                       const int64_t *chunk, const int64_t *microbatch, pipecast_schedule **schedule,
                                       pipecast_error *error);

/* Loads the CSV that PyTorch's pipelining runtime reads and writes, and checks it. PIPECAST_ERROR_INPUT with the line.
 *
 *     pipecast_schedule_load("schedule.csv", &schedule, &error);
 */
PC_PUBLIC int pipecast_schedule_load(const char *path, pipecast_schedule **schedule, pipecast_error *error);

/* Writes that CSV, in place of a file that may be there, whole or not at all. PIPECAST_ERROR_INPUT if the runtime does
 * not know such schedules: with recomputation, or bidirectional.
 *
 *     pipecast_schedule_write(schedule, "schedule.csv", &error);
 */
PC_PUBLIC int pipecast_schedule_write(const pipecast_schedule *schedule, const char *path, pipecast_error *error);

/* Frees it; NULL is fine.
 *
 *     pipecast_schedule_free(schedule);
 */
PC_PUBLIC void pipecast_schedule_free(pipecast_schedule *schedule);

/* Its name.
 *
 *     puts(pipecast_schedule_name(schedule));
 */
PC_PUBLIC const char *pipecast_schedule_name(const pipecast_schedule *schedule);

/* Its devices, microbatches, chunks, and pipecast_placement; each pointer may be NULL.
 *
 *     int64_t devices;
 *     pipecast_schedule_shape(schedule, &devices, NULL, NULL, NULL);
 */
PC_PUBLIC void pipecast_schedule_shape(const pipecast_schedule *schedule, int64_t *devices, int64_t *microbatches,
                                       int64_t *chunks, int *placement);

/* How many passes a device has, and these, in order, into the caller's arrays of so many; each may be NULL. 0 if there
 * is no such device.
 *
 *     int64_t count = pipecast_schedule_passes(schedule, 0, NULL, NULL, NULL);
 */
PC_PUBLIC int64_t pipecast_schedule_passes(const pipecast_schedule *schedule, int64_t device, int64_t *kind,
                                           int64_t *chunk, int64_t *microbatch);

/* Whether it can run: every pass once, every dependency met, no deadlock. PIPECAST_ERROR_INPUT with what is wrong.
 *
 *     if (pipecast_schedule_check(schedule, &error)) puts(error.message);
 */
PC_PUBLIC int pipecast_schedule_check(const pipecast_schedule *schedule, pipecast_error *error);

/* Runs it at these costs (NULL: PIPECAST_COSTS); times in their unit, memory in microbatches of a stage.
 * PIPECAST_ERROR_INPUT if it cannot run, or if costs are out of range or too far apart.
 *
 *     pipecast_schedule_replay(schedule, &costs, &replay, &error);
 */
PC_PUBLIC int pipecast_schedule_replay(const pipecast_schedule *schedule, const pipecast_costs *costs,
                                       pipecast_replay **replay, pipecast_error *error);

/* The least span that any schedule can have which has this one's shape and passes, takes these costs (NULL:
 * PIPECAST_COSTS) and holds no more memory than this one, in their unit; NaN where none is known. A schedule whose span
 * is the bound is as short as can be. PIPECAST_ERROR_INPUT as pipecast_schedule_replay.
 *
 *     pipecast_schedule_bound(schedule, &costs, &bound, &error);
 */
PC_PUBLIC int pipecast_schedule_bound(const pipecast_schedule *schedule, const pipecast_costs *costs, double *bound,
                                      pipecast_error *error);

/* ---- replays ---- */

/* What a replay comes to as a whole. SPAN: the longest over devices, from the first start to the last end. MAKESPAN:
 * from the beginning to the last end of all. Bubble rates: 1 - work / span, and the same over the makespan; work is
 * that of the busiest device. PEAK: the most activation memory on any device. */
typedef enum pipecast_number {
    PIPECAST_SPAN = 0,
    PIPECAST_MAKESPAN = 1,
    PIPECAST_BUBBLE_RATE_SPAN = 2,
    PIPECAST_BUBBLE_RATE_MAKESPAN = 3,
    PIPECAST_PEAK = 4
} pipecast_number;

/* Frees it; NULL is fine.
 *
 *     pipecast_replay_free(replay);
 */
PC_PUBLIC void pipecast_replay_free(pipecast_replay *replay);

/* One of the numbers above; NaN if there is no such number.
 *
 *     double bubble = pipecast_replay_number(replay, PIPECAST_BUBBLE_RATE_SPAN);
 */
PC_PUBLIC double pipecast_replay_number(const pipecast_replay *replay, int number);

/* How many devices it has, and of each the first start, the last end, the time spent in passes, and the most activation
 * memory held at once, into the caller's arrays of so many; each may be NULL.
 *
 *     double peak[8];
 *     if (pipecast_replay_devices(replay, NULL, NULL, NULL, NULL) <= 8)
 *         pipecast_replay_devices(replay, NULL, NULL, NULL, peak);
 */
PC_PUBLIC int64_t pipecast_replay_devices(const pipecast_replay *replay, double *start, double *end, double *busy,
                                          double *peak);

/* How many passes it has, and of each its device, kind (pipecast_pass), chunk, microbatch, start and end, device by
 * device in the schedule's order, into the caller's arrays of so many; each may be NULL.
 *
 *     int64_t count = pipecast_replay_passes(replay, NULL, NULL, NULL, NULL, NULL, NULL);
 *     double *end = malloc(sizeof *end * (size_t)count);
 *     pipecast_replay_passes(replay, NULL, NULL, NULL, NULL, NULL, end);
 */
PC_PUBLIC int64_t pipecast_replay_passes(const pipecast_replay *replay, int64_t *device, int64_t *kind, int64_t *chunk,
                                         int64_t *microbatch, double *start, double *end);

/* How often a device's activation memory changed, and of each change the device, when, and how much it then holds,
 * device by device in the order of time; arrays as above.
 *
 *     int64_t changes = pipecast_replay_levels(replay, NULL, NULL, NULL);
 */
PC_PUBLIC int64_t pipecast_replay_levels(const pipecast_replay *replay, int64_t *device, double *time, double *level);

/* How many transfers between devices there were, and of each where from and to, when it left and when it had arrived;
 * arrays as above.
 *
 *     int64_t transfers = pipecast_replay_transfers(replay, NULL, NULL, NULL, NULL);
 */
PC_PUBLIC int64_t pipecast_replay_transfers(const pipecast_replay *replay, int64_t *from, int64_t *to, double *start,
                                            double *end);

/* Draws it by gnuplot: the timeline, and the memory of each device below it, into a file that ends in .svg, .png or
 * .pdf. `title` may be NULL. PIPECAST_ERROR_INPUT if the path ends in something else, or there are too many passes;
 * PIPECAST_ERROR_IO if there is no gnuplot.
 *
 *     pipecast_replay_draw(replay, "zb-h1", "timeline.svg", &error);
 */
PC_PUBLIC int pipecast_replay_draw(const pipecast_replay *replay, const char *title, const char *path,
                                   pipecast_error *error);

/* The same as the `count` options say, KEY=VALUE: title, and dark (true or false). A part of it is time (LOW:HIGH, LOW:
 * or :HIGH), stages or microbatches (one, or first and last with ':' between). Times without a unit are seconds, of a
 * schedule alone its own.
 *
 *     const char *options[] = {"title=zb-h1", "stages=0:3", "dark=true"};
 *     pipecast_replay_draw_with(replay, options, 3, "part.svg", &error);
 */
PC_PUBLIC int pipecast_replay_draw_with(const pipecast_replay *replay, const char *const *options, size_t count,
                                        const char *path, pipecast_error *error);

/* ---- plans ---- */

/* A scenario as a search for the best way to train its model (docs/planner.md). */
typedef struct pipecast_plan pipecast_plan;

/* Flags of a search. ALL_VARIANTS: every plan of its own, not only the best of each cut. EXHAUSTIVE: simulate every
 * point, as a check of the search. And of what would change a plan. ANEW: also what the best plan would be then. */
enum { PIPECAST_ALL_VARIANTS = 1, PIPECAST_EXHAUSTIVE = 2, PIPECAST_ANEW = 4 };

/* Loads one; arguments as those of pipecast_scenario_load. Overrides may begin with `plan.` too.
 *
 *     const char *sets[] = {"setting.model.from=llama3-70b", "setting.machine=dgx-h100", "setting.gpus=512"};
 *     pipecast_plan_load(NULL, NULL, sets, 3, 0, &plan, &error);
 */
PC_PUBLIC int pipecast_plan_load(const char *path, const char *text, const char *const *sets, size_t set_count,
                                 int flags, pipecast_plan **plan, pipecast_error *error);

/* Frees it; NULL is fine. Its results may stay.
 *
 *     pipecast_plan_free(plan);
 */
PC_PUBLIC void pipecast_plan_free(pipecast_plan *plan);

/* Says who may stop the search, as in pipecast_sweep_watch; NULL: nobody. It then ends with PIPECAST_ERROR_STOPPED.
 *
 *     pipecast_plan_watch(plan, is_enough, &state);
 */
PC_PUBLIC void pipecast_plan_watch(pipecast_plan *plan, pipecast_stop *stop, void *context);

/* Searches, and gives a row for each plan, the best first: the columns of `pipecast plan --format csv` but `command`,
 * `part`, `what` and `factor`. No row: nothing fits. `threads` as in pipecast_sweep_set_threads; `progress`, which may
 * be NULL, counts plans and is called by this thread alone. PIPECAST_ERROR_INPUT if a profile is not as it must be or
 * the space has no point.
 *
 *     pipecast_plan_run(plan, 0, 0, NULL, NULL, &plans, &error);
 */
PC_PUBLIC int pipecast_plan_run(pipecast_plan *plan, int threads, int flags, pipecast_progress *progress, void *context,
                                pipecast_results **results, pipecast_error *error);

/* The overrides with which pipecast_scenario_load makes the run of a plan from the same scenario, beside those that the
 * plan was loaded with: number `number`, from 0, "setting.tp=8"; NULL behind the last.
 *
 *     for (int i = 0; pipecast_plan_set(plans, 0, i); i++) puts(pipecast_plan_set(plans, 0, i));
 */
PC_PUBLIC const char *pipecast_plan_set(const pipecast_results *plans, int64_t row, int number);

/* The best plan of each value of an axis, or of each two values of two: "gpus", "tp,pp", "machine,schedule" (`pipecast
 * plan --each`, --map). A map has two axes. A row for each, the second
 * axis running fastest: the columns of pipecast_plan_run but `rank`, then `part`, `what` ("tp 8, pp 4") and `factor`,
 * which is not defined. Where there is no plan, `status` is not ok, `message` says why, and what a plan has beside its
 * run is not defined. `progress` counts rows. Else as pipecast_plan_run; PIPECAST_ERROR_INPUT for an axis that is none.
 *
 *     pipecast_plan_each(plan, "gpus", 0, NULL, NULL, &cells, &error);
 *     pipecast_plan_map(plan, "tp,pp", 0, NULL, NULL, &cells, &error);
 */
PC_PUBLIC int pipecast_plan_each(pipecast_plan *plan, const char *axes, int threads, pipecast_progress *progress,
                                 void *context, pipecast_results **results, pipecast_error *error);
PC_PUBLIC int pipecast_plan_map(pipecast_plan *plan, const char *axes, int threads, pipecast_progress *progress,
                                void *context, pipecast_results **results, pipecast_error *error);

/* The fewest GPUs on which the training keeps to `deadline` and `budget` of the plan (`pipecast plan --deadline`). A
 * row for each machine and number of GPUs, the fewest first, with the fastest plan there. Of each machine the listed
 * numbers are tried from the fewest on until one keeps to both: `training_days` and `training_cost` of its last row
 * tell whether one does. Then multiples of a node (within a node all numbers) are tried between that one and the
 * largest below that misses: one by one up to 128 of them, else in steps. Those that keep to both have rows, too, and
 * the first row that does is the answer. Numbers that would be too slow at the GPU's peak rate have no row.
 * pipecast_plan_run looks at neither. Columns, `progress` and errors are those of pipecast_plan_each;
 * PIPECAST_ERROR_INPUT without a deadline and a budget.
 *
 *     pipecast_plan_goal(plan, 0, NULL, NULL, &cells, &error);
 */
PC_PUBLIC int pipecast_plan_goal(pipecast_plan *plan, int threads, pipecast_progress *progress, void *context,
                                 pipecast_results **results, pipecast_error *error);

/* What becomes of the plan in row `row` of pipecast_plan_run's answer with 20% less and 20% more of each thing that it
 * has: bandwidths, latencies, rates, memory, the batch (`pipecast plan --sensitivity`). Two rows for each, less of it
 * and more, what matters most first; with the flag PIPECAST_ANEW four, the last two with the best plan then, for which
 * the whole space is searched. Columns as above; `what` is the thing, `factor` how many times as much of it there is,
 * `behind` by what the row is behind the plan. PIPECAST_ERROR_INPUT if the answer is another's, or has no such row.
 *
 *     pipecast_plan_sensitivity(plan, plans, 0, 0, 0, NULL, NULL, &changes, &error);
 */
PC_PUBLIC int pipecast_plan_sensitivity(pipecast_plan *plan, const pipecast_results *plans, int64_t row, int threads,
                                        int flags, pipecast_progress *progress, void *context,
                                        pipecast_results **results, pipecast_error *error);

/* What pipecast_plan_run's plans come to with sequences of several lengths, each so large a part of all tokens:
 * "4k:0.7,32k:0.3" (`pipecast plan --seq-mix`). A row for each plan, the fastest then first; `what` is "plan 2".
 * Seconds of a token are means, the memory is the largest. Plans must be of the longest length, which the others
 * divide. Columns as above. PIPECAST_ERROR_INPUT if the answer is another's, or the mix cannot be.
 *
 *     pipecast_plan_mix(plan, plans, "4k:0.7,32k:0.3", 0, NULL, NULL, &mixed, &error);
 */
PC_PUBLIC int pipecast_plan_mix(pipecast_plan *plan, const pipecast_results *plans, const char *mix, int threads,
                                pipecast_progress *progress, void *context, pipecast_results **results,
                                pipecast_error *error);

/* ---- scores ---- */

/* A table of measured runs, to be forecast (docs/score.md). */
typedef struct pipecast_score pipecast_score;

/* Reads one, a CSV file. A row that cannot be read is left out, and `warn`, which may be NULL, is told.
 * PIPECAST_ERROR_INPUT if there is no such table.
 *
 *     pipecast_score_load("measured.csv", NULL, NULL, &score, &error);
 */
PC_PUBLIC int pipecast_score_load(const char *path, pipecast_warn *warn, void *context, pipecast_score **score,
                                  pipecast_error *error);

/* Frees it; NULL is fine. Its tables may stay.
 *
 *     pipecast_score_free(score);
 */
PC_PUBLIC void pipecast_score_free(pipecast_score *score);

/* Reads a table of configurations, for what rows do not say. PIPECAST_ERROR_INPUT if there is none.
 *
 *     pipecast_score_set_conditions(score, "recipes.csv", &error);
 */
PC_PUBLIC int pipecast_score_set_conditions(pipecast_score *score, const char *path, pipecast_error *error);

/* Says who looks on, as pipecast_sweep_watch. `stop` is asked after every run.
 *
 *     pipecast_score_watch(score, show, NULL, NULL, &bar);
 */
PC_PUBLIC void pipecast_score_watch(pipecast_score *score, pipecast_progress *progress, pipecast_stop *stop,
                                    pipecast_warn *warn, void *context);

/* Forecasts every row. `by` are `by_count` columns of the table, or several with commas between ("system,gpus"), whose
 * values errors are summed up for; `sets` are overrides of every row; `flags` and `threads` as elsewhere.
 * PIPECAST_ERROR_INPUT if there is no such column, or an override or a profile is not as it must be;
 * PIPECAST_ERROR_STOPPED if `stop` said so.
 *
 *     const char *by[] = {"model"};
 *     pipecast_score_run(score, by, 1, NULL, 0, 0, 0, &error);
 */
PC_PUBLIC int pipecast_score_run(pipecast_score *score, const char *const *by, size_t by_count, const char *const *sets,
                                 size_t set_count, int flags, int threads, pipecast_error *error);

/* The tables of `pipecast score --format json`. ROWS: the measured table's columns, as texts, and behind them what was
 * forecast. SUMS, MISSING, PAIRS, GROUPS: what they come to. */
typedef enum pipecast_score_part {
    PIPECAST_SCORE_ROWS = 0,
    PIPECAST_SCORE_SUMS = 1,
    PIPECAST_SCORE_MISSING = 2,
    PIPECAST_SCORE_PAIRS = 3,
    PIPECAST_SCORE_GROUPS = 4
} pipecast_score_part;

/* One of these, once it has run. PIPECAST_ERROR_INPUT before, or if there is no such part.
 *
 *     pipecast_score_table(score, PIPECAST_SCORE_ROWS, &rows, &error);
 */
PC_PUBLIC int pipecast_score_table(const pipecast_score *score, int part, pipecast_results **results,
                                   pipecast_error *error);

/* ---- profiles ---- */

/* What was measured on a GPU, and the fits of it (docs/calibration.md). */
typedef struct pipecast_profile pipecast_profile;

/* Opens the file of one. PIPECAST_ERROR_INPUT if there is none, or it is something else.
 *
 *     pipecast_profile_open("h100.h5", &profile, &error);
 */
PC_PUBLIC int pipecast_profile_open(const char *path, pipecast_profile **profile, pipecast_error *error);

/* Frees it; NULL is fine.
 *
 *     pipecast_profile_free(profile);
 */
PC_PUBLIC void pipecast_profile_free(pipecast_profile *profile);

/* What the device calls itself ("NVIDIA H100 80GB HBM3"); and the GPU of pipecast_list that it is, "" if that is not
 * known.
 *
 *     puts(pipecast_profile_device(profile));
 */
PC_PUBLIC const char *pipecast_profile_device(const pipecast_profile *profile);
PC_PUBLIC const char *pipecast_profile_gpu(const pipecast_profile *profile);

/* Its fits, a row each: name, dimensions (of a shape, as pipecast_profile_ask takes it: "batch m n k", "bytes"), points
 * that were measured, and the median error of points that the fit had not seen.
 *
 *     pipecast_profile_fits(profile, &fits, &error);
 */
PC_PUBLIC int pipecast_profile_fits(const pipecast_profile *profile, pipecast_results **fits, pipecast_error *error);

/* How long a kernel or transfer takes, by the fit of row `fit` of pipecast_profile_fits: shape[0 .. count-1] are its
 * dimensions, each above zero. Seconds, and the standard error of one fresh measurement; either may be NULL.
 * PIPECAST_ERROR_INPUT if there is no such fit, or another number of dimensions.
 *
 *     const double shape[] = {1, 4096, 4096, 4096};
 *     pipecast_profile_ask(profile, 0, shape, 4, &seconds, NULL, &error);
 */
PC_PUBLIC int pipecast_profile_ask(const pipecast_profile *profile, int64_t fit, const double *shape, size_t count,
                                   double *seconds, double *standard_error, pipecast_error *error);

/* ---- what there is to choose from ---- */

typedef enum pipecast_subject {
    PIPECAST_SCHEDULES = 0,
    PIPECAST_MODELS = 1,
    PIPECAST_MACHINES = 2,
    PIPECAST_SETTINGS = 3
} pipecast_subject;

/* A table with a row for each of what the library has: name, and words. Of a setting also `value`, what may stand
 * there, `otherwise`, what it is if it is not given, `option`, that of `pipecast run`, and `sweep`, the key that lists
 * values of it behind `sweep.`; its name stands behind `setting.` in overrides.
 * PIPECAST_ERROR_INPUT if there is no such subject.
 *
 *     pipecast_list(PIPECAST_SCHEDULES, &schedules, &error);
 */
PC_PUBLIC int pipecast_list(int subject, pipecast_results **list, pipecast_error *error);

#ifdef __cplusplus
}
#endif
#endif
