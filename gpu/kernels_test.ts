// The text of kernels, compared with gpu/kernels.snapshot.txt: a change of a template is a readable diff there.
// `deno test -A gpu/kernels_test.ts -- --update` writes the file anew.

import { assertEquals } from "@std/assert";
import type { Shader } from "./kernel.ts";
import {
  activationFunction,
  binaryFunction,
  lanes,
  unaryFunction,
} from "./kernels/element_functions.ts";
import { tensorAttentionShader } from "./kernels/attention/tensors.ts";
import { argReduceShader } from "./kernels/arg_reduce.ts";
import { argmaxFeedbackShader, argmaxParts } from "./kernels/argmax.ts";
import { CAST_FUNCTIONS, castExpression, FIND_CODE } from "./kernels/cast_functions.ts";
import {
  winogradFilterShader,
  winogradResultShader,
  winogradSourceShader,
} from "./kernels/conv/winograd.ts";
import { convGemmShader, convReduceShader } from "./kernels/conv/gemm.ts";
import { virtualConvShader } from "./kernels/conv/virtual.ts";
import { elementwiseShader } from "./kernels/elementwise.ts";
import { embedShader } from "./kernels/embed.ts";
import { cumulativeShader } from "./kernels/cumulative.ts";
import { gatherNdShader, gatherShader } from "./kernels/gather.ts";
import { groupMomentsShader, groupNormShader } from "./kernels/group_norm.ts";
import { matmulAnyShader } from "./kernels/matmul/any.ts";
import { layerNormShader, rmsNormShader } from "./kernels/norm.ts";
import { nllLossShader } from "./kernels/nll_loss.ts";
import { padShader } from "./kernels/pad.ts";
import { reduceLinesShader } from "./kernels/reduce_lines.ts";
import { repeatShader } from "./kernels/resize.ts";
import { ropeAppendShader } from "./kernels/rope_append.ts";
import { ropeQuadsShader } from "./kernels/rope_quads.ts";
import { ropeShader, ropeTableShader } from "./kernels/rope.ts";
import { rotaryShader } from "./kernels/rotary.ts";
import { routeShader } from "./kernels/route.ts";
import {
  gluHalvesShader,
  joinColumnsShader,
  selectRowsShader,
  weightedSumShader,
} from "./kernels/rows.ts";
import { softmaxShader } from "./kernels/softmax.ts";
import { sparseAddShader } from "./kernels/sparse_add.ts";
import { topKShader } from "./kernels/top_k.ts";
import { topLogitsShader } from "./kernels/top_logits.ts";
import { IS_MARKED, stridedShader } from "./kernels/strided_map.ts";
import { virtualMapShader } from "./kernels/virtual_map.ts";
import {
  averagePoolShader,
  convShader,
  convTransposeShader,
  maxPoolShader,
} from "./kernels/windows.ts";
import { virtualTensor } from "./virtual_tensor.ts";
import { virtualWeights } from "./virtual_weights.ts";
import { shaderText } from "./wgsl.ts";

const SNAPSHOT = new URL("kernels.snapshot.txt", import.meta.url);

const VIRTUAL_SHAPE = { h: 5, w: 7, c: 6 };

const PAGES = { first: 8, perSlot: 2, rows: 64 };

