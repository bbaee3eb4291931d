/* The table of forms: one in each file. */
#include "calib/fit/fit_private.h"

const pc_form *pc_form_of(pc_fit_form form) {
    static const pc_form *const forms[] = {[PC_FIT_TRANSFER] = &pc_form_transfer,
                                           [PC_FIT_MEMORY] = &pc_form_memory,
                                           [PC_FIT_GEMM] = &pc_form_gemm,
                                           [PC_FIT_ATTENTION] = &pc_form_attention,
                                           [PC_FIT_GROUPED_GEMM] = &pc_form_grouped_gemm,
                                           [PC_FIT_MOE] = &pc_form_moe,
                                           [PC_FIT_LAW] = &pc_form_law,
                                           [PC_FIT_DISPATCH] = &pc_form_dispatch,
                                           [PC_FIT_FLASH] = &pc_form_flash};
    _Static_assert(sizeof forms / sizeof *forms == PC_FIT_FORMS, "a form for every name");
    return forms[form];
}

bool pc_fit_form_is_roofline(pc_fit_form form) {
    return form == PC_FIT_GEMM || form == PC_FIT_ATTENTION;
}

bool pc_fit_form_is_transfer(pc_fit_form form) {
    return form == PC_FIT_TRANSFER || form == PC_FIT_LAW || form == PC_FIT_DISPATCH;
}

bool pc_fit_form_has_processors(pc_fit_form form) {
    return pc_form_of(form)->has_processors;
}

const char *const *pc_fit_form_dimensions(pc_fit_form form, int *count) {
    *count = pc_form_of(form)->dimensions;
    return pc_form_of(form)->dimension;
}

pc_parameter_label pc_fit_label(pc_fit_form form, int i) {
    return pc_form_of(form)->label(i);
}
