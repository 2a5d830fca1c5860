# SPDX-License-Identifier: ISC
"""TLS to whom we speak: what it costs (securing.py), and what DNSSEC costs (proving.py)."""

import proving
import securing


def run(options, folder):
    """Measure both in turn and return the figures."""
    figures = {}
    for module in (securing, proving):
        here = folder / module.__name__
        here.mkdir(mode=0o755)
        figures[module.__name__] = module.measure(options, here)
    return figures


def report(figures, options):
    """Return the lines of both tables."""
    return [*securing.report(figures["securing"], options), "", *proving.report(figures["proving"], options)]