/** One of each template, with every branch of its text somewhere. */
const SHADERS: readonly Shader[] = [
  elementwiseShader({
    name: "glu",
    inputs: ["gate", "up"],
    functions: activationFunction("silu"),
    expression: "activation(gate) * up",
  }),
  elementwiseShader({
    name: "unary_softcap",
    inputs: ["x"],
    functions: unaryFunction("softcap", "float")!,
    expression: lanes("unary", { vectors: ["x"], others: ", params.alpha, params.beta" }),
    constants: ["alpha", "beta"],
  }),
  stridedShader({
    ...{ name: "binary_pow", inputs: { a: "f32", b: "f32" }, output: "f32", rank: 4 },
    ...{ expression: "binary(a, b)", functions: binaryFunction("pow", "float", { signed: true })! },
  }),
  stridedShader({
    ...{ name: "equal", inputs: { a: "i32", b: "i32" }, output: "bool", expression: "a == b" },
    ...{ shared: { b: "a" }, rank: 6 },
  }),
  stridedShader(
    { name: "move", inputs: { a: "u32" }, output: "u32", expression: "a", rank: 1 },
    { placed: true },
  ),
  stridedShader({
    ...{ name: "cast", inputs: { a: "f16" }, output: "bf16", expression: "a", rank: 1 },
  }),
  stridedShader({
    ...{ name: "move", inputs: { a: "u8" }, output: "u8", expression: "a", rank: 6 },
  }),
  stridedShader({
    ...{ name: "less", inputs: { a: "pair", b: "pair" }, output: "bool", rank: 1 },
    ...{ expression: "binary(a, b)", functions: binaryFunction("less", "wide", { signed: true })! },
  }),
  stridedShader({
    ...{ name: "cast", inputs: { a: "f32" }, output: "i16", rank: 1 },
    ...{ expression: castExpression("f32", "i32")!, functions: CAST_FUNCTIONS },
  }),
  stridedShader({
    ...{ name: "find_code", inputs: { a: "u32", table: "u32" }, output: "u8", rank: 1 },
    ...{ expression: "find_code(a)", functions: FIND_CODE, numbers: ["steps"] },
  }),
  stridedShader({
    ...{ name: "one_hot", inputs: { a: "pair", b: "u32" }, output: "u32", rank: 6 },
    ...{ expression: "select(b_in[0], b_in[1], is_marked(a, i % params.depth))" },
    ...{ functions: IS_MARKED.pair!, numbers: ["depth"] },
  }),
  argReduceShader({ type: "f32", index: "pair", largest: true, last: true, long: false }),
  argReduceShader({ type: "u8", index: "i32", largest: false, last: false, long: true }),
  gatherShader,
  repeatShader,
  gatherNdShader({ depth: 2, wide: true }),
  cumulativeShader({ type: "f32", product: false, exclusive: true, reverse: false, long: false }),
  cumulativeShader({ type: "i32", product: true, exclusive: false, reverse: true, long: true }),
  padShader("reflect"),
  padShader("edge"),
  padShader("wrap"),
  rotaryShader({ joined: true, interleaved: false, positions: "rows" }),
  rotaryShader({ joined: false, interleaved: true, positions: "first" }),
  rotaryShader({ joined: false, interleaved: true, positions: "none" }),
  topKShader({ type: "f32", largest: true, wide: true }),
  topKShader({ type: "i32", largest: false, wide: false }),
  topKShader({ type: "u32", largest: false, wide: false }),
  matmulAnyShader,
  sparseAddShader,
  reduceLinesShader("max"),
  reduceLinesShader("log_sum_exp"),
  nllLossShader({ reduction: "none", hasWeight: false }),
  nllLossShader({ reduction: "mean", hasWeight: true }),
  convShader({ hasBias: true, activation: "silu" }),
  convGemmShader({
    ...{ tile: { filters: 64, places: 64, block: [8, 4] }, kernel: [1, 3, 3], isSplit: false },
    ...{ hasBias: true, activation: "silu", layout: "f16", wholeQuads: false, isPlain: false },
  }),
  convGemmShader({
    ...{ tile: { filters: 16, places: 128, block: [4, 4] }, kernel: [1, 7, 7], isSplit: true },
    ...{ hasBias: false, activation: "none", wholeQuads: true, isPlain: false },
  }),
  convGemmShader({
    ...{ tile: { filters: 16, places: 128, block: [4, 4] }, kernel: [1, 1, 1], isSplit: false },
    ...{ hasBias: true, activation: "none", wholeQuads: true, isPlain: true },
  }),
  winogradFilterShader({ tile: 2, layout: "f32" }),
  winogradFilterShader({ tile: 4, layout: "f16" }),
  winogradSourceShader({ tile: 4, repeats: [2, 1] }),
  winogradResultShader({ tile: 4, hasBias: true, activation: "silu" }),
  convReduceShader({ hasBias: true, activation: "relu" }),
  convTransposeShader({ hasBias: true, activation: "none" }),
  maxPoolShader,
  averagePoolShader,
  virtualMapShader(
    virtualTensor("planes", { shape: VIRTUAL_SHAPE, storage: "planes" }),
    { target: virtualTensor("src", { shape: VIRTUAL_SHAPE, storage: "texture_3d" }) },
  ),
  virtualConvShader({
    source: virtualTensor("src", { shape: VIRTUAL_SHAPE, storage: "texture_3d" }),
    weights: virtualWeights("w", { shape: { o: 5, h: 3, w: 2, i: 6 } }),
    target: virtualTensor("dst", { shape: { ...VIRTUAL_SHAPE, w: 6, c: 5 }, storage: "planes" }),
    ...{ hasBias: true, activation: "relu", groups: 1 },
    ...{ kernel: [1, 3, 2], stride: [1, 1, 1], dilation: [1, 1, 1], begin: [0, 1, 0] },
  }),
  virtualConvShader({
    source: virtualTensor("src", { shape: { h: 4, w: 4, c: 8 }, storage: "texture_2d" }),
    weights: virtualWeights("w", {
      shape: { o: 8, h: 1, w: 1, i: 4 },
      storage: "buffer",
    }),
    target: virtualTensor("dst", { shape: { h: 2, w: 2, c: 8 }, storage: "texture_2d_array" }),
    ...{ hasBias: false, activation: "none", groups: 2 },
    ...{ kernel: [1, 1, 1], stride: [1, 2, 2], dilation: [1, 1, 1], begin: [0, 0, 0] },
  }),
  rmsNormShader({ hasWeight: true }),
  layerNormShader({ hasWeight: true, hasBias: true }),
  groupMomentsShader,
  groupNormShader({ hasWeight: true, hasBias: true, activation: "silu" }),
  tensorAttentionShader({
    ...{ width: 24, valueWidth: 20, mask: "bool", counts: "pair", hasSinks: true },
    heads: { q: "q", k: "k", v: "k", new_k: "new_k", new_v: "new_v" },
  }),
  tensorAttentionShader({
    ...{ width: 512, valueWidth: 512, mask: "f32", counts: "i32", hasSinks: false },
    heads: { q: "q", k: "q", v: "q" },
  }),
  softmaxShader,
  ropeTableShader({ hasSpans: true }),
  ropeShader({ interleaved: true }),
  ropeAppendShader({
    ...{ width: 64, interleaved: false, dtype: "f16", pages: PAGES },
    ...{ hasQueryNorm: true, hasKeyNorm: true, isApart: true },
  }),
  ropeAppendShader({
    ...{ width: 64, interleaved: true, dtype: "q8_0", pages: PAGES },
    ...{ hasQueryNorm: false, hasKeyNorm: false, isApart: false },
  }),
  ropeQuadsShader({ width: 64, interleaved: false, dtype: "f16", pages: PAGES }),
  ropeQuadsShader({ width: 80, interleaved: true, dtype: "f32", pages: PAGES }),
  embedShader("f16"),
  selectRowsShader,
  joinColumnsShader,
  weightedSumShader,
  gluHalvesShader(activationFunction("gelu_tanh")),
  routeShader({
    ...{ experts: 8, groups: 2, softmax: false, bestTwo: true },
    ...{ normalize: true, hasCorrection: true },
  }),
  argmaxParts({ keeps: true }),
  argmaxParts({ keeps: true, among: true }),
  argmaxFeedbackShader,
  topLogitsShader("logits"),
];

function textOf(shader: Shader): string {
  const memory = Object.fromEntries(
    Object.keys(shader.storage).map((name) => [name, { access: "either" as const }]),
  );
  return `// ${shader.name}\n${shaderText(shader, memory)}`;
}

Deno.test("the text of kernels is that of the snapshot", () => {
  const text = SHADERS.map(textOf).join("\n");
  if (Deno.args.includes("--update")) Deno.writeTextFileSync(SNAPSHOT, text);
  assertEquals(text.split("\n"), Deno.readTextFileSync(SNAPSHOT).split("\n"));
});

Deno.test("equal constants give equal text, and a shader's name is not in it", () => {
  const text = (name: string) =>
    shaderText({ ...rmsNormShader({ hasWeight: true }), name }, {
      ...{ x: { access: "read" }, w: { access: "read" }, y: { access: "read_write" } },
    });
  assertEquals(text("a"), text("b"));
});
