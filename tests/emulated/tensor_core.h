/* tensor_core.h: what cuda/tensor_core.cuh declares, on the host: lanes hand each other their registers. Included there
 * only. */
#ifndef PC_TESTS_EMULATED_TENSOR_CORE_H
#define PC_TESTS_EMULATED_TENSOR_CORE_H

/* ---- copies, done as late as they may be: at the wait that covers them ---- */

struct pc_emulated_copy {
    char *to;
    const void *from; /* NULL: zeros */
};

enum { PC_EMULATED_COPIES = 128, PC_EMULATED_GROUPS = 8 };

struct pc_emulated_copies {
    pc_emulated_copy copy[PC_EMULATED_COPIES]; /* under way, the oldest first */
    int count;
    int group_end[PC_EMULATED_GROUPS], groups; /* of committed ones: where each group ends in `copy` */
};

/* Of the thread that runs. Only one launch runs at a time in the whole program. */
inline pc_emulated_copies &pc_emulated_copies_now() {
    static pc_emulated_copies all[1024];
    return all[pc_thread()];
}

inline void pc_copy_async_16(pc_shared_address to, const void *from, bool is_there) {
    pc_emulated_copies &now = pc_emulated_copies_now();
    pc_emulated_need_aligned(to, 16);
    if (is_there) pc_emulated_need_aligned(from, 16);
    if (now.count == PC_EMULATED_COPIES) pc_emulated_fail("more than 128 copies of a thread under way");
    memset(to, 0xff, 16); /* what it has until then means nothing */
    now.copy[now.count++] = pc_emulated_copy{to, is_there ? from : nullptr};
}

inline void pc_copy_async_commit() {
    pc_emulated_copies &now = pc_emulated_copies_now();
    if (now.groups == PC_EMULATED_GROUPS) pc_emulated_fail("more than 8 groups of copies under way");
    now.group_end[now.groups++] = now.count;
}

template <int Pending> inline void pc_copy_async_wait() {
    pc_emulated_copies &now = pc_emulated_copies_now();
    int done = now.groups - Pending, end = done > 0 ? now.group_end[done - 1] : 0;
    if (done <= 0) return;
    for (int i = 0; i < end; i++)
        if (now.copy[i].from)
            memcpy(now.copy[i].to, now.copy[i].from, 16);
        else
            memset(now.copy[i].to, 0, 16);
    for (int i = end; i < now.count; i++) now.copy[i - end] = now.copy[i];
    for (int i = done; i < now.groups; i++) now.group_end[i - done] = now.group_end[i] - end;
    now.count -= end;
    now.groups -= done;
}

/* ---- matrices ---- */

inline void pc_emulated_load_matrices(uint32_t (&to)[4], pc_shared_address row, bool is_transposed) {
    pc_emulated_need_aligned(row, 16);
    const pc_shared_address *rows = static_cast<const pc_shared_address *>(pc_emulated_warp_exchange(&row, sizeof row));
    int major = pc_emulated_lane() / 4, pair = pc_emulated_lane() % 4 * 2;
    for (int i = 0; i < 4; i++) {
        uint16_t both[2];
        for (int e = 0; e < 2; e++) {
            int from_row = is_transposed ? pair + e : major, column = is_transposed ? major : pair + e;
            memcpy(&both[e], rows[8 * i + from_row] + 2 * column, 2);
        }
        to[i] = both[0] | static_cast<uint32_t>(both[1]) << 16;
    }
}

inline void pc_load_matrices(uint32_t (&to)[4], pc_shared_address row) {
    pc_emulated_load_matrices(to, row, false);
}

inline void pc_load_matrices_transposed(uint32_t (&to)[4], pc_shared_address row) {
    pc_emulated_load_matrices(to, row, true);
}

/* ---- products ---- */

/* What a lane holds, as doubles: of a, rows lane / 4 and that + 8; of b, columns lane / 4 and that + 8; steps pair,
 * pair + 1, pair + 8 and pair + 9 of each. */
struct pc_emulated_operands {
    double a[2][4], b[2][4];
};

template <class T> inline void pc_emulated_unpack(uint32_t both, double *to) {
    for (int i = 0; i < 2; i++) {
        T element;
        element.bits = static_cast<uint16_t>(both >> (16 * i));
        to[i] = pc_to_float(element);
    }
}

/* Value i of a lane's part of C. In double precision: a GPU's order and rounding of the sixteen products is its own.
 * The tests spend their time here, and all places are within what was exchanged: no sanitizer looks at them. */
__attribute__((no_sanitize("address", "undefined"))) inline float
pc_emulated_dot(float c, const pc_emulated_operands *all, int row, int column, int half, int side) {
    double sum = c;
    for (int lane = 0; lane < 4; lane++) {
        const double *left = all[row * 4 + lane].a[half], *right = all[column * 4 + lane].b[side];
        sum += left[0] * right[0] + left[1] * right[1] + left[2] * right[2] + left[3] * right[3];
    }
    return static_cast<float>(sum);
}

template <class T>
inline void pc_mma_16x16x16(float (&left)[4], float (&right)[4], const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    pc_emulated_operands mine;
    for (int i = 0; i < 4; i++) {
        pc_emulated_unpack<T>(a[i], &mine.a[i % 2][i / 2 * 2]);
        pc_emulated_unpack<T>(b[i], &mine.b[i / 2][i % 2 * 2]);
    }
    const pc_emulated_operands *all =
        static_cast<const pc_emulated_operands *>(pc_emulated_warp_exchange(&mine, sizeof mine));
    const int row = pc_emulated_lane() / 4, pair = pc_emulated_lane() % 4 * 2;
    for (int i = 0; i < 4; i++) {
        left[i] = pc_emulated_dot(left[i], all, row, pair + i % 2, i / 2, 0);
        right[i] = pc_emulated_dot(right[i], all, row, pair + i % 2, i / 2, 1);
    }
}

template <class T> inline uint32_t pc_pack(float low, float high) {
    return pc_from_float<T>(low).bits | static_cast<uint32_t>(pc_from_float<T>(high).bits) << 16;
}

#endif
