// Charts: lines with axes, units and hover by uPlot; small lines and bars drawn here.

import uPlot from "./vendor/uplot.js";
import { colour, count, h, seconds, short } from "./format.js";

const COLOURS = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `--s${n}`);

/** A chart of lines in a box. `update` gives it other data without drawing it anew. */
export class LineChart {
  #plot = null;
  #shape = "";
  #data = null;
  #gaps = [];

  constructor(box, { isTime, tall = false, onZoom = null }) {
    Object.assign(this, { box, isTime, tall, onZoom });
    this.tip = h("div", { class: "tip", hidden: true });
    this.empty = h("div", { class: "empty" }, "no answers yet");
    box.append(this.empty, this.tip);
    this.watcher = new ResizeObserver(() => this.#resize());
    this.watcher.observe(box);
  }

  close() { this.watcher.disconnect(); this.#plot?.destroy(); }

  restyle() { this.#shape = ""; if (this.#data) this.update(this.#data, this.#gaps); }

  update(data, gaps = []) {
    this.#data = data;
    this.#gaps = gaps;
    const { xs, lines } = data;
    this.empty.hidden = xs.length > 0;
    if (!xs.length) return;
    const shape = JSON.stringify(lines.map((each) => each.name));
    const table = [xs, ...lines.map((each) => each.ys)];
    if (this.#plot && shape === this.#shape) {
      this.#plot.setData(table, !this.isZoomed);
      return;
    }
    this.#shape = shape;
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(lines), table, this.box);
  }

  get isZoomed() { return this.zoomed ?? false; }

  unzoom() {
    this.zoomed = false;
    if (this.#plot && this.#data) this.#plot.setData(this.#plot.data, true);
    this.onZoom?.(false);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (this.#plot && width) this.#plot.setSize({ width, height });
  }

  #options(lines) {
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 26 };
    const single = lines.every((each) => each.ys.filter((y) => y !== null).length < 2);
    return {
      width: this.box.clientWidth || 300,
      height: this.box.clientHeight || 150,
      padding: [8, 20, 0, 0],
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "UTC"),
      scales: { x: { time: this.isTime, range: (u, lo, hi) => (lo === hi ? [lo - 1, hi + 1] : [lo, hi]) }, y: { range: (u, lo, hi) => padded(lo, hi) } },
      axes: [
        { ...axis, space: 56, values: this.isTime ? [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] : null },
        { ...axis, size: 46, space: this.tall ? 40 : 28, values: (u, splits) => splits.map(short) },
      ],
      series: [{}, ...lines.map((each, n) => ({ label: each.name, stroke: colour(COLOURS[n % 8]), width: 1.7, points: { show: single, size: 5 }, spanGaps: false }))],
      cursor: { drag: { x: this.tall, y: false, setScale: this.tall }, points: { size: 6 }, y: false },
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
    const rows = lines.map((each, n) => [each.name, u.data[n + 1][idx], n]).filter(([, y]) => y !== null);
    const gap = this.#gaps.find((each) => x >= each.from && x <= each.to);
    const when = this.isTime ? new Date(x * 1000).toISOString().slice(11, 19) : count(x);
    this.tip.replaceChildren(h("div", {}, h("b", {}, `at ${when}`)), ...(rows.length ? rows.map(([name, y, n]) => h("div", {}, h("span", {}, h("i", { class: `k${n % 8 + 1}` }), name), h("span", { class: "num" }, short(y)))) : [h("div", {}, gap ? "left out under overload" : "nothing")]));
    this.tip.hidden = false;
    const room = this.box.clientWidth - this.tip.offsetWidth - 4;
    const spot = u.bbox.left / devicePixelRatio + left + 14;
    this.tip.style.left = `${Math.max(0, spot > room ? spot - this.tip.offsetWidth - 28 : spot)}px`;
    this.tip.style.top = "6px";
  }
}

function padded(lo, hi) {
  if (lo === null || hi === null) return [0, 1];
  const room = (hi - lo) * 0.08 || Math.abs(hi) * 0.1 || 1;
  const least = lo >= 0 && lo - room < 0 ? 0 : lo - room;
  return [least, hi + room];
}

/** The names of lines, each with its colour. */
export function legend(lines, others) {
  const shown = lines.map((each, n) => h("span", {}, h("i", { class: `k${n % 8 + 1}` }), each.name));
  return [...shown, others > 0 ? h("span", {}, `and ${others} more`) : null].filter(Boolean);
}

/** A small line without axes; what it says is in its label. */
export class Spark {
  constructor(label) {
    this.area = h("path", { class: "area" });
    this.line = h("path", { class: "line" });
    this.svg = h("svg", { class: "spark", viewBox: "0 0 240 36", preserveAspectRatio: "none", height: 36, role: "img", "aria-label": label }, this.area, this.line);
  }

  update(values) {
    const top = Math.max(...values, 1e-9), step = 240 / Math.max(values.length - 1, 1);
    const points = values.map((y, n) => `${(n * step).toFixed(1)} ${(34 - (y / top) * 31).toFixed(1)}`);
    const d = points.length > 1 ? `M${points.join("L")}` : "";
    this.line.setAttribute("d", d);
    this.area.setAttribute("d", d ? `${d}L240 36L0 36Z` : "");
  }
}

const PARTS = [["read", "read"], ["close", "close"], ["commit_seconds", "commit"], ["deliver", "deliver"]];

/** Epochs as bars of their parts. */
export class EpochBars {
  constructor() {
    this.svg = h("svg", { class: "parts", height: 84, role: "img", "aria-label": "What the last epochs took, by part" });
    this.said = h("div", { class: "dim num" });
    this.root = h("div", {}, this.svg, h("div", { class: "keys" }, PARTS.map(([, name]) => h("span", {}, h("i", { class: name }), name))), this.said);
  }

  update(epochs) {
    const width = this.svg.clientWidth || 270, tall = 78, wide = 6;
    const shown = epochs.slice(-Math.floor(width / wide));
    const total = (each) => PARTS.reduce((sum, [key]) => sum + Math.max(0, each[key]), 0);
    const sorted = shown.map(total).sort((a, b) => a - b);
    const top = Math.max((sorted[Math.floor(sorted.length * 0.97)] ?? 0) * 1.08, 0.01);
    const bars = [];
    for (const share of [0.5, 1]) {
      const y = tall - (tall - 14) * share;
      bars.push(h("line", { class: "scale", x1: 0, x2: width, y1: y, y2: y }), h("text", { x: 0, y: y - 3 }, seconds(top * share)));
    }
    shown.forEach((each, n) => {
      let y = tall;
      const x = width - (shown.length - n) * wide;
      const title = h("title", {}, `commit ${each.commit}: ${seconds(total(each))}, ${count(each.rows)} rows; ${PARTS.map(([key, name]) => `${name} ${seconds(each[key])}`).join(", ")}`);
      const rects = PARTS.map(([key, name]) => {
        const high = Math.min((Math.max(0, each[key]) / top) * (tall - 14), y);
        y -= high;
        return h("rect", { class: name, x, y, width: wide - 1.5, height: Math.max(high, 0) });
      });
      bars.push(h("g", {}, title, rects));
    });
    this.svg.replaceChildren(...bars);
    const last = epochs.at(-1);
    this.said.textContent = last ? `last ${seconds(total(last))}, ${count(last.rows)} rows` : "no epoch yet";
  }
}
