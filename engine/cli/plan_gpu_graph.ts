// `troodon plan GRAPH.onnx --device gpu`: dispatches of one run of an ONNX graph by kernel, copies between storages and bytes
// of textures among them, and what the host computes. From the structure alone, with the passes that suit the device.

import { closing } from "../byte_source.ts";
import { UnsupportedError } from "../errors.ts";
import { openNamed, openStructure } from "../onnx/file/open_onnx.ts";
import { planGraph, symbolsOfInputs } from "../onnx/running/plan_graph.ts";
import type { NodeDispatches } from "../run/gpu/dispatches.ts";
import { openDevice } from "../run/devices.ts";
import { openShared } from "../run/gpu/errors.ts";
import { countPartDispatches } from "../run/gpu/part_dispatches.ts";
import { paint, showBytes, showTable } from "./format.ts";

/** Dispatches of one run. */
export interface GraphDispatchReport {
  readonly file: string;
  readonly adapter: string;
  readonly dispatches: number;
  /** Dispatches that only copy a tensor into another storage or back. */
  readonly copies: number;
  readonly textureBytes: number;
  /** Submissions: values cross between the GPU and the host before and after each. */
  readonly parts: number;
  readonly nodes: readonly NodeDispatches[];
  /** Ops that the host computes. */
  readonly host: readonly string[];
}

/**
 * Counts for one run at the given sizes.
 *
 * @throws {RangeError} If a symbol has no value, or a name is of no symbol.
 * @throws {UnsupportedError} If the graph is no single plan.
 */
export async function reportGraphDispatches(
  file: string,
  bind: Readonly<Record<string, number>>,
): Promise<GraphDispatchReport> {
  const { capabilities } = await openShared({});
  const model = await openNamed(file, openStructure);
  using _model = closing(model);
  const known = symbolsOfInputs(model);
  const unknown = Object.keys(bind).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new RangeError(`no input has a dim named ${unknown.join(", ")}`);
  const { plan, bindings, split } = planGraph(model, {
    bind,
    device: await openDevice("gpu", {}),
  });
  if (!plan || split.length > 0) {
    const place = split[0] ?? "nothing is computed";
    throw new UnsupportedError(`dispatches are counted for graphs of one plan: ${place}`, {
      file,
      remedy: "Leave --device out",
    });
  }
  const { nodes, host, parts } = countPartDispatches(plan, { capabilities, bindings });
  const sum = (of: (node: NodeDispatches) => number) =>
    nodes.reduce((total, node) => total + of(node), 0);
  return {
    ...{ file, adapter: capabilities.adapter, parts, nodes, host },
    dispatches: sum(({ count }) => count),
    copies: sum(({ copies }) => copies),
    textureBytes: sum(({ textureBytes }) => textureBytes),
  };
}

/** A table by kernel, and the sums. */
export function graphText(report: GraphDispatchReport, colours: boolean): string {
  const { file, adapter, dispatches, copies, textureBytes, parts, nodes, host } = report;
  const kernels = Map.groupBy(nodes, ({ kernel }) => kernel);
  const rows = [...kernels].map(([kernel, own]): [string, string] => {
    const count = own.reduce((sum, node) => sum + node.count, 0);
    return [kernel, `${own.length} nodes, ${count} dispatches`];
  });
  rows.push([
    "in all",
    `${dispatches} dispatches in ${parts} ${
      parts === 1 ? "part" : "parts"
    }, ${copies} of them copies between storages`,
  ]);
  rows.push(["textures", showBytes(textureBytes)]);
  if (host.length > 0) {
    const ops = [...Map.groupBy(host, (op) => op)].map(([op, { length }]) => `${length} ${op}`);
    rows.push(["on the host", ops.join(", ")]);
  }
  return `${paint(colours, { style: "bold", text: `${file} on ${adapter}` })}\n${
    showTable(rows)
  }\n`;
}
