// The frame: which page is shown, the facts in the header, banners, dark and light, keys.

import { count, h, say, seconds, span } from "./format.js";
import { on, store } from "./store.js";
import { showHome } from "./home.js";
import { showQuery } from "./query.js";
import { showConsole } from "./console.js";

const main = document.getElementById("main");
const facts = document.getElementById("facts");
const banners = document.getElementById("banners");
let leaving = new AbortController();

function theme(chosen) {
  const wanted = chosen ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  if (chosen) localStorage.setItem("theme", chosen);
  window.dispatchEvent(new Event("theme"));
}

const other = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function route() {
  leaving.abort();
  leaving = new AbortController();
  const [, page = "", ...rest] = location.hash.split("/");
  for (const link of document.querySelectorAll("nav a")) {
    const is = link.dataset.page === (page === "console" ? "console" : page === "" ? "home" : "query");
    if (is) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  main.replaceChildren();
  const name = decodeURIComponent(rest.join("/"));
  document.title = page === "query" ? `${name} · Windrow` : page === "console" ? "Console · Windrow" : "Windrow";
  if (page === "query") showQuery(main, name, leaving.signal);
  else if (page === "console") showConsole(main, leaving.signal);
  else showHome(main, leaving.signal);
}

const dot = h("i", { class: "live" });
const state = h("span", {}, dot, h("span", {}));
const FACTS = { commit: "What is answered up to here is on disk", epoch: "What the last epoch took", lag: "From the watermark to the newest row, of the slowest stream" };
const known = Object.fromEntries(Object.entries(FACTS).map(([name, title]) => [name, h("span", { title }, `${name} `, h("b", {}))]));
const asked = h("span", {}, h("b", {}), h("span", {}));
facts.append(state, ...Object.values(known), asked);

function header() {
  const look = store.look;
  const run = store.isLive ? look?.run : "off";
  dot.className = `live ${{ running: "", idle: "idle", ended: "idle" }[run] ?? "off"}`;
  say(state.lastChild, !store.isLive ? "reconnecting …" : look?.run ?? "…");
  if (!look) return;
  say(known.commit.lastChild, count(look.commit));
  const last = store.epochs.at(-1);
  say(known.epoch.lastChild, last ? seconds(last.read + last.close + last.commit_seconds + last.deliver) : "–");
  const lags = look.streams.filter((each) => each.lag !== null && each.is_time).map((each) => each.lag);
  say(known.lag.lastChild, lags.length ? span(Math.max(...lags), true) : "–");
  const shared = look.queries.filter((each) => each.shared_with).length;
  say(asked.firstChild, count(look.queries.length));
  say(asked.lastChild, ` ${look.queries.length === 1 ? "query" : "queries"}${shared ? `, ${count(shared)} share state` : ""}`);
  trouble(look);
}

const named = (queries) => queries.length > 4 ? `${queries.slice(0, 3).map((each) => each.name).join(", ")} and ${queries.length - 3} more queries` : queries.map((each) => each.name).join(", ");

/** How long the gaps of queries may be: in the stream's time, where all of them are of one, and in windows else. */
function longest(queries) {
  const gaps = queries.map((each) => each.max_gap ?? 0);
  const same = gaps.every((gap) => gap === gaps[0]);
  if (same || !queries.every((each) => each.is_time && each.slide)) return `at most ${count(Math.max(...gaps))} in a row`;
  return `in gaps of at most ${span(Math.max(...queries.map((each) => each.max_gap * each.slide)), true)}`;
}

let told = "";
function trouble(look) {
  const away = look.queries.filter((each) => each.status === "suspended");
  const losing = look.queries.filter((each) => each.losing > 0 && each.status !== "suspended");
  const epochs = store.epochs.slice(-20);
  const rows = epochs.reduce((sum, each) => sum + each.rows, 0), shed = epochs.reduce((sum, each) => sum + each.shed, 0);
  const share = rows && shed ? ` ${Math.max(1, Math.round((shed / rows) * 100))} % of the rows are dropped where they are read.` : "";
  const key = JSON.stringify([losing.map((each) => [each.name, each.max_gap]), away.map((each) => each.name), look.problems, share]);
  if (key === told) return;
  told = key;
  const found = [];
  if (losing.length) {
    const part = Math.round(Math.max(...losing.map((each) => each.losing)) * 100);
    found.push(h("div", { class: "banner", role: "status" }, h("b", {}, "More rows than there is time for: whole windows are being left out. "), h("span", {}, `${named(losing)}: about ${part} % of their windows, ${longest(losing)}. Every answer that is shown is exact.${share}`)));
  }
  if (away.length) found.push(h("div", { class: "banner", role: "status" }, h("b", {}, "Gaps alone do not help. "), h("span", {}, `${named(away)}: suspended, until there is time for more.`)));
  for (const problem of look.problems) {
    found.push(h("div", { class: "banner bad", role: "alert" }, h("b", {}, `${problem.message} `), problem.hint ? h("span", { class: "dim" }, problem.hint) : null));
  }
  banners.replaceChildren(...found);
}

addEventListener("hashchange", () => { route(); main.focus({ preventScroll: true }); scrollTo(0, 0); });
document.querySelector("a.skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.getElementById("theme").addEventListener("click", () => theme(other()));
addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, .CodeMirror") || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "h") location.hash = "#/";
  if (event.key === "c") location.hash = "#/console";
  if (event.key === "d") theme(other());
});
theme();
const forever = new AbortController().signal;
on("look", forever, header);
on("live", forever, header);
store.start();
route();
