// Home: streams, standing queries with live charts, and what epochs take.

import { bytes, count, h, instant, place, rowsTable, say, short, span } from "./format.js";
import { api, on, path, store } from "./store.js";
import { EpochBars, LineChart, Spark, legend } from "./charts.js";
import { lines, shape } from "./series.js";
import { guide } from "./guide.js";

const SHOWN_INSTANTS = 90;

export function showHome(main, signal) {
  const streams = h("div", { id: "streams" }, h("p", { class: "dim" }, "No stream yet."));
  const epochs = new EpochBars();
  const cards = h("div", { class: "grid", id: "queries" });
  const visit = h("div", { id: "guide" });
  const left = h("section", { class: "stack", "aria-label": "Streams and epochs" },
    h("div", { class: "card" }, h("h2", {}, "Streams"), streams),
    h("div", { class: "card" }, h("h2", {}, "Epochs"), epochs.root));
  main.append(h("h1", { class: "skip" }, "Windrow: standing queries now"), h("div", { class: "home" }, left, h("section", { class: "stack", "aria-label": "Standing queries" }, visit, cards)));
  const shown = { streams: new Map(), cards: new Map() };
  guide(visit, signal);

  const look = () => {
    if (!store.look) return;
    sync(streams, shown.streams, store.look.streams, (each) => each.name, (each) => new StreamRow(each));
    for (const each of store.look.streams) shown.streams.get(each.name).update(each);
    sync(cards, shown.cards, store.look.queries, (each) => each.id, (each) => new Card(each));
    for (const each of store.look.queries) shown.cards.get(each.id).look(each);
    if (!store.look.queries.length && !cards.children.length) cards.append(h("div", { class: "card" }, h("p", {}, "No standing query yet. ", h("a", { href: "#/console" }, "Write one in the console."))));
    epochs.update(store.epochs);
  };
  on("look", signal, look);
  on("answers", signal, ({ detail }) => { for (const card of shown.cards.values()) if (card.name === detail) card.draw(); });
  addEventListener("theme", () => { for (const card of shown.cards.values()) card.chart?.restyle(); }, { signal });
  signal.addEventListener("abort", () => { for (const card of shown.cards.values()) card.close(); });
  look();
}

/** Keep the children of a box in step with a list: those that stay are not touched. */
function sync(box, known, items, key, make) {
  const wanted = new Set(items.map(key));
  for (const [name, each] of known) if (!wanted.has(name)) { each.root.remove(); each.close?.(); known.delete(name); }
  for (const item of items) {
    if (known.has(key(item))) continue;
    if (!known.size) box.replaceChildren();
    const made = make(item);
    known.set(key(item), made);
    box.append(made.root);
  }
}

class StreamRow {
  constructor(stream) {
    const part = () => h("span", {});
    Object.assign(this, { rate: part(), mark: part(), lag: part(), late: part(), shed: part() });
    this.rate.className = "num";
    this.spark = new Spark(`Rows per second of ${stream.name}, the last minutes`);
    this.root = h("div", { class: "stream" },
      h("div", { class: "row" }, h("b", { title: stream.source ?? "" }, stream.name), this.rate),
      h("div", { class: "row dim" }, this.mark, this.lag), this.spark.svg,
      h("div", { class: "row dim num" }, this.late, this.shed));
  }

  update(stream) {
    say(this.rate, `${short(Math.round(stream.rate))} rows/s`);
    say(this.mark, stream.sealed ? "at its end" : `watermark ${instant(stream.watermark, stream.is_time)}`);
    say(this.lag, stream.sealed ? "" : `lag ${span(stream.lag, stream.is_time)}`);
    say(this.late, `${count(stream.late)} late`);
    say(this.shed, `${count(stream.shed)} shed`);
    this.late.className = stream.late ? "warn" : "";
    this.shed.className = stream.shed ? "warn" : "";
    this.spark.update((store.lines[stream.name] ?? []).map((each) => each.rate));
  }
}

