// `troodon plan MODEL --device gpu`: dispatches of a language model's decode step, by layer, from its header
// alone; of an ONNX graph at given sizes, by kernel (plan_gpu_graph.ts). A device is opened, since it decides which kernels
// there are; no weight is read.

import { closing } from "../byte_source.ts";
import { UnsupportedError } from "../errors.ts";
import { isOnnxFile } from "../onnx/file/onnx_file.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import { openDevice } from "../run/devices.ts";
import { openShared } from "../run/gpu/errors.ts";
import { openForReading } from "../models/open_source.ts";
import { prepareModel } from "../models/prepare.ts";
import { countDispatches, dispatchesByLayer, type LayerDispatches } from "../run/gpu/dispatches.ts";
import { UsageError } from "./args.ts";
import type { Context } from "./command.ts";
import { paint, showTable } from "./format.ts";
import { type GraphDispatchReport, graphText, reportGraphDispatches } from "./plan_gpu_graph.ts";

/** Dispatches of one token's step. */
export interface DispatchReport {
  readonly file: string;
  readonly adapter: string;
  /** Position of the token; long contexts take other kernels than short ones. */
  readonly position: number;
  readonly dispatches: number;
  readonly layers: readonly LayerDispatches[];
}

/**
 * Counts for a token at the beginning and at the end of the context.
 *
 * @throws {DeviceError} If there is no adapter.
 * @throws {UnsupportedError} If a node has no kernel on the GPU, or the model does not answer token by token.
 */
async function reportDispatches(
  file: string,
  contextLength: number | undefined,
): Promise<DispatchReport[]> {
  const options = { ...contextLength !== undefined && { contextLength } };
  const device = await openDevice("gpu", {});
  const weights = await openForReading(file, options);
  using _weights = closing(weights);
  if (isOnnxFile(weights)) throw notByToken(file);
  const { plan } = await prepareModel(weights, { options, kernels: device });
  const { capabilities } = await openShared({});
  const symbols = Object.keys(plan.limits).sort().join();
  if (symbols !== "L,M" || plan.graph.states.length === 0) {
    throw notByToken(file);
  }
  const bindings: DimEnv = { M: 1, L: 1 };
  const capacity = Math.min(...plan.graph.states.map(({ shape }) => shape[0] as number));
  return [0, capacity - 1].map((position) => {
    const layers = dispatchesByLayer(countDispatches(plan, { capabilities, bindings, position }));
    const dispatches = layers.reduce((sum, { count }) => sum + count, 0);
    return { file, adapter: capabilities.adapter, position, dispatches, layers };
  });
}

function notByToken(file: string): UnsupportedError {
  return new UnsupportedError(
    "dispatches are counted for .onnx files and for GGUF and safetensors language models",
    { file, remedy: "Leave --device out" },
  );
}

/** Graphs are read from files as they lie; language models also by the names of a catalogue, from folders. */
const GRAPH_FILE = /\.onnx$/i;

/** Prints the reports of some files. */
export async function planOnGpu(
  { terminal }: Pick<Context, "terminal">,
  files: readonly string[],
  { json = false, steps = false, context, bind }: {
    readonly json?: boolean | undefined;
    readonly steps?: boolean | undefined;
    readonly context?: number | undefined;
    /** Sizes of the symbols of ONNX graphs; absent: none was given. */
    readonly bind?: Readonly<Record<string, number>> | undefined;
  },
): Promise<number> {
  const reports: (DispatchReport | GraphDispatchReport)[] = [];
  for (const file of files) {
    if (GRAPH_FILE.test(file)) {
      if (context !== undefined) throw new UsageError("--context is of language models by token");
      reports.push(await reportGraphDispatches(file, bind ?? {}));
    } else {
      if (bind) throw new UsageError("--bind does not go with --device gpu but for ONNX graphs");
      reports.push(...await reportDispatches(file, context));
    }
  }
  const colours = terminal.colours.out;
  if (json) terminal.out(JSON.stringify(reports) + "\n");
  else {
    for (const report of reports) {
      const text = "host" in report ? graphText(report, colours) : asText(report, steps, colours);
      terminal.out(text);
    }
  }
  return 0;
}

function asText(report: DispatchReport, steps: boolean, colours: boolean): string {
  const { file, adapter, position, dispatches, layers } = report;
  const rows: [string, string][] = runsOf(layers).map(([name, { count, nodes }]) => [
    name,
    steps
      ? `${count}: ${
        nodes.map(({ node, kernel, count }) => `${node} ${kernel} ${count}`).join(", ")
      }`
      : `${count}`,
  ]);
  rows.push(["in all", `${dispatches} dispatches a token`]);
  const title = paint(colours, {
    style: "bold",
    text: `${file} at position ${position} on ${adapter}`,
  });
  return `${title}\n${showTable(rows)}\n`;
}

/** Neighbouring layers that take as much are one row. */
function runsOf(layers: readonly LayerDispatches[]): [string, LayerDispatches][] {
  const runs: { first: LayerDispatches; last: LayerDispatches }[] = [];
  for (const layer of layers) {
    const run = runs.at(-1);
    const goesOn = run && run.first.layer !== "" && run.first.count === layer.count;
    if (goesOn) run.last = layer;
    else runs.push({ first: layer, last: layer });
  }
  return runs.map(({ first, last }) => {
    if (first.layer === "") return ["outside of layers", first];
    return [first === last ? first.layer : `${first.layer} to ${last.layer}, each`, first];
  });
}
