// The text of products and attention, compared with gpu/product_kernels.snapshot.txt; see
// tests/support/shader_snapshot.ts.

import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { createCaseRandom } from "../engine/ops/case_random.ts";
import { checkSnapshot, textOf } from "../tests/support/shader_snapshot.ts";
import type { Capabilities, Shader } from "./kernel.ts";
import {
  convHalvesShader,
  filterHalvesShader,
  planeHalves,
  planeTopsShader,
} from "./kernels/conv/halves.ts";
import { gemmGluHalves, gemmHalves } from "./kernels/matmul/gemm_halves.ts";
import { halvesBytes, halvesTileOf } from "./kernels/matmul/halves_tile.ts";
import { rowHalves } from "./kernels/matmul/halves.ts";
import { activationFunction } from "./kernels/element_functions.ts";
import { attentionHalves } from "./kernels/attention/halves.ts";
import { headHalves } from "./kernels/attention/head_halves.ts";
import { attentionMatrix } from "./kernels/attention/matrix.ts";
import { attentionMerge } from "./kernels/attention/merge.ts";
import { attentionQueries } from "./kernels/attention/queries.ts";
import { rowsRule, tensorRule } from "./kernels/attention/spans.ts";
import { attentionSplit } from "./kernels/attention/split.ts";
import { attentionTeams } from "./kernels/attention/teams.ts";
import { attentionTile } from "./kernels/attention/tile.ts";
import { attentionWalk } from "./kernels/attention/walk.ts";
import { kvAppend } from "./kernels/kv_append.ts";
import { codeHalves } from "./kernels/matmul/code_halves.ts";
import { gemmF32 } from "./kernels/matmul/gemm_f32.ts";
import { gemmMatrix, matrixBytes } from "./kernels/matmul/gemm_matrix.ts";
import { matrixOutputs, matrixRows } from "./kernels/matmul/matrix_tile.ts";
import { gemmQ8 } from "./kernels/matmul/gemm_q8.ts";
import { gemvF32 } from "./kernels/matmul/gemv_f32.ts";
import { gemvQ8, type GemvQ8Params } from "./kernels/matmul/gemv_q8.ts";
import { matmulGluQ8 } from "./kernels/matmul/glu_q8.ts";
import { matmulReduce, matmulReduceNorm } from "./kernels/matmul/reduce.ts";
import { quantizeQ8 } from "./kernels/quantize_q8.ts";
import { matmulReduceNormQ8 } from "./kernels/matmul/reduce_norm_q8.ts";
import { rowScales, SUM_START } from "./kernels/matmul/tile_sums.ts";
import { rmsNormQ8 } from "./kernels/rms_norm_q8.ts";
import { codeLayout } from "./weight_layout.ts";

const SNAPSHOT = new URL("product_kernels.snapshot.txt", import.meta.url);

const TEAM = { workgroup: 64, lanes: 16, outputs: 1, unroll: 1, rows: 1 };
const TILE = { blockRows: 4, blockOutputs: 4, across: 16, down: 16 };
const HEADS = { heads: 4, kvHeads: 2, width: 16, valueWidth: 16, dtype: "f16" } as const;
const PAGES = { first: 8, perSlot: 2, rows: 64 };
const CAUSAL = rowsRule({
  ...{ pages: PAGES, scale: 0.25, window: 9, softcap: 3, slopes: true, positions: true },
});
const OWN_ROW = rowsRule({
  ...{ pages: PAGES, scale: 0.25, window: 0, softcap: 0, positions: true, leavesOwnKey: true },
});
const GIVEN = rowsRule({
  ...{ scale: 1, starts: true, ends: true, positions: true, reach: 7 },
});

/** Planes of queries and of values, rows of keys, a mask of truth values, valid keys of 64 bit, causal in the end. */
const TENSORS = tensorRule({
  ...{ heads: 4, kvHeads: 2, scale: 0.25, softcap: 3, window: 9, causal: true, fromEnd: true },
  ...{ countWords: 2, mask: "truths", planes: { q: true, k: false, v: true } },
  ...{ packed: false, spoilt: true },
});
/** Queries, keys and values in one tensor, a mask that is added. */
const PACKED = tensorRule({
  ...{ heads: 4, kvHeads: 2, scale: 0.25, softcap: 0, window: 0, causal: true, fromEnd: false },
  ...{ countWords: 0, mask: "added", planes: { q: false, k: false, v: false } },
  ...{ packed: true, spoilt: false },
});
const FLOAT_HEADS = { ...HEADS, dtype: "f32" } as const;

