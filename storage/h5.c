#include "storage/h5.h"

#include <stdio.h>

enum {
    MEMORY_INCREMENT = 4 << 20, /* by how much a file in memory grows */
    CHUNK_BYTES = 256 << 10,    /* of a dataset's chunk, before compression; well within HDF5's cache of 1 MiB */
    CHUNK_TREE_WIDTH = 4,       /* children of an index node: few, since most datasets have one chunk */
    DEFLATE_LEVEL = 6,
    DEFLATE_RATIO_MAX = 1040,  /* deflate cannot do better than 1032:1 */
    CHUNK_BYTES_MAX = 64 << 20 /* of others' chunks, before compression */
};

static _Thread_local int at_work = 0;

pc_h5_quiet pc_h5_quiet_begin(void) {
    pc_h5_quiet quiet;
    at_work++; /* before the first call, which sets the library up */
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (H5PLget_loading_state(&quiet.plugins) < 0) quiet.plugins = H5PL_ALL_PLUGIN;
    H5PLset_loading_state(0);
    return quiet;
}

void pc_h5_quiet_end(pc_h5_quiet quiet) {
    H5PLset_loading_state(quiet.plugins);
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, quiet.print, quiet.data);
    at_work--;
}

bool pc_h5_is_at_work(void) {
    return at_work > 0;
}

/* Property lists: `made` is -1 where HDF5 had no memory; then nothing that uses it succeeds. */
static bool set_up_creation(hid_t made) {
    return made >= 0 && H5Pset_obj_track_times(made, false) >= 0 && H5Pset_istore_k(made, CHUNK_TREE_WIDTH) >= 0;
}

/* The earliest layout, which every HDF5 reads. Later ones note the time of day in the root group whatever its
 * properties say, and of those H5Fget_file_image of 1.10 spoils the superblock's checksum. */
static bool set_up_access(hid_t made) {
    return made >= 0 && H5Pset_libver_bounds(made, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0;
}

hid_t pc_h5_create(const void *owner, hid_t access) {
    char name[64];
    snprintf(name, sizeof name, "pipecast-results-%p", owner);
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), file = -1;
    if (set_up_creation(creation) && set_up_access(access)) file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    return file;
}

hid_t pc_h5_memory_file(const void *owner) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (access >= 0 && H5Pset_fapl_core(access, MEMORY_INCREMENT, false) >= 0) file = pc_h5_create(owner, access);
    H5Pclose(access);
    return file;
}

hid_t pc_h5_open(const char *path) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0) file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

hid_t pc_h5_group_create(hid_t parent, const char *name) {
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE), group = -1;
    if (creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0)
        group = H5Gcreate2(parent, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    return group;
}

/* --- types and attributes --- */

hid_t pc_h5_text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return -1;
    if (H5Tset_size(type, size) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
        (size == H5T_VARIABLE || H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0))
        return type;
    H5Tclose(type);
    return -1;
}

static bool put(hid_t object, const char *name, hid_t file_type, hid_t memory_type, const void *value) {
    hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
    if (space >= 0) attribute = H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool done = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
    if (attribute >= 0) H5Aclose(attribute);
    if (space >= 0) H5Sclose(space);
    return done;
}

/* Of variable length, which h5py hands out as str where it makes bytes of a fixed one. */
bool pc_h5_put_text(hid_t object, const char *name, const char *text) {
    hid_t type = pc_h5_text_type(H5T_VARIABLE);
    bool done = type >= 0 && put(object, name, type, type, &text);
    if (type >= 0) H5Tclose(type);
    return done;
}

