#include "sweep/plan_shares.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "results/store/plan_share.h"
#include "sweep/run_list.h"
#include "sweep/sweep_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of one that records `share` alone, else one a file, in the order of their numbers. */
struct pc_plan_shares {
    bool records;
    pc_plan_share *share;
    char **path; /* of the files; owned */
    int count;
    const pc_plan_kept *kept;
    int64_t search_room, found_room;
};

/* ---- which search it is ---- */

static void add_real(pc_hash *hash, double value) {
    pc_hash_add_bytes(hash, &value, sizeof value);
}

static void add_base(const pc_plan_shares *shares, const pc_plan_space *space, int index, pc_hash *hash) {
    const pc_plan_base *base = &space->bases[index];
    pc_iteration_spec spec = base->spec;
    pc_run_key key;
    if (!spec.generator) spec.generator = space->generators[0];
    bool is_known = pc_plan_kept_key(shares->kept, base, &spec, &key);
    pc_hash_add(hash, is_known ? key.high : 0);
    pc_hash_add(hash, is_known ? key.low : 0);
    add_real(hash, base->gpu_hour_price);
    pc_hash_add(hash, (uint64_t)base->group);
}

static pc_hash key_of(const pc_plan_shares *shares, const pc_plan_space *space, const pc_plan_request *request) {
    pc_hash hash = {UINT64_C(0x706c616e), UINT64_C(0x736561726368)};
    pc_hash_add(&hash, (uint64_t)space->base_count);
    for (int i = 0; i < space->base_count; i++) add_base(shares, space, i, &hash);
    pc_plan_space_hash(space, &hash);
    for (int i = 0; i < request->objective_count; i++) pc_hash_add(&hash, (uint64_t)request->objectives[i]);
    pc_hash_add(&hash, (uint64_t)request->top);
    pc_hash_add(&hash, request->all_variants);
    add_real(&hash, request->most_iteration_s);
    add_real(&hash, request->most_cost);
    return hash;
}

/* Its search of this key, and where its plans begin; NULL: it did none. */
static const pc_share_search *find_search(const pc_plan_share *share, pc_hash key, int64_t *first) {
    *first = 0;
    for (int64_t i = 0; i < share->search_count; i++) {
        const pc_share_search *search = &share->searches[i];
        if (search->key_high == key.high && search->key_low == key.low) return search;
        *first += search->plans;
    }
    return NULL;
}

/* ---- recording ---- */

pc_code pc_plan_shares_record(int64_t shard, int64_t shard_count, const char *words, pc_plan_shares **result,
                              pc_error *error) {
    pc_plan_shares *shares = pc_alloc(1, sizeof *shares);
    if (!shares) return pc_error_no_memory(error);
    *shares = (pc_plan_shares){.records = true, .share = pc_alloc(1, sizeof *shares->share), .count = 1};
    if (shares->share) *shares->share = (pc_plan_share){shard, shard_count, .words = pc_strdup(words)};
    if (!shares->share || !shares->share->words) {
        pc_plan_shares_free(shares);
        return pc_error_no_memory(error);
    }
    *result = shares;
    return PC_OK;
}

static bool make_room(void **list, int64_t *room, int64_t wanted, size_t size) {
    int64_t more = *room ? *room : 16;
    if (wanted <= *room) return true;
    while (more < wanted) more *= 2;
    void *moved = pc_realloc(*list, (size_t)more, size);
    if (!moved) return false;
    *list = moved;
    *room = more;
    return true;
}

static pc_code record(pc_plan_shares *shares, pc_hash key, const pc_plan_answer *answer, pc_error *error) {
    pc_plan_share *share = shares->share;
    int64_t first;
    void *searches = share->searches, *found = share->found;
    if (find_search(share, key, &first)) return PC_OK;
    bool has_room = make_room(&searches, &shares->search_room, share->search_count + 1, sizeof *share->searches) &&
                    make_room(&found, &shares->found_room, share->found_count + answer->count, sizeof *share->found);
    share->searches = searches;
    share->found = found;
    if (!has_room) return pc_error_no_memory(error);
    share->searches[share->search_count++] = (pc_share_search){key.high, key.low, answer->count, answer->log};
    for (int64_t i = 0; i < answer->count; i++) share->found[share->found_count++] = answer->found[i];
    return PC_OK;
}

/* Of a front all: the first few of the whole may stand anywhere in it. */
static pc_code search_and_record(pc_plan_shares *shares, const pc_plan_space *space, const pc_plan_request *request,
                                 pc_plan_answer *answer, pc_error *error) {
    pc_plan_request mine = *request;
    if (mine.objective_count > 1) mine.top = 0;
    pc_code code = pc_plan_run(space, &mine, answer, error);
    if (code) return code;
    code = record(shares, key_of(shares, space, request), answer, error);
    if (code) pc_plan_answer_free(answer);
    return code;
}

pc_code pc_plan_shares_write(const pc_plan_shares *shares, pc_results_writer *writer, pc_error *error) {
    return pc_results_add_share(writer, shares->share, error);
}

/* ---- reading ---- */

static pc_code refuse(const char *path, const pc_plan_share *share, const char *other, const pc_plan_share *first,
                      pc_error *error) {
    if (strcmp(share->words, first->words) != 0)
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is a share of another plan than %s; expected shares of one, made by the same words",
                                 other);
    if (share->shard_count != first->shard_count)
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is one of %" PRId64 " shares, and %s one of %" PRId64
                                 "; expected shares of one number",
                                 share->shard_count, other, first->shard_count);
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "is share %" PRId64 " of %" PRId64 ", and so is %s; expected each share once",
                             share->shard, share->shard_count, other);
}

