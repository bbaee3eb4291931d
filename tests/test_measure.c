/* The measuring program over the emulated device: what it plans, what it keeps, when it stops. The clock is a fake: it
 * follows a known roofline, so that all that should come out is known. */
#include "tests/folder.h"
#include "tests/support.h"

#include "calib/device/measure_private.h"
#include "engine/alloc.h"
#include "tests/emulated/emulated.h"

#include <math.h>

/* ---- a device of known speed ---- */

enum { FAMILIES_MOST = 56, ADDRESSES = 64 };

typedef struct world {
    pc_measure_seams seams; /* families: copies whose launches do nothing */
    pc_kernel_family copies[FAMILIES_MOST];
    const pc_kernel_family *list[FAMILIES_MOST];
    pc_device_info about;
    double flops_per_s, bytes_per_s, cached_bytes_per_s, launch_s;
    double noise;                /* standard deviation of the logarithm of a sample */
    double overhead_s;           /* of every timing, on the clock of the budget */
    double slows_at_s, slows_by; /* from then on everything takes so much longer */
    double now_s, begun_s;
    test_random random;
    int64_t launches, fails_at; /* the launch that is a fault of the device; 0: none */
    /* The last launch. */
    int family;
    pc_kernel_shape shape;
    const void *address;
    bool is_hot;
} world;

static world *the_world; /* a family's functions have no other way to it */

static double normal(test_random *random) { /* Box and Muller */
    double a = (double)((test_draw(random) >> 11) + 1) * 0x1p-53, b = (double)(test_draw(random) >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(a)) * cos(6.283185307179586 * b);
}

static double true_seconds(const world *w, const pc_kernel_family *family, const pc_kernel_shape *shape, bool is_hot) {
    double compute = (double)family->flops(shape) / w->flops_per_s;
    double memory = (double)family->bytes(shape) / (is_hot ? w->cached_bytes_per_s : w->bytes_per_s);
    return w->launch_s + fmax(compute, memory);
}

static pc_code launched(int family, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    world *w = the_world;
    w->is_hot = w->family == family && w->address == tensors[0];
    w->family = family;
    w->shape = *shape;
    w->address = tensors[0];
    if (++w->launches == w->fails_at) return pc_error_set(error, PC_ERROR_IO, "an illegal address");
    return PC_OK;
}

static double clock_seconds(void *self, int repeats) {
    world *w = self;
    double slower = w->now_s - w->begun_s >= w->slows_at_s ? w->slows_by : 1.0;
    double seconds = repeats * slower * true_seconds(w, w->list[w->family], &w->shape, w->is_hot);
    seconds *= exp(w->noise * normal(&w->random));
    w->now_s += w->overhead_s + seconds;
    return seconds;
}

/* Real sizes in FLOPs and bytes, and next to none in memory: the emulated device fills every buffer on the host. */
static pc_code tiny_tensors(int family, const pc_kernel_shape *shape, pc_tensor *tensors, int *count, pc_error *error) {
    pc_code code = pc_kernel_family_find(the_world->copies[family].name)->tensors(shape, tensors, count, error);
    tensors[0].count = 8;
    *count = 1;
    return code;
}

#define FAMILY(i)                                                                                                      \
    static pc_code launch_##i(pc_device *d, const pc_kernel_shape *s, void *const *t, pc_error *e) {                   \
        (void)d;                                                                                                       \
        return launched(i, s, t, e);                                                                                   \
    }                                                                                                                  \
    static pc_code tensors_##i(const pc_kernel_shape *s, pc_tensor t[PC_KERNEL_TENSORS], int *n, pc_error *e) {        \
        return tiny_tensors(i, s, t, n, e);                                                                            \
    }
