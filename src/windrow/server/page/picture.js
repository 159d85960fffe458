// The window over the stream's recent rows: which are in it, leave next, come next, or are not final yet.

import { colour, count, h, hideTip, instant, place, showTip, span, value } from "./format.js";
import { api } from "./store.js";

const EVERY = 2500, GLIDE = 900;

/** The window of a query that can be drawn: on a stream of which rows are kept. */
export function windowOf(query, streams) {
  for (const window of query.windows) {
    const stream = streams.find((each) => each.name === window.stream);
    if (stream?.keeps) return { window, stream };
  }
  return null;
}

const isOfFractions = (type) => /^(DOUBLE|FLOAT|DECIMAL)/.test(type), isOfNumbers = (type) => /INT/.test(type);

export class WindowPicture {
  #data = null;
  #dots = [];
  #mark = null;
  #from = null;
  #began = 0;
  #frame = 0;
  #timer = 0;

  constructor(box, { window, stream }) {
    Object.assign(this, { window, stream });
    this.canvas = h("canvas", { role: "img", "aria-label": `Recent rows of ${stream.name} and the window over them`, onmousemove: (event) => this.#tell(event), onmouseleave: hideTip });
    this.said = h("p", { class: "dim small" }, " ");
    const key = (name, text) => h("span", {}, h("i", { class: name }), text);
    const keys = [key("d-in", "in the window"), window.slide ? key("d-leaves", "leaves next") : null, window.slide ? key("d-next", "comes next") : null, key("d-gone", "has left")];
    box.replaceChildren(h("div", { class: "picture" }, this.canvas), h("div", { class: "keys" }, keys), this.said);
    const columns = Object.entries(stream.columns).filter(([name]) => name !== stream.wattr);
    this.column = (columns.find(([, type]) => isOfFractions(type)) ?? columns.find(([, type]) => isOfNumbers(type)))?.[0] ?? null;
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.canvas);
    this.#timer = setInterval(() => { if (!document.hidden) this.read(); }, EVERY);
    this.read();
  }

  close() { this.watcher.disconnect(); clearInterval(this.#timer); cancelAnimationFrame(this.#frame); hideTip(); }

  async read() {
    const wide = Math.round(this.window.range * 1.5);
    const column = this.column ? `&column=${encodeURIComponent(this.column)}` : "";
    const asked = `/api/streams/${encodeURIComponent(this.stream.name)}/recent?span=${wide}&rows=700${column}`;
    try {
      const found = await api(asked);
      this.#take(found);
      const some = found.rows.length < found.total ? `one row in ${count(found.total / found.rows.length)} is drawn` : "every row is drawn";
      this.said.textContent = found.total ? `${this.column ? `${this.column} over ${this.stream.wattr}` : `rows over ${this.stream.wattr}`}; ${some}.` : "No rows below the watermark yet.";
    } catch (error) {
      this.said.textContent = `${error.message}${error.hint ? ` (${error.hint})` : ""}`;
    }
  }

  #take(found) {
    const { is_time: isTime, wattr } = this.stream;
    this.#data = found;
    this.#dots = found.rows.map((row) => ({ tick: isTime ? place(row[wattr], true) * 1e6 : Number(row[wattr]), y: this.column ? Number(row[this.column]) : 0 })).filter((dot) => Number.isFinite(dot.y));
    if (typeof found.watermark !== "number") { this.draw(); return; }
    const still = this.#mark === null || matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#from = still ? found.watermark : this.#mark;
    this.#began = performance.now();
    cancelAnimationFrame(this.#frame);
    this.#glide();
  }

  /** From the watermark that is drawn to the one that is known, without a jump. */
  #glide() {
    const share = Math.min(1, (performance.now() - this.#began) / GLIDE), eased = 1 - (1 - share) ** 3;
    this.#mark = this.#from + (this.#data.watermark - this.#from) * eased;
    this.draw();
    if (share < 1 && !document.hidden) this.#frame = requestAnimationFrame(() => this.#glide());
  }

  #scale(mark, wide) {
    const { range, slide, origin } = this.window, step = slide ?? 0;
    const end = step ? Math.floor((mark - origin) / step) * step + origin : mark;
    const from = mark - range * 1.4, to = Math.max(mark + range * 0.1, Math.min(this.#data?.greatest ?? mark, mark + range * 0.3));
    return { end, start: end - range, leaves: step ? end - range + Math.min(step, range) : end - range, from, to, x: (tick) => ((tick - from) / (to - from)) * wide };
  }

  draw() {
    const { clientWidth: wide, clientHeight: high } = this.canvas;
    if (!wide || this.#mark === null) return;
    const ratio = devicePixelRatio || 1, paint = this.canvas.getContext("2d");
    this.canvas.width = wide * ratio;
    this.canvas.height = high * ratio;
    paint.scale(ratio, ratio);
    const mark = this.#mark, isTime = this.stream.is_time, { slide } = this.window;
    const { end, start, leaves, from, x } = this.#scale(mark, wide), top = 20, floor = high - 20;
    paint.fillStyle = colour("--warn-soft");
    paint.fillRect(x(mark), top, wide - x(mark), floor - top);
    paint.fillStyle = colour("--accent-soft");
    paint.fillRect(x(start), top, x(end) - x(start), floor - top);
    paint.strokeStyle = colour("--line");
    if (slide && x(end) - x(end - slide) > 5) for (let cut = end; cut > from; cut -= slide) line(paint, x(cut), top, floor, 1);
    this.#plot(paint, { x, start, end, leaves, top, floor });
    paint.strokeStyle = colour("--ink");
    line(paint, x(mark), top - 4, floor + 4, 1.4);
    paint.font = "11.5px system-ui";
    paint.fillStyle = colour("--dim");
    label(paint, instant(Math.round(start), isTime), x(start), high - 5, wide);
    label(paint, `watermark ${instant(Math.round(mark), isTime)}`, x(mark), high - 5, wide);
    paint.fillStyle = colour("--accent");
    const about = slide ? `window [${instant(start, isTime)}, ${instant(end, isTime)})` : `the past ${span(this.window.range, isTime)}`;
    label(paint, about, (Math.max(x(start), 0) + x(end)) / 2, 13, wide);
    paint.fillStyle = colour("--warn");
    if (wide - x(mark) > 74) label(paint, "not final yet", (x(mark) + wide) / 2, 13, wide);
  }

  #kind(tick, { start, end, leaves }) {
    if (tick >= end) return "next";
    if (tick < start) return "gone";
    return tick < leaves ? "leaves" : "in";
  }

  #plot(paint, at) {
    const ys = this.#dots.map((dot) => dot.y), low = Math.min(...ys), high = Math.max(...ys);
    const inks = { in: colour("--accent"), leaves: colour("--str"), next: colour("--wks"), gone: colour("--dim") };
    for (const dot of this.#dots) {
      if (dot.tick > this.#mark) continue;  // it comes while the picture glides
      const kind = this.#kind(dot.tick, at), share = high > low ? (dot.y - low) / (high - low) : 0.5;
      paint.globalAlpha = kind === "gone" ? 0.35 : 0.85;
      paint.fillStyle = inks[kind];
      paint.beginPath();
      paint.arc(at.x(dot.tick), (dot.at = at.floor - 6 - share * (at.floor - at.top - 12)), kind === "gone" ? 1.7 : 2.3, 0, 7);
      paint.fill();
    }
    paint.globalAlpha = 1;
  }

  #tell(event) {
    if (this.#mark === null) return;
    const { left, top } = this.canvas.getBoundingClientRect(), at = this.#scale(this.#mark, this.canvas.clientWidth);
    const x = event.clientX - left, y = event.clientY - top;
    const away = (dot) => Math.hypot(at.x(dot.tick) - x, (dot.at ?? -99) - y);
    const found = this.#dots.reduce((best, dot) => (away(dot) < away(best ?? dot) || !best ? dot : best), null);
    if (!found || away(found) > 9) { hideTip(); return; }
    const told = { in: "in the window", leaves: "leaves with the next slide", next: "comes in with the next slide", gone: "has left the window" };
    showTip(event, h("div", {}, h("b", {}, `${this.stream.wattr} ${instant(found.tick, this.stream.is_time)}`), this.column ? h("span", { class: "num" }, `${this.column} ${value(found.y)}`) : null), h("div", {}, told[this.#kind(found.tick, at)]));
  }
}

function line(paint, x, top, bottom, width) {
  paint.lineWidth = width;
  paint.beginPath();
  paint.moveTo(x, top);
  paint.lineTo(x, bottom);
  paint.stroke();
}

function label(paint, text, x, y, wide) {
  const width = paint.measureText(text).width;
  paint.fillText(text, Math.min(Math.max(x - width / 2, 2), wide - width - 2), y);
}
