"""What is on the page: both papers, claim by claim, table by table, figure by figure."""
import as_published
import balance
import cells
import claims
import controllable
import engine
import explanations
import growth
import in_numbers
import limits
import offsets
import own_models
import tables
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
        "**MFU** divides by 312 TFLOP/s, the dense 16-bit rate of an A100; papers of this group have 312 or 320.",
        "**Bubble rate (span)** is 1 - work / span, the span being the longest of a stage from its first start to its last "
        "end, as the papers have it; **(makespan)** counts from the first start to the last end of all stages.",
        "**Activation memory** is the peak on the fullest stage; where a figure compares schedules alone, 1F1B's is 1. "
        "The papers' GB are taken as GiB.",
        "Where a measured time goes in, it says so; everything else comes from the model of the GPUs and the network "
        "([docs/cluster-model.md](../../docs/cluster-model.md), [docs/accuracy.md](../../docs/accuracy.md)).",
        "A difference is ours less theirs: points of MFU or of bubble rate, GiB, or percent.",
        "A claim holds in part where some of what it says does; each verdict is worked out from the runs."])]


def differs(results):
    """What does not agree, and why; its numbers are the largest differences of the tables above."""
    return [Heading(2, "What does not agree, and why"), Bullets([
        f"**Activations on 38.5B (figure 7).** V-Min holds {_gap(results, 'v-min')} GiB less than the plot shows, V-Half "
        f"{_gap(results, 'v-half')} less: what passes hold while they run is not counted as activations. 1F1B-I holds "
        f"{_gap(results, '1f1b-interleaved')} more: its second stage has (p-2) x 2 + p + 1 chunks, and the plots of the "
        "three models follow no one rule.",
        "**1F1B-R's activations (figure 7)** are plotted at 4 GB and written as 1 GB in the paper's own table 4; ours follow "
        "the inputs of the layers, 2 s b h bytes each.",
        explanations.v_min(results) + " On 21B with few (figure 7) it is "
        f"{_points_below(results, '21B', 'v-min')} points worse.",
        f"**The one cut that the paper gives (table 3)**, 1F1B at a sequence of 1,024 with dp 2, tp 4, pp 5 and microbatches of "
        f"2, is {_gib_too_much(results)} GiB too much for a GPU here; our best takes microbatches of 1.",
        "**What the best gains in the grid search (table 3)** is less than the paper's 16%: our 1F1B is close to theirs, our "
        "V-ZB below.",
        "**1F1B with 512 microbatches (table 4)** is faster here: passes that vary would account for it ('Explanations', below).",
        "**V-ZB at a sequence of 1,024 (table 3)** is below the paper's: all schedules share one factor for what is between "
        "passes (`pass_overhead`, fitted to figure 7), and no schedule has one of its own.",
        f"**Single passes with tensor parallelism (figure 12)** are up to {_largest_pass(results)} points faster than the "
        "plot, most where microbatches are small: collectives cost what nccl-tests measure, without a framework around them.",
        "**Interleaved 1F1B (Zero Bubble, table 5)**: the published rates let transfers that wrap around from the last device "
        "to the first arrive without being waited for; ours wait.",
        f"**Throughput from pass times (Zero Bubble, table 4)** is above what was measured: "
        f"{zero_bubble.ranges_of_table4(results)}. An iteration has parts outside its passes that no table gives; 1F1B-I, which "
        "sends the most, has the most of them.",
        f"**Throughput from the cluster model** is off by {_cluster(results, 'samples_per_s_per_gpu')} (tables 4, 7 and 8) and "
        f"{_cluster(results, 'samples_per_s_per_gpu', zero_bubble.V_THROUGHPUT)} (tables 6 and 7 of the arXiv version), "
        "of table 4 interleaved 1F1B of 14.6B the most: one overhead of passes stands for all schedules and models. "
        f"Memory is off by {_cluster(results, 'memory_gib')} and "
        f"{_cluster(results, 'memory_gib', zero_bubble.V_THROUGHPUT)}; of 1.5B the most, and why is open.",
        "**Few microbatches (Zero Bubble, table 9)**: ours are mostly faster, and ZB-2P mostly by more than 1F1B, for the "
        "same reason as table 4.",
        "**ZB-V (arXiv version, table 8)** is at most the published rate, for the search's reason below.",
        "**ZB-2P (Zero Bubble, table 5)** is at most the published rate, mostly less: ours searches on."])]


def _gap(results, schedule):
    row, = [row for row in results.rows(controllable.FIGURE7, schedule=schedule) if row.name.startswith("38.5B")]
    return cells.gib(abs(row.activation_gib_max - row.published_activation_gib))


def _points_below(results, model, schedule):
    row, = [row for row in results.rows(controllable.FIGURE7, schedule=schedule) if row.name.startswith(model)]
    return cells.number(100 * (row.published_mfu - row.mfu), 1)


