// WASM kernels of elementwise ops on two inputs. Broadcasting is reduced before lowering: neighbouring
// dims that repeat alike are merged, so that most cases become a flat run or one row for all rows; the
// general kernel takes what is left, up to four dims.

import type { WasmKernel } from "../kernel.ts";
import { type Dim, equal, mul, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { countOf, emit, isStatic, outputAddress } from "./lower.ts";
import { rowCut, rowsPerChunk } from "../../../ops/row_cut.ts";

/** Elements of a chunk where there are no rows. */
const FLAT_CHUNK = 4096;

const KINDS = { add: 0, mul: 1 } as const;

/** Dims of the result that neither, a or b repeats over. */
export interface MergedDim {
  readonly size: Dim;
  readonly a: boolean;
  readonly b: boolean;
}

/** Merged dims, outermost first; dims of size 1 are gone. */
export function mergedDims({ inputs: [a, b], outputs: [y] }: Node): MergedDim[] {
  const rank = y!.shape.length;
  const sizeAt = (value: Value, axis: number): Dim =>
    value.shape[axis - rank + value.shape.length] ?? 1;
  const merged: MergedDim[] = [];
  y!.shape.forEach((size, axis) => {
    if (equal(size, 1)) return;
    const dim = { size, a: equal(sizeAt(a!, axis), size), b: equal(sizeAt(b!, axis), size) };
    const last = merged.at(-1);
    if (last && last.a === dim.a && last.b === dim.b) {
      merged[merged.length - 1] = { ...dim, size: mul(last.size, size) };
    } else merged.push(dim);
  });
  return merged;
}

/** The input that is one row for all rows of the other, with its length. */
function rowVector(node: Node): { row: 0 | 1; columns: number } | undefined {
  const [outer, inner, ...rest] = mergedDims(node);
  if (!outer || !inner || rest.length > 0 || !inner.a || !inner.b || !isStatic(inner.size)) return;
  return { row: outer.a ? 1 : 0, columns: inner.size };
}

/** Steps, in elements, of an input along each of the dims. */
export function strides(dims: readonly MergedDim[], side: "a" | "b"): Dim[] {
  return dims.map((dim, axis) =>
    dim[side]
      ? product(dims.slice(axis + 1).filter((inner) => inner[side]).map(({ size }) => size))
      : 0
  );
}

/** Kernels of `add` or `mul`, best first. */
export function binaryKernels(op: keyof typeof KINDS): WasmKernel[] {
  const kind = KINDS[op];
  return [
    {
      name: `${op}_flat_f32`,
      inRowChunks: true,
      when: ({ node }) => mergedDims(node).every(({ a, b }) => a && b),
      lower(lowering) {
        const { inputs: [a, b], outputs: [y] } = lowering.node;
        const cut = rowCut(y!.shape);
        emit(lowering, "binary_flat", {
          a: lowering.address(a!),
          b: lowering.address(b!),
          y: outputAddress(lowering),
          count: countOf(y!),
          chunk: cut ? rowsPerChunk(cut) * cut.width : FLAT_CHUNK,
          kind,
        });
      },
    },
    {
      name: `${op}_rows_f32`,
      when: ({ node }) => rowVector(node) !== undefined,
      lower(lowering) {
        const { row, columns } = rowVector(lowering.node)!;
        const { inputs } = lowering.node;
        emit(lowering, "binary_rows", {
          a: lowering.address(inputs[1 - row]!),
          b: lowering.address(inputs[row]!),
          y: outputAddress(lowering),
          rows: mergedDims(lowering.node)[0]!.size,
          columns,
          kind,
        });
      },
    },
    {
      name: `${op}_strided_f32`,
      when: ({ node }) => mergedDims(node).length <= 4,
      lower(lowering) {
        const { inputs: [a, b] } = lowering.node;
        const dims = mergedDims(lowering.node);
        const front = Array<0>(4 - dims.length).fill(0);
        const [n0, n1, n2, n3] = [...front.map(() => 1), ...dims.map(({ size }) => size)];
        const [a0, a1, a2, a3] = [...front, ...strides(dims, "a")];
        const [b0, b1, b2, b3] = [...front, ...strides(dims, "b")];
        emit(lowering, "binary_strided", {
          a: lowering.address(a!),
          b: lowering.address(b!),
          y: outputAddress(lowering),
          kind,
          ...{ n0: n0!, n1: n1!, n2: n2!, n3: n3! },
          ...{ a0: a0!, a1: a1!, a2: a2!, a3: a3! },
          ...{ b0: b0!, b1: b1!, b2: b2!, b3: b3! },
        });
      },
    },
  ];
}
