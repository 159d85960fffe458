// Charts: lines with axes, units and hover by uPlot; small lines and bars drawn here.

import uPlot from "./vendor/uplot.js";
import { colour, count, h, hideTip, rows, seconds, short, showTip, tipRow } from "./format.js";

const COLOURS = 8;

/** Which of the colours a name has: the same one for as long as it is shown. */
class Palette {
  #slots = new Map();
  choose(names) {
    for (const name of [...this.#slots.keys()]) if (!names.includes(name)) this.#slots.delete(name);
    for (const name of names) {
      if (this.#slots.has(name)) continue;
      const taken = new Set(this.#slots.values());
      this.#slots.set(name, [...Array(COLOURS).keys()].find((n) => !taken.has(n)) ?? names.indexOf(name) % COLOURS);
    }
  }
  of(name) { return (this.#slots.get(name) ?? 0) + 1; }
}

/** A chart of lines in a box. `update` gives it other data without drawing it anew. */
export class LineChart {
  #plot = null;
  #shape = "";
  #data = null;
  #gaps = [];
  #palette = new Palette();

  constructor(box, { isTime, tall = false, onZoom = null }) {
    Object.assign(this, { box, isTime, tall, onZoom });
    this.tip = h("div", { class: "tip", hidden: true });
    this.unit = h("span", { class: "unit" });
    this.empty = h("div", { class: "empty" }, "No answers yet: the first comes when the first window is complete.");
    this.legend = h("div", { class: "legend" });
    box.append(this.empty, this.unit, this.tip);
    this.watcher = new ResizeObserver(() => this.#resize());
    this.watcher.observe(box);
  }

  close() { this.watcher.disconnect(); this.#plot?.destroy(); }

  restyle() { this.#shape = ""; if (this.#data) this.update(this.#data, this.#gaps, this.what, this.by); }

  /** `what` is the column that is drawn, `by` those that tell lines apart. */
  update(data, gaps = [], what = "", by = []) {
    this.#data = data;
    this.#gaps = gaps;
    Object.assign(this, { what, by });
    const { xs, lines } = data;
    this.empty.hidden = xs.length > 0;
    this.unit.textContent = xs.length ? what : "";
    if (!xs.length) return;
    const names = lines.map((each) => each.name);
    const shape = JSON.stringify([names, data.others, what]);
    const table = [xs, ...lines.map((each) => each.ys)];
    if (this.#plot && shape === this.#shape) {
      this.#plot.setData(table, !this.isZoomed);
      return;
    }
    this.#shape = shape;
    this.#palette.choose(names);
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(lines), table, this.box);
    this.#name(names, data.others);
  }

  get isZoomed() { return this.zoomed ?? false; }

  unzoom() {
    this.zoomed = false;
    if (this.#plot && this.#data) this.#plot.setData(this.#plot.data, true);
    this.onZoom?.(false);
  }

  #name(names, others) {
    if (!this.by.length) { this.legend.replaceChildren(); return; }
    const shown = names.map((name) => h("span", {}, h("i", { class: `k${this.#palette.of(name)}` }), name));
    this.legend.replaceChildren(h("span", {}, `${this.by.join(", ")}:`), ...shown, others > 0 ? h("span", {}, `and ${others} more`) : "");
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (this.#plot && width) this.#plot.setSize({ width, height });
  }

  #options(lines) {
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 18, gap: 4 };
    return {
      width: this.box.clientWidth || 300,
      height: this.box.clientHeight || 150,
      padding: [18, 28, 0, 0],
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "UTC"),
      scales: { x: { time: this.isTime, range: (u, lo, hi) => (lo === hi ? [lo - 1, hi + 1] : [lo, hi]) }, y: { range: (u, lo, hi) => padded(lo, hi) } },
      axes: [
        { ...axis, space: this.isTime ? 72 : 56, values: this.isTime ? [[86400, "{YYYY}-{MM}-{DD}", null, null, null, null, null, null, 1], [3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] : null },
        { ...axis, size: 46, space: this.tall ? 40 : 28, values: (u, splits) => evenly(splits) },
      ],
      focus: { alpha: lines.length > 1 ? 0.3 : 1 },
      series: [{}, ...lines.map((each) => ({ label: each.name, stroke: colour(`--s${this.#palette.of(each.name)}`), width: 1.7, points: { show: true, size: 5, filter: lonely }, spanGaps: false }))],
      cursor: { drag: { x: this.tall, y: false, setScale: this.tall }, points: { size: 6 }, y: false, focus: { prox: 28 } },
      legend: { show: false },
      hooks: {
        drawClear: [(u) => this.#drawGaps(u)],
        setCursor: [(u) => this.#hover(u, lines)],
        setSelect: [(u) => { if (u.select.width > 2) { this.zoomed = true; this.onZoom?.(true); } }],
      },
    };
  }

  #drawGaps(u) {
    u.ctx.save();
    u.ctx.fillStyle = colour("--warn-soft");
    for (const gap of this.#gaps) {
      const left = u.valToPos(gap.from, "x", true), right = u.valToPos(gap.to, "x", true);
      const from = Math.max(left, u.bbox.left), to = Math.min(Math.max(right, left + 3), u.bbox.left + u.bbox.width);
      if (to > from) u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
    }
    u.ctx.restore();
  }

  #hover(u, lines) {
    const { idx, left } = u.cursor;
    if (idx === null || idx === undefined || left < 0) { this.tip.hidden = true; return; }
    const x = u.data[0][idx];
    const rows = lines.map((each, n) => [each.name, u.data[n + 1][idx]]).filter(([, y]) => y !== null && y !== undefined).sort((a, b) => b[1] - a[1]);
    const gap = this.#gaps.find((each) => x >= each.from && x <= each.to);
    const at = this.isTime ? new Date(x * 1000).toISOString() : "";
    const when = this.isTime ? `at ${at.slice(11, 19)}` : `at ${count(x)}`;
    const named = ([name, y]) => tipRow(this.by.length ? `${this.by.join(", ")} ${name}` : name, short(y), `k${this.#palette.of(name)}`);
    this.tip.replaceChildren(h("div", {}, h("b", {}, when), h("span", { class: "dim" }, this.isTime ? `${at.slice(0, 10)} UTC` : "")), ...(rows.length ? rows.map(named) : [h("div", {}, gap ? "this window was left out under overload" : "no answer")]));
    this.tip.hidden = false;
    const room = this.box.clientWidth - this.tip.offsetWidth - 4;
    const spot = u.bbox.left / devicePixelRatio + left + 14;
    this.tip.style.left = `${Math.max(0, spot > room ? spot - this.tip.offsetWidth - 28 : spot)}px`;
    this.tip.style.top = "6px";
  }
}

/** Points that have no neighbour would not be seen as a line: they are drawn as points. */
function lonely(u, n) {
  const ys = u.data[n], is = (i) => ys[i] !== null && ys[i] !== undefined;
  return ys.map((_, i) => i).filter((i) => is(i) && !is(i - 1) && !is(i + 1));
}

function padded(lo, hi) {
  if (lo === null || hi === null) return [0, 1];
  const room = (hi - lo) * 0.08 || Math.abs(hi) * 0.1 || 1;
  const least = lo >= 0 && lo - room < 0 ? 0 : lo - room;
  return [least, hi + room];
}

/** Figures of an axis, all with as many decimals and the same unit. */
function evenly(splits) {
  const most = Math.max(...splits.map(Math.abs)), step = splits.length > 1 ? Math.abs(splits[1] - splits[0]) : most || 1;
  const [size, unit] = most >= 1e9 ? [1e9, "G"] : most >= 1e6 ? [1e6, "M"] : most >= 1e4 ? [1e3, "k"] : [1, ""];
  const places = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9)));
  return splits.map((y) => (y === 0 ? "0" : (y / size).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places }) + unit));
}

/** A small line without axes: point at it to read it. */
export class Spark {
  constructor(label, say, height = 34) {
    Object.assign(this, { say, height, values: [], times: [] });
    this.area = h("path", { class: "area" });
    this.line = h("path", { class: "line" });
    this.svg = h("svg", { class: "spark", viewBox: `0 0 240 ${height}`, preserveAspectRatio: "none", height, role: "img", "aria-label": label, onmousemove: (event) => this.#tell(event), onmouseleave: hideTip }, this.area, this.line);
  }

  update(values, times) {
    Object.assign(this, { values, times });
    const floor = this.height - 1.5, top = Math.max(...values, 1e-9), step = 240 / Math.max(values.length - 1, 1);
    const points = values.map((y, n) => `${(n * step).toFixed(1)} ${(floor - (y / top) * (floor - 2)).toFixed(1)}`);
    const d = points.length > 1 ? `M${points.join("L")}` : "";
    this.line.setAttribute("d", d);
    this.area.setAttribute("d", d ? `${d}L240 ${this.height}L0 ${this.height}Z` : "");
  }

  #tell(event) {
    const { left, width } = this.svg.getBoundingClientRect(), last = this.values.length - 1;
    if (last < 1) return;
    const n = Math.min(last, Math.max(0, Math.round(((event.clientX - left) / width) * last)));
    const ago = Math.round((this.times.at(-1) ?? 0) - (this.times[n] ?? 0));
    showTip(event, h("div", {}, h("b", {}, this.say(this.values[n])), h("span", { class: "dim" }, ago > 0 ? `${seconds(ago)} ago` : "now")));
  }
}

const PARTS = [["read", "read", "new rows into panes and state"], ["close", "close", "windows that are complete"], ["commit_seconds", "commit", "state and answers on disk"], ["deliver", "deliver", "answers to sinks"]];
const GUTTER = 46;

/** The next 1, 2, 4 or 6 of its size, whose half is a plain figure too. */
function even(most) {
  const size = 10 ** Math.floor(Math.log10(most));
  return size * [1, 2, 4, 6, 10].find((each) => each * size >= most * 0.999);
}

/** Epochs as bars of their parts. */
export class EpochBars {
  constructor() {
    this.svg = h("svg", { class: "parts", height: 92, role: "img", "aria-label": "What the last epochs took, by part", onmousemove: (event) => this.#tell(event), onmouseleave: hideTip });
    this.said = h("div", { class: "dim num" }, "no epoch yet");
    this.root = h("div", {}, this.svg, h("div", { class: "keys" }, PARTS.map(([, name, what]) => h("span", { title: what }, h("i", { class: name }), name))), this.said);
    this.shown = [];
  }

  update(epochs) {
    const width = this.svg.clientWidth || 270, tall = 86, wide = 6;
    const shown = (this.shown = epochs.slice(-Math.floor((width - GUTTER) / wide)));
    const total = (each) => PARTS.reduce((sum, [key]) => sum + Math.max(0, each[key]), 0);
    const sorted = shown.map(total).sort((a, b) => a - b);
    const top = even(Math.max(sorted[Math.floor(sorted.length * 0.97)] ?? 0, 0.01));
    const bars = [];
    for (const share of [0, 0.5, 1]) {
      const y = tall - (tall - 10) * share;
      bars.push(h("line", { class: "scale", x1: GUTTER, x2: width, y1: y, y2: y }), h("text", { x: GUTTER - 6, y: y + 4, "text-anchor": "end" }, share ? seconds(top * share) : "0"));
    }
    shown.forEach((each, n) => {
      let y = tall;
      const x = width - (shown.length - n) * wide;
      bars.push(...PARTS.map(([key, name]) => {
        const high = Math.min((Math.max(0, each[key]) / top) * (tall - 10), y);
        y -= high;
        return h("rect", { class: name, x, y, width: wide - 1.5, height: Math.max(high, 0) });
      }));
    });
    this.svg.replaceChildren(...bars);
    const last = epochs.at(-1);
    if (last) this.said.textContent = `last ${seconds(total(last))}, ${rows(last.rows)}${last.shed ? `, ${count(last.shed)} shed` : ""}`;
  }

  #tell(event) {
    const { right } = this.svg.getBoundingClientRect();
    const each = this.shown[this.shown.length - 1 - Math.floor((right - event.clientX) / 6)];
    if (!each) { hideTip(); return; }
    showTip(event, h("div", {}, h("b", {}, `commit ${count(each.commit)}`), h("span", { class: "dim" }, rows(each.rows))), PARTS.map(([key, name]) => tipRow(name, seconds(each[key]), `p-${name}`)));
  }
}
