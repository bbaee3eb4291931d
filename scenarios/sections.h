/* sections.h: which keys stand where in scenarios and in models' files. Private to scenarios/.
 *
 * Keys of a setting follow from the table of keys (keys.c), those of a sweep and a plan from theirs.
 */
#ifndef PC_SCENARIOS_SECTIONS_H
#define PC_SCENARIOS_SECTIONS_H

#include "scenarios/keys.h"
#include "scenarios/schema.h"

extern const pc_schema pc_file_schema;       /* of a scenario */
extern const pc_schema pc_set_schema;        /* of a --set: nothing is required of it, and it has no cases */
extern const pc_schema pc_figures_schema;    /* of a scenario of which its figures alone are looked at */
extern const pc_schema pc_setting_schema;    /* under `setting` */
extern const pc_schema pc_case_schema;       /* under `cases`: its own keys, and those of a setting */
extern const pc_schema pc_sweep_schema;      /* under `sweep` */
extern const pc_schema pc_plan_schema;       /* under `plan` */
extern const pc_schema pc_published_schema;  /* under `published` of a case; published.c */
extern const pc_schema pc_figure_schema;     /* under `figures`; figures.c */
extern const pc_schema pc_model_file_schema; /* a model's file: the keys of a model stand at its top */
extern const pc_schema pc_software_schema;   /* a software's file: what a program decides, as under `setting` */

/* The settings that it may have. */
extern const pc_key pc_software_keys[];
extern const int pc_software_key_count;

#endif
