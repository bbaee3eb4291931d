/* emulate.cc: fibers that are the threads of a block.
 *
 * A fiber is made with makecontext and entered and left with the compiler's own setjmp and longjmp, which, unlike
 * swapcontext and the C library's under AddressSanitizer, ask nothing of the kernel. It is used for thread after thread
 * of block after block. Who is ready to run stands in a ring; a fiber that has to wait hands over to the next one of it
 * (or the last), and to the host's own stack where there is none.
 */
#include "tests/emulated/emulate.h"

#include "engine/alloc.h"
#include "tests/emulated/device_private.h"
#include "tests/emulated/emulated.h"

#include <cstdio>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define START_SWITCH(save, bottom, size)   __sanitizer_start_switch_fiber(save, bottom, size)
#define FINISH_SWITCH(saved, bottom, size) __sanitizer_finish_switch_fiber(saved, bottom, size)
constexpr size_t STACK_BYTES = 256 << 10; /* its frames are larger; what is not touched takes no memory */
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define START_SWITCH(save, bottom, size)           ((void)(save), (void)(bottom), (void)(size))
#define FINISH_SWITCH(saved, bottom, size)         ((void)(saved), (void)(bottom), (void)(size))
constexpr size_t STACK_BYTES = 64 << 10;
#endif

__thread const pc_emulated_view *pc_emulated_now;

namespace {

constexpr int THREADS_MAX = 1024, WARPS_MAX = THREADS_MAX / 32;
constexpr size_t SHARED_MAX = 163 << 10, PAGE_BYTES = 4096, SHARED_ALIGNMENT = 128;

/* Where to come back to. */
struct stack {
    void *place[5]; /* __builtin_setjmp's */
    void *fake;     /* AddressSanitizer's */
    const void *bottom;
    size_t size;
};

enum state { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, ENDED };

struct fiber {
    stack of;
    pc_emulated_view view;
    int thread;
    enum state state;
    pc_emulated_place place; /* of the barrier at which it waits */
};

struct warp {
    unsigned live, arrived;
    int first; /* thread that arrived */
    int parity;
    alignas(16) unsigned char given[2][32 * PC_EMULATED_EXCHANGE];
};

} // namespace

struct pc_emulator {
    fiber fibers[THREADS_MAX];
    int made;
    warp warps[WARPS_MAX];
    stack home;
    bool is_leaving_home;
    ucontext_t maker;

    const char *kernel;
    void (*body)(void *self);
    void *self;
    pc_emulated_block block;
    int threads, live, arrived;
    int first_arrived;
    int ready[THREADS_MAX], ready_head, ready_count;
    bool is_reversed;
    bool is_deep; /* a warp goes as far as it can before the next one does; else all go side by side */
    uint64_t launches;
    size_t shared_bytes;
};

