// What `troodon info` says of an ONNX graph that is no language model: what it takes and gives, which ops it is made
// of, and which of them are not served.

import { UnsupportedError } from "../errors.ts";
import { hasCache } from "../onnx/decoder/ports.ts";
import { checkSupport } from "../onnx/derivation/opset.ts";
import type { OnnxModel, OnnxNode } from "../onnx/file/model.ts";
import type { OnnxFile } from "../onnx/file/onnx_file.ts";
import { describeType } from "../onnx/file/type_text.ts";
import { bodiesOf } from "../onnx/derivation/prepare.ts";
import { paint, showBytes, showCount, showTable } from "./format.ts";

/** What is shown. */
interface GraphFacts {
  readonly file: string;
  readonly producer: string;
  /** Version by domain. */
  readonly opsets: Readonly<Record<string, number>>;
  readonly inputs: readonly { readonly name: string; readonly type: string }[];
  readonly outputs: readonly { readonly name: string; readonly type: string }[];
  /** How often each op is there, also in bodies. */
  readonly ops: Readonly<Record<string, number>>;
  readonly weights: { readonly tensors: number; readonly elements: number; readonly bytes: number };
  readonly warnings: readonly string[];
}

function factsOf(model: OnnxModel): GraphFacts {
  const { graph, opsets } = model;
  const weights = [...graph.initializers.values()];
  const ported = ({ name, type }: (typeof graph.inputs)[number]) => ({
    name,
    type: describeType(type),
  });
  const domains = [...opsets].map(([domain, version]) => [domain || "ai.onnx", version]);
  return {
    file: model.file,
    producer: model.producer,
    opsets: Object.fromEntries(domains),
    inputs: graph.inputs.filter(({ name }) => !graph.initializers.has(name)).map(ported),
    outputs: graph.outputs.map(ported),
    ops: Object.fromEntries(countOps(graph.nodes)),
    weights: {
      tensors: weights.length,
      elements: weights.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
      bytes: weights.reduce((sum, { tensor }) => sum + (tensor?.byteLength ?? 0), 0),
    },
    warnings: problemsOf(model),
  };
}

function countOps(nodes: readonly OnnxNode[], counts = new Map<string, number>()) {
  for (const node of nodes) {
    const name = node.domain ? `${node.domain}.${node.opType}` : node.opType;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    for (const body of bodiesOf(node)) countOps(body.nodes, counts);
  }
  return counts;
}

function problemsOf(model: OnnxModel): string[] {
  try {
    checkSupport(model, model);
    return [];
  } catch (error) {
    if (error instanceof UnsupportedError) return [error.message];
    throw error;
  }
}

/** Whether ONNX files are graphs for `loadGraph()` and no language model. */
export function isGraph({ models }: OnnxFile): boolean {
  return !models.some(({ graph }) => hasCache(graph));
}

/** As JSON, one entry a graph. */
export function graphJson(file: OnnxFile) {
  return { model: file.name, graphs: file.models.map(factsOf) };
}

/** As text. */
export function graphText(
  file: OnnxFile,
  { colours, metadata = false }: {
    readonly colours: boolean;
    readonly metadata?: boolean | undefined;
  },
): string {
  return file.models.map((model) => {
    const { producer, opsets, inputs, outputs, ops, weights, ...facts } = factsOf(model);
    const head = (text: string): string => paint(colours, { style: "bold", text });
    const ported = (ports: typeof inputs) =>
      showTable(ports.map(({ name, type }) => [`  ${name}`, type]));
    const rows = Object.entries(ops).sort(([, a], [, b]) => b - a);
    const parts = [
      showTable([
        ["file", facts.file],
        ["container", "ONNX, a graph for loadGraph()"],
        ["made by", producer || "not stated"],
        ["operators", Object.entries(opsets).map(([name, of]) => `${name} ${of}`).join(", ")],
        [
          "weights",
          `${showCount(weights.elements)} in ${weights.tensors} tensors, ${
            showBytes(weights.bytes)
          }`,
        ],
      ]),
      ...[head("\nInputs"), ported(inputs), head("\nOutputs"), ported(outputs)],
      ...[head("\nOps"), showTable(rows.map(([name, count]) => [`  ${name}`, `${count}`]), [1])],
      ...facts.warnings.map((warning) =>
        `\n${paint(colours, { style: "yellow", text: "warning:" })} ${warning}`
      ),
    ];
    if (metadata) parts.push(head("\nMetadata"), showTable([...model.metadata]));
    return parts.join("\n");
  }).join("\n\n");
}
