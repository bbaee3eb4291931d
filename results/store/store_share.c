/* A share of a search for plans, a group of the results file. */
#include "engine/alloc.h"
#include "results/store/store_private.h"

#include <string.h>

enum { SHARES_MOST = 1 << 20 };

static const pc_field head_fields[] = {
    {"shard", "1", "", PC_FIELD_INT64, PC_FIELD_AT(pc_plan_share, shard), .least = 1, .most = SHARES_MOST},
    {"shard_count", "1", "", PC_FIELD_INT64, PC_FIELD_AT(pc_plan_share, shard_count), .least = 1, .most = SHARES_MOST},
};

#define COUNT(member, words)                                                                                           \
    {                                                                                                                  \
        .name = #member, .unit = "1", .description = words, .type = PC_FIELD_INT64, .most = INT64_MAX,                 \
        PC_FIELD_AT(pc_share_search, log.member)                                                                       \
    }
#define BROKEN(rule, of)                                                                                               \
    {                                                                                                                  \
        .name = "broken_" of, .unit = "1", .description = "of them, by the first rule that they break",                \
        .type = PC_FIELD_INT64, .most = INT64_MAX, PC_FIELD_AT(pc_share_search, log.broken[rule])                      \
    }
static const pc_field search_fields[] = {
    {"key_high", "", "hash of the space and of what was wanted, its first half", PC_FIELD_HASH,
     PC_FIELD_AT(pc_share_search, key_high)},
    {"key_low", "", "its second half", PC_FIELD_HASH, PC_FIELD_AT(pc_share_search, key_low)},
    {.name = "plans",
     .unit = "1",
     .description = "plans found, which stand in /plan_share/found behind those of the searches before it",
     .type = PC_FIELD_INT64,
     .most = INT64_MAX,
     PC_FIELD_AT(pc_share_search, plans)},
    COUNT(points, "points of the share"),
    COUNT(broken_rule, "points that break a rule"),
    BROKEN(PC_PLAN_RULE_GPUS, "gpus"),
    BROKEN(PC_PLAN_RULE_INTERLEAVING, "interleaving"),
    BROKEN(PC_PLAN_RULE_LAYERS, "layers"),
    BROKEN(PC_PLAN_RULE_EXPERTS, "experts"),
    BROKEN(PC_PLAN_RULE_BATCH, "batch"),
    BROKEN(PC_PLAN_RULE_SCHEDULE, "schedule"),
    BROKEN(PC_PLAN_RULE_OFFLOAD, "offload"),
    BROKEN(PC_PLAN_RULE_TENSOR, "tensor"),
    BROKEN(PC_PLAN_RULE_SIZE, "size"),
    COUNT(over_memory, "points over memory by a bound"),
    COUNT(too_slow, "points not among the share's best by a bound"),
    COUNT(simulated, "points simulated"),
    COUNT(simulated_over_memory, "of them over memory"),
    COUNT(simulated_infeasible, "of them infeasible"),
    {"worst_bound", "1", "bound over simulated time, the least", PC_FIELD_NUMBER,
     PC_FIELD_AT(pc_share_search, log.worst_bound)},
    {"mean_bound", "1", "the same, the mean", PC_FIELD_NUMBER, PC_FIELD_AT(pc_share_search, log.mean_bound)},
};
_Static_assert(PC_PLAN_RULES == 9, "each has a line");

#define EXPOSED(member)                                                                                                \
    {                                                                                                                  \
        "exposed_" #member, "s", "what the iteration waits for it", PC_FIELD_NUMBER,                                   \
            PC_FIELD_AT(pc_plan_found, exposed.member)                                                                 \
    }
static const pc_field found_fields[] = {
    {"number", "1", "of the point", PC_FIELD_INT64, PC_FIELD_AT(pc_plan_found, number), .most = INT64_MAX},
    {"iteration_s", "s", "time of an iteration", PC_FIELD_NUMBER, PC_FIELD_AT(pc_plan_found, iteration_s)},
    {"sequences_per_s", "1/s", "of the whole cluster", PC_FIELD_NUMBER, PC_FIELD_AT(pc_plan_found, sequences_per_s)},
    {"memory_bytes", "byte", "on the fullest GPU", PC_FIELD_INT64, PC_FIELD_AT(pc_plan_found, memory_bytes),
     .most = INT64_MAX},
    EXPOSED(tp),
    EXPOSED(cp),
    EXPOSED(ep),
    EXPOSED(pp),
    EXPOSED(dp),
    EXPOSED(optimizer),
    EXPOSED(bubble),
    {"mfu", "1", "", PC_FIELD_NUMBER, PC_FIELD_AT(pc_plan_found, mfu)},
    {"bound_s", "s", "what the search knew before simulating it", PC_FIELD_NUMBER, PC_FIELD_AT(pc_plan_found, bound_s)},
    {"memory_limits", "1", "whether something faster does not fit", PC_FIELD_FLAG,
     PC_FIELD_AT(pc_plan_found, memory_limits)},
};

