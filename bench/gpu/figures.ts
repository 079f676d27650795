// Figures of `deno task bench gpu`, by the model, and whose WebGPU it is.

import type { Capabilities } from "../../gpu/kernel.ts";
import { type Figure, machineName, median } from "../support/figures.ts";
import type { PartOptions } from "./mod.ts";

/** Makes a figure; `share`: part of the measured limit. */
export type MakeFigure = (
  name: string,
  unit: string,
  value: number,
  share?: number | null,
) => Figure;

/** Makes figures of a model on a device. */
export function figureMaker(
  { capabilities: { adapter } }: { readonly capabilities: Pick<Capabilities, "adapter"> },
  { model, precision, gpu }: Pick<PartOptions, "model" | "precision" | "gpu">,
): MakeFigure {
  const how = `${precision === "exact" ? ", exact" : ""}${gpu === "built-in" ? "" : ", Dawn"}`;
  return (name, unit, value, share = null) => ({
    ...{ bench: "gpu", case: `${name} ${model.name}${how}`, unit, value },
    ...{ peer: null, peerValue: null, ratio: null, share },
    machine: `${adapter}, ${machineName()}`,
  });
}

/** Part of the steps that take no longer. */
const PARTS = { p50: 0.5, p95: 0.95, p99: 0.99, most: 1 } as const;

/** Speed of decode runs, how evenly their steps came, and how many tokens the last one was made of. */
export function* rateFigures(
  figure: MakeFigure,
  { name, rates, steps, distinct }: {
    readonly name: string;
    /** Tokens a second, by round. */
    readonly rates: readonly number[];
    /** Milliseconds of all steps. */
    readonly steps: readonly number[];
    readonly distinct: number;
  },
): Generator<Figure> {
  const sorted = steps.toSorted((a, b) => a - b), last = sorted.length - 1;
  yield figure(name, "tokens/s", median(rates));
  for (const [part, of] of Object.entries(PARTS)) {
    yield figure(
      `${name}, step ${part}`,
      "ms",
      sorted[Math.min(last, Math.floor(of * sorted.length))]!,
    );
  }
  yield figure(`${name}: distinct tokens`, "", distinct);
}
