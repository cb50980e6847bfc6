"""Numbers as the inspector's page prints them."""

import math
import re


def figure(text):
    """One number: −0.123, +4.3 × 10⁻⁵, 12,000, 3.1 %, −∞."""
    text = text.strip().removesuffix("%").replace("−", "-").replace(",", "")
    if "∞" in text:
        return -math.inf
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    first, _, power = text.partition(" × 10")
    return float(first) * 10 ** int(power.translate(raised) or 0) if power else float(first)


def figures(text):
    """Every number in a sentence."""
    return [figure(found) for found in re.findall(r"[−+]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?", text)]


def table(place):
    """The cells with numbers of a table's rows."""
    return [
        [figure(cell) for cell in row.locator("td.number").all_inner_texts()] for row in place.locator("tbody tr").all()
    ]


def heads(place):
    """The map of a number of every head: of each, what is printed."""
    return [figure(button.inner_text()) for button in place.get_by_role("gridcell").locator("button").all()]
