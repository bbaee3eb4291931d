/* written_names.h: what people call models, machines, precisions and the like in tables of measured runs, and what that
 * is in the library: the rows of names.csv, part of the library itself.
 *
 * Names are compared squeezed: letters made small, and all that is no letter, no digit and no point between digits left
 * out, so that "LLAMA3_70B", "Llama3 70b" and "llama3-70b" are one; "GPT3-1.3B" and "GPT3-13B" are two.
 */
#ifndef PC_SCENARIOS_WRITTEN_NAMES_H
#define PC_SCENARIOS_WRITTEN_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_written_kind {
    PC_WRITTEN_MODEL,     /* a file of the library's models */
    PC_WRITTEN_MACHINE,   /* of its machines; "": one that it has not */
    PC_WRITTEN_PRECISION, /* a precision or a recipe; the program, release or machine that means it may stand before */
    PC_WRITTEN_RECOMPUTE, /* a value of `recompute` */
    PC_WRITTEN_SCHEDULE,  /* a schedule */
    PC_WRITTEN_SOFTWARE,  /* a file of the library's software, by how names begin */
    PC_WRITTEN_LACKS,     /* models, by how they begin, and the feature that they need */
    PC_WRITTEN_LORA,      /* "LoRA", and who says it before: what adapters that program runs */
    PC_WRITTEN_EXPERTS,   /* "experts", and who says it before: how that program runs experts over ranks */
    PC_WRITTEN_WORD       /* a word in a name that is no part of it, and the feature that it asks for; "": none */
} pc_written_kind;

typedef struct pc_written_name {
    pc_written_kind kind;
    const char *name;
    const char *squeezed; /* what people write */
    const char *settings; /* "memory=92 GiB", several with ";" between: what else it says; "": nothing */
} pc_written_name;

/* All of them, in the order of names.csv. Made by embed.py. */
extern const pc_written_name pc_written_names[];
extern const int pc_written_name_count;

enum { PC_WRITTEN_SIZE = 128 };

/* Small letters, digits and points between digits of the first `length` bytes of a name; what is beyond the room is
 * left out. */
void pc_written_squeeze(const char *name, size_t length, char squeezed[PC_WRITTEN_SIZE]);

/* The row of exactly this name, or NULL. */
const pc_written_name *pc_written_find(pc_written_kind kind, const char *squeezed);

/* The row of the longest name with which this one begins, or NULL: "h100sxm580gb16x8" is an "h100". */
const pc_written_name *pc_written_find_start(pc_written_kind kind, const char *squeezed);

/* Who says a word that means one thing here and another there: as cells have them, "" where not known; the machine as
 * the library calls it. */
typedef struct pc_written_speaker {
    const char *program, *release, *machine;
} pc_written_speaker;

/* The row of a word (a precision's name, "LoRA"): of release or program and machine together ("NeMo dgx-b200 FP8"),
 * else of release, program or machine alone, else of the word; NULL if there is none. */
const pc_written_name *pc_written_find_said(pc_written_kind kind, pc_written_speaker who, const char *word);

#ifdef __cplusplus
}
#endif
#endif
