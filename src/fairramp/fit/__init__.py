"""From a sample or its sums to a rule: settings, the fit, labels, the published solver, streams.

Must not import what measures, exports or shows rules. A new criterion is a module in `criteria`.
"""
