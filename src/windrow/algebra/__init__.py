"""Algebra: types, expressions, plan nodes and what streams and tables are declared to be."""

from windrow.algebra.catalog import PSEUDO_COLUMNS, Keep, Late, Stream, Table, TableKind, instant_type
from windrow.algebra.expressions import TRUE, Call, ColumnRef, Expression, Field, Literal, Schema, conjuncts
from windrow.algebra.operators import Aggregate, Distinct, Exists, Filter, Join, Project, TableJoin, Union
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType, Kind, as_decimal, parse_type
