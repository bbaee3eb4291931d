/* Prints the MFU of all runs of a results file, and the peak of activation memory of one run that kept its trace.
 *
 * cc read_results.c $(pkg-config --cflags --libs hdf5-serial) -o read_results
 * ./read_results RESULTS.h5 RUN */
#include <hdf5.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static hid_t must(hid_t handle) { /* HDF5 has said on standard error what went wrong */
    if (handle < 0) exit(1);
    return handle;
}

static hsize_t length_of(hid_t dataset) {
    hsize_t length;
    hid_t space = must(H5Dget_space(dataset));
    must(H5Sget_simple_extent_dims(space, &length, NULL)); /* columns have one dimension */
    H5Sclose(space);
    return length;
}

/* The values of a column, converted to `type`, and how many there are; the caller frees them. */
static void *read_column(hid_t group, const char *name, hid_t type, hsize_t *length) {
    hid_t dataset = must(H5Dopen2(group, name, H5P_DEFAULT));
    *length = length_of(dataset);
    void *values = malloc(*length * H5Tget_size(type) + 1);
    if (!values) exit(1);
    must(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    H5Dclose(dataset);
    return values;
}

/* Units and descriptions are texts of variable length: HDF5 makes room, the caller gives it back to H5free_memory. */
static char *read_unit(hid_t group, const char *name) {
    char *unit;
    hid_t attribute = must(H5Aopen_by_name(group, name, "unit", H5P_DEFAULT, H5P_DEFAULT));
    hid_t type = must(H5Aget_type(attribute));
    must(H5Aread(attribute, type, &unit));
    H5Tclose(type);
    H5Aclose(attribute);
    return unit;
}

static void print_runs(hid_t runs) {
    enum { NAME_SIZE = 256 }; /* room for the longest name; HDF5 fits the stored ones in */
    hsize_t count;
    hid_t text = must(H5Tcopy(H5T_C_S1));
    H5Tset_size(text, NAME_SIZE);
    H5Tset_cset(text, H5T_CSET_UTF8);
    char *names = read_column(runs, "name", text, &count);
    double *mfu = read_column(runs, "mfu", H5T_NATIVE_DOUBLE, &count);
    char *unit = read_unit(runs, "mfu");
    printf("run, MFU [%s]\n", unit);
    for (hsize_t i = 0; i < count; i++) printf("%s, %.17g\n", names + i * NAME_SIZE, mfu[i]); /* nan: not defined */
    H5free_memory(unit);
    free(names);
    free(mfu);
    H5Tclose(text);
}

static void print_peak(hid_t trace, const char *run) {
    hsize_t count, peak = 0;
    int64_t *level = read_column(trace, "level_bytes", H5T_NATIVE_INT64, &count);
    int64_t *at = read_column(trace, "level_time_ps", H5T_NATIVE_INT64, &count);
    int64_t *device = read_column(trace, "level_device", H5T_NATIVE_INT64, &count);
    char *bytes = read_unit(trace, "level_bytes"), *time = read_unit(trace, "level_time_ps");
    for (hsize_t i = 1; i < count; i++)
        if (level[i] > level[peak]) peak = i;
    if (count > 0)
        printf("peak of run %s: %" PRId64 " %s on stage %" PRId64 " at %" PRId64 " %s\n", run, level[peak], bytes,
               device[peak], at[peak], time);
    H5free_memory(bytes);
    H5free_memory(time);
    free(level);
    free(at);
    free(device);
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: read_results RESULTS.h5 RUN\n"), 2;
    hid_t file = must(H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t runs = must(H5Gopen2(file, "runs", H5P_DEFAULT));
    hid_t traces = must(H5Gopen2(file, "traces", H5P_DEFAULT));
    hid_t trace = must(H5Gopen2(traces, argv[2], H5P_DEFAULT));
    print_runs(runs);
    print_peak(trace, argv[2]);
    H5Gclose(trace);
    H5Gclose(traces);
    H5Gclose(runs);
    H5Fclose(file);
    return 0;
}
