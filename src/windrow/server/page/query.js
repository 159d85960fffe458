// One query: its chart with zoom and pause, its answers page by page, its plan, its window, its costs.

import { bytes, count, h, instant, place, rowsTable, say, seconds, span } from "./format.js";
import { api, on, path, store } from "./store.js";
import { LineChart, legend } from "./charts.js";
import { lines, shape } from "./series.js";
import { chips } from "./home.js";
import { planGraph } from "./plan.js";
import { WindowPicture, windowOf } from "./picture.js";

const PAGE = 100;

export function showQuery(main, name, signal) {
  const box = h("div", { class: "page" }, h("p", { class: "dim" }, "Loading …"));
  main.append(box);
  let page = null;
  const look = () => {
    const query = store.query(name);
    if (!store.look) return;
    if (!query) {
      if (!page) box.replaceChildren(h("div", { class: "card" }, h("h1", {}, "No such query"), h("p", { class: "dim" }, `There is no query ${name}. `, h("a", { href: "#/" }, "Home"))));
      return;
    }
    if (!page || page.id !== query.id) {
      page?.close();
      page = new QueryPage(box, query);
    }
    page.look(query);
  };
  on("look", signal, look);
  on("answers", signal, ({ detail }) => { if (detail === name) page?.draw(); });
  addEventListener("theme", () => page?.restyle(), { signal });
  signal.addEventListener("abort", () => page?.close());
  look();
}

class QueryPage {
  gaps = [];
  isPaused = false;
  constructor(box, query) {
    this.id = query.id;
    this.query = query;
    this.how = shape(query);
    this.dot = h("i", { class: "dot" });
    this.fresh = h("span", { class: "dim num" });
    this.chips = h("div", { class: "chips" });
    this.facts = h("dl", {});
    this.cost = h("pre", { class: "dim" });
    this.legend = h("div", { class: "legend" });
    this.plan = h("div", { class: "plan" });
    this.text = h("pre", { class: "plain" });
    this.chartBox = h("div", { class: "chart tall" });
    this.answers = h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Answers" });
    this.place = h("span", { class: "dim" });
    this.older = h("button", { type: "button", onclick: () => this.page(this.next) }, "Older");
    this.newest = h("button", { type: "button", onclick: () => this.page("end") }, "Newest");
    box.replaceChildren(this.#title(query), this.#chart(query), h("div", { class: "two" }, this.#planCard(), h("div", { class: "stack" }, this.#picture(query), this.#facts())), this.#table(query));
    this.#begin(query);
    this.details();
    this.page("end");
    this.timer = setInterval(() => { if (!document.hidden) { this.details(); this.picture?.read(); } }, 4000);
  }

  close() { clearInterval(this.timer); this.chart?.close(); }
  restyle() { this.chart?.restyle(); this.picture?.draw(); }

  /** The plan as it is known without waiting for the epoch under way, as all that `details` tells does. */
  async #begin(query) {
    const found = await api("/api/explain", { sql: query.sql }).catch(() => null);
    if (found?.[0]?.plan && !this.drawn) planGraph(this.plan, found[0].plan);
  }

