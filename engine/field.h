/* field.h: what a field of a struct is, said once: name, unit, words, type, place, range.
 *
 * Of lists of these are made what reads, writes, hashes and describes a struct: the settings of a run, the columns of
 * its results, the tables of a profile.
 */
#ifndef PC_ENGINE_FIELD_H
#define PC_ENGINE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_field_type {
    PC_FIELD_TEXT,   /* char[size]; "" is "not defined" */
    PC_FIELD_UINT8,  /* uint8_t; with `choices` its values have names in files, as those of the next */
    PC_FIELD_INT16,  /* int16_t */
    PC_FIELD_INT32,  /* int32_t; -1 is "not defined", where that can be, as of the next */
    PC_FIELD_INT64,  /* int64_t */
    PC_FIELD_REAL,   /* double, finite */
    PC_FIELD_ANY,    /* double; NaN is "not known" */
    PC_FIELD_NUMBER, /* double, of any size and sign; what is not finite is "not defined" */
    PC_FIELD_FLAG,   /* bool, stored as 0 or 1 */
    PC_FIELD_CHOICE, /* an enum or int32_t, stored as one of `choices`; any other number is "not defined" */
    PC_FIELD_HASH    /* uint64_t, stored as 16 hexadecimal digits; 0 is "not defined" */
} pc_field_type;

typedef struct pc_field {
    const char *name, *unit, *description;
    pc_field_type type;
    size_t place, size;         /* in the struct */
    const char *const *choices; /* ends with NULL */
    int64_t least, most;        /* of whole numbers, both 0: any; of REAL and ANY `least` alone */
    bool is_optional;           /* it may be "not defined": files say how that looks, and have "" for a text */
    size_t stored_size;         /* bytes that a choice has in files; 0: those of the longest */
    bool may_lack;              /* files from before there was such a field lack it: read, it stays as it was */
} pc_field;

/* Where it lies: PC_FIELD_AT(pc_profile, name). */
#define PC_FIELD_AT(row, member) .place = offsetof(row, member), .size = sizeof(((row *)NULL)->member)

/* Of which type, by the member's own: an enum is an INT32, a double REAL. */
#define PC_FIELD_TYPE(row, member)                                                                                     \
    _Generic(((row *)NULL)->member,                                                                                    \
        char *: PC_FIELD_TEXT,                                                                                         \
        int32_t: PC_FIELD_INT32,                                                                                       \
        uint32_t: PC_FIELD_INT32,                                                                                      \
        int64_t: PC_FIELD_INT64,                                                                                       \
        uint64_t: PC_FIELD_INT64,                                                                                      \
        double: PC_FIELD_REAL,                                                                                         \
        bool: PC_FIELD_FLAG)

/* What a struct has: text of TEXT and CHOICE ("" if it is none of them), otherwise NULL; the others 0 if they do
 * not apply. */
typedef struct pc_field_value {
    const char *text;
    int64_t integer;
    double real;
} pc_field_value;
pc_field_value pc_field_of(const pc_field *field, const void *row);

static inline bool pc_field_is_text(const pc_field *field) {
    return field->type == PC_FIELD_TEXT || field->type == PC_FIELD_CHOICE || field->type == PC_FIELD_HASH;
}

static inline bool pc_field_is_real(const pc_field *field) {
    return field->type == PC_FIELD_REAL || field->type == PC_FIELD_ANY || field->type == PC_FIELD_NUMBER;
}

/* Bytes of the value in the struct; of numbers also where `size` is not given. */
size_t pc_field_size(const pc_field *field);

/* Whether the struct has a value there; and makes it have none, where the type has a value for that. */
bool pc_field_is_defined(const pc_field *field, const void *row);
void pc_field_clear(const pc_field *field, void *row);

/* A value of a text's type as text, cut to `size` with its zero; "" if it is not defined. */
void pc_field_get_text(const pc_field *field, const void *row, char *text, size_t size);

/* The way back, for a type of that sort: false if the field cannot have the value (the struct may then have a number
 * all the same). "" is no choice and no hash. */
bool pc_field_set_text(const pc_field *field, void *row, const char *text);
bool pc_field_set_integer(const pc_field *field, void *row, int64_t value);
bool pc_field_set_real(const pc_field *field, void *row, double value);

/* Adds its value to a hash: a text's length and bytes, never padding; all NaNs are one. */
struct pc_hash; /* engine/hash.h */
void pc_field_hash(const pc_field *field, const void *row, struct pc_hash *hash);

#ifdef __cplusplus
}
#endif

#endif
