"""SS4: a query uses the synopses of others whose conditions together are its own.

Where a row counted twice does harm the cover has to be disjoint; where states can be subtracted it may hold
too much, if there is a disjoint cover of that. Windows of the synopses must be as long as the query's. The
thesis' six queries:

>>> from dataclasses import replace
>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.predicates.terms import predicate_of
>>> from windrow.sharing.synopses.synopsis import Kind
>>> from windrow.algebra.expressions import Column, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import STRING
>>> def equal(name, value):
...     return call("=", [Column(name, STRING), Literal(value, STRING)])
>>> tcp, udp, user = equal("protocol", "TCP"), equal("protocol", "UDP"), equal("user", "U")
>>> either, mixed = call("or", [tcp, udp]), call("or", [tcp, user])
>>> total, most = Family("S", "total of length"), Family("S", "greatest of length")
>>> def synopsis(name, family, condition):
...     return Held(name, family, Grid(1), 10, Kind.BASIC, predicate_of(condition))
>>> q1, q2, q3 = (synopsis(f"Q{n}", total, p) for n, p in enumerate((tcp, udp, either), start=1))
>>> q4, q5 = synopsis("Q4", most, tcp), synopsis("Q5", most, user)
>>> sums = Wanted(total, (10,), 1, is_subtractable=True)
>>> relevant(replace(sums, predicate=predicate_of(either)), [q1, q2, q4, q5])
Relevant(added=('Q1', 'Q2'), subtracted=())
>>> relevant(replace(sums, predicate=predicate_of(tcp)), [q2, q3])
Relevant(added=('Q3',), subtracted=('Q2',))
>>> greatest = Wanted(most, (8,), 1, predicate=predicate_of(mixed), is_sensitive=False)
>>> relevant(greatest, [q1, q2, q4, q5])
Relevant(added=('Q4', 'Q5'), subtracted=())
>>> relevant(replace(greatest, is_sensitive=True), [q4, q5]) is None
True
>>> relevant(replace(greatest, lengths=(11,)), [q4, q5]) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from windrow.sharing.predicates.covers import Relevant, find_cover, find_difference, find_disjoint_cover
from windrow.sharing.synopsis_facts import Held, Wanted

if TYPE_CHECKING:
    from windrow.sharing.predicates.terms import Predicate

#: each further synopsis is one more to probe; a synopsis of its own is then the better one
MOST_PROBED = 4


def relevant(wanted: Wanted, held: Sequence[Held], most: int = MOST_PROBED) -> Relevant[str] | None:
    """The synopses to combine, and those to subtract; None if there are none that will do."""
    if not wanted.adds_up:
        return None
    usable = {
        each.name: each.predicate
        for each in held
        if each.family == wanted.family and each.is_aligned(wanted) and each.is_long_enough(wanted)
    }
    return combined(wanted, usable, most)


def combined(
    wanted: Wanted, usable: Mapping[str, Predicate], most: int = MOST_PROBED
) -> Relevant[str] | None:
    """The same, of synopses of these conditions, whose intervals will do."""
    finders = [find_disjoint_cover if wanted.is_sensitive else find_cover]
    finders += [find_difference] if wanted.is_subtractable else []
    for find in finders:
        found = find(wanted.predicate, usable, most)
        if found is not None:
            return found
    return None
