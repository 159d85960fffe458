// The console: statements with completion, errors at their place, EXPLAIN beside as one types.

import CodeMirror from "./vendor/codemirror.js";
import { count, h, rowsTable, say } from "./format.js";
import { api, on, store } from "./store.js";
import { planGraph } from "./plan.js";

const WORDS = "SELECT DISTINCT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT AS AND OR NOT IN EXISTS IS NULL BETWEEN LIKE CASE WHEN THEN ELSE END CAST JOIN LEFT RIGHT FULL OUTER INNER ON UNION ALL EXCEPT INTERSECT CREATE STREAM TABLE QUERY ARCHIVE DROP IF SHOW STREAMS QUERIES TABLES GAPS DESCRIBE EXPLAIN ANALYZE REPLACE INTO PRIORITY MAX GAP EVERY WATTR SLACK ORDERED PER IDLE PUNCTUATED LATE KEEP TO SHEDDABLE NRR RELATION KEY WITH ISOLATION LATEST WINDOW OVER PARTITION TRUE FALSE ISTREAM DSTREAM RSTREAM WSTREAM".split(" ");
const WINDOW_WORDS = "RANGE SLIDE ROWS LANDMARK UNBOUNDED NOW LIFETIME SESSION LAG ORIGIN ZONE SATTR RATTR PATTR UNTIL INTERNAL MICROSECONDS MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS".split(" ");
const FUNCTIONS = "COUNT SUM AVG MIN MAX VAR_POP VAR_SAMP STDDEV_POP STDDEV_SAMP FIRST LAST ANY_VALUE MEDIAN QUANTILE MODE TOP_K FREQUENT APPROX_COUNT_DISTINCT MAX_BY MIN_BY ARRAY_AGG COUNT_IF ABS ROUND FLOOR CEIL SQRT COALESCE NULLIF IF UPPER LOWER LENGTH SUBSTRING CONCAT TRIM HOUR MINUTE DAY window_start window_end".split(" ");
const FORMS = ["[RANGE 5 MINUTES SLIDE 1 MINUTE]", "[RANGE 1 MINUTE]", "[ROWS 100]", "[ROWS 10 PARTITION BY key]", "[LANDMARK SLIDE 1 HOUR]", "[SESSION 30 SECONDS PARTITION BY key]", "[NOW]", "[UNBOUNDED]"];
const known = new Set([...WORDS, ...WINDOW_WORDS]);
const functions = new Set(FUNCTIONS.map((each) => each.toUpperCase()));

