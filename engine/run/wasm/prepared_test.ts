// Weights that are laid out anew before the first run: results are those of weights that are given with each run, whose
// layouts are made by the run itself, however many nodes read a weight.

import { assert, assertEquals } from "@std/assert";
import { ADDRESS_SPACE } from "../../../wasm/allocator.ts";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import { plan } from "../../plan/planner.ts";
import { tensorInMemory } from "../case_graph.ts";
import { createWasmBackend } from "./backend.ts";
import { estimate, reserveOf, scratchBytes } from "./estimate.ts";
import { createPreparedPlaces } from "./prepared.ts";
import { roomAhead, type StreamWish } from "./stream_choice.ts";

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

/** A plan with a weight, or with one that is given. */
function planOf(readers: readonly Read[], isGiven = false): Plan {
  const builder = createGraphBuilder("weights", getOp), data = noise(SHAPE);
  const x = builder.input("x", X_SHAPE, "f32");
  const w = isGiven ? builder.input("w", SHAPE, "f32") : builder.weight(
    "w",
    tensorInMemory("w", { format: "F32", shape: SHAPE, bytes: new Uint8Array(data.buffer) }),
  );
  readers.forEach((read, i) => builder.output(`y${i}`, read(builder, [x, w], `n${i}`)[0]!));
  return plan(builder.build(), { limits: {} });
}

/** Results of two runs; the memory of a plan is no larger than it may be. */
async function results(
  readers: readonly Read[],
  { isGiven = false, ...limits }: {
    readonly isGiven?: boolean;
    readonly memoryBytes?: number;
    readonly maxHostBytes?: number;
  },
): Promise<Float32Array[]> {
  const backend = createWasmBackend({ threads: 1, ...limits });
  const made = await backend.prepare(planOf(readers, isGiven), { slots: 0, hostSteps: true });
  const { weights, arena, states, other } = made.memory;
  const { maxHostBytes = Infinity } = limits;
  assert(weights + arena + states + other <= maxHostBytes);
  (made.input("x") as Float32Array).set(noise(X_SHAPE));
  if (isGiven) (made.input("w") as Float32Array).set(noise(SHAPE));
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
    // As much as the plan itself takes, and what is kept beside it.
    const { weights, activations } = estimate(planOf(readers), { slots: 0 });
    const reserve = reserveOf(ADDRESS_SPACE) + scratchBytes(planOf(readers), 1);
    const maxHostBytes = weights + activations + reserve;
    assertEquals(await results(readers, { maxHostBytes }), expected);
  });
}

Deno.test("what is laid out ahead is foretold", () => {
  const laidOut = (name: string) => estimate(planOf(READERS[name]!), { slots: 0 }).laidOut;
  const weight = 4 * FILTERS * CHANNELS * 9, points = 4 * FILTERS * CHANNELS * 36;
  // Where nobody else reads the weight, it is changed where it lies.
  assertEquals(laidOut("one convolution"), 0);
  assertEquals(laidOut("one convolution by Winograd's filtering"), points);
  assertEquals(laidOut("one transposed convolution"), weight);
  assertEquals(laidOut("two convolutions alike"), weight);
  assertEquals(laidOut("convolutions of different layouts"), weight + points + weight);
  assertEquals(estimate(planOf(READERS["one convolution"]!, true), { slots: 0 }).laidOut, 0);
});

Deno.test("no more is laid out ahead than may be", () => {
  const made = planOf(READERS["one transposed convolution"]!);
  const w = made.graph.nodes.find(({ op }) => op === "conv_transpose")!.inputs[1]!;
  const machine = { allocate: () => 4096, release() {} };
  const wanted = { address: 0, layout: "patches", bytes: 100 };
  assertEquals(createPreparedPlaces(machine, { plan: made, most: 99 })(w, wanted), undefined);
  assertEquals(createPreparedPlaces(machine, { plan: made, most: 100 })(w, wanted), 4096);
  // What a plan takes at most leaves so much beside it, and so does memory that is free.
  const { weights, activations } = estimate(made, { slots: 0 }), own = weights + activations;
  const reserve = reserveOf(ADDRESS_SPACE) + scratchBytes(made, 1), sizes = { slots: 0 };
  const room = (wish: StreamWish) => roomAhead(made, sizes, { ...wish, threads: 1 });
  assertEquals(room({ maxHostBytes: own + reserve + 7 }), 7);
  assertEquals(room({ freeBytes: own + 5 }), 5);
  assertEquals(room({}), Infinity);
});
