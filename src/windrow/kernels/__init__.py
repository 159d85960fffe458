"""Kernels: stateful operators as pure functions over Arrow tables. No Spark, no files, no clock.

| stage        | in                                  | out                                   |
|--------------|-------------------------------------|---------------------------------------|
| `intake`     | a batch of a stream                 | accepted rows, late rows, progress    |
| `panes`      | accepted rows                       | states by pane and group              |
| a kernel     | state, states by pane, two clocks   | the next state, answers in blocks     |
| `pane_tables`| states of windows, from the kernel  | HAVING, select list: Arrow tables     |

That is how aggregates over [RANGE … SLIDE …] and [LANDMARK … SLIDE …] are answered; `program.kernel_of`
chooses the kernel. All combine by `combiners`; what an aggregate's state is, they learn from `measures`.
`shared` answers many such queries from what is kept once; everything else is run by `relational`.
"""
