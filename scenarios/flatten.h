/* flatten.h: a text for libcyaml, in which a schedule that is a mapping has become a word. Private to scenarios/. */
#ifndef PC_SCENARIOS_FLATTEN_H
#define PC_SCENARIOS_FLATTEN_H

#include "engine/error.h"
#include "scenarios/source.h"

/* `schedule: {block: own.yaml, steps: squeeze}` becomes `schedule: "block:squeeze:own.yaml"`, wherever a schedule or a
 * list of them stands. *flat has no text where there is nothing of the kind; else free it with pc_source_free. A
 * mapping with other keys is refused. */
pc_code pc_source_flatten(const pc_source *source, pc_source *flat, pc_error *error);

#endif
