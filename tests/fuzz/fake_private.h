/* fake_private.h: private to tests/fuzz/fake_*.c: ids, and which file has what. */
#ifndef PC_TESTS_FAKE_PRIVATE_H
#define PC_TESTS_FAKE_PRIVATE_H

#include "tests/fuzz/fake_hdf5.h"

/* Each sort of id begins here; behind it comes its number. */
enum { FAKE_NODE_ID = 10000, FAKE_TYPE_ID = 20000, FAKE_SPACE_ID = 30000, FAKE_LIST_ID = 40000 };

/* Whether it is this call's turn to be refused. */
bool fake_refuses(void);

/* An open object; aborts where it is not. */
fake_node *fake_node_of(hid_t id);

/* Aborts where the data of a dataset are not in its file, or compressed as nobody asked for. */
void fake_require_inside(const fake_node *node);

hid_t fake_type_make(const fake_node *node);
hid_t fake_space_make(const fake_node *node);

/* Whether all of them were closed; forgets those that were not. */
bool fake_types_closed(void);
bool fake_lists_closed(void);

#endif
