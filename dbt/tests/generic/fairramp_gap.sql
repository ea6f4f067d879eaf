{# Fails unless the highest and the lowest rate of any two groups differ by at most max_gap. #}
{% test fairramp_gap(model, column_name, group_column, max_gap) %}
{%- set gap = "max(rate) - min(rate)" %}
{%- set within = gap ~ " <= " ~ fairramp.fairramp_limit("max_gap", max_gap) ~ " + 1e-9" %}
{{- fairramp.fairramp_judged(fairramp.fairramp_rates(model, column_name, group_column), "gap", gap, within) }}
{% endtest %}
