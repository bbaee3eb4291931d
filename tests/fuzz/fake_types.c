/* HDF5's functions over a described file: types, spaces, values; and those that only write, which all refuse. */
#include "tests/fuzz/fake_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_type {
    bool is_used;
    int class;
    size_t size;
    bool is_utf8, is_terminated;
} fake_type;

typedef struct fake_space {
    bool is_used;
    int rank;
    uint64_t side, elements, first, count;
    bool is_part;
} fake_space;

enum { SLOTS = 64, NATIVES = 16, READ_MAX = 4096 };

/* The first ones are HDF5's own, for good. */
enum { NATIVE_INT16 = 1, NATIVE_INT32, NATIVE_INT64, NATIVE_DOUBLE, NATIVE_TEXT, NATIVE_UINT8 };
static fake_type types[SLOTS] = {
    [NATIVE_INT16] = {true, FAKE_INTEGER, 2, false, false}, [NATIVE_INT32] = {true, FAKE_INTEGER, 4, false, false},
    [NATIVE_INT64] = {true, FAKE_INTEGER, 8, false, false}, [NATIVE_DOUBLE] = {true, FAKE_REAL, 8, false, false},
    [NATIVE_TEXT] = {true, FAKE_TEXT, 1, false, true},      [NATIVE_UINT8] = {true, FAKE_INTEGER, 1, false, false},
};
static fake_space spaces[SLOTS];

hid_t H5T_NATIVE_INT16_g = FAKE_TYPE_ID + NATIVE_INT16, H5T_NATIVE_INT32_g = FAKE_TYPE_ID + NATIVE_INT32,
      H5T_NATIVE_INT64_g = FAKE_TYPE_ID + NATIVE_INT64, H5T_NATIVE_DOUBLE_g = FAKE_TYPE_ID + NATIVE_DOUBLE,
      H5T_C_S1_g = FAKE_TYPE_ID + NATIVE_TEXT, H5T_STD_I8LE_g = FAKE_TYPE_ID + NATIVE_INT16,
      H5T_STD_I16LE_g = FAKE_TYPE_ID + NATIVE_INT16, H5T_STD_I32LE_g = FAKE_TYPE_ID + NATIVE_INT32,
      H5T_STD_I64LE_g = FAKE_TYPE_ID + NATIVE_INT64, H5T_IEEE_F64LE_g = FAKE_TYPE_ID + NATIVE_DOUBLE,
      H5T_NATIVE_UINT8_g = FAKE_TYPE_ID + NATIVE_UINT8, H5T_STD_U8LE_g = FAKE_TYPE_ID + NATIVE_UINT8;

void fake_require_inside(const fake_node *node) {
    if (node->kind != 2 || node->layout < FAKE_VIRTUAL) return;
    fprintf(stderr, "fake_hdf5: the data of '%s', which are elsewhere, were asked for\n", node->name);
    abort();
}

bool fake_types_closed(void) {
    bool closed = fake_lists_closed();
    for (int i = NATIVES; i < SLOTS; i++) {
        closed = closed && !types[i].is_used;
        types[i].is_used = false;
    }
    for (int i = 0; i < SLOTS; i++) {
        closed = closed && !spaces[i].is_used;
        spaces[i].is_used = false;
    }
    if (!closed) fprintf(stderr, "fake_hdf5: a type, space or property list is still open\n");
    return closed;
}

/* ---- types ---- */

static fake_type *type_of(hid_t id) {
    int index = (int)(id - FAKE_TYPE_ID);
    if (id >= FAKE_TYPE_ID && index < SLOTS && types[index].is_used) return &types[index];
    fprintf(stderr, "fake_hdf5: type %lld is not open\n", (long long)id);
    abort();
}

static hid_t keep_type(fake_type type) {
    if (fake_refuses()) return -1;
    type.is_used = true;
    for (int i = NATIVES; i < SLOTS; i++) {
        if (types[i].is_used) continue;
        types[i] = type;
        return FAKE_TYPE_ID + i;
    }
    abort(); /* so many are never open */
}

hid_t fake_type_make(const fake_node *node) {
    return keep_type((fake_type){.class = node->class, .size = node->size, .is_utf8 = node->is_utf8});
}

hid_t H5Tcopy(hid_t type) {
    return keep_type(*type_of(type));
}

herr_t H5Tclose(hid_t type) {
    if (type < FAKE_TYPE_ID + NATIVES) abort(); /* HDF5's own */
    type_of(type)->is_used = false;
    return 0;
}