function gemv(params: Partial<GemvQ8Params>): Shader {
  return gemvQ8({
    ...TEAM,
    ...{ subgroupSize: 32, layout: "u4_d", columns: 64, bias: false, packedDot: true },
    ...params,
  });
}

/** One of each template, with every branch of its text somewhere. */
const SHADERS: readonly Shader[] = [
  gemv({ layout: "u4_k", columns: 256 }),
  gemv({
    layout: "u5_dm",
    columns: 96,
    rows: 2,
    residual: true,
    subgroupSize: 0,
    packedDot: false,
  }),
  gemv({ layout: "u6_k16", columns: 256, chosen: "list", bias: true, lanes: 64 }),
  gemv({ layout: "u2_kn16", columns: 256 }),
  gemv({ layout: "i8_sides_row", columns: 96 }),
  gemv({ layout: "f4_e4m3", columns: 64 }),
  gemv({ layout: "l4_d", columns: 64 }),
  gemv({ layout: "u3_dm", columns: 32 }),
  gemv({ layout: "u4_dz_128", columns: 128 }),
  ...["p9_n16", "p10_n16", "p11_n8", "q9_n8", "t5_d_256"].map((layout) =>
    gemv({ layout, columns: 256 })
  ),
  gemvF32({ ...TEAM, subgroupSize: 8, layout: "u4_e1_128", columns: 128, bias: false }),
  gemvF32({ ...TEAM, subgroupSize: 8, layout: "f16", columns: 100, bias: true, chosen: "place" }),
  matmulGluQ8({
    ...{ layout: "i8_d", columns: 64, results: 64, lanes: 8, unroll: 1, bias: true },
    ...{ packedDot: true, activation: activationFunction("silu") },
  }),
  gemmQ8({ ...TILE, layout: "u4_d", columns: 64, stepGroups: 1, packedDot: true }),
  gemmF32({ ...TILE, layout: "bf16", columns: 33 }),
  matmulReduce({ bias: true, residual: true }),
  gemmF32({
    ...{ ...TILE, layout: "f16", columns: 100, wholeQuads: true },
    added: { bias: true, activation: activationFunction("silu", 1.702) },
  }),
  matmulReduceNorm({ bias: true, residual: true }, {
    ...{ columns: 300, epsilon: 1e-5, gain: true, shift: true },
  }),
  gemvF32({
    ...{ ...TEAM, subgroupSize: 8, lanes: 8, rows: 2, layout: "f16", columns: 96, bias: true },
    centred: { epsilon: 1e-5, gain: true, shift: true },
  }),
  gemvF32({
    ...{ ...TEAM, subgroupSize: 0, outputs: 2, layout: "f32", columns: 64, bias: false },
    centred: { epsilon: 1e-5, gain: false, shift: true },
  }),
  matmulReduceNormQ8({ bias: true, residual: true }, {
    ...{ columns: 576, weight: true, epsilon: 1e-5, base: 1, workgroup: 128, subgroupSize: 32 },
  }),
  quantizeQ8({ columns: 64, subgroups: false }),
  rmsNormQ8({
    ...{ columns: 576, weight: true, epsilon: 1e-5, base: 1, workgroup: 128, subgroupSize: 32 },
  }),
  attentionWalk({
    ...{ ...HEADS, rule: CAUSAL, tileHeads: 2, turn: 2, splits: 4 },
    ...{ workgroup: 64, subgroupSize: 32 },
  }),
  attentionWalk({
    ...{ ...HEADS, width: 32, valueWidth: 32, rule: CAUSAL, tileHeads: 1, turn: 1, splits: 1 },
    ...{ workgroup: 64, subgroupSize: 8, direct: { sinks: true, quantize: true } },
  }),
  attentionWalk({
    ...{
      ...HEADS,
      rule: OWN_ROW,
      tileHeads: 2,
      turn: 1,
      splits: 4,
      workgroup: 64,
      subgroupSize: 32,
    },
    fresh: {
      ...{ pairs: 8, interleaved: false, hasQueryNorm: true, hasKeyNorm: false },
      ...{ epsilon: 1e-6, base: 1, isApart: true },
    },
  }),
  attentionSplit({
    ...{ ...HEADS, width: 18, rule: GIVEN, tileHeads: 2, block: 8, splits: 4, workgroup: 64 },
  }),
  attentionWalk({
    ...{ ...FLOAT_HEADS, rule: TENSORS, tileHeads: 1, turn: 1, splits: 1, workgroup: 32 },
    ...{ subgroupSize: 32, direct: { sinks: false, quantize: false } },
  }),
  attentionTile({
    ...{
      ...FLOAT_HEADS,
      rule: PACKED,
      tileHeads: 2,
      queries: 8,
      block: 8,
      across: 8,
      sinks: false,
    },
    memory: { k: "q", v: "q" },
  }),
  attentionTeams({
    ...{ ...HEADS, width: 64, valueWidth: 64, rule: CAUSAL, tileHeads: 2, sinks: true },
    ...{ lanes: 8, each: 2, invocations: 32, block: 4, turn: 2, subgroupSize: 32, quantize: true },
  }),
  attentionQueries({
    ...{ ...FLOAT_HEADS, rule: TENSORS, scale: 0.25, invocations: 32, each: 2, block: 8, turn: 4 },
  }),
  attentionMerge({ ...HEADS, rule: GIVEN, block: 8, run: 8, splits: 4, sinks: true }),
  attentionMerge({ ...HEADS, rule: OWN_ROW, block: 8, run: 4, splits: 4, sinks: false }),
  attentionTile({
    ...HEADS,
    rule: CAUSAL,
    tileHeads: 2,
    queries: 8,
    block: 8,
    across: 8,
    halves: true,
    sinks: true,
  }),
  kvAppend({ dtype: "f16", width: 128, pages: PAGES }),
  kvAppend({ dtype: "q8_0", width: 64, pages: PAGES }),
  attentionWalk({
    ...{ ...HEADS, width: 64, valueWidth: 64, dtype: "q8_0", rule: OWN_ROW },
    ...{ tileHeads: 1, turn: 1, splits: 1, workgroup: 32, subgroupSize: 32 },
    fresh: {
      ...{ pairs: 32, interleaved: true, hasQueryNorm: false, hasKeyNorm: false },
      ...{ epsilon: 0, base: 0, isApart: false },
    },
  }),
  // Eight scores for four lanes, two keys of a head each.
  attentionWalk({
    ...{ ...HEADS, width: 32, valueWidth: 32, rule: CAUSAL },
    ...{ tileHeads: 2, turn: 4, splits: 4, workgroup: 64, subgroupSize: 32 },
  }),
];

