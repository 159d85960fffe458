// Home: streams, standing queries with live charts, what a window holds, and what epochs take.

import { count, h, instant, place, rate, rowsTable, say, seconds, span, tabs } from "./format.js";
import { api, on, path, store } from "./store.js";
import { EpochBars, LineChart, Spark } from "./charts.js";
import { lines, shape, stretches } from "./series.js";
import { WindowPicture, windowOf } from "./picture.js";
import { guide } from "./guide.js";

const SHOWN_INSTANTS = 90;
const FIRST = "CREATE STREAM traffic (segment BIGINT, speed DOUBLE, sensor BIGINT, ts TIMESTAMP)\n  WATTR ts SLACK 5 SECONDS KEEP 20 MINUTES SHEDDABLE\n  FROM 'generator:traffic?rate=3000&event_rate=100&disorder=bounded'";

export function showHome(main, signal) {
  const streams = h("div", { id: "streams" }, h("p", { class: "dim" }, "No stream yet."));
  const epochs = new EpochBars();
  const cards = h("div", { class: "grid", id: "queries" });
  const visit = h("div", { id: "guide" });
  const window = new HomeWindow();
  const left = h("section", { class: "stack", "aria-label": "Streams and epochs" },
    h("div", { class: "card" }, h("h2", {}, "Streams"), streams),
    h("div", { class: "card" }, h("h2", {}, "Epochs"), epochs.root));
  main.append(h("h1", { class: "skip" }, "Windrow: standing queries now"), h("div", { class: "home" }, left, h("section", { class: "stack", "aria-label": "Standing queries" }, visit, cards, window.root)));
  const shown = { streams: new Map(), cards: new Map() };
  guide(visit, signal);

  const look = () => {
    if (!store.look) return;
    sync(streams, shown.streams, store.look.streams, (each) => each.name, (each) => new StreamRow(each));
    for (const each of store.look.streams) shown.streams.get(each.name).update(each);
    sync(cards, shown.cards, store.look.queries, (each) => each.id, (each) => new Card(each));
    for (const each of store.look.queries) shown.cards.get(each.id).look(each);
    if (!store.look.queries.length) sayEmpty(cards, store.look.streams);
    window.look(store.look);
    epochs.update(store.epochs);
  };
  on("look", signal, look);
  on("answers", signal, ({ detail }) => { for (const card of shown.cards.values()) if (card.name === detail) card.draw(); });
  addEventListener("theme", () => { for (const card of shown.cards.values()) card.chart?.restyle(); window.picture?.draw(); }, { signal });
  signal.addEventListener("abort", () => { for (const card of shown.cards.values()) card.close(); window.close(); });
  look();
}

