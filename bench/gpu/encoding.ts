// What a dispatch costs the host, by what changes from one to the next:
//   deno run -A bench/gpu/encoding.ts [--rounds N] [--dispatches N] [--gpu dawn|PATH]
// The shader does next to nothing. Times are medians a dispatch: of the calls that encode, of finish(), of submit().

import { parseArgs } from "node:util";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { BUFFER_USAGE, COMPUTE_STAGE } from "../../gpu/constants.ts";
import { builtIn, openGpu, STORAGE_USAGE } from "../../gpu/gpu.ts";
import { median } from "../support/figures.ts";

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "40" },
    dispatches: { type: "string", default: "200" },
    gpu: { type: "string", default: "built-in" },
  },
});
const count = Number(flags.dispatches), rounds = Number(flags.rounds);
const { gpu: provider = builtIn() } = await gpuOption({ gpu: flags.gpu });
const gpu = await openGpu(provider && { provider });
const { device } = gpu;
const RANGE = 256;
const arena = gpu.createBuffer("arena", 1 << 20, STORAGE_USAGE);
/** A usage of the standard that the engine has no use for. */
const INDIRECT = 0x100;
const one = gpu.createBuffer("one workgroup", 16, INDIRECT | BUFFER_USAGE.COPY_DST);
device.queue.writeBuffer(one, 0, Uint32Array.of(1, 1, 1));

interface Kernel {
  readonly layout: GPUBindGroupLayout;
  /** Two that differ. */
  readonly pipelines: readonly GPUComputePipeline[];
}

/** A kernel that writes its first binding and reads the others. */
function kernel(bindings: number, hasDynamicOffset = false): Kernel {
  const entries = Array.from({ length: bindings }, (_, binding) => ({
    binding,
    visibility: COMPUTE_STAGE,
    buffer: { type: binding === 0 ? "storage" : "read-only-storage", hasDynamicOffset } as const,
  }));
  const layout = device.createBindGroupLayout({ entries });
  const pipelines = [1, 2].map((number) => {
    const declared = entries.map(({ binding }) =>
      `@group(0) @binding(${binding}) var<storage, ${
        binding === 0 ? "read_write" : "read"
      }> b${binding}: array<u32>;`
    );
    const sum = entries.slice(1).map(({ binding }) => ` + b${binding}[0]`).join("");
    const code = `${declared.join("\n")}
      @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
        b0[i] = ${number}u${sum};
      }`;
    return device.createComputePipeline({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ code }), entryPoint: "main" },
    });
  });
  return { layout, pipelines };
}

const weights = Array.from(
  { length: count },
  (_, i) => gpu.createBuffer(`weight ${i}`, RANGE, STORAGE_USAGE),
);
const shared = gpu.createBuffer("weights", RANGE * 8, STORAGE_USAGE);

/** Bind groups of a kernel; what they read is one buffer, or a buffer each. */
function groups({ layout }: Kernel, bindings: number, isApart = false): GPUBindGroup[] {
  return Array.from({ length: count }, (_, i) =>
    device.createBindGroup({
      layout,
      entries: Array.from({ length: bindings }, (_, binding) => {
        const buffer = binding === 0 ? arena : isApart ? weights[i]! : shared;
        const offset = binding === 0 ? i % 1024 * RANGE : 0;
        return { binding, resource: { buffer, offset, size: RANGE } };
      }),
    }));
}

type Encode = (pass: GPUComputePassEncoder, index: number) => void;

async function measure(name: string, encode: Encode, buffers = 1): Promise<void> {
  const times: Record<string, number[]> = { calls: [], finish: [], submit: [], all: [] };
  for (let round = -5; round < rounds; round++) {
    let calls = 0, finish = 0;
    const commands: GPUCommandBuffer[] = [];
    for (let buffer = 0; buffer < buffers; buffer++) {
      const start = performance.now();
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      for (let i = 0; i < count; i++) encode(pass, i);
      pass.end();
      const encoded = performance.now();
      commands.push(encoder.finish());
      calls += encoded - start;
      finish += performance.now() - encoded;
    }
    const start = performance.now();
    device.queue.submit(commands);
    const submit = performance.now() - start;
    await device.queue.onSubmittedWorkDone();
    if (round < 0) continue;
    const all = calls + finish + submit;
    Object.entries({ calls, finish, submit, all }).forEach(([key, ms]) => times[key]!.push(ms));
  }
  const shown = Object.entries(times).map(([key, list]) =>
    `${key} ${(median(list) * 1000 / buffers / count).toFixed(2)}`
  );
  console.log(`${name.padEnd(48)} ${shown.join("  ")} µs`);
}

console.log(gpu.capabilities.adapter);
for (const bindings of [1, 4, 8]) {
  const { pipelines, layout } = kernel(bindings);
  const [first, second] = pipelines as [GPUComputePipeline, GPUComputePipeline];
  const own = groups({ pipelines, layout }, bindings);
  const apart = groups({ pipelines, layout }, bindings, true);
  const encode =
    (pipeline: boolean, group: readonly GPUBindGroup[], changes: boolean): Encode => (pass, i) => {
      if (i === 0 || pipeline) pass.setPipeline(i % 2 ? second : first);
      if (i === 0 || changes) pass.setBindGroup(0, group[i]!);
      pass.dispatchWorkgroups(1, 1, 1);
    };
  const label = `${bindings} binding${bindings > 1 ? "s" : ""}`;
  await measure(`${label}, nothing changes`, encode(false, own, false));
  await measure(`${label}, another pipeline`, encode(true, own, false));
  await measure(`${label}, another group`, encode(false, own, true));
  await measure(`${label}, both`, encode(true, own, true));
  await measure(`${label}, both, a weight's buffer each`, encode(true, apart, true));
  await measure(`${label}, the same, 4 command buffers`, encode(true, apart, true), 4);
  await measure(`${label}, both, indirect`, (pass, i) => {
    pass.setPipeline(i % 2 ? second : first);
    pass.setBindGroup(0, own[i]!);
    pass.dispatchWorkgroupsIndirect(one, 0);
  });
}
const dynamic = kernel(4, true);
const [group] = groups(dynamic, 4);
const offsets = Array.from({ length: count }, (_, i) => [i % 512 * RANGE, 0, RANGE, 2 * RANGE]);
const typed = new Uint32Array(offsets.flat());
await measure("4 bindings, dynamic offsets in an array", (pass, i) => {
  pass.setPipeline(dynamic.pipelines[i % 2]!);
  pass.setBindGroup(0, group!, offsets[i]!);
  pass.dispatchWorkgroups(1, 1, 1);
});
await measure("4 bindings, dynamic offsets in a Uint32Array", (pass, i) => {
  pass.setPipeline(dynamic.pipelines[i % 2]!);
  pass.setBindGroup(0, group!, typed, 4 * i, 4);
  pass.dispatchWorkgroups(1, 1, 1);
});
Deno.exit(0);