/** On subgroup matrices: products of codes and of halves, convolutions, attention, and what makes halves for them. */
const MATRICES = [
  ...[{ wholeQuads: true, added: { bias: false, residual: true } }, {
    added: { bias: true, residual: true },
  }].map((params) =>
    gemmMatrix({
      ...{ ...params, layout: "u4_d", subgroupSize: 32 },
      ...{ down: 1, across: 2, unitRows: 1, unitOutputs: 1 },
    })
  ),
  codeHalves(),
  gemmHalves({
    ...{ parts: 2, subgroupSize: 32, down: 1, across: 2, unitRows: 1, unitOutputs: 1 },
    added: { bias: true, residual: true },
  }),
  gemmGluHalves({
    ...{ parts: 1, subgroupSize: 32, down: 1, across: 2, unitRows: 1, unitOutputs: 2 },
    ...{ bias: true, activation: "gelu" },
  }),
  rowHalves(2),
  rowHalves(1),
  planeTopsShader,
  planeHalves(2),
  filterHalvesShader("f16"),
  ...[false, true].map((isSplit) =>
    convHalvesShader({
      ...{
        parts: isSplit ? 1 : 2,
        subgroupSize: 32,
        down: 1,
        across: 2,
        unitRows: 1,
        unitOutputs: 1,
      },
      ...{ hasBias: true, activation: "silu", isSplit, repeats: [2, 1] },
    })
  ),
  headHalves({ ...FLOAT_HEADS, rule: TENSORS }),
  attentionHalves({
    ...{ ...FLOAT_HEADS, rule: TENSORS, scale: 0.25, subgroups: 2, units: 1, subgroupSize: 32 },
  }),
  attentionMatrix({
    ...{ ...HEADS, valueWidth: 32, rule: CAUSAL, tileHeads: 2 },
    ...{ subgroups: 2, block: 32, subgroupSize: 32, sinks: true },
  }),
];

Deno.test("the text of products and attention is that of the snapshot", () => {
  checkSnapshot(SNAPSHOT, [...SHADERS, ...MATRICES]);
});