bool pc_h5_put_integer(hid_t object, const char *name, int64_t value) {
    return put(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

bool pc_h5_put_real(hid_t object, const char *name, double value) {
    return put(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

/* An attribute of exactly one element, whose type `*type` the caller closes; -1 if there is none. */
static hid_t open_scalar(hid_t object, const char *name, hid_t *type) {
    if (H5Aexists(object, name) <= 0) return -1;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0) return -1;
    hid_t space = H5Aget_space(attribute);
    bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0) H5Sclose(space);
    *type = one ? H5Aget_type(attribute) : -1;
    if (*type >= 0) return attribute;
    H5Aclose(attribute);
    return -1;
}

static bool get_number(hid_t object, const char *name, hid_t memory_type, void *value) {
    hid_t type, attribute = open_scalar(object, name, &type);
    if (attribute < 0) return false;
    H5T_class_t class = H5Tget_class(type);
    bool done = (class == H5T_INTEGER || class == H5T_FLOAT) && H5Aread(attribute, memory_type, value) >= 0;
    H5Tclose(type);
    H5Aclose(attribute);
    return done;
}

bool pc_h5_get_integer(hid_t object, const char *name, int64_t *value) {
    return get_number(object, name, H5T_NATIVE_INT64, value);
}

bool pc_h5_get_real(hid_t object, const char *name, double *value) {
    return get_number(object, name, H5T_NATIVE_DOUBLE, value);
}

static bool read_variable_text(hid_t attribute, hid_t type, char *text, size_t size) {
    char *value = NULL;
    if (H5Aread(attribute, type, &value) < 0) return false;
    snprintf(text, size, "%s", value ? value : "");
    H5free_memory(value);
    return true;
}

/* Cut to size where it is longer. */
static bool read_fixed_text(hid_t attribute, char *text, size_t size) {
    hid_t type = pc_h5_text_type(size - 1);
    bool done = type >= 0 && H5Aread(attribute, type, text) >= 0;
    text[done ? size - 1 : 0] = '\0';
    if (type >= 0) H5Tclose(type);
    return done;
}

bool pc_h5_get_text(hid_t object, const char *name, char *text, size_t size) {
    hid_t type, attribute = open_scalar(object, name, &type);
    if (attribute < 0) return false;
    bool done = false;
    if (H5Tis_variable_str(type) > 0)
        done = read_variable_text(attribute, type, text, size);
    else if (H5Tget_class(type) == H5T_STRING)
        done = read_fixed_text(attribute, text, size);
    H5Tclose(type);
    H5Aclose(attribute);
    return done;
}

/* --- columns --- */

static bool set_up_layout(hid_t made, const pc_h5_column *column) {
    hsize_t count = column->count;
    size_t size = H5Tget_size(column->file_type);
    if (made < 0 || size == 0 || H5Pset_obj_track_times(made, false) < 0) return false;
    if (column->is_plain) return true;
    if (count == 0) return true; /* a chunk has at least one element: nothing is stored, so nothing is chunked */
    hsize_t chunk = column->grows || CHUNK_BYTES / size >= count ? count : CHUNK_BYTES / size;
    if (chunk == 0) chunk = 1;
    return H5Pset_chunk(made, 1, &chunk) >= 0 && H5Pset_shuffle(made) >= 0 && H5Pset_deflate(made, DEFLATE_LEVEL) >= 0;
}

static hid_t create_column(hid_t group, const pc_h5_column *column) {
    const hsize_t most = H5S_UNLIMITED;
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), dataset = -1;
    hid_t space = H5Screate_simple(1, &column->count, column->grows ? &most : NULL);
    if (space >= 0 && set_up_layout(creation, column))
        dataset = H5Dcreate2(group, column->name, column->file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (space >= 0) H5Sclose(space);
    if (creation >= 0) H5Pclose(creation);
    return dataset;
}

static bool describe_column(hid_t dataset, const pc_h5_column *column) {
    return pc_h5_put_text(dataset, "unit", column->unit) &&
           pc_h5_put_text(dataset, "description", column->description) &&
           (!column->missing || pc_h5_put_text(dataset, "missing", column->missing));
}

hid_t pc_h5_column_write(hid_t group, const pc_h5_column *column) {
    hid_t dataset = create_column(group, column);
    if (dataset < 0) return -1;
    bool written = column->count == 0 ||
                   H5Dwrite(dataset, column->memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, column->values) >= 0;
    if (written && describe_column(dataset, column)) return dataset;
    H5Dclose(dataset);
    return -1;
}

/* The one dimension's length; -1 if there is not one. */
static int64_t length_of(hid_t dataset) {
    hid_t space = H5Dget_space(dataset);
    if (space < 0) return -1;
    hsize_t length = 0;
    bool one = H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &length, NULL) == 1;
    H5Sclose(space);
    return one && length <= INT64_MAX ? (int64_t)length : -1;
}

/* Elements first .. first + count - 1 of a dataset of one dimension; the caller closes it. */
static hid_t select_part(hid_t dataset, int64_t first, int64_t count) {
    const hsize_t start = (hsize_t)first, length = (hsize_t)count;
    hid_t space = H5Dget_space(dataset);
    if (space < 0) return -1;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &length, NULL) >= 0) return space;
    H5Sclose(space);
    return -1;
}

hid_t pc_h5_column_append(hid_t group, const pc_h5_column *column) {
    hid_t dataset = H5Dopen2(group, column->name, H5P_DEFAULT);
    int64_t length = dataset >= 0 ? length_of(dataset) : -1;
    if (length < 0) return dataset >= 0 ? (H5Dclose(dataset), -1) : -1;
    const hsize_t total = (hsize_t)length + column->count;
    hid_t here = H5Screate_simple(1, &column->count, NULL), there = -1;
    if (here >= 0 && H5Dset_extent(dataset, &total) >= 0) there = select_part(dataset, length, (int64_t)column->count);
    bool done = there >= 0 && H5Dwrite(dataset, column->memory_type, here, there, H5P_DEFAULT, column->values) >= 0;
    if (there >= 0) H5Sclose(there);
    if (here >= 0) H5Sclose(here);
    if (done) return dataset;
    H5Dclose(dataset);
    return -1;
}

bool pc_h5_has(hid_t parent, const char *name) {
    return H5Lexists(parent, name, H5P_DEFAULT) != 0;
}

