// What a placement costs, before a weight is read: bytes on each device, bytes that a token moves between them, and how fast
// it would go at given bandwidths. A token reads every weight of its layers once, of experts those that are chosen, of a
// table one row; devices of a level compute side by side; what passes between parts goes through this process.

import { type DimEnv, evaluate } from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";
import { byteSize } from "../plan/sizes.ts";
import type { Plan } from "../plan/plan.ts";
import type { StateSizes } from "../run/pages/groups.ts";
import { levelsOf } from "../run/parts/run_parts.ts";
import { HOST } from "./place_graph.ts";
import { type CutModel, type PlacedBytes, placedBytes } from "./placed_device.ts";
import { layerOf } from "./rules.ts";

/** What a device does in a second. */
export interface Bandwidths {
  /** Bytes of weights that it reads. */
  readonly read: number;
  /** Bytes that go to it or come from it. */
  readonly link: number;
  /** What computes: devices of one name share it, and one waits for the other. */
  readonly hardware: string;
  /** Seconds that a part takes whatever it computes: a submission, a message and its answer. */
  readonly latency: number;
}

/** A device in a report. */
export interface DeviceReport extends PlacedBytes {
  readonly device: string;
  /** Layers of which it computes something. */
  readonly layers: readonly number[];
  /** Parts that run on it for a token: each is a round trip. */
  readonly parts: number;
  /** Bytes of weights that a token reads there. */
  readonly readBytes: number;
  /** Bytes that come and go for a token. */
  readonly movedBytes: number;
}

/** A placement and what it costs. */
export interface PlacementReport {
  readonly note: string | undefined;
  readonly devices: readonly DeviceReport[];
  /** Sums over groups of devices in a step. */
  readonly allReduces: number;
  /** Bytes that a token moves between devices. */
  readonly movedBytes: number;
  /** Tokens a second, where bandwidths are known: of one text, and of texts that follow each other through the devices. */
  readonly expected: { readonly one: number; readonly many: number } | undefined;
}

const TOKEN: DimEnv = { M: 1, L: 1 };

/** Adds up a placement. */
export function reportPlacement(
  plan: Plan,
  { cut, names, sizes, bandwidths, note }: {
    readonly cut: CutModel;
    readonly names: readonly string[];
    readonly sizes: StateSizes;
    /** By device. */
    readonly bandwidths?: readonly Bandwidths[] | undefined;
    readonly note?: string | undefined;
  },
): PlacementReport {
  const { parts } = cut;
  const bytes = placedBytes(plan, cut, { sizes, count: names.length });
  const made = new Set(parts.flatMap(({ plan: { graph } }) => graph.outputs.map(({ id }) => id)));
  const wanted = new Set(plan.graph.outputs.map(({ name }) => name));
  const costs = parts.map(({ place, plan: { graph } }) => ({
    place,
    readBytes: graph.nodes.reduce((sum, node) => sum + readBytes(node), 0),
    movedBytes: tokenBytes(graph.inputs.filter(({ id }) => made.has(id))) +
      tokenBytes(graph.outputs.filter(({ name }) => !wanted.has(name))),
  }));
  const devices = names.map((device, place): DeviceReport => {
    const own = parts.flatMap((part, i) => part.place === place ? { part, cost: costs[i]! } : []);
    const nodes = own.flatMap(({ part }) => part.plan.graph.nodes);
    return {
      ...{ device, ...bytes[place]! },
      layers: [...new Set(nodes.flatMap((node) => layerOf(node) ?? []))].sort((a, b) => a - b),
      parts: own.length,
      readBytes: own.reduce((sum, { cost }) => sum + cost.readBytes, 0),
      movedBytes: own.reduce((sum, { cost }) => sum + cost.movedBytes, 0),
    };
  });
  return {
    ...{ note, devices },
    allReduces:
      parts.flatMap(({ plan }) => plan.graph.nodes).filter(({ op }) => op === "all_reduce").length,
    movedBytes: devices.reduce((sum, own) => sum + own.movedBytes, 0),
    expected: bandwidths && expectedOf(levelsOf(parts), { costs, bandwidths }),
  };
}

interface PartCost {
  readonly place: number;
  readonly readBytes: number;
  readonly movedBytes: number;
}

