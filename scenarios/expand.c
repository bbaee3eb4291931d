#include "scenarios/expand.h"

#include "engine/alloc.h"
#include "models/workload/activation_memory.h"
#include "scenarios/cluster.h"
#include "scenarios/measured_passes.h"
#include "scenarios/references.h"
#include "scenarios/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 wide;

static int64_t whole(const pc_setting *setting, pc_key key) {
    return setting->value[key].whole;
}

static const pc_generator *generator_of(const pc_setting *setting) {
    return setting->value[PC_KEY_SCHEDULE].generator;
}

static pc_key devices_key(const pc_setting *setting) {
    return pc_setting_has(setting, PC_KEY_PP) ? PC_KEY_PP : PC_KEY_DEVICES;
}

static int64_t devices_of(const pc_setting *setting) {
    return whole(setting, devices_key(setting));
}

int pc_setting_slices(const pc_setting *setting) {
    const pc_generator *generator = generator_of(setting);
    if (!pc_generator_has_sliced_parts(generator)) return 0;
    return (int)pc_setting_whole(setting, PC_KEY_SEQUENCE_SLICES, pc_generator_slices(generator, 0, 0));
}

/* Parts of a stage, each of so many slices. More than a schedule can have is refused with the rest of its shape. */
static int chunks_of_slices(const pc_setting *setting) {
    int usual = pc_generator_slices(generator_of(setting), 0, 0), slices = pc_setting_slices(setting);
    int64_t parts = pc_setting_whole(setting, PC_KEY_CHUNKS, generator_of(setting)->chunks_default / usual);
    return (int)(parts * slices);
}

int pc_setting_chunks(const pc_setting *setting) {
    const pc_generator *generator = generator_of(setting);
    if (generator->chunks_min == generator->chunks_max) return generator->chunks_min;
    if (pc_generator_has_sliced_parts(generator)) return chunks_of_slices(setting);
    if (generator->placement == PC_PLACEMENT_SLICES)
        return (int)pc_setting_whole(setting, PC_KEY_SEQUENCE_SLICES, generator->chunks_default);
    return pc_setting_has(setting, PC_KEY_CHUNKS) ? (int)whole(setting, PC_KEY_CHUNKS) : generator->chunks_default;
}

pc_placement pc_setting_placement(const pc_setting *setting) {
    return pc_generator_placement(generator_of(setting), pc_setting_chunks(setting), pc_setting_slices(setting));
}

pc_code pc_setting_check_slices(const pc_setting *setting, pc_error *error) {
    int slices = pc_setting_slices(setting), chunks = pc_setting_chunks(setting);
    if (slices == 0 || chunks <= PC_CHUNKS_MAX) return PC_OK;
    pc_error_blame(error, pc_key_path(PC_KEY_SEQUENCE_SLICES),
                   "%d of each of %d chunks a device; expected at most %d of all together", slices, chunks / slices,
                   PC_CHUNKS_MAX);
    error->is_rule = true;
    return PC_ERROR_INPUT;
}

static bool has_slices(const pc_setting *setting) {
    return pc_placement_has_slices(generator_of(setting)->placement);
}

/* How many of its chunks share a device's stage of the model. One, where each chunk is a whole stage: alone, or of a
 * replica. */
static int chunks_in_stage(const pc_setting *setting) {
    return pc_placement_visited(generator_of(setting)->placement, pc_setting_chunks(setting));
}

/* Parts of the model among them: slices of a sequence are of one part. */
static int chunks_in_part(const pc_setting *setting) {
    return chunks_in_stage(setting) / pc_placement_slices(pc_setting_placement(setting), pc_setting_chunks(setting));
}

static int64_t parts_of(const pc_setting *setting) {
    return devices_of(setting) * chunks_in_part(setting);
}

/* ---- a schedule that a file gives ---- */

/* One of the numbers that such a schedule has of its own. */
typedef struct own_number {
    pc_key key; /* by which the run says it */
    const char *what;
    int64_t run, file; /* 0: not said, or any */
} own_number;