namespace {

/* Static shared memory is one for all: one launch at a time in the whole program. */
pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;
__thread pc_emulator *running;

fiber *current() {
    return reinterpret_cast<fiber *>(reinterpret_cast<char *>(const_cast<pc_emulated_view *>(pc_emulated_now)) -
                                     offsetof(fiber, view));
}

/* ---- faults ---- */

void print_place(const fiber *f) {
    const char *where = f->state == AT_BLOCK_BARRIER ? "__syncthreads" : "a warp's barrier or exchange";
    fprintf(stderr, "  thread %d (warp %d, lane %d) waits at %s, %s:%u\n", f->thread, f->thread / 32, f->thread % 32,
            where, f->place.file_name(), static_cast<unsigned>(f->place.line()));
}

/* Every place once, with the first thread that waits there. */
void print_waiting(const pc_emulator *e) {
    int printed = 0, ended = 0;
    for (int i = 0; i < e->threads; i++) {
        const fiber *f = &e->fibers[i], *before = nullptr;
        ended += f->state == ENDED;
        if (f->state == ENDED || f->state == READY) continue;
        for (int j = 0; j < i && !before; j++)
            if (e->fibers[j].state == f->state && e->fibers[j].place.line() == f->place.line() && j / 32 == i / 32)
                before = &e->fibers[j];
        if (!before && printed++ < 16) print_place(f);
    }
    fprintf(stderr, "  %d of %d threads have ended\n", ended, e->threads);
}

[[noreturn]] void fail(const pc_emulator *e, const char *what) {
    const uint3 &at = e->block.blockIdx;
    fprintf(stderr, "emulated kernel %s, block (%u, %u, %u): %s\n", e->kernel, at.x, at.y, at.z, what);
    print_waiting(e);
    abort();
}

/* ---- fibers ---- */

void make_ready(pc_emulator *e, fiber *f) {
    f->state = READY;
    e->ready[(e->ready_head + e->ready_count++) % THREADS_MAX] = f->thread;
}

/* Goes on with `to`; comes back when somebody goes on with `from`. */
[[noreturn]] __attribute__((noinline, no_sanitize("address"))) void jump(void **place) {
    __builtin_longjmp(place, 1);
}

__attribute__((noinline, no_sanitize("address"))) void go(pc_emulator *e, stack *from, stack *to) {
    e->is_leaving_home = from == &e->home;
    if (__builtin_setjmp(from->place) == 0) {
        START_SWITCH(&from->fake, to->bottom, to->size);
        jump(to->place);
    }
    const void *bottom = nullptr;
    size_t size = 0;
    FINISH_SWITCH(from->fake, &bottom, &size);
    if (e->is_leaving_home) { /* the host's stack, in whatever thread of it this is */
        e->home.bottom = bottom;
        e->home.size = size;
    }
}

void go_to_next(pc_emulator *e, stack *from) {
    if (e->ready_count == 0) {
        if (from != &e->home) go(e, from, &e->home);
        return;
    }
    int place = e->is_deep ? (e->ready_head + e->ready_count - 1) % THREADS_MAX : e->ready_head;
    fiber *next = &e->fibers[e->ready[place]];
    if (!e->is_deep) e->ready_head = (e->ready_head + 1) % THREADS_MAX;
    e->ready_count--;
    pc_emulated_now = &next->view;
    if (&next->of != from) go(e, from, &next->of);
}

void release_block(pc_emulator *e) {
    e->arrived = 0;
    for (int i = 0; i < e->threads; i++) {
        fiber *f = &e->fibers[e->is_reversed ? e->threads - 1 - i : i];
        if (f->state == AT_BLOCK_BARRIER) make_ready(e, f);
    }
}

void release_warp(pc_emulator *e, int number) {
    warp *w = &e->warps[number];
    w->arrived = 0;
    for (int i = 0; i < 32; i++) {
        int thread = number * 32 + (e->is_reversed ? 31 - i : i);
        if (thread < e->threads && e->fibers[thread].state == AT_WARP_BARRIER) make_ready(e, &e->fibers[thread]);
    }
}

/* Those who wait wait no longer for one that has ended. */
void end_thread(pc_emulator *e, fiber *f) {
    warp *w = &e->warps[f->thread / 32];
    f->state = ENDED;
    e->live--;
    w->live &= ~(1u << (f->thread % 32));
    if (e->arrived > 0 && e->arrived == e->live) release_block(e);
    if (w->arrived && w->arrived == w->live) release_warp(e, f->thread / 32);
}

/* A fiber's life: the first time it only says that it is there. */
void live(unsigned high, unsigned low) {
    uintptr_t address = static_cast<uintptr_t>(static_cast<uint64_t>(high) << 32 | low);
    fiber *self = reinterpret_cast<fiber *>(address);
    pc_emulator *e = running;
    FINISH_SWITCH(nullptr, &e->home.bottom, &e->home.size);
    if (__builtin_setjmp(self->of.place) == 0) {
        START_SWITCH(&self->of.fake, e->home.bottom, e->home.size);
        setcontext(&e->maker);
    }
    const void *bottom = nullptr;
    size_t size = 0;
    FINISH_SWITCH(self->of.fake, &bottom, &size);
    if (running->is_leaving_home) {
        running->home.bottom = bottom;
        running->home.size = size;
    }
    for (;;) {
        running->body(running->self);
        end_thread(running, self);
        go_to_next(running, &self->of);
    }
}

bool make_fiber(pc_emulator *e) {
    fiber *f = &e->fibers[e->made];
    void *bottom = pc_alloc_aligned(PAGE_BYTES, STACK_BYTES, 1);
    if (!bottom) return false;
    (void)mprotect(bottom, PAGE_BYTES, PROT_NONE); /* whoever needs more than his stack ends there */
    f->thread = e->made++;
    f->of.bottom = bottom;
    f->of.size = STACK_BYTES;
    ucontext_t made;
    getcontext(&made);
    made.uc_stack.ss_sp = bottom;
    made.uc_stack.ss_size = STACK_BYTES;
    made.uc_link = nullptr;
    uint64_t address = reinterpret_cast<uintptr_t>(f);
    makecontext(&made, reinterpret_cast<void (*)()>(live), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    START_SWITCH(&e->home.fake, bottom, STACK_BYTES);
    swapcontext(&e->maker, &made);
    FINISH_SWITCH(e->home.fake, nullptr, nullptr);
    return true;
}

/* ---- blocks ---- */

void begin_block(pc_emulator *e) {
    memset(e->block.shared, 0xff, e->shared_bytes);
    const dim3 &size = e->block.blockDim;
    e->live = e->threads;
    e->arrived = e->ready_head = e->ready_count = 0;
    for (int i = 0; i < (e->threads + 31) / 32; i++) {
        int lanes = e->threads - i * 32;
        e->warps[i].live = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        e->warps[i].arrived = 0;
    }
    for (int i = 0; i < e->threads; i++) {
        fiber *f = &e->fibers[e->is_reversed ? e->threads - 1 - i : i];
        unsigned thread = static_cast<unsigned>(f->thread);
        f->view.threadIdx = {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
        f->view.block = &e->block;
        make_ready(e, f);
    }
}

void run_blocks(pc_emulator *e, bool is_backwards) {
    const dim3 &grid = e->block.gridDim;
    uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t at = is_backwards ? blocks - 1 - i : i;
        e->block.blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                             static_cast<unsigned>(at / grid.x / grid.y)};
        begin_block(e);
        go_to_next(e, &e->home);
        if (e->live > 0) fail(e, "a barrier that not all live threads reach");
    }
}

const char *refusal(const dim3 &grid, const dim3 &block, size_t shared_bytes) {
    uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (threads < 1 || threads > THREADS_MAX || block.z > 64) return "invalid block; expected 1 to 1024 threads";
    if (grid.x < 1 || grid.x > 0x7fffffffu || grid.y < 1 || grid.y > 65535 || grid.z < 1 || grid.z > 65535)
        return "invalid grid; expected at least one block, and at most 65535 of them along y and z";
    if (shared_bytes > SHARED_MAX) return "too much shared memory; expected at most 163 KiB a block";
    return nullptr;
}

/* Fibers and shared memory enough for the launch. */
const char *make_room(pc_emulator *e, int threads, size_t shared_bytes) {
    while (e->made < threads)
        if (!make_fiber(e)) return "out of memory for the threads of a block";
    size_t rounded = (shared_bytes / SHARED_ALIGNMENT + 1) * SHARED_ALIGNMENT;
    e->block.shared = pc_alloc_aligned(SHARED_ALIGNMENT, 1, rounded);
    if (!e->block.shared) return "out of memory for a block's shared memory";
    ASAN_POISON_MEMORY_REGION(static_cast<char *>(e->block.shared) + shared_bytes, rounded - shared_bytes);
    return nullptr;
}

} // namespace

