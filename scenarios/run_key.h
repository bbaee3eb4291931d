/* run_key.h: what a run depends on, as a hash: runs of one key have one result.
 *
 * In the key is everything that decides a number of the row or a byte of the trace: costs, cut, model, machine, profile
 * (by its hash), schedule, seed, whether a trace is kept. Not in it is the path of the profile, nor how many threads
 * work on it.
 *
 * A setting whose line has a field (settings.h) is in the key by that; machines and GPUs are by the tables that read
 * their files.
 */
#ifndef PC_SCENARIOS_RUN_KEY_H
#define PC_SCENARIOS_RUN_KEY_H

#include "engine/marks.h"
#include "models/training/run.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 128 bits: among a billion runs two different ones share a key with a chance of 1e-21. */
typedef struct pc_run_key {
    uint64_t high, low;
} pc_run_key;

/* Of values, never of addresses or padding: the same in every process, for the same library. Of a spec with a profile,
 * once that has been read (profile_hash). */
pc_run_key pc_run_key_of(const pc_run_spec *spec);

static inline bool pc_run_key_equal(pc_run_key a, pc_run_key b) {
    return a.high == b.high && a.low == b.low;
}

enum { PC_RUN_KEY_SIZE = 33 };

/* 32 hexadecimal digits, as rows have it; and back: false if the text is none. */
void pc_run_key_text(pc_run_key key, char text[PC_RUN_KEY_SIZE]);
PC_MUST_USE bool pc_run_key_parse(const char *text, pc_run_key *key);

#ifdef __cplusplus
}
#endif
#endif
