/* Between which sizes a fit that was read can have been measured. */
#include "calib/profile/profile_private.h"

/* Shapes are whole numbers, and what is moved to an edge (profile_cost.c) has to be one that can be counted with: a
 * shape's smallest sides are small, and nothing has more sides or bytes than these. Numbers of messages are not shapes:
 * the smallest that was measured may be large. */
#define SIDE_LEAST_MAX 0x1p24
#define SIDE_MOST_MAX  0x1p40
#define BYTES_MAX      0x1p60

bool pc_profile_has_edges(const pc_fit *fit) {
    bool is_shape = fit->dimensions > 1 && !pc_fit_form_is_transfer(fit->key.form);
    for (int32_t d = 0; d < fit->dimensions; d++) {
        double least = fit->least[d], most = fit->most[d];
        if (!(least > 0.0 && least <= most && most <= (is_shape ? SIDE_MOST_MAX : BYTES_MAX))) return false;
        if (is_shape && (least < 1.0 || least > SIDE_LEAST_MAX)) return false;
    }
    return true;
}
