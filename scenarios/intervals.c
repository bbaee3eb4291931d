#include "scenarios/intervals.h"

#include "engine/numbers.h"

#include <math.h>
#include <string.h>

static const double NORMAL_90 = 1.2815515655446004;

/* ---- what a run is compared as ---- */

static void copy_part(char to[PC_KIND_PART_SIZE], const char *from, size_t length) {
    size_t size = pc_min(length, (size_t)PC_KIND_PART_SIZE - 1);
    memcpy(to, from, size);
    to[size] = '\0';
}

/* nemo is megatron with gradients and loss in 16 bits, and what nobody says is as megatron has it. */
static const char *compared_software(const char *software) {
    return software[0] == '\0' || strcmp(software, "nemo") == 0 ? "megatron" : software;
}

static const char *sharding_of(const pc_cut *cut) {
    static const char *const names[] = {"zero-1", "zero-1", "zero-2", "zero-3"};
    if (cut->zero == 0 || cut->dp <= 1) return names[0];
    return cut->shard_group > 0 && cut->shard_group < cut->dp ? "hybrid" : names[cut->zero];
}

/* Of the forward products; a recipe has no gradients in fewer bits than these. */
static const char *low_precision_of(const pc_model *model) {
    bool is_low = pc_low_precision_is_on(&model->low);
    return is_low ? pc_product_format_name(model->low.product[0]) : NULL;
}

/* What of a run has no interval of its kind: fewer bits, or fine-tuning. */
static const char *apart_of(const pc_iteration_spec *spec) {
    const char *low = low_precision_of(&spec->model);
    return low || !pc_cut_frozen(&spec->cut) ? low : "fine-tuning";
}

pc_interval_kind pc_interval_kind_of(const pc_run_spec *spec, const char *software) {
    bool is_mixture = pc_model_has_experts(&spec->iteration.model);
    const char *gpu = spec->iteration.machine.gpu.name,
               *compared = is_mixture ? "experts" : compared_software(software);
    pc_interval_kind kind = {
        .sharding = sharding_of(&spec->iteration.cut), .precision = apart_of(&spec->iteration), .gpus = spec->gpus};
    copy_part(kind.gpu, gpu, strcspn(gpu, "-"));
    copy_part(kind.software, compared, strlen(compared));
    return kind;
}

void pc_interval_kind_text(const pc_interval_kind *kind, char text[PC_KIND_SIZE]) {
    const char *parts[] = {kind->gpu, " ", kind->software, " ", kind->sharding, " ", kind->precision};
    const size_t count = kind->precision ? 7 : 5;
    char *end = text;
    for (size_t i = 0; i < count; i++) { /* no snprintf: this is of every run */
        size_t length = strlen(parts[i]);
        memcpy(end, parts[i], length);
        end += length;
    }
    memset(end, 0, (size_t)(text + PC_KIND_SIZE - end)); /* nothing is left of a longer one */
}

/* ---- the line of a run ---- */

static bool is_part(const char *of_line, const char *of_run) {
    return of_line[0] == '\0' || strcmp(of_line, of_run) == 0;
}

static bool fits(const pc_interval_line *line, const pc_interval_kind *kind) {
    if (kind->precision && line->gpu[0]) return false;
    if (kind->gpus < line->least_gpus || (line->most_gpus > 0 && kind->gpus > line->most_gpus)) return false;
    return is_part(line->gpu, kind->gpu) && is_part(line->software, kind->software) &&
           is_part(line->sharding, kind->sharding);
}

const pc_interval_line *pc_interval_find_in(const pc_interval_line *lines, int count, pc_interval_quantity quantity,
                                            const pc_interval_kind *kind) {
    for (int i = 0; i < count; i++)
        if (lines[i].quantity == quantity && fits(&lines[i], kind)) return &lines[i];
    return NULL;
}

const pc_interval_line *pc_interval_find(pc_interval_quantity quantity, const pc_interval_kind *kind) {
    return pc_interval_find_in(pc_interval_lines, pc_interval_line_count, quantity, kind);
}

/* ---- the interval ---- */

/* How often `from` doubles on the way to `to`, at least as large. */
static double doublings(int64_t from, int64_t to) {
    double ratio = (double)to / (double)from;
    int whole = 0;
    for (; ratio >= 2.0; ratio /= 2.0) whole++;
    return whole + (ratio - 1.0);
}

static double doublings_beyond(const pc_interval_line *line, int64_t gpus) {
    if (gpus < 1) return 0.0;
    if (gpus > line->most_measured) return doublings(line->most_measured, gpus);
    return gpus < line->least_measured ? doublings(gpus, line->least_measured) : 0.0;
}

/* To five digits: no end is known to more, and who writes it has a third of the work. */
static double rounded(double end) {
    double scale = 1.0, unit = 1.0;
    if (!(end > 0.0 && end < 1e22 && end > 1e-17)) return end;
    while (end * scale < 1e4) scale *= 10.0;
    while (end / unit >= 1e5) unit *= 10.0;
    return floor(end * scale / unit + 0.5) / scale * unit;
}

pc_interval_line pc_interval_line_tuned(const pc_interval_line *line) {
    pc_interval_line tuned = *line;
    tuned.low /= line->middle;
    tuned.high /= line->middle;
    tuned.middle = 1.0;
    return tuned;
}

pc_interval pc_interval_of(const pc_interval_line *line, double forecast, int64_t gpus, double error) {
    double other = NORMAL_90 * error, more = line->doubling * doublings_beyond(line, gpus);
    double above = line->high / line->middle - 1.0, below = line->middle / line->low - 1.0;
    double middle = forecast * line->middle;
    return (pc_interval){rounded(middle / (1.0 + sqrt(below * below + other * other) + more)),
                         rounded(middle * (1.0 + sqrt(above * above + other * other) + more))};
}
