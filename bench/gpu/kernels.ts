// Micro-benchmark of the GPU kernels, on random data, without a model:
//   deno run -A bench/gpu/kernels.ts [--only gemv,gemm,attention,prefill,rows,fused,layer,layouts] [--formats Q4_0,…]
//     [--filter TEXT] [--sweep] [--table] [--json FILE] [--rounds N] [--small] [--seconds N] [--gpu dawn]
// Weights rotate over more memory than any cache holds. Figures are medians by GPU timestamps; "% of read" is the
// share of what a plain read of the same memory reaches in the same run. `--sweep` measures every variant of the
// shaders: the sizes that the engine takes stand in gpu/kernels/*/tuning.ts. `--table` ends with microseconds as a table, a
// column a variant: `--only layouts --table` compares layouts of caches (bench/gpu/layout_cases.ts).

import { parseArgs } from "node:util";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { openGpu } from "../../gpu/gpu.ts";
import { attentionCases, prefillCases } from "./attention_cases.ts";
import type { BenchCase, BenchChoice } from "./case.ts";
import { gemmCases, gemvCases } from "./cases.ts";
import { layerCases } from "./layer_cases.ts";
import { layoutCases } from "./layout_cases.ts";
import { fusedCases, rowCases } from "./row_cases.ts";
import { readTime } from "./read.ts";
import { createGpuTimer } from "./timer.ts";

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string", default: "gemv,gemm,attention,prefill,rows,fused,layer" },
    formats: { type: "string", default: "Q4_0,Q4_1,Q8_0,Q4_K,Q6_K,F16" },
    filter: { type: "string", default: "" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "500" },
    json: { type: "string" },
    sweep: { type: "boolean", default: false },
    table: { type: "boolean", default: false },
    small: { type: "boolean", default: false },
    gpu: { type: "string", default: "built-in" },
  },
});

const CASES: Readonly<Record<string, (choice: BenchChoice) => BenchCase[]>> = {
  gemv: gemvCases,
  gemm: gemmCases,
  attention: attentionCases,
  prefill: prefillCases,
  rows: rowCases,
  fused: fusedCases,
  layer: layerCases,
  layouts: layoutCases,
};

const MIB = 2 ** 20;
/** Reads of one timing. */
const READS = 4;
const { gpu: provider } = await gpuOption({ gpu: flags.gpu });
const gpu = await openGpu(provider ? { provider } : {});
const { capabilities } = gpu;
const small = flags.small || capabilities.isSoftware;
const timer = await createGpuTimer(gpu, {
  poolBytes: small ? 32 * MIB : Math.min(1024 * MIB, capabilities.maxBufferBytes),
  roomBytes: small ? 16 * MIB : Math.min(640 * MIB, capabilities.maxBufferBytes),
  rounds: small ? 1 : Number(flags.rounds),
  warmTurns: small ? 1 : 100_000,
});
console.log(JSON.stringify({ deno: Deno.version.deno, ...capabilities }));
const readBytes = small ? 4 * MIB : Math.min(256 * MIB, capabilities.maxBindingBytes);
// Clocks rise while the first timings are taken.
for (let i = 0; i < (small ? 1 : 20); i++) await readTime(timer, readBytes, READS);
const read = READS * readBytes / await readTime(timer, readBytes, READS);
console.log(
  `plain read ${(read / 1000).toFixed(0)} GB/s, a dependent step ${timer.stepNs.toFixed(2)} ns`,
);

const deadline = performance.now() + 1000 * Number(flags.seconds);
const choice: BenchChoice = {
  capabilities,
  formats: flags.formats.split(","),
  sweep: flags.sweep,
  small,
};
const results: { name: string; variant: string; us: number; [more: string]: unknown }[] = [];
const best = new Map<string, { readonly us: number; readonly variant: string }>();
for (const group of flags.only.split(",")) {
  for (const benchCase of CASES[group]!(choice)) {
    const { name, variant, bytes, operations, runs } = benchCase;
    if (!`${group} ${name} ${variant}`.includes(flags.filter)) continue;
    if (performance.now() > deadline) {
      console.log(`stopped after ${flags.seconds} s`);
      break;
    }
    timer.reset();
    const all = await timed(benchCase);
    if (all === undefined) continue;
    const us = all / runs;
    const speed = bytes === undefined ? 0 : bytes / us / 1000;
    const result = {
      ...{ group, name, variant, us: round(us) },
      ...bytes !== undefined && {
        GBps: round(speed),
        ofRead: round(100 * speed * 1000 / read),
      },
      ...operations !== undefined && { TOPS: round(operations / us / 1e6) },
      stepNs: round(timer.stepNs),
      compileMs: Math.round(timer.compileMs),
    };
    results.push(result);
    const known = best.get(`${group} ${name}`);
    if (!known || us < known.us) best.set(`${group} ${name}`, { us, variant });
    console.log(Object.entries(result).map(([key, value]) => `${key} ${value}`).join("  "));
  }
}
if (flags.sweep) {
  for (const [name, { us, variant }] of best) {
    console.log(`best  ${name}  ${round(us)} µs  ${variant}`);
  }
}
if (flags.table) printTable();
if (flags.json) {
  await Deno.writeTextFile(flags.json, JSON.stringify({ capabilities, read, results }));
}
Deno.exit(0);

/** Markdown of the microseconds, a column a variant. */
function printTable(): void {
  const variants = [...new Set(results.map(({ variant }) => variant))];
  const names = [...new Set(results.map(({ name }) => name))];
  const row = (cells: readonly unknown[]) => console.log(`| ${cells.join(" | ")} |`);
  row(["µs", ...variants]);
  row(["---", ...variants.map(() => "---:")]);
  for (const name of names) {
    const own = results.filter((result) => result.name === name);
    row([name, ...variants.map((variant) => own.find((one) => one.variant === variant)?.us ?? "")]);
  }
}

/** Microseconds of all runs, or undefined if the device refuses the shader. */
async function timed(benchCase: BenchCase): Promise<number | undefined> {
  try {
    return await timer.time(benchCase.dispatches(timer));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    console.log(`${benchCase.name}  ${benchCase.variant}  ${message.slice(0, 200)}`);
    return undefined;
  }
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
