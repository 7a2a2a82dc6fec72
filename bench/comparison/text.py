"""Numbers and tables as reports show them."""

import statistics

KI, MI = 1 << 10, 1 << 20


def bytes_text(size):
    for unit, name in ((1_000_000, "MB"), (MI, "Mi"), (KI, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


def microseconds(seconds):
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def spread(values, digits=2):
    """The median of the values, the smallest and the largest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def markdown(rows):
    """A table whose first row is the head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"
