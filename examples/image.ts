// Paints a picture from a text with a diffusion model (a diffusers folder, or a name such as sd-turbo), and writes it as PNG.
//
//   deno run --allow-read --allow-write --allow-env examples/image.ts MODEL PROMPT OUTPUT

import { generateImage, loadImageModel, writePng } from "../mod.ts";

const [name, prompt, output] = Deno.args;
if (output === undefined) {
  throw new TypeError("Name a model, say what to paint, and name a PNG file");
}

using model = await loadImageModel(name!);
const { picture, seed } = await generateImage(model, prompt!, {
  steps: 20,
  onProgress: ({ step, steps }) => console.log(`step ${step} of ${steps}`),
});
await Deno.writeFile(output, writePng(picture));
console.log(`${output}: ${picture.width} × ${picture.height}, seed ${seed}`);
