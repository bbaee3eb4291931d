#include "sweep/agenda.h"

#include "engine/alloc.h"

/* Keys of results and runs in one table: open addressing, at most half full. */
typedef struct key_table {
    const pc_run_key *results, *runs;
    int64_t result_count;
    int64_t *slots; /* a result's number, or result_count + a run's, from 1; 0: free */
    uint64_t mask;
} key_table;

static pc_run_key key_of(const key_table *table, int64_t number) {
    return number < table->result_count ? table->results[number] : table->runs[number - table->result_count];
}

/* The number that has this key, or a free slot for it. Keys are hashes already. */
static int64_t *find_slot(const key_table *table, pc_run_key key) {
    uint64_t at = (key.low ^ key.high) & table->mask;
    while (table->slots[at] && !pc_run_key_equal(key_of(table, table->slots[at] - 1), key)) at = (at + 1) & table->mask;
    return &table->slots[at];
}

static void add_results(key_table *table) {
    for (int64_t i = 0; i < table->result_count; i++) {
        int64_t *slot = find_slot(table, table->results[i]);
        if (!*slot) *slot = i + 1;
    }
}

static void place_run(key_table *table, int64_t run, pc_agenda *agenda) {
    int64_t *slot = find_slot(table, table->runs[run]);
    agenda->place[run] = *slot && *slot <= table->result_count ? *slot - 1 : -1;
    if (agenda->place[run] >= 0) agenda->done_count++;
    if (*slot) return;
    *slot = table->result_count + run + 1;
    agenda->to_do[agenda->to_do_count++] = run;
}

pc_code pc_agenda_make(const pc_run_key *runs, int64_t run_count, const pc_run_key *results, int64_t result_count,
                       pc_agenda *agenda, pc_error *error) {
    key_table table = {.results = results, .runs = runs, .result_count = result_count, .mask = 1};
    while (table.mask < 2 * (uint64_t)(run_count + result_count)) table.mask = 2 * table.mask + 1;
    pc_agenda made = {.count = run_count,
                      .place = pc_alloc((size_t)run_count, sizeof *made.place),
                      .to_do = pc_alloc((size_t)run_count, sizeof *made.to_do)};
    table.slots = pc_alloc((size_t)table.mask + 1, sizeof *table.slots);
    if (!made.place || !made.to_do || !table.slots) {
        pc_free(table.slots);
        pc_agenda_free(&made);
        return pc_error_no_memory(error);
    }
    add_results(&table);
    for (int64_t run = 0; run < run_count; run++) place_run(&table, run, &made);
    pc_free(table.slots);
    *agenda = made;
    return PC_OK;
}

void pc_agenda_free(pc_agenda *agenda) {
    pc_free(agenda->place);
    pc_free(agenda->to_do);
    *agenda = (pc_agenda){0};
}
