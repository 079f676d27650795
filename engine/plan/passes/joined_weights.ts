// Products of one input as one product (spec LF-6): their weights, row under row, are one weight. It is a view of
// the file, read as any other tensor; nothing is copied before it is loaded.

import { readBeside } from "../../byte_source.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Node, Value } from "../../graph/graph.ts";

/** Whether all are products of the same input, with nothing besides, with weights that can be joined. */
export function canJoin(nodes: readonly (Node | undefined)[]): nodes is readonly Node[] {
  const [first] = nodes;
  const [x, weight, bias] = first?.inputs ?? [];
  return nodes.every((node) =>
    node?.op === "matmul" && node.inputs[0] === x && x?.dtype !== "u8" && !node.inputs[3] &&
    isJoinable(node.inputs[1], weight) &&
    (bias ? isJoinable(node.inputs[2], bias) : !node.inputs[2])
  );
}

/** Whether two weights have one format and one row length. */
export function isJoinable(value: Value | undefined, like: Value | undefined): boolean {
  const tensor = value?.tensor, other = like?.tensor;
  return tensor !== undefined && other !== undefined && tensor.format === other.format &&
    tensor.shape.slice(1).join() === other.shape.slice(1).join();
}

/** Tensors as one. */
export interface JoinedTensor extends TensorInfo {
  /** In order. */
  readonly joined: readonly TensorInfo[];
}

/** Whether a tensor is several. */
export function isJoined(tensor: TensorInfo): tensor is JoinedTensor {
  return "joined" in tensor;
}

/** The tensors of an input of some nodes, row under row. */
export function joinInputs(nodes: readonly Node[], index: number): JoinedTensor | undefined {
  const tensors = nodes.flatMap(({ inputs }) => inputs[index]?.tensor ?? []);
  return tensors.length === 0 ? undefined : joinRows(tensors);
}

/** Tensors of one format and one row length, one behind the other. */
export function joinRows(tensors: readonly TensorInfo[]): JoinedTensor {
  const [first] = tensors as [TensorInfo];
  const size = tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const rows = tensors.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const name = tensors.map(({ name }) => name).join(" + ");
  return {
    ...first,
    name,
    joined: tensors,
    shape: [rows, ...first.shape.slice(1)],
    source: {
      name: `${first.source.name}: ${name}`, // backends know weights by source and offset
      size,
      async readInto(offset, target) {
        let start = 0;
        for (const { source, offset: at, byteLength } of tensors) {
          const from = Math.max(offset, start);
          const to = Math.min(offset + target.length, start + byteLength);
          if (from < to) {
            const part = target.subarray(from - offset, to - offset);
            await readBeside(source, { offset: at + from - start, target: part });
          }
          start += byteLength;
        }
      },
      close() {},
    },
    offset: 0,
    byteLength: size,
  };
}
