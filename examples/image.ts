// Paints a picture from a text with a diffusers folder (Stable Diffusion 1 or 2), and writes it as PNG.
//
//   deno run --allow-read --allow-write --allow-env examples/image.ts FOLDER PROMPT

import { generateImage, loadImageModel, writePng } from "../mod.ts";

const [folder, prompt] = Deno.args;
if (prompt === undefined) {
  throw new TypeError("Name the folder of a pipeline, and say what to paint");
}

using model = await loadImageModel(folder!);
const { picture, seed } = await generateImage(model, prompt, {
  steps: 20,
  onProgress: ({ step, steps }) => console.error(`step ${step} of ${steps}`),
});
await Deno.writeFile("picture.png", writePng(picture));
console.log(`picture.png: ${picture.width} × ${picture.height}, seed ${seed}`);