herr_t H5Tset_size(hid_t type, size_t size) {
    if (fake_refuses() || size == 0) return -1;
    if (size == H5T_VARIABLE) type_of(type)->class = FAKE_VARIABLE_TEXT;
    type_of(type)->size = size;
    return 0;
}

herr_t H5Tset_cset(hid_t type, H5T_cset_t set) {
    type_of(type)->is_utf8 = set == H5T_CSET_UTF8;
    return fake_refuses() ? -1 : 0;
}

H5T_cset_t H5Tget_cset(hid_t type) {
    return type_of(type)->is_utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII;
}

herr_t H5Tset_strpad(hid_t type, H5T_str_t pad) {
    type_of(type)->is_terminated = pad == H5T_STR_NULLTERM;
    return fake_refuses() ? -1 : 0;
}

H5T_class_t H5Tget_class(hid_t type) {
    static const H5T_class_t classes[] = {H5T_INTEGER, H5T_FLOAT,    H5T_STRING, H5T_ENUM,
                                          H5T_STRING,  H5T_COMPOUND, H5T_VLEN,   H5T_ARRAY};
    return fake_refuses() ? H5T_NO_CLASS : classes[type_of(type)->class & 7];
}

size_t H5Tget_size(hid_t type) {
    return fake_refuses() ? 0 : type_of(type)->size;
}

htri_t H5Tis_variable_str(hid_t type) {
    return fake_refuses() ? -1 : type_of(type)->class == FAKE_VARIABLE_TEXT;
}

hid_t H5Tenum_create(hid_t base) {
    return keep_type((fake_type){.class = FAKE_ENUM, .size = type_of(base)->size});
}

herr_t H5Tenum_insert(hid_t type, const char *name, const void *value) {
    (void)name, (void)value;
    type_of(type);
    return fake_refuses() ? -1 : 0;
}

herr_t H5Tconvert(hid_t from, hid_t to, size_t count, void *values, void *background, hid_t transfer) {
    (void)count, (void)values, (void)background, (void)transfer;
    type_of(from), type_of(to);
    return fake_refuses() ? -1 : 0;
}

/* ---- spaces ---- */

static fake_space *space_of(hid_t id) {
    int index = (int)(id - FAKE_SPACE_ID);
    if (id >= FAKE_SPACE_ID && index < SLOTS && spaces[index].is_used) return &spaces[index];
    fprintf(stderr, "fake_hdf5: space %lld is not open\n", (long long)id);
    abort();
}

static hid_t keep_space(fake_space space) {
    if (fake_refuses()) return -1;
    space.is_used = true;
    for (int i = 0; i < SLOTS; i++) {
        if (spaces[i].is_used) continue;
        spaces[i] = space;
        return FAKE_SPACE_ID + i;
    }
    abort();
}

hid_t fake_space_make(const fake_node *node) {
    return keep_space((fake_space){.rank = node->rank, .side = node->sides[0], .elements = node->elements});
}

hid_t H5Screate_simple(int rank, const hsize_t sides[], const hsize_t most[]) {
    (void)most;
    return keep_space((fake_space){.rank = rank, .side = sides[0], .elements = sides[0]});
}

herr_t H5Sclose(hid_t space) {
    space_of(space)->is_used = false;
    return 0;
}

hssize_t H5Sget_simple_extent_npoints(hid_t space) {
    return space >= 0 && !fake_refuses() ? (hssize_t)space_of(space)->elements : -1;
}

int H5Sget_simple_extent_ndims(hid_t space) {
    return fake_refuses() ? -1 : space_of(space)->rank % 255;
}

int H5Sget_simple_extent_dims(hid_t space, hsize_t sides[], hsize_t most[]) {
    (void)most;
    if (fake_refuses()) return -1;
    sides[0] = space_of(space)->side;
    return space_of(space)->rank;
}

herr_t H5Sselect_hyperslab(hid_t space, H5S_seloper_t how, const hsize_t start[], const hsize_t stride[],
                           const hsize_t count[], const hsize_t block[]) {
    (void)how, (void)stride, (void)block;
    fake_space *part = space_of(space);
    if (fake_refuses()) return -1;
    part->is_part = true;
    part->first = start[0];
    part->count = count[0];
    return part->first > part->side || part->count > part->side - part->first ? -1 : 0;
}

/* ---- values ---- */

