// Pictures of a plan: the graph in Graphviz's language, for any program that lays out graphs, and the page that shows it
// beside the arena (draw_arena.ts). A file of which the host computes everything has no plan: its own nodes are drawn
// (draw_file.ts).

import { type DimEnv, evaluate, formatDim } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { COLOURS, MEANINGS, opening, quote } from "./dot.ts";
import { escapeXml } from "./draw_arena.ts";

/** The graph in the DOT language; shapes at bindings, or symbolic. What a device has kernels for is blue. */
export function dotOf(
  { name, nodes, inputs, outputs }: Graph,
  { env, hasKernel }: {
    readonly env?: DimEnv | undefined;
    /** Whether the device has a kernel for an op. */
    hasKernel(op: string): boolean;
  },
): string {
  const lines = opening(name);
  for (const value of inputs) {
    lines.push(
      `  v${value.id} [label=${quote(labelOf(value, env))}, fillcolor="${COLOURS.input}"];`,
    );
  }
  const maker = new Map<Value, Node>();
  for (const node of nodes) {
    const colour = getOp(node.op).view
      ? COLOURS.view
      : hasKernel(node.op)
      ? COLOURS.kernel
      : COLOURS.host;
    const label = `${node.op}\n${node.name}`;
    lines.push(`  n${node.id} [label=${quote(label)}, fillcolor="${colour}"];`);
    for (const value of node.outputs) maker.set(value, node);
  }
  for (const node of nodes) {
    for (const value of node.inputs) {
      if (!value) continue;
      const made = maker.get(value);
      const from = made ? `n${made.id}` : value.role === "input" ? `v${value.id}` : undefined;
      // Weights and constants would hide the flow of data.
      if (!from) continue;
      lines.push(`  ${from} -> n${node.id} [label=${quote(shapeOf(value, env))}];`);
    }
  }
  for (const value of outputs) {
    const made = maker.get(value);
    lines.push(
      `  o${value.id} [label=${quote(labelOf(value, env))}, fillcolor="${COLOURS.output}"];`,
    );
    if (made) lines.push(`  n${made.id} -> o${value.id};`);
  }
  return [...lines, "}", ""].join("\n");
}

function labelOf(value: Value, env: DimEnv | undefined): string {
  return `${value.name}\n${value.dtype}${shapeOf(value, env)}`;
}

function shapeOf({ shape }: Value, env: DimEnv | undefined): string {
  return `[${shape.map((dim) => env ? evaluate(dim, env) : formatDim(dim)).join(", ")}]`;
}

/** Finds boxes and tensors by what is written in them, brings the first into view, and dims the rest. */
const SEARCH = `
const field = document.querySelector("#search"), count = document.querySelector("#found");
const parts = [...document.querySelectorAll("svg g.node, svg g.tensor")];
field.addEventListener("input", () => {
  const word = field.value.trim().toLowerCase();
  const found = parts.filter((part) => word !== "" && part.textContent.toLowerCase().includes(word));
  for (const part of parts) part.style.opacity = word === "" || found.includes(part) ? "" : "0.15";
  count.textContent = word === "" ? "" : found.length + " found";
  found[0]?.scrollIntoView({ block: "center", inline: "center" });
});`;

/** One page with both pictures, a legend and a search. */
export function htmlOf(
  title: string,
  { graph, arena }: { readonly graph: string; readonly arena?: string | undefined },
): string {
  const safe = escapeXml(title);
  const memory = arena === undefined ? "" : `<h2>Arena over time</h2>\n${arena}\n`;
  const legend = MEANINGS.map(([colour, meaning]) =>
    `<li><span style="background:${colour}"></span>${meaning}</li>`
  ).join("");
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${safe}</title>
<style>
body{font-family:Helvetica,sans-serif;margin:1em}
.arena svg{width:100%;height:auto}
.graph{overflow:auto;border:1px solid #ddd}
header{position:sticky;top:0;background:#fff;padding:.5em 0;z-index:1}
.legend{display:flex;gap:1.2em;flex-wrap:wrap;list-style:none;padding:0}
.legend span{display:inline-block;width:1.2em;height:1em;border:1px solid #555;margin-right:.4em}
</style></head>
<body>
<h1>${safe}</h1>
<header><label>Search <input id="search" type="search" placeholder="op or name"></label>
<output id="found"></output></header>
<div class="arena">${memory}</div>
<h2>Graph</h2>
<ul class="legend">${legend}</ul>
<div class="graph">${graph}</div>
<script>${SEARCH}</script>
</body>
</html>
`;
}
