// `troodon doctor`: what this machine offers, what is permitted, and whether every kernel computes what
// its scalar reference computes here. A kernel that does not is named, written down, and not used by the
// other commands from then on.

import { builtIn, fastAdapter } from "../../../gpu/gpu.ts";
import { type GpuProvider, isSoftware } from "../../../gpu/capabilities.ts";
import { joinsVectors } from "../../../wasm/joining.ts";
import { JOINING_FLAG } from "../../../wasm/joining_flag.ts";
import { probeCapabilities } from "../../../wasm/probe.ts";
import { DeviceError } from "../../errors.ts";
import { cacheFolder, listCache } from "../../formats/hub/cache.ts";
import { runtimeVersion } from "../../io.ts";
import type { DeviceName } from "../../run/backend.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import {
  excludedKernelsPath,
  readExcludedKernels,
  writeExcludedKernels,
} from "../excluded_kernels.ts";
import { CACHE_FLAGS, LOAD_FLAGS } from "../flags.ts";
import {
  type CheckedPart,
  type KernelHealth,
  partLine,
  verdictOf,
} from "../doctor/kernel_health.ts";
import { paint, showBytes, showTable } from "../format.ts";
import { devicesOf, gpuOption, otherGpu } from "../gpu_flag.ts";
import { checkWritable, machineFacts, permissions } from "../machine.ts";
import { UsageError } from "../args.ts";

/** What checks and timing of a card may take: less than a minute with what is around them. */
const CARD_SECONDS = 45;
/** Of that, what is left for timing where a report is wanted. */
const TIMING_SHARE = 0.25;

/** The command. */
export const doctor: Command = defineCommand({
  name: "troodon doctor",
  summary: "Checks this machine, and every kernel against its scalar reference.",
  flags: {
    ...CACHE_FLAGS,
    quick: { type: "boolean", help: "leave the kernels out" },
    seconds: {
      type: "integer",
      min: 1,
      help:
        `spend no more on the checks of a device, which begin with some of every kernel, and on ` +
        `a report's timing (a card: ${CARD_SECONDS})`,
    },
    report: {
      type: "string",
      value: "FILE",
      help:
        "write adapter, limits, and each kernel's verdict and speed as JSON (of the GPU, if any)",
    },
    device: {
      type: "string",
      choices: ["wasm", "gpu"],
      help: "whose kernels to test (wasm, and gpu where there is one)",
    },
    gpu: LOAD_FLAGS.gpu,
    threads: { type: "integer", min: 1, max: 256, help: "CPU threads of the test (all)" },
    seed: { type: "integer", min: 0, help: "of the test's data (1)" },
  },
  examples: [
    ["troodon doctor", "the whole check"],
    ["troodon doctor --json", "for a bug report"],
    ["troodon doctor --report card.json", "what to send of a card that nobody has checked yet"],
    ["troodon doctor --device gpu --gpu dawn", "the kernels with Chromium's WebGPU"],
  ],
  notes: ["Exit code 1 when a kernel fails."],
}, async (context, { flags }) => {
  const { terminal, signal } = context;
  if (flags.report !== undefined && flags.quick) {
    throw new UsageError("--report is about kernels, which --quick leaves out");
  }
  if (flags.report !== undefined) await checkWritable(flags.report);
  const from = otherGpu(flags);
  const say = (what: string) => flags.json || terminal.err(`${what}\n`);
  say("Asking for an adapter, and for what is permitted.");
  const { gpu: provider } = await gpuOption(flags);
  const report = {
    machine: machineFacts(),
    simd: { ...probeCapabilities(), joinsVectors: await joinsVectors() },
    sharedMemory: typeof SharedArrayBuffer === "function",
    adapter: await describeAdapter(provider),
    permissions: await permissions(),
    cache: describeCache(flags["cache-dir"]),
    excluded: await readExcludedKernels(flags["cache-dir"]).catch((e: Error) => [e.message]),
  };
  if (!flags.json) terminal.out(asText(report) + "\n");
  const kernels: KernelHealth[] = [], checks: CheckedPart[] = [];
  const devices = flags.quick ? [] : await devicesOf(
    flags.device ?? (flags.report && report.adapter ? "gpu" : undefined),
    { gpu: provider },
  );
  if (devices.includes("gpu") && report.adapter === null) {
    // No kernel is to blame.
    throw new DeviceError("device gpu is not to be had: this machine offers no GPU", {
      remedy: "Leave --device gpu out",
    });
  }
  const isCard = report.adapter !== null && !report.adapter.software;
  const timing = flags.report === undefined ? 0 : TIMING_SHARE;
  const secondsOf = (device: DeviceName) =>
    flags.seconds ?? (device === "gpu" && isCard ? CARD_SECONDS : Infinity);
  for (const device of devices) {
    const { testKernels } = await import("../doctor/kernel_tests.ts");
    const found = await testKernels({
      ...{ device, from, threads: flags.threads, seed: flags.seed, signal },
      seconds: secondsOf(device) * (1 - timing),
      terminal: flags.json ? undefined : terminal,
    });
    kernels.push(...found.kernels);
    checks.push(found.part);
  }
  const failed = kernels.filter((health) => health.failed > 0).map(({ kernel }) => kernel);
  // What was not looked at to the end is not taken back.
  const isWhole = checks.every(({ done }) => done === 1);
  const tested = new Set(isWhole ? kernels.map(({ kernel }) => kernel) : failed);
  const excluded = [...report.excluded.filter((name) => !tested.has(name)), ...failed];
  const noted = flags.quick
    ? undefined
    : await note(excluded, report.excluded, { devices, cacheDir: flags["cache-dir"] });
  if (flags.report !== undefined) {
    const { writeCardReport } = await import("../doctor/card_report.ts");
    await writeCardReport(flags.report, {
      report,
      kernels,
      checks,
      ...{ provider, from, say, seconds: timing * secondsOf("gpu") },
    });
  }
  if (flags.json) {
    terminal.out(JSON.stringify({ ...report, kernels, checks, failed, noted }) + "\n");
  } else if (!flags.quick) showKernels(context, { kernels, checks, noted });
  return failed.length > 0 ? 1 : 0;
});

