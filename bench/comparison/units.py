"""Human-readable numbers of bytes."""

KI, MI = 1 << 10, 1 << 20


def bytes_text(size):
    for unit, name in ((1_000_000, "MB"), (MI, "Mi"), (KI, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)