#define FAMILIES_OF_4(a, b, c, d) FAMILY(a) FAMILY(b) FAMILY(c) FAMILY(d)
FAMILIES_OF_4(0, 1, 2, 3)
FAMILIES_OF_4(4, 5, 6, 7)
FAMILIES_OF_4(8, 9, 10, 11)
FAMILIES_OF_4(12, 13, 14, 15)
FAMILIES_OF_4(16, 17, 18, 19)
FAMILIES_OF_4(20, 21, 22, 23)
FAMILIES_OF_4(24, 25, 26, 27)
FAMILIES_OF_4(28, 29, 30, 31)
FAMILIES_OF_4(32, 33, 34, 35)
FAMILIES_OF_4(36, 37, 38, 39)
FAMILIES_OF_4(40, 41, 42, 43)
FAMILIES_OF_4(44, 45, 46, 47)
FAMILIES_OF_4(48, 49, 50, 51)
FAMILIES_OF_4(52, 53, 54, 55)
#define ENTRY(i)                                                                                                       \
    { launch_##i, tensors_##i }
#define ENTRIES_OF_4(a, b, c, d) ENTRY(a), ENTRY(b), ENTRY(c), ENTRY(d)
static const struct {
    pc_code (*launch)(pc_device *, const pc_kernel_shape *, void *const *, pc_error *);
    pc_code (*tensors)(const pc_kernel_shape *, pc_tensor[PC_KERNEL_TENSORS], int *, pc_error *);
} entries[FAMILIES_MOST] = {ENTRIES_OF_4(0, 1, 2, 3),     ENTRIES_OF_4(4, 5, 6, 7),     ENTRIES_OF_4(8, 9, 10, 11),
                            ENTRIES_OF_4(12, 13, 14, 15), ENTRIES_OF_4(16, 17, 18, 19), ENTRIES_OF_4(20, 21, 22, 23),
                            ENTRIES_OF_4(24, 25, 26, 27), ENTRIES_OF_4(28, 29, 30, 31), ENTRIES_OF_4(32, 33, 34, 35),
                            ENTRIES_OF_4(36, 37, 38, 39), ENTRIES_OF_4(40, 41, 42, 43), ENTRIES_OF_4(44, 45, 46, 47),
                            ENTRIES_OF_4(48, 49, 50, 51), ENTRIES_OF_4(52, 53, 54, 55)};

static pc_code made_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,
                               pc_error *error) {
    (void)device, (void)error;
    *made = (pc_kernel_attributes){.kernel = "nothing", .grid = {7, 1, 1}, .block = {128, 1, 1}, .registers = 40};
    made->shared_bytes = shape->m;
    return PC_OK;
}

static pc_code passes(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, uint64_t seed,
                      pc_kernel_check *check, pc_error *error) {
    (void)device, (void)family, (void)shape, (void)seed, (void)error;
    *check = (pc_kernel_check){.is_right = true, .worst_error = 0.25};
    return PC_OK;
}

static pc_code no_fit(pc_profile *profile, int64_t *left_out, pc_error *error) {
    (void)profile, (void)error;
    *left_out = 0;
    return PC_OK;
}

static void set_clock(void *self, pc_device *device) {
    pc_emulated_set_clock(device, (pc_emulated_clock){.seconds = clock_seconds, .self = self});
}

static double world_now(void *self) {
    return ((world *)self)->now_s;
}

/* 300 TFLOP/s, 2 TB/s, thrice that from the cache, 2 us a launch. */
static void make_world(world *w, uint64_t seed) {
    int count;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    assert_in_range(count, 20, FAMILIES_MOST);
    *w = (world){.flops_per_s = 3e14, .bytes_per_s = 2e12, .cached_bytes_per_s = 6e12, .launch_s = 2e-6};
    w->noise = 0.003;
    w->overhead_s = 50e-6;
    w->slows_at_s = INFINITY;
    w->now_s = w->begun_s = 1000.0;
    w->random.state = seed;
    for (int i = 0; i < count; i++) {
        w->copies[i] = *families[i];
        w->copies[i].prepare = NULL;
        w->copies[i].launch = entries[i].launch;
        w->copies[i].tensors = entries[i].tensors;
        w->copies[i].attributes = made_attributes;
        w->list[i] = &w->copies[i];
    }
    w->about = (pc_device_info){.name = "made up", .processors = 108, .l2_bytes = 4096, .is_emulated = true};
    w->about.memory_bytes = INT64_C(64) << 30;
    w->seams = (pc_measure_seams){w->list, count, &w->about, world_now, set_clock, w, passes, no_fit};
    the_world = w;
}

