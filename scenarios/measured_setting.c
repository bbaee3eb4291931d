/* A row of measured runs as a run: what its cells say, and what is missing. */
#include "scenarios/measured.h"

#include "engine/numbers.h"
#include "models/schedule/generate.h"
#include "models/workload/recompute.h"
#include "scenarios/library.h"
#include "scenarios/measured_private.h"
#include "scenarios/written_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct row_reader {
    const pc_measured *measured;
    int64_t row;
    pc_measured_run *run;
    pc_error *error;
} row_reader;

static const char *cell_of(const row_reader *r, pc_measured_column column) {
    return pc_measured_cell(r->measured, r->row, column);
}

/* ---- what is missing ---- */

static bool is_missing_already(const char *list, const char *feature) {
    size_t length = strlen(feature);
    for (const char *at = list; (at = strstr(at, feature)); at += length)
        if ((at == list || at[-1] == ';') && (at[length] == ';' || at[length] == '\0')) return true;
    return false;
}

static void miss(const row_reader *r, const char *feature) {
    char *list = r->run->missing;
    size_t used = strlen(list);
    if (feature[0] == '\0' || is_missing_already(list, feature)) return;
    if (used + strlen(feature) + 2 > PC_MEASURED_MISSING_SIZE) return;
    snprintf(list + used, PC_MEASURED_MISSING_SIZE - used, "%s%s", used ? ";" : "", feature);
}

/* ---- numbers ---- */

bool pc_measured_is_nothing(const char *cell) {
    static const char *const words[] = {"", "-", "n/a", "na", "nan", "none", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(cell, words[i]) == 0) return true;
    return false;
}

static pc_code refuse(const row_reader *r, pc_measured_column column, const char *expected) {
    const pc_measured *m = r->measured;
    return pc_error_refuse(r->error, m->path, (unsigned)m->line[r->row], m->column[m->at[column]],
                           "'%.40s'; expected %s", cell_of(r, column), expected);
}

/* NaN where there is none. */
static pc_code read_number(const row_reader *r, pc_measured_column column, double *number) {
    const char *cell = cell_of(r, column);
    char *end;
    *number = NAN;
    if (pc_measured_is_nothing(cell)) return PC_OK;
    double value = strtod(cell, &end);
    bool is_plain = cell[strspn(cell, "0123456789+-.eE")] == '\0' && *end == '\0';
    if (!is_plain || !(value > 0.0 && value < 1e15)) return refuse(r, column, "a number above zero");
    *number = value;
    return PC_OK;
}

/* -1 where there is none; "8.0" is 8. */
static pc_code read_whole(const row_reader *r, pc_measured_column column, int64_t least, int64_t *number) {
    const char *cell = cell_of(r, column);
    char *end;
    *number = -1;
    if (pc_measured_is_nothing(cell)) return PC_OK;
    double value = strtod(cell, &end);
    bool is_plain = cell[strspn(cell, "0123456789.")] == '\0' && *end == '\0';
    if (!is_plain || value != floor(value) || !(value >= (double)least && value <= INT32_MAX))
        return refuse(r, column, least > 0 ? "a whole number above zero" : "a whole number");
    *number = (int64_t)value;
    return PC_OK;
}

static pc_code read_numbers(const row_reader *r, int64_t *fsdp_shard, int64_t *accumulation) {
    pc_measured_run *run = r->run;
    struct {
        pc_measured_column column;
        int64_t least, *to;
    } wanted[] = {{PC_MEASURED_GPUS, 1, &run->gpus},
                  {PC_MEASURED_GBS, 1, &run->global_batch},
                  {PC_MEASURED_MBS, 1, &run->microbatch_size},
                  {PC_MEASURED_SEQ, 1, &run->seq_len},
                  {PC_MEASURED_TP, 1, &run->tp},
                  {PC_MEASURED_PP, 1, &run->pp},
                  {PC_MEASURED_CP, 1, &run->cp},
                  {PC_MEASURED_EP, 1, &run->ep},
                  {PC_MEASURED_ETP, 1, &run->etp},
                  {PC_MEASURED_VP, 0, &run->chunks},
                  {PC_MEASURED_GA, 0, accumulation},
                  {PC_MEASURED_FSDP_SHARD, 0, fsdp_shard}};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !code; i++)
        code = read_whole(r, wanted[i].column, wanted[i].least, wanted[i].to);
    if (run->tp < 0) run->tp = 1;
    if (run->pp < 0) run->pp = 1;
    return code;
}

