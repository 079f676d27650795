// A step of the network of Stable Diffusion at its published shapes, with random float16 weights, without a model:
//   deno run -A bench/diffusion/unet.ts [--model sd14|sd21|toy] [--device gpu|wasm] [--gpu built-in|dawn|FILE]
//     [--size 512] [--batch 2] [--rounds 5] [--kernels] [--peer python3] [--precision fast|exact]
// Prints the time to make it ready, median and least of a step, and the memory that the device holds. A round is two steps
// that warm up and three that count; `--peer` lets PyTorch (unet.py) have one behind each of ours, so that both see the card
// at the same clock.
// `toy` is a network of a few channels, to see that it runs. Batch 2 is prompt and negative prompt in one run. `--kernels`
// adds the time by kernel, each dispatch in a pass of its own.

import { parseArgs } from "node:util";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import type { ByteSource } from "../../engine/byte_source.ts";
import type { TensorInfo } from "../../engine/formats/source.ts";
import { buildNetwork } from "../../engine/models/networks/build_network.ts";
import { planNetwork } from "../../engine/models/networks/network.ts";
import { readNetworkConfig } from "../../engine/models/networks/network_config.ts";
import { chooseNetworkSpec } from "../../engine/models/networks/specs/mod.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { machineName, median } from "../support/figures.ts";
import { byKernel, dispatchTimes, openWatchedGpu } from "../support/gpu_plans.ts";

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    model: { type: "string", default: "sd14" },
    device: { type: "string", default: "gpu" },
    gpu: { type: "string" },
    size: { type: "string", default: "512" },
    batch: { type: "string", default: "2" },
    rounds: { type: "string", default: "5" },
    kernels: { type: "boolean", default: false },
    peer: { type: "string" },
    precision: { type: "string", default: "fast" },
  },
});

const UNET = { _class_name: "UNet2DConditionModel", sample_size: 64 };
const CONFIGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  sd14: { ...UNET, cross_attention_dim: 768 },
  sd21: {
    ...UNET,
    cross_attention_dim: 1024,
    attention_head_dim: [5, 10, 20, 20],
    use_linear_projection: true,
  },
  toy: { ...UNET, cross_attention_dim: 32, block_out_channels: [32, 32, 64, 64] },
};

/** Median and least, in milliseconds. */
function figures(name: string, times: readonly number[]): Record<string, number> {
  if (times.length === 0) return {};
  const [middle, least] = [median(times), Math.min(...times)].map((ms) => Number(ms.toFixed(1)));
  return { [`${name}Ms`]: middle!, [`${name}LeastMs`]: least! };
}

/** The peer, whose rounds are a line each way. */
function startPeer(python: string) {
  const path = new URL("unet.py", import.meta.url).pathname;
  const args = [
    path,
    "--turns",
    "--size",
    flags.size,
    "--batch",
    flags.batch,
    "--model",
    flags.model,
  ];
  const child = new Deno.Command(python, { args, stdin: "piped", stdout: "piped" }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const writer = child.stdin.getWriter();
  /** The numbers of the next line. */
  const next = async (): Promise<number[]> => {
    let line = "";
    while (!line.includes("\n")) {
      const { value, done } = await lines.read();
      if (done) throw new Error("the peer has ended");
      line += value;
    }
    return JSON.parse(line);
  };
  const first = next();
  return {
    async round(): Promise<number[]> {
      await first;
      await writer.write(new TextEncoder().encode("\n"));
      return next();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await writer.close();
      await child.status;
    },
  };
}

const config = CONFIGS[flags.model];
if (!config) throw new TypeError(`--model takes ${Object.keys(CONFIGS).join(", ")}`);
// It starts while the network is made ready.
await using peer = flags.peer === undefined ? undefined : startPeer(flags.peer);
const gpu = await gpuOption(flags);
const { device, watched } = flags.device === "gpu"
  ? await openWatchedGpu(gpu)
  : { device: await openDevice(flags.device as "wasm", gpu), watched: [] };
const size = Number(flags.size) / 8, batch = Number(flags.batch);

/** Codes of float16 from 2^-6 to 2^-5, either sign. */
const noise: ByteSource = {
  name: "noise",
  size: Number.MAX_SAFE_INTEGER,
  readInto(_offset, target) {
    const codes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    let state = 1;
    for (let i = 0; i < codes.length; i++) {
      state = (state * 1103515245 + 12345) % 2 ** 31;
      codes[i] = i % 2 === 0 ? state >> 16 : 0x24 | state >> 16 & 0x83;
    }
  },
  close() {},
} as ByteSource;

const tensors = {
  get: (name: string, shape: readonly number[]): TensorInfo | undefined => {
    if (/\.to_[qkv]\.bias$/.test(name)) return undefined;
    const byteLength = 2 * shape.reduce((a, b) => a * b, 1);
    return { name, shape, format: "F16", source: noise, offset: 0, byteLength };
  },
};

const spec = chooseNetworkSpec(config, "config");
const { names } = readNetworkConfig(spec, { given: config, file: "config" });
const begin = performance.now();
const dims = { batch, height: size, width: size, tokens: 77 };
const { graph } = buildNetwork({ spec, names, tensors, file: "noise", network: "unet", dims });
const plan = planNetwork(graph, { device });
const prepared = await device.backend.prepare(plan, {
  ...{ slots: 1, hostSteps: true, roundsToHalves: flags.precision === "fast" },
});
const ready = performance.now() - begin;
for (const { name } of plan.graph.inputs) {
  const input = prepared.input(name) as Float32Array;
  for (let i = 0; i < input.length; i++) {
    input[i] = name === "timestep" ? 500 : Math.sin(i * 12.9898);
  }
}
const WARM_STEPS = 2, STEPS = 3;

async function round(): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < WARM_STEPS + STEPS; i++) {
    const start = performance.now();
    await prepared.run({});
    const last = prepared.output("out_sample")[0]!;
    if (!Number.isFinite(Number(last))) throw new Error("the result is not finite");
    if (i >= WARM_STEPS) times.push(performance.now() - start);
  }
  return times;
}

const rounds = Number(flags.rounds), times: number[] = [], peerTimes: number[] = [];
await round();
for (let i = 0; i < rounds; i++) {
  times.push(...await round());
  if (peer) peerTimes.push(...await peer.round());
}
const MiB = 2 ** 20, { memory, hostNodes = [] } = prepared;
console.log(JSON.stringify({
  ...{
    precision: flags.precision,
    model: flags.model,
    device: device.backend.name,
    size: Number(flags.size),
    batch,
  },
  ...{ readyMs: Math.round(ready), ...figures("step", times), ...figures("peer", peerTimes) },
  weightsMiB: Math.round(memory.weights / MiB),
  arenaMiB: Math.round(memory.arena / MiB),
  otherMiB: Math.round(memory.other / MiB),
  dispatches: watched.map(({ plan }) => plan.dispatches),
  beside: [...new Set(hostNodes.map(({ op }) => op))],
  machine: machineName(),
}));
if (flags.kernels) {
  for (const one of watched) {
    if (one.bindings) console.log(byKernel(await dispatchTimes(one, 3), 30).join("\n"));
  }
}
prepared.dispose();