pc_emulator *pc_emulator_create(void) {
    return static_cast<pc_emulator *>(pc_alloc(1, sizeof(pc_emulator)));
}

void pc_emulator_free(pc_emulator *emulator) {
    if (!emulator) return;
    for (int i = 0; i < emulator->made; i++) {
        void *bottom = const_cast<void *>(emulator->fibers[i].of.bottom);
        (void)mprotect(bottom, PAGE_BYTES, PROT_READ | PROT_WRITE);
        pc_free(bottom);
    }
    pc_free(emulator);
}

void pc_emulated_run(pc_device *device, const char *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                     void (*body)(void *self), void *self) {
    pc_emulated_count_launch(device);
    const char *why = refusal(grid, block, shared_bytes);
    pc_emulator *e = pc_emulated_device_emulator(device);
    pthread_mutex_lock(&one_launch);
    running = e;
    e->threads = static_cast<int>(block.x * block.y * block.z);
    if (!why) why = make_room(e, e->threads, shared_bytes);
    if (why) {
        pc_emulated_refuse(device, why);
    } else {
        e->kernel = kernel;
        e->body = body;
        e->self = self;
        e->block.blockDim = block;
        e->block.gridDim = grid;
        e->shared_bytes = shared_bytes;
        /* Some order that a GPU might take as well: one of eight, by the launch's number. */
        uint64_t order = e->launches++ * UINT64_C(0x9e3779b97f4a7c15) >> 61;
        e->is_reversed = order & 1;
        e->is_deep = order & 4;
        run_blocks(e, order & 2);
        ASAN_UNPOISON_MEMORY_REGION(e->block.shared, (shared_bytes / SHARED_ALIGNMENT + 1) * SHARED_ALIGNMENT);
        pc_free(e->block.shared);
    }
    running = nullptr;
    pthread_mutex_unlock(&one_launch);
}

