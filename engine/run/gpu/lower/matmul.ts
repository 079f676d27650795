// The WebGPU kernels of the matrix products. A node is several dispatches of which one kind runs in a step:
// products for one row, for a few, tiles for more, tiles with split columns while there are too few of them
// to fill a device. Which one it is depends on symbolic sizes: the others have 0 workgroups.

import type { Capabilities, GpuWeight, Shader } from "../../../../gpu/kernel.ts";
import { type Centred, CENTRED_COLUMNS } from "../../../../gpu/kernels/matmul/centred.ts";
import { gemmF32, PLAIN_COLUMNS } from "../../../../gpu/kernels/matmul/gemm_f32.ts";
import { gemmQ8, gemmQ8Bytes } from "../../../../gpu/kernels/matmul/gemm_q8.ts";
import { gemvF32, isStaged } from "../../../../gpu/kernels/matmul/gemv_f32.ts";
import { gemvQ8, gemvQ8Steps } from "../../../../gpu/kernels/matmul/gemv_q8.ts";
import { activationFunction } from "../../../../gpu/kernels/element_functions.ts";
import {
  matmulReduce,
  matmulReduceNorm,
  type NormBehind,
  REDUCE_NORM_COLUMNS,
  REDUCE_RESULTS,
} from "../../../../gpu/kernels/matmul/reduce.ts";
import {
  type Addends,
  type RowsShape,
  workgroupOutputs,
} from "../../../../gpu/kernels/matmul/rows.ts";
import { layerNormShader } from "../../../../gpu/kernels/norm.ts";
import {
  gemmStepGroups,
  MATMUL_TUNING,
  type TeamKind,
  teamsFor,
} from "../../../../gpu/kernels/matmul/tuning.ts";
import { unitColumns } from "../../../../gpu/kernels/matmul/weight_reader.ts";
import { gpuLayoutOf, hasGpuIntegerKernel } from "../../../../gpu/weight_layout.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, min, mul, product, sub } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { besidesProduct } from "../../../ops/records/matmul.ts";
import { isBetween } from "./choice.ts";
import { codeHalvesOf, floatHalvesOf } from "./matrix_product.ts";
import {
  halvesTile,
  matrixTiles,
  planesOf,
  rowsOfX,
  splitsOf,
  type TileProduct,
  vectorTiles,
} from "./tiles.ts";

/** How sums of few rows are added up, best first. */
export const STYLES = ["subgroup", "workgroup"] as const;

/** One of them. */
export type Style = typeof STYLES[number];

/** What is multiplied. */
export interface Arithmetic {
  readonly name: "q8" | "f32";
  takes(format: string): boolean;
  /** Teams of products for few rows. */
  teams(weight: GpuWeight): TeamKind;
  /** Steps of a row of a weight. */
  steps(weight: GpuWeight): number;
  few(
    shape: RowsShape & { readonly layout: string; readonly centred?: Centred | undefined },
    capabilities: Capabilities,
  ): Shader;
  /** Rows up to which that is faster than tiles. */
  mostFew(weight: GpuWeight): number;
  /** For more and more rows. */
  many(weight: GpuWeight, capabilities: Capabilities): readonly TileProduct[];
}

/** Products of floats. */
export const FLOATS: Arithmetic = {
  name: "f32",
  takes: () => true,
  teams: ({ layout }) => isStaged(layout) ? "staged" : "f32",
  steps: ({ layout, columns }) => Math.ceil(columns / unitColumns(layout)),
  few: (shape) => gemvF32(shape),
  mostFew: ({ layout }) =>
    unitColumns(layout) <= PLAIN_COLUMNS ? MATMUL_TUNING.fewPlainRows : MATMUL_TUNING.fewRows,
  many(weight, capabilities) {
    const tiles = vectorTiles(weight, { arithmetic: "f32", make: gemmF32 });
    const matrices = halvesTile(weight, capabilities);
    return matrices ? [...tiles.filter(({ most }) => most < Infinity), matrices] : tiles;
  },
};

