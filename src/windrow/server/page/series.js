// From answers to lines: which column is drawn, which tell groups apart, and where lines are broken.

const NUMBER = /^(u?int|float|double|decimal)/;
export const MOST_LINES = 8;

/** The columns that a query groups by, as far as its text tells. */
function keysOf(query, names) {
  const found = [...query.sql.matchAll(/GROUP\s+BY\s+([^)]*?)(?=\bHAVING\b|\bORDER\b|\bLIMIT\b|\bQUALIFY\b|\)|$)/gis)].at(-1);
  const said = found ? found[1].split(",").map((each) => each.trim().replace(/^.*\./, "").replace(/`/g, "").toLowerCase()) : [];
  return names.filter((name) => said.includes(name.toLowerCase()));
}

/** How a query's answers are shown: lines over `at`, or a table. */
export function shape(query) {
  const columns = query.columns.filter((each) => each.name !== "at");
  if (columns.some((each) => each.name === "op")) return { kind: "table" };
  const keys = keysOf(query, columns.map((each) => each.name));
  const bounds = new Set(["window_start", "window_end"]);
  const values = columns.filter((each) => NUMBER.test(each.type) && !keys.includes(each.name) && !bounds.has(each.name)).map((each) => each.name);
  const texts = columns.filter((each) => !NUMBER.test(each.type) && !keys.includes(each.name) && !bounds.has(each.name));
  const isWindowed = /\bSLIDE\b|TUMBLE|HOP|CUMULATE|window\s*\(/i.test(query.sql);
  if (!values.length || texts.length || !isWindowed) return { kind: "table" };
  return { kind: "lines", keys, values };
}

/** Rows as aligned columns for a chart: one line per group of one value, or one per value without groups. */
export function lines(query, rows, { keys, values }, chosen, gaps = [], from = -Infinity) {
  const xs = [...new Set(rows.map((row) => row.$x).filter((x) => x >= from))].sort((a, b) => a - b);
  for (const gap of gaps) {
    if (xs.length && gap.first > xs[0] && gap.first < xs.at(-1) && !xs.includes(gap.first)) xs.push(gap.first);
  }
  xs.sort((a, b) => a - b);
  const at = new Map(xs.map((x, place) => [x, place]));
  const names = new Map();
  for (const row of rows) {
    if (row.$x < from) continue;
    if (!keys.length) continue;
    const name = keys.map((key) => String(row[key])).join(", ");
    const known = names.get(name) ?? { name, points: 0, last: 0, low: Infinity, high: -Infinity };
    known.points += 1;
    known.low = Math.min(known.low, Number(row[chosen]));
    known.high = Math.max(known.high, Number(row[chosen]));
    known.last = row.$x;
    names.set(name, known);
  }
  if (!keys.length) {
    return { xs, lines: [chosen].map((name) => ({ name, ys: filled(xs, rows, at, name, () => true) })), others: 0 };
  }
  const active = [...names.values()].sort((a, b) => b.last - a.last || b.points - a.points || (b.high - b.low) - (a.high - a.low) || compare(a.name, b.name));
  const shown = active.slice(0, MOST_LINES).sort((a, b) => compare(a.name, b.name));
  return {
    xs,
    lines: shown.map(({ name }) => ({ name, ys: filled(xs, rows, at, chosen, (row) => keys.map((key) => String(row[key])).join(", ") === name) })),
    others: active.length - shown.length,
  };
}

const compare = (a, b) => (Number(a) - Number(b)) || a.localeCompare(b);

function filled(xs, rows, at, column, isMine) {
  const ys = new Array(xs.length).fill(null);
  for (const row of rows) {
    const place = at.get(row.$x);
    if (place !== undefined && isMine(row)) ys[place] = row[column] === null ? null : Number(row[column]);
  }
  return ys;
}
