/* Two passes that run together, by operations: kernels of both in their turn on the stage's processor, collectives as
 * flows beside them, in the order in which they follow each other where nothing else is under way (pc_pair_plan). */
#include "models/training/lowering.h"

#include "engine/alloc.h"

enum { PAIR_PASSES = 3 }; /* F, the backward pass, and its delayed products */

/* A pass of the pair, on its way. */
typedef struct pass_at_work {
    pc_after before; /* what its next piece waits for; */
    int32_t beside;  /* a collective under way for which all wait but the step behind it: */
    int beside_step;
} pass_at_work;

typedef struct pair_at_work {
    lowering *lowered;
    const pc_pair_plan *plan;
    const pc_pass *passes; /* [2] */
    int place;
    pass_at_work pass[PAIR_PASSES];
    pc_after *over; /* [pieces]: with which each is over */
    pc_after wire;  /* the turn among communication, */
    int32_t held;   /* and a collective that has one among the kernels */
} pair_at_work;

static int sort_of(const lowering *lowered, int place, int chunk) {
    return lowered->outline->chunks_of[lowering_cell(lowered, place % lowered->outline->devices, chunk)].sort;
}

static pc_code find_plan(lowering *lowered, int place, const pc_pass *passes, const pc_pair_plan **plan) {
    int f = sort_of(lowered, place, passes[0].chunk), back = sort_of(lowered, place, passes[1].chunk);
    pc_pair_plan *known = &lowered->pairs[f * lowered->outline->sort_count + back];
    *plan = known;
    return known->pieces ? PC_OK : pc_outline_pair_plan(lowered->outline, f, back, known, lowered->error);
}

/* Index of a piece's recipe, and of what its steps send. */
static int recipe_of(const lowering *lowered, int place, const pc_pass *passes, const pc_pair_piece *item) {
    return sort_of(lowered, place, passes[item->pass > 0].chunk) * PC_PASS_KINDS + (int)item->kind;
}

static int32_t last_task(const pair_at_work *x) {
    return x->lowered->spine[x->lowered->spine_count - 1];
}

static int32_t waited_beside(const pair_at_work *x, const pc_pair_piece *item) {
    const pass_at_work *pass = &x->pass[item->pass];
    return item->step == pass->beside_step + 1 ? PC_NO_TASK : pass->beside;
}

/* Adds a task on the stage's processor, behind all that kernels of this pass wait for. */
static pc_code add_in_turn(pair_at_work *x, const pc_pair_piece *item, double seconds) {
    pass_at_work *pass = &x->pass[item->pass];
    pc_time duration_ps;
    pc_code code = pc_outline_time("kernels", seconds, 1, &duration_ps, x->lowered->error);
    if (!code) code = lowering_add_to_spine(x->lowered, x->place, duration_ps, x->held, PIECE);
    if (code) return code;
    x->held = PC_NO_TASK;
    code = lowering_add_edge(x->lowered, pass->before.task, last_task(x), pass->before.delay_ps);
    if (!code) code = lowering_add_edge(x->lowered, waited_beside(x, item), last_task(x), 0);
    const pc_after *also = item->also < 0 ? NULL : &x->over[item->also];
    if (!code && also) code = lowering_add_edge(x->lowered, also->task, last_task(x), also->delay_ps);
    pass->before = (pc_after){last_task(x), 0};
    return code;
}

/* Adds its flows, behind these and what its pass waits for. */
static pc_code send(pair_at_work *x, const pc_pair_piece *item, const pc_sendings *sendings, pc_after first,
                    pc_after second, int32_t *done) {
    const pc_pass *pass = &x->passes[item->pass > 0];
    pc_after before = x->pass[item->pass].before;
    const pc_after afters[] = {first, second, before, {waited_beside(x, item), 0}};
    x->lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_TENSOR,
                                           .chunk = pass->chunk,
                                           .microbatch = pass->microbatch,
                                           .ready_task = before.task == PC_NO_TASK ? x->lowered->spine[0] : before.task,
                                           .ready_delay_ps = before.task == PC_NO_TASK ? 0 : before.delay_ps};
    return pc_lanes_add_collective(&x->lowered->lanes, x->place, x->place, sendings, afters, 4, done,
                                   x->lowered->error);
}

/* One that its pass waits for, in its turn among communication. */
static pc_code add_on_wire(pair_at_work *x, const pc_pair_piece *item, const pc_sendings *sendings) {
    int32_t done;
    pc_code code = send(x, item, sendings, (pc_after){x->lowered->spine[0], 0}, x->wire, &done);
    if (code) return code;
    x->pass[item->pass].before = x->wire = (pc_after){done, 0};
    return PC_OK;
}

enum { NO_STEP = -2 }; /* whose next one is none */

/* The same in its turn among the kernels: the processor does nothing else until it is over. */
static pc_code add_among_kernels(pair_at_work *x, const pc_pair_piece *item, const pc_sendings *sendings) {
    pc_after last = {last_task(x), 0}, held = {x->held, 0};
    int32_t done;
    pc_code code = send(x, item, sendings, last, held, &done);
    if (!code) code = add_in_turn(x, item, item->end_s - item->begin_s);
    x->held = x->pass[item->pass].beside = done;
    x->pass[item->pass].beside_step = NO_STEP;
    return code;
}

