/* instance_example.h: instances at random, with an order that can run and limits that it keeps. */
#ifndef PC_TESTS_INSTANCE_EXAMPLE_H
#define PC_TESTS_INSTANCE_EXAMPLE_H

#include "tests/support.h"

#include "models/schedule/search/instance.h"

typedef struct instance_example {
    pc_costs costs;
    pc_placement placement;
    bool splits;
    int microbatches;
    pc_instance instance;
    pc_instance_order order;
    int64_t limit[8];
} instance_example;

/* Of its own; free with the last one. */
void instance_example_draw(test_random *random, instance_example *e);
void instance_example_free(instance_example *e);

/* New durations and activations, on what is drawn. */
void instance_example_costs(test_random *random, const instance_example *e);

/* The order as a schedule, which the caller frees; the activations that one holds at most on a device. */
pc_schedule instance_example_schedule(const instance_example *e);
int64_t instance_example_peak(const pc_costs *costs, const pc_schedule *s, int device);

#endif
