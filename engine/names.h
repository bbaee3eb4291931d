/* names.h: which of some names a misspelt word probably means. Pure: words in, words out.
 *
 * Case, '-', '_' and spaces do not count. Names are better in this order. First the same word, or all of it but a
 * letter at an end; then a part of the name. Then one slip away: a letter too many, too few, another, or two that
 * changed places. Then the name a part of the word; last a few slips away, of long words more than of short ones.
 */
#ifndef PC_ENGINE_NAMES_H
#define PC_ENGINE_NAMES_H

#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_NEAREST_MAX = 3, PC_NEAREST_NAME = 128, PC_NEAREST_TEXT = 512 };

/* Start with `{.word = ...}`, and offer it name after name. */
typedef struct pc_nearest {
    const char *word; /* borrowed */
    int count;        /* of names that are near; 0: none is */
    int rank[PC_NEAREST_MAX];
    char name[PC_NEAREST_MAX][PC_NEAREST_NAME]; /* the nearest first */
} pc_nearest;

/* Keeps the name where it is as near as the nearest. One of PC_NEAREST_NAME bytes or more is passed over. */
void pc_nearest_offer(pc_nearest *nearest, const char *name);

/* The same of a name that people know by another: `alias` is what the word is compared with. */
void pc_nearest_offer_as(pc_nearest *nearest, const char *name, const char *alias);

/* Offers the words of "one|two|three". */
void pc_nearest_offer_words(pc_nearest *nearest, const char *words);

/* Writes " (did you mean a, b or c?)", or nothing if no name is near, and returns `text`. */
const char *pc_nearest_hint(const pc_nearest *nearest, char text[PC_NEAREST_TEXT]);

/* Which of "one|two|three" the text is, from 0; `what` says what the words are. PC_ERROR_INPUT with all of them, and
 * those that are near, if it is none. */
pc_code pc_word_choose(const char *what, const char *words, const char *text, int *index, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
