// The files that examples in JSDoc speak of. Readers have models of their own under such names; while examples are run, the
// names lead to the tests' small ones.

import { ROOT } from "./task.ts";

const FIXTURES: Readonly<Record<string, string>> = {
  "cat.png": "pictures/inputs/gradient.png",
  "checkpoint": "models/qwen3",
  "classifier": "pictures/vit_toy",
  "encoder": "models/bert",
  "model.gguf": "models/llama_formats/llama.Q8_0.gguf",
  "model.onnx": "optimum_pair/decoder_model.onnx",
  "page.png": "pictures/page.png",
  "painter": "pictures/sd_toy",
  "photo.jpg": "pictures/decode/orientation6.jpg",
  "translator": "models/m2m100",
};

/** Makes a folder with all of them; who asks for it removes it. */
export async function makeExampleFolder(): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, path] of Object.entries(FIXTURES)) {
    await Deno.symlink(`${ROOT}/tests/fixtures/${path}`, `${folder}/${name}`);
  }
  return folder;
}
