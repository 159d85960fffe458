"""Kernels: stateful operators as pure functions over Arrow tables. No Spark, no files, no clock.

What they run so far: aggregates over [RANGE … SLIDE …] and [LANDMARK … SLIDE …].

| stage        | in                                  | out                                   |
|--------------|-------------------------------------|---------------------------------------|
| `intake`     | a batch of a stream                 | accepted rows, late rows, progress    |
| `panes`      | accepted rows                       | states by pane and group              |
| a kernel     | state, states by pane, two clocks   | the next state, answers in blocks     |
| `pane_tables`| states of windows, from the kernel  | HAVING, select list: Arrow tables     |

The kernels are `two_stacks.TwoStacks` (persisted: an epoch reads what it answers), `live_panes.LivePanes` (it
reads what the window holds), `subtract_on_evict.Differences` (counts of values, added and subtracted by pane)
and `live_panes.RunningTotals` (landmark). All combine by `combiners`; what an
aggregate's state is, they learn from `measures`. `executor.KernelExecutor` runs a query on them.
"""