/* Replicas, as far as the cells say: at least 1. */
static int64_t replicas(const pc_measured_run *run) {
    int64_t ranks = run->tp * run->pp * (run->cp > 0 ? run->cp : 1);
    return run->gpus > ranks ? run->gpus / ranks : 1;
}

/* NeMo's recipes of 16k tokens and more have one sequence in a microbatch (nemo/collections/llm/recipes:
 * llama3_8b_16k.py, llama3_8b_64k.py, llama3_70b_64k.py), and its table of long sequences does not print it. */
enum { LONG_SEQUENCE = 16384 };

static bool has_one_sequence(const row_reader *r) {
    return r->run->seq_len >= LONG_SEQUENCE && strcasecmp(cell_of(r, PC_MEASURED_FRAMEWORK), "NeMo") == 0;
}

static void check_numbers(const row_reader *r, int64_t accumulation) {
    pc_measured_run *run = r->run;
    int64_t of_all = accumulation > 0 ? accumulation * replicas(run) : 0;
    if (run->microbatch_size < 0 && of_all > 0 && run->global_batch % of_all == 0)
        run->microbatch_size = run->global_batch / of_all;
    if (run->microbatch_size < 0 && has_one_sequence(r)) run->microbatch_size = 1;
    if (run->gpus < 0) miss(r, "gpus");
    if (run->global_batch < 0) miss(r, "gbs");
    if (run->microbatch_size < 0) miss(r, "mbs");
    if (run->seq_len < 0) miss(r, "seq");
}

static pc_code read_measurements(const row_reader *r) {
    pc_measured_run *run = r->run;
    double tokens = NAN, allocated_gb = NAN;
    pc_code code = read_number(r, PC_MEASURED_STEP, &run->step_s);
    if (!code) code = read_number(r, PC_MEASURED_TOKENS, &tokens);
    if (!code) code = read_number(r, PC_MEASURED_MEMORY, &run->memory_gib);
    if (!code) code = read_number(r, PC_MEASURED_ALLOCATED, &allocated_gb);
    run->is_allocated = isnan(run->memory_gib) && !isnan(allocated_gb);
    if (run->is_allocated) run->memory_gib = allocated_gb * 1e9 / PC_BYTES_PER_GIB;
    if (code || !isnan(run->step_s) || isnan(tokens)) return code;
    if (run->global_batch > 0 && run->seq_len > 0 && run->gpus > 0)
        run->step_s = (double)run->global_batch * (double)run->seq_len / (tokens * (double)run->gpus);
    return PC_OK;
}

/* ---- names ---- */

/* The next word of a name, between blanks, '_' and brackets; 0 at the end. */
static size_t next_word(const char **at) {
    static const char between[] = " _()";
    *at += strspn(*at, between);
    return strcspn(*at, between);
}

/* Programs whose remat policy is rarely printed: a row may have it. */
static bool is_said(const row_reader *r, const char *feature) {
    return strcmp(feature, "remat") == 0 && cell_of(r, PC_MEASURED_RECOMPUTE)[0];
}

static pc_written_speaker speaker_of(const row_reader *r) {
    return (pc_written_speaker){cell_of(r, PC_MEASURED_FRAMEWORK), cell_of(r, PC_MEASURED_RELEASE), r->run->machine};
}

/* What the program trains whose row says "LoRA". */
static void read_adapters(const row_reader *r) {
    const pc_written_speaker who = speaker_of(r);
    const pc_written_name *known = pc_written_find_said(PC_WRITTEN_LORA, who, "LoRA");
    r->run->adapters = known ? known->settings : "";
}

/* How its program runs experts over ranks, where its row does not say. */
static void read_experts(const row_reader *r) {
    const pc_written_name *known = NULL;
    if (r->run->ep > 1) known = pc_written_find_said(PC_WRITTEN_EXPERTS, speaker_of(r), "experts");
    r->run->experts = known ? known->settings : "";
}

/* The words of a name that ask for a feature; without those that are no part of a name, squeezed, what is left of it.
 */
static void read_words(const row_reader *r, const char *name, char rest[PC_WRITTEN_SIZE]) {
    char word[PC_WRITTEN_SIZE];
    rest[0] = '\0';
    for (size_t length; (length = next_word(&name)) > 0; name += length) {
        pc_written_squeeze(name, length, word);
        const pc_written_name *known = pc_written_find(PC_WRITTEN_WORD, word);
        size_t used = strlen(rest);
        if (known && strcmp(known->name, "lora") == 0)
            read_adapters(r);
        else if (known && !is_said(r, known->name))
            miss(r, known->name);
        if (!known) snprintf(rest + used, PC_WRITTEN_SIZE - used, "%s", word);
    }
}

