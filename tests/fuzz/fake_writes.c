/* HDF5's functions that only write: no fuzz target writes a file, and all of them refuse. */
#include "tests/fuzz/fake_private.h"

#include <hdf5_hl.h>

hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access) {
    (void)name, (void)flags, (void)creation, (void)access;
    return -1;
}

herr_t H5Fflush(hid_t object, H5F_scope_t scope) {
    (void)object, (void)scope;
    return -1;
}

ssize_t H5Fget_file_image(hid_t file, void *bytes, size_t size) {
    (void)file, (void)bytes, (void)size;
    return -1;
}

hid_t H5Gcreate2(hid_t parent, const char *name, hid_t link, hid_t creation, hid_t access) {
    (void)parent, (void)name, (void)link, (void)creation, (void)access;
    return -1;
}

herr_t H5Ldelete(hid_t parent, const char *name, hid_t access) {
    (void)parent, (void)name, (void)access;
    return -1;
}

hid_t H5Acreate2(hid_t object, const char *name, hid_t type, hid_t space, hid_t creation, hid_t access) {
    (void)object, (void)name, (void)type, (void)space, (void)creation, (void)access;
    return -1;
}

herr_t H5Awrite(hid_t attribute, hid_t type, const void *value) {
    (void)attribute, (void)type, (void)value;
    return -1;
}

hid_t H5Dcreate2(hid_t parent, const char *name, hid_t type, hid_t space, hid_t link, hid_t creation, hid_t access) {
    (void)parent, (void)name, (void)type, (void)space, (void)link, (void)creation, (void)access;
    return -1;
}

herr_t H5Dset_extent(hid_t dataset, const hsize_t sides[]) {
    (void)dataset, (void)sides;
    return -1;
}

herr_t H5Dwrite(hid_t dataset, hid_t type, hid_t here, hid_t there, hid_t transfer, const void *values) {
    (void)dataset, (void)type, (void)here, (void)there, (void)transfer, (void)values;
    return -1;
}

herr_t H5DSset_scale(hid_t dataset, const char *name) {
    (void)dataset, (void)name;
    return -1;
}

herr_t H5DSattach_scale(hid_t dataset, hid_t scale, unsigned dimension) {
    (void)dataset, (void)scale, (void)dimension;
    return -1;
}

hid_t H5Screate(H5S_class_t type) {
    (void)type;
    return -1;
}

herr_t H5Pset_chunk(hid_t list, int rank, const hsize_t sides[]) {
    (void)list, (void)rank, (void)sides;
    return -1;
}

herr_t H5Pset_deflate(hid_t list, unsigned level) {
    (void)list, (void)level;
    return -1;
}

herr_t H5Pset_shuffle(hid_t list) {
    (void)list;
    return -1;
}

herr_t H5Pset_istore_k(hid_t list, unsigned half) {
    (void)list, (void)half;
    return -1;
}

herr_t H5Pset_libver_bounds(hid_t list, H5F_libver_t low, H5F_libver_t high) {
    (void)list, (void)low, (void)high;
    return -1;
}

herr_t H5Pset_obj_track_times(hid_t list, hbool_t track) {
    (void)list, (void)track;
    return -1;
}

herr_t H5check_version(unsigned major, unsigned minor, unsigned release) {
    (void)major, (void)minor, (void)release;
    return 0;
}
