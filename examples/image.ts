// Paints a picture from a text with a diffusers folder (Stable Diffusion 1 or 2), and writes it as PNG.
//
//   deno run --allow-read --allow-write --allow-env examples/image.ts FOLDER PROMPT OUTPUT

import { generateImage, loadImageModel, writePng } from "../mod.ts";

const [folder, prompt, output] = Deno.args;
if (output === undefined) {
  throw new TypeError("Name the folder of a pipeline, say what to paint, and name a PNG file");
}

using model = await loadImageModel(folder!);
const { picture, seed } = await generateImage(model, prompt!, {
  steps: 20,
  onProgress: ({ step, steps }) => console.log(`step ${step} of ${steps}`),
});
await Deno.writeFile(output, writePng(picture));
console.log(`${output}: ${picture.width} × ${picture.height}, seed ${seed}`);
