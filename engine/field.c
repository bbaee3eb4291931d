#include "engine/field.h"

#include "engine/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t pc_field_size(const pc_field *field) {
    switch (field->type) {
    case PC_FIELD_TEXT:
        return field->size;
    case PC_FIELD_UINT8:
        return sizeof(uint8_t);
    case PC_FIELD_INT16:
        return sizeof(int16_t);
    case PC_FIELD_INT32:
    case PC_FIELD_CHOICE:
        return sizeof(int32_t);
    case PC_FIELD_FLAG:
        return sizeof(bool);
    default:
        return sizeof(int64_t);
    }
}

/* ---- values ---- */

static int64_t integer_of(const pc_field *field, const void *row) {
    const char *at = (const char *)row + field->place;
    int64_t wide;
    int32_t narrow;
    int16_t small;
    uint8_t tiny;
    bool flag;
    switch (field->type) {
    case PC_FIELD_UINT8:
        return memcpy(&tiny, at, sizeof tiny), tiny;
    case PC_FIELD_INT16:
        return memcpy(&small, at, sizeof small), small;
    case PC_FIELD_INT32:
    case PC_FIELD_CHOICE:
        return memcpy(&narrow, at, sizeof narrow), narrow;
    case PC_FIELD_FLAG:
        return memcpy(&flag, at, sizeof flag), flag;
    default:
        return memcpy(&wide, at, sizeof wide), wide;
    }
}

static bool is_choice(const pc_field *field, int64_t number) {
    if (number < 0) return false;
    for (int64_t i = 0; i <= number; i++)
        if (!field->choices[i]) return false;
    return true;
}

static const char *text_of(const pc_field *field, const void *row) {
    if (field->type == PC_FIELD_TEXT) return (const char *)row + field->place;
    int64_t number = integer_of(field, row);
    return is_choice(field, number) ? field->choices[number] : "";
}

static bool set_choice(const pc_field *field, void *row, const char *text) {
    for (int32_t number = 0; field->choices[number]; number++) {
        if (strcmp(field->choices[number], text) != 0) continue;
        memcpy((char *)row + field->place, &number, sizeof number);
        return true;
    }
    return false;
}

static bool set_hash(const pc_field *field, void *row, const char *text) {
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
    uint64_t value = strtoull(text, NULL, 16);
    memcpy((char *)row + field->place, &value, sizeof value);
    return true;
}

bool pc_field_set_text(const pc_field *field, void *row, const char *text) {
    if (field->type == PC_FIELD_CHOICE) return set_choice(field, row, text);
    if (field->type == PC_FIELD_HASH) return set_hash(field, row, text);
    if (strlen(text) >= field->size) return false;
    memcpy((char *)row + field->place, text, strlen(text) + 1);
    return true;
}

void pc_field_get_text(const pc_field *field, const void *row, char *text, size_t size) {
    text[0] = '\0';
    if (!pc_field_is_defined(field, row)) return;
    if (field->type == PC_FIELD_HASH)
        snprintf(text, size, "%016" PRIx64, (uint64_t)integer_of(field, row));
    else if (field->type == PC_FIELD_CHOICE)
        snprintf(text, size, "%s", text_of(field, row));
    else
        snprintf(text, size, "%.*s", (int)strnlen(text_of(field, row), field->size), text_of(field, row));
}

static bool is_in_range(const pc_field *field, int64_t value) {
    bool is_any = field->least == 0 && field->most == 0;
    return is_any || (value >= field->least && value <= field->most);
}

bool pc_field_set_integer(const pc_field *field, void *row, int64_t value) {
    char *at = (char *)row + field->place;
    int32_t narrow = (int32_t)value;
    int16_t small = (int16_t)value;
    uint8_t tiny = (uint8_t)value;
    bool flag = value != 0;
    if (field->type == PC_FIELD_FLAG) return memcpy(at, &flag, sizeof flag), value == 0 || value == 1;
    if (!is_in_range(field, value)) return false;
    if (field->type == PC_FIELD_INT32)
        memcpy(at, &narrow, sizeof narrow);
    else if (field->type == PC_FIELD_INT16)
        memcpy(at, &small, sizeof small);
    else if (field->type == PC_FIELD_UINT8)
        memcpy(at, &tiny, sizeof tiny);
    else
        memcpy(at, &value, sizeof value);
    return true;
}

static double real_of(const pc_field *field, const void *row) {
    double value;
    memcpy(&value, (const char *)row + field->place, sizeof value);
    return value;
}

bool pc_field_set_real(const pc_field *field, void *row, double value) {
    memcpy((char *)row + field->place, &value, sizeof value);
    if (field->type == PC_FIELD_NUMBER || (field->type == PC_FIELD_ANY && isnan(value))) return true;
    return isfinite(value) && value >= (double)field->least;
}

pc_field_value pc_field_of(const pc_field *field, const void *row) {
    if (field->type == PC_FIELD_TEXT || field->type == PC_FIELD_CHOICE)
        return (pc_field_value){.text = text_of(field, row)};
    if (pc_field_is_real(field)) return (pc_field_value){.real = real_of(field, row)};
    return (pc_field_value){.integer = integer_of(field, row)};
}

bool pc_field_is_defined(const pc_field *field, const void *row) {
    switch (field->type) {
    case PC_FIELD_TEXT:
        return *text_of(field, row) != '\0';
    case PC_FIELD_CHOICE:
        return is_choice(field, integer_of(field, row));
    case PC_FIELD_HASH:
        return integer_of(field, row) != 0;
    case PC_FIELD_INT32:
    case PC_FIELD_INT64:
        return integer_of(field, row) != -1;
    case PC_FIELD_REAL:
    case PC_FIELD_ANY:
    case PC_FIELD_NUMBER:
        return isfinite(real_of(field, row));
    default:
        return true;
    }
}

void pc_field_clear(const pc_field *field, void *row) {
    const double no_real = NAN;
    char *at = (char *)row + field->place;
    if (pc_field_is_real(field))
        memcpy(at, &no_real, sizeof no_real);
    else
        memset(at,
               field->type == PC_FIELD_INT32 || field->type == PC_FIELD_INT64 || field->type == PC_FIELD_CHOICE ? -1
                                                                                                                : 0,
               pc_field_size(field)); /* bytes of ones are -1 */
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

/* Of all but texts, in one step: a sweep hashes some 200 for every run. */
static uint64_t word_of(const pc_field *field, const void *row) {
    const char *at = (const char *)row + field->place;
    uint64_t wide;
    int32_t narrow;
    switch (field->type) {
    case PC_FIELD_REAL:
    case PC_FIELD_ANY:
    case PC_FIELD_NUMBER:
        memcpy(&wide, at, sizeof wide);
        return (wide & INT64_MAX) > UINT64_C(0x7ff0000000000000) ? UINT64_C(0x7ff8000000000000) : wide;
    case PC_FIELD_INT64:
        return memcpy(&wide, at, sizeof wide), wide;
    case PC_FIELD_INT32:
        return memcpy(&narrow, at, sizeof narrow), (uint64_t)(int64_t)narrow;
    default:
        return (uint64_t)integer_of(field, row);
    }
}

void pc_field_hash(const pc_field *field, const void *row, pc_hash *hash) {
    const char *at = (const char *)row + field->place;
    if (field->type == PC_FIELD_TEXT)
        hash_text(at, strnlen(at, field->size), hash);
    else
        pc_hash_add(hash, word_of(field, row));
}
