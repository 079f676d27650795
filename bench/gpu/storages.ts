// Which storages suit the kernels over virtual tensors on this machine's adapter (spec MD-2):
//   deno run -A bench/gpu/storages.ts [--rounds N] [--size small|large] [--json FILE]
// Each shape is run with every storage of source, weights and target, and by the kernel on buffers in the engine's order.
// All of them run in turn, round after round, so that what else the machine does falls on all alike; figures are medians of
// whole steps, copies between storages included, and in brackets the share of the kernel on buffers. The row at the end is
// for STORAGE_CHOICE in gpu/storage_choice.ts: the storages with the least geometric mean, or none if buffers win.

import { parseArgs } from "node:util";
import { createGraphBuilder } from "../../engine/graph/builder.ts";
import { createCaseRandom } from "../../engine/ops/case_random.ts";
import { getOp } from "../../engine/ops/mod.ts";
import { createGpuBackend, type GpuPlan } from "../../engine/run/gpu/backend.ts";
import { plan } from "../../engine/plan/planner.ts";
import { openGpu } from "../../gpu/gpu.ts";
import { type ConvStorages, deviceClassOf } from "../../gpu/storage_choice.ts";
import { STORAGE_KINDS } from "../../gpu/virtual_tensor.ts";
import { timeStep } from "./timing.ts";

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "7" },
    size: { type: "string" },
    json: { type: "string" },
  },
});

/** Input, filters and groups, as in networks for images. */
interface Shape {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly groups?: number;
}

const SIZES: Readonly<Record<string, readonly Shape[]>> = {
  small: [
    { x: [1, 3, 64, 64], w: [16, 3, 3, 3] },
    { x: [1, 32, 32, 32], w: [32, 32, 3, 3] },
    { x: [1, 128, 14, 14], w: [128, 128, 1, 1] },
  ],
  large: [
    { x: [1, 3, 224, 224], w: [64, 3, 7, 7] },
    { x: [1, 64, 112, 112], w: [64, 64, 3, 3] },
    { x: [1, 256, 28, 28], w: [256, 256, 3, 3] },
    { x: [1, 512, 14, 14], w: [512, 512, 1, 1] },
  ],
};

const gpu = await openGpu();
const { capabilities } = gpu;
const size = flags.size ?? (capabilities.isSoftware ? "small" : "large");
const shapes = SIZES[size];
if (!shapes) throw new RangeError(`--size is small or large, not ${size}`);

const ACTIVATIONS = ["planes", ...STORAGE_KINDS] as const;
const candidates: readonly (ConvStorages | undefined)[] = [
  undefined,
  ...ACTIVATIONS.flatMap((source) =>
    (["buffer", "texture_2d"] as const).flatMap((weights) =>
      ACTIVATIONS.map((target) => ({ source, weights, target }))
    )
  ),
];

function nameOf(storages: ConvStorages | undefined): string {
  if (!storages) return "kernel on buffers";
  const { source, weights, target } = storages;
  return `source ${source}, weights ${weights}, target ${target}`;
}

/** A graph of one convolution with pads that keep its size. */
async function prepared(
  { x, w, groups = 1 }: Shape,
  conv: ConvStorages | undefined,
): Promise<GpuPlan> {
  const builder = createGraphBuilder("conv", getOp);
  const random = createCaseRandom(1);
  const count = w.reduce((product, n) => product * n, 1);
  const weight = builder.constant("w", random.normal(count, 0.05), w);
  const pad = w[2]! >> 1;
  const attributes = { groups, pads: [pad, pad, pad, pad] };
  const input = builder.input("x", x, "f32");
  builder.output("y", builder.op("conv", [input, weight], attributes, "conv")[0]!);
  const backend = createGpuBackend({ gpu, storages: conv ? { conv } : {} });
  const executable = await backend.prepare(plan(builder.build(), { limits: {} }), { slots: 0 });
  executable.input("x").set(random.normal(x.reduce((product, n) => product * n, 1)) as never);
  return executable;
}

/** Milliseconds of a step: the GPU's own clock where it has one, else until its results are there. */
async function stepTime(executable: GpuPlan): Promise<number> {
  if (capabilities.timestamp && !capabilities.isSoftware) {
    return (await timeStep(executable, {})).reduce((sum, { ms }) => sum + ms, 0);
  }
  const start = performance.now();
  await executable.run({});
  return performance.now() - start;
}

console.log(JSON.stringify({ deno: Deno.version.deno, class: deviceClassOf(capabilities), size }));
console.log(capabilities.adapter);
const shares = candidates.map((): number[] => []);
const results: Record<string, unknown>[] = [];
for (const shape of shapes) {
  const executables: GpuPlan[] = [];
  for (const storages of candidates) executables.push(await prepared(shape, storages));
  const times = executables.map((): number[] => []);
  for (const executable of executables) await stepTime(executable);
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const [i, executable] of executables.entries()) {
      times[i]!.push(await stepTime(executable));
    }
  }
  const medians = times.map((list) => list.toSorted((a, b) => a - b)[list.length >> 1]!);
  console.log(`\n[${shape.x}] * [${shape.w}]`);
  const order = [...medians.keys()].sort((a, b) => medians[a]! - medians[b]!);
  for (const i of order) {
    const share = medians[i]! / medians[0]!;
    shares[i]!.push(share);
    const { textures = 0 } = executables[i]!.memory;
    const result = {
      ...{ x: shape.x, w: shape.w, storages: nameOf(candidates[i]), ms: medians[i]!, share },
      ...{ dispatches: executables[i]!.dispatches, textureBytes: textures },
    };
    results.push(result);
    console.log(
      `${medians[i]!.toFixed(3).padStart(9)} ms (${share.toFixed(2)})  ${result.storages}; ` +
        `${result.dispatches} dispatches, ${(textures / 1024).toFixed(0)} KiB of textures`,
    );
  }
  for (const executable of executables) executable.dispose();
}

const means = shares.map((list) =>
  Math.exp(list.reduce((sum, share) => sum + Math.log(share), 0) / list.length)
);
const best = means.indexOf(Math.min(...means));
console.log(`\nbest over all: ${nameOf(candidates[best])} (${means[best]!.toFixed(2)})`);
const row = candidates[best] ? { conv: candidates[best] } : {};
console.log(`${deviceClassOf(capabilities)}: ${JSON.stringify(row)},`);
if (flags.json) {
  await Deno.writeTextFile(flags.json, JSON.stringify({ capabilities, means, results }));
}
Deno.exit(0);
