"""What is on the page: both papers, claim by claim, table by table, figure by figure."""
import cells
import claims
import controllable
import limits
import zero_bubble
from document import Bullets, Code, Document, Heading, Paragraph

TITLE = "The papers beside pipecast"

START = [
    Paragraph("Every table and figure of 'Pipeline Parallelism with Controllable Memory' ([arXiv 2405.15362]"
              "(https://arxiv.org/abs/2405.15362)) and 'Zero Bubble Pipeline Parallelism' ([arXiv 2401.10241]"
              "(https://arxiv.org/abs/2401.10241)) that a simulator can speak to, computed anew and set beside what was "
              "published. This page is made by"),
    Code("./reproduce"),
    Paragraph("from the scenarios in [scenarios/paper](../../scenarios/paper), and from nothing else: every number of a run, "
              "and every published one beside it, is read from the results file that they make; claims and formulas are the "
              "papers' own. Each scenario says what it reproduces and what it assumes where the paper is silent."),
    Bullets([
        "**MFU** divides by 312 TFLOP/s, the dense 16-bit rate of an A100; the papers of this group do the same.",
        "**Bubble rate (span)** is 1 - work / span, the span being the longest of a stage from its first start to its last "
        "end, as the papers have it; **(makespan)** counts from the first start to the last end of all stages.",
        "**Activation memory** is the peak on the fullest stage; where a figure compares schedules alone, 1F1B's is 1.",
        "Where a measured time goes in, it says so; everything else comes from the model of the GPUs and the network "
        "([docs/cluster-model.md](../../docs/cluster-model.md), [docs/accuracy.md](../../docs/accuracy.md)).",
        "A difference is ours less theirs: points of MFU or of bubble rate, GiB, or percent."])]



def differs(results):
    """What does not agree, and why; its numbers are the largest differences of the tables above."""
    return [Heading(2, "What does not agree, and why"), Bullets([
        f"**Activations on 38.5B (figure 7).** V-Min holds {_gap(results, 'v-min')} GiB less than the plot shows, V-Half "
        f"{_gap(results, 'v-half')} less: what passes hold while they run is not counted as activations. 1F1B-I holds "
        f"{_gap(results, '1f1b-interleaved')} more: its second stage has (p-2) x 2 + p + 1 chunks, and the plots of the "
        "three models follow no one rule.",
        "**1F1B-R's activations (figure 7)** are plotted at 4 GB and written as 1 GB in the paper's own table 4; ours follow "
        "the inputs of the layers, 2 s b h bytes each.",
        "**V-Min with many microbatches (table 4), and in the grid search (table 3)** is better here: ours is planned for the "
        "real times of the passes and so has less of the bubble that the paper's V-Min repeats in every interval (figure 5 "
        "shows both).",
        "**1F1B with 512 microbatches (table 4)** is faster here: what was measured falls behind what passes imply the more "
        "microbatches there are, as in 'Zero Bubble', table 4, and ours has nothing that does.",
        "**V-ZB at a sequence of 1,024 (table 3)** is below the paper's: all schedules share one factor for what is between "
        "passes (`pass_overhead`, fitted to figure 7), and no schedule has one of its own.",
        f"**Single passes with tensor parallelism (figure 12)** are up to {_largest_pass(results)} points faster than the "
        "plot, most where microbatches are small: collectives cost what nccl-tests measure, without a framework around them.",
        "**Interleaved 1F1B (Zero Bubble, table 5)**: the published rates let transfers that wrap around from the last device "
        "to the first arrive without being waited for; ours wait.",
        f"**Throughput from pass times (Zero Bubble, table 4)**: {zero_bubble.range_of_table4(results)} above what was "
        "measured, growing with the number of microbatches; an iteration has parts outside its passes that no table gives. "
        "The cluster model, which has some of them, is nearer.",
        "**ZB-2P (Zero Bubble, table 5)** is at most the published rate, mostly less: ours searches on."])]


def _gap(results, schedule):
    row, = [row for row in results.rows(controllable.FIGURE7, schedule=schedule) if row.name.startswith("38.5B")]
    return cells.gib(abs(row.activation_gib_max - row.published_activation_gib))


def _largest_pass(results):
    return cells.number(max(100 * (row.mfu - row.published_mfu) for row in results.rows(controllable.FIGURE12)
                            if row.published_mfu is not None), 1)


ABSENT = [
    Heading(2, "What is not here, and why"),
    Bullets([
        "Of 'Controllable Memory': the other rows of table 4 and the cells of tables 6 and 7 were not at hand as text; of "
        "figures 6, 8, 9 and 10 no points are known, so that their shapes alone are compared, above. Figures 13 and 15 "
        "are drawings of proofs.",
        "Of 'Zero Bubble': figures 1, 4, 6 and 10 are drawings; figure 5 is table 4.",
        "Loss curves, and everything else that needs a model to be trained."])]


# What each part of the page is made of: the scenarios that it reads, and the function that writes it.
CONTROLLABLE_MEMORY = [
    ((controllable.TIMELINES,), controllable.timelines), ((controllable.TABLE1,), controllable.table1),
    ((controllable.TABLE2,), controllable.table2), ((controllable.FIGURE5,), controllable.figure5),
    ((controllable.FIGURE6,), controllable.figure6), ((controllable.FIGURE7,), controllable.figure7),
    ((controllable.FIGURE8,), limits.figure8), ((controllable.FIGURE9,), limits.figure9),
    ((controllable.FIGURE10,), limits.figure10), ((controllable.TABLE3,), limits.table3),
    ((controllable.TABLE3,), limits.raw_grid), ((controllable.TABLE5,), limits.table5),
    ((controllable.FIGURE12,), limits.figure12)]
PARTS = [*CONTROLLABLE_MEMORY, *zero_bubble.PARTS]


def build(results):
    blocks = [*START, *claims.section(results),
              Heading(2, "Pipeline Parallelism with Controllable Memory"), *_parts(CONTROLLABLE_MEMORY, results),
              Heading(2, "Zero Bubble Pipeline Parallelism"), *_parts(zero_bubble.PARTS, results), *differs(results), *ABSENT]
    return Document(TITLE, blocks)


def _parts(parts, results):
    return [block for _, write in parts for block in write(results)]