static pc_code check_own_number(const pc_setting *setting, const own_number *own, pc_error *error) {
    if (own->run == 0 || own->file == 0 || own->run == own->file) return PC_OK;
    pc_error_blame(error, pc_key_path(own->key),
                   "%" PRId64 " %s, and schedule %s has %" PRId64 "; expected %" PRId64 ", or another schedule",
                   own->run, own->what, generator_of(setting)->name, own->file, own->file);
    error->is_rule = true;
    return PC_ERROR_INPUT;
}

pc_code pc_setting_check_given(const pc_setting *setting, int64_t devices, int64_t microbatches, pc_error *error) {
    const pc_generator *generator = generator_of(setting);
    if (!generator->given) return PC_OK;
    bool has_microbatches = pc_setting_has(setting, PC_KEY_MICROBATCHES);
    const own_number numbers[] = {
        {devices_key(setting), "devices", devices, generator->given->devices},
        {has_microbatches ? PC_KEY_MICROBATCHES : PC_KEY_GLOBAL_BATCH, "microbatches", microbatches,
         generator->given->microbatches},
        {PC_KEY_CHUNKS, "chunks a device", pc_setting_whole(setting, PC_KEY_CHUNKS, 0), generator->chunks_default}};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !code; i++)
        code = check_own_number(setting, &numbers[i], error);
    return code;
}

/* ---- times ---- */

static pc_time given_time(const pc_setting *setting, int64_t stage, int kind) {
    if (setting->stages) return setting->stages[stage].time_ps[kind];
    pc_key key = (pc_key)(PC_KEY_TIMES + kind);
    return pc_setting_has(setting, key) ? whole(setting, key) : PC_TIME_NOT_GIVEN;
}

/* The time of a whole stage; where they were not given themselves, R is F again, and BW is B + W. */
static pc_time stage_time(const pc_setting *setting, int64_t stage, int kind) {
    pc_time time = given_time(setting, stage, kind), sum;
    if (time == PC_TIME_NOT_GIVEN && kind == PC_PASS_R) return given_time(setting, stage, PC_PASS_F);
    if (time == PC_TIME_NOT_GIVEN && kind >= PC_PASS_S && generator_of(setting)->barriers != PC_BARRIERS_NONE) return 0;
    if (time != PC_TIME_NOT_GIVEN || kind != PC_PASS_BW) return time;
    pc_time b = given_time(setting, stage, PC_PASS_B), w = given_time(setting, stage, PC_PASS_W);
    if (b == PC_TIME_NOT_GIVEN || w == PC_TIME_NOT_GIVEN || !pc_time_add(b, w, &sum)) return PC_TIME_NOT_GIVEN;
    return sum;
}

static pc_code check_required(const pc_setting *setting, pc_error *error) {
    if (pc_setting_has(setting, PC_KEY_PASS_TIMES) && pc_measured_check(setting, error)) return error->code;
    const pc_key required[] = {PC_KEY_SCHEDULE, devices_key(setting), PC_KEY_MICROBATCHES};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!pc_setting_has(setting, required[i]))
            return pc_error_blame(error, pc_key_path(required[i]),
                                  "missing; expected it in the case, in setting or in sweep");
    if (pc_setting_has(setting, PC_KEY_PASS_TIMES)) return PC_OK;
    if (!setting->stages && !pc_setting_gives(setting, "times"))
        return pc_error_blame(
            error, "times", "missing; expected times (F, B, W or BW), stages or pass_times, or a machine and a model");
    if (setting->stages && setting->stage_count != devices_of(setting))
        return pc_error_blame(error, "stages", "%" PRId64 " entries for %" PRId64 " devices; expected one a device",
                              setting->stage_count, devices_of(setting));
    return PC_OK;
}

static pc_code blame_time(pc_error *error, const pc_setting *setting, int64_t stage, int kind) {
    char path[PC_KEY_PATH_SIZE];
    const char *name = pc_pass_kind_name((pc_pass_kind)kind), *schedule = generator_of(setting)->name;
    if (setting->stages)
        snprintf(path, sizeof path, "stages[%" PRId64 "].%s", stage, name);
    else
        snprintf(path, sizeof path, "times.%s", name);
    return pc_error_blame(error, path, "missing, and %s has %s passes; expected a time such as 12.96 ms%s", schedule,
                          name, kind == PC_PASS_BW ? ", or B and W, which add up to it" : "");
}

