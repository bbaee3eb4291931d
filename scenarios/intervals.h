/* intervals.h: how far measured runs were from their forecasts, by kind of run: the lines of intervals.csv, part of the
 * library, and the interval of 80% that a forecast gets from them.
 *
 * A kind is a family of GPUs, a software and how state is sharded: "h100 megatron zero-1". Its line has quantiles of
 * measured over forecast: of ten runs like those that were compared, one is below `low`, one above `high`. They are
 * learned by tests/golden/intervals.py; docs/accuracy.md says how. The first line that fits a run is its line: its own
 * kind and scale, its kind, of memory its program, its family of GPUs; the last fits all, and is wide: the unknown.
 */
#ifndef PC_SCENARIOS_INTERVALS_H
#define PC_SCENARIOS_INTERVALS_H

#include "models/training/run.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_KIND_PART_SIZE = 32, PC_KIND_SIZE = 96, PC_BASIS_SIZE = 128 };

typedef enum pc_interval_quantity { PC_INTERVAL_TIME, PC_INTERVAL_MEMORY } pc_interval_quantity;

/* A line of intervals.csv. */
typedef struct pc_interval_line {
    pc_interval_quantity quantity;
    const char *gpu, *software, *sharding; /* "": any */
    int64_t least_gpus, most_gpus;         /* of what it speaks; 0: no such bound */
    int64_t least_measured, most_measured; /* GPUs of the runs that it is learned from */
    double low, middle, high;              /* measured over forecast: quantiles of 10, 50 and 90% */
    double doubling;                       /* by how much more, relative, a doubling of GPUs beyond those may be off */
    double pair;                           /* ratios of two forecasts of one model on as many of these GPUs are off by
                                            * at most this, relative, in 80% of the measured pairs */
    const char *basis;                     /* what it is learned from, in words */
} pc_interval_line;

/* All of them, in the order of intervals.csv. Made by embed.py. */
extern const pc_interval_line pc_interval_lines[];
extern const int pc_interval_line_count;

/* What a run is compared as. */
typedef struct pc_interval_kind {
    char gpu[PC_KIND_PART_SIZE];      /* "a100" of an a100-sxm-80gb: its name up to the first hyphen */
    char software[PC_KIND_PART_SIZE]; /* "megatron" also of nemo, and where nothing is said: the defaults are its;
                                       * "experts" of mixtures of experts, whatever runs them */
    const char *sharding;  /* "zero-1" (or none), "zero-2", "zero-3"; "hybrid": over a group of the replicas */
    const char *precision; /* of the products, where it is low: "fp8"; or "fine-tuning", with frozen parts. Only the
                            * unknown, and lines of no GPU, fit such a run, for others are of 16 bits. NULL: neither */
    int64_t gpus;
} pc_interval_kind;

/* Of a run on a cluster; `software` is its label (run_labels.h). */
pc_interval_kind pc_interval_kind_of(const pc_run_spec *spec, const char *software);

/* "h100 megatron zero-1"; with a fourth word where precision is low: "h100 megatron zero-1 fp8". */
void pc_interval_kind_text(const pc_interval_kind *kind, char text[PC_KIND_SIZE]);

/* The first line that fits, of `count`; NULL if none does, which the library's own always do. */
const pc_interval_line *pc_interval_find_in(const pc_interval_line *lines, int count, pc_interval_quantity quantity,
                                            const pc_interval_kind *kind);
const pc_interval_line *pc_interval_find(pc_interval_quantity quantity, const pc_interval_kind *kind);

typedef struct pc_interval {
    double low, high;
} pc_interval;

/* The line for forecasts that were tuned to measured runs: as wide, around the forecast itself, for its middle is the
 * bias of the library, which tuning has taken away. */
pc_interval_line pc_interval_line_tuned(const pc_interval_line *line);

/* That of a forecast f of a run on `gpus` GPUs. With M = middle, D = high / M - 1 and d = M / low - 1 the interval is
 * f M / (1 + d') to f M (1 + D'), where x' = sqrt(x^2 + (1.2816 e)^2) + k doubling. `error` is e, a relative
 * standard error that no run of the line has in it, as of a profile. 1.2816 is the normal quantile of 90%. And k
 * counts the doublings of GPUs from the nearest number that was measured, between powers of two linearly. It is 0
 * within them. Only +, -, *, / and square roots: the same bits on every machine. Both are rounded to five
 * digits. NaN of a forecast that is NaN. */
pc_interval pc_interval_of(const pc_interval_line *line, double forecast, int64_t gpus, double error);

#ifdef __cplusplus
}
#endif
#endif
