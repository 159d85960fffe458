// The window over the stream's recent rows: which are in it now, which have left, which are not final yet.

import { colour, h, instant, place } from "./format.js";
import { api } from "./store.js";

const UNITS = { MICROSECOND: 1, MILLISECOND: 1e3, SECOND: 1e6, MINUTE: 6e7, HOUR: 3.6e9, DAY: 8.64e10, WEEK: 6.048e11 };

function ticks(number, unit) {
  const known = UNITS[(unit ?? "").toUpperCase().replace(/S$/, "")];
  return unit && !known ? null : Number(number) * (known ?? 1);
}

/** The first window of a query over one of these streams: its stream, range and slide in ticks. */
export function windowOf(sql, streams) {
  for (const { name } of streams) {
    const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const found = new RegExp(`\`?\\b${escaped}\\b\`?\\s*\\[\\s*RANGE\\s+([\\d.]+)\\s*(\\w+)?(?:\\s+SLIDE\\s+([\\d.]+)\\s*(\\w+)?)?`, "i").exec(sql);
    if (!found) continue;
    const isUnit = (word) => word && word.toUpperCase().replace(/S$/, "") in UNITS;
    const range = ticks(found[1], isUnit(found[2]) ? found[2] : null);
    const slide = found[3] ? ticks(found[3], isUnit(found[4]) ? found[4] : null) : null;
    if (range) return { stream: name, range, slide };
  }
  return null;
}

export class WindowPicture {
  #data = null;
  constructor(box, window, stream) {
    Object.assign(this, { window, stream });
    this.canvas = h("canvas", { role: "img", "aria-label": `Recent rows of ${stream.name} and the window over them` });
    this.said = h("p", { class: "dim" });
    box.append(h("div", { class: "picture" }, this.canvas), this.said);
    this.column = Object.entries(stream.columns).find(([name, type]) => name !== stream.wattr && /DOUBLE|FLOAT|DECIMAL/.test(type))?.[0] ?? Object.entries(stream.columns).find(([name, type]) => name !== stream.wattr && /INT/.test(type))?.[0];
  }

  async read() {
    const span = Math.round(this.window.range * 1.8);
    const column = this.column ? `&column=${encodeURIComponent(this.column)}` : "";
    try {
      this.#data = await api(`/api/streams/${encodeURIComponent(this.stream.name)}/recent?span=${span}&rows=700${column}`);
      this.said.textContent = `${this.column ? `${this.column} over ${this.stream.wattr}; ` : ""}a sample of the ${this.#data.total.toLocaleString("en-US")} rows of this stretch.`;
    } catch (error) {
      this.#data = null;
      this.said.textContent = `${error.message}${error.hint ? ` (${error.hint})` : ""}`;
    }
    this.draw();
  }

  draw() {
    const { clientWidth: wide, clientHeight: high } = this.canvas;
    if (!wide) return;
    const scale = devicePixelRatio || 1, paint = this.canvas.getContext("2d");
    this.canvas.width = wide * scale;
    this.canvas.height = high * scale;
    paint.scale(scale, scale);
    const isTime = this.stream.is_time;
    const mark = this.#data?.watermark ?? this.stream.watermark;
    if (typeof mark !== "number") return;
    const { range, slide } = this.window;
    const end = slide ? Math.floor(mark / slide) * slide : mark;
    const newest = Math.max(this.#data?.greatest ?? mark, mark);
    const from = mark - range * 1.45, to = Math.max(newest, mark + range * 0.12);
    const x = (tick) => ((tick - from) / (to - from)) * wide, floor = high - 24;
    paint.fillStyle = colour("--warn-soft");
    paint.fillRect(x(mark), 4, wide - x(mark), floor - 4);
    paint.fillStyle = colour("--accent-soft");
    paint.fillRect(x(end - range), 4, x(end) - x(end - range), floor - 4);
    paint.strokeStyle = colour("--line");
    for (let cut = end; slide && slide < range && x(cut) - x(cut - slide) > 5 && cut > from; cut -= slide) line(paint, x(cut), 4, floor, 1);
    this.#dots(paint, x, end, range, floor, isTime);
    paint.strokeStyle = colour("--ink");
    line(paint, x(mark), 0, floor + 4, 1.4);
    paint.fillStyle = colour("--dim");
    paint.font = "11.5px system-ui";
    label(paint, `window from ${instant(end - range, isTime)}`, x(end - range), high - 6, wide);
    label(paint, `watermark ${instant(mark, isTime)}`, x(mark), high - 6, wide);
    if (slide) { paint.fillStyle = colour("--accent"); label(paint, `now: [${instant(end - range, isTime)}, ${instant(end, isTime)})`, (x(end - range) + x(end)) / 2, 16, wide); }
    paint.fillStyle = colour("--warn");
    if (wide - x(mark) > 60) label(paint, "not final yet", (x(mark) + wide) / 2, 16, wide);
  }

  #dots(paint, x, end, range, floor, isTime) {
    const rows = this.#data?.rows ?? [];
    if (!rows.length) return;
    const values = rows.map((row) => (this.column ? Number(row[this.column]) : 0)).filter(Number.isFinite);
    const low = Math.min(...values), high = Math.max(...values);
    const inside = colour("--accent"), outside = colour("--dim");
    for (const row of rows) {
      const tick = isTime ? place(row[this.stream.wattr], true) * 1e6 : Number(row[this.stream.wattr]);
      const isIn = tick >= end - range && tick < end;
      const share = this.column && high > low ? (Number(row[this.column]) - low) / (high - low) : 0.5;
      paint.globalAlpha = isIn ? 0.85 : 0.4;
      paint.fillStyle = isIn ? inside : outside;
      paint.beginPath();
      paint.arc(x(tick), floor - 8 - share * (floor - 34), isIn ? 2.2 : 1.7, 0, 7);
      paint.fill();
    }
    paint.globalAlpha = 1;
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