static pc_code check_times(const pc_setting *setting, pc_error *error) {
    if (pc_setting_has(setting, PC_KEY_PASS_TIMES)) return PC_OK; /* known once the schedule is */
    int64_t count = setting->stages ? setting->stage_count : 1;
    for (int64_t stage = 0; stage < count; stage++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            if (pc_generator_has_kind(generator_of(setting), (pc_pass_kind)kind) &&
                stage_time(setting, stage, kind) == PC_TIME_NOT_GIVEN)
                return blame_time(error, setting, stage, kind);
    return PC_OK;
}

static pc_code check_transfer(const pc_setting *setting, pc_error *error) {
    static const pc_key required[] = {PC_KEY_TRANSFER_SIZE, PC_KEY_TRANSFER_BANDWIDTH};
    bool link = pc_setting_gives(setting, "transfer") && !pc_setting_has(setting, PC_KEY_TRANSFER_TIME);
    for (int i = 0; link && i < 2; i++)
        if (!pc_setting_has(setting, required[i]))
            return pc_error_blame(error, pc_key_path(required[i]),
                                  "missing beside the rest of a link; expected size and bandwidth (and latency)");
    return PC_OK;
}

static bool is_layout(const pc_setting *setting, const char *word) {
    return strcmp(pc_setting_text(setting, PC_KEY_LAYOUT), word) == 0;
}

static bool divides(const pc_setting *setting, pc_layer_layout layout) {
    int64_t layers;
    return !pc_layers_of_part(layout, whole(setting, PC_KEY_LAYERS), parts_of(setting), 0, &layers, NULL);
}

/* If nobody says, even where that divides, and ends where only that does. */
static pc_layer_layout layout_of(const pc_setting *setting) {
    bool is_ends = is_layout(setting, "ends");
    if (is_layout(setting, "auto") && pc_setting_has(setting, PC_KEY_LAYERS))
        is_ends = !divides(setting, PC_LAYERS_EVEN) && divides(setting, PC_LAYERS_ENDS);
    return is_ends ? PC_LAYERS_ENDS : PC_LAYERS_EVEN;
}

/* The number of model parts must be one that the run can have. Chunks are to blame where there are several. */
static pc_code check_parts(const pc_setting *setting, pc_error *error) {
    int64_t p = devices_of(setting), v = pc_setting_chunks(setting), layers = whole(setting, PC_KEY_LAYERS);
    int shares = chunks_in_part(setting);
    bool ends = layout_of(setting) == PC_LAYERS_ENDS;
    const char *culprit = shares > 1 ? "chunks" : pc_key_path(devices_key(setting));
    if (pc_setting_check_slices(setting, error)) return error->code;
    if (pc_schedule_check_size(p, whole(setting, PC_KEY_MICROBATCHES), v, error)) {
        pc_error_set_key(error, shares > 1 ? "chunks" : "microbatches");
        return error->code;
    }
    if (!pc_setting_has(setting, PC_KEY_LAYERS) || p * shares <= layers + (ends ? 2 : 0)) return PC_OK;
    return pc_error_blame(error, culprit,
                          "%" PRId64 " devices x %d chunks are more than the %" PRId64
                          " layers%s; expected at least one layer a chunk",
                          p, shares, layers, ends ? ", embedding and head" : "");
}

static pc_shape shape_of(const pc_setting *setting) {
    return (pc_shape){.layers = whole(setting, PC_KEY_LAYERS),
                      .hidden = whole(setting, PC_KEY_HIDDEN),
                      .heads = whole(setting, PC_KEY_HEADS),
                      .seq_len = whole(setting, PC_KEY_SEQ_LEN),
                      .microbatch_size = whole(setting, PC_KEY_MICROBATCH_SIZE)};
}

static bool has_shape(const pc_setting *setting) {
    static const pc_key needed[] = {PC_KEY_LAYERS, PC_KEY_HIDDEN, PC_KEY_HEADS, PC_KEY_SEQ_LEN, PC_KEY_MICROBATCH_SIZE};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!pc_setting_has(setting, needed[i])) return false;
    return true;
}

