/* run_labels.h: what is said of a run and no simulation reads: its number, names, and what others published for it.
 *
 * A scenario gives them beside the run's spec; results put them into its row.
 */
#ifndef PC_SCENARIOS_RUN_LABELS_H
#define PC_SCENARIOS_RUN_LABELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LABEL_SIZE = 128 };

/* Texts are empty if not given, published figures NaN where nobody published any. */
typedef struct pc_run_labels {
    int64_t run;                  /* its number in the whole list, from 1 */
    char scenario[PC_LABEL_SIZE]; /* the scenario's name */
    char name[PC_LABEL_SIZE];     /* the run's own, unique in its scenario: "1.5B-m24.zb-h1" */
    char model[PC_LABEL_SIZE];
    char machine[PC_LABEL_SIZE];
    char software[32]; /* of the library, on clusters; "other": a file of somebody's own; "": none was named */
    char layout[8];    /* "even" or "ends", by which given times have activations of a model's shape; on
                        * clusters the spec says it */
    char profile[PC_LABEL_SIZE]; /* the path of the profile as it was written; of one that is too long its end */
    /* What others measured or published for this run, to stand beside ours. */
    double published_bubble_rate_span;
    double published_samples_per_s_per_gpu;
    double published_iteration_s;
    double published_mfu;
    double published_tflops_per_gpu;
    double published_hardware_tflops_per_gpu;
    double published_activation_gib;
    double published_pass_f_s;
    double published_memory_gib;
    double published_best_mfu; /* of a sweep of which this run is one */
} pc_run_labels;

/* No names, nothing published. */
pc_run_labels pc_run_labels_none(void);

#ifdef __cplusplus
}
#endif
#endif
