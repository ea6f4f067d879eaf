"""The rule itself: one ramp per group, the record of its fit, its file, its repeatable draws.

May not know how rules are fitted, measured or exported; `verbs` alone looks upwards, for convenience methods.
"""
