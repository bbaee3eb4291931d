/* iteration_experts.h: mixtures of experts for the specs of iteration_example.h, drawn at random. */
#ifndef PC_TESTS_ITERATION_EXPERTS_H
#define PC_TESTS_ITERATION_EXPERTS_H

#include "models/training/iteration.h"
#include "tests/support.h"

/* Half of the time: experts, their ranks (ep, etp), dispatcher, load and capacity; perhaps latent attention and layers
 * of multi-token prediction. What cannot be with them goes. The spec is as it was where its cut allows none. What is
 * drawn next from `from` is what it was. Says whether experts have groups of their own. */
bool random_folded_experts(const test_random *from, pc_iteration_spec *spec);

#endif
