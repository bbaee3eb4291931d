/* recompute_keys.h: how settings say what is recomputed: `recompute`, and Megatron-LM's arguments beside it. Private to
 * scenarios/. */
#ifndef PC_SCENARIOS_RECOMPUTE_KEYS_H
#define PC_SCENARIOS_RECOMPUTE_KEYS_H

#include "engine/error.h"
#include "models/workload/recompute.h"
#include "scenarios/setting.h"

#include <stdbool.h>

/* What `recompute` says, "full" or "full-block-2,none,selective:mlp": a name for all parts, or one each, up to
 * PC_PARTS_MAX. False for other text. `list` may be NULL, and otherwise has room for as many. */
bool pc_recompute_list(const char *text, pc_recomputation *list, int *count);

/* `recompute`, and `recompute_modules`, "core_attn,mlp"; the messages lack their place. Text is not copied. */
pc_code pc_recompute_parse(const char *text, pc_value *value, pc_error *error);
pc_code pc_recompute_parse_modules(const char *text, pc_value *value, pc_error *error);

/* What a setting says in all: `recompute` as it stands, borrowed; or, in `text`, "selective" with `recompute_modules`,
 * "full" with `recompute_method` and `recompute_layers`, in one name. PC_ERROR_INPUT, as a rule that is broken, where
 * the keys do not go together. */
pc_code pc_recompute_of_setting(const pc_setting *setting, char text[PC_RECOMPUTATION_SIZE], const char **whole,
                                pc_error *error);

#endif
