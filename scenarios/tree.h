/* tree.h: a YAML text, read once, as a tree of nodes that know their lines; and how a message names a place in it.
 * Private to scenarios/.
 *
 * A key path is how messages name a value: "cases[3].times.F".
 */
#ifndef PC_SCENARIOS_TREE_H
#define PC_SCENARIOS_TREE_H

#include "engine/error.h"
#include "scenarios/source.h"

#include <stddef.h>

enum { PC_NODE_TEXT_SIZE = 4097 /* bytes of one text at most, with its end */ };

typedef enum pc_node_kind { PC_NODE_TEXT, PC_NODE_LIST, PC_NODE_MAPPING } pc_node_kind;

/* A value. All below it stands behind it in the tree's array, child by child. */
typedef struct pc_node {
    const char *key;  /* in a mapping; else NULL */
    const char *text; /* of PC_NODE_TEXT, "" if nothing is given; else NULL */
    pc_node_kind kind;
    unsigned line;  /* from 1: on which its key stands, or itself begins */
    unsigned count; /* of its children */
    unsigned size;  /* nodes: itself and all below it */
    unsigned up;    /* how many nodes before it its parent stands; 0: it is the top */
} pc_node;

typedef struct pc_tree {
    pc_source source;
    pc_node *nodes; /* the top first; node_count of them; owned, as their texts are */
    size_t node_count;
    struct pc_text_block *texts;
} pc_tree;

/* Makes a tree of tree->source, which must hold one YAML document, in UTF-8, without aliases, of bounded depth and
 * size. What was filled in is freed by pc_tree_free, on failure too; a zeroed one is fine. */
pc_code pc_tree_build(pc_tree *tree, pc_error *error);
void pc_tree_free(pc_tree *tree);

/* A copy of a text that lives as long as the tree; NULL if memory is short. */
const char *pc_tree_keep(pc_tree *tree, const char *text);

/* Those of a list or mapping in the order of the text:
 * for (const pc_node *child = pc_node_first(node); child < pc_node_end(node); child = pc_node_end(child)) */
static inline const pc_node *pc_node_first(const pc_node *node) {
    return node + 1;
}

static inline const pc_node *pc_node_end(const pc_node *node) {
    return node + node->size;
}

/* What stands below `node` under a path, "times.F"; NULL if nothing does, or `node` is NULL. */
const pc_node *pc_node_find(const pc_node *node, const char *path);

/* The same: its text; NULL if nothing stands there. */
const char *pc_node_find_text(const pc_node *node, const char *path);

/* The node's key path; "" at the top. Keys that are long are cut. */
void pc_node_path(const pc_node *node, char path[PC_KEY_PATH_SIZE]);

/* Writes "FILE:LINE: KEYPATH: <message>" (or "--set KEY=VALUE: KEYPATH: ...") and returns PC_ERROR_INPUT. */
pc_code pc_node_refuse(const pc_tree *tree, const pc_node *node, pc_error *error, const char *format, ...)
    PC_PRINTF(4, 5);

/* The same of a key that is missing below the node. */
pc_code pc_node_refuse_key(const pc_tree *tree, const pc_node *node, const char *key, pc_error *error,
                           const char *format, ...) PC_PRINTF(5, 6);

/* The same by a key path; where nothing stands under it the line is that of what it would stand in. */
pc_code pc_tree_refuse(const pc_tree *tree, const char *key_path, pc_error *error, const char *format, ...)
    PC_PRINTF(4, 5);

/* Says in `error` that it was here, where `code` is PC_ERROR_INPUT; returns `code`. */
pc_code pc_node_blame(const pc_tree *tree, const pc_node *node, pc_code code, pc_error *error);

/* Says the same of a key path, with the fault's words and its code. */
pc_code pc_tree_pass_on(const pc_tree *tree, const char *key_path, const pc_error *fault, pc_error *error);

#endif
