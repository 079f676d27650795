// The ONNX graph behind a name: a path, or what the catalogue or the hub calls so, which is fetched first.

import type { OnnxModel } from "../onnx/file/model.ts";
import { openNamed, openStructure } from "../onnx/file/open_onnx.ts";
import type { Context } from "./command.ts";
import { fetchModel, type SourceFlags } from "./fetch.ts";

/** Opens the structure of a graph; `read` is how long that took, in ms. */
export async function openNamedGraph(
  name: string,
  options: { readonly flags: SourceFlags; readonly pick: Pick<Context, "terminal" | "signal"> },
): Promise<{ readonly model: OnnxModel; readonly read: number }> {
  const path = await fetchModel(name, options);
  const start = performance.now();
  const model = await openNamed(path, openStructure);
  return { model, read: performance.now() - start };
}
