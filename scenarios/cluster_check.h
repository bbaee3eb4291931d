/* cluster_check.h: keys of a cluster's setting that mean nothing, or something else, beside each other. */
#ifndef PC_SCENARIOS_CLUSTER_CHECK_H
#define PC_SCENARIOS_CLUSTER_CHECK_H

#include "scenarios/setting.h"

/* PC_ERROR_INPUT with the key and the rule: "stands without cross_entropy: chunked; expected both or none". What model,
 * cut and machine ask for is theirs to say. */
pc_code pc_setting_check_together(const pc_setting *setting, pc_error *error);

#endif
