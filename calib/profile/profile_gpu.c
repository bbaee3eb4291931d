/* Whether a profile is of a machine's GPU. */
#include "calib/profile/profile_cost.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE = 32 };

/* The next run of letters and digits, in small letters; false if there is none. */
static bool next_word(const char **text, char word[WORD_SIZE]) {
    const char *at = *text;
    int length = 0;
    while (*at && !isalnum((unsigned char)*at)) at++;
    for (; isalnum((unsigned char)*at); at++)
        if (length + 1 < WORD_SIZE) word[length++] = (char)tolower((unsigned char)*at);
    word[length] = '\0';
    *text = at;
    return length > 0;
}

/* Whether one of its words is `wanted`, or that and a digit: "SXM4". */
static bool has_word(const char *text, const char *wanted) {
    char word[WORD_SIZE] = "";
    size_t length = strlen(wanted);
    while (next_word(&text, word))
        if (strncmp(word, wanted, length) == 0 &&
            (!word[length] || (isdigit((unsigned char)word[length]) && !word[length + 1])))
            return true;
    return false;
}

/* A driver says "NVIDIA A100-SXM4-80GB" where the library says "a100-sxm-80gb", and leaves "SXM" out of newer ones. */
static bool is_named(const char *device, const char *gpu) {
    char word[WORD_SIZE];
    bool any = false;
    while (next_word(&gpu, word)) {
        bool is_implied = strcmp(word, "sxm") == 0 && !has_word(device, "pcie") && !has_word(device, "nvl");
        if (!is_implied && !has_word(device, word)) return false;
        any = true;
    }
    return any;
}

pc_code pc_profile_check_gpu(const pc_profile *profile, const char *gpu, pc_error *error) {
    const pc_profile_device *device = &profile->device;
    const char *name = device->gpu[0] ? device->gpu : device->name;
    if (profile->is_shipped) return PC_OK; /* the file of that GPU names it */
    bool is_same = device->gpu[0] ? strcasecmp(device->gpu, gpu) == 0 : is_named(device->name, gpu);
    if (is_same) return PC_OK;
    if (!name[0])
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "does not say which GPU it is of; expected %s: `pipecast profile fit` with --gpu %s says so", gpu, gpu);
    if (profile->tuning.is_there)
        return pc_error_set(error, PC_ERROR_INPUT, "is tuned to runs on the GPU %s; expected runs on the machine's, %s",
                            name, gpu);
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "is of the GPU %s; expected one of the machine's, %s (if it is one: `pipecast profile fit` with "
        "--gpu %s says so)",
        name, gpu, gpu);
}
