"""Equal opportunity and predictive equality: equal true positive rates, or equal false positive rates.

Both are the problem of parity on the rows of one label. The level, and each group's rate in the band, are chosen
by the labels (see `fit.gains`): minimizing a cost over fit rows under a constraint on their labels would give
decisions that depend on the labels, which are unknown when the rule decides.

Where no row of the event is on a ramp, the rate does not determine the threshold; `Event.flat` says which is
taken.
"""

from fairramp.core.events import FALSE_POSITIVE, TRUE_POSITIVE
from fairramp.fit.criteria.parity import EqualRates

EQUAL_OPPORTUNITY = EqualRates(TRUE_POSITIVE)
PREDICTIVE_EQUALITY = EqualRates(FALSE_POSITIVE)
