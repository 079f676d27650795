// The references against numbers from elsewhere: NumPy in float64, each written with the textbook formula
// (rope by complex multiplication, gelu by math.erf), to 7 digits. Kernels are then judged by the
// references (tests/ops_test.ts).

import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { attentionList } from "../attention_inputs.ts";
import { DeviceError } from "../../errors.ts";
import { erf } from "../../../functions/special.ts";
import { elementCount, getElement, hostArray, type HostTensor } from "../host_tensor.ts";
import type { Attributes } from "../op.ts";
import { getOp, ops } from "../mod.ts";

interface Tensor {
  readonly shape: readonly number[];
  readonly data: readonly number[];
  readonly dtype?: "f32" | "i32" | "f16";
}

function host({ shape, data, dtype = "f32" }: Tensor): HostTensor {
  assertEquals(data.length, elementCount(shape));
  const values = dtype === "i32"
    ? Int32Array.from(data)
    : dtype === "f16"
    ? new Uint16Array(new Float16Array(data).buffer)
    : Float32Array.from(data);
  return { dtype, shape, data: values };
}

/** Runs a reference; an input listed in `states` has these contents by slot. */
function run(
  name: string,
  inputs: readonly (Tensor | undefined)[],
  attributes: Attributes = {},
  states: Readonly<Record<number, readonly HostTensor[]>> = {},
): HostTensor {
  const op = getOp(name);
  const tensors = inputs.map((input) => input && host(input));
  const [type] = op.infer(tensors, attributes);
  const shape = type!.shape as readonly number[];
  const output = {
    dtype: type!.dtype,
    shape,
    data: hostArray(type!.dtype, { count: elementCount(shape) }),
  };
  op.reference({
    inputs: tensors,
    outputs: [output],
    attributes,
    env: {},
    stateOf: (index, slot) => states[index]![slot]!,
  });
  return output;
}

function expectNumbers(tensor: HostTensor, expected: readonly number[]): void {
  assertEquals(tensor.data.length, expected.length);
  expected.forEach((value, i) => assertAlmostEquals(getElement(tensor, i), value, 1e-6, `at ${i}`));
}

const X: Tensor = { shape: [2, 4], data: [1, -2, 3, 0.5, 0.25, 0, -1, 4] };
const WEIGHT: Tensor = { shape: [4], data: [1, 2, 0.5, -1] };
const BIAS: Tensor = { shape: [4], data: [0.1, 0.2, 0.3, 0.4] };

interface Vector {
  readonly op: string;
  readonly what: string;
  readonly inputs: readonly (Tensor | undefined)[];
  readonly attributes?: Attributes;
  readonly expected: readonly number[];
}

