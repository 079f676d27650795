// Pictures of a plan: the graph in Graphviz's language, for any program that lays out graphs, and the arena
// over time as SVG, one rectangle a tensor: left to right the waves in which it lives, bottom to top its
// bytes. Both are made from the plan alone and are deterministic. A file of which the host computes everything has no
// plan: its own nodes are drawn.

import { type DimEnv, evaluate, formatDim } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { namesReadBy } from "../derivation/prepare.ts";
import type { OnnxGraph } from "../file/model.ts";
import { describeType } from "../file/type_text.ts";
import type { Plan } from "../../plan/plan.ts";

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
    lines.push(`  v${value.id} [label=${quote(labelOf(value, env))}, fillcolor="#d8ecd8"];`);
  }
  const maker = new Map<Value, Node>();
  for (const node of nodes) {
    const colour = getOp(node.op).view ? "#ffffff" : hasKernel(node.op) ? "#dbe7f6" : "#f6e3db";
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
    lines.push(`  o${value.id} [label=${quote(labelOf(value, env))}, fillcolor="#ecd8ec"];`);
    if (made) lines.push(`  n${made.id} -> o${value.id};`);
  }
  return [...lines, "}", ""].join("\n");
}

/** The nodes of a file as it has them, for graphs that run on the host; weights are left out. */
export function dotOfFile({ name, nodes, inputs, outputs, initializers }: OnnxGraph): string {
  const lines = opening(name || "graph");
  const ids = new Map<string, string>();
  for (const { name, type } of inputs) {
    if (initializers.has(name)) continue;
    const id = `v${ids.size}`;
    ids.set(name, id);
    lines.push(`  ${id} [label=${quote(`${name}\n${describeType(type)}`)}, fillcolor="#d8ecd8"];`);
  }
  nodes.forEach(({ opType, name, outputs }, i) => {
    lines.push(`  n${i} [label=${quote(`${opType}\n${name}`)}, fillcolor="#f6e3db"];`);
    for (const output of outputs) ids.set(output, `n${i}`);
  });
  nodes.forEach((node, i) => {
    for (const input of namesReadBy(node)) {
      const from = ids.get(input);
      if (from) lines.push(`  ${from} -> n${i} [label=${quote(input)}];`);
    }
  });
  outputs.forEach(({ name, type }, i) => {
    const label = quote(`${name}\n${describeType(type)}`), from = ids.get(name);
    lines.push(`  o${i} [label=${label}, fillcolor="#ecd8ec"];`);
    if (from) lines.push(`  ${from} -> o${i};`);
  });
  return [...lines, "}", ""].join("\n");
}

function opening(name: string): string[] {
  return [
    `digraph ${quote(name)} {`,
    "  rankdir=TB;",
    '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
    '  edge [fontname="Helvetica", fontsize=8, color="#777777"];',
  ];
}

function labelOf(value: Value, env: DimEnv | undefined): string {
  return `${value.name}\n${value.dtype}${shapeOf(value, env)}`;
}

function shapeOf({ shape }: Value, env: DimEnv | undefined): string {
  return `[${shape.map((dim) => env ? evaluate(dim, env) : formatDim(dim)).join(", ")}]`;
}

// Names in files may hold anything.
function quote(text: string): string {
  return `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}

const WIDTH = 1200;
const HEIGHT = 480;
const MARGIN = 40;

/** The arena over time, as SVG. */
export function arenaSvg({ placements, arenaBytes, lowerBoundBytes, waves }: Plan): string {
  const x = (wave: number) => MARGIN + wave / Math.max(1, waves) * (WIDTH - 2 * MARGIN);
  const y = (bytes: number) =>
    HEIGHT - MARGIN - bytes / Math.max(1, arenaBytes) * (HEIGHT - 2 * MARGIN);
  const boxes = [...placements.values()].map(({ value, offset, bytes, first, last }, i) => {
    const hue = (i * 137) % 360;
    const title = `${value.name}: ${bytes} bytes at ${offset}, waves ${first} to ${last}`;
    return `<rect x="${x(first).toFixed(2)}" y="${y(offset + bytes).toFixed(2)}" ` +
      `width="${(x(last + 1) - x(first)).toFixed(2)}" ` +
      `height="${(y(offset) - y(offset + bytes)).toFixed(2)}" ` +
      `fill="hsl(${hue} 55% 72%)" stroke="#555" stroke-width="0.3"><title>${
        escape(title)
      }</title></rect>`;
  });
  const line = y(lowerBoundBytes).toFixed(2);
  const caption = `${arenaBytes} bytes over ${waves} waves; lower bound ${lowerBoundBytes}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ` +
    `font-family="Helvetica, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    ...boxes,
    `<line x1="${MARGIN}" x2="${WIDTH - MARGIN}" y1="${line}" y2="${line}" stroke="#c00" ` +
    `stroke-dasharray="4 3"/>`,
    `<text x="${MARGIN}" y="${HEIGHT - 12}">${escape(caption)}</text>`,
    "</svg>",
  ].join("\n");
}

/** One page with both pictures. */
export function htmlOf(
  title: string,
  { graph, arena }: { readonly graph: string; readonly arena?: string | undefined },
): string {
  const safe = escape(title);
  const memory = arena === undefined ? "" : `<h2>Arena over time</h2>\n${arena}\n`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${safe}</title>
<style>body{font-family:Helvetica,sans-serif;margin:1em}svg{max-width:100%;height:auto}</style></head>
<body>
<h1>${safe}</h1>
${memory}<h2>Graph</h2>
${graph}
</body>
</html>
`;
}

function escape(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(
    /"/g,
    "&quot;",
  );
}
