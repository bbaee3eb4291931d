/* What a table of a scenario's runs says above its rows: scenario.h has the definitions. */
#include "scenarios/loaded.h"

_Static_assert((int)PC_DIMENSIONS <= (int)PC_SCENARIO_SWEPT_MAX, "all dimensions may be swept at once");

static const char *column_of(pc_dimension dimension) {
    if (dimension == PC_DIMENSION_DEVICES) return "pp";
    return dimension == PC_DIMENSION_CHUNKS ? "virtual_pp" : pc_dimension_rule_of(dimension)->name;
}

bool pc_scenario_only_sweeps(const pc_scenario *scenario, const char *columns[PC_SCENARIO_SWEPT_MAX], int *count) {
    *count = 0;
    for (pc_dimension d = 0; d < PC_DIMENSIONS; d++)
        if (scenario->sweep[d].count > 1) columns[(*count)++] = column_of(d);
    return scenario->case_count == 1;
}
