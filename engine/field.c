#include "engine/field.h"

#include <math.h>
#include <string.h>

/* ---- values ---- */

static const char *text_of(const pc_field *field, const void *row) {
    const char *at = (const char *)row + field->place;
    if (field->type == PC_FIELD_TEXT) return at;
    int32_t number;
    memcpy(&number, at, sizeof number);
    return field->choices[number];
}

bool pc_field_set_text(const pc_field *field, void *row, const char *text) {
    char *at = (char *)row + field->place;
    if (field->type == PC_FIELD_TEXT) {
        if (strlen(text) >= field->size) return false;
        memcpy(at, text, strlen(text) + 1);
        return true;
    }
    for (int32_t number = 0; field->choices[number]; number++) {
        if (strcmp(field->choices[number], text) != 0) continue;
        memcpy(at, &number, sizeof number);
        return true;
    }
    return false;
}

static int64_t integer_of(const pc_field *field, const void *row) {
    const char *at = (const char *)row + field->place;
    int64_t wide;
    int32_t narrow;
    bool flag;
    if (field->type == PC_FIELD_INT64) return memcpy(&wide, at, sizeof wide), wide;
    if (field->type == PC_FIELD_INT32 || field->type == PC_FIELD_CHOICE)
        return memcpy(&narrow, at, sizeof narrow), narrow;
    return memcpy(&flag, at, sizeof flag), flag;
}

bool pc_field_set_integer(const pc_field *field, void *row, int64_t value) {
    char *at = (char *)row + field->place;
    int32_t narrow = (int32_t)value;
    bool flag = value != 0;
    if (field->type == PC_FIELD_FLAG) return memcpy(at, &flag, sizeof flag), value == 0 || value == 1;
    if (value < field->least || value > field->most) return false;
    if (field->type == PC_FIELD_INT64)
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &narrow, sizeof narrow);
    return true;
}

static double real_of(const pc_field *field, const void *row) {
    double value;
    memcpy(&value, (const char *)row + field->place, sizeof value);
    return value;
}

bool pc_field_set_real(const pc_field *field, void *row, double value) {
    memcpy((char *)row + field->place, &value, sizeof value);
    if (field->type == PC_FIELD_ANY && isnan(value)) return true;
    return isfinite(value) && value >= (double)field->least;
}

pc_field_value pc_field_of(const pc_field *field, const void *row) {
    if (pc_field_is_text(field)) return (pc_field_value){.text = text_of(field, row)};
    if (pc_field_is_real(field)) return (pc_field_value){.real = real_of(field, row)};
    return (pc_field_value){.integer = integer_of(field, row)};
}

/* ---- hashes ---- */

/* Into words, so that the order of bytes in memory does not show. */
static void hash_text(const char *text, size_t length, pc_hash *hash) {
    pc_hash_add(hash, length);
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        for (size_t k = i; k < length && k < i + 8; k++) word |= (uint64_t)(unsigned char)text[k] << (8 * (k - i));
        pc_hash_add(hash, word);
    }
}

/* Of all but texts. */
static uint64_t word_of(const pc_field *field, const char *at) {
    int32_t narrow;
    uint64_t wide;
    switch (field->type) {
    case PC_FIELD_INT64:
        return memcpy(&wide, at, sizeof wide), wide;
    case PC_FIELD_REAL:
    case PC_FIELD_ANY:
        memcpy(&wide, at, sizeof wide);
        return (wide & INT64_MAX) > UINT64_C(0x7ff0000000000000) ? UINT64_C(0x7ff8000000000000) : wide;
    case PC_FIELD_FLAG:
        return *at != 0;
    default:
        return memcpy(&narrow, at, sizeof narrow), (uint64_t)(int64_t)narrow;
    }
}

void pc_field_hash(const pc_field *field, const void *row, pc_hash *hash) {
    const char *at = (const char *)row + field->place;
    if (field->type == PC_FIELD_TEXT)
        hash_text(at, strnlen(at, field->size), hash);
    else
        pc_hash_add(hash, word_of(field, at));
}
