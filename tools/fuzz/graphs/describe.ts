// A graph in words for the report of a failure, and its files: a .onnx, and its inputs beside it as JSON.

import { getElement } from "../../../engine/ops/host_tensor.ts";
import type { Attribute } from "../../../tests/support/write_onnx.ts";
import { modelOf } from "./judge.ts";
import type { GraphCase } from "./writer.ts";

/** One line a node: `v2 = Clip(v1, c0) {alpha: 1}`. */
export function describe({ graph, opset, runs }: GraphCase): string {
  const shapes = runs.map((run) =>
    [...run].map(([name, { dtype, shape }]) => `${name} ${dtype}[${shape}]`).join(", ")
  );
  const constants = (graph.initializers ?? []).map(({ name, dims }) => `${name}[${dims}]`);
  return [
    `opset ${opset}; inputs ${shapes.join(" | ") || "none"}; constants ${constants.join(", ")}`,
    ...graph.nodes.map(({ op, inputs, outputs, attributes = {} }) => {
      const given = Object.entries(attributes).map(([name, value]) => `${name}: ${text(value)}`);
      return `${outputs.join(", ")} = ${op}(${inputs.join(", ")}) {${given.join(", ")}}`;
    }),
    `results ${graph.outputs.map(([name]) => name).join(", ")}`,
  ].join("\n");
}

function text(attribute: Attribute): string {
  if ("t" in attribute) return `tensor of [${attribute.t.dims}]`;
  if ("g" in attribute) return "a graph";
  return String(Object.values(attribute)[0]);
}

/** Writes the model and its inputs; the path of the model. */
export async function writeCase(given: GraphCase, path: string): Promise<string> {
  const runs = given.runs.map((run) =>
    Object.fromEntries(
      [...run].map(([name, tensor]) => [name, {
        type: tensor.dtype,
        dims: tensor.shape,
        data: Array.from({ length: tensor.data.length }, (_, i) => written(getElement(tensor, i))),
      }]),
    )
  );
  await Deno.writeFile(`${path}.onnx`, modelOf(given));
  await Deno.writeTextFile(`${path}.json`, JSON.stringify({ runs }));
  return `${path}.onnx`;
}

// JSON has no infinities.
function written(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
