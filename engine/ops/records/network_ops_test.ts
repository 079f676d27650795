// The references of neural-network ops against what must be true of them whatever their loops look
// like: direct definitions, inverses, invariants and equalities between ops. The ONNX conformance suite
// (`deno task conformance`) holds them against outside numbers.

import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { createCaseRandom } from "../case_random.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import {
  elementCount,
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../host_tensor.ts";
import type { Attributes, DataType } from "../../graph/graph.ts";
import { getOp } from "../mod.ts";

const RUNS = { seed: 6, numRuns: 40 };

function tensor(
  shape: readonly number[],
  fill: (index: number) => number,
  dtype: DataType = "f32",
): HostTensor {
  const made = { dtype, shape, data: hostArray(dtype, { count: elementCount(shape) }) };
  for (let i = 0; i < made.data.length; i++) setElement(made, { index: i, value: fill(i) });
  return made;
}

function normal(shape: readonly number[], seed: number): HostTensor {
  return { dtype: "f32", shape, data: createCaseRandom(seed).normal(elementCount(shape)) };
}

function run(
  name: string,
  inputs: readonly (HostTensor | undefined)[],
  attributes: Attributes = {},
): [HostTensor, ...HostTensor[]] {
  const op = getOp(name), complete = op.attributes(attributes);
  const outputs = op.infer(inputs, complete).map(({ dtype, shape }): HostTensor => {
    const sizes = shape as readonly number[];
    return { dtype, shape: sizes, data: hostArray(dtype, { count: elementCount(sizes) }) };
  });
  op.reference({ inputs, outputs, attributes: complete, env: {}, stateOf: () => outputs[0]! });
  return outputs as [HostTensor, ...HostTensor[]];
}

function assertClose(actual: HostTensor, expected: HostTensor, tolerance = 1e-5): void {
  assertEquals(actual.shape, expected.shape);
  for (let i = 0; i < expected.data.length; i++) {
    const value = getElement(expected, i);
    const bound = tolerance * Math.max(1, Math.abs(value));
    assertAlmostEquals(getElement(actual, i), value, bound, `at ${i}`);
  }
}

const small = (max: number) => fc.integer({ min: 1, max });

Deno.test("conv is the sum of its definition, element by element", () => {
  const shape = fc.record({
    ...{ n: small(2), groups: small(3), c: small(2), f: small(2), h: small(6), w: small(6) },
    ...{ kh: small(3), kw: small(3), sh: small(2), sw: small(3), dh: small(2), dw: small(2) },
    ...{ top: fc.nat(2), left: fc.nat(2), bottom: fc.nat(2), right: fc.nat(2) },
  });
  fc.assert(
    fc.property(shape, (s) => {
      fc.pre((s.kh - 1) * s.dh < s.h + s.top + s.bottom);
      fc.pre((s.kw - 1) * s.dw < s.w + s.left + s.right);
      const x = normal([s.n, s.groups * s.c, s.h, s.w], 1);
      const w = normal([s.groups * s.f, s.c, s.kh, s.kw], 2);
      const [y] = run("conv", [x, w], {
        ...{ groups: s.groups, strides: [s.sh, s.sw], dilations: [s.dh, s.dw] },
        pads: [s.top, s.left, s.bottom, s.right],
      });
      const [, filters, rows, columns] = y.shape as [number, number, number, number];
      const at = (n: number, c: number, i: number, j: number) =>
        i < 0 || i >= s.h || j < 0 || j >= s.w
          ? 0
          : getElement(x, ((n * s.groups * s.c + c) * s.h + i) * s.w + j);
      const expected = tensor(y.shape, (index) => {
        const j = index % columns, i = Math.floor(index / columns) % rows;
        const f = Math.floor(index / (columns * rows)) % filters;
        const n = Math.floor(index / (columns * rows * filters));
        let sum = 0;
        for (let tap = 0; tap < s.c * s.kh * s.kw; tap++) {
          const q = tap % s.kw, p = Math.floor(tap / s.kw) % s.kh;
          const c = Math.floor(f / s.f) * s.c + Math.floor(tap / (s.kw * s.kh));
          const row = i * s.sh + p * s.dh - s.top, column = j * s.sw + q * s.dw - s.left;
          sum += at(n, c, row, column) * getElement(w, f * s.c * s.kh * s.kw + tap);
        }
        return sum;
      });
      assertClose(y, expected);
    }),
    RUNS,
  );
});

