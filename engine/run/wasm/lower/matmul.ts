// Lowering of everything that reads packed weights: both matrix products and the embedding. The layout of
// a weight was fixed when it was loaded; the kernels take its number and choose among their variants by
// themselves (wasm/assembly/matmul/q8.ts).

import { LF8_GROUP, lf8RowBytes } from "../../../../quant/lf8_products.ts";
import { lowColumns, lowRowBytes, q8RowBytes } from "../../../../quant/q8_activation.ts";
import { q16RowBytes } from "../../../../quant/q16_activation.ts";
import { hasIntegerKernel, hasSignedBytes } from "../../../../wasm/format_layouts.ts";
import { int7TileBytes, ROUNDED_FORMATS } from "../../../../wasm/int7_layout.ts";
import {
  expertScratchBytes,
  floatScratchBytes,
  q16ScratchBytes,
  q8ScratchBytes,
} from "../../../../wasm/matmul_scratch.ts";
import { floatBlock, int7Block } from "../../../../wasm/row_blocks.ts";
import { shareTiles, smallChunk } from "../../../../wasm/weight_chunks.ts";
import { TILE_ROWS, tileBytes, WEIGHT_LAYOUTS } from "../../../../wasm/weight_layout.ts";
import type { PackedWeight, WasmKernel, WasmLowering } from "../kernel.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { besidesProduct } from "../../../ops/records/matmul.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "./lower.ts";
import type { Q8Type } from "../../../ops/q8_rows.ts";

/** Operands that say where a weight is and how it lies. */
function weightOperands(weight: PackedWeight) {
  const { layout, address, columns, rows } = weight;
  const bytes = tileBytes(WEIGHT_LAYOUTS[layout]!, columns);
  return { w: address, layout, columns, outputs: rows, tile_bytes: bytes };
}

/** A weight that was packed: a matrix out of a file. */
function isPacked(weight: Value | undefined): boolean {
  return weight?.role === "weight" && weight.shape.length === 2;
}

function matmulOperands(lowering: WasmLowering, scratchBytes: number) {
  const [x, weight] = lowering.node.inputs;
  const where = weightOperands(lowering.weight(weight!));
  const tiles = Math.ceil(where.outputs / TILE_ROWS);
  return {
    x: inputAddress(lowering, 0),
    y: outputAddress(lowering),
    bias: inputAddress(lowering, 2),
    rows: rowsOf(x!),
    scratch: lowering.scratch(scratchBytes),
    scratch_bytes: scratchBytes,
    ...where,
    ...shareTiles(tiles, { tileBytes: where.tile_bytes, threads: lowering.threads }),
  };
}

/** Whether a node multiplies rows of a type, with nothing but this besides. */
function isProduct(node: Node, rows: "f32" | Q8Type | "u8", besides = ""): boolean {
  return node.inputs[0]!.dtype === rows && besidesProduct(node) === besides;
}

/** 8-bit activations, weights with an integer layout. */
const matmulQ8: WasmKernel = {
  name: "matmul_q8",
  when({ node }) {
    const [, weight] = node.inputs;
    return isProduct(node, "q8") && isPacked(weight) && hasIntegerKernel(weight!.tensor!.format);
  },
  lower(lowering) {
    const columns = lowering.node.inputs[1]!.shape[1] as number;
    emit(lowering, {
      name: "matmul_q8",
      operands: {
        ...matmulOperands(lowering, q8ScratchBytes(columns)),
        row_bytes: q8RowBytes(columns),
        style: 0,
      },
    });
  },
};

/** Float activations that are rounded to 16 bit, weights whose codes are signed bytes. */
const matmulQ16: WasmKernel = {
  name: "matmul_q16",
  when({ node }) {
    const [, weight] = node.inputs;
    return isProduct(node, "f32", "wide") && isPacked(weight) &&
      hasSignedBytes(weight!.tensor!.format);
  },
  lower(lowering) {
    const columns = lowering.node.inputs[1]!.shape[1] as number;
    emit(lowering, {
      name: "matmul_q16",
      operands: {
        ...matmulOperands(lowering, q16ScratchBytes(columns)),
        row_bytes: q16RowBytes(columns),
      },
    });
  },
};

/** Float activations, weights of any format. */
const matmulF32: WasmKernel = {
  name: "matmul_f32",
  when: ({ node }) => isProduct(node, "f32") && isPacked(node.inputs[1]),
  lower(lowering) {
    const { layout, columns } = lowering.weight(lowering.node.inputs[1]!);
    const { block, scratch_bytes } = floatBlock(columns, layout);
    const operands = matmulOperands(lowering, scratch_bytes);
    emit(lowering, { name: "matmul", operands: { ...operands, block } });
  },
};

