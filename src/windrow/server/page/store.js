// What the page knows: the engine's looks and the newest answers of every query, kept by one event stream.

import { place } from "./format.js";

const KEPT_ROWS = 6000;
const KEPT_EPOCHS = 120;

export class Problem extends Error {
  constructor(status, body) {
    super(body?.message ?? `the server says ${status}`);
    this.status = status;
    Object.assign(this, { code: body?.code ?? "http", span: body?.span ?? null, hint: body?.hint ?? null });
  }
}

export async function api(path, body, method) {
  const how = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await fetch(path, method ? { ...how, method } : how);
  if (answer.status === 401) location.reload();
  const text = await answer.text();
  let found = null;
  try { found = text ? JSON.parse(text) : null; } catch { /* told below */ }
  if (!answer.ok) throw new Problem(answer.status, found);
  return found;
}

export const path = (name) => `/api/queries/${encodeURIComponent(name)}`;

class Store extends EventTarget {
  look = null;
  lines = {};
  epochs = [];
  isLive = false;
  #answers = new Map();
  #heard = new Map();
  #source = null;

  start() {
    this.#source = new EventSource("/api/events");
    this.#source.addEventListener("hello", (e) => this.#hello(JSON.parse(e.data)));
    this.#source.addEventListener("look", (e) => this.#looked(JSON.parse(e.data)));
    this.#source.addEventListener("answers", (e) => {
      const found = JSON.parse(e.data);
      this.#heard.set(found.query, performance.now());
      this.#add(found);
    });
    this.#source.addEventListener("open", () => this.#live(true));
    this.#source.addEventListener("error", () => {
      this.#live(false);
      if (this.#source.readyState === EventSource.CLOSED) setTimeout(() => this.start(), 2000);
    });
  }

  #live(is) {
    if (this.isLive === is) return;
    this.isLive = is;
    if (is) for (const known of this.#answers.values()) known.loaded = null;  // what was missed is fetched again
    this.#tell("live");
  }

  #tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }

  #hello({ lines, epochs }) {
    this.lines = lines;
    this.epochs = epochs;
    this.#tell("look");
  }

  #looked(look) {
    const last = this.epochs.at(-1)?.number ?? 0;
    const newest = look.epochs.at(-1)?.number ?? 0;
    if (newest < last) this.epochs = [];  // another process
    this.epochs = [...this.epochs, ...look.epochs.filter((each) => each.number > (newest < last ? 0 : last))].slice(-KEPT_EPOCHS);
    const time = look.time;
    for (const stream of look.streams) {
      const line = (this.lines[stream.name] ??= []);
      if (!line.length || time - line.at(-1).time >= 0.9) line.push({ time, rate: stream.rate, lag: stream.lag, late: stream.late, shed: stream.shed });
      if (line.length > 240) line.shift();
    }
    const ids = new Map(look.queries.map((each) => [each.name, each.id]));
    for (const [name, known] of this.#answers) if (ids.get(name) !== known.id) this.#answers.delete(name);
    this.look = look;
    this.#tell("look");
  }

  /** How many seconds ago a query answered, if it has since the page is open. */
  age(name) { return this.#heard.has(name) ? (performance.now() - this.#heard.get(name)) / 1000 : null; }

  query(name) { return this.look?.queries.find((each) => each.name === name) ?? null; }

  /** The newest answers of a query, oldest first; those before the page was opened are fetched once. */
  answers(name) {
    const query = this.query(name);
    if (!query) return [];
    let known = this.#answers.get(name);
    if (!known) this.#answers.set(name, (known = { id: query.id, rows: [], commit: 0, loaded: null, early: [] }));
    if (!known.loaded) known.loaded = this.#load(query, known);
    return known.rows;
  }

  async #load(query, known) {
    const page = await api(`${path(query.name)}/results?before=end&limit=2000`).catch(() => null);
    if (!page) return;
    const rows = page.rows.reverse();
    for (const row of rows) row.$x = place(row.at, query.is_time);
    known.rows = rows;
    known.commit = page.newest ?? 0;
    for (const each of known.early.splice(0)) this.#add(each);
    known.ready = true;
    this.#tell("answers", query.name);
  }

  #add(event) {
    const known = this.#answers.get(event.query);
    const query = this.query(event.query);
    if (!known || !query || event.commit <= known.commit) return;
    if (!known.ready && known.early.length < 1000 && !known.commit) { known.early.push(event); return; }
    known.commit = event.commit;
    for (const row of event.rows) { row.$x = place(row.at, query.is_time); known.rows.push(row); }
    if (known.rows.length > KEPT_ROWS) known.rows.splice(0, known.rows.length - KEPT_ROWS);
    this.#tell("answers", event.query);
  }
}

export const store = new Store();

/** Call on each event until the signal says that the page was left. */
export function on(name, signal, act) { store.addEventListener(name, act, { signal }); }
