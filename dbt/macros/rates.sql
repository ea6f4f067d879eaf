{# The selection rate of each group: the mean of a column of decisions or probabilities, without NULL. #}
{% macro fairramp_rates(model, column_name, group_column) %}
{%- set double = {"bigquery": "float64", "spark": "double", "databricks": "double"}.get(target.type, "double precision") %}
select
    {{ group_column }} as fairramp_group,
    count(*) as n_rows,
    count({{ column_name }}) as n_decided,
    avg(cast({{ column_name }} as {{ double }})) as rate
from {{ model }}
group by {{ group_column }}
{% endmacro %}

{# A limit of a test. It must be a number from 0 to 1, so that a missing limit is never met. #}
{% macro fairramp_limit(name, value) %}
{%- if execute and (value is boolean or value is not number or not (0 <= value <= 1)) -%}
    {{ exceptions.raise_compiler_error(name ~ " must be a number between 0 and 1, got " ~ value ~ ".") }}
{%- endif -%}
{{ value }}
{%- endmacro %}

{# One row about the rates, unless `measure` is within its limit. NaN is above all numbers in many databases. #}
{% macro fairramp_judged(rates, name, measure, within) %}
select * from (
    select
        case
            when count(*) = 0 then 'undecided: no rows'
            when count(*) = 1 then 'undecided: only one group'
            when count(rate) < count(*) then 'undecided: a group has only NULLs'
            when not (min(rate) >= 0 and max(rate) <= 1 + 1e-9) then 'undecided: a rate is not between 0 and 1'
            when {{ measure }} is null then 'undecided: all rates are 0'
            when {{ within }} then 'within'
            else 'exceeded'
        end as verdict,
        {{ measure }} as {{ name }},
        min(rate) as lowest_rate,
        max(rate) as highest_rate,
        count(*) as n_groups,
        sum(n_rows) as n_rows,
        sum(n_decided) as n_decided
    from ({{ rates }}) as rates
) as judged
where verdict <> 'within'
{% endmacro %}
