{# Fails unless the lowest rate of any group, divided by the highest, is at least min_ratio. #}
{% test fairramp_ratio(model, column_name, group_column, min_ratio) %}
{%- set ratio = "min(rate) / nullif(max(rate), 0)" %}
{%- set within = ratio ~ " >= " ~ fairramp.fairramp_limit("min_ratio", min_ratio) ~ " - 1e-9" %}
{{- fairramp.fairramp_judged(fairramp.fairramp_rates(model, column_name, group_column), "ratio", ratio, within) }}
{% endtest %}
