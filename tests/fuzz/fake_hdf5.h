/* fake_hdf5.h: in place of HDF5 for fuzz targets: files that are described in a few bytes, so that what is tried is our
 * reading of them, thousands of times a second, and not HDF5's own of damaged ones.
 *
 * Every function that reads a results file or a profile is there under HDF5's name. They answer what HDF5 may answer to
 * some file: any tree of groups, datasets and attributes, any type, length and value, and a refusal at any call. What a
 * file is described by, seeds in tests/fuzz/seeds are; describe_hdf5.py makes them of real files:
 *
 *     2 bytes   the call that is refused, counted from 1; 0: none (numbers are little-endian)
 *     records   kind (1 byte), name up to a NUL, and what the kind has
 *
 * Kind, lowest two bits: 0 ends a group (and has no name), 1 group, 2 dataset, 3 attribute of what came last. The next
 * two bits, of groups and datasets: 2 soft link, 3 external link. Datasets and attributes have a byte (lowest three
 * bits: FAKE_INTEGER and so on; then one: UTF-8; then three: FAKE_CONTIGUOUS and so on), the size of an element (2
 * bytes), and the rank (1 byte; 255: no elements at all). Then come each dimension (4 bytes; 2^32 - 1 stands for 2^60),
 * what HDF5 is to say that is stored (1 byte, in 16 bytes; 0: what there is), and the data behind their length (2
 * bytes). Elements behind the data's end begin at its start again. */
#ifndef PC_TESTS_FAKE_HDF5_H
#define PC_TESTS_FAKE_HDF5_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_INTEGER, FAKE_REAL, FAKE_TEXT, FAKE_ENUM, FAKE_VARIABLE_TEXT, FAKE_COMPOUND };
enum {
    FAKE_CONTIGUOUS,
    FAKE_COMPACT,
    FAKE_CHUNKED,
    FAKE_VIRTUAL,
    FAKE_EXTERNAL,
    FAKE_UNKNOWN_FILTER,
    FAKE_DEFLATED_TWICE,
    FAKE_HUGE_CHUNK
};
enum { FAKE_NODES = 600, FAKE_RANK = 3, FAKE_NONE = -1 };

typedef struct fake_node {
    int kind, link;   /* as in the record */
    const char *name; /* in the description, as is the data */
    uint32_t name_hash;
    int first, last; /* children, datasets and groups */
    int next;        /* sibling, of children or of attributes */
    int attributes;  /* the first */
    int cursor;      /* where the search for a child begins */
    int opened;      /* how often it is open */
    int class, layout;
    bool is_utf8;
    size_t size;
    int rank; /* 255: no elements */
    uint64_t sides[FAKE_RANK], elements, stored;
    const uint8_t *data;
    size_t data_size;
} fake_node;

typedef struct fake_tree {
    fake_node nodes[FAKE_NODES]; /* the first is the file and its root */
    int count;
    size_t size; /* of the description: what HDF5 is to say of the file */
    long refused;
} fake_tree;

/* Reads the description, as far as it goes. The tree points into it. */
void fake_tree_read(fake_tree *tree, const uint8_t *data, size_t size);

/* A child, or an attribute, by name; FAKE_NONE. */
int fake_tree_child(fake_tree *tree, int parent, const char *name);
int fake_tree_attribute(const fake_tree *tree, int node, const char *name);

/* What the next H5Fopen opens; the data must stay until fake_hdf5_end, which says whether all that was opened was
 * closed (it prints what was not). H5Fopen of an image in memory opens that. */
void fake_hdf5_begin(const uint8_t *data, size_t size);
bool fake_hdf5_end(void);

/* How often H5Fopen was called since the beginning. */
int fake_hdf5_opened(void);

#endif
