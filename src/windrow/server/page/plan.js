// A plan as a graph: operators as boxes, edges in the colour of their update pattern, reasons on hover.

import { hierarchy, tree } from "./vendor/d3-hierarchy.js";
import { count, h, hideTip, showTip } from "./format.js";
import { PATTERNS } from "./home.js";

const WIDE = 272, HIGH = 48, BETWEEN = 84;

export function planGraph(box, explanation) {
  const root = hierarchy(explanation.plan, (step) => step.inputs);
  tree().nodeSize([WIDE + 28, BETWEEN]).separation(() => 1)(root);
  const nodes = root.descendants();
  const left = Math.min(...nodes.map((each) => each.x)) - WIDE / 2 - 4;
  const right = Math.max(...nodes.map((each) => each.x)) + WIDE / 2 + 4;
  const bottom = Math.max(...nodes.map((each) => each.y)) + HIGH + 6;
  const why = h("p", { class: "why", "aria-live": "polite" }, "Point at an operator or an edge to see what it keeps, and why its rows expire as they do.");
  const edges = root.links().map(({ source, target }) => edge(source, target, why));
  const boxes = nodes.map((each) => node(each, why));
  const wide = right - left, high = bottom + 6;
  const svg = h("svg", { viewBox: `${left} -6 ${wide} ${high}`, width: wide, height: high, role: "group", "aria-label": "The plan, from answers above to streams below" }, edges, boxes);
  svg.style.width = `${wide}px`;
  svg.style.minWidth = `${wide * 0.62}px`;
  box.replaceChildren(h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Plan as a graph" }, svg), why, key(nodes));
}

function key(nodes) {
  const patterns = ["MON", "WKS", "WK", "STR"].filter((name) => nodes.some(({ data }) => data.pattern === name));
  return h("div", { class: "keys" }, patterns.map((name) => h("span", { title: PATTERNS[name] }, h("i", { class: `k-${name}` }), name, h("span", { class: "dim" }, ` ${PATTERNS[name].split(":")[0]}`))));
}

function edge(source, target, why) {
  const [x1, y1, x2, y2] = [target.x, target.y, source.x, source.y + HIGH], { data } = target;
  const d = `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`;
  const tell = (event) => { showTip(event, reason(data)); };
  return h("g", { class: "link", onmousemove: tell, onmouseenter: () => why.replaceChildren(...reason(data)), onmouseleave: hideTip },
    h("path", { class: `edge ${data.pattern ?? "none"}`, d }), h("path", { class: "near", d }),
    data.pattern ? h("text", { class: `label ${data.pattern}`, x: x1 < x2 ? x1 - 9 : x1 + 9, y: (y1 + y2) / 2 + 4, "text-anchor": x1 < x2 ? "end" : "start" }, data.pattern) : null);
}

function node({ x, y, data }, why) {
  const tell = () => why.replaceChildren(...told(data));
  return h("g", { class: `node ${data.pattern ?? ""}`, tabindex: 0, role: "button", "aria-label": `${data.operator}; ${data.pattern ?? "a table"}`, transform: `translate(${x - WIDE / 2},${y})`, onmousemove: (event) => showTip(event, told(data)), onmouseleave: hideTip, onmouseenter: tell, onfocus: tell },
    h("rect", { width: WIDE, height: HIGH, rx: 8 }),
    h("rect", { class: "side", width: 4, height: HIGH - 16, x: 0, y: 8, rx: 2 }),
    h("text", { x: 14, y: 20 }, fitted(data.operator, 12)),
    h("text", { class: "small", x: 14, y: 37 }, fitted(kept(data), 11)));
}

/** What an operator keeps, in a few words. */
function kept(step) {
  if (!step.state) return "keeps nothing";
  return `${step.state}${step.state_rows ? `, about ${count(step.state_rows)}` : ""}`;
}

const reason = (step) => [h("b", { class: step.pattern ?? "" }, step.pattern ?? "a table"), h("span", {}, step.pattern ? ` ${PATTERNS[step.pattern]}.` : ""), h("div", {}, step.expiry || "")];

const told = (step) => [
  h("div", {}, h("b", {}, step.operator)), h("div", {}, reason(step)),
  h("div", {}, h("span", { class: "dim" }, "state "), step.state ? kept(step) : "none"),
  h("div", {}, h("span", { class: "dim" }, "method "), `${step.method}${step.reason ? `: ${step.reason}` : ""}`),
];

const ruler = document.createElement("canvas").getContext("2d");

/** As much of a text as a box has room for. */
function fitted(text, size) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  let most = text.length;
  while (most > 4 && ruler.measureText(text.slice(0, most)).width > WIDE - 30) most -= 1;
  return most < text.length ? `${text.slice(0, most - 1).trimEnd()}…` : text;
}