function expectedOf(
  levels: readonly number[],
  { costs, bandwidths }: {
    readonly costs: readonly PartCost[];
    readonly bandwidths: readonly Bandwidths[];
  },
): { one: number; many: number } {
  const levelsBusy: Record<string, number>[] = [], busy: Record<string, number> = {};
  costs.forEach(({ place, readBytes, movedBytes }, i) => {
    if (place === HOST) return;
    const { read, link, latency, hardware } = bandwidths[place]!;
    const seconds = readBytes / read + movedBytes / link + latency;
    for (const sums of [levelsBusy[levels[i]!] ??= {}, busy]) {
      sums[hardware] = (sums[hardware] ?? 0) + seconds;
    }
  });
  const longest = (sums: Readonly<Record<string, number>>) => Math.max(0, ...Object.values(sums));
  // Levels of the host alone are holes, which reduce passes over.
  const seconds = levelsBusy.reduce((sum, level) => sum + longest(level), 0);
  return { one: 1 / seconds, many: 1 / longest(busy) };
}

function tokenBytes(values: readonly Value[]): number {
  return values.reduce((sum, value) => sum + evaluate(byteSize(value), TOKEN), 0);
}

/** Bytes of weights that a node reads for a token. */
function readBytes({ op, inputs }: Node): number {
  const chosen = op === "expert_matmul" ? inputs[2]!.shape[1] as number : undefined;
  return inputs.reduce((sum, value) => {
    if (!value?.tensor) return sum;
    const { byteLength, shape } = value.tensor;
    if (op === "embed" || op === "select_rows") return sum + byteLength / shape[0]!;
    const isStack = chosen !== undefined && value.shape.length === 3;
    return sum + (isStack ? byteLength * chosen / shape[0]! : byteLength);
  }, 0);
}

/** A picture: for each device what lies there, to one scale, and what a token moves. */
export function drawPlacement(
  { devices, note, movedBytes, allReduces, expected }: PlacementReport,
): string {
  const width = 760, left = 150, rowHeight = 64, top = 40;
  const total = ({ weights, states, activations }: PlacedBytes) => weights + states + activations;
  const scale = (width - left - 20) / Math.max(1, ...devices.map(total));
  const kinds = [["weights", "#4878a8"], ["states", "#6aa84f"], [
    "activations",
    "#d98c3f",
  ]] as const;
  const rows = devices.map((device, i) => {
    const y = top + i * rowHeight;
    let x = left;
    const bars = kinds.map(([kind, colour]) => {
      const size = device[kind] * scale, bar = rectangle({ x, y, size, colour });
      x += size;
      return bar;
    });
    const { layers, parts } = device;
    const said = [
      layers.length > 0 ? `layers ${rangesOf(layers)}` : "no layer",
      `${megabytes(total(device))}`,
      `${parts} part${parts === 1 ? "" : "s"}, ${kilobytes(device.movedBytes)} moved a token`,
    ].join(", ");
    return [
      text({ x: 10, y: y + 18, said: device.device }),
      ...bars,
      text({ x: left, y: y + 42, said }),
    ].join("");
  });
  const end = top + devices.length * rowHeight;
  const lines = [
    `${kilobytes(movedBytes)} moved a token, ${allReduces} all-reduces`,
    ...expected
      ? [`${expected.one.toFixed(1)} tokens/s of one text, ${expected.many.toFixed(1)} of many`]
      : [],
    ...note ? [note] : [],
  ];
  const legend = kinds.map(([kind, colour], i) =>
    rectangle({ x: left + i * 150, y: 10, size: 14, colour, height: 14 }) +
    text({ x: left + 20 + i * 150, y: 22, said: kind === "states" ? "keys and values" : kind })
  );
  const height = end + 20 * lines.length + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" ` +
    `font-size="13">${legend.join("")}${rows.join("")}${
      lines.map((said, i) => text({ x: 10, y: end + 16 + 20 * i, said })).join("")
    }</svg>\n`;
}

function rectangle(
  { x, y, size, colour, height = 24 }: {
    readonly x: number;
    readonly y: number;
    readonly size: number;
    readonly colour: string;
    readonly height?: number;
  },
): string {
  return `<rect x="${x.toFixed(1)}" y="${y}" width="${
    size.toFixed(1)
  }" height="${height}" fill="${colour}"/>`;
}

function text(
  { x, y, said }: { readonly x: number; readonly y: number; readonly said: string },
): string {
  const escaped = said.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return `<text x="${x}" y="${y}">${escaped}</text>`;
}

/** `0-3, 5`. */
export function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const one of numbers) {
    const last = ranges.at(-1);
    if (last && last[1] === one - 1) last[1] = one;
    else ranges.push([one, one]);
  }
  return ranges.map(([from, to]) => from === to ? `${from}` : `${from}-${to}`).join(", ");
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 2 ** 10).toFixed(1)} KiB`;
}
