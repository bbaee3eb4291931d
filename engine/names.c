#include "engine/names.h"

#include "engine/numbers.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS_MAX = 63, NOT_NEAR = -1 };

/* How near a name is: one of these, and what tells names of one of them apart. */
enum { SAME, UNFINISHED = 1000, SLIP = 2000, OVERDONE = 3000, SLIPS = 4000, CLASS = 1000 };

/* A word in small letters, without what does not count. */
typedef struct letters {
    char text[LETTERS_MAX + 1];
    int count;
    bool is_cut; /* it has more */
} letters;

static bool is_separator(char c) {
    return c == '-' || c == '_' || c == ' ';
}

static char letter_of(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static letters letters_of(const char *word) {
    letters made = {.count = 0};
    for (; *word; word++) {
        if (is_separator(*word)) continue;
        if (made.count == LETTERS_MAX) return made.is_cut = true, made;
        made.text[made.count++] = letter_of(*word);
    }
    return made;
}

/* How many letters must be put in, taken out, changed, or change places with their neighbour, to make b of a. */
static int distance(const letters *a, const letters *b) {
    int rows[3][LETTERS_MAX + 1];
    int *older = rows[0], *before = rows[1], *here = rows[2];
    for (int k = 0; k <= b->count; k++) before[k] = k;
    for (int i = 1; i <= a->count; i++) {
        here[0] = i;
        for (int k = 1; k <= b->count; k++) {
            char x = a->text[i - 1], y = b->text[k - 1];
            here[k] = pc_min(pc_min(before[k], here[k - 1]) + 1, before[k - 1] + (x != y));
            if (i > 1 && k > 1 && x == b->text[k - 2] && y == a->text[i - 2])
                here[k] = pc_min(here[k], older[k - 2] + 1);
        }
        int *unused = older;
        older = before;
        before = here;
        here = unused;
    }
    return before[b->count];
}

/* Slips after which a word of so many letters is still the same word. */
static int most_slips(int count) {
    return count < 3 ? 0 : count < 5 ? 1 : count < 8 ? 2 : count < 12 ? 3 : 4;
}

/* Whether `part` stands between separators in `whole`: "h2" of "zb-h2". */
static bool has_piece(const char *whole, const letters *part) {
    while (*whole) {
        int length = 0;
        while (whole[length] && !is_separator(whole[length])) length++;
        letters piece = {.count = 0};
        char text[LETTERS_MAX + 1];
        if (length <= LETTERS_MAX) {
            snprintf(text, sizeof text, "%.*s", length, whole);
            piece = letters_of(text);
        }
        if (piece.count == part->count && memcmp(piece.text, part->text, (size_t)piece.count) == 0) return true;
        whole += length + (whole[length] != '\0');
    }
    return false;
}

/* Whether `part` stands in `whole` from here on; how many separators it runs over. */
static bool stands_at(const char *here, const letters *part, int *separators) {
    int found = 0;
    for (*separators = 0; *here && found < part->count; here++) {
        if (is_separator(*here))
            ++*separators;
        else if (letter_of(*here) == part->text[found])
            found++;
        else
            return false;
    }
    return found == part->count;
}

/* Whether `part` stands in `whole`; over a separator only from the beginning of a piece: "vhal" of "v-half", and not
 * "tpp" of "sent_pp". */
static bool holds(const char *whole, const letters *part) {
    int separators;
    for (const char *here = whole; *here; here++) {
        bool begins = here == whole || is_separator(here[-1]);
        if (!is_separator(*here) && stands_at(here, part, &separators) && (begins || separators == 0)) return true;
    }
    return false;
}

/* Three letters that stand anywhere in a word say little of it, two next to nothing. */
static bool is_part(const char *whole, const letters *part, int enough) {
    if (part->count < 2 || part->is_cut) return false;
    return has_piece(whole, part) || (part->count >= enough && holds(whole, part));
}

static int rank_of(const char *word, const char *alias) {
    letters a = letters_of(word), b = letters_of(alias);
    if (a.count == 0 || b.count == 0) return NOT_NEAR;
    int apart = a.count > b.count ? a.count - b.count : b.count - a.count;
    int slips = a.is_cut || b.is_cut ? LETTERS_MAX : distance(&a, &b);
    if (slips == 0) return SAME;
    if (is_part(alias, &a, 3)) return apart == 1 ? SAME + 1 : UNFINISHED + apart;
    if (slips == 1 && a.count + b.count > 4) return SLIP; /* "rn" is run, but tp is not pp */
    if (is_part(word, &b, 4)) return OVERDONE + apart;
    return slips <= most_slips(a.count) && slips < b.count ? SLIPS + slips : NOT_NEAR;
}

/* Names of which the word is a part are all meant by it, the shorter ones rather; and so are those that it holds. */
static bool are_alike(int rank, int other) {
    bool is_of_parts = rank / CLASS == UNFINISHED / CLASS || rank / CLASS == OVERDONE / CLASS;
    return rank == other || (is_of_parts && rank / CLASS == other / CLASS);
}

static int place_of(const pc_nearest *nearest, const char *name) {
    for (int i = 0; i < nearest->count; i++)
        if (strcmp(nearest->name[i], name) == 0) return i;
    return nearest->count;
}

static void remove_at(pc_nearest *nearest, int place) {
    if (place >= nearest->count) return;
    for (int i = place; i + 1 < nearest->count; i++) {
        nearest->rank[i] = nearest->rank[i + 1];
        memcpy(nearest->name[i], nearest->name[i + 1], PC_NEAREST_NAME);
    }
    nearest->count--;
}

/* Behind those that are nearer or as near; what has no room any more is the farthest. */
static void insert(pc_nearest *nearest, const char *name, int rank) {
    int place = nearest->count;
    while (place > 0 && nearest->rank[place - 1] > rank) place--;
    if (place == PC_NEAREST_MAX) return;
    if (nearest->count < PC_NEAREST_MAX) nearest->count++;
    for (int i = nearest->count - 1; i > place; i--) {
        nearest->rank[i] = nearest->rank[i - 1];
        memcpy(nearest->name[i], nearest->name[i - 1], PC_NEAREST_NAME);
    }
    nearest->rank[place] = rank;
    snprintf(nearest->name[place], PC_NEAREST_NAME, "%s", name);
}

void pc_nearest_offer_as(pc_nearest *nearest, const char *name, const char *alias) {
    int rank = strlen(name) < PC_NEAREST_NAME ? rank_of(nearest->word, alias) : NOT_NEAR;
    if (rank == NOT_NEAR) return;
    int place = place_of(nearest, name);
    if (place < nearest->count && nearest->rank[place] <= rank) return;
    remove_at(nearest, place);
    if (nearest->count > 0 && !are_alike(rank, nearest->rank[0])) {
        if (rank > nearest->rank[0]) return;
        nearest->count = 0;
    }
    insert(nearest, name, rank);
}

void pc_nearest_offer(pc_nearest *nearest, const char *name) {
    pc_nearest_offer_as(nearest, name, name);
}

void pc_nearest_offer_words(pc_nearest *nearest, const char *words) {
    char word[PC_NEAREST_NAME];
    for (size_t length; *words; words += length + (words[length] != '\0')) {
        length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        pc_nearest_offer(nearest, word);
    }
}

const char *pc_nearest_hint(const pc_nearest *nearest, char text[PC_NEAREST_TEXT]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < nearest->count; i++) {
        const char *before = i == 0 ? " (did you mean " : i + 1 == nearest->count ? " or " : ", ";
        used += (size_t)snprintf(text + used, PC_NEAREST_TEXT - used, "%s%s", before, nearest->name[i]);
    }
    if (nearest->count > 0) snprintf(text + used, PC_NEAREST_TEXT - used, "?)");
    return text;
}

pc_code pc_word_choose(const char *what, const char *words, const char *text, int *index, pc_error *error) {
    char hint[PC_NEAREST_TEXT], list[256];
    pc_nearest nearest = {.word = text};
    size_t used = 0;
    const char *word = words;
    for (int i = 0; *word; i++) {
        size_t length = strcspn(word, "|");
        bool is_last = word[length] == '\0', is_next_last = !is_last && !strchr(word + length + 1, '|');
        if (strlen(text) == length && memcmp(word, text, length) == 0) return *index = i, PC_OK;
        used += (size_t)snprintf(list + used, sizeof list - used, "%.*s%s", (int)length, word,
                                 is_last        ? ""
                                 : is_next_last ? " or "
                                                : ", ");
        word += length + !is_last;
    }
    pc_nearest_offer_words(&nearest, words);
    return pc_error_set(error, PC_ERROR_INPUT, "unknown %s '%s'%s; expected %s", what, text,
                        pc_nearest_hint(&nearest, hint), list);
}
