/* h5.h: the few things that files of results and profiles need of HDF5, each checked.
 *
 * Functions say false where HDF5 refused; why, only its error stack knows, which stays silent within a quiet scope.
 */
#ifndef PC_STORAGE_H5_H
#define PC_STORAGE_H5_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between the two, HDF5 prints nothing about what fails and loads no plugins, which a file could ask for by their
 * number; afterwards it does as before. */
typedef struct pc_h5_quiet {
    H5E_auto2_t print;
    void *data;
    unsigned plugins;
} pc_h5_quiet;

pc_h5_quiet pc_h5_quiet_begin(void);
void pc_h5_quiet_end(pc_h5_quiet quiet);

/* Whether this thread is between the two. What HDF5 is refused then, it does not survive (cli/allocations.c). */
bool pc_h5_is_at_work(void);

/* A new file that lives in memory and goes nowhere; a group in it; -1 if that fails. Neither they nor what
 * pc_h5_column_write makes hold a time of day. HDF5 tells files in memory apart by name: `owner`, any address that no
 * other open one has, makes it. */
hid_t pc_h5_memory_file(const void *owner);
hid_t pc_h5_group_create(hid_t parent, const char *name);

/* Like pc_h5_memory_file, with a driver of the caller's choice in the property list `access`. */
hid_t pc_h5_create(const void *owner, hid_t access);

/* An existing file, for reading; needs no lock. */
hid_t pc_h5_open(const char *path);

/* The type of a text of `size` bytes, zero-padded UTF-8; the caller closes it. */
hid_t pc_h5_text_type(size_t size);

/* Attributes of a file, group or dataset. */
bool pc_h5_put_text(hid_t object, const char *name, const char *text);
bool pc_h5_put_integer(hid_t object, const char *name, int64_t value);
bool pc_h5_put_real(hid_t object, const char *name, double value);
bool pc_h5_get_text(hid_t object, const char *name, char *text, size_t size);
bool pc_h5_get_integer(hid_t object, const char *name, int64_t *value);
bool pc_h5_get_real(hid_t object, const char *name, double *value);

/* A dataset of one dimension, with what a reader must know of it. */
typedef struct pc_h5_column {
    const char *name, *unit, *description;
    const char *missing; /* how "not defined" is stored; NULL where every value is defined */
    hid_t file_type, memory_type;
    hsize_t count;
    const void *values;
    bool is_plain; /* in one piece as it is: opened several times as fast, for what is small */
    bool grows;    /* more is to come, `count` at a time and less at the end: pc_h5_column_append */
} pc_h5_column;

/* Writes it, chunked and compressed unless it is to be plain, and returns it for the caller to close; -1 on failure. */
hid_t pc_h5_column_write(hid_t group, const pc_h5_column *column);

/* Writes the column's values behind what its dataset has, and returns that, likewise. */
hid_t pc_h5_column_append(hid_t group, const pc_h5_column *column);

/* Whether `parent` (a file or group) has a link of that name, wherever it leads; true as well where that cannot be
 * read: who opens it then learns so, where who takes it for missing would lose it. */
bool pc_h5_has(hid_t parent, const char *name);

/* Opens a group, or any object by its place in the order of names; -1 if there is none, or if the link is none to an
 * object of this file. A soft link can lead to an external one, and that into any file of the user's. */
hid_t pc_h5_group_open(hid_t parent, const char *name);
hid_t pc_h5_object_open(hid_t group, hsize_t place);

/* Whether all that a dataset has is in the file itself, as it is or compressed as pipecast does it. That is: nothing in
 * other files, no other filters, and no chunks of more than 64 MiB, which HDF5 would make in memory for a single
 * number. */
bool pc_h5_is_plain_data(hid_t dataset);

/* Opens a dataset of one dimension for reading, and says its length. -1 if there is none that is plain data, or if the
 * length is more than the file could hold. A length in a damaged file must not decide how much memory is asked for. */
hid_t pc_h5_column_open(hid_t group, const char *name, int64_t *count);

/* Reads elements first .. first + count - 1 of an open one; there must be as many. */
bool pc_h5_column_part(hid_t dataset, hid_t memory_type, int64_t first, int64_t count, void *values);

/* Whether the file could hold so many elements of the dataset, compressed as it is. */
bool pc_h5_can_hold(hid_t dataset, int64_t length);

/* Whether the whole file of `object` could hold `count` rows that take `row_size` bytes in memory, over all columns. */
bool pc_h5_can_hold_rows(hid_t object, int64_t count, size_t row_size);

/* The class of a dataset's elements: H5T_INTEGER, H5T_FLOAT, H5T_STRING (of fixed length), H5T_ENUM, or H5T_NO_CLASS.
 */
H5T_class_t pc_h5_column_class(hid_t dataset);

#endif