typedef struct outcome {
    pc_profile profile;
    char *warnings;
    pc_error error;
    pc_code code;
} outcome;

static outcome calibrate(world *w, const pc_calibrate_request *request) {
    outcome o = {0};
    pc_calibrate_request asked = *request;
    asked.without_transfers = true;
    o.code = pc_calibrate_with(&asked, &w->seams, &o.profile, &o.warnings, &o.error);
    return o;
}

static void drop(outcome *o) {
    pc_profile_free(&o->profile);
    pc_free(o->warnings);
    o->warnings = NULL;
}

static bool has_warning(const outcome *o, const char *words) {
    return o->warnings && strstr(o->warnings, words);
}

static bool is_sentinel(const pc_kernel_measurement *measured) {
    return strncmp(measured->kernel, PC_PROFILE_SENTINEL, strlen(PC_PROFILE_SENTINEL)) == 0;
}

/* ---- the whole ---- */

static void check_samples(const pc_profile *profile, const pc_kernel_measurement *measured) {
    double room[PC_SAMPLES_MOST];
    pc_statistics s;
    assert_in_range(measured->seconds.count, 30, PC_SAMPLES_MOST);
    assert_true(measured->first_sample >= 0 &&
                measured->first_sample + measured->seconds.count <= profile->sample_count);
    pc_statistics_of(profile->sample + measured->first_sample, measured->seconds.count, room, &s);
    assert_true(s.median == measured->seconds.median && s.q1 == measured->seconds.q1 && s.q3 == measured->seconds.q3);
    assert_true(s.p5 == measured->seconds.p5 && s.p95 == measured->seconds.p95 && s.least == measured->seconds.least);
}

/* Whether a profile's kernel of this name and dtype is the family's: of 8 bits it has another name than the family. */
static bool is_of(const pc_kernel_family *family, const char *kernel, const char *dtype) {
    bool is_16 = strcmp(dtype, "bf16") == 0 || strcmp(dtype, "fp16") == 0;
    if (!family->low) return is_16 && strcmp(family->name, kernel) == 0;
    return strcmp(family->low->measured, kernel) == 0 && strcmp(pc_low_name(family->low->scaling), dtype) == 0;
}

static const pc_kernel_family *family_of(const world *w, const pc_kernel_measurement *measured) {
    for (int f = 0; f < w->seams.family_count; f++)
        if (is_of(w->list[f], measured->kernel, measured->dtype)) return pc_kernel_family_find(w->list[f]->name);
    fail_msg("%s %s: no family", measured->kernel, measured->dtype);
    return NULL;
}

/* The kernel's shape as the family takes it, from what the profile says of it. */
static pc_kernel_shape shape_of(const pc_kernel_family *family, const pc_kernel_measurement *measured) {
    pc_kernel_shape s = {.dtype = strcmp(measured->dtype, "bf16") == 0 ? PC_BF16 : PC_FP16,
                         .m = measured->m,
                         .n = measured->n,
                         .k = measured->k};
    s.heads = measured->heads;
    s.kv_heads = measured->kv_heads;
    s.is_causal = measured->is_causal;
    s.accumulates = measured->accumulates;
    if (family->low) s.dtype = PC_BF16, s.scaling = family->low->scaling;
    s.batch = measured->kind == PC_OPERATION_ATTENTION ? measured->batch / measured->heads : measured->batch;
    return s;
}

/* The median lies within 4 standard errors of the truth (1.25 sigma / sqrt(n), and some for the launches before), and
 * it is the truth of that cache state. */