static uint64_t bits_of(const fake_node *node, uint64_t element) {
    uint64_t value = 0, start = node->data_size ? element * node->size % node->data_size : 0;
    for (size_t i = 0; i < 8 && i < node->size && node->data_size; i++)
        value |= (uint64_t)node->data[(start + i) % node->data_size] << (8 * i);
    return value;
}

static int64_t integer_of(const fake_node *node, uint64_t element) {
    unsigned unused = node->size >= 8 ? 0 : 64 - 8 * (unsigned)node->size;
    return node->size ? (int64_t)(bits_of(node, element) << unused) >> unused : 0;
}

static double real_of(const fake_node *node, uint64_t element) {
    uint64_t bits = bits_of(node, element);
    double wide;
    if (node->class != FAKE_REAL) return (double)integer_of(node, element);
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* As HDF5: cut to size, with a NUL behind it only where the type wants one. */
static void put_text(const fake_node *node, uint64_t element, const fake_type *type, char *to) {
    uint64_t start = node->data_size ? element * node->size % node->data_size : 0;
    memset(to, 0, type->size);
    for (size_t i = 0; i < node->size && i < type->size && node->data_size; i++) {
        to[i] = (char)node->data[(start + i) % node->data_size];
        if (!to[i]) break;
    }
    if (type->is_terminated) to[type->size - 1] = '\0';
}

static bool put_number(const fake_node *node, uint64_t element, const fake_type *type, char *to) {
    int64_t integer = 0;
    double real = real_of(node, element);
    if (node->class != FAKE_REAL) integer = integer_of(node, element);
    /* cppcheck-suppress incorrectLogicOperator ; it cannot read 0x1p63 */
    else if (real >= -0x1p63 && real < 0x1p63)
        integer = (int64_t)real;
    if (type->class == FAKE_REAL)
        memcpy(to, &real, sizeof real);
    else
        memcpy(to, &integer, type->size); /* little-endian */
    return true;
}

static bool are_numbers(int class) {
    return class == FAKE_INTEGER || class == FAKE_REAL;
}

static herr_t put_values(const fake_node *node, const fake_type *type, uint64_t first, uint64_t count, char *to) {
    bool fits = are_numbers(node->class) ? are_numbers(type->class) : node->class == type->class;
    if (node->class == FAKE_TEXT) fits = fits && node->is_utf8 == type->is_utf8;
    if (!fits || node->size == 0 || count > READ_MAX || fake_refuses()) return -1;
    for (uint64_t i = 0; i < count; i++, to += type->size)
        if (node->class == FAKE_TEXT)
            put_text(node, first + i, type, to);
        else
            put_number(node, first + i, type, to);
    return 0;
}

herr_t H5Dread(hid_t dataset, hid_t type, hid_t here, hid_t there, hid_t transfer, void *values) {
    (void)transfer;
    const fake_node *node = fake_node_of(dataset);
    fake_require_inside(node);
    if (there == H5S_ALL) return put_values(node, type_of(type), 0, node->elements, values);
    const fake_space *part = space_of(there);
    if (!part->is_part || space_of(here)->elements != part->count) abort();
    return put_values(node, type_of(type), part->first, part->count, values);
}

herr_t H5Aread(hid_t attribute, hid_t type, void *value) {
    const fake_node *node = fake_node_of(attribute);
    if (node->class != FAKE_VARIABLE_TEXT || type_of(type)->class != FAKE_VARIABLE_TEXT)
        return put_values(node, type_of(type), 0, node->elements, value);
    if (fake_refuses()) return -1;
    char *text = node->data_size ? malloc(node->data_size + 1) : NULL;
    if (text) memcpy(text, node->data, node->data_size);
    if (text) text[node->data_size] = '\0';
    memcpy(value, &text, sizeof text);
    return 0;
}

herr_t H5free_memory(void *block) {
    free(block);
    return 0;
}

/* ---- errors and plugins ---- */

herr_t H5Eget_auto2(hid_t stack, H5E_auto2_t *print, void **data) {
    (void)stack;
    *print = NULL;
    *data = NULL;
    return 0;
}

herr_t H5Eset_auto2(hid_t stack, H5E_auto2_t print, void *data) {
    (void)stack, (void)print, (void)data;
    return 0;
}

herr_t H5Eclear2(hid_t stack) {
    (void)stack;
    return 0;
}

herr_t H5PLget_loading_state(unsigned *state) {
    *state = 0;
    return 0;
}

herr_t H5PLset_loading_state(unsigned state) {
    (void)state;
    return 0;
}