bool pc_setting_has_activation(const pc_setting *setting) {
    return pc_setting_has(setting, PC_KEY_ACTIVATION_SIZE) || has_shape(setting);
}

static bool any_divides(int64_t layers, int64_t parts) {
    return layers % parts == 0 || (layers + 2) % parts == 0;
}

/* For a message: the layout that does divide, or the nearest numbers of devices with which one does. */
static void write_remedy(const pc_setting *setting, pc_layer_layout layout, char *text, size_t size) {
    bool is_ends = layout == PC_LAYERS_ENDS;
    int64_t layers = whole(setting, PC_KEY_LAYERS), chunks = chunks_in_part(setting), below = devices_of(setting) - 1;
    int64_t above = below + 2;
    while (below > 0 && !any_divides(layers, below * chunks)) below--;
    while (above * chunks <= layers + 2 && !any_divides(layers, above * chunks)) above++;
    bool has_above = above * chunks <= layers + 2;
    if (divides(setting, is_ends ? PC_LAYERS_EVEN : PC_LAYERS_ENDS))
        snprintf(text, size, "layout %s", is_ends ? "even" : "ends");
    else if (below > 0 && has_above)
        snprintf(text, size, "%" PRId64 " or %" PRId64 " devices", below, above);
    else if (below > 0 || has_above)
        snprintf(text, size, "%" PRId64 " devices", has_above ? above : below);
    else
        snprintf(text, size, "other chunks");
}

/* All layers and all microbatches at once, more than any device can hold, must still be a number. */
static pc_code check_derived_activation(const pc_setting *setting, pc_error *error) {
    pc_shape shape = shape_of(setting);
    int64_t bytes;
    pc_layer_layout layout = layout_of(setting);
    char remedy[64];
    if (!divides(setting, layout)) {
        write_remedy(setting, layout, remedy, sizeof remedy);
        return pc_error_blame(error, pc_key_path(PC_KEY_LAYERS),
                              "%" PRId64 " layers%s do not divide evenly over %" PRId64
                              " devices x %d chunks; expected %s, or activation.size",
                              shape.layers, layout == PC_LAYERS_ENDS ? ", embedding and head" : "", devices_of(setting),
                              chunks_in_part(setting), remedy);
    }
    if (!pc_activation_bytes_per_layer(&shape, &bytes) || __builtin_mul_overflow(bytes, shape.layers, &bytes) ||
        __builtin_mul_overflow(bytes, whole(setting, PC_KEY_MICROBATCHES), &bytes))
        return pc_error_blame(error, "model", "its activations are too large to count; expected less than 2^63 bytes");
    return PC_OK;
}

static pc_code check_activation(const pc_setting *setting, pc_error *error) {
    static const pc_key shares[] = {PC_KEY_RELEASE_B, PC_KEY_KEEP};
    int64_t bytes;
    bool has_activation = pc_setting_has_activation(setting);
    for (int i = 0; i < 2 && !has_activation; i++)
        if (pc_setting_has(setting, shares[i]))
            return pc_error_blame(error, pc_key_path(shares[i]),
                                  "a share of nothing; expected activation.size, or layers, hidden, heads, seq_len and "
                                  "microbatch_size");
    if (!has_activation) return PC_OK;
    if (!pc_setting_has(setting, PC_KEY_ACTIVATION_SIZE)) return check_derived_activation(setting, error);
    if (__builtin_mul_overflow(whole(setting, PC_KEY_ACTIVATION_SIZE), whole(setting, PC_KEY_MICROBATCHES), &bytes))
        return pc_error_blame(error, pc_key_path(PC_KEY_ACTIVATION_SIZE),
                              "too large for all microbatches; expected less than 2^63 bytes together");
    return PC_OK;
}

static pc_code check_given(const pc_setting *setting, pc_error *error) {
    return pc_setting_check_given(setting, devices_of(setting), whole(setting, PC_KEY_MICROBATCHES), error);
}