static void check_time(const world *w, const pc_kernel_measurement *measured) {
    double compute = (double)measured->flops / w->flops_per_s;
    double memory =
        (double)measured->bytes / (measured->cache == PC_CACHE_HOT ? w->cached_bytes_per_s : w->bytes_per_s);
    double right = w->launch_s + fmax(compute, memory);
    assert_float_equal(measured->seconds.median / right, 1.0,
                       4.0 * 1.3 * w->noise / sqrt((double)measured->seconds.count));
    assert_true(measured->seconds.q3 / measured->seconds.q1 < 1.0 + 4.0 * w->noise);
    if (right < 18e-6) assert_true(measured->in_graph);
    if (right > 22e-6) assert_false(measured->in_graph);
}

static void a_tiny_run_has_all_of_it(void **state) {
    (void)state;
    world w;
    make_world(&w, 1);
    outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_TINY, .seed = 3, .version = "1.2"});
    if (o.code) fail_msg("%s", o.error.message);
    assert_true(o.profile.device.is_complete);
    assert_string_equal(o.profile.device.name, "made up");
    assert_string_equal(o.profile.device.pipecast, "1.2");
    assert_int_equal(o.profile.device.processors, 108);
    assert_float_equal(o.profile.device.launch_s / w.launch_s, 1.0, 0.01); /* 16 bytes take no time */
    int seen[FAMILIES_MOST][PC_CACHE_STATES] = {0}, sentinels = 0;
    double best = 0.0, copy = 0.0;
    for (int64_t i = 0; i < o.profile.kernel_count; i++) {
        const pc_kernel_measurement *measured = &o.profile.kernel[i];
        check_samples(&o.profile, measured);
        if (is_sentinel(measured)) {
            sentinels++;
            continue;
        }
        check_time(&w, measured);
        const pc_kernel_family *family = family_of(&w, measured);
        pc_kernel_shape shape = shape_of(family, measured);
        assert_int_equal(measured->flops, family->flops(&shape));
        if (family->low) assert_int_equal(measured->bytes, family->bytes(&shape));
        assert_int_equal(measured->shared_bytes, measured->m);
        assert_true(measured->registers == 40 && measured->grid[0] == 7 && measured->check_error == 0.25);
        for (int f = 0; f < w.seams.family_count; f++)
            seen[f][measured->cache] += is_of(w.list[f], measured->kernel, measured->dtype);
        if (measured->cache == PC_CACHE_HOT) continue;
        if (strcmp(measured->kernel, "gemm_forward") == 0 && !family->low && measured->m == 96 && measured->n == 96 &&
            measured->k == 96)
            best = (double)measured->flops / measured->seconds.median;
        if (strcmp(measured->kernel, "copy") == 0 && measured->m == 64 && measured->n == 256)
            copy = (double)measured->bytes / measured->seconds.median;
    }
    for (int f = 0; f < w.seams.family_count; f++)
        for (int cache = 0; cache < PC_CACHE_STATES; cache++) assert_true(seen[f][cache] >= 7);
    assert_true(sentinels >= 2 * 10);
    assert_true(o.profile.device.gemm_flops_per_s == best && o.profile.device.copy_bytes_per_s == copy);
    assert_null(o.warnings);
    drop(&o);
}

static const pc_fit *fit_of(const pc_profile *profile, const pc_kernel_family *family, int cache) {
    for (int64_t i = 0; i < profile->fit_count; i++) {
        const pc_fit_key *key = &profile->fit[i].key;
        if (is_of(family, key->subject, key->dtype) && key->cache == cache) return &profile->fit[i];
    }
    return NULL;
}

/* What is written is what is read, not a number of the clock's and all. */
static void check_file(const pc_profile *profile, const char *path) {
    pc_profile read = {0};
    pc_error error = {0};
    char hash[17], hash_read[17];
    if (pc_profile_write(profile, path, &error) || pc_profile_read(path, &read, &error)) fail_msg("%s", error.message);
    pc_profile_hash(profile, hash);
    pc_profile_hash(&read, hash_read);
    assert_string_equal(hash, hash_read);
    assert_int_equal(read.kernel_count, profile->kernel_count);
    assert_int_equal(read.sample_count, profile->sample_count);
    for (int64_t i = 0; i < read.kernel_count; i++) check_samples(&read, &read.kernel[i]);
    pc_profile_free(&read);
}