const vectors: readonly Vector[] = [
  {
    op: "norm",
    what: "adds base to the weight",
    inputs: [X, WEIGHT],
    attributes: { epsilon: 1e-5, base: 1 },
    expected: [1.0596244, -3.1788732, 2.3841549, 0, 0.2420907, 0, -0.7262722, 0],
  },
  {
    op: "norm",
    what: "uses the biased variance of centred rows",
    inputs: [X, WEIGHT, BIAS],
    attributes: { centred: true, epsilon: 1e-5 },
    expected: [
      ...[0.3105584, -2.7478175, 0.9667682, 0.4701861],
      ...[-0.1962382, -0.6557992, -0.1772727, -1.2786831],
    ],
  },
  {
    op: "matmul",
    what: "multiplies by rows of the weight and adds the bias",
    inputs: [
      X,
      { shape: [3, 4], data: [1, 2, 3, 4, 0, -1, 0.5, 2, 1, 1, 1, 1] },
      { shape: [3], data: [10, 20, 30] },
    ],
    expected: [18, 24.5, 32.5, 23.25, 27.5, 33.25],
  },
  {
    op: "softmax",
    what: "goes along its axis",
    inputs: [X],
    attributes: { axis: 0 },
    expected: [
      ...[0.6791787, 0.1192029, 0.9820138, 0.0293122],
      ...[0.3208213, 0.8807971, 0.0179862, 0.9706878],
    ],
  },
  {
    op: "unary",
    what: "keeps values within the cap",
    inputs: [X],
    attributes: { kind: "softcap", alpha: 2 },
    expected: [0.9242343, -1.5231883, 1.8102965, 0.4898373, 0.248706, 0, -0.9242343, 1.9280552],
  },
  {
    op: "unary",
    what: "silu",
    inputs: [X],
    attributes: { kind: "silu" },
    expected: [0.7310586, -0.2384058, 2.8577224, 0.3112297, 0.1405441, 0, -0.2689414, 3.9280552],
  },
  {
    op: "unary",
    what: "gelu by the error function",
    inputs: [X],
    attributes: { kind: "gelu" },
    expected: [0.8413447, -0.0455003, 2.9959503, 0.3457312, 0.1496766, 0, -0.1586553, 3.9998733],
  },
  {
    op: "unary",
    what: "gelu by its tanh approximation",
    inputs: [X],
    attributes: { kind: "gelu_tanh" },
    expected: [0.841192, -0.0454023, 2.9963626, 0.345714, 0.1496754, 0, -0.158808, 3.9999298],
  },
  {
    op: "unary",
    what: "relu",
    inputs: [X],
    attributes: { kind: "relu" },
    expected: [1, 0, 3, 0.5, 0.25, 0, 0, 4],
  },
  {
    op: "glu",
    what: "activates the gate, not the other input",
    inputs: [X, { shape: [2, 4], data: [2, 2, 2, 2, -1, -1, -1, -1] }],
    attributes: { activation: "relu" },
    expected: [2, 0, 6, 1, -0.25, 0, 0, -4],
  },
  {
    op: "rope_table",
    what: "gives cosines, then sines, exactly for far positions",
    inputs: [{ shape: [3], data: [0, 3, 100000], dtype: "i32" }, { shape: [2], data: [1, 0.01] }],
    attributes: { magnitude: 1.5 },
    expected: [
      ...[1.5, 1.5, 0, 0],
      ...[-1.4849887, 1.4993251, 0.21168, 0.0449932],
      ...[-1.4990412, 0.8435963, 0.0536232, 1.2403005],
    ],
  },
  {
    op: "rope",
    what: "rotates pairs (i, i + d/2) and passes the rest through",
    inputs: [
      { shape: [1, 1, 5], data: [1, 2, 3, 4, 5] },
      { shape: [1, 4], data: [0.87758256, 0.36235775, 0.47942554, -0.93203909] },
    ],
    attributes: { style: "half" },
    expected: [-0.5606941, 4.4528719, 3.1121732, -0.4146472, 5],
  },
  {
    op: "rope",
    what: "rotates pairs (2i, 2i + 1)",
    inputs: [
      { shape: [1, 1, 5], data: [1, 2, 3, 4, 5] },
      { shape: [1, 4], data: [0.87758256, 0.36235775, 0.47942554, -0.93203909] },
    ],
    attributes: { style: "interleaved" },
    expected: [-0.0812685, 2.2345907, 4.8152296, -1.3466862, 5],
  },
  {
    op: "embed",
    what: "takes rows by id, times scale",
    inputs: [{ shape: [3], data: [1, 0, 1], dtype: "i32" }, X],
    attributes: { scale: 2 },
    expected: [0.5, 0, -2, 8, 2, -4, 6, 1, 0.5, 0, -2, 8],
  },
  {
    op: "select_rows",
    what: "takes rows by index",
    inputs: [X, { shape: [1], data: [1], dtype: "i32" }],
    expected: [0.25, 0, -1, 4],
  },
  {
    op: "binary",
    attributes: { kind: "add" },
    what: "broadcasts both sides",
    inputs: [{ shape: [2, 1], data: [10, 20] }, { shape: [3], data: [1, 2, 3] }],
    expected: [11, 12, 13, 21, 22, 23],
  },
  {
    op: "binary",
    attributes: { kind: "mul" },
    what: "broadcasts an inner dim",
    inputs: [{ shape: [2, 1, 2], data: [1, 2, 3, 4] }, { shape: [2, 1], data: [10, 100] }],
    expected: [10, 20, 100, 200, 30, 40, 300, 400],
  },
  {
    op: "unary",
    what: "multiplies by a float32 factor",
    inputs: [{ shape: [2], data: [1, -4] }],
    attributes: { kind: "scale", alpha: 0.1 },
    expected: [0.1, -0.4],
  },
  {
    op: "quantize",
    what: "rounds ties to even in steps of largest / 127",
    inputs: [{
      shape: [32],
      data: [12.7, -12.7, 0.05, 0.15, 0.25, 6.33, ...new Array(26).fill(0)],
    }],
    expected: [12.7, -12.7, 0, 0.2, 0.2, 6.3, ...new Array(26).fill(0)],
  },
];

for (const { op, what, inputs, attributes, expected } of vectors) {
  Deno.test(`${op}: ${what}`, () => expectNumbers(run(op, inputs, attributes), expected));
}

const KEYS: Tensor = { shape: [4, 1, 2], data: [0.3, 1, 2, -1, 0.5, 0.5, 9, 9] };
const VALUES: Tensor = { shape: [4, 1, 1], data: [1, 10, -4, 99] };

function attend(position: number, attributes: Attributes, slot = 0): HostTensor {
  const empty = (tensor: Tensor) => host({ ...tensor, data: tensor.data.map(() => 7) });
  const bySlot = (tensor: Tensor) => slot === 0 ? [host(tensor)] : [empty(tensor), host(tensor)];
  return run(
    "attention",
    attentionList<Tensor>({
      q: { shape: [1, 2, 2], data: [1, 0.5, -1, 2] },
      ...{ k: KEYS, v: VALUES },
      positions: { shape: [1], data: [position], dtype: "i32" },
      slots: { shape: [1], data: [slot], dtype: "i32" },
    }),
    { scale: 0.7, ...attributes },
    { 1: bySlot(KEYS), 2: bySlot(VALUES) },
  );
}