// <conv(x), y> = <x, conv_transpose(y)>: the transposed map is the adjoint.
Deno.test("conv_transpose is the adjoint of conv", () => {
  const x = normal([1, 4, 9, 7], 1), w = normal([6, 2, 3, 2], 2);
  const window = { groups: 2, strides: [2, 1], dilations: [1, 2], pads: [1, 1, 1, 0] };
  const [convolved] = run("conv", [x, w], window);
  const y = normal(convolved.shape, 3);
  const [back] = run("conv_transpose", [y, w], window);
  assertEquals(back.shape, x.shape);
  const inner = (a: HostTensor, b: HostTensor) =>
    Array.from({ length: a.data.length }, (_, i) => getElement(a, i) * getElement(b, i))
      .reduce((sum, product) => sum + product, 0);
  assertAlmostEquals(inner(convolved, y), inner(x, back), 1e-3);
});

Deno.test("deform_conv without offsets is conv", () => {
  const x = normal([1, 4, 6, 5], 1), w = normal([3, 4, 3, 3], 2), window = { pads: [1, 1, 1, 1] };
  const offset = tensor([1, 18, 6, 5], () => 0);
  assertClose(run("deform_conv", [x, w, offset], window)[0], run("conv", [x, w], window)[0]);
});

Deno.test("conv_integer is conv of the differences from the zero points", () => {
  const codes = createCaseRandom(4);
  const x = codes.codes("u8", [1, 2, 5, 5]) as HostTensor & { role: string };
  const w = codes.codes("i8", [3, 2, 3, 3]) as HostTensor & { role: string };
  const xZero = tensor([], () => 130, "u8"), wZero = tensor([3], (i) => i - 1, "i8");
  const [y] = run("conv_integer", [x, w, xZero, wZero], { pads: [1, 1, 1, 1] });
  const real = (t: HostTensor, zero: (i: number) => number) =>
    tensor(t.shape, (i) => getElement(t, i) - zero(i));
  const [expected] = run(
    "conv",
    [real(x, () => 130), real(w, (i) => Math.floor(i / 18) - 1)],
    { pads: [1, 1, 1, 1] },
  );
  assertClose(y, expected, 0);
});

Deno.test("a product of transposed operands is that of turned ones", () => {
  const a = normal([2, 3, 4], 1), b = normal([2, 4, 5], 2);
  const turn = (t: HostTensor) => run("transpose", [t], { perm: [0, 2, 1] })[0];
  const [plain] = run("matmul_nd", [a, b], { alpha: 0.5 });
  const attributes = { transpose_a: true, transpose_b: true, alpha: 0.5 };
  assertClose(run("matmul_nd", [turn(a), turn(b)], attributes)[0], plain);
});

Deno.test("64-bit products wrap instead of being rounded", () => {
  const big = { dtype: "i64", shape: [1, 2], data: BigInt64Array.of(2n ** 62n, 3n) } as const;
  const by = { dtype: "i64", shape: [2, 1], data: BigInt64Array.of(4n, 2n ** 53n + 1n) } as const;
  assertEquals(run("matmul_nd", [big, by])[0].data[0], 3n * (2n ** 53n + 1n));
});

Deno.test("indices of max_pool lead max_unpool back to the same elements", () => {
  const x = normal([2, 3, 6, 8], 1), window = { kernel: [2, 2], strides: [2, 2] };
  const [largest, indices] = run("max_pool", [x], { ...window, indices: true });
  for (let i = 0; i < largest.data.length; i++) {
    assertEquals(getElement(largest, i), getElement(x, getElement(indices!, i)));
  }
  const [back] = run("max_unpool", [largest, indices], { shape: x.shape, counted: x.shape });
  for (let i = 0; i < back.data.length; i++) {
    assert([0, getElement(x, i)].includes(getElement(back, i)));
  }
});