/* A fit for every family, and the copy's foretells what the clock does. Sentinels are none. */
static void a_tiny_run_is_fitted(void **state) {
    const folder *place = *state;
    world w;
    make_world(&w, 2);
    w.seams.fit = pc_profile_fit;
    outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_TINY, .seed = 3});
    if (o.code) fail_msg("%s", o.error.message);
    for (int f = 0; f < w.seams.family_count; f++)
        if (!fit_of(&o.profile, w.list[f], PC_CACHE_COLD)) fail_msg("%s: no fit", w.list[f]->name);
    for (int64_t i = 0; i < o.profile.fit_count; i++)
        assert_null(strstr(o.profile.fit[i].key.subject, PC_PROFILE_SENTINEL));
    const pc_fit *copy = fit_of(&o.profile, pc_kernel_family_find("copy"), PC_CACHE_COLD);
    double bytes = 20000.0, right = w.launch_s + bytes / w.bytes_per_s;
    assert_float_equal(pc_fit_predict(copy, &bytes).seconds / right, 1.0, 0.01);
    check_file(&o.profile, place->file);
    drop(&o);
}

/* ---- time ---- */

/* The tiers that were measured, as far as measurements tell them: fp16 comes last. */
static void budgets_are_kept(void **state) {
    (void)state;
    const struct {
        pc_calibrate_effort effort;
        double faster, most_s, budget_s;
        bool is_complete;
    } cases[] = {
        {PC_CALIBRATE_QUICK, 1.0, 60, 0, true},   {PC_CALIBRATE_QUICK, 0.02, 60, 0, false},
        {PC_CALIBRATE_QUICK, 1.0, 20, 20, false}, {PC_CALIBRATE_FULL, 1.0, 540, 0, true},
        {PC_CALIBRATE_FULL, 0.03, 540, 0, false},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        world w;
        make_world(&w, 10 + c);
        w.flops_per_s *= cases[c].faster;
        w.bytes_per_s *= cases[c].faster;
        w.cached_bytes_per_s *= cases[c].faster;
        outcome o = calibrate(&w, &(pc_calibrate_request){.effort = cases[c].effort, .budget_s = cases[c].budget_s});
        if (o.code) fail_msg("%s", o.error.message);
        double took_s = w.now_s - w.begun_s;
        if (!(took_s < cases[c].most_s)) fail_msg("case %zu: %g s", c, took_s);
        assert_true(took_s > 0.3 * cases[c].most_s || cases[c].is_complete);
        assert_true(o.profile.device.is_complete == cases[c].is_complete);
        assert_true(has_warning(&o, "the time was up") == !cases[c].is_complete);
        drop(&o);
    }
}

/* In percent; NaN where it is not warned of. */
static double drift_of(const outcome *o, const char *what) {
    char begin[64];
    snprintf(begin, sizeof begin, "drift: the same %s took up to ", what);
    const char *found = o->warnings ? strstr(o->warnings, begin) : NULL;
    return found ? strtod(found + strlen(begin), NULL) : (double)NAN;
}

/* By 5%, half a point of which noise may add to or take from the medians. */
static void a_clock_that_slows_is_told(void **state) {
    (void)state;
    world w;
    make_world(&w, 20);
    w.slows_at_s = 15.0;
    w.slows_by = 1.05;
    outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_QUICK});
    if (o.code) fail_msg("%s", o.error.message);
    assert_true(fabs(drift_of(&o, "product") - 5.0) < 0.5);
    assert_true(fabs(drift_of(&o, "copy") - 5.0) < 0.5);
    drop(&o);
    make_world(&w, 21); /* and one that swings by more than 1% while it should settle */
    w.noise = 0.02;
    o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_QUICK});
    if (o.code) fail_msg("%s", o.error.message);
    assert_true(has_warning(&o, "the clock did not settle"));
    assert_false(has_warning(&o, "drift"));
    drop(&o);
}

