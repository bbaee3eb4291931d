#include "sweep/sweep.h"

#include "engine/alloc.h"
#include "engine/index.h"

static pc_hash key_of(pc_run_key key) {
    return (pc_hash){key.high, key.low};
}

/* Results have their numbers, runs those behind them. */
static void place_run(pc_index *index, int64_t result_count, pc_run_key key, int64_t run, sweep *plan) {
    int64_t mine = result_count + run, number = pc_index_add(index, key_of(key), mine);
    plan->place[run] = number < result_count ? number : -1;
    plan->done_count += number < result_count;
    if (number == mine) plan->to_do[plan->to_do_count++] = run;
}

pc_code sweep_plan(const pc_run_key *runs, int64_t run_count, const pc_run_key *results, int64_t result_count,
                   sweep *plan, pc_error *error) {
    pc_index index = {0};
    sweep made = {.count = run_count,
                  .place = pc_alloc((size_t)run_count, sizeof *made.place),
                  .to_do = pc_alloc((size_t)run_count, sizeof *made.to_do)};
    pc_code code = made.place && made.to_do ? pc_index_reserve(&index, run_count + result_count, error)
                                            : pc_error_no_memory(error);
    if (code) {
        sweep_free(&made);
        return code;
    }
    for (int64_t i = 0; i < result_count; i++) pc_index_add(&index, key_of(results[i]), i);
    for (int64_t run = 0; run < run_count; run++) place_run(&index, result_count, runs[run], run, &made);
    pc_index_free(&index);
    *plan = made;
    return PC_OK;
}

void sweep_free(sweep *plan) {
    pc_free(plan->place);
    pc_free(plan->to_do);
    *plan = (sweep){0};
}
