// Half precision is storage: on every device, and on each alike, sums are float32, and casts that a file writes round.

import { assertAlmostEquals, assertEquals } from "@std/assert";
import type { DeviceName } from "../engine/run/backend.ts";
import { type GraphTensor, loadGraph } from "../mod.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testWith } from "./support/skip.ts";
import { type GraphParts, longs, writeOnnx } from "./support/write_onnx.ts";

const F32 = 1, F16 = 10, BF16 = 16, F64 = 11, I64 = 7, I32 = 6;
const WIDTH = 4;

async function run(
  file: Uint8Array,
  inputs: Readonly<Record<string, GraphTensor>>,
  device: DeviceName,
): Promise<number[]> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, file);
    using graph = await loadGraph(path, { device });
    const { y } = await graph.run(inputs);
    return Array.from((y as GraphTensor).data as Float32Array, Number);
  } finally {
    await Deno.remove(path);
  }
}

/** A layer norm in float16, its statistics in float16 too. */
const NORM: GraphParts = {
  nodes: [
    { op: "ReduceMean", inputs: ["x", "axis"], outputs: ["mean"] },
    { op: "Sub", inputs: ["x", "mean"], outputs: ["d"] },
    { op: "Mul", inputs: ["d", "d"], outputs: ["s"] },
    { op: "ReduceMean", inputs: ["s", "axis"], outputs: ["v"] },
    { op: "Sqrt", inputs: ["v"], outputs: ["r"] },
    { op: "Div", inputs: ["d", "r"], outputs: ["y"] },
  ],
  inputs: [["x", F16, [1, WIDTH]]],
  outputs: [["y", F16, [1, WIDTH]]],
  initializers: [{ name: "axis", type: I64, dims: [1], raw: longs(-1) }],
};

/** Halves of `to`, from numbers of another type. */
function casting(from: number, to: number): GraphParts {
  return {
    nodes: [
      { op: "Cast", inputs: ["x"], outputs: ["h"], attributes: { to: { i: to } } },
      { op: "Cast", inputs: ["h"], outputs: ["y"], attributes: { to: { i: F32 } } },
    ],
    inputs: [["x", from, [WIDTH]]],
    outputs: [["y", F32, [WIDTH]]],
  };
}

// By definition: float16 has 11 bits and ends at 65504, bfloat16 has 8. Halves go to the even neighbour; what lies
// just above a half, as 1 + 2^-11 + 2^-40 does, must not become one on the way.
const ROUNDINGS: readonly (readonly [from: number, to: number, GraphTensor["data"], number[]])[] = [
  [I32, F16, Int32Array.of(2049, 2051, 70000, -3), [2048, 2052, Infinity, -3]],
  [I32, BF16, Int32Array.of(257, 259, 70000, -3), [256, 260, 70144, -3]],
  [I64, F16, BigInt64Array.of(2049n, 65519n, 65520n, -1n), [2048, 65504, Infinity, -1]],
  [F32, F16, Float32Array.of(1e-8, -1e-8, 65519.99, NaN), [0, -0, 65504, NaN]],
  [F64, F16, Float64Array.of(1 + 2 ** -11, 1 + 2 ** -11 + 2 ** -40, 1e300, 0.1), [
    ...[1, 1 + 2 ** -10, Infinity, 0.0999755859375],
  ]],
];

for (const device of ["reference", "wasm", "gpu"] as const) {
  const needs = device === "gpu" ? [adapterNeed] : [];

  testWith(needs, `a norm written out in float16 does not overflow on ${device}`, async () => {
    const data = Float16Array.of(300, -300, 900, -900);
    const got = await run(writeOnnx(NORM, { opsets: { "": 18 } }), {
      x: { data, dims: [1, WIDTH] },
    }, device);
    // Of mean 0 and mean square 450000.
    [...data].forEach((x, i) => assertAlmostEquals(got[i]!, x / Math.sqrt(450000), 1e-3));
  });

  testWith(needs, `casts to half precision round once on ${device}`, async () => {
    for (const [from, to, data, wanted] of ROUNDINGS) {
      const file = writeOnnx(casting(from, to));
      assertEquals(await run(file, { x: { data, dims: [WIDTH] } }, device), wanted);
    }
  });
}
