#include "tests/fuzz/fake_hdf5.h"

#include <string.h>

/* The description, and how far it has been read. */
typedef struct reader {
    const uint8_t *at;
    size_t left;
} reader;

static uint64_t take(reader *from, size_t size) {
    uint64_t value = 0;
    if (size > from->left) size = from->left;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)from->at[i] << (8 * i);
    from->at += size;
    from->left -= size;
    return value;
}

/* NULL where it does not end. */
static const char *take_name(reader *from) {
    const uint8_t *end = from->left ? memchr(from->at, 0, from->left) : NULL;
    if (!end) return NULL;
    const char *name = (const char *)from->at;
    from->left -= (size_t)(end - from->at) + 1;
    from->at = end + 1;
    return name;
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static void take_shape(reader *from, fake_node *node) {
    unsigned sort = (unsigned)take(from, 1);
    node->class = sort & 7;
    node->is_utf8 = sort & 8;
    node->layout = sort >> 4 & 7;
    node->size = (size_t)take(from, 2);
    node->rank = (int)take(from, 1);
    node->elements = node->rank == 255 ? 0 : 1;
    for (int i = 0; i < node->rank && i < FAKE_RANK && node->rank != 255; i++) {
        uint64_t side = take(from, 4);
        node->sides[i] = side == UINT32_MAX ? UINT64_C(1) << 60 : side;
        if (__builtin_mul_overflow(node->elements, node->sides[i], &node->elements)) node->elements = INT64_MAX;
    }
    uint64_t stored = 16 * take(from, 1);
    node->data_size = (size_t)take(from, 2);
    if (node->data_size > from->left) node->data_size = from->left;
    node->data = from->at;
    from->at += node->data_size;
    from->left -= node->data_size;
    node->stored = stored ? stored : node->data_size;
}

static int add_node(fake_tree *tree, int kind, const char *name) {
    fake_node *node = &tree->nodes[tree->count];
    *node = (fake_node){.kind = kind & 3, .link = kind >> 2 & 3, .name = name, .name_hash = hash_of(name)};
    node->first = node->last = node->next = node->attributes = node->cursor = FAKE_NONE;
    return tree->count++;
}

static bool is_named(const fake_node *node, uint32_t hash, const char *name) {
    return node->name_hash == hash && strcmp(node->name, name) == 0;
}

/* Nowhere where the group has one of that name: in HDF5 names are unique. */
static void append_child(fake_tree *tree, int parent, int child) {
    fake_node *group = &tree->nodes[parent];
    const fake_node *added = &tree->nodes[child];
    for (int i = group->first; i != FAKE_NONE; i = tree->nodes[i].next)
        if (is_named(&tree->nodes[i], added->name_hash, added->name)) return;
    if (group->last == FAKE_NONE)
        group->first = group->cursor = child;
    else
        tree->nodes[group->last].next = child;
    group->last = child;
}

enum { DEPTH = 8 };

void fake_tree_read(fake_tree *tree, const uint8_t *data, size_t size) {
    reader from = {data, size};
    int open[DEPTH], depth = 0, latest = 0;
    tree->count = 0;
    tree->size = size;
    tree->refused = (long)take(&from, 2);
    open[0] = add_node(tree, 1, "/");
    while (from.left && tree->count < FAKE_NODES) {
        int kind = (int)take(&from, 1);
        if ((kind & 3) == 0) {
            latest = open[depth -= depth > 0];
            continue;
        }
        const char *name = take_name(&from);
        if (!name) return;
        int made = add_node(tree, kind, name);
        fake_node *node = &tree->nodes[made];
        if (node->kind != 1) take_shape(&from, node);
        if (node->kind == 3) {
            node->next = tree->nodes[latest].attributes;
            tree->nodes[latest].attributes = made;
            continue;
        }
        append_child(tree, open[depth], made);
        latest = made;
        if (node->kind == 1 && depth + 1 < DEPTH) open[++depth] = made;
    }
}

/* Files are mostly read in the order in which they were written: from the last one found on, and around. */
int fake_tree_child(fake_tree *tree, int parent, const char *name) {
    fake_node *group = &tree->nodes[parent];
    uint32_t hash = hash_of(name);
    int start = group->cursor;
    for (int i = start; i != FAKE_NONE; i = tree->nodes[i].next)
        if (is_named(&tree->nodes[i], hash, name)) return group->cursor = i;
    for (int i = group->first; i != start && i != FAKE_NONE; i = tree->nodes[i].next)
        if (is_named(&tree->nodes[i], hash, name)) return group->cursor = i;
    return FAKE_NONE;
}

int fake_tree_attribute(const fake_tree *tree, int node, const char *name) {
    uint32_t hash = hash_of(name);
    for (int i = tree->nodes[node].attributes; i != FAKE_NONE; i = tree->nodes[i].next)
        if (is_named(&tree->nodes[i], hash, name)) return i;
    return FAKE_NONE;
}
