/* h5_disk.h: an HDF5 file that is built on the disk and outlives a disk that is full.
 *
 * HDF5 1.10 may crash or hang when it closes a file to which it could not write. So it is not told: what the disk does
 * not take is kept in memory, HDF5 ends in order, and the caller looks at `cause`. What is kept is little, since a
 * caller stops when it sees a cause: HDF5's caches.
 */
#ifndef PC_STORAGE_H5_DISK_H
#define PC_STORAGE_H5_DISK_H

#include <hdf5.h>

#include <stdint.h>

typedef struct pc_h5_disk {
    int descriptor; /* borrowed; of an empty file, for reading and writing */
    int cause;      /* errno of the first write that failed; 0: none did */
    hid_t driver;
    struct pc_h5_kept *first, *last; /* what was not written, in the order in which it came */
} pc_h5_disk;

/* A new HDF5 file, that writes to `descriptor`; -1 if that fails. `disk` must stay where it is until the file and
 * all in it are closed; then pc_h5_disk_end, also after a failure. */
hid_t pc_h5_disk_file(pc_h5_disk *disk, int descriptor);
void pc_h5_disk_end(pc_h5_disk *disk);

#endif
