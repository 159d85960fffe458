"""Windows: what the words in brackets mean, as arithmetic on integers. No clock, no input, no output.

Read `clause` (what is written), `spec` (what every window can do), then one file per kind: `ranges`,
`landmark`, `lifetime`, `rows`, `slide_by_tuple`, `session`. `patterns` and `panes` derive facts,
`progress` says when extents are complete.
"""

from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Domain, Flags, Instant, Ints, Quantity
from windrow.windows.panes import Panes, sub_windows_of
from windrow.windows.patterns import Label, Pattern, interfering, strict
from windrow.windows.progress import NoPolicy, Ordered, OrderedPer, Policy, Punctuated, Slack, SlackRows
from windrow.windows.ranges import RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.spec import COUNTED, Grid, OwnInterval, SlideGrid, WindowSpec, covered, refuse_too_many
