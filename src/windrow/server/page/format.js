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
const SVG = new Set(["svg", "path", "rect", "line", "text", "g", "circle", "title"]);

/** Set the text of an element only if it differs: what does not change does not flicker. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const count = (n) => Math.round(n).toLocaleString("en-US");

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
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
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

export function rowsTable(columns, rows, most = 1000) {
  const numeric = new Set(columns.filter((each) => /int|float|double|decimal/.test(each.type)).map((each) => each.name));
  const body = rows.slice(0, most).map((row) => h("tr", {}, columns.map(({ name }) => {
    const cell = row[name];
    const kind = cell === null ? "null" : name === "op" && cell === "-" ? "minus" : null;
    return h("td", { class: kind }, numeric.has(name) && typeof cell === "number" ? value(cell) : value(cell));
  })));
  return h("table", {}, h("thead", {}, h("tr", {}, columns.map((each) => h("th", { scope: "col" }, each.name)))), h("tbody", {}, body));
}
