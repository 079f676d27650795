// `troodon tune`: measures on this machine which kernels and storages are the fastest, and keeps that for all later
// commands (spec MD-7).

import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { Measured, Variant } from "../../run/tuning/measure.ts";
import type { Tuning, Tunings } from "../../run/tuning/table.ts";
import { UsageError } from "../args.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
import { CACHE_FLAGS, LOAD_FLAGS } from "../flags.ts";
import { showTable } from "../format.ts";
import { devicesOf, gpuOption } from "../gpu_flag.ts";
import { readText, writeText } from "../machine.ts";

/** Fewer say nothing of how much times differ. */
const LEAST_ROUNDS = 5;

/** The command. */
export const tune: Command = defineCommand({
  name: "troodon tune",
  summary: "Measures kernels and storages on this machine and uses the fastest from then on.",
  flags: {
    ...CACHE_FLAGS,
    device: {
      type: "string",
      choices: ["wasm", "gpu"],
      help: "what to measure (wasm, and gpu where there is one)",
    },
    gpu: LOAD_FLAGS.gpu,
    threads: { type: "integer", min: 1, max: 256, help: "CPU threads of device wasm (all)" },
    only: { type: "string", value: "OP", help: "only cases of one op, e.g. conv" },
    rounds: {
      type: "integer",
      min: LEAST_ROUNDS,
      max: 1000,
      help: "runs of each variant, when it is warm (10)",
    },
    export: {
      type: "string",
      value: "FILE",
      help: "write the tables that are kept, measure nothing",
    },
    import: { type: "string", value: "FILE", help: "keep the tables of a file, measure nothing" },
  },
  examples: [
    ["troodon tune", "measure this machine, keep the table"],
    ["troodon tune --export card.json", "share it with whoever has the same card"],
    ["troodon tune --import card.json", "use somebody's"],
  ],
  notes: [
    "Tables are kept by adapter and version beside the cached models. A variant is taken where it is faster by more " +
    "than a tenth, beyond what times differ by; one that fails or computes something else than the reference is not used " +
    "any more. Delete the file of tables, whose path is printed, to forget them all.",
  ],
}, async (context, { flags }) => {
  const { terminal } = context, cacheDir = flags["cache-dir"];
  const { readTunings, showTunings, parseTunings, tuningPath } = await import(
    "../../run/tuning/table.ts"
  );
  const path = tuningPath(cacheDir);
  if (!path) throw new UsageError("There is no cache folder to keep tables in: give --cache-dir");
  const say = (text: string, data: unknown) =>
    terminal.out((flags.json ? JSON.stringify(data) : text) + "\n");
  if (flags.export !== undefined && flags.import !== undefined) {
    throw new UsageError("--export does not go with --import");
  }
  const kept = readTunings(cacheDir);
  if (flags.export !== undefined) {
    const devices = Object.keys(kept);
    if (devices.length === 0) throw new UsageError("There is no table yet: run troodon tune first");
    await writeText(flags.export, showTunings(kept));
    say(`wrote the tables of ${devices.join("; ")} to ${flags.export}`, { devices });
    return 0;
  }
  const keep = (tables: Tunings) =>
    writeText(path, showTunings({ ...kept, ...tables }), { folders: true });
  if (flags.import !== undefined) {
    const tables = parseTunings(await readText(flags.import), flags.import);
    const devices = Object.keys(tables);
    await keep(tables);
    say(`keeping the tables of ${devices.join("; ")} in ${path}`, { devices, path });
    return 0;
  }
  await keep({}); // what may not be kept is told before it is measured
  const found: Record<string, Tuning> = {};
  const reports: Report[] = [];
  const given = await gpuOption(flags);
  for (const device of await devicesOf(flags.device, given)) {
    const report = await tuneDevice(context, device, {
      ...{ ...flags, gpu: given.gpu, kept },
    });
    if (report.measured.length > 0) found[report.device] = report.tuning;
    reports.push(report);
    if (!flags.json) terminal.out(asText(report) + "\n");
  }
  const isKept = Object.keys(found).length > 0;
  if (isKept) await keep(found);
  if (isKept || flags.json) say(`kept in ${path}`, { reports, ...isKept && { path } });
  return 0;
});

interface Report {
  readonly device: string;
  readonly measured: readonly Measured[];
  readonly tuning: Tuning;
}

async function tuneDevice(
  { terminal, signal }: Context,
  name: "wasm" | "gpu",
  { gpu: provider, threads, only, rounds, json, kept }: {
    readonly gpu: GpuProvider | undefined;
    readonly threads?: number | undefined;
    readonly only?: string | undefined;
    readonly rounds?: number | undefined;
    readonly json?: boolean | undefined;
    readonly kept: Tunings;
  },
): Promise<Report> {
  const { openTunedDevice } = await import("../../run/tuning/devices.ts");
  const { measure, tuningOf } = await import("../../run/tuning/measure.ts");
  const { tuneCases } = await import("../../run/tuning/cases.ts");
  const all = tuneCases(), cases = all.filter(({ op }) => only === undefined || op === only);
  if (cases.length === 0) {
    const known = [...new Set(all.map(({ op }) => op))].join(", ");
    throw new UsageError(`There is nothing to measure of ${only}: give one of ${known}`);
  }
  const device = await openTunedDevice(name, {
    ...provider && { provider },
    threads,
  });
  const measured: Measured[] = [];
  for await (const one of measure(device, { cases, signal, ...rounds && { rounds } })) {
    measured.push(one);
    if (!json) terminal.err(`${one.op} ${one.case}\n`);
  }
  const tuning = tuningOf(measured, { storages: device.storages, before: kept[device.name] });
  return { device: device.name, measured, tuning };
}

function asText({ device, measured, tuning }: Report): string {
  const rows = measured.flatMap(({ op, case: name, variants }) =>
    variants.map((variant, i) => [i === 0 ? `${op} ${name}` : "", ...asRow(variant)])
  );
  if (rows.length === 0) {
    return `${device}\nnothing was measured: these nodes have one kernel each on it`;
  }
  const { prefer, excluded, storages } = tuning;
  const kinds = [...new Set(measured.map(({ key }) => key))];
  const changed = kinds.filter((key) => Object.hasOwn(prefer, key));
  return [
    device,
    showTable([["CASE", "KERNEL", "TIME"], ...rows]),
    `${changed.length} of ${kinds.length} kinds of nodes get another kernel` +
    (storages ? `, convolutions read ${storages.conv?.source ?? "planes"}` : ""),
    ...excluded.length > 0 ? [`not used any more: ${excluded.join(", ")}`] : [],
  ].join("\n");
}

function asRow({ kernel, storages, ms, problem }: Variant): [string, string] {
  const where = storages ? ` (${Object.values(storages.conv ?? {}).join(", ") || "planes"})` : "";
  return [kernel + where, ms === undefined ? problem! : `${ms.toFixed(2)} ms`];
}
