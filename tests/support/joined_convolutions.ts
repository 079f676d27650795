// Convolutions by kernels that V8 joins to 256 bits beside others (wasm/assembly/machine/joining.ts). A test runs it as a process of its
// own too, with the flag that joins.

import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../engine/graph/builder.ts";
import type { Attributes } from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";
import { plan } from "../../engine/plan/planner.ts";
import { createWasmArena } from "../../engine/run/wasm/arena.ts";
import { createWasmBackend } from "../../engine/run/wasm/backend.ts";
import { randomValues } from "./weights.ts";

/** Channels, filters, side of the window, and of the plane; what else a convolution has. */
interface Convolution {
  readonly shape: readonly [number, number, number, number];
  readonly attributes?: Attributes;
  readonly inputs?: readonly ("bias" | "branch")[];
}

// Blocks of one to five filters, places that fill no panel, an odd number of panels, taps that are no four.
const CONVOLUTIONS: readonly Convolution[] = [
  ...[1, 2, 3, 4, 5, 7, 16].map((filters): Convolution => ({ shape: [6, filters, 1, 13] })),
  { shape: [5, 13, 3, 17], attributes: { strides: [2, 2], activation: "relu" }, inputs: ["bias"] },
  { shape: [16, 20, 1, 28], attributes: { activation: "relu" }, inputs: ["bias", "branch"] },
  { shape: [700, 9, 3, 9], inputs: ["bias"] },
  { shape: [32, 24, 3, 30], attributes: { pads: [1, 1, 1, 1] }, inputs: ["bias"] },
];

async function convolve(c: Convolution, joins: boolean): Promise<Uint8Array> {
  const { shape: [channels, filters, kernel, side], attributes = {}, inputs = [] } = c;
  const arena = createWasmArena(2 ** 24, { threads: 2, variant: "relaxed", joins });
  const builder = createGraphBuilder("convolution", getOp);
  const shapes = [[1, channels, side, side], [filters, channels, kernel, kernel]];
  const operands = shapes.map((shape, i) => builder.input(`input${i}`, shape, "f32"));
  const { shape } = builder.op("conv", operands, attributes, "shape")[0]!;
  const more = { bias: [filters], branch: shape as number[] };
  const all = [
    ...operands,
    ...(["bias", "branch"] as const).map((name) =>
      inputs.includes(name) ? builder.input(name, more[name], "f32") : undefined
    ),
  ].slice(0, inputs.includes("branch") ? 4 : inputs.length ? 3 : 2);
  builder.output("y", builder.op("conv", all, attributes, "conv")[0]!);
  const backend = createWasmBackend({ threads: 2, arena });
  const executable = await backend.prepare(plan(builder.build(), { limits: {} }), { slots: 1 });
  try {
    all.forEach((value, i) => {
      if (!value) return;
      const data = executable.input(value.name) as Float32Array;
      data.set(randomValues(data.length, i + 1));
    });
    executable.run({});
    const y = executable.output("y") as Float32Array;
    return new Uint8Array(Float32Array.from(y).buffer);
  } finally {
    executable.dispose();
    arena.dispose();
  }
}

/** Compares convolutions, bit by bit. */
export async function compareConvolutions(): Promise<void> {
  for (const c of CONVOLUTIONS) {
    assertEquals(await convolve(c, true), await convolve(c, false), JSON.stringify(c));
  }
}

if (import.meta.main) await compareConvolutions();
