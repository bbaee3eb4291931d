#include "engine/character.h"

#include <stddef.h>

/* ---- UTF-8 ---- */

/* The length of the sequence that `lead` starts, and the bits of the character it holds; 0 if it starts none. */
static int sequence_length(unsigned char lead, unsigned *bits) {
    if (lead < 0x80) return *bits = lead, 1;
    if (lead >= 0xC2 && lead <= 0xDF) return *bits = lead & 0x1F, 2;
    if ((lead & 0xF0) == 0xE0) return *bits = lead & 0x0F, 3;
    if (lead >= 0xF0 && lead <= 0xF4) return *bits = lead & 0x07, 4;
    return 0;
}

/* Surrogates, numbers past Unicode's end, and characters written longer than need be are not valid. */
static bool is_valid(unsigned character, int length) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = character >= 0xD800 && character <= 0xDFFF;
    return character >= least[length] && character <= 0x10FFFF && !surrogate;
}

unsigned pc_utf8_next(const char **bytes) {
    const unsigned char *at = (const unsigned char *)*bytes;
    unsigned character;
    int length = sequence_length(*at, &character);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            length = 0; /* the text may end here: look no further */
        else
            character = character << 6 | (at[i] & 0x3F);
    }
    bool valid = length > 0 && is_valid(character, length);
    *bytes += valid ? length : 1;
    return valid ? character : PC_NO_CHARACTER;
}

/* ---- what may be shown ---- */

/* Of Unicode 16: the categories Cc, Cf, Zl and Zp, what DerivedCoreProperties.txt calls default ignorable but for the
 * variation selectors at FE00, and the noncharacters that are not the last two of a plane. Ascending. */
static const struct range {
    unsigned first, last;
} hidden[] = {
    {0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x0600, 0x0605},
    {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},   {0x0890, 0x0891},   {0x08E2, 0x08E2},
    {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFDD0, 0xFDEF},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool pc_character_is_shown(unsigned character) {
    if ((character & 0xFFFE) == 0xFFFE) return false; /* the last two of a plane are no characters */
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden && character >= hidden[i].first; i++)
        if (character <= hidden[i].last) return false;
    return true;
}

bool pc_character_ends_line(unsigned character) {
    return character == '\n' || character == '\r' || character == 0x85 || character == 0x2028 || character == 0x2029;
}
