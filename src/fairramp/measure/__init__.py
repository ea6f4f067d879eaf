"""What a rule, or any decisions, do to groups: audits, certificates, drift, frontiers, hidden groups, bounds.

Returns numbers and plain tables. May not know exports, charts or pages.
"""
