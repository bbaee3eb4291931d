/* loaded.h: a scenario in memory, and the steps in which it is made. Private to scenarios/.
 *
 * load.c reads documents, sweep and cases; published.c their published figures; figures.c the charts; runs.c multiplies
 * out; scenario.c is the interface.
 */
#ifndef PC_SCENARIOS_LOADED_H
#define PC_SCENARIOS_LOADED_H

#include "engine/error.h"
#include "models/training/run.h"
#include "scenarios/references.h"
#include "scenarios/run_labels.h"
#include "scenarios/scenario.h"
#include "scenarios/settings.h"
#include "scenarios/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file, or one --set. */
typedef struct pc_document {
    pc_tree tree; /* owns the texts that settings and names point to */
    pc_setting setting;
} pc_document;

/* One figure or several that others published for a run; NaN if they did not. */
typedef struct pc_published {
    const pc_generator *generator;
    int64_t microbatches; /* -1: any number */
    double number[PC_PUBLISHED_NUMBERS];
    double iteration_s, pass_f_s, activation_gib, memory_gib;
} pc_published;

typedef struct pc_case {
    const char *name;
    char path[32]; /* "cases[3]"; "setting" where the file has no cases */
    pc_setting setting;
    pc_published *published; /* published_count of them, or NULL */
    int64_t published_count;
} pc_case;

/* What `sweep` lists for one dimension; a count of 0 leaves it to the case. */
typedef struct pc_sweep_list {
    pc_value *values;
    int64_t count;
    const pc_document *document; /* where it stands */
} pc_sweep_list;

struct pc_scenario {
    const char *name, *title;
    pc_document *documents; /* the file, then the sets in the order in which they win */
    int document_count;
    pc_case *cases;
    int64_t case_count;
    pc_sweep_list sweep[PC_DIMENSIONS];
    pc_dimension loops[PC_DIMENSIONS], names[PC_DIMENSIONS]; /* in which order runs go through them, and are named */
    int name_count;
    char *folder;             /* of the file: its paths count from here; those of sets from where we are */
    bool allows_outside;      /* whether these may lead out of it; before pc_loaded_build */
    pc_reference *references; /* all models and machines that are named anywhere */
    int64_t run_count;
    pc_scenario_figure *figures; /* figure_count of them, or NULL; their texts are the file's */
    int figure_count;
};

static inline const pc_tree *pc_loaded_file(const pc_scenario *scenario) {
    return &scenario->documents[0].tree;
}

/* The list of a dimension under `sweep` of a document; NULL if there is none. */
const pc_node *pc_sweep_node(const pc_document *document, pc_dimension dimension);

/* Of the names in a document. The text that stands for a file where there is none is the user's, too. */
pc_place pc_loaded_place(const pc_scenario *scenario, const pc_document *document);

/* Fills in documents, an empty one where `path` is NULL, and what options say; then name, title, sweep and cases. What
 * was filled in is freed by pc_scenario_free, on failure too. */
pc_code pc_loaded_read(pc_scenario *scenario, const char *path, const pc_scenario_options *options, pc_error *error);
pc_code pc_loaded_build(pc_scenario *scenario, pc_error *error);

/* What a scenario, a case and a figure may be called. */
pc_code pc_name_check(const pc_tree *tree, const pc_node *name, pc_error *error);

/* The charts under `figures`, `*count` of them, or NULL; the caller frees them, and keeps the tree, whose texts they
 * borrow. */
pc_code pc_figures_read(const pc_tree *tree, pc_scenario_figure **figures, int *count, pc_error *error);

/* Fills in the published figures of a case, which `list` holds; NULL: none. And copies into a run's labels those of its
 * case that are about it: the first entry that names its schedule, and its number of microbatches where it names one.
 */
pc_code pc_published_read(pc_scenario *scenario, const pc_node *list, pc_case *into, pc_error *error);
void pc_published_copy(const pc_scenario *scenario, const pc_case *of, const pc_setting *merged,
                       const pc_run_spec *spec, pc_run_labels *labels);

/* What a published number may be, in words: "number, 0 to 1"; nothing if the key is none. Cut to size. */
void pc_published_values(const char *key, char *text, size_t size);

/* Counts the runs, and checks every one of them. */
pc_code pc_runs_check(pc_scenario *scenario, pc_error *error);

/* What all runs of a case have that use entry `model` of a sweep over models (0 if there is none): all that a sweep
 * lists is the first of its kind. */
pc_setting pc_runs_of_model(const pc_scenario *scenario, int64_t case_index, int64_t model);

/* What run `index` is made of: its case, its merged setting, and its name, of PC_LABEL_SIZE bytes. */
const pc_case *pc_runs_find(const pc_scenario *scenario, int64_t index, pc_setting *merged, char *name);

#endif