Deno.test("the average of equal elements is that element, at the edges too", () => {
  const x = tensor([1, 1, 5, 7], () => 3);
  for (const ceil of [false, true]) {
    const window = { kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1], ceil };
    const [y] = run("pool", [x], { kind: "average", ...window });
    assertClose(y, tensor(y.shape, () => 3));
  }
});

// By hand.
Deno.test("averages count pads when told to, and the odd pad of same_upper is behind", () => {
  const three = tensor([1, 1, 3], (i) => i + 1), five = tensor([1, 1, 5], (i) => i + 1);
  const average = (x: HostTensor, attributes: Attributes) =>
    Array.from(run("pool", [x], { kind: "average", ...attributes })[0].data, Number);
  const padded = { kernel: [3], pads: [1, 1] };
  assertEquals(average(three, padded), [1.5, 2, 2.5]);
  assertEquals(average(three, { ...padded, count_pads: true }), [1, 2, Math.fround(5 / 3)]);
  const pairs = { kernel: [2], strides: [2] };
  assertEquals(average(five, { ...pairs, padding: "same_upper" }), [1.5, 3.5, 5]);
  assertEquals(average(five, { ...pairs, padding: "same_lower" }), [1, 2.5, 4.5]);
});

Deno.test("every way to resize keeps a constant, and linear keeps a ramp", () => {
  const constant = tensor([1, 1, 5, 4], () => 2);
  for (const mode of ["nearest", "linear", "cubic"]) {
    for (const coordinates of ["half_pixel", "align_corners", "asymmetric"]) {
      for (const antialias of [false, true]) {
        const attributes = { sizes: [1, 1, 3, 9], mode, coordinates, antialias };
        assertClose(run("resize", [constant], attributes)[0], tensor([1, 1, 3, 9], () => 2));
      }
    }
  }
  const ramp = tensor([5], (i) => i), finer = { sizes: [9], mode: "linear" };
  const [y] = run("resize", [ramp], { ...finer, coordinates: "align_corners" });
  assertClose(y, tensor([9], (i) => i / 2));
});

Deno.test("a grid of the identity reads every element where it is", () => {
  const x = normal([1, 2, 4, 5], 1), identity = tensor([1, 2, 3], (i) => i % 4 === 0 ? 1 : 0);
  for (const align_corners of [false, true]) {
    const [grid] = run("affine_grid", [identity], { sizes: [4, 5], align_corners });
    for (const mode of ["nearest", "linear", "cubic"]) {
      const attributes = { mode, padding: "border", align_corners };
      assertClose(run("grid_sample", [x, grid], attributes)[0], x, 1e-4);
    }
  }
});

Deno.test("the inverse Fourier transform undoes the transform, for any length", () => {
  fc.assert(
    fc.property(small(33), (length) => {
      const x = normal([2, length, 2], length), attributes = { axis: 1, length };
      const [spectrum] = run("dft", [x], attributes);
      assertClose(run("dft", [spectrum], { ...attributes, inverse: true })[0], x);
    }),
    RUNS,
  );
});

Deno.test("half a spectrum of a real signal gives the signal back", () => {
  for (const length of [7, 8]) {
    const x = normal([1, length, 1], 1), attributes = { axis: 1, length, onesided: true };
    const [half] = run("dft", [x], attributes);
    assertEquals(half.shape, [1, Math.floor(length / 2) + 1, 2]);
    assertClose(run("dft", [half], { ...attributes, inverse: true })[0], x);
  }
});

const HEADS = { q_heads: 4, kv_heads: 2, scale: 0.5 };

Deno.test("heads may lie in rows or in planes", () => {
  const q = normal([2, 3, 32], 1), k = normal([2, 5, 16], 2), v = normal([2, 5, 16], 3);
  const planes = (x: HostTensor, heads: number) => {
    const [batch, rows, columns] = x.shape as [number, number, number];
    const shape: Dim[] = [batch, rows, heads, columns / heads];
    const [split] = run("reshape", [x], { shape });
    return run("transpose", [{ ...split, data: x.data }], { perm: [0, 2, 1, 3] })[0];
  };
  const [rows] = run("attention", [q, k, v], HEADS);
  const [apart] = run("attention", [planes(q, 4), planes(k, 2), planes(v, 2)], HEADS);
  assertClose(planes(rows, 4), apart);
});

