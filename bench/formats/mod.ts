// `deno task bench formats`: speed of every number format on every backend, held against what the same machine
// reads in the same run.

import { machineName } from "../support/figures.ts";
import { type FormatBenchOptions, type FormatFigure, shapeText } from "./case.ts";
import { gpuFormats } from "./gpu.ts";
import { wasmFormats } from "./wasm.ts";

/** Backends by name. */
export const BACKENDS: Readonly<
  Record<string, (options: FormatBenchOptions) => AsyncGenerator<FormatFigure>>
> = { wasm: wasmFormats, gpu: gpuFormats };

/** Prints figures as they come: a JSON line each, or rows of a Markdown table. */
export async function printFormats(
  backends: readonly string[],
  options: FormatBenchOptions,
  json: boolean,
): Promise<void> {
  const machine = machineName();
  if (!json) {
    console.log(`${machine}\n`);
    console.log(
      "| format | backend | columns × outputs | bits | activations | GB/s | GOPS | of the limit |",
    );
    console.log("|---|---|---|---|---|---|---|---|");
  }
  for (const backend of backends) {
    for await (const figure of BACKENDS[backend]!(options)) {
      console.log(
        json
          ? JSON.stringify({ bench: "formats", ...figure, shape: shapeText(figure.shape), machine })
          : tableRow(figure),
      );
    }
  }
}

function tableRow(figure: FormatFigure): string {
  const { format, backend, device, shape, bitsAWeight, activations, gbps, gops, share } = figure;
  const cells = [
    ...[format, `${backend}, ${device}`, shapeText(shape).replaceAll("x", " × ")],
    ...[bitsAWeight.toFixed(2), activations, gbps.toFixed(1), gops.toFixed(1)],
    `${(100 * share).toFixed(0)} %`,
  ];
  return `| ${cells.join(" | ")} |`;
}
