// The first visit, on a stream of traffic: a window, a join, an overload; three steps, each one statement.

import { h } from "./format.js";
import { api, on, store } from "./store.js";

const STEPS = [
  {
    name: "A window",
    text: "A standing query is asked once and answered for ever. This one counts, every ten seconds of the stream's time, the readings of the past minute: six windows overlap, and each reading is still worked on once.",
    query: "first_window",
    sql: "CREATE QUERY first_window AS\nSELECT COUNT(*) AS readings, AVG(speed) AS speed\nFROM traffic [RANGE 1 MINUTE SLIDE 10 SECONDS] MAX GAP 360",
    button: "Ask it",
  },
  {
    name: "A join",
    text: "Windows can be joined. In the same ten seconds and on one segment, one sensor sees a jam while another sees free flow: how many such pairs there are, and how far apart they are.",
    query: "mixed_signals",
    sql: "CREATE QUERY mixed_signals AS\nSELECT a.segment, COUNT(*) AS pairs, MAX(b.speed - a.speed) AS apart\nFROM traffic [RANGE 10 SECONDS SLIDE 10 SECONDS] AS a\nJOIN traffic [RANGE 10 SECONDS SLIDE 10 SECONDS] AS b ON a.segment = b.segment\nWHERE a.speed < 25 AND b.speed > a.speed + 22\nGROUP BY a.segment MAX GAP 360",
    button: "Join them",
  },
  {
    name: "Overload",
    text: "When rows come faster than they can be worked on, whole windows are left out, never rows of a window. Triple the rate, again and again, until this machine cannot keep up; then watch the gaps in the charts: every answer that is still given is exact.",
    button: "Triple the rate",
  },
];

let times = 1;

async function quicken(to) {
  const found = await api("/api/streams/traffic/rate", { times: to });
  times = to;
  return found;
}

export function guide(box, signal) {
  let step = Number(localStorage.getItem("guide") ?? 0);
  let shown = "";
  const go = (to) => { step = to; localStorage.setItem("guide", String(to)); shown = ""; draw(); };
  const draw = () => {
    const isHere = store.look?.streams.some((each) => each.name === "traffic" && "speed" in each.columns);
    const key = `${step} ${isHere} ${store.look?.queries.some((each) => each.name === STEPS[step]?.query)}`;
    if (key === shown) return;
    shown = key;
    if (!isHere || step >= STEPS.length) { box.replaceChildren(); return; }
    box.replaceChildren(card(step, go));
  };
  on("look", signal, draw);
  draw();
}

function card(step, go) {
  const { text, sql, query, button } = STEPS[step];
  const isThere = query && store.look.queries.some((each) => each.name === query);
  const said = h("p", { class: "bad", role: "alert" });
  const act = h("button", { type: "button", class: isThere ? "" : "primary", disabled: Boolean(isThere), onclick: () => press(step, act, said) }, isThere ? "It is running below" : button);
  const next = step < STEPS.length - 1 ? h("button", { type: "button", class: isThere ? "primary" : "", onclick: () => go(step + 1) }, "Next") : h("button", { type: "button", onclick: async () => { await quicken(1).catch(() => null); go(STEPS.length); } }, "Back to the first rate");
  return h("section", { class: "card guide", "aria-label": "First visit" },
    h("div", { class: "row" }, h("ol", {}, STEPS.map((each, n) => h("li", { "aria-current": n === step ? "step" : null }, `${n + 1} ${each.name}`))), h("button", { type: "button", class: "quiet", "aria-label": "Close the guide", onclick: () => go(STEPS.length) }, "✕")),
    h("p", {}, text), sql ? h("pre", { class: "sql" }, sql) : null, said, h("div", { class: "tools" }, act, next));
}

async function press(step, act, said) {
  try {
    if (STEPS[step].sql) { await api("/api/statements", { sql: STEPS[step].sql }); return; }
    const { rate } = await quicken(times * 3);
    act.textContent = `Triple the rate: ${rate.toLocaleString("en")} rows/s now`;
  } catch (error) { said.textContent = `${error.message} ${error.hint ?? ""}`; }
}
