// How numbers, times and elements are written. Text only ever becomes text: nothing here makes HTML of it.

export function h(tag, attributes = {}, ...children) {
  const space = SVG.has(tag) ? "http://www.w3.org/2000/svg" : null;
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}
const SVG = new Set(["svg", "path", "rect", "line", "text", "tspan", "g", "circle", "title"]);

/** Set the text of an element only if it differs: what does not change does not flicker. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const count = (n) => Math.round(n).toLocaleString("en-US");

/** So many rows, or per second: few are not rounded to none. */
export const rows = (n) => `${count(n)} ${Math.round(n) === 1 ? "row" : "rows"}`;
export const rate = (n) => `${n > 0 && n < 9.95 ? Math.max(0.1, n).toFixed(1) : short(Math.round(n))} rows/s`;

export function short(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return "–";
  const size = Math.abs(n);
  if (size >= 1e9) return `${(n / 1e9).toFixed(1)} G`;
  if (size >= 1e6) return `${(n / 1e6).toFixed(1)} M`;
  if (size >= 1e4) return `${(n / 1e3).toFixed(1)} k`;
  if (Number.isInteger(n)) return count(n);
  return size >= 100 ? n.toFixed(1) : size >= 1 ? n.toFixed(2) : n.toPrecision(3);
}

export function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  while (n >= 1024 && place < units.length - 1) { n /= 1024; place += 1; }
  return `${n < 10 && place ? n.toFixed(1) : Math.round(n)} ${units[place]}`;
}

export function seconds(s) {
  if (s === null || s === undefined) return "–";
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  const [size, unit, small, part] = s < 3600 ? [60, "min", 1, "s"] : [3600, "h", 60, "min"];
  const more = Math.round((s % size) / small);
  return `${Math.floor(s / size)} ${unit}${more ? ` ${more} ${part}` : ""}`;
}

const pad = (n) => String(n).padStart(2, "0");

/** A tick of a stream's own time. */
export function instant(tick, isTime) {
  if (tick === null || tick === undefined || tick === "-inf") return "–";
  if (tick === "inf") return "the end";
  if (!isTime) return count(tick);
  const at = new Date(tick / 1000);
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
}

export const span = (ticks, isTime) =>
  ticks === null || ticks === undefined ? "–" : isTime ? seconds(ticks / 1e6) : count(ticks);

/** One value of an answer. */
export function value(cell) {
  if (cell === null || cell === undefined) return "NULL";
  if (typeof cell === "number") return Number.isInteger(cell) ? String(cell) : String(Number(cell.toPrecision(7)));
  if (typeof cell === "object") return JSON.stringify(cell);
  const text = String(cell);
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(text)
    ? text.slice(0, 19).replace("T", " ") + (text.slice(19, 26) === ".000000" ? "" : text.slice(19, 26).replace(/0+$/, ""))
    : text;
}

/** `at` as a number to draw: seconds since 1970, or itself. */
export const place = (at, isTime) => (isTime ? Date.parse(at) / 1000 : Number(at));

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Rows as a table: numbers to the right, all else to the left. */
export function rowsTable(columns, rows, most = 1000) {
  const kinds = columns.map(({ type }) => (/^(u?int|float|double|decimal)/.test(type) ? "n" : ""));
  const body = rows.slice(0, most).map((row) => h("tr", {}, columns.map(({ name }, n) => {
    const cell = row[name];
    const kind = cell === null ? "null" : name === "op" ? (cell === "-" ? "minus" : "plus") : "";
    return h("td", { class: `${kinds[n]} ${kind}`.trim() || null }, value(cell));
  })));
  return h("table", {}, h("thead", {}, h("tr", {}, columns.map((each, n) => h("th", { scope: "col", class: kinds[n] || null }, each.name)))), h("tbody", {}, body));
}

const tip = h("div", { class: "tip float", hidden: true });

/** What is said beside the pointer; `hideTip` when it has gone on. */
export function showTip(event, ...children) {
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(...children.flat().filter(Boolean));
  tip.hidden = false;
  const { clientX: x, clientY: y } = event, { offsetWidth: wide, offsetHeight: high } = tip;
  tip.style.left = `${Math.max(4, x + 14 + wide > innerWidth ? x - wide - 14 : x + 14)}px`;
  tip.style.top = `${Math.max(4, y + 16 + high > innerHeight ? y - high - 10 : y + 16)}px`;
}

export function hideTip() { tip.hidden = true; }

/** A line of a tip: a name, with its colour if it has one, and a figure. */
export const tipRow = (name, figure, key = null) => h("div", {}, h("span", {}, key ? h("i", { class: key }) : null, name), h("span", { class: "num" }, figure));

/** Buttons of which one is pressed. */
export function tabs(label, names, chosen, choose) {
  const made = names.map((name) => h("button", { type: "button", "aria-pressed": String(name === chosen), onclick: () => {
    for (const each of made) each.setAttribute("aria-pressed", each.textContent === name);
    choose(name);
  } }, name));
  return h("div", { class: "tabs", role: "group", "aria-label": label }, made);
}