/* ---- barriers ---- */

namespace {

/* All come to the same place: a GPU would take any barrier for the same, and the kernel would be wrong. */
void check_place(pc_emulator *e, const fiber *self, int first) {
    const fiber *other = &e->fibers[first];
    const char *here = self->place.file_name(), *there = other->place.file_name();
    if (other->place.line() == self->place.line() && (here == there || !strcmp(here, there))) return;
    fail(e, "threads wait at different barriers");
}

} // namespace

void pc_emulated_block_barrier(const pc_emulated_place &place) {
    pc_emulator *e = running;
    fiber *self = current();
    self->state = AT_BLOCK_BARRIER;
    self->place = place;
    if (e->arrived++ == 0)
        e->first_arrived = self->thread;
    else
        check_place(e, self, e->first_arrived);
    if (e->arrived == e->live) release_block(e);
    go_to_next(e, &self->of);
}

void pc_emulated_warp_barrier(unsigned mask, const pc_emulated_place &place) {
    pc_emulator *e = running;
    fiber *self = current();
    int number = self->thread / 32;
    warp *w = &e->warps[number];
    if ((mask & w->live) != w->live) pc_emulated_fail("a barrier of a part of a warp; expected all live lanes");
    self->state = AT_WARP_BARRIER;
    self->place = place;
    if (!w->arrived)
        w->first = self->thread;
    else
        check_place(e, self, w->first);
    w->arrived |= 1u << (self->thread % 32);
    if (w->arrived == w->live) release_warp(e, number);
    go_to_next(e, &self->of);
}

/* Two buffers by turns: who has passed the next exchange has read what this one gave. */
const void *pc_emulated_warp_exchange(const void *mine, size_t size, const pc_emulated_place &place) {
    fiber *self = current();
    warp *w = &running->warps[self->thread / 32];
    if (size > PC_EMULATED_EXCHANGE) pc_emulated_fail("an exchange of more than 256 bytes a lane");
    if (!w->arrived) { /* the first to come */
        w->parity ^= 1;
        memset(w->given[w->parity], 0xff, 32 * size);
    }
    unsigned char *given = w->given[w->parity];
    memcpy(given + static_cast<size_t>(self->thread % 32) * size, mine, size);
    pc_emulated_warp_barrier(0xffffffffu, place);
    return given;
}

void pc_emulated_fail(const char *what) {
    const fiber *self = current();
    fprintf(stderr, "thread %d: ", self->thread);
    fail(running, what);
}
