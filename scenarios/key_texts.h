/* key_texts.h: what the keys of a scenario mean, in words, but for those of a setting and a sweep, of which settings.h
 * has more. Private to scenarios/. */
#ifndef PC_SCENARIOS_KEY_TEXTS_H
#define PC_SCENARIOS_KEY_TEXTS_H

#include "scenarios/key_list.h"

typedef struct pc_key_text {
    pc_key_section section;
    const char *path;      /* as in pc_scenario_key */
    const char *value;     /* NULL: the table that checks the key's value knows it */
    const char *otherwise; /* NULL: the key is required */
    const char *description;
} pc_key_text;

/* All of them, `*count`, in no order that matters. Static storage. */
const pc_key_text *pc_key_texts(int *count);

#endif