/* What only costs from a model and a machine give a meaning. */
static pc_code check_scopes(const pc_setting *setting, pc_error *error) {
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (pc_setting_has(setting, key) && pc_key_is_of_cluster(key))
            return pc_error_blame(error, pc_key_path(key),
                                  "means nothing beside times; expected it only where they follow from a machine");
    if (is_layout(setting, "auto") || is_layout(setting, "even") || is_layout(setting, "ends")) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_LAYOUT), "%.40s: no layout beside times; expected even or ends",
                          setting->value[PC_KEY_LAYOUT].text);
}

/* A model's name alone is a label; a file that is named must be there. */
static pc_code check_model_file(const pc_setting *setting, pc_error *error) {
    if (!pc_setting_has(setting, PC_KEY_MODEL_FROM)) return PC_OK;
    const pc_error *own = &setting->value[PC_KEY_MODEL_FROM].reference->error;
    return own->code ? pc_error_copy_blame(error, pc_key_path(PC_KEY_MODEL_FROM), own) : PC_OK;
}

/* Of a plan it is one of the rules that its choices break. */
static pc_code check_making(const pc_setting *setting, pc_error *error) {
    pc_error why;
    if (!pc_setting_has(setting, PC_KEY_SCHEDULE)) return PC_OK;
    pc_making making = (pc_making)pc_setting_whole(setting, PC_KEY_MAKING, PC_MAKING_COSTS);
    pc_code code = pc_generator_check_making(generator_of(setting), making, &why);
    return code ? pc_error_blame(error, pc_key_path(PC_KEY_MAKING), "%s", why.message) : PC_OK;
}

static pc_code check_goal(const pc_setting *setting, pc_error *error) {
    pc_error why;
    if (!pc_setting_has(setting, PC_KEY_SCHEDULE)) return PC_OK;
    pc_making making = (pc_making)pc_setting_whole(setting, PC_KEY_MAKING, PC_MAKING_COSTS);
    pc_goal goal = (pc_goal)pc_setting_whole(setting, PC_KEY_GOAL, PC_GOAL_SPAN);
    pc_code code = pc_generator_check_goal(generator_of(setting), making, goal, &why);
    return code ? pc_error_blame(error, pc_key_path(PC_KEY_GOAL), "%s", why.message) : PC_OK;
}

pc_code pc_setting_check(const pc_setting *setting, pc_error *error) {
    static pc_code (*const checks[])(const pc_setting *,
                                     pc_error *) = {check_required, check_scopes, check_model_file, check_times,
                                                    check_transfer, check_given,  check_parts,      check_activation};
    if (check_making(setting, error) || check_goal(setting, error)) return PC_ERROR_INPUT;
    if (pc_setting_is_cluster(setting)) return pc_cluster_check(setting, error);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        pc_code code = checks[i](setting, error);
        if (code) return code;
    }
    return PC_OK;
}

/* The part of a stage's `total` that is chunk c's. Where v chunks share it, parts differ by one at most and add up. */
static int64_t share_of(int64_t total, int c, int v) {
    return (int64_t)((wide)total * (c + 1) / v) - (int64_t)((wide)total * c / v);
}

static int64_t share(const pc_setting *setting, int64_t total, int c) {
    return share_of(total, c, chunks_in_stage(setting));
}

/* Whose entry in `stages` says how long chunk c of device d takes: the device's, or, where the chunk is a whole stage
 * of the model, that stage's. The two differ for the replica that runs up. */
static int64_t stage_of_chunk(const pc_setting *setting, int d, int c) {
    if (chunks_in_stage(setting) > 1) return d;
    return pc_placement_part(pc_setting_placement(setting), (int)devices_of(setting), d, c);
}

static void fill_times(const pc_setting *setting, pc_costs *costs) {
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                pc_time time = stage_time(setting, stage_of_chunk(setting, d, c), kind);
                if (time == PC_TIME_NOT_GIVEN) continue;
                costs->duration_ps[pc_costs_index(costs, d, c) * PC_PASS_KINDS + kind] = kind < PC_PASS_S
                                                                                             ? share(setting, time, c)
                                                                                         : c == 0 ? time
                                                                                                  : 0;
            }
}

