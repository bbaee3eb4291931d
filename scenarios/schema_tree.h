/* schema_tree.h: the schemas of files, for those who walk through their keys. Private to scenarios/. */
#ifndef PC_SCENARIOS_SCHEMA_TREE_H
#define PC_SCENARIOS_SCHEMA_TREE_H

#include <cyaml/cyaml.h>

/* Mappings: of a scenario, and of a model's file. */
const cyaml_schema_value_t *pc_schema_of_scenarios(void);
const cyaml_schema_value_t *pc_schema_of_models(void);

#endif