/* One that runs beside the kernels behind it. What it takes longer than these comes first, in its turn; the rest is
 * under way while they run. */
static pc_code add_hidden(pair_at_work *x, const pc_pair_piece *item, const pc_sendings *sendings) {
    double longer_s = item->end_s - item->begin_s;
    pass_at_work *pass = &x->pass[item->pass];
    pc_after begin = {x->lowered->spine[0], 0}, last = {last_task(x), 0}, held = {x->held, 0}, turn;
    int32_t done;
    pc_code code = lowering_add_meeting(x->lowered, &turn.task);
    if (!code) code = pc_outline_time("collective", longer_s, 1, &turn.delay_ps, x->lowered->error);
    if (code) return code;
    bool takes_wire = item->is_comm && longer_s > 0;
    const pc_after waits[] = {item->is_comm ? begin : last,
                              item->is_comm ? (pc_after){PC_NO_TASK, 0} : held,
                              takes_wire ? x->wire : (pc_after){PC_NO_TASK, 0},
                              pass->before,
                              {waited_beside(x, item), 0}};
    for (size_t i = 0; !code && i < sizeof waits / sizeof *waits; i++)
        code = lowering_add_edge(x->lowered, waits[i].task, turn.task, waits[i].delay_ps);
    if (!code) code = send(x, item, sendings, (pc_after){turn.task, 0}, begin, &done);
    if (code) return code;
    pass->before = item->is_comm ? turn : (pc_after){turn.task, 0};
    if (takes_wire) x->wire = turn;
    if (!item->is_comm && longer_s > 0) code = add_in_turn(x, item, longer_s);
    pass->beside = done;
    pass->beside_step = item->step;
    return code;
}

static pc_code add_piece(pair_at_work *x, int number) {
    const pc_pair_piece *item = &x->plan->pieces[number];
    int at = recipe_of(x->lowered, x->place, x->passes, item);
    const pc_step_of_pass *step = &x->lowered->recipes[at].steps[item->step];
    const pc_sendings *sendings = &x->lowered->sendings[at][item->step];
    double seconds = item->end_s - item->begin_s;
    pc_code code = PC_OK;
    if (!step->is_collective)
        code = seconds > 0 ? add_in_turn(x, item, seconds) : PC_OK;
    else
        code = step->runs_beside ? add_hidden(x, item, sendings)
               : item->is_comm   ? add_on_wire(x, item, sendings)
                                 : add_among_kernels(x, item, sendings);
    x->over[number] = x->pass[item->pass].before;
    return code;
}

/* Behind all of it, and no earlier than it can be over: what data parallelism adds (lower_passes.c, end_steps). */
static pc_code end_pair(pair_at_work *x, pc_time more_ps) {
    pc_time least_ps;
    pc_code code = lowering_add_to_spine(x->lowered, x->place, more_ps, x->held, LAST_PIECE);
    for (int p = 0; !code && p < PAIR_PASSES; p++) {
        code = lowering_add_edge(x->lowered, x->pass[p].before.task, last_task(x), x->pass[p].before.delay_ps);
        if (!code) code = lowering_add_edge(x->lowered, x->pass[p].beside, last_task(x), 0);
    }
    if (!code) code = pc_outline_time("pair", x->plan->least_s, 1, &least_ps, x->lowered->error);
    return code ? code : lowering_add_edge(x->lowered, x->lowered->spine[0], last_task(x), least_ps);
}

pc_code lowering_add_pair(lowering *lowered, int place, int64_t position, pc_time duration_ps) {
    const pc_pass *passes = &lowered->schedule->passes[position];
    int64_t at = pc_costs_pair_index(&lowered->costs, place % lowered->outline->devices, passes[0], passes[1]);
    pc_time more_ps = duration_ps - lowered->costs.pair_own_ps[at];
    pair_at_work x = {
        .lowered = lowered, .passes = passes, .place = place, .wire = {PC_NO_TASK, 0}, .held = PC_NO_TASK};
    for (int p = 0; p < PAIR_PASSES; p++) x.pass[p] = (pass_at_work){{PC_NO_TASK, 0}, PC_NO_TASK, NO_STEP};
    pc_code code = find_plan(lowered, place, passes, &x.plan);
    if (code) return code;
    x.over = pc_alloc((size_t)x.plan->count + 1, sizeof *x.over);
    if (!x.over) return pc_error_no_memory(lowered->error);
    code = lowering_add_to_spine(lowered, place, 0, PC_NO_TASK, PIECE);
    for (int i = 0; !code && i < x.plan->count; i++) code = add_piece(&x, i);
    if (!code) code = end_pair(&x, more_ps > 0 ? more_ps : 0);
    pc_free(x.over);
    return code;
}

pc_code lowering_add_pair_beside(lowering *lowered, int place, int64_t position) {
    const pc_pass *passes = &lowered->schedule->passes[position];
    const pc_pair_plan *plan;
    pc_code code = find_plan(lowered, place, passes, &plan);
    for (int i = 0; !code && i < plan->count; i++) {
        const pc_pair_piece *item = &plan->pieces[i];
        int at = recipe_of(lowered, place, passes, item);
        if (lowered->recipes[at].steps[item->step].is_collective)
            code = lowering_add_tensor_flow(lowered, place, passes[item->pass > 0], &lowered->sendings[at][item->step],
                                            item->begin_s);
    }
    return code;
}
