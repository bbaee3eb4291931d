#include "scenarios/bad_days_keys.h"

#include "engine/numbers.h"
#include "scenarios/references.h"
#include "scenarios/settings.h"

#include <inttypes.h>
#include <stdbool.h>

static bool has_profile_jitter(const pc_setting *setting) {
    return pc_setting_real(setting, PC_KEY_JITTER) == PC_JITTER_OF_PROFILE;
}

/* ---- what goes together ---- */

/* A key that means nothing if none of others is given. */
typedef struct companion {
    pc_key key, needs[3]; /* PC_KEYS: none */
} companion;

static const companion companions[] = {
    {PC_KEY_SLOW_GPUS, {PC_KEY_SLOW_FACTOR, PC_KEYS, PC_KEYS}},
    {PC_KEY_SLOW_STAGE, {PC_KEY_SLOW_FACTOR, PC_KEYS, PC_KEYS}},
    {PC_KEY_SLOW_FACTOR, {PC_KEY_SLOW_GPUS, PC_KEY_SLOW_STAGE, PC_KEYS}},
    {PC_KEY_BAD_LINKS, {PC_KEY_BAD_FACTOR, PC_KEYS, PC_KEYS}},
    {PC_KEY_BAD_FACTOR, {PC_KEY_BAD_LINKS, PC_KEYS, PC_KEYS}},
    {PC_KEY_OTHER_NODES, {PC_KEY_OTHER_GPU, PC_KEYS, PC_KEYS}},
    {PC_KEY_OTHER_GPU, {PC_KEY_OTHER_NODES, PC_KEYS, PC_KEYS}},
    {PC_KEY_RESTART, {PC_KEY_MTBF, PC_KEYS, PC_KEYS}},
    {PC_KEY_REPAIR, {PC_KEY_MTBF, PC_KEYS, PC_KEYS}},
    {PC_KEY_SPARE_NODES, {PC_KEY_MTBF, PC_KEYS, PC_KEYS}},
    {PC_KEY_HORIZON, {PC_KEY_MTBF, PC_KEY_CHECKPOINT, PC_KEY_INTERVAL}},
};

static bool has_company(const pc_setting *setting, const companion *c) {
    for (int i = 0; i < 3; i++)
        if (c->needs[i] != PC_KEYS && setting->given[c->needs[i]]) return true;
    return false;
}

static pc_code check_companions(const pc_setting *setting, pc_error *error) {
    for (size_t i = 0; i < sizeof companions / sizeof *companions; i++) {
        const companion *c = &companions[i];
        if (!setting->given[c->key] || has_company(setting, c)) continue;
        bool has_two = c->needs[1] != PC_KEYS;
        return pc_error_blame(error, pc_key_path(c->key), "means nothing alone; expected %s%s%s beside it",
                              pc_key_path(c->needs[0]), has_two ? " or " : "", has_two ? pc_key_path(c->needs[1]) : "");
    }
    return PC_OK;
}

static pc_code check_other_gpu(const pc_setting *setting, pc_error *error) {
    if (!setting->given[PC_KEY_OTHER_GPU]) return PC_OK;
    const pc_reference *reference = setting->value[PC_KEY_OTHER_GPU].reference;
    if (!reference->error.code) return PC_OK;
    return pc_error_copy_blame(error, pc_key_path(PC_KEY_OTHER_GPU), &reference->error);
}

static pc_code check_jitter(const pc_setting *setting, pc_error *error) {
    const char *path = pc_key_path(PC_KEY_JITTER);
    bool has_samples = pc_setting_integer(setting, PC_KEY_SAMPLES) > 0;
    bool expands = pc_setting_is_on(setting, PC_KEY_EXPAND);
    if (pc_setting_real(setting, PC_KEY_JITTER) > 0 && !expands && !has_samples)
        return pc_error_blame(error, path,
                              "differs from replica to replica; expected samples or expand: true beside it");
    if (!has_profile_jitter(setting)) return PC_OK;
    if (!has_samples)
        return pc_error_blame(error, path, "profile means nothing without samples; expected samples beside it");
    if (setting->given[PC_KEY_PROFILE] && setting->value[PC_KEY_PROFILE].reference->path) return PC_OK;
    return pc_error_blame(error, path, "that of a profile, and there is none; expected profile beside it");
}

pc_code pc_setting_check_bad_days(const pc_setting *setting, pc_error *error) {
    pc_code code = check_jitter(setting, error);
    for (pc_key key = PC_KEY_GPU_JITTER; key < PC_KEY_BAD_DAYS_END && !code; key++)
        if (setting->given[key] && !setting->given[PC_KEY_SAMPLES])
            code = pc_error_blame(error, pc_key_path(key),
                                  "means nothing without samples; expected samples: 1000 or so beside it");
    if (!code) code = check_companions(setting, error);
    return code ? code : check_other_gpu(setting, error);
}

/* ---- how many there are ---- */

static pc_code check_count(const pc_setting *setting, pc_key key, int64_t there_are, const char *of, pc_error *error) {
    int64_t number = pc_setting_integer(setting, key), most = key == PC_KEY_SLOW_STAGE ? there_are - 1 : there_are;
    if (there_are <= 0 || number <= most) return PC_OK;
    pc_error_blame(error, pc_key_path(key), "%" PRId64 " of %" PRId64 " %s; expected at most %" PRId64, number,
                   there_are, of, most);
    error->is_rule = true;
    return PC_ERROR_INPUT;
}

pc_code pc_setting_check_bad_shape(const pc_setting *setting, int64_t gpus, int64_t pp, pc_error *error) {
    int64_t node = setting->value[PC_KEY_MACHINE].reference->machine.gpus_per_node;
    int64_t nodes = node > 0 ? pc_divide_up(gpus, node) : 0;
    pc_code code = check_count(setting, PC_KEY_SLOW_GPUS, gpus, "GPUs", error);
    if (!code) code = check_count(setting, PC_KEY_SLOW_STAGE, pp, "stages", error);
    if (!code) code = check_count(setting, PC_KEY_BAD_LINKS, gpus, "GPUs", error);
    return code ? code : check_count(setting, PC_KEY_OTHER_NODES, nodes, "nodes", error);
}

/* ---- the spec ---- */

void pc_setting_fill_bad_days(const pc_setting *setting, pc_run_spec *spec) {
    pc_bad_days *days = &spec->iteration.bad_days;
    spec->has_profile_jitter = has_profile_jitter(setting);
    if (!spec->has_profile_jitter) spec->iteration.jitter = pc_setting_real(setting, PC_KEY_JITTER);
    days->has_slow_stage = setting->given[PC_KEY_SLOW_STAGE];
    if (setting->given[PC_KEY_OTHER_GPU]) days->other_gpu = setting->value[PC_KEY_OTHER_GPU].reference->machine.gpu;
    if (!days->samples) *days = (pc_bad_days){.samples = 0}; /* without samples the rest says nothing */
}