/* --- opening what another program may have made --- */

hid_t pc_h5_group_open(hid_t parent, const char *name) {
    H5L_info_t link;
    if (H5Lget_info(parent, name, &link, H5P_DEFAULT) < 0) return -1;
    return link.type == H5L_TYPE_HARD ? H5Gopen2(parent, name, H5P_DEFAULT) : -1;
}

hid_t pc_h5_object_open(hid_t group, hsize_t place) {
    H5L_info_t link;
    if (H5Lget_info_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, place, &link, H5P_DEFAULT) < 0) return -1;
    if (link.type != H5L_TYPE_HARD) return -1;
    return H5Oopen_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, place, H5P_DEFAULT);
}

static size_t element_size(hid_t dataset) {
    hid_t type = H5Dget_type(dataset);
    if (type < 0) return 0;
    size_t size = H5Tget_size(type);
    H5Tclose(type);
    return size;
}

/* Each filter once: what is compressed twice may grow by the square of what one does. */
static bool has_known_filters(hid_t creation) {
    int count = H5Pget_nfilters(creation), used = 0;
    for (int i = 0; i < count; i++) {
        unsigned flags;
        size_t no_values = 0;
        H5Z_filter_t filter = H5Pget_filter2(creation, (unsigned)i, &flags, &no_values, NULL, 0, NULL, NULL);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            return false;
        if (used & 1 << filter) return false;
        used |= 1 << filter;
    }
    return count >= 0;
}

static bool has_small_chunks(hid_t creation, hid_t dataset) {
    hsize_t sides[H5S_MAX_RANK], elements = 1, size = element_size(dataset);
    int rank = H5Pget_chunk(creation, H5S_MAX_RANK, sides);
    if (rank < 1 || size < 1) return false;
    for (int i = 0; i < rank; i++) {
        if (sides[i] < 1 || sides[i] > CHUNK_BYTES_MAX / elements) return false;
        elements *= sides[i];
    }
    return size <= CHUNK_BYTES_MAX / elements;
}

bool pc_h5_is_plain_data(hid_t dataset) {
    hid_t creation = H5Dget_create_plist(dataset);
    if (creation < 0) return false;
    H5D_layout_t layout = H5Pget_layout(creation);
    bool is_plain = layout == H5D_COMPACT || (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation) == 0);
    if (layout == H5D_CHUNKED) is_plain = has_known_filters(creation) && has_small_chunks(creation, dataset);
    H5Pclose(creation);
    return is_plain;
}

/* 0 if that is not known. */
static hsize_t file_size_of(hid_t object) {
    hsize_t size = 0;
    hid_t file = H5Iget_file_id(object);
    bool known = file >= 0 && H5Fget_filesize(file, &size) >= 0;
    if (file >= 0) H5Fclose(file);
    return known ? size : 0;
}

bool pc_h5_can_hold(hid_t dataset, int64_t length) {
    hsize_t stored = H5Dget_storage_size(dataset), size = element_size(dataset);
    if (size == 0 || stored > file_size_of(dataset)) return false;
    return (hsize_t)length <= stored * DEFLATE_RATIO_MAX / size;
}

bool pc_h5_can_hold_rows(hid_t object, int64_t count, size_t row_size) {
    return (hsize_t)count <= file_size_of(object) * DEFLATE_RATIO_MAX / row_size;
}

static hid_t open_plain_data(hid_t group, const char *name) {
    H5L_info_t link;
    if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0) return -1;
    hid_t dataset = link.type == H5L_TYPE_HARD ? H5Dopen2(group, name, H5P_DEFAULT) : -1;
    if (dataset < 0 || pc_h5_is_plain_data(dataset)) return dataset;
    H5Dclose(dataset);
    return -1;
}

hid_t pc_h5_column_open(hid_t group, const char *name, int64_t *count) {
    hid_t dataset = open_plain_data(group, name);
    if (dataset < 0) return -1;
    int64_t length = length_of(dataset);
    if (length >= 0 && pc_h5_can_hold(dataset, length)) return *count = length, dataset;
    H5Dclose(dataset);
    return -1;
}

bool pc_h5_column_part(hid_t dataset, hid_t memory_type, int64_t first, int64_t count, void *values) {
    const hsize_t length = (hsize_t)count;
    hid_t there = select_part(dataset, first, count), here = H5Screate_simple(1, &length, NULL);
    bool done = there >= 0 && here >= 0 && H5Dread(dataset, memory_type, here, there, H5P_DEFAULT, values) >= 0;
    if (here >= 0) H5Sclose(here);
    if (there >= 0) H5Sclose(there);
    return done;
}

H5T_class_t pc_h5_column_class(hid_t dataset) {
    hid_t type = H5Dget_type(dataset);
    if (type < 0) return H5T_NO_CLASS;
    H5T_class_t class = H5Tis_variable_str(type) > 0 ? H5T_NO_CLASS : H5Tget_class(type);
    H5Tclose(type);
    return class;
}
