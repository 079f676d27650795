// Changes a picture by a text: 60 % of it are made anew.
//
//   deno run --allow-read --allow-write --allow-env examples/image_to_image.ts FOLDER PROMPT PICTURE OUTPUT

import { generateImage, loadImageModel, readPicture, writePng } from "../mod.ts";

const [folder, prompt, file, output] = Deno.args;
if (output === undefined) {
  throw new TypeError("Name a pipeline's folder, a prompt, a picture, and a PNG file to write");
}

const init = await readPicture(await Deno.readFile(file!), { file });
using model = await loadImageModel(folder!);
const { picture } = await generateImage(model, prompt!, { init, strength: 0.6, steps: 20 });
await Deno.writeFile(output, writePng(picture));
console.log(`${output}: ${picture.width} × ${picture.height}`);