static pc_code read_share(const char *path, pc_plan_share *share, pc_error *error) {
    pc_results_reader *reader;
    pc_code code = pc_results_open_part(path, &reader, error);
    if (code) return code;
    if (!pc_results_has_share(reader))
        code = pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is no share of a plan, as others are; expected files of `pipecast plan --shard`");
    else if (!pc_sweep_files_is_of_this_build(reader))
        code = pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is of another build of pipecast; expected shares of this one, or to be merged by "
                                 "theirs");
    else
        code = pc_results_read_share(reader, share, error);
    pc_results_close(reader);
    return code;
}

/* Takes its place among those before it. */
static pc_code take(pc_plan_shares *shares, const char *path, pc_error *error) {
    pc_plan_share share;
    char *name;
    pc_code code = read_share(path, &share, error);
    if (code) return code;
    for (int i = 0; i < shares->count && !code; i++) {
        const pc_plan_share *other = &shares->share[i];
        bool is_beside = strcmp(share.words, other->words) == 0 && share.shard_count == other->shard_count;
        if (!is_beside || share.shard == other->shard) code = refuse(path, &share, shares->path[i], other, error);
    }
    name = code ? NULL : pc_strdup(path);
    if (!code && !name) code = pc_error_no_memory(error);
    if (code) {
        pc_plan_share_free(&share);
        return code;
    }
    int at = shares->count++;
    for (; at > 0 && shares->share[at - 1].shard > share.shard; at--) {
        shares->share[at] = shares->share[at - 1];
        shares->path[at] = shares->path[at - 1];
    }
    shares->share[at] = share;
    shares->path[at] = name;
    return PC_OK;
}

static pc_code check_all_there(const pc_plan_shares *shares, pc_error *error) {
    char list[PC_RUN_LIST_TEXT];
    pc_run_list missing = {0};
    int64_t next = 1, total = shares->share[0].shard_count;
    for (int i = 0; i < shares->count; i++) {
        pc_run_list_add(&missing, next, shares->share[i].shard - 1);
        next = shares->share[i].shard + 1;
    }
    pc_run_list_add(&missing, next, total);
    if (missing.count == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "of %" PRId64 " shares of the plan %" PRId64 " %s in no file:%s; expected all of them", total,
                        missing.count, missing.count == 1 ? "is" : "are", pc_run_list_text(&missing, list));
}

pc_code pc_plan_shares_is_one(const char *path, bool *is_one, pc_error *error) {
    pc_results_reader *reader;
    pc_code code = pc_results_open_part(path, &reader, error);
    if (code) return code;
    *is_one = pc_results_has_share(reader);
    pc_results_close(reader);
    return PC_OK;
}

pc_code pc_plan_shares_open(const char *const *paths, int count, pc_plan_shares **result, pc_error *error) {
    pc_plan_shares *shares = pc_alloc(1, sizeof *shares);
    if (!shares) return pc_error_no_memory(error);
    shares->share = pc_alloc((size_t)count, sizeof *shares->share);
    shares->path = pc_alloc((size_t)count, sizeof *shares->path);
    pc_code code = shares->share && shares->path ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < count && !code; i++) code = take(shares, paths[i], error);
    if (!code) code = check_all_there(shares, error);
    if (code)
        pc_plan_shares_free(shares);
    else
        *result = shares;
    return code;
}

const char *pc_plan_shares_words(const pc_plan_shares *shares) {
    return shares->share[0].words;
}

/* ---- answers of the whole ---- */

static pc_code find_answers(const pc_plan_shares *shares, pc_hash key, pc_plan_answer *answers, pc_error *error) {
    for (int i = 0; i < shares->count; i++) {
        int64_t first;
        const pc_share_search *search = find_search(&shares->share[i], key, &first);
        if (!search)
            return pc_error_set_file(error, PC_ERROR_INPUT, shares->path[i],
                                     "is of another question: the scenario, or a file that it names, has changed "
                                     "since; expected shares of what is there");
        answers[i] = (pc_plan_answer){shares->share[i].found + first, search->plans, search->log};
    }
    return PC_OK;
}

static pc_code combine(const pc_plan_shares *shares, const pc_plan_space *space, const pc_plan_request *request,
                       pc_plan_answer *answer, pc_error *error) {
    pc_plan_answer *answers = pc_alloc((size_t)shares->count, sizeof *answers);
    if (!answers) return pc_error_no_memory(error);
    pc_code code = find_answers(shares, key_of(shares, space, request), answers, error);
    if (!code) code = pc_plan_combine(space, request, answers, shares->count, answer, error);
    pc_free(answers);
    return code;
}

void pc_plan_shares_use(pc_plan_shares *shares, const pc_plan_kept *kept) {
    if (shares) shares->kept = kept;
}

bool pc_plan_shares_records(const pc_plan_shares *shares) {
    return shares && shares->records;
}

pc_code pc_plan_shares_ask(pc_plan_shares *shares, const pc_plan_space *space, const pc_plan_request *request,
                           pc_plan_answer *answer, pc_error *error) {
    if (!shares) return pc_plan_run(space, request, answer, error);
    if (!shares->records) return combine(shares, space, request, answer, error);
    return search_and_record(shares, space, request, answer, error);
}

void pc_plan_shares_free(pc_plan_shares *shares) {
    if (!shares) return;
    for (int i = 0; shares->share && i < shares->count; i++) pc_plan_share_free(&shares->share[i]);
    for (int i = 0; shares->path && i < shares->count; i++) pc_free(shares->path[i]);
    pc_free(shares->share);
    pc_free(shares->path);
    pc_free(shares);
}