/** Products of 8-bit activations. */
export const INTEGERS: Arithmetic = {
  name: "q8",
  takes: hasGpuIntegerKernel,
  teams: () => "q8",
  steps: ({ columns }) => gemvQ8Steps(columns),
  few: (shape, { packedDot }) => gemvQ8({ ...shape, packedDot }),
  mostFew: () => MATMUL_TUNING.fewRows,
  many(weight, capabilities) {
    const integers = vectorTiles(weight, {
      arithmetic: "q8",
      make(shape) {
        const stepGroups = gemmStepGroups(shape.columns), { packedDot } = capabilities;
        const fits = gemmQ8Bytes({ ...shape, stepGroups }) <= capabilities.maxWorkgroupBytes;
        return gemmQ8({ ...shape, stepGroups: fits ? stepGroups : 1, packedDot });
      },
    });
    const matrices = matrixTiles(weight, capabilities);
    if (matrices.length === 0) return integers;
    if (weight.rows * weight.columns < MATMUL_TUNING.fewIntegers) return matrices;
    return [...integers.filter(({ most }) => most < matrices[0]!.most), ...matrices];
  },
};

/** Names of kernels by what their products do besides. */
const FORMS = [
  ["", "matmul"],
  ["active", "matmul_active"],
  ["residual", "matmul_add"],
  ["centred", "matmul_centred"],
  ["centred active", "matmul_centred_active"],
  ["centred residual", "matmul_centred_add"],
  ["residual norm", "matmul_add_norm"],
] as const;

function matmulKernel({ form: [besides, name], arithmetic, style }: {
  readonly form: typeof FORMS[number];
  readonly arithmetic: Arithmetic;
  readonly style: Style;
}): GpuKernel {
  return {
    name: `gpu_${name}_${arithmetic.name}_${style}`,
    when({ node, capabilities }) {
      // One memory cannot be bound twice.
      const [x, weight, , residual] = node.inputs;
      return besidesProduct(node) === besides && x !== residual && isMatrix(node, 2, arithmetic) &&
        takesRows(node, arithmetic) && hasStyle(capabilities, style) &&
        (!node.attributes.norm_behind || weight!.shape[0] as number <= REDUCE_NORM_COLUMNS) &&
        (!node.attributes.centred || canCentre(weight!) && !areMany(x!));
    },
    lower(lowering) {
      lowerFew(lowering, arithmetic, { style, least: 1 });
      if (lowering.node.attributes.norm_behind) lowerNorm(lowering, arithmetic);
      if (!lowering.rowByRow) lowerMany(lowering, arithmetic);
    },
  };
}

/** Norms rows of a product that is made for few rows. */
function lowerNorm(lowering: GpuLowering, arithmetic: Arithmetic): void {
  const { node: { outputs: [y], inputs, attributes }, slice, emit, rowByRow } = lowering;
  const rows = rowsOfX(lowering), { columns, gain, shift } = normBehind(lowering);
  const most = rowByRow ? Infinity : arithmetic.mostFew(lowering.weight(inputs[1]!));
  const { gain: w, shift: b, normed } = normStorage(lowering);
  emit({
    shader: layerNormShader({ hasWeight: gain, hasBias: shift }),
    storage: { x: slice(y!), ...w && { w }, ...b && { b }, y: normed },
    uniforms: { rows, columns, epsilon: attributes.epsilon as number },
    workgroups: [mul(isBetween(rows, { least: 1, most }), rows)],
  });
}

/** Whether products by a weight may centre rows themselves. */
function canCentre({ shape, tensor }: Value): boolean {
  const columns = shape[1] as number;
  return columns % CENTRED_COLUMNS === 0 &&
    unitColumns(gpuLayoutOf(tensor!.format, columns).id) <= PLAIN_COLUMNS;
}