Deno.test("attention: sees positions up to its own, for all query heads of a group", () => {
  expectNumbers(attend(2, {}), [3.7412545, -0.373632]);
});

Deno.test("attention: a window counts its own position", () => {
  expectNumbers(attend(2, { window: 2 }), [4.7964266, -3.4247221]);
  expectNumbers(attend(2, { window: 3 }), [3.7412545, -0.373632]);
  expectNumbers(attend(2, { window: 1 }), [-4, -4]);
});

Deno.test("attention: softcap applies to scaled scores", () => {
  expectNumbers(attend(2, { softcap: 0.5 }), [2.5714717, 0.6368522]);
});

Deno.test("attention: reads the slot of its row", () => {
  expectNumbers(attend(2, {}, 1), [3.7412545, -0.373632]);
});

Deno.test("kv_append: rounds to the cache's type and writes the row's slot and position only", () => {
  const empty: Tensor = { shape: [3, 1, 2], data: [0, 0, 0, 0, 0, 0], dtype: "f16" };
  const slots = [host(empty), host(empty)];
  run(
    "kv_append",
    [
      empty,
      { shape: [2, 1, 2], data: [0.1, 2049, -3, 4] },
      { shape: [2], data: [1, 0], dtype: "i32" },
      { shape: [2], data: [1, 0], dtype: "i32" },
    ],
    {},
    { 0: slots },
  );
  // 2049 lies between the half floats 2048 and 2050 and goes to the even one.
  expectNumbers(slots[1]!, [0, 0, 0.09997558594, 2048, 0, 0]);
  expectNumbers(slots[0]!, [-3, 4, 0, 0, 0, 0]);
});

Deno.test("kv_append: what does not fit a half float is an error with the remedy, never infinity", () => {
  const append = (dtype: "f16" | "f32", value: number) => {
    const cache: Tensor = { shape: [1, 1, 1], data: [0], dtype };
    const slots = [host(cache)];
    const zero: Tensor = { shape: [1], data: [0], dtype: "i32" };
    run("kv_append", [cache, { shape: [1, 1, 1], data: [value] }, zero, zero], {}, { 0: slots });
    return getElement(slots[0]!, 0);
  };
  assertEquals(append("f16", 65519), 65504);
  assertThrows(() => append("f16", 65520), DeviceError, "Cannot store 65520 as float16");
  assertThrows(() => append("f16", NaN), DeviceError, "Use a float32 cache");
  assertEquals(append("f32", 65520), 65520);
});

Deno.test("a group of zeros quantises to zeros", () => {
  const zeros = { shape: [64], data: new Array(64).fill(0) };
  expectNumbers(run("quantize", [zeros]), zeros.data);
});

Deno.test("results in 8 bit are what quantize makes of floats", () => {
  const random = Array.from({ length: 64 }, (_, i) => Math.sin(i * i) * 3);
  const x: Tensor = { shape: [2, 32], data: random };
  const up: Tensor = { shape: [2, 32], data: random.toReversed() };
  const parts = (float: HostTensor) =>
    run("quantize", [{ shape: [2, 32], data: [...float.data] as number[] }]);
  assertEquals(
    run("norm", [x], { epsilon: 1e-5, to: "q8" }).data,
    parts(run("norm", [x], { epsilon: 1e-5 })).data,
  );
  assertEquals(
    run("glu", [x, up], { activation: "silu", to: "q8" }).data,
    parts(run("glu", [x, up], { activation: "silu" })).data,
  );
});

Deno.test("softmax of large and of infinite scores is finite", () => {
  expectNumbers(run("softmax", [{ shape: [3], data: [1000, 1000, -Infinity] }]), [0.5, 0.5, 0]);
});

Deno.test("the error function is right to 1e-12 on both sides of its switch", () => {
  // Python's math.erf
  const known = [
    [0.5, 0.5204998778130465],
    [2.4999, 0.9995928300996666],
    [2.5001, 0.9995932657565293],
    [4, 0.9999999845827421],
    [-0.5, -0.5204998778130465],
    [0, 0],
  ] as const;
  for (const [x, value] of known) assertAlmostEquals(erf(x), value, 1e-12);
});

Deno.test("indices outside their tensor are refused", () => {
  const ids: Tensor = { shape: [1], data: [2], dtype: "i32" };
  assertThrows(() => run("embed", [ids, X]), RangeError, "the vocabulary has 2");
  assertThrows(() => run("select_rows", [X, ids]), RangeError, "there are 2");
  assertThrows(() => attend(4, {}), RangeError, "the cache holds 4");
});

Deno.test("op records have the name of their file, and tolerances give a reason", () => {
  const files = [...Deno.readDirSync(new URL(".", import.meta.url))].map(({ name }) => name);
  const names = files.filter((name) => name.endsWith(".ts") && !/mod|_test/.test(name));
  assertEquals(names.map((name) => name.slice(0, -3)).sort(), [...ops.keys()].sort());
  for (const { tolerance } of ops.values()) assert(tolerance === undefined || tolerance.reason);
});
