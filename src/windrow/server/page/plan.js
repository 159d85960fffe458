// A plan as a graph: operators as boxes, edges in the colour of their update pattern, reasons on hover.

import { hierarchy, tree } from "./vendor/d3-hierarchy.js";
import { h } from "./format.js";
import { PATTERNS } from "./home.js";

const WIDE = 250, HIGH = 46, BETWEEN = 78;

export function planGraph(box, explanation) {
  const root = hierarchy(explanation.plan, (step) => step.inputs);
  tree().nodeSize([WIDE + 24, BETWEEN])(root);
  const nodes = root.descendants();
  const left = Math.min(...nodes.map((each) => each.x)) - WIDE / 2 - 8;
  const right = Math.max(...nodes.map((each) => each.x)) + WIDE / 2 + 48;
  const bottom = Math.max(...nodes.map((each) => each.y)) + HIGH + 10;
  const why = h("p", { class: "why", "aria-live": "polite" }, "Point at an operator to see why its rows expire as they do.");
  const tell = (step) => why.replaceChildren(h("b", { class: step.pattern ?? "" }, step.pattern ? `${step.pattern} ` : ""), h("span", {}, step.pattern ? `${PATTERNS[step.pattern]}. ` : ""), step.expiry ? `${step.expiry}. ` : "", h("b", {}, "state "), `${step.state}; ${step.method}${step.detail ? ` (${step.detail})` : ""}: ${step.reason}`);
  const edges = root.links().map(({ source, target }) => {
    const [x1, y1, x2, y2] = [target.x, target.y, source.x, source.y + HIGH];
    return h("path", { class: `edge ${target.data.pattern ?? "none"}`, d: `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}` });
  });
  const boxes = nodes.map(({ x, y, data }) => h("g", { class: "node", tabindex: 0, role: "button", "aria-label": `${data.operator}; ${data.pattern ?? "a table"}`, transform: `translate(${x - WIDE / 2},${y})`, onmouseenter: () => tell(data), onfocus: () => tell(data) },
    h("title", {}, `${data.operator}\n${data.reason}`),
    h("rect", { width: WIDE, height: HIGH, rx: 7 }),
    h("text", { x: 10, y: 19 }, cut(data.operator, 35)),
    h("text", { class: "small", x: 10, y: 36 }, cut(`${data.state === "none" ? "no state" : data.state}${data.state_rows !== null ? `, about ${Math.round(data.state_rows)} rows` : ""}`, 38)),
    data.pattern ? h("text", { class: `label ${data.pattern}`, x: WIDE + 6, y: 18 }, data.pattern) : null));
  const svg = h("svg", { viewBox: `${left} -6 ${right - left} ${bottom + 6}`, width: right - left, height: bottom + 6, role: "group", "aria-label": "The plan, from answers above to streams below" }, edges, boxes);
  box.replaceChildren(svg, why);
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