/** Whether rows are known to be more than centre themselves. */
function areMany({ shape }: Value): boolean {
  const rows = product(shape.slice(0, -1));
  return typeof rows === "number" && rows > MATMUL_TUNING.fewPlainRows;
}

/** How rows are centred by the product itself. */
function centredOf({ node: { inputs: [, , , , gain, shift], attributes }, slice }: GpuLowering) {
  const centred: Centred | undefined = attributes.centred
    ? {
      ...{ epsilon: attributes.epsilon as number },
      ...{ gain: gain !== undefined, shift: shift !== undefined },
    }
    : undefined;
  return {
    centred,
    vectors: centred && {
      ...gain && { gain: slice(gain) },
      ...shift && { shift: slice(shift) },
    },
  };
}

/** A lowering whose x is normed in scratch memory, from `least` rows on. */
function centredBefore(lowering: GpuLowering, least: number): GpuLowering {
  const { node: { inputs: [x, , , , gain, shift], attributes }, slice, emit, scratch } = lowering;
  const rows = rowsOfX(lowering), columns = x!.shape.at(-1) as number;
  if (isBetween(lowering.most(rows), { least, most: Infinity }) === 0) return lowering;
  const y = scratch(4 * columns * lowering.most(rows));
  emit({
    shader: layerNormShader({ hasWeight: gain !== undefined, hasBias: shift !== undefined }),
    storage: { x: slice(x!), ...gain && { w: slice(gain) }, ...shift && { b: slice(shift) }, y },
    uniforms: { rows, columns, epsilon: attributes.epsilon as number },
    workgroups: [mul(isBetween(rows, { least, most: Infinity }), rows)],
  });
  return { ...lowering, slice: (value) => value === x ? y : slice(value) };
}

function normBehind({ node: { inputs, attributes } }: GpuLowering): NormBehind {
  const [, weight, , , gain, shift] = inputs;
  return {
    ...{ columns: weight!.shape[0] as number, epsilon: attributes.epsilon as number },
    ...{ gain: gain !== undefined, shift: shift !== undefined },
  };
}

/** Bindings of the norm behind a product. */
function normStorage({ node: { inputs, outputs: [, normed] }, slice }: GpuLowering) {
  const [, , , , gain, shift] = inputs;
  return {
    ...gain && { gain: slice(gain) },
    ...shift && { shift: slice(shift) },
    normed: slice(normed!),
  };
}

/** Whether a device adds up so. */
export function hasStyle({ subgroupSize }: Capabilities, style: Style): boolean {
  return style === "workgroup" || subgroupSize >= MATMUL_TUNING.fewestSubgroupLanes;
}

/** Whether input 1 of a node is a weight of this rank that an arithmetic takes. */
export function isMatrix(
  { inputs: [, weight] }: Node,
  rank: number,
  { takes }: Arithmetic,
): boolean {
  return weight?.role === "weight" && weight.shape.length === rank &&
    weight.shape.every((dim) => typeof dim === "number" && dim > 0) && takes(weight.tensor!.format);
}

/** Whether rows of x are what is multiplied, as they are. */
export function takesRows({ inputs: [x] }: Node, { name }: Arithmetic): boolean {
  return x!.dtype === name;
}

/** So many rows and more. */
export interface SomeRows {
  readonly style: Style;
  readonly least: number;
}

