// Paints a part of a picture anew: where the mask, a picture of the same size, is bright.
//
//   deno run --allow-read --allow-write --allow-env examples/inpaint.ts FOLDER PROMPT PICTURE MASK OUTPUT

import { generateImage, loadImageModel, readPicture, writePng } from "../mod.ts";

const [folder, prompt, file, maskFile, output] = Deno.args;
if (output === undefined) {
  throw new TypeError("Name a pipeline's folder, a prompt, a picture, a mask, and a PNG to write");
}

const read = async (file: string) => await readPicture(await Deno.readFile(file), { file });
const [init, mask] = await Promise.all([read(file!), read(maskFile!)]);
using model = await loadImageModel(folder!);
const { picture } = await generateImage(model, prompt!, { init, mask, steps: 20 });
await Deno.writeFile(output, writePng(picture));
console.log(`${output}: ${picture.width} × ${picture.height}`);
