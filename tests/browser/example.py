"""The page that the tests look at: a small scenario run by the command, made into a page by the real machinery."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "results/report"))

import document as d  # noqa: E402
from make import make  # noqa: E402
from results import Results  # noqa: E402

SCENARIO = """scenario: small
setting: {devices: 4, times: {F: 10 ms, B: 12 ms, W: 8 ms}, activation: {size: 1 GiB}, trace: true}
sweep: {microbatches: [4, 8], schedule: [1f1b, zb-h1, v-half]}
figures:
  - {name: bubbles, title: Bubbles, x: microbatches, y: [bubble_rate_span], series: schedule, style: lines}
"""
LONG = "`" + "a_long_word_without_a_place_to_break_" * 4 + "`"


def build(results):
    """Everything that a page can have, and what is hard for it: long words, wide tables, many pictures."""
    blocks = [d.Paragraph(f"Three schedules with [a link](https://example.org/{'x' * 80}) and {LONG}.")]
    for row in results.rows("small", microbatches=8):
        figure = d.Figure(results.draw(f"small/{row.name}", f"{row.schedule}.svg"), f"**Figure.** `{row.schedule}`",
                          f"Timeline of {row.schedule}", "timeline")
        blocks += [d.Heading(2, f"Schedule `{row.schedule}`"), figure, d.Heading(3, "Numbers"),
                   d.Bullets(["one", "**two**"])]
    rows = [[row.name, str(row.microbatches), f"{row.iteration_s:.4f} s", f"{100 * row.bubble_rate_span:.1f}%", LONG]
            for row in results.rows("small")]
    header = ["run", "microbatches", "iteration", "bubble rate (longest span)", "a wide column"]
    blocks += [d.Heading(2, "All of them"), d.Table(header, rows, "Runs of the scenario."),
               d.Figure(results.draw("small/bubbles", "bubbles.svg"), "Bubbles.", "A chart of bubble rates"),
               d.Details("The command", [d.Code("pipecast run small.yaml -o small.h5 " + "--set a=b " * 20)])]
    return d.Document("A small page", blocks)


def make_page(pipecast, folder):
    """Makes FOLDER/page.html, of three timelines and a chart; returns the results it is made of."""
    folder = pathlib.Path(folder)
    scenario, results = folder / "small.yaml", folder / "small.h5"
    scenario.write_text(SCENARIO)
    subprocess.run([pipecast, "run", scenario, "-o", results, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    make(build, pipecast, results, folder / "page", folder / "page.html")
    return Results(pipecast, results)