/* ---- ends ---- */

typedef struct stopper {
    int64_t at, total;
    volatile int stop;
} stopper;

static void stop_at(void *self, int64_t done, int64_t total, const char *what) {
    stopper *s = self;
    assert_true(done <= total && what && what[0]);
    s->total = total;
    if (done == s->at) s->stop = 1;
}

static void an_interruption_keeps_what_is_done(void **state) {
    (void)state;
    const int64_t places[] = {1, 2, 17, 60};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        world w;
        make_world(&w, 30 + p);
        stopper s = {.at = places[p]};
        pc_calibrate_request request = {
            .effort = PC_CALIBRATE_TINY, .is_interrupted = &s.stop, .progress = {stop_at, &s}};
        outcome o = calibrate(&w, &request);
        if (o.code && places[p] > 30) fail_msg("%s", o.error.message);
        assert_false(o.profile.device.is_complete);
        int64_t shapes = 0;
        for (int64_t i = 0; i < o.profile.kernel_count; i++) {
            check_samples(&o.profile, &o.profile.kernel[i]);
            shapes += !is_sentinel(&o.profile.kernel[i]) && o.profile.kernel[i].cache == PC_CACHE_COLD;
        }
        assert_int_equal(shapes, places[p]);
        assert_true(s.total > places[p]);
        drop(&o);
    }
}

static void a_fault_of_the_device_keeps_what_is_done(void **state) {
    (void)state;
    world w;
    make_world(&w, 40);
    w.fails_at = 20000;
    outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_TINY});
    assert_int_equal(o.code, PC_ERROR_IO);
    assert_non_null(strstr(o.error.message, ": an illegal address"));
    assert_true(o.profile.kernel_count > 20 && !o.profile.device.is_complete);
    for (int64_t i = 0; i < o.profile.kernel_count; i++) check_samples(&o.profile, &o.profile.kernel[i]);
    drop(&o);
}

/* Three families, so that it is quick: whichever allocation fails, it is an error or nothing, and nothing is lost. */
static void no_memory_is_an_error(void **state) {
    (void)state;
    test_random random = {6};
    for (long c = 0; c < test_cases(25, 25); c++) {
        world w;
        make_world(&w, 50);
        w.list[0] = &w.copies[0];
        w.seams.family_count = 1;
        pc_alloc_fail_after((long)test_between(&random, 0, c < 10 ? 20 : 600));
        outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_TINY});
        pc_alloc_fail_after(-1);
        assert_true(o.code == PC_OK || o.code == PC_ERROR_NO_MEMORY || has_warning(&o, "memory"));
        drop(&o);
    }
}

/* ---- real kernels ---- */

static pc_code do_nothing(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    (void)device, (void)shape, (void)tensors, (void)error;
    return PC_OK;
}

/* Real copies, on the device; and a sum that writes nothing: its output stays poisoned, the check sees it, and no time
 * of it is kept. */
static void a_wrong_kernel_is_left_out(void **state) {
    (void)state;
    pc_kernel_family wrong = *pc_kernel_family_find("add");
    wrong.launch = do_nothing;
    const pc_kernel_family *families[] = {&wrong, pc_kernel_family_find("copy")};
    pc_device_info about = {.name = "emulated", .processors = 4, .memory_bytes = 1 << 24, .l2_bytes = 512};
    pc_measure_seams seams = pc_measure_seams_usual();
    seams.families = families;
    seams.family_count = 2;
    seams.about = &about;
    seams.fit = no_fit;
    outcome o = {0};
    stopper s = {.at = 12};
    pc_calibrate_request request = {.effort = PC_CALIBRATE_TINY, .without_transfers = true};
    request.is_interrupted = &s.stop;
    request.progress = (pc_calibrate_progress){stop_at, &s};
    (void)pc_calibrate_with(&request, &seams, &o.profile, &o.warnings, &o.error);
    assert_true(has_warning(&o, "add: left out: wrong result: "));
    assert_true(o.profile.kernel_count > 0);
    for (int64_t i = 0; i < o.profile.kernel_count; i++) {
        assert_non_null(strstr(o.profile.kernel[i].kernel, "copy"));
        assert_true(is_sentinel(&o.profile.kernel[i]) || o.profile.kernel[i].check_error <= 1.0);
        assert_true(o.profile.kernel[i].seconds.median > 0.0);
    }
    drop(&o);
}

