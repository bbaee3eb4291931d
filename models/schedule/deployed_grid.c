#include "models/schedule/deployed_grid.h"

#include "engine/alloc.h"

#include <string.h>

pc_code pc_grid_create(int devices, int microbatches, int room, pc_grid *grid, pc_error *error) {
    *grid = (pc_grid){.devices = devices, .microbatches = microbatches, .room = room};
    grid->cells = pc_alloc((size_t)devices * (size_t)room, sizeof *grid->cells);
    if (!grid->cells) return pc_error_no_memory(error);
    pc_grid_clear(grid);
    return PC_OK;
}

void pc_grid_free(pc_grid *grid) {
    pc_free(grid->cells);
    *grid = (pc_grid){0};
}

void pc_grid_clear(pc_grid *grid) {
    memset(grid->cells, PC_NO_LETTER, (size_t)grid->devices * (size_t)grid->room);
    grid->width = 0;
}

int pc_grid_device_peak(const pc_grid *grid, int device) {
    const int8_t *row = pc_grid_row(grid, device);
    int held = 0, peak = 0;
    for (int i = 0; i < grid->width; i++) {
        held += pc_letter_holds(row[i]);
        if (held > peak) peak = held;
    }
    return peak;
}

int pc_grid_peak(const pc_grid *grid) {
    int most = 0;
    for (int d = 0; d < grid->devices; d++) {
        int peak = pc_grid_device_peak(grid, d);
        if (peak > most) most = peak;
    }
    return most;
}

/* ---- squeezing ---- */

pc_code pc_squeezer_create(int devices, int microbatches, pc_squeezer *squeezer, pc_error *error) {
    size_t p = (size_t)devices;
    *squeezer = (pc_squeezer){.at = pc_alloc(p * PC_TRAVELLERS * (size_t)microbatches, sizeof *squeezer->at),
                              .count = pc_alloc(p * PC_LETTERS, sizeof *squeezer->count),
                              .next = pc_alloc(p, sizeof *squeezer->next)};
    if (squeezer->at && squeezer->count && squeezer->next) return PC_OK;
    pc_squeezer_free(squeezer);
    return pc_error_no_memory(error);
}

void pc_squeezer_free(pc_squeezer *squeezer) {
    pc_free(squeezer->at);
    pc_free(squeezer->count);
    pc_free(squeezer->next);
    *squeezer = (pc_squeezer){0};
}

/* The device that a traveller comes from; outside of the row of devices at its ends. */
static int sender_of(int device, int letter) {
    return letter % 2 == 0 ? device - 1 : device + 1;
}

/* The cell behind what the k-th pass of a letter waits for; -1 where that does not stand yet. */
static int32_t ready_at(const pc_grid *grid, const pc_squeezer *squeezer, int device, int letter, int k) {
    if (letter >= PC_TRAVELLERS || (letter == PC_LETTER_F0 && device == 0)) return 0;
    int sender = sender_of(device, letter);
    bool turns = sender < 0 || sender >= grid->devices; /* at the ends of the V the same device has it */
    int from = turns ? device : sender, as = turns ? letter - 1 : letter;
    if (squeezer->count[from * PC_LETTERS + as] <= k) return -1;
    return squeezer->at[((int64_t)from * PC_TRAVELLERS + as) * grid->microbatches + k] + 1;
}

static bool put(pc_grid *to, pc_squeezer *squeezer, int device, int letter) {
    int32_t *next = &squeezer->next[device], k = squeezer->count[device * PC_LETTERS + letter]++;
    if (k >= to->microbatches) return false;
    int32_t ready = ready_at(to, squeezer, device, letter, k), cell = ready > *next ? ready : *next;
    if (ready < 0 || cell >= to->room) return false;
    if (letter < PC_TRAVELLERS) squeezer->at[((int64_t)device * PC_TRAVELLERS + letter) * to->microbatches + k] = cell;
    pc_grid_row(to, device)[cell] = (int8_t)letter;
    *next = cell + 1;
    return true;
}

/* One column: what runs down the devices from the first one on, then what runs up from the last one on. */
static bool put_column(const pc_grid *from, pc_grid *to, pc_squeezer *squeezer, int column) {
    for (int d = 0; d < from->devices; d++) {
        int letter = pc_grid_row(from, d)[column];
        if (letter != PC_NO_LETTER && letter % 2 == 0 && !put(to, squeezer, d, letter)) return false;
    }
    for (int d = from->devices; d-- > 0;) {
        int letter = pc_grid_row(from, d)[column];
        if (letter != PC_NO_LETTER && letter % 2 == 1 && !put(to, squeezer, d, letter)) return false;
    }
    return true;
}

bool pc_grid_squeeze(const pc_grid *from, pc_grid *to, pc_squeezer *squeezer) {
    pc_grid_clear(to);
    to->microbatches = from->microbatches;
    memset(squeezer->count, 0, (size_t)from->devices * PC_LETTERS * sizeof *squeezer->count);
    memset(squeezer->next, 0, (size_t)from->devices * sizeof *squeezer->next);
    for (int i = 0; i < from->width; i++)
        if (!put_column(from, to, squeezer, i)) return false;
    for (int d = 0; d < from->devices; d++)
        if (squeezer->next[d] > to->width) to->width = squeezer->next[d];
    return true;
}

/* ---- as a schedule ---- */

static pc_pass pass_of(const pc_generator *self, int letter, int microbatch) {
    static const pc_pass passes[PC_LETTERS] = {{.chunk = 0, .kind = PC_PASS_F}, {.chunk = 1, .kind = PC_PASS_F},
                                               {.chunk = 1, .kind = PC_PASS_B}, {.chunk = 0, .kind = PC_PASS_B},
                                               {.chunk = 1, .kind = PC_PASS_W}, {.chunk = 0, .kind = PC_PASS_W}};
    pc_pass pass = passes[letter];
    pass.microbatch = microbatch;
    if (!self->splits && pass.kind == PC_PASS_B) pass.kind = PC_PASS_BW;
    return pass;
}

static void write_row(const pc_grid *grid, const pc_generator *self, int device, pc_pass *next) {
    int count[PC_LETTERS] = {0};
    const int8_t *row = pc_grid_row(grid, device);
    for (int i = 0; i < grid->width; i++) {
        int letter = row[i];
        if (letter < (self->splits ? PC_LETTERS : PC_TRAVELLERS)) *next++ = pass_of(self, letter, count[letter]++);
    }
}

pc_code pc_grid_to_schedule(const pc_grid *grid, const pc_generator *self, pc_schedule *schedule, pc_error *error) {
    int p = grid->devices, letters = self->splits ? PC_LETTERS : PC_TRAVELLERS;
    int64_t *lengths = pc_alloc((size_t)p, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < p; d++) lengths[d] = (int64_t)letters * grid->microbatches;
    pc_code code = pc_schedule_create(self->name, p, grid->microbatches, 2, self->placement, lengths, schedule, error);
    pc_free(lengths);
    for (int d = 0; d < p && !code; d++) write_row(grid, self, d, schedule->passes + schedule->offsets[d]);
    return code;
}
