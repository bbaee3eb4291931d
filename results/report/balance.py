"""How memory lies over devices, of the parallel block and of the one in a V."""
import collections

import cells
from controllable import timeline
from document import Details, Heading, Paragraph, Table

BALANCE = "controllable_memory_balance"
TITLES = {"parallel": "parallel", "v-shaped": "V"}
DRAWN = 4  # devices of the runs that are drawn


def peaks(results, row):
    """The most that each device holds, 1F1B's = 1: from the run's trace."""
    of = collections.defaultdict(int)
    for event in results.trace(BALANCE, row.name):
        if event.event == "level":
            of[event.device] = max(of[event.device], event.bytes)
    return [of[device] / 2**30 for device in sorted(of)]


def table(results):
    rows = results.rows(BALANCE)
    drawn = [timeline(results, BALANCE, row, f"block-{row.schedule}.svg",
                      f"The {TITLES[row.schedule]} block, how it repeats, its schedule, and its memory")
             for row in rows if row.pp == DRAWN]
    body = []
    for row in rows:
        of = peaks(results, row)
        body.append([str(row.pp), TITLES[row.schedule], *[cells.number(one, 3) for one in (max(of), sum(of) / len(of), min(of))],
                     cells.number(max(of) / min(of), 2), cells.percent(row.bubble_rate_span)])
    return [
        Heading(3, "Memory over devices: a parallel block beside one in a V"),
        Paragraph("Two chunks a device, one cell from device to device, forward and back. In the parallel block both chunks go "
                  "through the devices in the same direction: on device d a microbatch is held for about 4p - 2d and 2p - 2d "
                  "cells, in all from 6p on the first device to 2p on the last. In a V the second chunk goes back: 4p - 2d and "
                  "2d, in all 4p everywhere. In intervals of 6 cells, half a stage's activations each, that is 1/2 to 1/6 of "
                  "1F1B's memory beside 1/3 on every device, with the same bubble. The blocks are "
                  "[scenarios/paper/blocks](../../scenarios/paper/blocks), repeated and squeezed, at equal times."),
        Details(f"Both on {DRAWN} devices", drawn),
        Table(["devices", "block", "fullest device, 1F1B's = 1", "mean", "least", "fullest / least", "bubble rate (span)"], body)]


def claim(results):
    of = collections.defaultdict(dict)
    for row in results.rows(BALANCE):
        if row.pp > DRAWN:
            of[row.pp][row.schedule] = peaks(results, row)
    words, checks = [], []
    for devices, held in of.items():
        words.append(f"on {devices} devices " + " beside ".join(
            f"{TITLES[name]} {cells.number(min(of_block), 2)} to {cells.number(max(of_block), 2)}" for name, of_block in held.items()))
        checks += [max(held["v-shaped"]) / min(held["v-shaped"]) < 1.1, max(held["v-shaped"]) < max(held["parallel"])]
    return [("A V balances memory over devices; with both chunks in the same direction the first device holds the most",
             f"of 1F1B's memory {', '.join(words)}", checks)]
