// One query: its chart with zoom and pause, its answers page by page, its plan, its window, its costs.

import { bytes, count, h, instant, place, rowsTable, say, seconds, tabs } from "./format.js";
import { api, on, path, store } from "./store.js";
import { LineChart } from "./charts.js";
import { lines, shape, stretches } from "./series.js";
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
      if (!page) box.replaceChildren(h("div", { class: "card" }, h("h1", {}, "No such query"), h("p", { class: "dim" }, "There is no query ", h("code", {}, name), ". ", h("a", { href: "#/" }, "Home"))));
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
    this.cost = h("ul", { class: "plainlist num" });
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
    this.timer = setInterval(() => { if (!document.hidden) this.details(); }, 4000);
  }

  close() { clearInterval(this.timer); this.chart?.close(); this.picture?.close(); }
  restyle() { this.chart?.restyle(); this.picture?.draw(); }

  /** The plan as it is known without waiting for the epoch under way, as all that `details` tells does. */
  async #begin(query) {
    const found = await api("/api/explain", { sql: query.sql }).catch(() => null);
    if (found?.[0]?.plan && !this.drawn) planGraph(this.plan, found[0].plan);
  }

  #title(query) {
    const drop = h("button", { type: "button", onclick: () => this.drop(drop) }, "Drop");
    const edit = h("a", { class: "button", href: "#/console", onclick: () => sessionStorage.setItem("statement", query.sql) }, "Open in the console");
    return h("div", { class: "stack" }, h("div", { class: "title" }, this.dot, h("h1", {}, query.name), this.fresh, h("span", { class: "push" }), edit, drop), h("pre", { class: "sql" }, query.sql), this.chips);
  }

  #chart(query) {
    if (this.how.kind !== "lines") return h("span", { hidden: true });
    this.value = this.how.values[0];
    const choose = (name) => { this.value = name; this.chart.unzoom(); this.isPaused = false; said(); this.draw(); };
    const said = () => { pause.setAttribute("aria-pressed", this.isPaused); pause.textContent = this.isPaused ? "Go on" : "Pause"; };
    const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => { this.isPaused = !this.isPaused; said(); this.draw(); } }, "Pause");
    const whole = h("button", { type: "button", hidden: true, onclick: () => this.chart.unzoom() }, "Whole");
    this.chart = new LineChart(this.chartBox, { isTime: query.is_time, tall: true, onZoom: (is) => { whole.hidden = !is; } });
    const columns = this.how.values.length > 1 ? tabs("Column to draw", this.how.values, this.value, choose) : null;
    return h("section", { class: "card stack", "aria-label": "Chart" }, h("div", { class: "tools" }, h("h2", {}, "Answers over time"), columns, h("span", { class: "dim small hide" }, "drag to zoom"), h("span", { class: "push" }), whole, pause), this.chartBox, this.chart.legend);
  }

  #planCard() {
    const more = h("details", {}, h("summary", {}, "The plan as text"), this.text);
    return h("section", { class: "card", "aria-label": "Plan" }, h("h2", {}, "Plan"), this.plan, more);
  }

  #picture(query) {
    const found = windowOf(query, store.look.streams);
    if (!found) return null;
    const body = h("div", {});
    this.picture = new WindowPicture(body, found);
    return h("section", { class: "card", "aria-label": "Window" }, h("div", { class: "tools spaced" }, h("h2", {}, "What the window holds now"), h("span", { class: "push" }), h("code", { class: "dim" }, found.window.text)), body);
  }

  #facts() { return h("section", { class: "card stack", "aria-label": "State and cost" }, h("h2", {}, "State and cost"), this.facts, h("h2", {}, "By operator"), this.cost); }

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
    const link = (name) => h("a", { href: `#/query/${encodeURIComponent(name)}` }, name);
    const partners = found.partners.slice(0, 12), more = found.partners.length - partners.length;
    const shares = partners.length ? [...partners.flatMap((name, n) => [n ? ", " : "", link(name)]), more > 0 ? ` and ${count(more)} more` : ""] : [found.shares && found.shared_with ? found.shares : "nothing"];
    const facts = [["answers", count(found.rows)], ["answered up to", instant(found.clock, found.is_time)], ["complete from", found.complete_from === null ? "the beginning" : instant(found.complete_from, found.is_time)], ["state of its own", bytes(found.state_bytes)], ["part of all time", `${(found.cost * 100).toFixed(1)} %`], ["shares its state with", ...shares], ["late rows of its streams", count(late)], ["windows left out", found.missing ? count(found.missing) : found.keeps_all ? `none: ${found.keeps_all}` : "none so far"], ["answers go to", found.sink ?? "the log of answers"], ["answers kept", bytes(found.log_bytes)]];
    const key = JSON.stringify([facts.map((each) => each.map(String)), found.partners]);
    if (key !== this.told) { this.told = key; this.facts.replaceChildren(...facts.flatMap(([name, ...text]) => [h("dt", {}, name), h("dd", {}, text)])); }
    const seen = found.plan.observed.map(plainly);
    if (JSON.stringify(seen) !== this.seen) { this.seen = JSON.stringify(seen); this.cost.replaceChildren(...seen.map((each) => h("li", {}, each))); }
  }

  look(query) {
    this.query = query;
    this.dot.className = `dot ${query.status}`;
    say(this.fresh, query.status === "running" ? `at ${instant(query.clock, query.is_time)}` : query.status);
    const key = JSON.stringify([query.rows, query.missing, query.error]);
    if (key !== this.chipped) { this.chipped = key; this.chips.replaceChildren(...chips(query)); }
    this.draw();
  }

  draw() {
    const rows = store.answers(this.query.name);
    if (this.isPaused) return;
    if (this.chart) {
      const data = lines(rows, this.how, this.value, this.gaps);
      this.chart.update(data, stretches(this.gaps, data.xs), this.value, this.how.keys);
    }
    if (this.isNewest && rows.length && rows.at(-1).$x !== this.last && !this.answers.scrollTop) { this.last = rows.at(-1).$x; this.page("end"); }
  }

  async page(before) {
    const found = await api(`${path(this.query.name)}/results?before=${encodeURIComponent(before)}&limit=${PAGE}`).catch(() => null);
    if (!found) return;
    this.next = found.next;
    this.isNewest = before === "end";
    this.older.disabled = !found.more;
    this.newest.disabled = this.isNewest;
    say(this.place, this.isNewest ? `the newest ${count(found.rows.length)}, as they come` : `${count(found.rows.length)} before commit ${before.split(".")[0]}`);
    this.answers.replaceChildren(found.rows.length ? rowsTable(found.columns, found.rows) : h("p", { class: "dim padded" }, "No answers yet: the first comes when the first window is complete."));
    if (!this.isNewest) this.answers.scrollTop = 0;
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
/** Times of operators in the unit that suits them. */
function plainly(line) { return line.replace(/([\d.]+) µs per row/, (_, micros) => `${seconds(Number(micros) / 1e6)} per row`); }
