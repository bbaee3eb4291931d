"""How runs were worked out: event by event on the engine, or by a shortcut that gives the same."""
import collections

from document import Details, Heading, Paragraph, Table

WAYS = {"events": "event by event", "flows": "passes by paths, messages as flows on the engine", "paths": "longest paths"}


def ways(results):
    """{scenario: {way: number of runs}} of the runs that came to their end."""
    return {scenario: collections.Counter(row.engine for row in results.rows(scenario, status="ok"))
            for scenario in results.scenarios()}


def section(results):
    of = ways(results)
    in_all = sum(of.values(), collections.Counter())
    count = sum(in_all.values())
    shortcuts = (f"{in_all['paths']} were worked out by longest paths, and {in_all['flows']} with messages as flows on the engine."
                 if count > in_all["events"] else "None was worked out by a shortcut.")
    return [
        Heading(2, "How the runs were worked out"),
        Paragraph(f"Of {count} runs {in_all['events']} were run on the engine, event by event (`engine: events` in their "
                  "scenarios): every pass on its GPU, every transfer and collective on its links, and the memory of every device "
                  f"as a resource. {shortcuts} By default (`engine: auto`) the program takes longest paths, or the engine for flows "
                  "alone, where that gives the same, to the picosecond. That it does is tested (`test_engine_replay`, "
                  "`test_events`), over random settings and every named schedule. Runs that cannot be, or that do not fit, are "
                  "not counted. Searches for a schedule count with paths; what they find is run on the engine."),
        Details("Scenario by scenario", [
            Table(["scenario", *WAYS.values()],
                  [[scenario, *[str(counted[way]) for way in WAYS]] for scenario, counted in of.items()])])]
