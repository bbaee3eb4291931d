/* scenario_files.h: scenario files for the loader's tests: those of tests/data, and a temporary one. */
#ifndef PC_TESTS_SCENARIO_FILES_H
#define PC_TESTS_SCENARIO_FILES_H

#include "scenarios/scenario.h"
#include "tests/support.h"

enum { PATH_SIZE = 1024 };

/* The text of a scenario of one run: 1f1b, 4 devices, 8 microbatches, a millisecond each for F, B and W. */
extern const char *const base;

const char *source_root(void);

/* The path, of PATH_SIZE, of a file in tests/data/scenarios. */
void data_path(const char *name, char *path);

/* The temporary file: made and removed around a group of tests. */
extern char temporary[];
int make_temporary(void **state);
int remove_temporary(void **state);
void write_temporary(const char *text, size_t size);

/* These fail the test where there is an error. load_text goes by the temporary file. */
pc_scenario *load_with(const char *path, const char *const *sets, int set_count);
pc_scenario *load_text(const char *text);
pc_run_spec spec_of(const pc_scenario *scenario, int64_t index);
pc_run_labels labels_of(const pc_scenario *scenario, int64_t index);

/* The message for what cannot be loaded, in static storage; the output must stay untouched. */
const char *message_of(const char *path, const char *const *sets, int set_count);

void assert_starts(const char *text, const char *start);

#endif
