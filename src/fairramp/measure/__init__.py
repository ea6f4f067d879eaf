"""Measure what a rule, or any set of decisions, does to groups.

Audits, certificates, drift, frontiers, hidden splits and bounds, as numbers and plain tables. Must not import
exports, charts or pages.
"""
