/* gpu_network.h: a machine's links as resources of an engine program, and the routes between its GPUs.
 *
 * Links, each way: a GPU's into its domain; those of the NICs that GPUs of a node have in common (with as many NICs as
 * GPUs each has its own); a leaf's uplinks. A message inside a domain crosses two links, one under a leaf two, one
 * between leaves four. Only the GPUs that are asked for get links. Capacities are efficiency times bandwidth, so that a
 * lone large flow is as fast as in the closed cost. Links have no latency: it differs between a step of a collective
 * and a message, and between protocols, and whoever sends adds it (pc_hop, pc_collective_phase).
 */
#ifndef PC_TESTS_GPU_NETWORK_H
#define PC_TESTS_GPU_NETWORK_H

#include "engine/error.h"
#include "engine/program.h"
#include "models/machine/collective.h"
#include "models/machine/machine.h"
#include "models/machine/ranks.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_network pc_network;

/* For GPUs 0 .. gpus-1 of a checked machine, which is copied. The program must outlive the network. */
pc_code pc_network_create(const pc_machine *machine, int64_t gpus, pc_program *program, pc_network **network,
                          pc_error *error);
void pc_network_free(pc_network *network);

/* The route from one GPU to another, made at the first asking. The same GPU is PC_ERROR_INPUT. */
pc_code pc_network_route(pc_network *network, int64_t from, int64_t to, int32_t *route, pc_error *error);

/* Adds the tasks of a collective among `count` GPUs, given in ascending order, every rank with its own flows. It starts
 * after the tasks `after` (one a rank; PC_NO_RESOURCE entries are skipped). `done` gets for each rank the task with
 * which it is done. No rank goes on before all have come, and none is done before all are: each waits for all others'
 * data. The course is pc_collective_course_of's for a group that lies so, with others like it beside it. On an error
 * the program may hold a part of the tasks. */
pc_code pc_network_add_collective(pc_network *network, const int64_t *gpus, int32_t count, pc_collective collective,
                                  pc_algorithm algorithm, double size_bytes, const int32_t *after, int32_t *done,
                                  pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
