"""Tables 8 and 9 of 'Controllable Memory': the cells between the passes of a block, the paper's rule beside our blocks.

A block here is a dict: (kind, chunk) to the first cell of that pass on every device, of one microbatch; each pass takes
one cell. Its microbatch runs down the devices through chunk 0 and up again through chunk 1, F first; B goes the same way
back: down through chunk 1 and up through chunk 0.
"""
import dataclasses
import math

import cells
from controllable import NAMES
from document import Heading, Paragraph, Table
from failure import Failure

TABLE8 = "controllable_memory_table8"
INTERVAL = 6  # cells from one microbatch to the next: F, B and W of two chunks


@dataclasses.dataclass(frozen=True)
class Rule:
    """Cells from a pass to the next of its microbatch. Between devices: F down and up, B down and up. On one device:
    F turns on the last, F to B on the first, B turns on the last.

    Of the paper's 0 and 1 in the names of B's offsets 0 is taken for the way that comes first, down through the second
    chunk, as with F: the other way about V-Half's B would meet its F in some cell, and its chunks' memory would be no
    balance."""
    f_down: int
    f_up: int
    b_down: int
    b_up: int
    f_turns: int
    f_to_b: int
    b_turns: int


# The paper's, by the remainder of d: V-Min's, table 8, by d mod 3, V-Half's, table 9, by d mod 2. V-ZB's are not at hand.
V_MIN, V_HALF = Rule(1, 1, 1, 1, 1, 1, 1), Rule(2, 1, 2, 1, 2, 1, 1)
RULES = {"v-min": (dataclasses.replace(V_MIN, f_to_b=3), V_MIN, V_MIN),
         "v-half": (dataclasses.replace(V_HALF, f_to_b=4), V_HALF)}


def rule_of(schedule, devices):
    """None where the paper's is not at hand."""
    rules = RULES.get(schedule)
    return rules[devices % len(rules)] if rules else None


# --- blocks ---

def block_of_rule(rule, devices):
    """F and B as the rule has them; each W in the first cell behind its B that is free in every interval."""
    steps = range(devices)
    f_down = [rule.f_down * d for d in steps]
    turn = f_down[-1] + rule.f_turns
    f_up = [turn + rule.f_up * (devices - 1 - d) for d in steps]
    b_down = [f_up[0] + rule.f_to_b + rule.b_down * d for d in steps]
    turn = b_down[-1] + rule.b_turns
    b_up = [turn + rule.b_up * (devices - 1 - d) for d in steps]
    block = {("F", 0): f_down, ("F", 1): f_up, ("B", 1): b_down, ("B", 0): b_up, ("W", 1): [], ("W", 0): []}
    for d in steps:
        taken = {block[name][d] % INTERVAL for name in (("F", 0), ("F", 1), ("B", 1), ("B", 0))}
        for chunk in (1, 0):
            cell = next(cell for cell in range(block["B", chunk][d] + 1, block["B", chunk][d] + 2 * INTERVAL)
                        if cell % INTERVAL not in taken)
            taken.add(cell % INTERVAL)
            block["W", chunk].append(cell)
    return block


def block_of_run(results, row):
    """What the schedule repeats in its middle, from its trace."""
    passes = [event for event in results.trace(TABLE8, row.name) if event.event == "block"]
    if {(event.microbatch, event.interval_cells, event.end_cells - event.start_cells) for event in passes} != {(0, INTERVAL, 1)}:
        raise Failure(f"run {row.name}: a block of other passes; expected those of one microbatch, a cell each, every "
                      f"{INTERVAL} cells")
    return {(kind, chunk): [event.start_cells for event in sorted(passes, key=lambda event: event.device)
                            if (event.kind, event.chunk) == (kind, chunk)]
            for kind in "FBW" for chunk in (0, 1)}


def offsets(block):
    """As Rule has them; those between devices as lists, for they need not be alike on all."""
    f_down, f_up, b_down, b_up = (block[name] for name in (("F", 0), ("F", 1), ("B", 1), ("B", 0)))
    return (_steps(f_down), [-step for step in _steps(f_up)], _steps(b_down), [-step for step in _steps(b_up)],
            [f_up[-1] - f_down[-1]], [b_down[0] - f_up[0]], [b_up[-1] - b_down[-1]])


def _steps(starts):
    return [after - before for before, after in zip(starts, starts[1:])]


def shared_cells(block):
    """How many passes of a device stand in a cell of another when the block is repeated: 0 for one that can run."""
    devices = len(block["F", 0])
    return sum(len(block) - len({starts[d] % INTERVAL for starts in block.values()}) for d in range(devices))


def lifespans(block):
    """[device][chunk]: cells from the start of F to the end of W."""
    return [[block["W", chunk][d] + 1 - block["F", chunk][d] for chunk in (0, 1)] for d in range(len(block["F", 0]))]