#define FIELDS(list, row)                                                                                              \
    { list, sizeof(list) / sizeof(list)[0], sizeof(row) }
static const pc_fields of_head = FIELDS(head_fields, pc_plan_share);
static const pc_fields of_search = FIELDS(search_fields, pc_share_search);
static const pc_fields of_found = FIELDS(found_fields, pc_plan_found);

static const char share_name[] = "plan_share", words_name[] = "words";

/* ---- writing ---- */

static pc_code write_table(hid_t share, const char *name, const pc_fields *fields, const void *rows, int64_t count,
                           pc_error *error) {
    hid_t group = pc_h5_group_create(share, name);
    if (group < 0) return pc_store_fail(error);
    pc_code code = pc_fields_write(group, fields, rows, count, error);
    H5Gclose(group);
    return code;
}

static pc_code write_words(hid_t group, const char *words, pc_error *error) {
    hid_t dataset = pc_store_text_write(group, words_name, words, strlen(words));
    if (dataset < 0) return pc_store_fail(error);
    bool done = pc_h5_put_text(dataset, "unit", "") &&
                pc_h5_put_text(dataset, "description", "of the command, but for those that every share has of its own");
    H5Dclose(dataset);
    return done ? PC_OK : pc_store_fail(error);
}

pc_code pc_store_share_write(hid_t file, const pc_plan_share *share, pc_error *error) {
    hid_t group = pc_h5_group_create(file, share_name);
    if (group < 0) return pc_store_fail(error);
    pc_code code = pc_fields_put(group, &of_head, share, error);
    if (!code) code = write_words(group, share->words, error);
    if (!code) code = write_table(group, "searches", &of_search, share->searches, share->search_count, error);
    if (!code) code = write_table(group, "found", &of_found, share->found, share->found_count, error);
    H5Gclose(group);
    return code;
}

/* ---- reading ---- */

static pc_code read_table(hid_t share, const char *name, const pc_fields *fields, void **rows, int64_t *count,
                          pc_error *error) {
    hid_t group = pc_h5_group_open(share, name);
    if (group < 0) return pc_store_refuse(error, name);
    pc_code code = pc_fields_read(group, name, fields, rows, count, error);
    H5Gclose(group);
    return code;
}

static pc_code read_words(hid_t group, char **words, pc_error *error) {
    size_t size;
    hid_t dataset = pc_h5_object_open(group, 2); /* behind found and searches, in the order of names */
    if (dataset < 0) return pc_store_refuse(error, words_name);
    bool is_dataset = H5Iget_type(dataset) == H5I_DATASET;
    pc_code code = is_dataset ? pc_store_text_read(dataset, words, &size, error) : PC_ERROR_INPUT;
    H5Oclose(dataset);
    return code == PC_ERROR_INPUT ? pc_store_refuse(error, words_name) : code;
}

/* Plans are dealt out to searches by their numbers. */
static pc_code check(const pc_plan_share *share, pc_error *error) {
    int64_t left = share->found_count;
    for (int64_t i = 0; i < share->search_count; i++) {
        if (share->searches[i].plans > left) return pc_store_refuse(error, "searches/plans");
        left -= share->searches[i].plans;
    }
    if (left > 0) return pc_store_refuse(error, "found/number");
    return share->shard > share->shard_count ? pc_store_refuse(error, "shard") : PC_OK;
}

pc_code pc_store_share_read(hid_t file, pc_plan_share *share, pc_error *error) {
    pc_plan_share made = {.shard = 0};
    void *searches = NULL, *found = NULL;
    hid_t group = pc_h5_group_open(file, share_name);
    if (group < 0) return pc_store_refuse(error, share_name);
    pc_code code = pc_fields_get(group, share_name, &of_head, &made, error);
    if (!code) code = read_words(group, &made.words, error);
    if (!code) code = read_table(group, "searches", &of_search, &searches, &made.search_count, error);
    if (!code) code = read_table(group, "found", &of_found, &found, &made.found_count, error);
    made.searches = searches;
    made.found = found;
    if (!code) code = check(&made, error);
    H5Gclose(group);
    if (code)
        pc_plan_share_free(&made);
    else
        *share = made;
    return code;
}

bool pc_store_share_is_there(hid_t file) {
    return pc_h5_has(file, share_name);
}

void pc_plan_share_free(pc_plan_share *share) {
    pc_free(share->words);
    pc_free(share->searches);
    pc_free(share->found);
    memset(share, 0, sizeof *share);
}
