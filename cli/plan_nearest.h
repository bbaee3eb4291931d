/* plan_nearest.h: why no plan fits: what comes nearest. */
#ifndef PC_CLI_PLAN_NEAREST_H
#define PC_CLI_PLAN_NEAREST_H

#include "models/planner/planner.h"

/* One line on standard error, of a search that found nothing. If a limit of the request is to blame, it says the
 * fastest or the cheapest that fits; else the least memory; else that every point breaks a rule, and which rule most do
 * (`rule`, pc_plan_rule_text's or empty). Searches again for it. */
void plan_nearest_say(const pc_plan_space *space, const pc_plan_request *request, const pc_plan_log *log,
                      const char *rule);

#endif
