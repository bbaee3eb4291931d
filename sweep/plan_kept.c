#include "sweep/plan_kept.h"

#include "engine/alloc.h"
#include "sweep/journal.h"

#include <stdatomic.h>
#include <string.h>

/* What a record's labels say: that it is a fact, and of which work. */
static const uint64_t MARK = UINT64_C(0x706c616e66616374);

typedef struct known {
    pc_run_key key;
    int64_t work; /* pc_plan_work; -1: a free slot */
    pc_plan_fact fact;
} known;

/* A table with open addressing; `room` is a power of two, at most half of it is used. */
struct pc_plan_kept {
    pc_journal *journal;
    known *table;
    int64_t count, room;
    const pc_run_spec *bases;
    int base_count;
    atomic_llong found;
};

/* ---- the table ---- */

static known *slot_of(const pc_plan_kept *kept, pc_run_key key, pc_plan_work work) {
    uint64_t at = key.low + (uint64_t)work;
    for (;; at++) {
        known *slot = &kept->table[at & (uint64_t)(kept->room - 1)];
        if (slot->work < 0 || (slot->work == (int64_t)work && pc_run_key_equal(slot->key, key))) return slot;
    }
}

static pc_code make_room(pc_plan_kept *kept, pc_error *error) {
    if (2 * (kept->count + 1) <= kept->room) return PC_OK;
    known *old = kept->table;
    int64_t room = kept->room, more = room ? 2 * room : 1024;
    known *table = pc_alloc((size_t)more, sizeof *table);
    if (!table) return pc_error_no_memory(error);
    for (int64_t i = 0; i < more; i++) table[i].work = -1;
    kept->table = table;
    kept->room = more;
    for (int64_t i = 0; i < room; i++)
        if (old[i].work >= 0) *slot_of(kept, old[i].key, (pc_plan_work)old[i].work) = old[i];
    pc_free(old);
    return PC_OK;
}

/* *is_new: it was not there. */
static pc_code add(pc_plan_kept *kept, const known *one, bool *is_new, pc_error *error) {
    pc_code code = make_room(kept, error);
    *is_new = false;
    if (code) return code;
    known *slot = slot_of(kept, one->key, (pc_plan_work)one->work);
    *is_new = slot->work < 0;
    kept->count += *is_new;
    *slot = *one;
    return PC_OK;
}

/* ---- which run a point is ---- */

bool pc_plan_kept_key(const pc_plan_kept *kept, const pc_plan_base *base, const pc_iteration_spec *spec,
                      pc_run_key *key) {
    pc_run_spec run = pc_run_spec_default();
    const pc_run_spec *like = NULL;
    for (int i = 0; i < kept->base_count && !like; i++)
        if (kept->bases[i].cost == base->cost) like = &kept->bases[i];
    if (!like && base->cost) return false;
    run.is_cluster = true;
    run.iteration = *spec;
    run.profile_hash = base->cost ? like->profile_hash : 0;
    run.shipped_profile = base->cost ? like->shipped_profile : NULL;
    *key = pc_run_key_of(&run);
    return true;
}

static bool find(void *self, const pc_plan_base *base, const pc_iteration_spec *spec, pc_plan_work work,
                 pc_plan_fact *fact) {
    pc_plan_kept *kept = self;
    pc_run_key key;
    if (kept->count == 0 || !pc_plan_kept_key(kept, base, spec, &key)) return false;
    const known *slot = slot_of(kept, key, work);
    if (slot->work < 0) return false;
    *fact = slot->fact;
    kept->found++;
    return true;
}

static pc_code keep(void *self, const pc_plan_base *base, const pc_iteration_spec *spec, pc_plan_work work,
                    const pc_plan_fact *fact, pc_error *error) {
    pc_plan_kept *kept = self;
    known one = {.work = work, .fact = *fact};
    bool is_new;
    if (!pc_plan_kept_key(kept, base, spec, &one.key)) return PC_OK;
    pc_code code = add(kept, &one, &is_new, error);
    if (code || !is_new || !kept->journal) return code;
    return pc_journal_add_bytes(kept->journal, one.key, MARK + (uint64_t)work, fact, sizeof *fact, error);
}

/* ---- files ---- */