CodeMirror.defineMode("cql", () => ({
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment) { if (stream.skipTo("*/")) { stream.match("*/"); state.comment = false; } else stream.skipToEnd(); return "comment"; }
    if (stream.eatSpace()) return null;
    if (stream.match("--")) { stream.skipToEnd(); return "comment"; }
    if (stream.match("/*")) { state.comment = true; return "comment"; }
    if (stream.match(/^'(?:[^'\\]|''|\\.)*'?/)) return "string";
    if (stream.match(/^`(?:[^`]|``)*`?/)) return "variable";
    if (stream.match(/^\d+(?:\.\d+)?(?:e[+-]?\d+)?/i)) return "number";
    if (stream.match(/^[[\]]/)) return "bracket";
    const word = stream.match(/^[A-Za-z_]\w*/);
    if (word) return known.has(word[0].toUpperCase()) ? "keyword" : functions.has(word[0].toUpperCase()) ? "builtin" : "variable";
    stream.next();
    return null;
  },
}));

function complete(editor) {
  const cursor = editor.getCursor(), line = editor.getLine(cursor.line).slice(0, cursor.ch);
  const typed = /(\[[\w ]*|[\w`]+)?$/.exec(line)[0];
  const from = CodeMirror.Pos(cursor.line, cursor.ch - typed.length);
  const streams = store.look?.streams ?? [], queries = store.look?.queries ?? [];
  if (typed.startsWith("[")) return { from, to: cursor, list: FORMS.filter((each) => each.startsWith(typed.toUpperCase())) };
  const columns = [...new Set([...streams.flatMap((each) => Object.keys(each.columns)), ...queries.flatMap((each) => each.columns.map((column) => column.name))])];
  const after = /\b(FROM|JOIN)\s+[\w`]*$/i.test(line);
  const names = [...streams, ...queries].map((each) => each.name);
  const all = after ? [...names, ...FORMS] : [...columns, ...names, ...FUNCTIONS.map((each) => (each.startsWith("window") ? each : `${each}(`)), ...WORDS, ...WINDOW_WORDS, ...FORMS];
  const wanted = typed.toLowerCase();
  return { from, to: cursor, list: [...new Set(all)].filter((each) => each.toLowerCase().startsWith(wanted)).slice(0, 40) };
}

export function showConsole(main, signal) {
  const page = new Console(main);
  on("look", signal, () => page.suggest());
  page.suggest();
  signal.addEventListener("abort", () => clearTimeout(page.timer));
}

class Console {
  constructor(main) {
    this.said = h("div", { class: "said", role: "status", "aria-live": "polite" });
    this.plan = h("div", { class: "plan" }, h("p", { class: "dim" }, "The plan of what you write appears here."));
    this.text = h("pre", { class: "plain" });
    this.result = h("div", { class: "stack" });
    this.once = h("button", { type: "button", class: "primary", title: "Ctrl-Enter", onclick: () => this.run() }, "Run once");
    this.name = h("input", { "aria-label": "Name of the standing query", placeholder: "name", size: 16 });
    this.stand = h("button", { type: "button", title: "Ctrl-Shift-Enter", onclick: () => this.keep() }, "Make it standing");
    const area = h("div", { id: "editor" });
    main.append(h("div", { class: "page" }, h("h1", { class: "skip" }, "Console"), h("div", { class: "two" },
      h("section", { class: "card stack", "aria-label": "Statement" }, h("div", { class: "tools" }, h("h2", {}, "Statement"), h("span", { class: "dim" }, "Ctrl-Space completes")), area, this.said, h("div", { class: "tools" }, this.once, h("span", { class: "push" }), this.name, this.stand)),
      h("section", { class: "card", "aria-label": "Plan" }, h("h2", {}, "Plan"), this.plan, h("details", {}, h("summary", {}, "As text"), this.text))), this.result));
    this.editor = CodeMirror(area, {
      mode: "cql", lineWrapping: true, matchBrackets: true, viewportMargin: Infinity, screenReaderLabel: "Statement", value: sessionStorage.getItem("statement") ?? "",
      placeholder: "SELECT … FROM stream [RANGE 5 MINUTES SLIDE 1 MINUTE] …",
      extraKeys: { "Ctrl-Space": () => this.hint(), "Ctrl-Enter": () => this.run(), "Cmd-Enter": () => this.run(), "Shift-Ctrl-Enter": () => this.keep(), Tab: false, "Shift-Tab": false },
    });
    this.editor.on("change", () => this.changed());
    this.editor.on("inputRead", (editor, change) => { if (/[\w[]$/.test(change.text.join(""))) this.hint(); });
    setTimeout(() => { this.editor.refresh(); this.explain(); });
  }

  hint() { this.editor.showHint({ hint: complete, completeSingle: false, closeCharacters: /[\s()\];,]/ }); }

  /** Something to begin with, as soon as a stream is known. */
  suggest() {
    const stream = store.look?.streams[0];
    if (this.begun || !stream || this.editor.getValue()) return;
    this.begun = true;
    const numbers = Object.entries(stream.columns).filter(([, type]) => /INT|DOUBLE/.test(type)).map(([name]) => name);
    const key = numbers[0], value = numbers.find((each) => each !== key) ?? key;
    const bracket = stream.is_time ? "[RANGE 5 MINUTES SLIDE 1 MINUTE]" : "[RANGE 100 SLIDE 10]";
    this.editor.setValue(key ? `SELECT ${key}, COUNT(*) AS n, AVG(${value}) AS mean\nFROM ${stream.name} ${bracket}\nGROUP BY ${key}` : `SELECT COUNT(*) AS n\nFROM ${stream.name} ${bracket}`);
  }

  changed() {
    sessionStorage.setItem("statement", this.editor.getValue());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.explain(), 350);
  }

  async explain() {
    const sql = this.editor.getValue();
    if (!sql.trim()) { this.clear(); return; }
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      const found = await api("/api/explain", { sql });
      if (turn !== this.turn) return;
      this.clear();
      const planned = found.filter((each) => each.plan).at(-1);
      const drawn = JSON.stringify(planned?.plan.plan ?? null);
      if (planned && drawn !== this.drawn) { planGraph(this.plan, planned.plan); say(this.text, planned.text); }
      this.drawn = drawn;
      this.once.textContent = found.every((each) => each.kind === "select") ? "Run once" : "Run";
      this.stand.disabled = !(found.length === 1 && found[0].kind === "select");
      const refused = found.find((each) => each.refused);
      this.said.replaceChildren(refused ? h("span", { class: "dim" }, `As a standing query this is fine; once: ${refused.refused}`) : h("span", { class: "dim" }, "This can be run."));
    } catch (error) {
      if (turn === this.turn) this.tell(error, sql);
    }
  }

  clear() { for (const each of this.editor.getAllMarks()) each.clear(); this.said.replaceChildren(); }

  tell(error, sql) {
    this.clear();
    if (error.span && sql !== undefined) {
      const start = error.span.start, end = Math.max(error.span.end, start + 1);
      this.editor.markText(this.editor.posFromIndex(start), this.editor.posFromIndex(end), { className: "cm-wrong", title: error.message });
    }
    this.said.replaceChildren(h("span", { class: "bad" }, h("b", {}, error.code), error.message), error.hint ? h("span", { class: "dim" }, ` ${error.hint}`) : "");
  }

  async run() {
    const sql = this.editor.getValue();
    this.once.disabled = true;
    const began = performance.now();
    try {
      const found = await api("/api/statements", { sql });
      this.clear();
      const took = `${((performance.now() - began) / 1000).toFixed(2)} s`;
      this.result.replaceChildren(...(found.length ? found : [null]).map((each) => h("section", { class: "card stack", "aria-label": "Answer" }, each === null ? h("p", {}, `Done in ${took}. `, h("a", { href: "#/" }, "Watch it at home.")) : each.rows ? [h("h2", {}, `${count(each.rows.length)} rows in ${took}`), h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Rows" }, rowsTable(each.columns, each.rows))] : h("pre", { class: "plain" }, each.text))));
    } catch (error) { this.tell(error, sql); }
    this.once.disabled = false;
  }

  async keep() {
    const sql = this.editor.getValue().trim().replace(/;\s*$/, "");
    const name = this.name.value.trim() || `query_${(store.look?.queries.length ?? 0) + 1}`;
    try {
      await api("/api/statements", { sql: `CREATE QUERY \`${name.replaceAll("`", "``")}\` AS\n${sql}` });
      location.hash = `#/query/${encodeURIComponent(name)}`;
    } catch (error) { this.tell(error); }
  }
}
