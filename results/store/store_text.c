/* Whole texts: scenarios, words. */
#include "engine/alloc.h"
#include "results/store/store_private.h"

hid_t pc_store_text_write(hid_t group, const char *name, const char *text, size_t size) {
    const char *bytes = size ? text : ""; /* HDF5 has no text of no bytes: one zero byte */
    hid_t type = pc_h5_text_type(size ? size : 1), space = H5Screate(H5S_SCALAR);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), dataset = -1;
    if (type >= 0 && space >= 0 && creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0)
        dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    bool written = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0;
    if (creation >= 0) H5Pclose(creation);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (written || dataset < 0) return dataset;
    H5Dclose(dataset);
    return -1;
}

/* What a text takes in memory, at most what the file holds of it; 0 if it is none. */
static size_t text_size(hid_t dataset) {
    if (!pc_h5_is_plain_data(dataset)) return 0;
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    bool is_text = type >= 0 && space >= 0 && pc_h5_column_class(dataset) == H5T_STRING &&
                   H5Sget_simple_extent_npoints(space) == 1;
    size_t size = is_text ? H5Tget_size(type) : 0;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return size <= H5Dget_storage_size(dataset) && pc_h5_can_hold(dataset, 1) ? size : 0;
}

pc_code pc_store_text_read(hid_t dataset, char **text, size_t *size, pc_error *error) {
    size_t stored = text_size(dataset);
    if (stored == 0) return pc_store_refuse(error, "text");
    char *made = pc_alloc(stored + 1, 1);
    if (!made) return pc_error_no_memory(error);
    hid_t type = pc_h5_text_type(stored);
    bool done = type >= 0 && H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) >= 0;
    if (type >= 0) H5Tclose(type);
    if (!done) {
        pc_free(made);
        return pc_store_refuse(error, "text");
    }
    *text = made;
    *size = stored == 1 && made[0] == '\0' ? 0 : stored;
    return PC_OK;
}