def bound(block):
    """The paper's bound on what a device holds, the most over devices, in microbatches of a stage of two chunks."""
    return max(sum(math.ceil(life / INTERVAL) for life in lives) for lives in lifespans(block)) / 2


def peak(block):
    """What a device holds at most when the block is repeated without end, likewise."""
    return max(_held(block, d, cell) for d in range(len(block["F", 0])) for cell in range(INTERVAL)) / 2


def _held(block, device, cell):
    """Activations of chunks that live in this cell: of lives that begin every INTERVAL cells, those not over."""
    count = 0
    for chunk in (0, 1):
        age = (cell - block["F", chunk][device]) % INTERVAL  # of the youngest
        life = block["W", chunk][device] + 1 - block["F", chunk][device]
        count += max(0, math.ceil((life - age) / INTERVAL))
    return count


# --- on the page ---

def _range(values):
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least} to {most}"


def _offsets_table(found):
    body = []
    for row, rule, ours in found:
        if rule:
            body.append([NAMES[row.schedule], str(row.pp), "paper", *[str(cell) for cell in dataclasses.astuple(rule)]])
        body.append([NAMES[row.schedule], str(row.pp), "ours", *[_range(of) for of in offsets(ours)]])
    return Table(["schedule", "d", "whose", "F down", "F up", "B down", "B up", "F turns", "F to B", "B turns"], body,
                 align="lrlrrrrrrr")


def _consequences_table(found):
    body = []
    for row, rule, ours in found:
        theirs = block_of_rule(rule, row.pp) if rule else None
        pairs = zip(_consequences(ours), _consequences(theirs))
        body.append([NAMES[row.schedule], str(row.pp), *[text for pair in pairs for text in pair], f"{row.activation_gib_max:g}"])
    return Table(["schedule", "d", "cells shared", "paper", "longest lifespan", "paper", "bound", "paper", "peak", "paper",
                  "peak of the run"], body)


def _consequences(block):
    if block is None:
        return [cells.MISSING] * 4
    return [str(shared_cells(block)), str(max(map(max, lifespans(block)))), f"{bound(block):g}", f"{peak(block):g}"]


def _remainders_table():
    """V-Min's rule, on as many devices as the runs have: why it is another where 3 divides d."""
    waits = (1, 2, 3)
    body = []
    for devices in (9, 10, 11):
        shared = [shared_cells(block_of_rule(dataclasses.replace(V_MIN, f_to_b=wait), devices)) for wait in waits]
        body.append([str(devices % 3), str(devices), *[f"{count} shared" if count else "free" for count in shared],
                     str(rule_of("v-min", devices).f_to_b)])
    return Table(["d mod 3", "d", *[f"F to B of {wait}" for wait in waits], "the paper's rule"], body, align="rrlllr")


ORDER = ("v-min", "v-half", "v-zb")


def table8(results):
    rows = sorted(results.rows(TABLE8), key=lambda row: (ORDER.index(row.schedule), row.pp))
    found = [(row, rule_of(row.schedule, row.pp), block_of_run(results, row)) for row in rows]
    return [
        Heading(3, "Tables 8 and 9: offsets within the blocks"),
        Paragraph("In cells, each as long as one F, B or W of a chunk; a block repeats every 6. A microbatch's F run down the "
                  "devices through the first chunk, turn on the last and run up through the second; its B begin on the first "
                  "device, run down through the second chunk, turn on the last and run up through the first. 'Down' and 'up' are "
                  "from a device to the next, all else on one device. Of the paper's two offsets of B the first is taken for the way "
                  "down: the other way about V-Half's passes would collide. V-ZB's own cells are not at hand."),
        _offsets_table(found),
        Paragraph("Ours is what the schedule repeats in its middle, at equal times. The search starts from blocks with the "
                  "paper's offsets between devices, keeps to the name's memory and takes the iteration that ends first: single "
                  "offsets may become others on the way."),
        Paragraph("What follows from the offsets. A block that shares no cell with its repetitions can be repeated. A lifespan "
                  "is from the start of F to the end of W. The bound is the paper's: lifespan / 6, rounded up, summed over the "
                  "chunks of a device. The peak is what the block holds when it is repeated, and what the run held in all. "
                  "Both are in microbatches of a stage, on the fullest device. Each W of the paper's blocks is put into the "
                  "first free cell behind its B."),
        _consequences_table(found),
        Paragraph("V-Min's rule by d mod 3. If all offsets are 1, B starts on the first device 2d cells after F; if 3 divides d, "
                  "a later microbatch's F is in that cell. One cell more, and B on its way down meets F on its way up."),
        _remainders_table()]