/** Emits the products for some rows that are no tiles. */
export function lowerFew(
  lowering: GpuLowering,
  arithmetic: Arithmetic,
  { style, least }: SomeRows,
): void {
  const { node: { inputs: [x, matrix] }, capabilities } = lowering;
  const weight = lowering.weight(matrix!);
  const rows = rowsOfX(lowering);
  const { has, storage } = resultOf(lowering), { centred, vectors } = centredOf(lowering);
  const { rowsAtOnce: [one, some] } = MATMUL_TUNING;
  for (const atOnce of lowering.rowByRow ? [one] : [one, some]) {
    const wanted = lowering.rowByRow
      ? isBetween(rows, { least, most: Infinity })
      : atOnce === one
      ? isBetween(rows, { least, most: one })
      : isBetween(rows, { least: one + 1, most: arithmetic.mostFew(weight) });
    if (wanted === 0 || (atOnce === one && least > one)) continue;
    const shape = {
      ...teamsFor(capabilities, style, {
        kind: arithmetic.teams(weight),
        steps: arithmetic.steps(weight),
        lines: weight.rows,
        rows: atOnce,
      }),
      layout: weight.layout,
      columns: weight.columns,
      rows: atOnce,
      ...has,
      centred,
    };
    const shader = arithmetic.few(shape, capabilities);
    for (const part of weight.parts) {
      lowering.emit({
        shader,
        storage: {
          x: lowering.slice(x!),
          ...planesOf(weight.layout, part.planes),
          ...storage,
          ...vectors,
        },
        uniforms: { lines: part.rows, first: part.firstRow, outputs: weight.rows, rows },
        workgroups: [
          mul(
            mul(wanted, ceilDiv(rows, atOnce)),
            Math.ceil(part.rows / workgroupOutputs(shape)),
          ),
        ],
      });
    }
  }
}

/** Where the results go, and what is added to them. */
function resultOf({ node: { inputs, outputs: [y], attributes }, slice }: GpuLowering) {
  const [, , bias, residual] = inputs, { activation, alpha } = attributes;
  const has: Addends = {
    ...{ bias: bias !== undefined, residual: residual !== undefined },
    ...activation !== "none" && {
      activation: activationFunction(activation as string, alpha as number),
    },
  };
  return {
    has,
    storage: {
      y: slice(y!),
      ...bias && { bias: slice(bias) },
      ...residual && { residual: slice(residual) },
    },
  };
}

/** Emits the products for rows that fill tiles, each for its numbers of rows. */
export function lowerMany(lowering: GpuLowering, arithmetic: Arithmetic): void {
  const weight = lowering.weight(lowering.node.inputs[1]!);
  const all = arithmetic.many(weight, lowering.capabilities);
  const normed = lowering.node.attributes.norm_behind
    ? lowering.most(rowsOfX(lowering)) * weight.rows
    : 0;
  // One kind runs in a step, so they share the memory of sums of parts.
  const bytes = Math.max(
    ...all.map(({ rows, outputs, enough }) => 4 * Math.max(enough * rows * outputs, normed)),
  );
  let sums: GpuScratch | undefined;
  const partial = () => sums ??= lowering.scratch(bytes);
  let least = arithmetic.mostFew(weight) + 1;
  const normal = lowering.node.attributes.centred ? centredBefore(lowering, least) : lowering;
  for (const tiles of all) {
    lowerTiles(normal, { weight, tiles, least, partial });
    least = tiles.most + 1;
  }
}

type GpuScratch = ReturnType<GpuLowering["scratch"]>;

