// Weights that are laid out anew before the first run: results are those of weights that are given with each run, whose
// layouts are made by the run itself, however many nodes read a weight.

import { assertEquals } from "@std/assert";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { tensorInMemory } from "../case_graph.ts";
import { createWasmBackend } from "./backend.ts";

const CHANNELS = 40, FILTERS = 17, SIDE = 18;
const SHAPE = [FILTERS, CHANNELS, 3, 3], X_SHAPE = [1, CHANNELS, SIDE, SIDE];

type Read = (builder: GraphBuilder, operands: readonly [Value, Value], label: string) => Value[];

const conv = (strides: readonly number[]): Read => (builder, operands, label) =>
  builder.op("conv", operands, { pads: [1, 1, 1, 1], strides }, label);
const SOME = { starts: [0, 0, 0, 0], sizes: [1, FILTERS, SIDE, SIDE], steps: [1, 1, 1, 1] };
const transposed: Read = (builder, [x, w], label) => {
  const some = builder.op("slice", [x], SOME, `${label} some`);
  return builder.op("conv_transpose", [some[0]!, w], { strides: [3, 3] }, label);
};
const plain: Read = (builder, [, w], label) => builder.op("unary", [w], { kind: "abs" }, label);

const READERS: Readonly<Record<string, readonly Read[]>> = {
  "one convolution": [conv([2, 2])],
  "one convolution by Winograd's filtering": [conv([1, 1])],
  "one transposed convolution": [transposed],
  "two convolutions alike": [conv([2, 2]), conv([2, 1])],
  "convolutions of different layouts": [conv([2, 2]), conv([1, 1]), transposed],
  "a convolution and an op that reads it as it is": [conv([2, 2]), plain],
};

function noise(shape: readonly number[]): Float32Array<ArrayBuffer> {
  const count = shape.reduce((product, size) => product * size, 1);
  return Float32Array.from({ length: count }, (_, i) => Math.sin(i * i % 9973));
}

/** Results of two runs. */
async function results(
  readers: readonly Read[],
  { isGiven = false, memoryBytes }: { readonly isGiven?: boolean; readonly memoryBytes?: number },
): Promise<Float32Array[]> {
  const builder = createGraphBuilder("weights", getOp), data = noise(SHAPE);
  const x = builder.input("x", X_SHAPE, "f32");
  const w = isGiven ? builder.input("w", SHAPE, "f32") : builder.weight(
    "w",
    tensorInMemory("w", { format: "F32", shape: SHAPE, bytes: new Uint8Array(data.buffer) }),
  );
  readers.forEach((read, i) => builder.output(`y${i}`, read(builder, [x, w], `n${i}`)[0]!));
  const backend = createWasmBackend({ threads: 1, ...memoryBytes && { memoryBytes } });
  const options = { slots: 0, hostSteps: true };
  const made = await backend.prepare(plan(builder.build(), { limits: {} }), options);
  (made.input("x") as Float32Array).set(noise(X_SHAPE));
  if (isGiven) (made.input("w") as Float32Array).set(data);
  const found: Float32Array[] = [];
  for (let run = 0; run < 2; run++) {
    await made.run({});
    found.push(...readers.map((_, i) => (made.output(`y${i}`) as Float32Array).slice()));
  }
  made.dispose();
  return found;
}

for (const [name, readers] of Object.entries(READERS)) {
  Deno.test(`a weight laid out before the first run serves ${name}`, async () => {
    const expected = await results(readers, { isGiven: true });
    assertEquals(await results(readers, {}), expected);
    assertEquals(await results(readers, { memoryBytes: 2 ** 22 }), expected);
  });
}
