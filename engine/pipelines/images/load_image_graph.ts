// loadImageGraph(). What it does is in open_image_graph.ts, which is imported when it is called for: a script that reads
// texts does not start with what graphs of texts and pictures need.

import type { LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import type { ImageGraph } from "./image_graph.ts";

/**
 * Loads an ONNX graph that classifies or embeds pictures, for {@linkcode classifyImage} and {@linkcode embedImage}.
 *
 * @param model A path, URL or name, as {@linkcode loadGraph} takes it. Of CLIP and SigLIP a file for pictures and texts, or
 * `vision_model.onnx`, whose `text_model.onnx` beside it is opened with it; then {@linkcode matchImages} takes it too.
 * @throws {UnsupportedError} If the graph takes no pictures, more than pictures, or gives neither scores nor vectors.
 * @throws As {@linkcode loadGraph}.
 *
 * @example
 * ```ts ignore
 * import { classifyImage, loadImageGraph, readPicture } from "@troodon/troodon";
 *
 * using graph = await loadImageGraph("hf:Xenova/vit-base-patch16-224/onnx/model.onnx");
 * const picture = await readPicture(await Deno.readFile("cat.jpg"));
 * console.log(await classifyImage(graph, picture, { top: 1 }));
 * ```
 * @category Pictures
 */
export async function loadImageGraph(
  model: string | URL,
  options: LoadGraphOptions = {},
): Promise<ImageGraph> {
  const { openImageGraph } = await import("./open_image_graph.ts");
  return await openImageGraph(model, options);
}
