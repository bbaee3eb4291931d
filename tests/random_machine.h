/* random_machine.h: machines and ranks for property tests. */
#ifndef PC_TESTS_RANDOM_MACHINE_H
#define PC_TESTS_RANDOM_MACHINE_H

#include "models/machine/machine.h"
#include "models/machine/ranks.h"
#include "tests/plain_machine.h"
#include "tests/support.h"

/* Passes pc_machine_check. Domains smaller and larger than nodes, fewer and more NICs than GPUs, with and without
 * leaves, fast protocols and reduction in the switch; as many nodes as asked for. A step into a domain takes no longer
 * than one out of it. */
pc_machine random_machine(test_random *random);

/* At most `most` GPUs; counts are often powers of two, but not always. */
pc_ranks random_ranks(test_random *random, const pc_machine *machine, int64_t most);

/* A fraction from `least` to `most`, both over 1000. */
double random_thousandths(test_random *random, int64_t least, int64_t most);

#endif
