{# Fails unless the highest and the lowest rate of any two groups differ by at most max_gap. #}
{% test fairramp_gap(model, column_name, group_column, max_gap) %}
select * from (
    select
        case
            {{- fairramp.fairramp_undecided() }}
            when max(rate) - min(rate) <= {{ fairramp.fairramp_limit("max_gap", max_gap) }} + 1e-9 then 'within'
            else 'exceeded'
        end as verdict,
        max(rate) - min(rate) as gap,
        min(rate) as lowest_rate,
        max(rate) as highest_rate,
        count(*) as n_groups,
        sum(n_rows) as n_rows,
        sum(n_decided) as n_decided
    from ({{ fairramp.fairramp_rates(model, column_name, group_column) }}) as rates
) as judged
where verdict <> 'within'
{% endtest %}
