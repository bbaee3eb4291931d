/* What a fit is for: whether two keys say the same, and its name for people. */
#include "calib/fit/fit.h"

#include <stdio.h>
#include <string.h>

static int order_of(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

int pc_fit_key_order(const pc_fit_key *key, const pc_fit_key *other) {
    const int orders[] = {order_of(key->form, other->form),         strcmp(key->subject, other->subject),
                          strcmp(key->dtype, other->dtype),         strcmp(key->link, other->link),
                          order_of(key->cache, other->cache),       order_of(key->ranks, other->ranks),
                          order_of(key->nodes, other->nodes),       order_of(key->is_causal, other->is_causal),
                          strcmp(key->library, other->library),     strcmp(key->site, other->site),
                          strcmp(key->out_dtype, other->out_dtype), strcmp(key->variant, other->variant),
                          order_of(key->head_dim, other->head_dim), order_of(key->window, other->window)};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i]) return orders[i];
    return 0;
}

bool pc_fit_key_is(const pc_fit_key *key, const pc_fit_key *other) {
    return pc_fit_key_order(key, other) == 0;
}

static void add_text(char *name, size_t size, const char *between, const char *text) {
    size_t used = strlen(name);
    if (text[0] != '\0' && used < size) snprintf(name + used, size - used, "%s%s", used > 0 ? between : "", text);
}

static void add_count(char *name, size_t size, int32_t count, const char *what) {
    char text[48];
    snprintf(text, sizeof text, "%d %s", (int)count, what);
    add_text(name, size, ", ", text);
}

static void add_origin(char *name, size_t size, const pc_fit_key *key) {
    add_text(name, size, ", ", key->library);
    add_text(name, size, " of ", key->site);
}

void pc_fit_name(const pc_fit_key *key, char *name, size_t size) {
    if (size == 0) return;
    name[0] = '\0';
    add_text(name, size, "", key->subject);
    if (pc_fit_form_is_transfer(key->form)) {
        add_text(name, size, " ", key->dtype);
        if (key->ranks > 0) add_count(name, size, key->ranks, "ranks");
        if (key->nodes > 1) add_count(name, size, key->nodes, "nodes");
        add_text(name, size, ", ", key->link);
        add_text(name, size, ", ", key->library);
        add_text(name, size, " ", key->variant);
        add_text(name, size, " of ", key->site);
        return;
    }
    add_text(name, size, " ", key->dtype);
    add_text(name, size, " to ", key->out_dtype);
    if (key->head_dim > 0) add_count(name, size, key->head_dim, "a head");
    if (key->window > 0) add_count(name, size, (int32_t)key->window, "keys seen");
    add_text(name, size, ", ", key->variant);
    add_text(name, size, " ", key->is_causal ? "causal" : "");
    add_text(name, size, " ", key->cache == PC_CACHE_HOT ? "hot" : "cold");
    add_origin(name, size, key);
}
