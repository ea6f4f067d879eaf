"""The rule: one ramp per group, the record of its fit, its file, its repeatable draws.

Must not depend on how rules are fitted, measured or exported; only `verbs` imports upper layers, for convenience.
"""
