// `troodon plan MODEL --placement P`: what lies where, what a token moves and how fast that would go, from the model's header.

import { closing } from "../byte_source.ts";
import { resolveDecoderLimits } from "../decode/load_options.ts";
import type { LoadOptions } from "../decode/model.ts";
import { writeNewText } from "../io.ts";
import { openForReading } from "../models/open_source.ts";
import { prepareModel } from "../models/prepare.ts";
import { missingDevices } from "../place/device_list.ts";
import { measureGpu, measureHost } from "../place/bandwidths.ts";
import { resolvePlacement } from "../place/open_placement.ts";
import {
  type Bandwidths,
  drawPlacement,
  type PlacementReport,
  rangesOf,
  reportPlacement,
} from "../place/report.ts";
import { pagesFor } from "../run/pages/groups.ts";
import { checkLoad } from "./check_options.ts";
import type { Context } from "./command.ts";
import { showBytes, showTable } from "./format.ts";

/** Reports the placement of each model. */
export async function planPlacement(
  { terminal }: Pick<Context, "terminal">,
  files: readonly string[],
  { options, json, out }: {
    readonly options: LoadOptions;
    readonly json: boolean | undefined;
    /** Where the picture goes. */
    readonly out: string | undefined;
  },
): Promise<number> {
  checkLoad(options);
  const reports: PlacementOf[] = [];
  for (const file of files) reports.push(await reportOf(file, options));
  if (json) terminal.out(JSON.stringify(reports) + "\n");
  else for (const report of reports) terminal.out(asText(report) + "\n");
  if (out !== undefined) writeNewText(out, reports.map(drawPlacement).join(""));
  return 0;
}

interface PlacementOf extends PlacementReport {
  readonly file: string;
  /** Devices that this machine does not have. */
  readonly missing: readonly string[];
}

async function reportOf(file: string, options: LoadOptions): Promise<PlacementOf> {
  const weights = await openForReading(file, options);
  using _weights = closing(weights);
  const none = () => false;
  const { plan, params } = await prepareModel(weights, {
    ...{ options, kernels: { hasKernel: none, takes: none, fusesNeighbours: false } },
  });
  const { sessions: slots, cacheTokens: tokens } = resolveDecoderLimits(options, params);
  const sizes = { slots, pages: pagesFor(plan, { slots, tokens }) };
  const { devices, cut, note } = await resolvePlacement(plan, { ...options, sizes });
  const missing = await missingDevices(devices, options);
  const bandwidths = missing.length === 0 ? await bandwidthsOf(devices, options) : undefined;
  const report = reportPlacement(plan, { cut, names: devices, sizes, note, bandwidths });
  return { file, ...report, missing };
}

/** Of each device, where all can be measured here. */
async function bandwidthsOf(
  devices: readonly string[],
  options: LoadOptions,
): Promise<Bandwidths[] | undefined> {
  const host = measureHost();
  const gpu = devices.some((name) => name.includes("gpu"))
    ? await measureGpu(options).catch(() => undefined)
    : undefined;
  const found = devices.map((name) => {
    if (name.includes(":")) return undefined;
    if (!name.includes("gpu")) return host;
    // A process sees one card: others are taken to be like it.
    const card = /^gpu([1-9]\d*)$/.exec(name)?.[1];
    return gpu && card ? { ...gpu, hardware: `card ${card}` } : gpu;
  });
  return found.every((one) => one !== undefined) ? found : undefined;
}

function asText(
  { file, missing, devices, note, allReduces, movedBytes, expected }: PlacementOf,
): string {
  const head = [
    "device",
    "layers",
    "weights",
    "caches",
    "activations",
    "in all",
    "parts",
    "moved a token",
  ];
  const rows = devices.map((one) => [
    ...[one.device, rangesOf(one.layers)],
    ...[one.weights, one.states, one.activations, one.weights + one.states + one.activations].map(
      showBytes,
    ),
    ...[String(one.parts), showBytes(one.movedBytes)],
  ]);
  const others = devices.some(({ device }) => /^gpu[1-9]/.test(device))
    ? ", all GPUs taken to be like the first"
    : "";
  const lines = [
    `${showBytes(movedBytes)} moved a token, ${allReduces} all-reduces`,
    expected
      ? `expected: ${expected.one.toFixed(1)} tokens/s of one text, ${
        expected.many.toFixed(1)
      } of many at once ` +
        `(from bandwidths measured now${others})`
      : `expected: not known, because ${
        missing.length > 0
          ? `this machine does not have ${missing.join(", ")}`
          : "a device cannot be measured from here"
      }`,
    ...note ? [note] : [],
  ];
  return `${file}\n${showTable([head, ...rows], [2, 3, 4, 5, 6, 7])}\n${lines.join("\n")}`;
}