static pc_code refuse_other(const pc_journal *journal, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, pc_journal_path(journal),
                             "keeps other things than a search for plans; expected what a plan kept, or no file");
}

static pc_code read_journal(pc_plan_kept *kept, const pc_journal *journal, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < pc_journal_count(journal) && !code; i++) {
        known one = {.key = pc_journal_key(journal, i), .work = (int64_t)(pc_journal_labels(journal, i) - MARK)};
        bool is_so, is_new;
        code = pc_journal_bytes(journal, i, &one.fact, sizeof one.fact, &is_so, error);
        bool is_fact = is_so && one.work >= PC_PLAN_SIMULATED && one.work <= PC_PLAN_BOUNDED_CLOSE;
        if (!code && !is_fact) code = refuse_other(journal, error);
        if (!code) code = add(kept, &one, &is_new, error);
    }
    return code;
}

static pc_code read_other(pc_plan_kept *kept, const char *path, pc_error *error) {
    pc_journal *journal;
    pc_code code = pc_journal_open(path, PC_JOURNAL_READ, &journal, error);
    if (code) return code;
    code = read_journal(kept, journal, error);
    pc_journal_close(journal);
    return code;
}

pc_code pc_plan_kept_open(const char *const *paths, int count, bool is_fresh, pc_plan_kept **result, pc_error *error) {
    pc_plan_kept *kept = pc_alloc(1, sizeof *kept);
    pc_code code = kept ? PC_OK : pc_error_no_memory(error);
    if (!code && count > 0)
        code = pc_journal_open(paths[0], is_fresh ? PC_JOURNAL_FRESH : PC_JOURNAL_GO_ON, &kept->journal, error);
    if (!code && count > 0) code = read_journal(kept, kept->journal, error);
    for (int i = 1; i < count && !code; i++) code = read_other(kept, paths[i], error);
    if (code)
        pc_plan_kept_close(kept, false);
    else
        *result = kept;
    return code;
}

pc_code pc_plan_kept_tell(pc_plan_kept *kept, pc_team *team, pc_error *error) {
    known *own = NULL, *all;
    size_t size;
    int64_t count = 0;
    if (pc_team_size(team) <= 1) return PC_OK;
    pc_code code = PC_OK;
    if (pc_team_rank(team) == 0 && kept->count > 0) {
        own = pc_alloc((size_t)kept->count, sizeof *own);
        if (!own) code = pc_error_no_memory(error);
        for (int64_t i = 0; own && i < kept->room; i++)
            if (kept->table[i].work >= 0) own[count++] = kept->table[i];
    }
    void *bytes;
    code = pc_team_share(team, code, own, (size_t)count * sizeof *own, &bytes, &size, error);
    pc_free(own);
    if (code) return code;
    all = bytes;
    bool is_new;
    for (size_t i = 0; i < size / sizeof *all && !code; i++) code = add(kept, &all[i], &is_new, error);
    pc_free(bytes);
    return code;
}

void pc_plan_kept_use(pc_plan_kept *kept, const pc_run_spec *bases, int base_count) {
    kept->bases = bases;
    kept->base_count = base_count;
}

pc_plan_keeper pc_plan_kept_keeper(pc_plan_kept *kept) {
    return (pc_plan_keeper){.find = find, .keep = keep, .self = kept};
}

int64_t pc_plan_kept_count(const pc_plan_kept *kept) {
    return kept->count;
}

int64_t pc_plan_kept_found(const pc_plan_kept *kept) {
    return kept->found;
}

void pc_plan_kept_close(pc_plan_kept *kept, bool removes) {
    if (!kept) return;
    if (kept->journal && (removes || pc_journal_count(kept->journal) == 0))
        pc_journal_remove(kept->journal);
    else
        pc_journal_close(kept->journal);
    pc_free(kept->table);
    pc_free(kept);
}

/* ---- ranks ---- */

static pc_code share(void *self, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                     pc_error *error) {
    return pc_team_share(self, code, bytes, size, all, all_size, error);
}

pc_plan_crew pc_plan_crew_of(pc_team *team) {
    return (pc_plan_crew){.rank = pc_team_rank(team), .size = pc_team_size(team), .share = share, .self = team};
}
