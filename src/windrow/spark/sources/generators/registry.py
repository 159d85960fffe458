"""All generators, by name."""

from __future__ import annotations

from windrow.spark.sources.generators.auction import AUCTION
from windrow.spark.sources.generators.generator import Generator
from windrow.spark.sources.generators.network import NETWORK
from windrow.spark.sources.generators.traffic import TRAFFIC

GENERATORS: dict[str, Generator] = {generator.name: generator for generator in (TRAFFIC, AUCTION, NETWORK)}
