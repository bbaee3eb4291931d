/* foreign.h: a foreign configuration (JSON, or YAML) as a tree, and its values by any of several names.
 *
 * JSON is read as the YAML that it nearly is. What libyaml refuses of it is a surrogate in an escape ("\ud83d"), as
 * keys and values that matter never have one: such an escape becomes U+FFFD. Keys that stand twice are refused, since
 * readers of JSON do not agree on which counts.
 */
#ifndef PC_SCENARIOS_IMPORT_FOREIGN_H
#define PC_SCENARIOS_IMPORT_FOREIGN_H

#include "engine/error.h"
#include "scenarios/tree.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes a tree of `tree->source`, whose top must be a mapping; `what` says in messages what was expected. */
pc_code pc_foreign_read(pc_tree *tree, const char *what, pc_error *error);

/* Fails on the first key of a mapping, at any depth, that stands in it twice. */
pc_code pc_foreign_check_keys(const pc_tree *tree, pc_error *error);

/* A value of a mapping under the first of "one|two|three" (paths with dots, as pc_node_find has them) that is there and
 * is no null; NULL if none is, or `mapping` is NULL. */
const pc_node *pc_foreign_find(const pc_node *mapping, const char *names);

/* Whether a value says anything: no null, false, zero, empty text, list or mapping. NULL does not. */
bool pc_foreign_says(const pc_node *node);

/* A whole number from `least` to `most`, digits alone; PC_ERROR_INPUT with the place if it is anything else. */
pc_code pc_foreign_count(const pc_tree *tree, const pc_node *node, int64_t least, int64_t most, int64_t *number,
                         pc_error *error);

/* A finite number, likewise: "0.1", "1e-3". */
pc_code pc_foreign_number(const pc_tree *tree, const pc_node *node, double *number, pc_error *error);

/* true or false, in any case. */
pc_code pc_foreign_switch(const pc_tree *tree, const pc_node *node, bool *is_true, pc_error *error);

/* Its text; "" of NULL, and of a list or mapping. */
const char *pc_foreign_text(const pc_node *node);

/* What a file looks like by one of its keys (with '_' or '-'): "a configuration of DeepSpeed (pipecast import deepspeed
 * reads it)"; NULL if the key says nothing. */
const char *pc_foreign_sort_of(const char *key);

/* Whether one of "one|two" is the text of `length` bytes, or the whole of it. */
bool pc_foreign_is_one_of(const char *text, size_t length, const char *words);

#endif