Deno.test("causality, windows and key counts are masks", () => {
  const q = normal([1, 4, 32], 1), k = normal([1, 6, 16], 2), v = normal([1, 6, 16], 3);
  const masked = (sees: (row: number, key: number) => boolean) => {
    const mask = tensor([4, 6], (i) => Number(sees(Math.floor(i / 6), i % 6)), "bool");
    return run("attention", [q, k, v, mask], HEADS)[0];
  };
  const causal = { ...HEADS, causal: true, offset: 2 };
  assertClose(run("attention", [q, k, v], causal)[0], masked((r, j) => j <= r + 2));
  assertClose(
    run("attention", [q, k, v], { ...causal, window: 2 })[0],
    masked((r, j) => j <= r + 2 && j > r),
  );
  const counts = tensor([1], () => 4, "i64");
  assertClose(
    run("attention", [q, k, v, undefined, counts], HEADS)[0],
    masked((_, j) => j < 4),
  );
});

Deno.test("a row that sees no key gives zeros, not NaN", () => {
  const x = normal([1, 2, 16], 1), mask = tensor([2, 2], (i) => Number(i > 1), "bool");
  const attributes = { q_heads: 2, kv_heads: 2, scale: 1 };
  const [y] = run("attention", [x, x, x, mask], attributes);
  for (let i = 0; i < 16; i++) assertEquals(getElement(y, i), 0);
  assert(getElement(y, 16) !== 0);
});

Deno.test("append_rows puts each item's rows behind its own keys", () => {
  const past = tensor([2, 1, 3, 1], (i) => 10 + i), rows = tensor([2, 1, 1], (i) => 50 + i);
  const counts = tensor([2], (i) => [4, 2][i]!, "i32");
  const [y] = run("append_rows", [rows, past, counts], { heads: 1, capacity: 4 });
  assertEquals([...y.data], [10, 11, 12, 50, 13, 51, 0, 0]);
  const tooFar = tensor([2], () => 6, "i32");
  assertThrows(
    () => run("append_rows", [rows, past, tooFar], { heads: 1, capacity: 8 }),
    RangeError,
    "Cannot append at row 5",
  );
});

Deno.test("rotary turns pairs without changing their length, and back by the negative angle", () => {
  const x = normal([1, 3, 16], 1), angle = normal([5, 4], 2);
  const cos = tensor([5, 4], (i) => Math.cos(getElement(angle, i)));
  const sin = tensor([5, 4], (i) => Math.sin(getElement(angle, i)));
  const back = tensor([5, 4], (i) => -Math.sin(getElement(angle, i)));
  const positions = tensor([1, 3], (i) => [4, 0, 2][i]!, "i64");
  for (const style of ["half", "interleaved"]) {
    const attributes = { heads: 2, style };
    const [turned] = run("rope", [x, cos, sin, positions], attributes);
    assertClose(run("rope", [turned, cos, back, positions], attributes)[0], x);
  }
});

Deno.test("a layer over a reversed sequence is the reversed layer", () => {
  const x = normal([5, 2, 3], 1), w = normal([1, 16, 3], 2), r = normal([1, 16, 4], 3);
  const lstm = { kind: "lstm", hidden: 4, activations: ["Sigmoid", "Tanh", "Tanh"] };
  const turned = tensor(
    x.shape,
    (i) => getElement(x, (4 - Math.floor(i / 6)) * 6 + i % 6),
  );
  const [, h, c] = run("recurrent", [x, w, r], { ...lstm, direction: "reverse" });
  const [, h2, c2] = run("recurrent", [turned, w, r], lstm);
  assertClose(h!, h2!, 0);
  assertClose(c!, c2!, 0);
});

Deno.test("a row that ends early keeps its last state and has zeros behind", () => {
  const x = normal([4, 2, 3], 1), w = normal([1, 12, 3], 2), r = normal([1, 12, 4], 3);
  const gru = { kind: "gru", hidden: 4, activations: ["Sigmoid", "Tanh"] };
  const lengths = tensor([2], (i) => [4, 2][i]!, "i32");
  const [y, h] = run("recurrent", [x, w, r, undefined, lengths], gru);
  for (let i = 0; i < 4; i++) {
    assertEquals(getElement(h!, 4 + i), getElement(y, (1 * 2 + 1) * 4 + i));
    assertEquals(getElement(y, (2 * 2 + 1) * 4 + i), 0);
  }
});

