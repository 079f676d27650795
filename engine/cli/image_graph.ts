// Loads the ONNX graph of a command that looks at pictures, and says what was taken for granted of it.

import type { ImageGraph } from "../pipelines/images/image_graph.ts";
import { type ParsedLine, UsageError } from "./args.ts";
import type { Context } from "./command.ts";
import { readExcludedKernels } from "./excluded_kernels.ts";
import { fetchModel } from "./fetch.ts";
import { LOAD_FLAGS, paceOption, SOURCE_FLAGS } from "./flags.ts";
import { gpuOption } from "./gpu_flag.ts";

/** What of the flags there is for graphs. */
const OF_GRAPHS = ["device", "gpu", "threads", "precision", "max-submit-ms"];

/** Flags by which graphs and models are loaded; commands may have fewer. */
type GraphFlags =
  & ParsedLine<typeof SOURCE_FLAGS>["flags"]
  & Partial<ParsedLine<typeof LOAD_FLAGS>["flags"]>;

/** @throws {UsageError} If a flag is of language models alone. */
export async function openImageGraph(
  name: string,
  { flags, context }: {
    readonly flags: GraphFlags;
    readonly context: Pick<Context, "terminal" | "signal">;
  },
): Promise<ImageGraph> {
  const taken = [...OF_GRAPHS, ...Object.keys(SOURCE_FLAGS)];
  const other = Object.keys(LOAD_FLAGS).find((flag) =>
    flags[flag as keyof GraphFlags] && !taken.includes(flag)
  );
  if (other !== undefined) throw new UsageError(`--${other} does not go with an ONNX file`);
  const { device, threads, precision } = flags, gpu = await gpuOption(flags);
  const path = await fetchModel(name, { flags, pick: context });
  const { loadImageGraph } = await import("../pipelines/images/load_image_graph.ts");
  const graph = await loadImageGraph(path, {
    ...{ device, ...gpu, threads, precision, ...paceOption(flags) },
    excludeKernels: await readExcludedKernels(flags["cache-dir"]),
  });
  for (const note of graph.notes) context.terminal.err(`note: ${note}\n`);
  return graph;
}
