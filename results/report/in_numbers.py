"""Figure 6 in numbers, and what schedules send: tables of runs that have only pictures elsewhere."""
import cells
from controllable import FIGURE6, FIGURE7, label
from document import Heading, Paragraph, Table
from limits import with_published

SCHEDULES = ("V-ZB", "ZB-1P", "V-Half", "1F1B", "V-Min", "1F1B-R")


def setting_of(row):
    """What two runs of one schedule share where they are of the same setting."""
    return row.model, row.microbatch_size, row.microbatches


def figure6(results):
    runs, known = (by_schedule(results, scenario) for scenario in (FIGURE6, FIGURE7))

    def table(title, cell):
        return Table(["model", "microbatch size", "microbatches", *SCHEDULES],
                     [[model, str(size), str(count), *[cell((model, size, count), of[name]) for name in SCHEDULES]]
                      for (model, size, count), of in runs.items()], title, align="lrr" + "r" * len(SCHEDULES))

    def of_both(setting, row, column, write):
        """Ours, and in brackets the paper's: of the run itself, or of the same one in figure 7."""
        same = known.get(setting, {}).get(label(row))
        published = row[f"published_{column[0]}"]
        if published is None and same is not None:
            published = same[f"published_{column[0]}"]
        return write(row[column[1]], published)

    return [
        Heading(3, "Figure 6 in numbers"),
        Paragraph("In brackets the paper's, where a number is known: of 38.5B with 512 microbatches table 4's MFU, with 128 the "
                  "points that were read off figure 7, which has the same runs. Of the other settings none is at hand."),
        table("MFU", lambda setting, row: of_both(setting, row, ("mfu", "mfu"), with_published)),
        table("Activation memory on the fullest stage, GiB",
              lambda setting, row: of_both(setting, row, ("activation_gib", "activation_gib_max"), _gib_with_published))]


def _gib_with_published(ours, published):
    return cells.gib(ours) + (f" ({cells.gib(published)})" if published is not None else "")


def by_schedule(results, scenario):
    """{setting: {schedule: run}} of figure 6 or 7, of those that fit."""
    of = {}
    for row in results.rows(scenario):
        if row.status == "ok":
            of.setdefault(setting_of(row), {})[label(row)] = row
    return of


def communication(results):
    body = []
    for (model, *_), of in by_schedule(results, FIGURE7).items():
        for name, row in of.items():
            body.append([model, name, cells.number(row.sent_pp_gib, 2),
                         cells.number(row.sent_pp_gib / of["1F1B"].sent_pp_gib, 2), cells.number(1000 * row.exposed_pp_s, 1),
                         cells.percent(row.exposed_pp_s / row.iteration_s, 2)])
    return [
        Heading(3, "What schedules send, and what that costs"),
        Paragraph("Of figure 7's runs: what a GPU sends to other stages in an iteration, the mean over GPUs; and what the "
                  "transfers add to the iteration, which is its time less that of the same passes in the same order without "
                  "transfers. With two chunks on a device in a V a microbatch crosses between devices 2 x 2 (p - 1) times in "
                  "place of 2 (p - 1), since it turns within the last device: twice as much for every p. Where the chunks are "
                  "interleaved it goes from the last device back to the first, (2p - 1) / (p - 1) times 1F1B's."),
        Table(["model", "schedule", "sent [GiB]", "over 1F1B's", "added [ms]", "of the iteration"], body)]
