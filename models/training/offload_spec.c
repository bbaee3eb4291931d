#include "models/training/offload_spec.h"

/* What an offload needs of the machine. */
static pc_code check_host(const pc_iteration_spec *spec, pc_error *error) {
    const char *what = spec->cut.offload_layers > 0 ? "activation_offload_layers" : "offload";
    bool steps = pc_offload_state_fraction(&spec->cut.offload) > 0;
    const char *lacks = spec->machine.host_link_bytes_per_s <= 0              ? "host_link"
                        : steps && spec->machine.host_memory_bytes_per_s <= 0 ? "host_memory_bandwidth"
                                                                              : NULL;
    if (!lacks) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s on machine %s, which has no %s; expected a machine that has one",
                        what, spec->machine.name, lacks);
}

/* And of the schedule. */
pc_code pc_offload_can_be(const pc_iteration_spec *spec, pc_error *error) {
    int32_t kinds = spec->cut.offload.kinds;
    if (spec->cut.offload_layers == 0 && kinds == 0) return PC_OK;
    pc_code code = check_host(spec, error);
    if (code) return code;
    if (spec->cut.offload_layers > 0 && spec->generator->splits)
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "activation_offload_layers with a schedule that has W apart; expected one without, as 1f1b");
    if (kinds & PC_OFFLOAD_ACTIVATIONS && spec->generator->recomputes)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload of activations with %s, which recomputes them; expected another schedule",
                            spec->generator->name);
    if (!(kinds & PC_OFFLOAD_BESIDE_PASSES)) return PC_OK;
    if (spec->generator->adapts || spec->waits_for_memory)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload beside passes with %s, which goes by the memory that is left; expected "
                            "%s, or offload fine-grained",
                            spec->generator->adapts ? spec->generator->name : "out_of_memory: wait",
                            spec->generator->adapts ? "another schedule" : "out_of_memory: fail");
    return PC_OK;
}