class Card {
  gaps = [];
  constructor(query) {
    this.name = query.name;
    this.how = shape(query);
    this.dot = h("i", { class: "dot" });
    this.fresh = h("span", { class: "dim num" });
    this.chips = h("div", { class: "chips" });
    this.legend = h("div", { class: "legend" });
    this.box = h("div", { class: this.how.kind === "lines" ? "chart" : "table", "aria-label": `Newest answers of ${query.name}`, role: "group" });
    const what = query.sql.replace(/\s+/g, " ");
    this.root = h("article", { class: "card q", "data-query": query.name },
      h("div", { class: "row" }, h("h3", {}, this.dot, h("a", { href: `#/query/${encodeURIComponent(query.name)}` }, query.name)), this.fresh),
      h("div", { class: "sub", title: query.sql }, what), this.box, this.legend, this.chips);
    if (this.how.kind === "lines") {
      this.chart = new LineChart(this.box, { isTime: query.is_time });
      this.value = this.how.values[0];
    }
    this.key = "";
    this.watcher = new IntersectionObserver(([entry]) => { this.isSeen = entry.isIntersecting; if (this.isSeen && this.query) this.draw(); }, { rootMargin: "300px" });
    this.watcher.observe(this.root);
  }

  close() { this.watcher.disconnect(); this.chart?.close(); }

  look(query) {
    this.query = query;
    this.dot.className = `dot ${query.status}`;
    this.dot.title = query.status;
    say(this.fresh, query.status === "running" ? `at ${instant(query.clock, query.is_time)}` : query.status);
    const key = JSON.stringify([query.pattern, query.shares, query.missing, query.max_gap, query.error, query.sink, query.every, count(query.rows)]);
    if (key !== this.key) {
      const before = this.key;
      this.key = key;
      this.chips.replaceChildren(...chips(query));
      if (query.missing && JSON.parse(before || "[]")[2] !== query.missing) this.readGaps();
    }
    this.draw();
  }

  async readGaps() {
    const found = await api(path(this.name)).catch(() => null);
    if (!found) return;
    this.gaps = found.gaps.map((gap) => ({ first: place(gap.first, this.query.is_time), last: place(gap.last, this.query.is_time) }));
    this.draw();
  }

  /** Only what is near the screen is fetched and drawn, however many queries there are. */
  draw() {
    if (!this.isSeen) return;
    const rows = store.answers(this.name);
    if (this.chart) {
      const xs = [...new Set(rows.map((row) => row.$x))].sort((a, b) => a - b);
      const from = xs.at(-SHOWN_INSTANTS) ?? -Infinity;
      const data = lines(this.query, rows, this.how, this.value, this.gaps, from);
      const step = xs.length > 1 ? (xs.at(-1) - xs[0]) / Math.max(xs.length - 1, 1) : 1;
      this.chart.update(data, this.gaps.map((gap) => ({ from: gap.first - Math.min(step, 1e9) / 2, to: gap.last + step / 2 })));
      const names = JSON.stringify([data.lines.map((each) => each.name), data.others]);
      if (names !== this.named) { this.named = names; this.legend.replaceChildren(...legend(this.how.keys.length ? data.lines.map((each) => ({ name: `${this.how.keys.join(", ")} ${each.name}` })) : data.lines, data.others), h("span", { class: "dim" }, this.how.keys.length ? `· ${this.value}` : "")); }
      return;
    }
    const columns = this.query.columns;
    const newest = rows.slice(-6).reverse();
    const key = JSON.stringify(newest);
    if (key === this.drawn) return;
    this.drawn = key;
    this.box.replaceChildren(newest.length ? rowsTable(columns, newest) : h("p", { class: "dim" }, "no answers yet"));
  }
}

export function chips(query) {
  const chip = (text, kind = "", title = null) => h("span", { class: `chip ${kind}`, title }, text);
  const found = [];
  if (query.pattern) found.push(chip(query.pattern, query.pattern, PATTERNS[query.pattern]));
  found.push(chip(`${count(query.rows)} answers`));
  if (query.shares) found.push(chip("shares state", "", `it shares ${query.shares}`));
  if (query.max_gap !== null) found.push(chip(`gaps ≤ ${query.max_gap}`, "", "at most so many windows in a row are left out under overload"));
  if (query.missing) found.push(chip(`${count(query.missing)} windows left out`, "warn"));
  if (query.sink) found.push(chip(`into ${query.sink}`));
  if (query.error) found.push(chip(query.error.message, "bad", query.error.hint));
  return found;
}

export const PATTERNS = {
  MON: "monotonic: answers never leave",
  WKS: "weakest: rows leave in the order in which they came",
  WK: "weak: when a row leaves is known when it comes",
  STR: "strict: when a row leaves is not known before, so retractions tell",
};
export { bytes };
