/* setting_flags.h: the options of `pipecast run` and `pipecast plan` that stand for keys of a setting, of the table of
 * settings (settings.h). */
#ifndef PC_SCENARIOS_SETTING_FLAGS_H
#define PC_SCENARIOS_SETTING_FLAGS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Static storage. */
typedef struct pc_setting_flag {
    const char *name, *value; /* "tp", "N": what the help calls its value */
    const char *key;          /* of `setting:` */
    const char *sweep;        /* of `sweep:`; NULL if it cannot be swept */
    const char *help;
    const char *words; /* all that it takes where these are few, "one|two"; NULL: something else */
    bool is_for_plans; /* `plan` has it too */
} pc_setting_flag;

enum { PC_SETTING_FLAGS_MAX = 128 };

/* All of them in the order of the help; returns how many there are. */
int pc_setting_flags(pc_setting_flag flags[PC_SETTING_FLAGS_MAX]);

#ifdef __cplusplus
}
#endif
#endif