/* A fraction of a count of bytes, rounded; never more than the count. */
static int64_t fraction_of(int64_t bytes, double fraction) {
    if (fraction >= 1) return bytes;
    int64_t part = llround((double)bytes * fraction);
    return part < bytes ? part : bytes;
}

/* What F of one chunk takes of one microbatch; of that, what B gives back, and what F takes where an R follows. */
typedef struct chunk_activation {
    int64_t taken, b_frees, kept;
} chunk_activation;

static pc_code derive_activation(const pc_setting *setting, int d, int c, chunk_activation *found, pc_error *error) {
    pc_shape shape = shape_of(setting);
    int part = pc_placement_part(pc_setting_placement(setting), (int)devices_of(setting), d, c);
    int slices = pc_placement_slices(pc_setting_placement(setting), pc_setting_chunks(setting));
    int64_t layers;
    pc_code code = pc_layers_of_part(layout_of(setting), shape.layers, parts_of(setting), part, &layers, error);
    if (code) return code;
    if (!pc_activation_bytes_per_layer(&shape, &found->taken) ||
        !pc_activation_b_bytes_per_layer(&shape, &found->b_frees) ||
        !pc_activation_input_bytes_per_layer(&shape, &found->kept))
        return pc_error_set(error, PC_ERROR_INPUT, "model: its activations are too large to count");
    found->taken *= layers;
    found->b_frees *= layers;
    found->kept *= layers;
    if (!has_slices(setting)) return PC_OK;
    found->taken = share_of(found->taken, c % slices, slices);
    found->b_frees = share_of(found->b_frees, c % slices, slices);
    found->kept = share_of(found->kept, c % slices, slices);
    return PC_OK;
}

static pc_code find_activation(const pc_setting *setting, int d, int c, chunk_activation *found, pc_error *error) {
    if (pc_setting_has(setting, PC_KEY_ACTIVATION_SIZE)) {
        int64_t taken = share(setting, whole(setting, PC_KEY_ACTIVATION_SIZE), c);
        *found = (chunk_activation){taken, 0, fraction_of(taken, PC_ACTIVATION_INPUT_FRACTION)};
    } else {
        pc_code code = derive_activation(setting, d, c, found, error);
        if (code) return code;
    }
    if (pc_setting_has(setting, PC_KEY_RELEASE_B))
        found->b_frees = fraction_of(found->taken, setting->value[PC_KEY_RELEASE_B].real);
    if (pc_setting_has(setting, PC_KEY_KEEP)) found->kept = fraction_of(found->taken, setting->value[PC_KEY_KEEP].real);
    return PC_OK;
}

static pc_code fill_activation(const pc_setting *setting, pc_costs *costs, pc_error *error) {
    if (!pc_setting_has_activation(setting)) return PC_OK;
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            chunk_activation found;
            pc_code code = find_activation(setting, d, c, &found, error);
            if (code) return code;
            costs->activation_bytes[i] = found.taken;
            costs->activation_b_bytes[i] = found.b_frees;
            costs->activation_kept_bytes[i] = found.kept;
        }
    return PC_OK;
}

/* Here entries are the devices', whatever stages of the model a device has. */
static pc_code add_limits(const pc_setting *setting, pc_run_spec *spec, pc_error *error) {
    int64_t of_all = pc_setting_whole(setting, PC_KEY_MEMORY, PC_NO_LIMIT);
    if (of_all == PC_NO_LIMIT && !setting->stages) return PC_OK;
    spec->memory_limit_bytes = pc_alloc((size_t)spec->devices, sizeof *spec->memory_limit_bytes);
    if (!spec->memory_limit_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < spec->devices; d++) {
        int64_t own = setting->stages && !setting->is_memory_later ? setting->stages[d].memory_bytes : PC_NO_LIMIT;
        int64_t limit = own != PC_NO_LIMIT ? own : of_all, held = pc_measured_held(setting, d);
        spec->memory_limit_bytes[d] = limit == PC_NO_LIMIT || limit <= held ? limit : limit - held;
        if (limit != PC_NO_LIMIT && held > 0 && limit <= held) spec->memory_limit_bytes[d] = 0;
    }
    return PC_OK;
}