/** Bytes of a shader's workgroup memory. */
function declaredBytes(shader: Shader): number {
  const sizes = { "vec4<f16>": 8, "vec4<u32>": 16, f32: 4 } as const;
  const found = textOf(shader).matchAll(
    /var<workgroup> \w+: (?:array<(vec4<f16>|f32), (\d+)>|(vec4<u32>));/g,
  );
  return [...found].reduce(
    (sum, [, array, count = 1, plain]) =>
      sum + sizes[(array ?? plain) as keyof typeof sizes] * Number(count),
    0,
  );
}

Deno.test("tiles of subgroup matrices are what a device has room for", () => {
  const wide = { down: 2, across: 4, unitRows: 4, unitOutputs: 4 };
  assertEquals([matrixRows(wide), matrixOutputs(wide)], [128, 256]);
  assertEquals(
    matrixBytes(wide),
    declaredBytes(gemmMatrix({ ...wide, layout: "u4_d", subgroupSize: 32 })),
  );
  for (const parts of [1, 2] as const) {
    const halves = { ...wide, parts, subgroupSize: 32 };
    assertEquals(halvesBytes(halves), declaredBytes(gemmHalves(halves)));
  }
});

Deno.test("a tile of halves makes few outputs in vain, and fits", () => {
  const able = { subgroupMatrix: true, subgroupSize: 32, maxWorkgroupSize: 1024 };
  const outputs = (wanted: number, maxWorkgroupBytes: number) =>
    matrixOutputs(
      halvesTileOf({ ...able, maxWorkgroupBytes } as Capabilities, { outputs: wanted })!,
    );
  assertEquals([320, 1280, 512, 40].map((wanted) => outputs(wanted, 49_152)), [160, 160, 128, 64]);
  assertEquals(outputs(1280, 32_768), 128);
  const without = { ...able, maxWorkgroupBytes: 49_152, subgroupMatrix: false } as Capabilities;
  assertEquals(halvesTileOf(without, { outputs: 320 }), undefined);
});

Deno.test("no product needs the float16 extension", () => {
  for (const shader of SHADERS) assert(!textOf(shader).includes("enable f16"), shader.name);
});

Deno.test("products use packed dots only where the device has them", () => {
  assertStringIncludes(textOf(gemv({})), "dot4I8Packed");
  assert(!textOf(gemv({ packedDot: false })).includes("dot4I8Packed"));
});

Deno.test("the number of outputs is no part of a product's text: layers share a pipeline", () => {
  assertEquals(gemv({}).uniforms, { lines: "u32", first: "u32", outputs: "u32", rows: "u32" });
});

Deno.test("integer products of a layout without codes are refused by name", () => {
  assertThrows(() => gemv({ layout: "f16" }), RangeError, '"f16"');
});

Deno.test("float products by E0M4 make floats of codes by bit operations alone", () => {
  const text = (layout: string) =>
    textOf(gemvF32({ ...TEAM, subgroupSize: 8, layout, columns: 128, bias: false }));
  // Conversions are calls of a float type with integers in them; splats and bit casts are none.
  const conversions = (layout: string) =>
    text(layout).match(
      /\bf32\([^)]|vec[234]<f32>\(\(?(vec[234]<[iu]32>|pair|raised|nibbles|word)/g,
    );
  assertStringIncludes(text("u4_e1_128"), "| vec4<u32>(128u << 23u)");
  assertStringIncludes(text("u4_e2_64"), "| vec4<u32>(129u << 23u)");
  for (const layout of ["u4_e1", "u4_e1_128", "u4_e2_256"]) assertEquals(conversions(layout), null);
  assert(conversions("u4_dz_128")!.length > 0);
});

Deno.test("an integer leaves the multiply-add by a scale of few bits as that times the scale", () => {
  const start = new Float32Array(Uint32Array.of(SUM_START).buffer)[0]!;
  const float = new Float32Array(1), bits = new Uint32Array(float.buffer);
  const random = createCaseRandom(3), layout = codeLayout("u4_d")!;
  assert(rowScales(layout).includes("0xfffffffcu"));
  for (const [i, number] of random.normal(500).entries()) {
    float[0] = Math.abs(number);
    bits[0]! &= 0xfffffffc;
    const scale = float[0]!, integer = (i - 250) * 2001;
    // Of two products of 24 bits nothing is rounded in float64, and a multiply-add rounds their sum once.
    assertEquals(Math.fround(-start * scale), -start * scale);
    const sum = Math.fround((start + integer) * scale + Math.fround(-start * scale));
    assertEquals(sum, Math.fround(integer * scale));
  }
});
