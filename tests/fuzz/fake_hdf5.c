/* HDF5's functions over a described file: objects, links, attributes, properties. */
#include "tests/fuzz/fake_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_tree tree;
static const uint8_t *bytes;
static size_t bytes_size;
static const void *image; /* of the property list */
static size_t image_size;
static int files_opened;

hid_t H5P_CLS_FILE_ACCESS_ID_g = 1, H5P_CLS_FILE_CREATE_ID_g = 2, H5P_CLS_GROUP_CREATE_ID_g = 3,
      H5P_CLS_DATASET_CREATE_ID_g = 4;

/* ---- what is open ---- */

void fake_hdf5_begin(const uint8_t *data, size_t size) {
    bytes = data;
    bytes_size = size;
    image = NULL;
    files_opened = 0;
    tree.count = 0;
    tree.refused = 0;
}

static bool all_closed(void) {
    bool closed = fake_types_closed();
    for (int i = 0; i < tree.count; i++) {
        if (tree.nodes[i].opened == 0) continue;
        fprintf(stderr, "fake_hdf5: still open: '%s'\n", tree.nodes[i].name);
        closed = false;
    }
    return closed;
}

bool fake_hdf5_end(void) {
    bool closed = all_closed();
    tree.count = 0;
    return closed;
}

int fake_hdf5_opened(void) {
    return files_opened;
}

bool fake_refuses(void) {
    return tree.refused > 0 && --tree.refused == 0;
}

fake_node *fake_node_of(hid_t id) {
    int index = (int)(id - FAKE_NODE_ID);
    if (id < FAKE_NODE_ID || index >= tree.count || tree.nodes[index].opened == 0) {
        fprintf(stderr, "fake_hdf5: object %lld is not open\n", (long long)id);
        abort();
    }
    return &tree.nodes[index];
}

static int index_of(hid_t id) {
    return (int)(fake_node_of(id) - tree.nodes);
}

static hid_t open_node(int index) {
    if (index < 0 || fake_refuses()) return -1;
    tree.nodes[index].opened++;
    return FAKE_NODE_ID + index;
}

static herr_t close_node(hid_t id) {
    fake_node_of(id)->opened--;
    return 0;
}

/* ---- files ---- */

herr_t H5open(void) {
    return 0;
}

hid_t H5Fopen(const char *name, unsigned flags, hid_t access) {
    (void)name, (void)flags, (void)access;
    files_opened++;
    if (image) {
        bytes = image;
        bytes_size = image_size;
        image = NULL;
    }
    if (tree.count && !all_closed()) abort(); /* one at a time */
    fake_tree_read(&tree, bytes, bytes_size);
    return open_node(0);
}

herr_t H5Fclose(hid_t file) {
    return close_node(file);
}

hid_t H5Iget_file_id(hid_t object) {
    fake_node_of(object);
    return open_node(0);
}

H5I_type_t H5Iget_type(hid_t object) {
    return fake_node_of(object)->kind == 2 ? H5I_DATASET : H5I_GROUP;
}

herr_t H5Fget_filesize(hid_t file, hsize_t *size) {
    fake_node_of(file);
    *size = tree.size;
    return fake_refuses() ? -1 : 0;
}

/* ---- links, groups, datasets ---- */

htri_t H5Lexists(hid_t parent, const char *name, hid_t access) {
    (void)access;
    return fake_refuses() ? -1 : fake_tree_child(&tree, index_of(parent), name) != FAKE_NONE;
}

static herr_t say_link(int node, H5L_info_t *info) {
    static const H5L_type_t types[] = {H5L_TYPE_HARD, H5L_TYPE_HARD, H5L_TYPE_SOFT, H5L_TYPE_EXTERNAL};
    if (node < 0 || fake_refuses()) return -1;
    *info = (H5L_info_t){.type = types[tree.nodes[node].link]};
    return 0;
}

herr_t H5Lget_info(hid_t parent, const char *name, H5L_info_t *info, hid_t access) {
    (void)access;
    return say_link(fake_tree_child(&tree, index_of(parent), name), info);
}

static int nth_child(hid_t parent, hsize_t place) {
    int child = fake_node_of(parent)->first;
    for (; place > 0 && child != FAKE_NONE; place--) child = tree.nodes[child].next;
    return child;
}

herr_t H5Lget_info_by_idx(hid_t parent, const char *group, H5_index_t index, H5_iter_order_t order, hsize_t place,
                          H5L_info_t *info, hid_t access) {
    (void)group, (void)index, (void)order, (void)access;
    return say_link(nth_child(parent, place), info);
}

/* Only what is in the file may be opened, and it must be of the right kind. */
static hid_t open_object(int node, int kind) {
    if (node < 0) return -1;
    if (tree.nodes[node].link >= 2) {
        fprintf(stderr, "fake_hdf5: '%s' was followed out of the file\n", tree.nodes[node].name);
        abort();
    }
    return kind && tree.nodes[node].kind != kind ? -1 : open_node(node);
}

hid_t H5Oopen_by_idx(hid_t parent, const char *group, H5_index_t index, H5_iter_order_t order, hsize_t place,
                     hid_t access) {
    (void)group, (void)index, (void)order, (void)access;
    return open_object(nth_child(parent, place), 0);
}

hid_t H5Gopen2(hid_t parent, const char *name, hid_t access) {
    (void)access;
    if (strcmp(name, "/") == 0) return open_node(0);
    return open_object(fake_tree_child(&tree, index_of(parent), name), 1);
}

