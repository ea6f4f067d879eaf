"""The rule: one ramp per group, the record of its fit, its file, its repeatable draws.

Must not import what fits, measures or exports rules; only `verbs` imports upper layers, for convenience.
"""
