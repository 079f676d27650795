/**
 * Makes the one file that an edge platform takes.
 *
 * ```sh
 * deno run -A examples/edge/build.ts https://example.com/minilm/ edge.js
 * deno serve --allow-net edge.js
 * ```
 */

import { bundle } from "../../tools/build/bundle.ts";

/** Writes `main.js` into a folder. @returns Its length in bytes. */
export async function buildEdge(outdir: string, modelUrl: string): Promise<number> {
  const outputs = await bundle({
    platform: "browser",
    entries: { main: "examples/edge/main.ts" },
    outdir,
    splitting: false,
    define: { MODEL_URL: JSON.stringify(modelUrl) },
  });
  return Object.values(outputs).reduce((sum, { bytes }) => sum + bytes, 0);
}

if (import.meta.main) {
  const [modelUrl = "http://127.0.0.1:8000/", target = "edge.js"] = Deno.args;
  const folder = await Deno.makeTempDir();
  console.log(`${target}: ${await buildEdge(folder, modelUrl)} bytes`);
  await Deno.copyFile(`${folder}/main.js`, target);
}