  #title(query) {
    const drop = h("button", { type: "button", onclick: () => this.drop(drop) }, "Drop");
    return h("div", { class: "stack" }, h("div", { class: "title" }, h("h1", {}, query.name), this.fresh, h("span", { class: "push" }), drop), h("pre", { class: "sql" }, query.sql), this.chips);
  }

  #chart(query) {
    if (this.how.kind !== "lines") return h("span", {});
    this.value = this.how.values[0];
    const choose = h("select", { "aria-label": "Column to draw", onchange: () => { this.value = choose.value; this.draw(); } }, this.how.values.map((each) => h("option", {}, each)));
    const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => { this.isPaused = !this.isPaused; pause.setAttribute("aria-pressed", this.isPaused); pause.textContent = this.isPaused ? "Go on" : "Pause"; this.draw(); } }, "Pause");
    const whole = h("button", { type: "button", hidden: true, onclick: () => this.chart.unzoom() }, "Whole");
    const card = h("section", { class: "card stack", "aria-label": "Chart" }, h("div", { class: "tools" }, h("h2", {}, "Answers over time"), choose, h("span", { class: "dim" }, "drag to zoom"), h("span", { class: "push" }), whole, pause), this.chartBox, this.legend);
    this.chart = new LineChart(this.chartBox, { isTime: query.is_time, tall: true, onZoom: (is) => { whole.hidden = !is; } });
    return card;
  }

  #planCard() {
    const more = h("details", {}, h("summary", {}, "The plan as text"), this.text);
    return h("section", { class: "card", "aria-label": "Plan" }, h("h2", {}, "Plan"), this.plan, more);
  }

  #picture(query) {
    const over = store.look.streams.filter((each) => query.reads.includes(each.name));
    const window = windowOf(query.sql, over);
    if (!window) return null;
    const body = h("div", {});
    const stream = over.find((each) => each.name === window.stream);
    this.picture = new WindowPicture(body, window, stream);
    queueMicrotask(() => this.picture.read());
    return h("section", { class: "card", "aria-label": "Window" }, h("h2", {}, "What the window holds now"), body);
  }

  #facts() { return h("section", { class: "card stack", "aria-label": "State and cost" }, h("h2", {}, "State and cost"), this.facts, this.cost); }

  #table(query) {
    const link = (kind, text) => h("a", { href: "#", onclick: (event) => { event.preventDefault(); download(query.name, kind); } }, text);
    return h("section", { class: "card stack", "aria-label": "Answers as a table" }, h("div", { class: "tools" }, h("h2", {}, "Answers"), this.place, h("span", { class: "push" }), this.newest, this.older, link("text/csv", "CSV"), link("application/json", "JSON"), link("application/vnd.apache.arrow.stream", "Arrow")), this.answers);
  }

  async details() {
    const found = await api(path(this.query.name)).catch(() => null);
    if (!found) return;
    this.gaps = found.gaps.map((gap) => ({ first: place(gap.first, found.is_time), last: place(gap.last, found.is_time) }));
    const drawn = JSON.stringify(found.plan.plan);
    if (drawn !== this.drawn) { this.drawn = drawn; planGraph(this.plan, found.plan); }
    say(this.text, found.text);
    const late = store.look.streams.filter((each) => this.query.reads.includes(each.name)).map((each) => each.late).reduce((a, b) => a + b, 0);
    const facts = [["answers", count(found.rows)], ["answered up to", instant(found.clock, found.is_time)], ["complete from", found.complete_from === null ? "the beginning" : instant(found.complete_from, found.is_time)], ["state of its own", bytes(found.state_bytes)], ["part of all cost", `${(found.cost * 100).toFixed(1)} %`], ["shares", found.shares ?? "nothing"], ["late rows of its streams", count(late)], ["windows left out", found.missing ? count(found.missing) : found.keeps_all ? `none: ${found.keeps_all}` : "none so far"], ["into", found.sink ?? "the log of answers"], ["answers kept", bytes(found.log_bytes)]];
    const key = JSON.stringify(facts);
    if (key !== this.told) { this.told = key; this.facts.replaceChildren(...facts.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])); }
    say(this.cost, found.plan.observed.join("\n"));
  }

  look(query) {
    this.query = query;
    say(this.fresh, query.status === "running" ? `running, at ${instant(query.clock, query.is_time)}` : query.status);
    const key = JSON.stringify([query.rows, query.missing, query.error]);
    if (key !== this.chipped) { this.chipped = key; this.chips.replaceChildren(...chips(query)); }
    this.draw();
  }

  draw() {
    if (!this.chart || this.isPaused) { store.answers(this.query.name); return; }
    const rows = store.answers(this.query.name);
    const data = lines(this.query, rows, this.how, this.value, this.gaps);
    const step = data.xs.length > 1 ? Math.min(...data.xs.slice(1, 50).map((x, n) => x - data.xs[n])) : 1;
    this.chart.update(data, this.gaps.map((gap) => ({ from: gap.first - step, to: gap.last })));
    const names = JSON.stringify([data.lines.map((each) => each.name), data.others]);
    if (names !== this.named) { this.named = names; this.legend.replaceChildren(...legend(data.lines.map((each) => ({ name: this.how.keys.length ? `${this.how.keys.join(", ")} ${each.name}` : each.name })), data.others)); }
  }

  async page(before) {
    const found = await api(`${path(this.query.name)}/results?before=${encodeURIComponent(before)}&limit=${PAGE}`).catch(() => null);
    if (!found) return;
    this.next = found.next;
    this.older.disabled = !found.more;
    say(this.place, before === "end" ? `the newest ${found.rows.length}` : `before ${before}`);
    this.answers.replaceChildren(found.rows.length ? rowsTable(found.columns, found.rows) : h("p", { class: "dim" }, "no answers yet"));
  }

  async drop(button) {
    if (button.textContent === "Drop") {
      button.textContent = "Really drop it and its answers?";
      setTimeout(() => { button.textContent = "Drop"; }, 4000);
      return;
    }
    try { await api(path(this.query.name), undefined, "DELETE"); location.hash = "#/"; } catch (error) { button.textContent = error.message; }
  }
}

async function download(name, kind) {
  const endings = { "text/csv": "csv", "application/json": "json", "application/vnd.apache.arrow.stream": "arrows" };
  const answer = await fetch(`${path(name)}/results?limit=10000`, { headers: { accept: kind } });
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: `${name}.${endings[kind]}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
export { seconds, span };
