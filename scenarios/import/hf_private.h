/* hf_private.h: a config.json that is being read. Private to scenarios/import/hf*.c. */
#ifndef PC_SCENARIOS_IMPORT_HF_PRIVATE_H
#define PC_SCENARIOS_IMPORT_HF_PRIVATE_H

#include "scenarios/import/foreign.h"
#include "scenarios/import/imported.h"
#include "scenarios/tree.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pc_hf_reader {
    pc_tree tree;
    const pc_node *top, *text; /* `text`: the part that is the decoder; `top` itself mostly */
    const char *architecture;  /* as the file calls it */
    pc_imported *import;
    pc_error *error;
} pc_hf_reader;

/* The value under any of "one|two"; where the decoder's part says nothing, what stands beside that. */
const pc_node *pc_hf_find(const pc_hf_reader *r, const char *names);
bool pc_hf_says(const pc_hf_reader *r, const char *names);

/* A whole number, `least` or more. */
pc_code pc_hf_count(const pc_hf_reader *r, const pc_node *node, int64_t least, int64_t *number);

/* Sets `key` to the number under any of the names; leaves it alone if there is none. The latter: it must be there, and
 * be 1 or more. */
pc_code pc_hf_take_count(pc_hf_reader *r, const char *key, const char *names);
pc_code pc_hf_need_count(pc_hf_reader *r, const char *key, const char *names);

/* The same of true and false; `is_inverse`: the other way round. */
pc_code pc_hf_take_switch(pc_hf_reader *r, const char *key, const char *names, bool is_inverse);

/* All keys of a model, after what the architecture has by itself: hf_model.c. */
pc_code pc_hf_take_model(pc_hf_reader *r);

/* Its experts, if it has any: hf_experts.c. */
pc_code pc_hf_take_experts(pc_hf_reader *r);

#endif