/** 8-bit activations, float weights that were rounded to 7 bit while loading. */
const matmulInt7: WasmKernel = {
  name: "matmul_int7",
  when({ node }) {
    const [, weight] = node.inputs;
    return isProduct(node, "q8_low", "rounded") && isPacked(weight) &&
      ROUNDED_FORMATS.includes(weight!.tensor!.format);
  },
  lower(lowering) {
    const { columns: given } = lowering.weight(lowering.node.inputs[1]!),
      columns = lowColumns(given);
    const { block, scratch_bytes } = int7Block(columns);
    const { x, y, bias, rows, outputs, w, scratch } = matmulOperands(lowering, scratch_bytes);
    const tile_bytes = int7TileBytes(columns), row_bytes = lowRowBytes(columns);
    emit(lowering, {
      name: "matmul_int7",
      operands: {
        ...{ x, y, bias, rows, columns, outputs, w, scratch, scratch_bytes, tile_bytes, row_bytes },
        ...shareTiles(Math.ceil(outputs / TILE_ROWS), {
          tileBytes: tile_bytes,
          threads: lowering.threads,
        }),
        block,
        style: 0,
      },
    });
  },
};

/** LF8 on both sides, as the bytes of the file. */
const matmulLf8: WasmKernel = {
  name: "matmul_lf8",
  when: ({ node }) => isProduct(node, "u8"),
  lower(lowering) {
    const { inputs: [x, weight] } = lowering.node;
    const [outputs, bytes] = weight!.shape as [number, number];
    emit(lowering, {
      name: "matmul_lf8",
      operands: {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        bias: inputAddress(lowering, 2),
        rows: rowsOf(x!),
        columns: bytes / lf8RowBytes(LF8_GROUP) * LF8_GROUP,
        outputs,
      },
    });
  },
};

/** Kernels of `matmul`; no two take the same node. */
export const matmulKernels: readonly WasmKernel[] = [
  ...[matmulF32, matmulQ16, matmulQ8, matmulInt7, matmulLf8],
];

/** A stack of matrices, each of which begins at a tile of its own. */
function isPackedStack({ inputs: [x, weights] }: Node): boolean {
  return weights?.role === "weight" && (weights.shape[1] as number) % TILE_ROWS === 0 &&
    typeof x!.shape[1] === "number";
}

function expertOperands(lowering: WasmLowering) {
  const { inputs: [x, weights], outputs: [y] } = lowering.node;
  const outputs = weights!.shape[1] as number;
  const { w, layout, columns, tile_bytes, outputs: rows } = weightOperands(
    lowering.weight(weights!),
  );
  return {
    ...{ w, layout, columns, tile_bytes, outputs },
    // Those that are in memory.
    experts: rows / outputs,
    x: inputAddress(lowering, 0),
    y: outputAddress(lowering),
    bias: inputAddress(lowering, 3),
    chosen: inputAddress(lowering, 2),
    rows: x!.shape[0]!,
    count: y!.shape[1]!,
    shared: x!.shape[1] === 1 ? 1 : 0,
    chunk: Math.min(smallChunk(tile_bytes), Math.max(1, outputs / TILE_ROWS)),
  };
}

/** Float activations, matrices chosen row by row. */
const expertMatmulF32: WasmKernel = {
  name: "expert_matmul_f32",
  when: ({ node }) => node.inputs[0]!.dtype === "f32" && isPackedStack(node),
  lower(lowering) {
    emit(lowering, {
      name: "expert_matmul",
      operands: {
        ...expertOperands(lowering),
        scratch: lowering.scratch(floatScratchBytes()),
        scratch_bytes: floatScratchBytes(),
      },
    });
  },
};

/** 8-bit activations, matrices chosen row by row, with an integer layout. */
const expertMatmulQ8: WasmKernel = {
  name: "expert_matmul_q8",
  when: ({ node }) =>
    node.inputs[0]!.dtype === "q8" && isPackedStack(node) &&
    hasIntegerKernel(node.inputs[1]!.tensor!.format),
  lower(lowering) {
    const columns = lowering.node.inputs[1]!.shape[2] as number;
    const scratch_bytes = expertScratchBytes(columns);
    emit(lowering, {
      name: "expert_matmul_q8",
      operands: {
        ...expertOperands(lowering),
        row_bytes: q8RowBytes(columns),
        style: 0,
        scratch: lowering.scratch(scratch_bytes),
        scratch_bytes,
      },
    });
  },
};

/** Kernels of `expert_matmul`. */
export const expertMatmulKernels: readonly WasmKernel[] = [expertMatmulF32, expertMatmulQ8];

/** Rows of a packed table. */
export const embedKernel: WasmKernel = {
  name: "embed",
  when: ({ node: { inputs: [, table] } }) => isPacked(table),
  lower(lowering) {
    const { inputs: [tokens, table], attributes: { scale } } = lowering.node;
    const { w, layout, columns, outputs, tile_bytes } = weightOperands(lowering.weight(table!));
    emit(lowering, {
      name: "embed",
      operands: {
        ...{ w, layout, columns, tile_bytes, vocabulary: outputs },
        tokens: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        rows: tokens!.shape[0]!,
        scale: scale as number,
        scratch: lowering.scratch(floatScratchBytes()),
        scratch_bytes: floatScratchBytes(),
      },
    });
  },
};