/* The library's own name for it, however it is spelt; NULL if there is none. */
static const char *library_name(pc_library_kind kind, const char *squeezed) {
    char own[PC_WRITTEN_SIZE];
    int count;
    const pc_library_file *files = pc_library_files(kind, &count);
    for (int i = 0; i < count; i++) {
        pc_written_squeeze(files[i].name, strlen(files[i].name), own);
        if (strcmp(own, squeezed) == 0) return files[i].name;
    }
    return NULL;
}

/* "h100.yaml", "./h100", "/data/h100"; not "8/host". */
static bool is_path(const char *name) {
    size_t length = strlen(name);
    return name[0] == '/' || strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0 ||
           (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

static pc_code read_path(const row_reader *r, pc_measured_column column, char path[PC_MEASURED_NAME_SIZE]) {
    const char *cell = cell_of(r, column);
    if (strlen(cell) >= PC_MEASURED_NAME_SIZE) return refuse(r, column, "a path of less than 256 bytes");
    snprintf(path, PC_MEASURED_NAME_SIZE, "%s", cell);
    return PC_OK;
}

static pc_code read_model(const row_reader *r) {
    const char *cell = cell_of(r, PC_MEASURED_MODEL);
    char squeezed[PC_WRITTEN_SIZE];
    if (is_path(cell)) return read_path(r, PC_MEASURED_MODEL, r->run->model);
    read_words(r, cell, squeezed);
    const pc_written_name *known = pc_written_find(PC_WRITTEN_MODEL, squeezed);
    const char *own = known ? known->name : library_name(PC_LIBRARY_MODELS, squeezed);
    const pc_written_name *lacks = own ? NULL : pc_written_find_start(PC_WRITTEN_LACKS, squeezed);
    snprintf(r->run->model, sizeof r->run->model, "%s", own ? own : "");
    if (!own) miss(r, lacks ? lacks->name : "model shape");
    return PC_OK;
}

/* "h10080gb" is a machine, and so is all that begins with it. */
static pc_code read_machine(const row_reader *r) {
    const char *cell = cell_of(r, PC_MEASURED_SYSTEM);
    char squeezed[PC_WRITTEN_SIZE];
    r->run->settings = "";
    if (is_path(cell)) return read_path(r, PC_MEASURED_SYSTEM, r->run->machine);
    pc_written_squeeze(cell, strlen(cell), squeezed);
    const char *own = library_name(PC_LIBRARY_MACHINES, squeezed);
    const pc_written_name *known = own ? NULL : pc_written_find_start(PC_WRITTEN_MACHINE, squeezed);
    if (known) r->run->settings = known->settings;
    if (known) own = known->name;
    snprintf(r->run->machine, sizeof r->run->machine, "%s", own ? own : "");
    if (r->run->machine[0] == '\0') miss(r, "machine");
    return PC_OK;
}

/* torchtitan compares TP, "vanilla TP", with its asynchronous kind, which needs the compiler; of its "2D" all rows are
 * compiled (benchmarks/llama3_h100_202412_torchtitan.md, table 4). AutoModel's benchmarks that say fsdp2_prefetch have
 * enable_compile (examples/llm_benchmark). */
static bool is_compiled_variant(const char *variant) {
    static const char *const signs[] = {"fsdp2_prefetch", "compile", "async TP", "AsyncTP", "vanilla TP", "2D"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(variant, signs[i])) return true;
    return false;
}

/* Of a program's name what is known of it, with "compile" behind it where the variant says so: another program. */
static pc_code read_software(const row_reader *r) {
    const char *cell = cell_of(r, PC_MEASURED_FRAMEWORK);
    char squeezed[PC_WRITTEN_SIZE], both[PC_WRITTEN_SIZE + 8];
    if (is_path(cell)) return read_path(r, PC_MEASURED_FRAMEWORK, r->run->software);
    pc_written_squeeze(cell, strlen(cell), squeezed);
    bool is_compiled = is_compiled_variant(cell_of(r, PC_MEASURED_VARIANT));
    snprintf(both, sizeof both, "%s%s", squeezed, is_compiled ? "compile" : "");
    const char *own = library_name(PC_LIBRARY_SOFTWARE, squeezed);
    const pc_written_name *known = own ? NULL : pc_written_find_start(PC_WRITTEN_SOFTWARE, both);
    if (known) own = known->name;
    snprintf(r->run->software, sizeof r->run->software, "%s", own ? own : "");
    return PC_OK;
}

/* What a cell of words is called here; NULL where that is unknown. "": the cell says nothing. */
static const char *word_of(const row_reader *r, pc_measured_column column, pc_written_kind kind) {
    char squeezed[PC_WRITTEN_SIZE];
    const char *cell = cell_of(r, column);
    if (cell[0] == '\0') return "";
    pc_written_squeeze(cell, strlen(cell), squeezed);
    const pc_written_name *known = pc_written_find(kind, squeezed);
    return known ? known->name : NULL;
}

/* One that scenarios have. */
static bool is_precision(const char *name) {
    return pc_library_find(PC_LIBRARY_PRECISIONS, name) != NULL;
}

/* "FP8" is not the same recipe in all programs, nor in all that one program does: "LoRA FP8". */
static const pc_written_name *find_precision(const row_reader *r, const char *cell) {
    char tuned[2 * PC_WRITTEN_SIZE];
    const pc_written_name *known = NULL;
    if (cell[0] == '\0' || is_precision(cell)) return NULL;
    snprintf(tuned, sizeof tuned, "LoRA %s", cell);
    if (r->run->adapters[0]) known = pc_written_find_said(PC_WRITTEN_PRECISION, speaker_of(r), tuned);
    return known ? known : pc_written_find_said(PC_WRITTEN_PRECISION, speaker_of(r), cell);
}

static void read_precision(const row_reader *r) {
    const char *cell = cell_of(r, PC_MEASURED_PRECISION), *name = cell;
    const pc_written_name *known = find_precision(r, cell);
    if (known) name = known->name;
    bool can = name[0] == '\0' || is_precision(name);
    if (!can) miss(r, known ? name : "precision");
    snprintf(r->run->precision, sizeof r->run->precision, "%s", can ? name : "");
}

/* "block 4": what "block N" is called, and its number behind it. False if there is no such name. */
static bool read_numbered(const char *squeezed, char text[PC_RECOMPUTATION_SIZE]) {
    char start[PC_WRITTEN_SIZE + 1];
    pc_recomputation ignored;
    size_t length = strlen(squeezed);
    while (length > 0 && squeezed[length - 1] >= '0' && squeezed[length - 1] <= '9') length--;
    snprintf(start, sizeof start, "%.*sn", (int)length, squeezed);
    const pc_written_name *known = pc_written_find(PC_WRITTEN_RECOMPUTE, start);
    if (!known ||
        snprintf(text, PC_RECOMPUTATION_SIZE, "%s%s", known->name, squeezed + length) >= PC_RECOMPUTATION_SIZE)
        return false;
    return pc_recomputation_parse(text, strlen(text), &ignored);
}

/* "selective core_attn+mlp", "modules mlp", "core_attn": Megatron's modules. */
static bool read_modules(const char *cell, char text[PC_RECOMPUTATION_SIZE]) {
    static const char *const starts[] = {"selective ", "modules "};
    const char *names = cell;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(cell, starts[i], strlen(starts[i])) == 0) names = cell + strlen(starts[i]);
    int32_t modules = pc_recompute_modules_parse(names, strlen(names), '+');
    pc_recomputation_write((pc_recomputation){.kind = PC_RECOMPUTE_MODULES, .modules = modules}, text);
    return modules != 0;
}

/* What the cell says in this program's words ("selective" is not the same in all), in anybody's, or in ours. */
static bool find_recomputation(const row_reader *r, char text[PC_RECOMPUTATION_SIZE]) {
    const char *cell = cell_of(r, PC_MEASURED_RECOMPUTE), *program = cell_of(r, PC_MEASURED_FRAMEWORK);
    char squeezed[PC_WRITTEN_SIZE], own[2 * PC_WRITTEN_SIZE];
    pc_recomputation ignored;
    pc_written_squeeze(program, strlen(program), squeezed);
    size_t used = (size_t)snprintf(own, sizeof own, "%s", squeezed);
    pc_written_squeeze(cell, strlen(cell), squeezed);
    snprintf(own + used, sizeof own - used, "%s", squeezed);
    const pc_written_name *known = pc_written_find(PC_WRITTEN_RECOMPUTE, own);
    if (!known) known = pc_written_find(PC_WRITTEN_RECOMPUTE, squeezed);
    if (known) snprintf(text, PC_RECOMPUTATION_SIZE, "%s", known->name);
    if (known && pc_recomputation_parse(text, strlen(text), &ignored)) return true;
    if (read_numbered(squeezed, text) || read_modules(cell, text)) return true;
    if (!pc_recomputation_parse(cell, strlen(cell), &ignored)) return false;
    pc_recomputation_write(ignored, text);
    return true;
}

static void read_recompute(const row_reader *r) {
    char text[PC_RECOMPUTATION_SIZE] = "none";
    bool is_known = cell_of(r, PC_MEASURED_RECOMPUTE)[0] == '\0' || find_recomputation(r, text);
    if (!is_known) miss(r, "recompute modules");
    r->run->says_recompute = cell_of(r, PC_MEASURED_RECOMPUTE)[0] != '\0';
    snprintf(r->run->recompute, sizeof r->run->recompute, "%s", text);
}

static void read_schedule(const row_reader *r) {
    pc_measured_run *run = r->run;
    const char *cell = cell_of(r, PC_MEASURED_SCHEDULE), *name = word_of(r, PC_MEASURED_SCHEDULE, PC_WRITTEN_SCHEDULE);
    if (!name && pc_generator_find(cell)) name = cell;
    if (!name) miss(r, "schedule");
    if (run->chunks == 0 || run->pp == 1) run->chunks = -1;
    if (name && name[0] == '\0') name = run->chunks > 1 ? "1f1b-interleaved" : "1f1b";
    if (name && strcmp(name, "1f1b-interleaved") == 0 && run->chunks < 0 && run->pp > 1) miss(r, "vp");
    snprintf(run->schedule, sizeof run->schedule, "%s", name ? name : "");
}

/* ---- sharding ---- */

/* "3", "fsdp", "1 group=DP", "1 group=8". */
static pc_code read_zero(const row_reader *r, int64_t fsdp_shard) {
    const char *cell = cell_of(r, PC_MEASURED_ZERO), *group = strstr(cell, "group=");
    int64_t over = group && group[6] >= '1' && group[6] <= '9' ? strtol(group + 6, NULL, 10) : fsdp_shard;
    if (pc_measured_is_nothing(cell))
        r->run->zero = fsdp_shard > 1 ? 3 : 1;
    else if (strncasecmp(cell, "fsdp", 4) == 0)
        r->run->zero = 3;
    else if (cell[0] >= '0' && cell[0] <= '3' && (cell[1] == '\0' || cell[1] == ' ' || cell[1] == '.'))
        r->run->zero = cell[0] - '0';
    else
        return refuse(r, PC_MEASURED_ZERO, "0 to 3, or fsdp");
    bool is_hybrid = r->run->zero > 0 && over > 0 && over < replicas(r->run);
    r->run->shard_group = is_hybrid ? over : -1;
    return PC_OK;
}

/* N of "NAME=N" in the variant; -1 where it is not there. */
static int64_t number_in_variant(const row_reader *r, const char *name) {
    const char *at = strstr(cell_of(r, PC_MEASURED_VARIANT), name);
    long number = at ? strtol(at + strlen(name), NULL, 10) : 0;
    return number > 0 && number < INT32_MAX ? number : -1;
}

static void read_variant(const row_reader *r) {
    r->run->layers = number_in_variant(r, "layers=");
    if (r->run->etp < 0) r->run->etp = number_in_variant(r, "ETP=");
}

pc_code pc_measured_run_of(const pc_measured *measured, int64_t row, pc_measured_run *run, pc_error *error) {
    row_reader r = {measured, row, run, error};
    int64_t fsdp_shard = -1, accumulation = -1;
    char rest[PC_WRITTEN_SIZE];
    *run = (pc_measured_run){.settings = "", .adapters = "", .experts = ""};
    pc_code code = read_numbers(&r, &fsdp_shard, &accumulation);
    if (!code) code = read_measurements(&r);
    if (!code) code = read_zero(&r, fsdp_shard);
    if (!code) code = read_model(&r);
    if (!code) code = read_machine(&r);
    if (!code) code = read_software(&r);
    if (code) return code;
    read_words(&r, cell_of(&r, PC_MEASURED_TASK), rest);
    read_words(&r, cell_of(&r, PC_MEASURED_FRAMEWORK), rest);
    if (run->adapters[0]) read_adapters(&r); /* now that the machine is known */
    read_experts(&r);
    read_precision(&r);
    read_recompute(&r);
    read_schedule(&r);
    check_numbers(&r, accumulation);
    read_variant(&r);
    return PC_OK;
}
