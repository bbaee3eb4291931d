/* generate_private.h: what the files of generators share. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_GENERATE_PRIVATE_H
#define PC_MODELS_SCHEDULE_GENERATE_PRIVATE_H

#include "models/schedule/generate.h"

#include <stddef.h>

/* One stage's order while it is written. */
typedef struct pc_stage_writer {
    pc_pass *next;
    int devices, microbatches, chunks, stage;
} pc_stage_writer;

static inline void pc_stage_put(pc_stage_writer *writer, pc_pass_kind kind, int chunk, int microbatch) {
    *writer->next++ = (pc_pass){.microbatch = microbatch, .chunk = (int16_t)chunk, .kind = (int16_t)kind};
}

/* A rule writes all passes of one stage; `extra` is the generator's. */
typedef void pc_stage_rule(pc_stage_writer *writer, int extra);

/* In generate_bidirectional.c. */
pc_stage_rule pc_write_gems, pc_write_chimera;

#endif
