// The engine's reader of ONNX against the npm package onnx-proto, on what both know: the package follows
// onnx.proto of 1.10, which has neither 4-bit and 8-bit floats nor defaults of functions.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { onnxSeeds } from "../../../tests/support/fuzz_onnx.ts";
import { encodeByProto, plainByProto, plainByReader } from "../../../tests/support/onnx_proto.ts";
import { memorySource } from "../../io.ts";
import { readOnnx } from "./open_onnx.ts";

function sameByBoth(bytes: Uint8Array): void {
  assertEquals(plainByReader(readOnnx(memorySource("file", bytes))), plainByProto(bytes));
}

Deno.test("both readers see the same in models with bodies, functions and initialisers", () => {
  const seeds = onnxSeeds();
  seeds.forEach(sameByBoth);
});

const INT32_TYPES = [2, 3, 4, 5, 6, 9, 10, 16];
const RANGES: Readonly<Record<number, readonly [number, number]>> = {
  2: [0, 255],
  3: [-128, 127],
  4: [0, 65535],
  5: [-32768, 32767],
  6: [-(2 ** 31), 2 ** 31 - 1],
  9: [0, 1],
  10: [0, 65535],
  16: [0, 65535],
};

const NAME = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
const LONG = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
const FLOAT = fc.float({ noNaN: true });

/** TensorProto messages: elements raw, in the typed field of every element type, or strings. */
const TENSOR = fc.oneof(
  fc.record({ dataType: fc.constant(1), items: fc.array(FLOAT) })
    .map(({ dataType, items }) => ({ dataType, floatData: items, dims: [items.length] })),
  fc.record({ dataType: fc.constant(11), items: fc.array(fc.double({ noNaN: true })) })
    .map(({ dataType, items }) => ({ dataType, doubleData: items, dims: [1, items.length] })),
  fc.array(LONG).map((items) => ({ dataType: 7, int64Data: items, dims: [items.length, 1] })),
  fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String))
    .map((items) => ({ dataType: 13, uint64Data: items, dims: [items.length] })),
  fc.constantFrom(...INT32_TYPES).chain((dataType) => {
    const [min, max] = RANGES[dataType]!;
    return fc.array(fc.integer({ min, max }))
      .map((items) => ({ dataType, int32Data: items, dims: [items.length] }));
  }),
  fc.uint8Array().map((rawData) => ({ dataType: 2, rawData, dims: [rawData.length] })),
  fc.array(NAME).map((items) => ({
    dataType: 8,
    stringData: items.map((item) => new TextEncoder().encode(item)),
    dims: [items.length],
  })),
);

const DIM = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 40 }).map((dimValue) => ({ dimValue })),
  fc.constantFrom("N", "batch", "N+1").map((dimParam) => ({ dimParam })),
  fc.constant({}),
);
const TYPE = fc.record({ elemType: fc.constantFrom(1, 7, 9, 10), dim: fc.array(DIM) })
  .map(({ elemType, dim }) => ({ tensorType: { elemType, shape: { dim } } }));
const VALUES = fc.uniqueArray(fc.record({ name: NAME, type: TYPE }), {
  selector: ({ name }) => name,
  maxLength: 3,
});

const ATTRIBUTE = fc.oneof(
  FLOAT.map((f) => ({ type: 1, f })),
  LONG.map((i) => ({ type: 2, i })),
  NAME.map((text) => ({ type: 3, s: new TextEncoder().encode(text) })),
  TENSOR.map((t) => ({ type: 4, t })),
  fc.array(FLOAT).map((floats) => ({ type: 6, floats })),
  fc.array(LONG).map((ints) => ({ type: 7, ints })),
  fc.array(NAME).map((texts) => ({
    type: 8,
    strings: texts.map((text) => new TextEncoder().encode(text)),
  })),
  fc.array(TENSOR, { maxLength: 2 }).map((tensors) => ({ type: 9, tensors })),
  TYPE.map((tp) => ({ type: 13, tp })),
);

const NODE = fc.record({
  name: fc.oneof(fc.constant(""), NAME),
  opType: NAME,
  domain: fc.constantFrom("", "ai.onnx", "com.microsoft"),
  input: fc.array(fc.oneof(fc.constant(""), NAME), { maxLength: 3 }),
  output: fc.array(NAME, { minLength: 1, maxLength: 2 }),
  attribute: fc.dictionary(NAME, ATTRIBUTE, { maxKeys: 3 }).map((named) =>
    Object.entries(named).map(([name, attribute]) => ({ name, ...attribute }))
  ),
});

const MODEL = fc.record({
  irVersion: fc.integer({ min: 3, max: 10 }),
  producerName: NAME,
  opsetImport: fc.constant([{ domain: "", version: 17 }, { domain: "com.microsoft", version: 1 }]),
  metadataProps: fc.dictionary(NAME, NAME, { maxKeys: 2 }).map((named) =>
    Object.entries(named).map(([key, value]) => ({ key, value }))
  ),
  graph: fc.record({
    name: NAME,
    node: fc.array(NODE, { maxLength: 4 }),
    initializer: fc.dictionary(NAME, TENSOR, { maxKeys: 3 }).map((named) =>
      Object.entries(named).map(([name, tensor]) => ({ name, ...tensor }))
    ),
    input: VALUES,
    output: VALUES,
    valueInfo: VALUES,
  }),
});

Deno.test("both readers see the same in any model that onnx-proto writes", () => {
  fc.assert(fc.property(MODEL, (model) => sameByBoth(encodeByProto(model))), {
    seed: 6,
    numRuns: 200,
  });
});
