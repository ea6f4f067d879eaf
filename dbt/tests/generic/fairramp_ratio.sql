{# Fails unless the lowest rate of any group, divided by the highest, is at least min_ratio. #}
{% test fairramp_ratio(model, column_name, group_column, min_ratio) %}
select * from (
    select
        case
            {{- fairramp.fairramp_undecided() }}
            when max(rate) = 0 then 'undecided: all rates are 0'
            when min(rate) / nullif(max(rate), 0) >= {{ fairramp.fairramp_limit("min_ratio", min_ratio) }} - 1e-9 then 'within'
            else 'exceeded'
        end as verdict,
        min(rate) / nullif(max(rate), 0) as ratio,
        min(rate) as lowest_rate,
        max(rate) as highest_rate,
        count(*) as n_groups,
        sum(n_rows) as n_rows,
        sum(n_decided) as n_decided
    from ({{ fairramp.fairramp_rates(model, column_name, group_column) }}) as rates
) as judged
where verdict <> 'within'
{% endtest %}
