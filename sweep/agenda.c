#include "sweep/agenda.h"

#include "engine/alloc.h"
#include "engine/index.h"

static pc_hash key_of(pc_run_key key) {
    return (pc_hash){key.high, key.low};
}

/* Results have their numbers, runs those behind them. */
static void place_run(pc_index *index, int64_t result_count, pc_run_key key, int64_t run, pc_agenda *agenda) {
    int64_t mine = result_count + run, number = pc_index_add(index, key_of(key), mine);
    agenda->place[run] = number < result_count ? number : -1;
    agenda->done_count += number < result_count;
    if (number == mine) agenda->to_do[agenda->to_do_count++] = run;
}

pc_code pc_agenda_make(const pc_run_key *runs, int64_t run_count, const pc_run_key *results, int64_t result_count,
                       pc_agenda *agenda, pc_error *error) {
    pc_index index = {0};
    pc_agenda made = {.count = run_count,
                      .place = pc_alloc((size_t)run_count, sizeof *made.place),
                      .to_do = pc_alloc((size_t)run_count, sizeof *made.to_do)};
    pc_code code = made.place && made.to_do ? pc_index_reserve(&index, run_count + result_count, error)
                                            : pc_error_no_memory(error);
    if (code) {
        pc_agenda_free(&made);
        return code;
    }
    for (int64_t i = 0; i < result_count; i++) pc_index_add(&index, key_of(results[i]), i);
    for (int64_t run = 0; run < run_count; run++) place_run(&index, result_count, runs[run], run, &made);
    pc_index_free(&index);
    *agenda = made;
    return PC_OK;
}

void pc_agenda_free(pc_agenda *agenda) {
    pc_free(agenda->place);
    pc_free(agenda->to_do);
    *agenda = (pc_agenda){0};
}
