"""From a sample or its sums to a rule: settings, the fit, labels, the published solver, streams.

May not know how rules are measured, exported or shown. A new criterion is a module in `criteria`.
"""
