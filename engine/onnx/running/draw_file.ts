// The nodes of a file as it has them, in Graphviz's language, for graphs of which the host decides something: the bodies
// of If, Loop and Scan, and the functions that the file defines, are boxes around their own nodes. Weights are left out.

import { bodiesOf, namesReadBy } from "../derivation/prepare.ts";
import { functionKey, type OnnxGraph, type OnnxModel, type OnnxNode } from "../file/model.ts";
import { describeType } from "../file/type_text.ts";
import { COLOURS, opening, quote } from "./dot.ts";

/** Functions in functions, and bodies in bodies, that are drawn; deeper ones are named. */
const DEEPEST = 6;

/** What is drawn: nodes that read names from outside. */
interface Block {
  readonly nodes: readonly OnnxNode[];
  /** Names that nodes may read, by the id of what makes them. */
  readonly ids: Map<string, string>;
}

/** The graph of a file in the DOT language. */
export function dotOfFile({ graph, functions }: Pick<OnnxModel, "graph" | "functions">): string {
  const lines = opening(graph.name || "graph");
  // Behind all boxes: an edge inside one would pull its ends in.
  const edges: string[] = [];
  let count = 0;
  const ids = new Map<string, string>();
  for (const { name, type } of graph.inputs) {
    if (graph.initializers.has(name)) continue;
    const id = `v${ids.size}`;
    ids.set(name, id);
    lines.push(box(id, { label: `${name}\n${describeType(type)}`, colour: COLOURS.input }));
  }
  drawBlock({ nodes: graph.nodes, ids }, 0);
  graph.outputs.forEach(({ name, type }, i) => {
    const label = `${name}\n${describeType(type)}`, from = ids.get(name);
    lines.push(box(`o${i}`, { label, colour: COLOURS.output }));
    if (from) edges.push(`  ${from} -> o${i};`);
  });
  return [...lines, ...edges, "}", ""].join("\n");

  function drawBlock({ nodes, ids }: Block, depth: number): void {
    const drawn = nodes.map((node) => ({ node, id: `n${count++}` }));
    for (const { node: { opType, name, outputs }, id } of drawn) {
      lines.push(box(id, { label: `${opType}\n${name}`, colour: COLOURS.host }));
      for (const output of outputs) ids.set(output, id);
    }
    for (const { node, id } of drawn) {
      for (const input of namesReadBy(node)) {
        const from = ids.get(input);
        if (from) edges.push(`  ${from} -> ${id} [label=${quote(input)}];`);
      }
      if (depth < DEEPEST) drawInside(node, { id, ids, depth });
    }
  }

  function drawInside(
    node: OnnxNode,
    { id, ids, depth }: { id: string; ids: Map<string, string>; depth: number },
  ): void {
    for (const { name, body } of namedBodies(node)) {
      const known = new Map(ids);
      cluster(`${node.opType} ${node.name}: ${name}`, () => {
        for (const { name } of body.inputs) known.set(name, id);
        drawBlock({ nodes: body.nodes, ids: known }, depth + 1);
      });
    }
    const own = functions.get(functionKey(node.domain, { name: node.opType, overload: "" }));
    if (!own) return;
    cluster(`function ${node.domain}.${own.name}`, () => {
      const known = new Map(own.inputs.map((name) => [name, id]));
      drawBlock({ nodes: own.nodes, ids: known }, depth + 1);
    });
  }

  function cluster(label: string, draw: () => void): void {
    lines.push(
      `  subgraph cluster_${count++} {`,
      `  label=${
        quote(label)
      }; style="rounded"; color="#999999"; fontname="Helvetica"; fontsize=9;`,
    );
    draw();
    lines.push("  }");
  }
}

/** Bodies of a node with the names of their attributes (`then_branch`, `body`). */
export function namedBodies(node: OnnxNode): { readonly name: string; readonly body: OnnxGraph }[] {
  return [...node.attributes].flatMap(([name, attribute]) =>
    bodiesOf({ ...node, attributes: new Map([[name, attribute]]) })
      .map((body) => ({ name, body }))
  );
}

function box(
  id: string,
  { label, colour }: { readonly label: string; readonly colour: string },
): string {
  return `  ${id} [label=${quote(label)}, fillcolor="${colour}"];`;
}