/* A collective between S, T and B takes as long as a transfer that is alone. */
static pc_vocab_costs vocab_of(const pc_transfer *transfer) {
    pc_time time_ps = transfer->delay_ps;
    bool is_link = transfer->mode == PC_TRANSFER_LINK && transfer->bandwidth_bytes_per_s > 0;
    if (is_link)
        time_ps = transfer->latency_ps + (pc_time)((double)transfer->size_bytes / transfer->bandwidth_bytes_per_s *
                                                   (double)PC_PICOSECONDS_PER_SECOND);
    return (pc_vocab_costs){.broadcast_ps = time_ps, .exchange_ps = time_ps, .reduce_ps = time_ps};
}

static pc_transfer transfer_of(const pc_setting *setting) {
    if (!pc_setting_has(setting, PC_KEY_TRANSFER_BANDWIDTH))
        return (pc_transfer){.mode = PC_TRANSFER_DELAY, .delay_ps = pc_setting_integer(setting, PC_KEY_TRANSFER_TIME)};
    return (pc_transfer){.mode = PC_TRANSFER_LINK,
                         .latency_ps = pc_setting_integer(setting, PC_KEY_TRANSFER_LATENCY),
                         .bandwidth_bytes_per_s = setting->value[PC_KEY_TRANSFER_BANDWIDTH].real,
                         .size_bytes = whole(setting, PC_KEY_TRANSFER_SIZE)};
}

static pc_run_spec describe(const pc_setting *setting, pc_run_labels *labels) {
    pc_run_spec spec = pc_run_spec_default();
    pc_error contradiction;
    pc_setting_fill(setting, false, &spec);
    if (check_given(setting, &contradiction) || pc_measured_contradicts(setting, &contradiction))
        snprintf(spec.infeasible, sizeof spec.infeasible, "%.*s", (int)sizeof spec.infeasible - 1,
                 contradiction.message);
    spec.generator = generator_of(setting);
    spec.devices = (int)devices_of(setting);
    spec.microbatches = (int)whole(setting, PC_KEY_MICROBATCHES);
    spec.chunks = pc_setting_chunks(setting);
    spec.slices = pc_setting_slices(setting);
    spec.microbatch_size = pc_setting_whole(setting, PC_KEY_MICROBATCH_SIZE, -1);
    spec.has_activation = pc_setting_has_activation(setting) || pc_measured_has_activation(setting);
    if (pc_setting_has_activation(setting) && !pc_setting_has(setting, PC_KEY_ACTIVATION_SIZE))
        snprintf(labels->layout, sizeof labels->layout, "%s", layout_of(setting) == PC_LAYERS_ENDS ? "ends" : "even");
    if (pc_setting_has(setting, PC_KEY_MODEL_NAME))
        snprintf(labels->model, sizeof labels->model, "%s", setting->value[PC_KEY_MODEL_NAME].text);
    if (pc_setting_has(setting, PC_KEY_MACHINE))
        snprintf(labels->machine, sizeof labels->machine, "%s", setting->value[PC_KEY_MACHINE].reference->text);
    return spec;
}

static pc_code expand_times(const pc_setting *setting, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    pc_run_spec made = describe(setting, labels);
    pc_code code = pc_costs_create(made.devices, made.chunks, &made.costs, error);
    if (code) return code;
    made.costs.transfer = transfer_of(setting);
    if (pc_setting_has(setting, PC_KEY_PASS_TIMES))
        code = made.infeasible[0] ? PC_OK : pc_measured_fill(setting, &made.costs, error);
    else
        fill_times(setting, &made.costs);
    if (generator_of(setting)->barriers != PC_BARRIERS_NONE) made.costs.vocab = vocab_of(&made.costs.transfer);
    if (!code) code = add_limits(setting, &made, error);
    if (!code) code = fill_activation(setting, &made.costs, error);
    if (code)
        pc_costs_free(&made.costs);
    else
        *spec = made;
    return code;
}

pc_code pc_setting_expand(const pc_setting *setting, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    *labels = pc_run_labels_none();
    if (pc_setting_is_cluster(setting)) return pc_cluster_expand(setting, spec, labels, error);
    return expand_times(setting, spec, labels, error);
}