async function describeAdapter(
  provider: GpuProvider | undefined = builtIn(),
): Promise<Record<string, string> | null> {
  const adapter = await fastAdapter(provider).catch(() => null);
  if (!adapter) return null;
  const { vendor, architecture, device, description } = adapter.info;
  return {
    vendor,
    architecture,
    device,
    description,
    ...isSoftware(adapter) && { software: "computes on the CPU: slower than device wasm" },
    features: [...adapter.features].sort().join(" "),
    maxBufferSize: showBytes(adapter.limits.maxBufferSize),
    maxStorageBufferBindingSize: showBytes(adapter.limits.maxStorageBufferBindingSize),
  };
}

function describeCache(cacheDir: string | undefined) {
  try {
    const entries = listCache(cacheDir);
    return {
      folder: cacheFolder(cacheDir),
      models: entries.length,
      bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Writes the list of failed kernels when it has changed; says what was done. */
async function note(
  failed: readonly string[],
  before: readonly string[],
  { devices, cacheDir }: {
    readonly devices: readonly DeviceName[];
    readonly cacheDir: string | undefined;
  },
): Promise<string> {
  if (failed.join() === before.join()) {
    return failed.length === 0
      ? `every ${devices.join(" and ")} kernel is in use`
      : `${failed.length} kernels stay out of use: ${failed.join(", ")}`;
  }
  const path = excludedKernelsPath(cacheDir);
  if (path === undefined) return "the failed kernels could not be written down: no cache folder";
  await writeExcludedKernels(path, failed);
  return failed.length === 0
    ? `every kernel is in use again (${path})`
    : `out of use from now on: ${failed.join(", ")} (${path})`;
}

/** Bits of a vector, and what a processor that has more of them is to be given. */
function vectorsOf(simd: { readonly hasWideVectors: boolean; readonly joinsVectors: boolean }) {
  if (simd.joinsVectors) return "256 bits";
  const way = runtimeVersion().startsWith("Node") ? "node " : "deno run --v8-flags=";
  return `128 bits${
    simd.hasWideVectors ? `; for 256, which reads prompts faster: ${way}${JOINING_FLAG}` : ""
  }`;
}

function asText(report: {
  readonly machine: ReturnType<typeof machineFacts>;
  readonly simd: ReturnType<typeof probeCapabilities> & { readonly joinsVectors: boolean };
  readonly sharedMemory: boolean;
  readonly adapter: Record<string, string> | null;
  readonly permissions: readonly { readonly name: string; readonly state: string }[];
  readonly cache: ReturnType<typeof describeCache>;
}): string {
  const { machine, simd, adapter, cache } = report;
  const exact = simd.dotI8U8Exact ? ", exact 8-bit dot" : "";
  const rows = [
    ["system", `${machine.os} ${machine.arch}, ${runtimeVersion()}, V8 ${machine.v8}`],
    [
      "threads",
      `${machine.threads}${report.sharedMemory ? "" : " (no shared memory: one is used)"}`,
    ],
    ["WASM SIMD", `${simd.simd}${exact}, ${vectorsOf(simd)}`],
    [
      "WebGPU",
      adapter
        ? `${adapter.description || adapter.vendor}${
          adapter.software ? ` (no GPU: ${adapter.software})` : ""
        }: ${adapter.features}`
        : "no adapter",
    ],
    ["permissions", report.permissions.map(({ name, state }) => `${name} ${state}`).join(", ")],
    [
      "cache",
      "problem" in cache
        ? cache.problem!
        : `${cache.folder}: ${cache.models} models, ${showBytes(cache.bytes!)}`,
    ],
  ];
  return showTable(rows);
}

function showKernels(
  { terminal }: Context,
  { kernels, checks, noted }: {
    readonly kernels: readonly KernelHealth[];
    readonly checks: readonly CheckedPart[];
    readonly noted: string | undefined;
  },
): void {
  const colours = terminal.colours.out;
  const rows = kernels.map((health) => {
    const { kernel, passed, failed, skipped, reason } = health, verdict = verdictOf(health);
    return [
      verdict === "failed" ? "FAILED" : verdict,
      kernel,
      `${passed} of ${passed + failed} cases${skipped > 0 ? `, ${skipped} not for it` : ""}`,
      reason ?? "",
    ];
  });
  terminal.out(`\n${showTable(rows)}\n`);
  const bad = kernels.filter(({ failed }) => failed > 0).length;
  const reached = kernels.filter((health) => verdictOf(health) !== "not reached").length;
  const verdict = bad > 0
    ? paint(colours, { style: "red", text: `${bad} of ${reached} kernels fail` })
    : paint(colours, { style: "green", text: `${reached} kernels agree with the reference` });
  terminal.out(`\n${verdict}; ${noted}\n`);
  for (const part of checks) {
    if (part.done < 1) terminal.out(`${partLine(part)}\n`);
  }
}
