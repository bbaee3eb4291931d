#include "scenarios/measured_passes.h"

#include "models/workload/activation_memory.h"
#include "scenarios/expand.h"
#include "scenarios/references.h"

#include <math.h>

static const pc_reference *file_of(const pc_setting *setting) {
    return setting->given[PC_KEY_PASS_TIMES] ? setting->value[PC_KEY_PASS_TIMES].reference : NULL;
}

pc_code pc_measured_check(const pc_setting *setting, pc_error *error) {
    const pc_error *own = &file_of(setting)->error;
    return own->code ? pc_error_copy_blame(error, pc_key_path(PC_KEY_PASS_TIMES), own) : PC_OK;
}

static int64_t devices_of(const pc_setting *setting) {
    return setting->value[pc_setting_has(setting, PC_KEY_PP) ? PC_KEY_PP : PC_KEY_DEVICES].whole;
}

/* Whether every part has a time of each kind that the schedule has. BW is there if B and W are, and R is F. */
static pc_code check_kinds(const pc_pass_times *times, const pc_generator *generator, pc_error *error) {
    bool is_apart = pc_generator_has_kind(generator, PC_PASS_B);
    for (int64_t i = 0; i < (int64_t)times->devices * times->chunks; i++) {
        const pc_time *time_ps = times->parts[i].time_ps;
        bool has_both = time_ps[PC_PASS_B] != PC_TIME_NOT_GIVEN && time_ps[PC_PASS_W] != PC_TIME_NOT_GIVEN;
        if (is_apart && !has_both)
            return pc_error_set(
                error, PC_ERROR_INPUT,
                "pass_times: B and W were not measured apart, and %s has them; expected a schedule that "
                "has BW",
                generator->name);
    }
    return PC_OK;
}

pc_code pc_measured_contradicts(const pc_setting *setting, pc_error *error) {
    const pc_reference *file = file_of(setting);
    if (!file) return PC_OK;
    const pc_generator *generator = setting->value[PC_KEY_SCHEDULE].generator;
    pc_code code = pc_pass_times_suit(&file->pass_times, (int)devices_of(setting), pc_setting_chunks(setting),
                                      pc_setting_placement(setting), error);
    if (code) return pc_error_prefix(error, "pass_times"), code;
    if (generator->barriers != PC_BARRIERS_NONE)
        return pc_error_set(error, PC_ERROR_INPUT, "pass_times: has no S and T; expected a schedule without them");
    return check_kinds(&file->pass_times, generator, error);
}

bool pc_measured_has_activation(const pc_setting *setting) {
    const pc_reference *file = file_of(setting);
    return file && pc_pass_times_have_activations(&file->pass_times);
}

int64_t pc_measured_held(const pc_setting *setting, int d) {
    const pc_reference *file = file_of(setting);
    bool is_said = file && d < file->pass_times.devices && file->pass_times.held_bytes[d] > 0;
    return is_said ? file->pass_times.held_bytes[d] : 0;
}

pc_code pc_measured_fill(const pc_setting *setting, pc_costs *costs, pc_error *error) {
    const pc_transfer own = costs->transfer;
    pc_code code = pc_pass_times_fill(&file_of(setting)->pass_times, pc_setting_placement(setting), costs, error);
    if (pc_setting_gives(setting, "transfer")) costs->transfer = own;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++)
        costs->activation_kept_bytes[i] = llround((double)costs->activation_bytes[i] * PC_ACTIVATION_INPUT_FRACTION);
    return code;
}
