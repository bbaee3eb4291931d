#include "cli/plan_means.h"

#include "cli/cli.h"
#include "cli/plan_job.h"
#include "engine/alloc.h"
#include "storage/replace.h"

#include <stdio.h>
#include <string.h>

/* "RESULTS.h5.journal", as sweeps have it. */
static pc_code name_journal(const char *output, char **journal, pc_error *error) {
    char *target;
    pc_code code = pc_replacement_target(output, &target, error);
    if (code) return code;
    size_t room = strlen(target) + sizeof ".journal";
    *journal = pc_alloc(room, 1);
    if (*journal) snprintf(*journal, room, "%s.journal", target);
    pc_free(target);
    return *journal ? PC_OK : pc_error_no_memory(error);
}

static pc_code open_kept(const plan_request *request, plan_means *means, pc_error *error) {
    bool is_first = plan_means_is_first(means);
    const char *const *files = request->caches;
    int count = is_first ? request->cache_count : 0;
    pc_code code = PC_OK;
    bool has_results = request->output && !(request->writer && plan_job_is_file(request->output));
    if (is_first && count == 0 && has_results) {
        code = name_journal(request->output, &means->journal, error);
        files = (const char *const *)&means->journal;
        count = 1;
    }
    if (!code) code = pc_plan_kept_open(files, count, request->is_fresh, &means->kept, error);
    if (!code && count > 0) means->file = files[0];
    return code;
}

pc_code plan_means_open(const plan_request *request, pc_plan_scenario *scenario, pc_team *team, plan_means *means,
                        pc_error *error) {
    int count;
    *means = (plan_means){.team = team};
    pc_code code = pc_team_agree(team, open_kept(request, means, error), error);
    if (code) return code;
    const pc_run_spec *bases = pc_plan_scenario_bases(scenario, &count);
    pc_plan_kept_use(means->kept, bases, count);
    return pc_plan_kept_tell(means->kept, team, error);
}

bool plan_means_is_first(const plan_means *means) {
    return pc_team_rank(means->team) == 0;
}

void plan_means_give(const plan_means *means, const plan_request *asked, pc_plan_request *request) {
    request->threads = asked->jobs > 0 ? (int)asked->jobs : pc_team_default_jobs(means->team);
    request->exhaustive = asked->is_exhaustive;
    request->shard = asked->shard;
    request->shard_count = asked->shard_count;
    if (means->kept) request->keeper = pc_plan_kept_keeper(means->kept);
    if (pc_team_size(means->team) > 1) request->crew = pc_plan_crew_of(means->team);
}

void plan_means_say_interrupted(const plan_means *means) {
    if (!means->file) return;
    fputs("pipecast: interrupted: what was worked out is kept in ", stderr);
    print_plain(stderr, means->file);
    fputs("; the same command goes on\n", stderr);
}

void plan_means_close(plan_means *means, bool is_complete) {
    pc_plan_kept_close(means->kept, is_complete && means->journal);
    pc_free(means->journal);
    *means = (plan_means){.team = means->team};
}
