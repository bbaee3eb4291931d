#include "cli/run_sets.h"

#include "cli/cli.h"

#include <stdlib.h>

int run_sets_status(const run_sets *sets) {
    return sets->lacks_memory ? EXIT_MACHINE : EXIT_BAD_INPUT;
}

bool run_sets_take(run_sets *sets, const char *set) {
    if (sets->count == RUN_SETS_MAX) {
        report_usage("--set: more than %d; expected fewer", RUN_SETS_MAX);
        return false;
    }
    sets->list[sets->count++] = set;
    return true;
}

bool run_sets_take_flag(run_sets *sets, const run_flag *flag, const char *value, run_set_maker *make) {
    const char *fault = run_flag_fault(flag, value);
    if (fault) {
        report_usage("--%s: '%s': %s", flag->name, value, fault);
        return false;
    }
    for (int i = 0; i < sets->flag_count; i++) {
        if (!run_flags_rival(flag, sets->flags[i].flag)) continue;
        report_usage("--%s: stands beside --%s; expected one of the two", flag->name, sets->flags[i].flag->name);
        return false;
    }
    if (sets->count == RUN_SETS_MAX) {
        report_usage("--%s: more than %d options; expected fewer", flag->name, RUN_SETS_MAX);
        return false;
    }
    char *set = make(flag, value);
    sets->lacks_memory = !set;
    if (!set) {
        pc_error error;
        pc_error_no_memory(&error);
        report(&error);
        return false;
    }
    sets->flags[sets->flag_count++] = (run_flag_use){flag, value, set};
    return run_sets_take(sets, set);
}

void run_sets_free(run_sets *sets) {
    for (int i = 0; i < sets->flag_count; i++) free(sets->flags[i].set);
    *sets = (run_sets){.count = 0};
}
