"""The syntax of names, labels and quantities."""

import fractions
import re

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
DATA_KEY = re.compile(r"(?!\.{1,2}\Z)(?!\.\.)[-._a-zA-Z0-9]{1,253}")
ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)


def label_key(key):
    lead, slash, name = key.rpartition("/")
    return bool(name and LABEL_VALUE.fullmatch(name) and (not slash or SUBDOMAIN.fullmatch(lead)))


def quantity(text):
    match = NUMBER.fullmatch(text)
    if not match:
        return None
    number, binary, decimal, exponent = match.groups()
    value = fractions.Fraction(number)
    if binary:
        return None if binary == "KI" else value * 1024 ** ("KMGTPE".index(binary[0]) + 1)
    power = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}.get(decimal, 0) * 3
    return value * fractions.Fraction(10) ** (int(exponent) if exponent else power)
