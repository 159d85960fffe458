"""Speed sensors along a freeway, with jams that build up and dissolve in some of its segments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.spark.sources.generators.generator import (
    Floats,
    Generator,
    Integers,
    Settings,
    below,
    normal,
    uniform,
)

_SENSORS_PER_SEGMENT = 5
_JAMMED_ONE_IN = 4
_JAM_PERIOD = 1200.0  # seconds from one jam to the next
_NOISE = 5.0
_SLOWEST = 3.0


def segment(settings: Settings, events: Integers) -> Integers:
    """Which stretch of road the reading is from; all report equally often."""
    return below(settings.seed, "segment", events, settings.keys or 1)


def sensor(settings: Settings, events: Integers) -> Integers:
    """Which of the segment's sensors; numbers of sensors are unique over all segments."""
    within = below(settings.seed, "sensor", events, _SENSORS_PER_SEGMENT)
    return segment(settings, events) * _SENSORS_PER_SEGMENT + within


def speed(settings: Settings, events: Integers) -> Floats:
    """Miles per hour: the segment's free flow, less what its jam takes, give or take a little."""
    where = segment(settings, events)
    free_flow = 58.0 + 12.0 * uniform(settings.seed, "free flow", where)
    flow = free_flow * (1.0 - 0.8 * _congestion(settings, where, events / settings.event_rate))
    noisy = flow + _NOISE * normal(settings.seed, "speed", events)
    return np.asarray(np.round(np.maximum(noisy, _SLOWEST), 1))


def _congestion(settings: Settings, where: Integers, second: Floats) -> Floats:
    """From 0, free, to 1: in every fourth segment a jam grows for five minutes, and dissolves in five."""
    phase = uniform(settings.seed, "phase", where)
    wave = np.sin(2.0 * np.pi * (second / _JAM_PERIOD + phase))
    return np.where(where % _JAMMED_ONE_IN == _JAMMED_ONE_IN - 1, np.maximum(wave, 0.0) ** 2, 0.0)


TRAFFIC = Generator(
    "traffic",
    default_keys=20,
    columns={
        "segment": (pa.int64(), segment),
        "speed": (pa.float64(), speed),
        "sensor": (pa.int64(), sensor),
    },
    sorted_by=segment,
)
