// The console: statements with completion, errors at their place, EXPLAIN beside as one types.

import CodeMirror from "./vendor/codemirror.js";
import { h, rows, rowsTable, say } from "./format.js";
import { api, on, store } from "./store.js";
import { planGraph } from "./plan.js";

const KEYWORDS = new Set("SELECT DISTINCT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT AS AND OR NOT IN EXISTS IS NULL BETWEEN LIKE CASE WHEN THEN ELSE END CAST JOIN LEFT RIGHT FULL OUTER INNER CROSS ON UNION ALL EXCEPT INTERSECT WITH LATERAL CREATE STREAM TABLE QUERY ARCHIVE DROP IF SHOW STREAMS QUERIES TABLES GAPS DESCRIBE EXPLAIN ANALYZE REFRESH REPLACE INTO PRIORITY MAX GAP EVERY WATTR SLACK ORDERED PER IDLE PUNCTUATED LATE KEEP TO SHEDDABLE NRR RELATION KEY ISOLATION LATEST OVER PARTITION DESC ASC TRUE FALSE ISTREAM DSTREAM RSTREAM WSTREAM RANGE SLIDE ROWS LANDMARK UNBOUNDED NOW LIFETIME SESSION CUMULATE LAG ORIGIN ZONE FORMAT SATTR RATTR PATTR UNTIL INTERNAL MICROSECONDS MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS".split(" "));

/** What one may want to ask of a stream. */
function examples(stream) {
  const columns = Object.entries(stream.columns).filter(([name]) => name !== stream.wattr);
  const numbers = columns.filter(([, type]) => /INT|DOUBLE|FLOAT|DECIMAL/.test(type)).map(([name]) => name);
  const key = columns.find(([, type]) => /INT|STRING/.test(type))?.[0], value = numbers.find((name) => name !== key) ?? numbers[0];
  const [wide, slide, short] = stream.is_time ? ["5 MINUTES", "1 MINUTE", "10 SECONDS"] : ["100", "10", "10"], name = quoted(stream.name);
  const window = `[RANGE ${wide} SLIDE ${slide}]`, found = [["How many", `SELECT COUNT(*) AS n\nFROM ${name} ${window}`]];
  if (!key || !value) return found;
  const [by, of] = [quoted(key), quoted(value)];
  return [
    ["Average by group", `SELECT ${by}, AVG(${of}) AS mean, COUNT(*) AS n\nFROM ${name} ${window}\nGROUP BY ${by}`],
    ["The three greatest", `SELECT RSTREAM(${by}, MAX(${of}) AS greatest)\nFROM ${name} [RANGE ${slide} SLIDE ${slide}]\nGROUP BY ${by}\nORDER BY greatest DESC LIMIT 3`],
    ["Median and spread", `SELECT MEDIAN(${of}) AS middle, QUANTILE(${of}, 0.95) AS high, STDDEV(${of}) AS spread\nFROM ${name} ${window}`],
    ["Join with itself", `SELECT ISTREAM(a.${by}, a.${of} AS one, b.${of} AS other)\nFROM ${name} [RANGE ${short}] AS a JOIN ${name} [RANGE ${short}] AS b ON a.${by} = b.${by}\nWHERE a.${of} > 2 * b.${of}`],
    ["Sessions", `SELECT ${by}, COUNT(*) AS n\nFROM ${name} [SESSION ${short} PARTITION BY ${by}]\nGROUP BY ${by}`],
  ];
}

const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);

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
    if (word) return /^\s*\(/.test(stream.string.slice(stream.pos)) && !KEYWORDS.has(word[0].toUpperCase()) ? "builtin" : KEYWORDS.has(word[0].toUpperCase()) ? "keyword" : "variable";
    stream.next();
    return null;
  },
}));