/** What to do where nothing is asked yet. */
function sayEmpty(box, streams) {
  const key = streams.length ? "queries" : "streams";
  if (box.dataset.empty === key && box.children.length) return;
  box.dataset.empty = key;
  const said = h("p", { class: "bad", role: "alert" });
  const begin = h("button", { type: "button", class: "primary", onclick: () => { begin.disabled = true; api("/api/statements", { sql: FIRST }).catch((error) => { begin.disabled = false; said.textContent = error.message; }); } }, "Begin with a bundled stream");
  const write = h("a", { href: "#/console" }, "Write one in the console");
  box.replaceChildren(streams.length
    ? h("div", { class: "card stack wide" }, h("h3", {}, "No standing query yet"), h("p", {}, "A standing query is asked once and answered for ever, as rows come. ", write, "."))
    : h("div", { class: "card stack wide" }, h("h3", {}, "Nothing to read yet"), h("p", {}, "Declare a stream in the ", h("a", { href: "#/console" }, "console"), ": files, Kafka, or rows that are pushed over HTTP. Or begin with 3,000 readings a second of made-up traffic, which runs in this process:"), h("pre", { class: "sql" }, FIRST), said, h("div", { class: "tools" }, begin)));
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

/** A stream: its rate, and small lines for its lag and for late and shed rows. */
class StreamRow {
  constructor(stream) {
    const part = (kind = null) => h("span", { class: kind });
    Object.assign(this, { rate: part("num"), mark: part("num") });
    this.spark = new Spark(`Rows per second of ${stream.name}, the last minutes`, rate);
    const meter = (name, what, say_) => {
      const spark = new Spark(`${what} of ${stream.name}, the last minutes`, say_, 16), figure = part("num");
      return { spark, figure, root: h("div", { class: "meter", title: what }, part("dim"), spark.svg, figure), name };
    };
    this.meters = {
      lag: meter("lag", "From the watermark to the newest row", (y) => span(Math.round(y), stream.is_time)),
      late: meter("late", "Late rows", (y) => `${count(y)} late rows`),
      shed: meter("shed", "Rows dropped under overload", (y) => `${count(y)} rows shed`),
    };
    for (const each of Object.values(this.meters)) each.root.firstChild.textContent = each.name;
    this.root = h("div", { class: "stream" },
      h("div", { class: "row" }, h("b", { title: stream.source ?? "" }, stream.name), this.rate),
      this.spark.svg,
      h("div", { class: "row small" }, h("span", { class: "dim" }, "watermark"), this.mark),
      Object.values(this.meters).map((each) => each.root));
  }

  update(stream) {
    const line = store.lines[stream.name] ?? [], times = line.map((each) => each.time);
    const more = (key) => line.map((each, n) => Math.max(0, each[key] - (line[n - 1] ?? each)[key]));
    say(this.rate, rate(stream.rate));
    say(this.mark, stream.sealed ? "at its end" : instant(stream.watermark, stream.is_time));
    this.spark.update(line.map((each) => each.rate), times);
    const { lag, late, shed } = this.meters;
    say(lag.figure, stream.sealed ? "–" : span(stream.lag, stream.is_time));
    lag.spark.update(line.map((each) => each.lag ?? 0), times);
    for (const each of [late, shed]) {
      say(each.figure, count(stream[each.name]));
      each.root.classList.toggle("some", stream[each.name] > 0);
      each.spark.update(more(each.name), times);
    }
  }
}

/** The picture of one query's window, chosen among those that can be drawn. */
class HomeWindow {
  constructor() {
    this.body = h("div", {});
    this.pick = h("select", { "aria-label": "Query whose window is drawn", onchange: () => { this.chosen = this.pick.value; this.#show(store.look); } });
    this.text = h("code", { class: "dim" });
    this.root = h("section", { class: "card", hidden: true, "aria-label": "Window" }, h("div", { class: "tools spaced" }, h("h2", {}, "What the window holds now"), h("span", { class: "push" }), this.text, this.pick), this.body);
  }

  look(look) {
    const found = look.queries.filter((each) => windowOf(each, look.streams)).map((each) => each.name);
    const key = JSON.stringify(found);
    this.root.hidden = !found.length;
    if (key === this.key) return;
    this.key = key;
    if (!found.includes(this.chosen)) this.chosen = found[0];
    this.pick.replaceChildren(...found.map((name) => h("option", { value: name, selected: name === this.chosen }, name)));
    this.#show(look);
  }

  #show(look) {
    const query = look.queries.find((each) => each.name === this.chosen), found = query && windowOf(query, look.streams);
    if (this.picture && this.shown === query?.id) return;
    this.close();
    if (!found) return;
    this.shown = query.id;
    this.text.textContent = found.window.text;
    this.picture = new WindowPicture(this.body, found);
  }

  close() { this.picture?.close(); this.picture = null; this.shown = null; }
}

class Card {
  gaps = [];
  constructor(query) {
    this.name = query.name;
    this.how = shape(query);
    this.dot = h("i", { class: "dot" });
    this.fresh = h("span", { class: "dim num" });
    this.chips = h("div", { class: "chips" });
    this.box = h("div", { class: this.how.kind === "lines" ? "chart" : "table", "aria-label": `Newest answers of ${query.name}`, role: "group" });
    let beside = [];
    if (this.how.kind === "lines") {
      this.chart = new LineChart(this.box, { isTime: query.is_time });
      this.value = this.how.values[0];
      const choose = (name) => { this.value = name; this.draw(); };
      beside = [this.chart.legend, this.how.values.length > 1 ? tabs("Column to draw", this.how.values, this.value, choose) : null];
    }
    this.root = h("article", { class: "card q", "data-query": query.name },
      h("div", { class: "row" }, h("h3", {}, this.dot, h("a", { href: `#/query/${encodeURIComponent(query.name)}` }, query.name)), this.fresh),
      h("div", { class: "sub", title: query.sql }, query.summary), this.box, ...beside, this.chips);
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
    const ago = store.age(this.name);
    this.fresh.title = ago === null ? "answered up to this instant" : `answered up to this instant; the newest answer came ${seconds(ago)} ago`;
    const key = JSON.stringify([query.pattern, query.shared_with, query.missing, query.max_gap, query.error, query.sink, query.every, count(query.rows)]);
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
      const instants = [...new Set(rows.map((row) => row.$x))].sort((a, b) => a - b);
      const data = lines(rows, this.how, this.value, this.gaps, instants.at(-SHOWN_INSTANTS) ?? -Infinity);
      this.chart.update(data, stretches(this.gaps, instants), this.value, this.how.keys);
      return;
    }
    const newest = rows.slice(-6).reverse();
    const key = JSON.stringify(newest);
    if (key === this.drawn) return;
    this.drawn = key;
    this.box.replaceChildren(newest.length ? rowsTable(this.query.columns, newest) : h("p", { class: "dim" }, "No answers yet."));
  }
}

export function chips(query) {
  const chip = (text, kind = "", title = null) => h("span", { class: `chip ${kind}`, title }, text);
  const found = [];
  if (query.pattern) found.push(chip(query.pattern, query.pattern, PATTERNS[query.pattern]));
  found.push(chip(`${count(query.rows)} answers`));
  if (query.shared_with) found.push(chip(`shares with ${query.shared_with}`, "", `one state for it and ${query.shared_with} other ${query.shared_with === 1 ? "query" : "queries"}: ${query.shares}`));
  if (query.max_gap !== null) found.push(chip(`gaps ≤ ${query.max_gap}`, "", `under overload at most so many windows in a row are left out${query.slide && query.is_time ? `: ${span(query.max_gap * query.slide, true)} of the stream's time` : ""}`));
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
