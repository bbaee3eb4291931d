#include "models/workload/layout_balance.h"

#include "models/workload/cut.h"

#include <string.h>

/* What has layers, a stage or a part: how many so far, and the time of what else is in it. */
typedef struct layer_bin {
    double ends_s;
    int64_t layers;
} layer_bin;

static double time_of(const layer_bin *bin, double layer_s) {
    return bin->ends_s + (double)bin->layers * layer_s;
}

/* Bins without ends are alike, and take turns from the last one to the first: the next before `at`, round the end; -1:
 * there are none. */
static int plain_before(const layer_bin *bins, int count, int at) {
    for (int i = 0; i < count; i++) {
        at = at > 0 ? at - 1 : count - 1;
        if (!(bins[at].ends_s > 0)) return at;
    }
    return -1;
}

/* The bins with ends, at most two; returns how many. */
static int find_ends(const layer_bin *bins, int count, int ends[2]) {
    int found = 0;
    for (int i = 0; i < count && found < 2; i++)
        if (bins[i].ends_s > 0) ends[found++] = i;
    return found;
}

/* One after the other to the bin that is then the fastest, the last one of equals. */
static void give(layer_bin *bins, int count, int64_t layers, double layer_s) {
    int ends[2] = {0}, with_ends = find_ends(bins, count, ends), plain = plain_before(bins, count, count);
    for (; count > 0 && layers > 0; layers--) {
        int best = plain;
        for (int i = 0; i < with_ends; i++) {
            double time_s = time_of(&bins[ends[i]], layer_s),
                   least_s = best < 0 ? time_s : time_of(&bins[best], layer_s);
            if (best < 0 || time_s < least_s || (time_s == least_s && ends[i] > best)) best = ends[i];
        }
        bins[best].layers++; /* NOLINT(clang-analyzer-core.uninitialized.Assign): all `count` bins are set */
        if (best == plain) plain = plain_before(bins, count, plain);
    }
}

/* The same where bins without ends are not alike. */
static void give_within(layer_bin *bins, int count, int64_t layers, double layer_s, const int64_t *most) {
    for (; layers > 0; layers--) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (bins[i].layers < most[i] && (best < 0 || time_of(&bins[i], layer_s) <= time_of(&bins[best], layer_s)))
                best = i;
        if (best < 0) return;
        bins[best].layers++;
    }
}

/* A stage without ends never has fewer layers than one with an end would have if all were alike: so many need not be
 * given one by one. */
static int64_t give_at_once(layer_bin *bins, int count, int64_t layers) {
    int64_t each = count > 0 ? layers / count : 0;
    for (int i = 0; i < count; i++) {
        if (bins[i].ends_s > 0) continue;
        bins[i].layers = each;
        layers -= each;
    }
    return layers;
}

/* The layers of a stage over its parts; `bins` is room. */
static void give_parts(int64_t layers, int stage, int parts, const int *stage_of_part, const pc_layout_times *times,
                       layer_bin *bins, int32_t *layers_of_part) {
    int count = 0;
    for (int i = 0; i < parts; i++) {
        double ends_s = (i == 0 ? times->embedding_s : 0) + (i == parts - 1 ? times->head_s : 0);
        if (stage_of_part[i] == stage) bins[count++] = (layer_bin){.ends_s = ends_s};
    }
    give(bins, count, give_at_once(bins, count, layers), times->layer_s);
    for (int i = 0, nth = 0; i < parts; i++)
        if (stage_of_part[i] == stage) layers_of_part[i] = (int32_t)bins[nth++].layers;
}

void pc_layout_balance(int64_t layers, int parts, int stages, const int *stage_of_part, const pc_layout_times *times,
                       const int64_t *most, int32_t *layers_of_part) {
    layer_bin of_stage[PC_PARTS_MAX], of_part[PC_PARTS_MAX];
    memset(of_stage, 0, (size_t)stages * sizeof *of_stage);
    of_stage[stage_of_part[0]].ends_s += times->embedding_s;
    of_stage[stage_of_part[parts - 1]].ends_s += times->head_s;
    if (most)
        give_within(of_stage, stages, layers, times->layer_s, most);
    else
        give(of_stage, stages, give_at_once(of_stage, stages, layers), times->layer_s);
    for (int i = 0; i < stages; i++)
        give_parts(of_stage[i].layers, i, parts, stage_of_part, times, of_part, layers_of_part);
}