function lowerTiles(lowering: GpuLowering, { weight, tiles, least, partial }: {
  readonly weight: GpuWeight;
  readonly tiles: TileProduct;
  readonly least: number;
  readonly partial: () => GpuScratch;
}): void {
  const { node: { inputs: [x] } } = lowering;
  const { layout, columns, rows: outputs, parts } = weight;
  const rows = rowsOfX(lowering);
  const wanted = isBetween(rows, { least, most: tiles.most });
  if (wanted === 0) return;
  const rowTiles = ceilDiv(rows, tiles.rows);
  const splits = splitsOf(tiles, { rowTiles, outputs, columns });
  const { has, storage } = resultOf(lowering), { norm_behind } = lowering.node.attributes;
  // Sums of several splits go through scratch memory, and those of rows that are normed.
  const isReduced = norm_behind ? 1 : min(1, sub(splits, 1));
  const ways = [false, true].flatMap((reduced) => {
    const chosen = mul(wanted, reduced ? isReduced : sub(1, isReduced));
    return chosen === 0 ? [] : [{ reduced, chosen }];
  });
  const given = tiles.inHalves === "floats"
    ? floatHalvesOf(lowering, { columns, wanted, mostRows: tiles.most })
    : tiles.inHalves === "codes"
    ? codeHalvesOf(lowering, { columns, wanted, mostRows: tiles.most })
    : { x: lowering.slice(x!) };
  for (const { rows: lines, firstRow: first, planes } of parts) {
    for (const { reduced, chosen } of ways) {
      lowering.emit({
        shader: tiles.shader(reduced ? undefined : has),
        storage: {
          ...{ ...given, ...planesOf(layout, planes) },
          ...reduced ? { y: partial() } : storage,
        },
        uniforms: { lines, first, outputs, rows, splits, ...tiles.uniforms },
        workgroups: [mul(chosen, rowTiles), Math.ceil(lines / tiles.outputs), splits],
      });
    }
  }
  for (const { chosen } of ways.filter(({ reduced }) => reduced)) {
    const results = mul(rows, outputs);
    if (lowering.node.attributes.norm_behind) {
      lowering.emit({
        shader: matmulReduceNorm(has, normBehind(lowering)),
        storage: { partial: partial(), ...storage, ...normStorage(lowering) },
        uniforms: { rows, splits },
        workgroups: [mul(chosen, rows)],
      });
      continue;
    }
    lowering.emit({
      shader: matmulReduce(has),
      storage: { partial: partial(), ...storage },
      uniforms: { results, outputs, splits },
      workgroups: [mul(chosen, ceilDiv(results, REDUCE_RESULTS))],
      joins: { sums: has },
    });
  }
}

function expertKernel(arithmetic: Arithmetic, style: Style): GpuKernel {
  return {
    name: `gpu_expert_matmul_${arithmetic.name}_${style}`,
    when({ node, capabilities }) {
      return isMatrix(node, 3, arithmetic) && takesRows(node, arithmetic) &&
        hasStyle(capabilities, style);
    },
    lower(lowering) {
      const { node, capabilities } = lowering;
      const [x, stack, chosen, bias] = node.inputs;
      const [y] = node.outputs;
      const weight = lowering.weight(stack!);
      const outputs = stack!.shape[1] as number;
      const items = y!.shape[1]!;
      const pairs = mul(y!.shape[0]!, items);
      const shape = {
        ...teamsFor(capabilities, style, {
          kind: arithmetic.teams(weight),
          steps: arithmetic.steps(weight),
          lines: outputs,
          rows: 1,
        }),
        layout: weight.layout,
        columns: weight.columns,
        rows: 1,
        bias: bias !== undefined,
        chosen: chosen ? "list" : "place",
      } as const;
      const shader = arithmetic.few(shape, capabilities);
      for (const part of weight.parts) {
        lowering.emit({
          shader,
          storage: {
            x: lowering.slice(x!),
            ...planesOf(weight.layout, part.planes),
            y: lowering.slice(y!),
            ...bias && { bias: lowering.slice(bias) },
            ...chosen && { chosen: lowering.slice(chosen) },
          },
          uniforms: {
            lines: part.rows,
            first: part.firstRow,
            outputs,
            rows: pairs,
            items,
            sharing: x!.shape[1] === 1 ? items : 1,
          },
          workgroups: [mul(pairs, Math.ceil(outputs / workgroupOutputs(shape)))],
        });
      }
    },
  };
}

/** Products, and those that add something, of floats and of 8-bit rows. */
export const gpuMatmulKernels: readonly GpuKernel[] = FORMS.flatMap((form) =>
  (form[0].startsWith("centred") ? [FLOATS] : [FLOATS, INTEGERS]).flatMap((arithmetic) =>
    STYLES.map((style) => matmulKernel({ form, arithmetic, style }))
  )
);

/** A matrix a row. */
export const gpuExpertMatmulKernels: readonly GpuKernel[] = [FLOATS, INTEGERS].flatMap((
  arithmetic,
) => STYLES.map((style) => expertKernel(arithmetic, style)));
