/* scenario.h: a scenario file (YAML) as a list of runs; the format is docs/scenario-format.md.
 *
 * A scenario holds settings (cases) and a sweep; each case times each value of the sweep is a run. Runs are made one at
 * a time, so that a sweep of many thousands takes no memory.
 */
#ifndef PC_SCENARIOS_SCENARIO_H
#define PC_SCENARIOS_SCENARIO_H

#include "engine/error.h"
#include "models/training/run.h"
#include "scenarios/run_labels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_scenario pc_scenario;

/* Reads, checks and multiplies out. `sets` are `set_count` overrides, "KEY=VALUE", KEY a path with dots as in the file
 * ("setting.microbatches=64", "sweep.schedule=[1f1b, zb-h1]"); the last one wins. Everything that can be wrong is found
 * here, before the first run: PC_ERROR_INPUT and one line "FILE:LINE: KEY: what was wrong; expected ...". `path` NULL
 * is an empty scenario of the name "flags", of which the sets say everything. Paths of models and machines count from
 * the file's folder, in sets from the current one. */
pc_code pc_scenario_load(const char *path, const char *const *sets, int set_count, pc_scenario **scenario,
                         pc_error *error);

/* What else may be said of how a scenario is loaded; zeroed: nothing. */
typedef struct pc_scenario_options {
    const char *const *sets;
    int set_count;
    bool allows_outside; /* whether what the file names may lie outside of its folder; otherwise "/x.yaml", "../x.yaml"
                            and a link that leads out are PC_ERROR_INPUT. Files in sets may be anywhere, but what these
                            name lies in the scenario's folder or in theirs. */
    const char *text;    /* what stands in the file, which is not read then and need not be there; NULL: the file */
} pc_scenario_options;
pc_code pc_scenario_load_with(const char *path, const pc_scenario_options *options, pc_scenario **scenario,
                              pc_error *error);
void pc_scenario_free(pc_scenario *scenario);

const char *pc_scenario_name(const pc_scenario *scenario);
const char *pc_scenario_title(const pc_scenario *scenario); /* "" if the file has none */

/* The text of the file as it was read, for keeping with the results; every set stands in a comment at its end. */
const char *pc_scenario_text(const pc_scenario *scenario, size_t *size);

int64_t pc_scenario_run_count(const pc_scenario *scenario);

/* Whether any run may have a profile (pc_run_spec.profile_path). The paths live as long as the scenario. */
bool pc_scenario_has_profiles(const pc_scenario *scenario);

/* Run `index` (0 ..), free it with pc_run_spec_free; and its labels, with a number that counts within the scenario,
 * from 1. Thread-safe. */
pc_code pc_scenario_run_spec(const pc_scenario *scenario, int64_t index, pc_run_spec *spec, pc_run_labels *labels,
                             pc_error *error);

/* What the keys of a model that GPT and Llama differ in are taken to be, because neither the model's file nor the
 * scenario gives them. */
enum { PC_ASSUMED_SIZE = 128, PC_ASSUMED_MAX = 4 };
typedef struct pc_model_assumed {
    char model[PC_LABEL_SIZE];  /* its name; "" if it has none */
    char keys[PC_ASSUMED_SIZE]; /* "positions learned, tied true, bias true, dropout true, norm layernorm, mlp gelu" */
} pc_model_assumed;

/* Whether a scenario's runs are of models of different names. */
bool pc_scenario_has_models(const pc_scenario *scenario);

/* Those of all models of a scenario's runs on clusters, without repeats: how many there are, PC_ASSUMED_MAX of them at
 * most. */
int pc_scenario_assumed(const pc_scenario *scenario, pc_model_assumed list[PC_ASSUMED_MAX]);

/* What the foreign files that a scenario names as models do not say, and what of them is not modelled: text `index` of
 * them, from 0, "NAME: ..."; false behind the last. */
enum { PC_IMPORT_NOTE_SIZE = 1024 };
bool pc_scenario_import_note(const pc_scenario *scenario, int index, char text[PC_IMPORT_NOTE_SIZE]);

/* Whether runs differ in nothing but what the scenario sweeps: it has no cases. Then the columns of results of what is
 * swept over several values, `*count` of them, as far as that has a column; else as `sweep` calls it. */
enum { PC_SCENARIO_SWEPT_MAX = 64 };
bool pc_scenario_only_sweeps(const pc_scenario *scenario, const char *columns[PC_SCENARIO_SWEPT_MAX], int *count);

enum { PC_SCENARIO_FIGURE_Y_MAX = 4 };

/* A chart that the scenario declares under `figures`: plain text as it stands there; NULL if it is not given. Which
 * columns and ranges there can be is not known here (results/figures/scenario_charts.h checks). */
typedef struct pc_scenario_figure {
    const char *name, *title, *x, *series, *panels, *style;
    const char *x_label, *x_range, *log;
    const char *y[PC_SCENARIO_FIGURE_Y_MAX], *y_label[PC_SCENARIO_FIGURE_Y_MAX], *y_range[PC_SCENARIO_FIGURE_Y_MAX];
    int y_count;
    bool published, is_dark;
} pc_scenario_figure;

/* Those of a loaded scenario, `*count`; owned by it. */
const pc_scenario_figure *pc_scenario_figures(const pc_scenario *scenario, int *count);

typedef struct pc_scenario_figures_list {
    const pc_scenario_figure *figures;
    int count;
    void *owner; /* private */
} pc_scenario_figures_list;

/* Those of a scenario's text, as a results file keeps it: nothing but `figures` is looked at, and no other file. `name`
 * stands in messages. Free with pc_scenario_figures_free; a zeroed one is fine. */
pc_code pc_scenario_figures_read(const char *text, size_t size, const char *name, pc_scenario_figures_list *list,
                                 pc_error *error);
void pc_scenario_figures_free(pc_scenario_figures_list *list);

#ifdef __cplusplus
}
#endif
#endif
