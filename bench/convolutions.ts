// `deno task bench convolutions`: convolutions of 3 × 3 windows by Winograd's filtering beside the direct kernel
// (engine/run/wasm/lower/conv_winograd.ts), one thread, in turns. Shapes are those of text detection and of ResNets.

import { createGraphBuilder } from "../engine/graph/builder.ts";
import { getOp } from "../engine/ops/mod.ts";
import { tensorInMemory } from "../engine/run/case_graph.ts";
import { createWasmBackend } from "../engine/run/wasm/backend.ts";
import { plan } from "../engine/plan/planner.ts";
import { type Figure, machineName, median, ratioOf } from "./support/figures.ts";

/** Channels, filters, and the side of the plane. */
const SHAPES = [
  [64, 64, 56],
  [64, 64, 160],
  [96, 96, 80],
  [128, 128, 28],
  [128, 128, 80],
  [256, 256, 14],
  [256, 256, 40],
  [512, 512, 7],
] as const;

const KERNELS = ["conv_winograd_f32", "conv_f32"] as const;
const NODE = "convolution";
/** Milliseconds that a kernel runs in a round. */
const ROUND_MS = 100;

/** Milliseconds of a convolution, the direct kernel as the peer; shapes that Winograd's does not take are left out. */
export async function* convolutionBench(rounds: number): AsyncGenerator<Figure> {
  for (const shape of SHAPES) {
    const [channels, filters, side] = shape;
    const runs = await Promise.all(KERNELS.map((kernel) => prepared(shape, kernel)));
    const name = `3×3, ${channels} → ${filters}, ${side}×${side}`;
    if (!runs[0] || !runs[1]) {
      console.error(`${name}: one kernel takes it`);
      continue;
    }
    const times = runs.map((run) => ({ run: run!, count: countOf(run!), ms: [] as number[] }));
    for (let round = 0; round < rounds; round++) {
      for (const { run, count, ms } of round % 2 ? times : times.toReversed()) {
        const start = performance.now();
        for (let i = 0; i < count; i++) run();
        ms.push((performance.now() - start) / count);
      }
    }
    const [value, peerValue] = times.map(({ ms }) => median(ms)) as [number, number];
    yield {
      ...{ bench: "convolutions", case: name, unit: "ms", value, peer: "direct", peerValue },
      ...{ ratio: ratioOf("ms", value, peerValue), share: null, machine: machineName() },
    };
  }
}

function countOf(run: () => void): number {
  const start = performance.now();
  for (let i = 0; i < 3; i++) run();
  return Math.max(1, Math.round(3 * ROUND_MS / (performance.now() - start)));
}

/** One convolution by a kernel; undefined if that does not take it. */
async function prepared(
  [channels, filters, side]: (typeof SHAPES)[number],
  kernel: string,
): Promise<(() => void) | undefined> {
  const builder = createGraphBuilder("convolution", getOp);
  const x = builder.input("x", [1, channels, side, side], "f32");
  const noise = (length: number, size: number) =>
    Float32Array.from({ length }, (_, i) => size * Math.sin(i * i % 9973));
  const shape = [filters, channels, 3, 3];
  const data = noise(filters * channels * 9, Math.sqrt(1 / (9 * channels)));
  const weights = builder.weight(
    "weights",
    tensorInMemory("weights", { format: "F32", shape, bytes: new Uint8Array(data.buffer) }),
  );
  const attributes = { pads: [1, 1, 1, 1] };
  builder.output("y", builder.op("conv", [x, weights], attributes, NODE)[0]!);
  try {
    const made = await createWasmBackend({ threads: 1 }).prepare(
      plan(builder.build(), { limits: {} }),
      { slots: 0, forceKernels: { [NODE]: kernel } },
    );
    (made.input("x") as Float32Array).set(noise(channels * side * side, 1));
    return () => void made.run({});
  } catch {
    return undefined;
  }
}
