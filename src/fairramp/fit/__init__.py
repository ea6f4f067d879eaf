"""From a sample or its sums to a rule: settings, the fit, labels, the published solver, streams.

Must not depend on how rules are measured, exported or shown. A new criterion is a module in `criteria`.
"""