Deno.test("linear attention is causal attention without the softmax", () => {
  const q = normal([1, 5, 6], 1), k = normal([1, 5, 6], 2), v = normal([1, 5, 4], 3);
  const attributes = { q_heads: 2, kv_heads: 2, scale: 0.7, rule: "linear" };
  const [y] = run("linear_attention", [q, k, v], attributes);
  const expected = tensor([1, 5, 4], (i) => {
    const row = Math.floor(i / 4), head = Math.floor(i % 4 / 2);
    let sum = 0;
    for (let j = 0; j <= row; j++) {
      let dot = 0;
      for (let d = 0; d < 3; d++) {
        dot += getElement(q, row * 6 + head * 3 + d) * getElement(k, j * 6 + head * 3 + d);
      }
      sum += 0.7 * dot * getElement(v, j * 4 + i % 4);
    }
    return sum;
  });
  assertClose(y, expected);
});

Deno.test("codes stand for numbers at most half a step away", () => {
  const x = normal([3, 40], 1);
  const scale = tensor([3, 2], (i) => 0.03 + 0.01 * i), zero = tensor([3, 2], (i) => 120 + i, "u8");
  const place = { axis: 1, block: 20 };
  const [codes] = run("quantize_linear", [x, scale, zero], { to: "u8", ...place });
  const [back] = run("dequantize_linear", [codes, scale, zero], { to: "f32", ...place });
  for (let i = 0; i < 120; i++) {
    const step = getElement(scale, Math.floor(i / 40) * 2 + Math.floor(i % 40 / 20));
    assert(Math.abs(getElement(back, i) - getElement(x, i)) <= step / 2 + 1e-6);
  }
});

Deno.test("the range of dynamic_quantize holds 0 and both ends", () => {
  for (const sign of [1, -1]) {
    const x = tensor([50], (i) => sign * (1 + i / 10));
    const [codes, scale, zero] = run("dynamic_quantize", [x]);
    const [back] = run("dequantize_linear", [codes, scale, zero], { to: "f32" });
    assertEquals(getElement(zero!, 0), sign > 0 ? 0 : 255);
    assertClose(back, x, getElement(scale!, 0));
  }
});

Deno.test("losses leave out ignored targets and average over weights", () => {
  const x = tensor([2, 3], (i) => -(i + 1)), target = tensor([2], (i) => [2, 0][i]!, "i64");
  const weight = tensor([3], (i) => i + 1);
  const mean = (attributes: Attributes) =>
    getElement(run("nll_loss", [x, target, weight], { reduction: "mean", ...attributes })[0], 0);
  assertAlmostEquals(mean({}), (3 * 3 + 4 * 1) / 4, 1e-6);
  assertAlmostEquals(mean({ ignores: true, ignore_index: 0 }), 3, 1e-6);
});

Deno.test("what does not fit is refused with the numbers that disagree", () => {
  const x = normal([1, 3, 4, 4], 1);
  const refused = (name: string, inputs: HostTensor[], attributes: Attributes, message: string) =>
    assertThrows(() => run(name, inputs, attributes), RangeError, message);
  refused("conv", [x, normal([2, 2, 1, 1], 2)], {}, "must be equal: they are 3 and 2");
  refused("conv", [x, normal([2, 3, 5, 5], 2)], {}, "a window of 5 does not fit");
  refused("conv", [x, normal([2, 3, 1, 1], 2)], { strides: [1] }, "strides has 1 entries");
  refused("group_norm", [x], { groups: 2, epsilon: 0 }, "must be a multiple of 2 groups");
  refused("attention", [normal([1, 2, 9], 1), normal([1, 2, 9], 1), normal([1, 2, 9], 1)], {
    ...{ q_heads: 3, kv_heads: 2, scale: 1 },
  }, "must be a multiple of 2 heads");
});