def _gib_too_much(results):
    """Of the cut of table 3 that the paper gives, which runs out of memory."""
    row, = results.rows(controllable.TABLE3, status="out_of_memory", schedule="1f1b", seq_len=1024, recompute="none", tp=4, pp=5,
                        microbatch_size=2)
    return cells.gib(row.memory_gib_max - row.memory_limit_gib)


def _cluster(results, column, scenario=zero_bubble.THROUGHPUT):
    ours = column + ("_max" if column == "memory_gib" else "")
    return zero_bubble.range_of_cluster(results, scenario, ours, f"published_{column}")


def _largest_pass(results):
    return cells.number(max(100 * (row.mfu - row.published_mfu) for row in results.rows(controllable.FIGURE12)
                            if row.published_mfu is not None), 1)


ABSENT = [
    Heading(2, "What is not here, and why"),
    Bullets([
        "Published cells of 'Controllable Memory' that were not at hand as text: those of tables 6 and 7; of table 3 the best "
        "cuts, but one; of table 4 all but MFU of 38.5B with 512 microbatches, ZB-1P's not among them, and one size of 1F1B-R's "
        "activations; of table 5 all but F of 9.6B and the mean MFU of its passes; of the offsets V-ZB's. Ours are there for all "
        "of these.",
        "The blocks of figure 14 of 'Controllable Memory', one for each remainder of d, stand in tables 8 and 9 as numbers; "
        "drawn are those on four devices alone. Figure 13 draws a proof, and figure 15 two blocks of 1F1B-I, of which the gallery "
        "has the first.",
        "Of 'Controllable Memory' no points of figures 6, 9 and 10 are known, and of figure 8 none of MFU: their shapes "
        "alone are compared, above. Figure 6 in numbers has the paper's points only where figure 7 or table 4 has the same run. Figures 9 and 10 "
        "for the paper's own models are on pass times of the cluster model, since no measured ones are at hand; of figure 9 with "
        "4p and 16p microbatches alone, of figure 10 with 4p. Of the grid search at a sequence of 16,384 neither the paper's values nor its batch is at "
        "hand. The claims on what V-Min idles and on what V-shaped schedules send have no number of the paper beside them.",
        "Of 'Zero Bubble': figures 1, 4, 6 and 10 are drawings; figure 5 is table 4, figure 8 the gallery's ZB-V, and figure 11 "
        "a run of table 5 (`pipecast figure reproduced/paper.h5 1.5B-m32.zb-2p -o figure11.svg`). Tables 1, 3 and 6 go into the "
        "runs. Of tables 4, 7 and 8 from the cluster model m = 3p alone, and of tables 6 and 7 of the arXiv version m = 4p; of "
        "28.3B not the searched schedules that take longest. Of figure 7 limits up to twice 1F1B's memory, and of 28.3B 96 "
        "microbatches alone; of figure 9 of the arXiv version two of nine panels.",
        "Loss curves, and everything else that needs a model to be trained."])]


# What each part of the page is made of: the scenarios that it reads, and the function that writes it.
CONTROLLABLE_MEMORY = [
    ((controllable.TIMELINES,), controllable.timelines), ((controllable.TABLE1,), controllable.table1),
    ((controllable.TABLE1,), tables.bubbles), ((controllable.TABLE2,), tables.table2),
    ((controllable.FIGURE5,), controllable.figure5),
    ((controllable.FIGURE6,), controllable.figure6), ((controllable.FIGURE6,), tables.table4),
    ((controllable.FIGURE7,), controllable.figure7),
    ((controllable.FIGURE6, controllable.FIGURE7), in_numbers.figure6), ((controllable.FIGURE7,), in_numbers.communication),
    *as_published.PARTS, ((growth.GROWTH,), growth.table), ((balance.BALANCE,), balance.table),
    ((controllable.FIGURE8,), limits.figure8), ((controllable.FIGURE9,), limits.figure9),
    ((own_models.FIGURE9_MODELS,), own_models.figure9), ((controllable.FIGURE10,), limits.figure10),
    ((own_models.FIGURE10_MODELS,), own_models.figure10), ((controllable.TABLE3, controllable.TABLE3_RECOMPUTED), limits.table3),
    ((controllable.TABLE3, controllable.TABLE3_RECOMPUTED), limits.raw_grid), ((controllable.TABLE5,), tables.table5),
    ((controllable.FIGURE12,), limits.figure12), ((offsets.TABLE8,), offsets.table8)]
PARTS = [*CONTROLLABLE_MEMORY, *zero_bubble.PARTS, *explanations.PARTS]


def build(results):
    blocks = [*START, *claims.section(results), *engine.section(results),
              Heading(2, "Pipeline Parallelism with Controllable Memory"), *_parts(CONTROLLABLE_MEMORY, results),
              Heading(2, "Zero Bubble Pipeline Parallelism"), *_parts(zero_bubble.PARTS, results), *differs(results),
              *_parts(explanations.PARTS, results), *ABSENT]
    return Document(TITLE, blocks)


def _parts(parts, results):
    return [block for _, write in parts for block in write(results)]
