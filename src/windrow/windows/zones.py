"""Time zones: what clocks on the wall show at an instant, and at which instant they show something.

Both are in microseconds; a local time is counted as if its calendar were that of UTC. Clocks are put forward
and back: a local time in a gap stands for the instant of the change, one that comes twice for the earlier.

>>> berlin = zone("Europe/Berlin")
>>> (berlin.local(0) - 0) // 3_600_000_000
1
>>> march = 1_711_843_200_000_000  # 2024-03-31 00:00, before clocks go from 2:00 to 3:00
>>> [berlin.instant(march + half * 1_800_000_000) // 1_800_000_000 % 48 for half in (3, 4, 5, 6)]
[1, 2, 2, 2]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from windrow.errors import QueryError, nearest

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)
#: the calendar repeats itself after 400 years, weekdays included
_ERA = 146_097 * 86_400_000_000
_FIRST, _LAST = (-1950 * 365 * 86_400_000_000, 8000 * 365 * 86_400_000_000)


@dataclass(frozen=True)
class Zone:
    """A zone by its name: one of the tz database, or an offset such as `+02:00`."""

    name: str

    @cached_property
    def _rules(self) -> tzinfo:
        return _rules(self.name)

    def local(self, instant: int) -> int:
        """What clocks show at an instant."""
        return instant + self.offset(instant)

    def offset(self, instant: int) -> int:
        """How much clocks are ahead of UTC at an instant."""
        moment = _EPOCH + _TICK * _within(instant)
        ahead = moment.replace(tzinfo=UTC).astimezone(self._rules).utcoffset()
        assert ahead is not None
        return ahead // _TICK

    def instant(self, local: int) -> int:
        """When clocks show this: the first time, if they do twice; the change, if they never do."""
        earlier, later = self._candidates(local)
        return earlier if earlier <= later else self._change(later, earlier)

    def shifted(self, local: int) -> int:
        """The same, but a time that never is stands for one as much later as clocks are put forward."""
        return self._candidates(local)[0]

    def _candidates(self, local: int) -> tuple[int, int]:
        """The instants by the offsets before and after a change nearby; where there is none both are one."""
        shown = _EPOCH + _TICK * _within(local)
        offsets = [shown.replace(tzinfo=self._rules, fold=fold).utcoffset() for fold in (0, 1)]
        before, after = (local - offset // _TICK for offset in offsets if offset is not None)
        return before, after

    def _change(self, low: int, high: int) -> int:
        """The instant at which clocks are changed, after `low` and not after `high`."""
        before = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.offset(middle) == before else (low, middle)
        return high


@cache
def zone(name: str) -> Zone:
    """The zone of this name; a QueryError if there is none."""
    _rules(name)
    return Zone(name)


@cache
def _rules(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if ahead < _DAY:
            return timezone(-ahead if sign == "-" else ahead)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryError(
            f"no time zone `{name}`",
            code="bad-zone",
            hint=(nearest(name, sorted(available_timezones())) if name[:1].isalpha() else None)
            or "write a name such as 'Europe/Berlin', or an offset such as '+02:00'",
        ) from None


def _within(micros: int) -> int:
    """A time of years that Python's calendar knows, at which clocks go as they do then."""
    if _FIRST <= micros <= _LAST:
        return micros
    eras = (micros - _LAST) // _ERA + 1 if micros > _LAST else (micros - _FIRST) // _ERA
    return micros - eras * _ERA
