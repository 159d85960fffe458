// From answers to lines: which column is drawn, which tell groups apart, and where lines are broken.

const NUMBER = /^(u?int|float|double|decimal)/;
export const MOST_LINES = 8;

/** How a query's answers are shown: lines over `at`, if there is one answer for each group and window, or a table. */
export function shape({ columns, keys }) {
  if (keys === null) return { kind: "table" };
  const bounds = new Set(["at", "op", "window_start", "window_end", ...keys]);
  const others = columns.filter((each) => !bounds.has(each.name));
  const values = others.filter((each) => NUMBER.test(each.type)).map((each) => each.name);
  return values.length && values.length === others.length ? { kind: "lines", keys, values } : { kind: "table" };
}

/** Rows as aligned columns for a chart: one line for each of the most active groups, or one without groups. */
export function lines(rows, { keys }, chosen, gaps = [], from = -Infinity) {
  const seen = new Set();
  for (const row of rows) if (row.$x >= from) seen.add(row.$x);
  const xs = [...seen].sort((a, b) => a - b);
  for (const gap of gaps) if (xs.length && gap.first > xs[0] && !seen.has(gap.first)) xs.push(gap.first);
  xs.sort((a, b) => a - b);
  const at = new Map(xs.map((x, place) => [x, place]));
  const groups = new Map();
  for (const row of rows) {
    if (row.$x < from) continue;
    const name = keys.length ? keys.map((key) => String(row[key])).join(", ") : chosen, y = row[chosen] === null ? null : Number(row[chosen]);
    let known = groups.get(name);
    if (!known) groups.set(name, (known = { name, points: 0, last: 0, low: Infinity, high: -Infinity, ys: new Array(xs.length).fill(null) }));
    known.points += 1;
    known.last = Math.max(known.last, row.$x);
    if (y !== null) { known.low = Math.min(known.low, y); known.high = Math.max(known.high, y); }
    known.ys[at.get(row.$x)] = y;
  }
  const active = [...groups.values()].sort((a, b) => b.last - a.last || b.points - a.points || (b.high - b.low) - (a.high - a.low) || compare(a.name, b.name));
  const shown = active.slice(0, MOST_LINES).sort((a, b) => compare(a.name, b.name));
  return { xs, lines: shown.map(({ name, ys }) => ({ name, ys })), others: active.length - shown.length };
}

const compare = (a, b) => (Number(a) - Number(b)) || a.localeCompare(b);

/** Gaps as stretches to shade: from the end of the last answer before to the first after. */
export function stretches(gaps, xs) {
  const steps = xs.slice(1).map((x, n) => x - xs[n]).filter((step) => step > 0);
  const step = steps.length ? Math.min(...steps) : 1;
  return gaps.map((gap) => ({ from: gap.first - step, to: gap.last + step }));
}