static pc_code cannot(pc_device *device, pc_error *error) {
    (void)device;
    return pc_error_set(error, PC_ERROR_INPUT, "products in mxfp8: no units; expected some");
}

/* Three families, one line, and everything else is there. */
static void what_the_device_cannot_is_said_once(void **state) {
    (void)state;
    world w;
    pc_low_family low[FAMILIES_MOST];
    make_world(&w, 9);
    for (int f = 0; f < w.seams.family_count; f++) {
        if (!w.list[f]->low || w.list[f]->low->scaling != PC_LOW_MX) continue;
        low[f] = (pc_low_family){PC_LOW_MX, w.list[f]->low->measured, cannot};
        w.copies[f].low = &low[f];
    }
    outcome o = calibrate(&w, &(pc_calibrate_request){.effort = PC_CALIBRATE_TINY, .seed = 3});
    if (o.code) fail_msg("%s", o.error.message);
    assert_string_equal(o.warnings, "left out: products in mxfp8: no units; expected some\n");
    int fp8 = 0;
    for (int64_t i = 0; i < o.profile.kernel_count; i++) {
        assert_string_not_equal(o.profile.kernel[i].dtype, "mxfp8");
        fp8 += strcmp(o.profile.kernel[i].dtype, "fp8") == 0;
    }
    assert_true(fp8 >= 3 * 7);
    drop(&o);
}

/* Two rounds of launches of a bench with s sets touch each set twice, and the sets lie apart. */
static void cold_launches_go_round(void **state) {
    (void)state;
    world w;
    make_world(&w, 60);
    pc_device *device;
    assert_int_equal(pc_device_open(0, &device, NULL), PC_OK);
    pc_calibrate_request request = {.seed = 1};
    pc_measure *x = pc_alloc(1, sizeof *x);
    x->request = &request;
    x->device = device;
    const pc_kernel_family *family = pc_kernel_family_find("add");
    pc_listed_shape listed = {.family = family, .shape = {.dtype = PC_BF16, .batch = 1, .m = 3, .n = 50}, .sets = 5};
    pc_kernel_family copy = w.copies[0];
    copy.tensors = family->tensors;
    listed.family = &copy;
    pc_bench bench;
    assert_int_equal(pc_bench_open(&bench, x, &listed, NULL), PC_OK);
    assert_int_equal(bench.tensor_count, 3);
    const char *seen[10];
    for (int i = 0; i < 10; i++) {
        double seconds;
        assert_int_equal(pc_bench_time(&bench, 1, i % 2, &seconds, NULL), PC_ERROR_IO); /* it launched nothing */
        seen[i] = w.address;
    }
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < i; j++) {
            if ((i - j) % 5 == 0)
                assert_ptr_equal(seen[i], seen[j]);
            else
                assert_true(labs((long)(seen[i] - seen[j])) >= 300);
        }
    bench.rotation = 1;
    bench.next = 0;
    pc_bench_close(&bench);
    assert_int_equal(pc_emulated_allocations(device), 0);
    pc_free(x);
    pc_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiny_run_has_all_of_it),
        cmocka_unit_test_prestate_setup_teardown(a_tiny_run_is_fitted, make_folder, remove_folder, "profile.h5"),
        cmocka_unit_test(budgets_are_kept),
        cmocka_unit_test(a_clock_that_slows_is_told),
        cmocka_unit_test(an_interruption_keeps_what_is_done),
        cmocka_unit_test(a_fault_of_the_device_keeps_what_is_done),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(a_wrong_kernel_is_left_out),
        cmocka_unit_test(what_the_device_cannot_is_said_once),
        cmocka_unit_test(cold_launches_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