hid_t H5Dopen2(hid_t parent, const char *name, hid_t access) {
    (void)access;
    return open_object(fake_tree_child(&tree, index_of(parent), name), 2);
}

herr_t H5Gget_info(hid_t group, H5G_info_t *info) {
    if (fake_refuses()) return -1;
    *info = (H5G_info_t){0};
    for (int i = fake_node_of(group)->first; i != FAKE_NONE; i = tree.nodes[i].next) info->nlinks++;
    return 0;
}

herr_t H5Gclose(hid_t group) {
    return close_node(group);
}
herr_t H5Oclose(hid_t object) {
    return close_node(object);
}
herr_t H5Dclose(hid_t dataset) {
    return close_node(dataset);
}

hid_t H5Dget_type(hid_t dataset) {
    return fake_type_make(fake_node_of(dataset));
}

/* Of a dataset in other files, asking for its shape opens them. */
hid_t H5Dget_space(hid_t dataset) {
    fake_node *node = fake_node_of(dataset);
    fake_require_inside(node);
    return fake_space_make(node);
}

hsize_t H5Dget_storage_size(hid_t dataset) {
    return fake_refuses() ? 0 : fake_node_of(dataset)->stored;
}

/* ---- attributes ---- */

htri_t H5Aexists(hid_t object, const char *name) {
    return fake_refuses() ? -1 : fake_tree_attribute(&tree, index_of(object), name) != FAKE_NONE;
}

hid_t H5Aopen(hid_t object, const char *name, hid_t access) {
    (void)access;
    return open_node(fake_tree_attribute(&tree, index_of(object), name));
}

herr_t H5Aclose(hid_t attribute) {
    return close_node(attribute);
}

hid_t H5Aget_space(hid_t attribute) {
    return fake_space_make(fake_node_of(attribute));
}

hid_t H5Aget_type(hid_t attribute) {
    return fake_type_make(fake_node_of(attribute));
}

/* ---- property lists: the id of a dataset's leads to its node ---- */

static int lists_open;

bool fake_lists_closed(void) {
    bool closed = lists_open == 0;
    lists_open = 0;
    return closed;
}

hid_t H5Pcreate(hid_t class) {
    (void)class;
    if (fake_refuses()) return -1;
    lists_open++;
    return FAKE_LIST_ID;
}

hid_t H5Dget_create_plist(hid_t dataset) {
    int index = index_of(dataset);
    if (fake_refuses()) return -1;
    lists_open++;
    return FAKE_LIST_ID + index;
}

herr_t H5Pclose(hid_t list) {
    if (list < 0) return -1;
    if (lists_open-- == 0) abort();
    return 0;
}

static const fake_node *listed(hid_t list) {
    return &tree.nodes[list - FAKE_LIST_ID];
}

H5D_layout_t H5Pget_layout(hid_t list) {
    static const H5D_layout_t layouts[] = {
        [FAKE_CONTIGUOUS] = H5D_CONTIGUOUS,  [FAKE_COMPACT] = H5D_COMPACT,     [FAKE_CHUNKED] = H5D_CHUNKED,
        [FAKE_VIRTUAL] = H5D_VIRTUAL,        [FAKE_EXTERNAL] = H5D_CONTIGUOUS, [FAKE_UNKNOWN_FILTER] = H5D_CHUNKED,
        [FAKE_DEFLATED_TWICE] = H5D_CHUNKED, [FAKE_HUGE_CHUNK] = H5D_CHUNKED};
    return fake_refuses() ? H5D_LAYOUT_ERROR : layouts[listed(list)->layout & 7];
}

int H5Pget_external_count(hid_t list) {
    return fake_refuses() ? -1 : listed(list)->layout == FAKE_EXTERNAL;
}

int H5Pget_nfilters(hid_t list) {
    return fake_refuses() ? -1 : 2 + (listed(list)->layout == FAKE_DEFLATED_TWICE);
}

H5Z_filter_t H5Pget_filter2(hid_t list, unsigned number, unsigned *flags, size_t *count, unsigned values[],
                            size_t name_size, char name[], unsigned *config) {
    (void)flags, (void)count, (void)values, (void)name_size, (void)name, (void)config;
    if (fake_refuses()) return H5Z_FILTER_ERROR;
    if (listed(list)->layout == FAKE_UNKNOWN_FILTER) return number ? 32015 : H5Z_FILTER_SHUFFLE;
    return number ? H5Z_FILTER_DEFLATE : H5Z_FILTER_SHUFFLE;
}

int H5Pget_chunk(hid_t list, int most, hsize_t sides[]) {
    const fake_node *node = listed(list);
    if (fake_refuses() || most < 1) return -1;
    sides[0] = node->layout == FAKE_HUGE_CHUNK ? UINT32_MAX : 4096;
    return 1;
}

herr_t H5Pset_fapl_core(hid_t list, size_t increment, hbool_t backing) {
    (void)list, (void)increment, (void)backing;
    return fake_refuses() ? -1 : 0;
}

herr_t H5Pset_file_image(hid_t list, void *data, size_t size) {
    (void)list;
    if (fake_refuses()) return -1;
    image = data;
    image_size = size;
    return 0;
}

herr_t H5Pset_file_locking(hid_t list, hbool_t use, hbool_t ignore) {
    (void)list, (void)use, (void)ignore;
    return fake_refuses() ? -1 : 0;
}
