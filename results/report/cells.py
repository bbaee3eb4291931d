"""Numbers as the page writes them, and what stands beside a published number."""

MISSING = "–"


def percent(value, decimals=1):
    return MISSING if value is None else f"{100 * value:.{decimals}f}%"


def rate(value):
    return MISSING if value is None else f"{value:.4f}"


def number(value, decimals):
    return MISSING if value is None else f"{value:.{decimals}f}"


def gib(value):
    return MISSING if value is None else f"{value:.1f}"


def points(ours, published):
    """Percentage points between two fractions."""
    return MISSING if ours is None or published is None else _signed(100 * (ours - published), 1)


def difference(ours, published, decimals):
    return MISSING if ours is None or published is None else _signed(ours - published, decimals)


def relative(ours, published):
    return MISSING if ours is None or published is None else _signed(100 * (ours / published - 1), 1) + "%"


def _signed(value, decimals):
    """A difference that rounds to nothing has no sign of its own."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if not text.strip("+-0.") else text


def outcome(row):
    """What stands in place of a number where a run did not come to its end."""
    return {"out_of_memory": "out of memory", "infeasible": "infeasible"}[row.status]
