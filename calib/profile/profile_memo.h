/* profile_memo.h: private to calib/profile_cost*.c: answers to operations, remembered: the runs of a sweep ask for the
 * same ones again and again. Any number of threads; what is full forgets nothing and remembers no more.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_MEMO_H
#define PC_CALIB_PROFILE_PROFILE_MEMO_H

#include "models/cost/cost.h"
#include "models/workload/operation.h"

#include <stdbool.h>

typedef struct pc_memo pc_memo;

pc_memo *pc_memo_make(void); /* NULL where memory is short */
void pc_memo_free(pc_memo *memo);
bool pc_memo_find(pc_memo *memo, const pc_operation *operation, pc_estimate *estimate);
void pc_memo_keep(pc_memo *memo, const pc_operation *operation, pc_estimate estimate);

#endif