/** What the compiler says can stand here. */
async function complete(editor) {
  const cursor = editor.getCursor(), sql = editor.getValue();
  const { start, items } = await api("/api/complete", { sql, offset: editor.indexFromPos(cursor) }).catch(() => ({ start: 0, items: [] }));
  const draw = (line, _, { item }) => line.append(h("i", { class: `c-${item.kind}`, title: item.kind }, item.kind[0]), h("b", {}, item.text.replace(/\($/, "")), h("span", {}, item.detail));
  const list = items.map((item) => ({ text: item.text, item, render: draw }));
  return { from: editor.posFromIndex(start), to: cursor, list: sql === editor.getValue() ? list : [] };
}

export function showConsole(main, signal) {
  const page = new Console(main);
  const look = () => { page.suggest(); page.list(); };
  on("look", signal, look);
  look();
  signal.addEventListener("abort", () => clearTimeout(page.timer));
}

class Console {
  constructor(main) {
    this.said = h("div", { class: "said", role: "status", "aria-live": "polite" });
    this.plan = h("div", { class: "plan" }, h("p", { class: "dim" }, "The plan of what you write appears here."));
    this.text = h("pre", { class: "plain" });
    this.heading = h("h2", {}, "Plan");
    this.result = h("div", { class: "stack" });
    this.once = h("button", { type: "button", class: "primary", title: "Ctrl-Enter", onclick: () => this.run() }, "Run once");
    this.name = h("input", { "aria-label": "Name of the standing query", placeholder: "name", size: 16 });
    this.stand = h("button", { type: "button", title: "Ctrl-Shift-Enter", onclick: () => this.keep() }, "Make it standing");
    this.known = h("div", { class: "known stack" });
    const area = h("div", { id: "editor" });
    const statement = h("section", { class: "card stack", "aria-label": "Statement" }, h("div", { class: "tools" }, h("h2", {}, "Statement"), h("span", { class: "push" }), h("span", { class: "dim small" }, "Ctrl-Space completes, Ctrl-Enter runs")), area, this.said, h("div", { class: "tools" }, this.once, h("span", { class: "push" }), this.name, this.stand));
    const plan = h("section", { class: "card", "aria-label": "Plan" }, this.heading, this.plan, h("details", {}, h("summary", {}, "As text"), this.text));
    const known = h("section", { class: "card", "aria-label": "What can be asked" }, h("h2", {}, "What can be asked"), this.known);
    main.append(h("div", { class: "page" }, h("h1", { class: "skip" }, "Console"), h("div", { class: "two" }, h("div", { class: "stack" }, statement, this.result, known), plan)));
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
    this.editor.setValue(examples(stream)[0][1]);
  }

  /** The streams and queries there are, to be put into the statement by a click. */
  list() {
    const { streams = [], queries = [] } = store.look ?? {};
    const key = JSON.stringify([streams.map((each) => [each.name, each.columns]), queries.map((each) => [each.name, each.columns])]);
    if (key === this.listed) return;
    this.listed = key;
    const put = (text, title) => h("button", { type: "button", class: "word", title, onclick: () => { this.editor.replaceSelection(text); this.editor.focus(); } }, text);
    const entry = (name, kind, columns) => h("div", { class: "entry" }, h("div", {}, put(quoted(name), `put it in`), h("span", { class: "dim small" }, kind)), h("div", { class: "words" }, columns.map((each) => put(quoted(each.name), each.type))));
    const example = ([name, sql]) => h("button", { type: "button", title: sql, onclick: () => { this.editor.setValue(sql); this.editor.focus(); } }, name);
    this.known.replaceChildren(
      ...(streams.length ? [h("div", { class: "tabs", role: "group", "aria-label": "Examples" }, examples(streams[0]).map(example))] : [h("p", { class: "dim" }, "No stream yet: CREATE STREAM … FROM 'files:///…', 'kafka://…' or 'push:'.")]),
      ...streams.map((each) => entry(each.name, "stream", Object.entries(each.columns).map(([name, type]) => ({ name, type })))),
      ...queries.slice(0, 30).map((each) => entry(each.name, "query", each.columns)));
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
      this.#mark("Plan", false);
      const planned = found.filter((each) => each.plan).at(-1);
      const drawn = JSON.stringify(planned?.plan.plan ?? null);
      if (planned && drawn !== this.drawn) { planGraph(this.plan, planned.plan); say(this.text, planned.text); }
      this.drawn = drawn;
      this.once.textContent = found.every((each) => each.kind === "select") ? "Run once" : "Run";
      this.stand.disabled = !(found.length === 1 && found[0].kind === "select");
      const refused = found.find((each) => each.refused);
      this.said.replaceChildren(h("span", { class: refused ? "dim" : "fine" }, refused ? `It can stand; it cannot be asked once: ${refused.refused}` : this.stand.disabled ? "✓ this can be run" : "✓ this can be asked once, or made a standing query"));
      this.once.disabled = Boolean(refused) && found.length === 1;
    } catch (error) {
      if (turn !== this.turn) return;
      this.tell(error, sql);
      if (this.drawn) this.#mark("Plan of what stood here before the mistake", true);
    }
  }

  /** A plan that is not of what is written is grey. */
  #mark(heading, isOld) { say(this.heading, heading); this.plan.classList.toggle("old", isOld); }

  clear() { for (const each of this.editor.getAllMarks()) each.clear(); this.said.replaceChildren(); }

  tell(error, sql) {
    this.clear();
    if (error.span && sql !== undefined) {
      const start = error.span.start, end = Math.max(error.span.end, start + 1);
      this.editor.markText(this.editor.posFromIndex(start), this.editor.posFromIndex(end), { className: "cm-wrong", title: error.message });
    }
    this.said.replaceChildren(h("span", { class: "bad" }, h("b", {}, error.code), error.message), error.hint ? h("span", { class: "dim" }, ` · ${error.hint}`) : "");
  }

  async run() {
    const sql = this.editor.getValue();
    this.once.disabled = true;
    const began = performance.now();
    try {
      const found = await api("/api/statements", { sql });
      this.clear();
      const took = `${((performance.now() - began) / 1000).toFixed(2)} s`;
      this.result.replaceChildren(...(found.length ? found : [null]).map((each) => h("section", { class: "card stack", "aria-label": "Answer" }, each === null ? h("p", {}, h("b", { class: "fine" }, "✓ "), `Done in ${took}. `, h("a", { href: "#/" }, "Watch it at home"), ".") : each.rows ? [h("h2", {}, `${rows(each.rows.length)} in ${took}`), h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Rows" }, rowsTable(each.columns, each.rows))] : h("pre", { class: "plain" }, each.text))));
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
