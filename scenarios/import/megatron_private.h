/* megatron_private.h: arguments that are being read. Private to scenarios/import/megatron*.c. */
#ifndef PC_SCENARIOS_IMPORT_MEGATRON_PRIVATE_H
#define PC_SCENARIOS_IMPORT_MEGATRON_PRIVATE_H

#include "scenarios/import/arguments.h"
#include "scenarios/import/imported.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pc_megatron_reader {
    pc_arguments arguments;
    pc_imported *import;
    bool is_recipe; /* NeMo or Megatron-Bridge */
    pc_error *error;
} pc_megatron_reader;

/* None, null. */
bool pc_megatron_is_nothing(const char *value);

/* The last argument of one of the names "one|two"; NULL if there is none, or it says nothing. */
const pc_argument *pc_megatron_find(const pc_megatron_reader *r, const char *names);

/* Whether a flag is on: there, and not said to be false. */
bool pc_megatron_is_on(const pc_megatron_reader *r, const char *names);

/* Its text; "" if there is none. */
const char *pc_megatron_text(const pc_megatron_reader *r, const char *names);

/* Whether text `index` of a value is the word; of "[a, b]", "a b" and "'a'". */
bool pc_megatron_has_word(const char *value, const char *word);

/* A whole number; `*number` stays as it is if there is none. */
pc_code pc_megatron_number(const pc_megatron_reader *r, const char *names, int64_t least, int64_t *number);

/* The same as a setting, 1 or more where the setting has to be; and of "[2, 4]" and "2 4" the first. */
pc_code pc_megatron_take(pc_megatron_reader *r, const char *names, const char *key);
pc_code pc_megatron_take_first(pc_megatron_reader *r, const char *names, const char *key);

/* A number from 0 to 1, likewise. */
pc_code pc_megatron_fraction(const pc_megatron_reader *r, const char *name, double *number);

/* Refuses words that an argument cannot be, and notes those that Megatron-LM has and we do not: megatron_values.c. */
pc_code pc_megatron_check_values(pc_megatron_reader *r);

pc_code pc_megatron_refuse(const pc_megatron_reader *r, const pc_argument *argument, const char *expected);

/* What follows from several arguments, behind what stands for itself: megatron_rules.c and megatron_cut.c. */
pc_code pc_megatron_take_model(pc_megatron_reader *r);
pc_code pc_megatron_take_memory(pc_megatron_reader *r);
pc_code pc_megatron_take_cut(pc_megatron_reader *r);

#endif
