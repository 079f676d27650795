// Changes a picture by a text: 60 % of it are made anew.
//
//   deno run --allow-read --allow-write --allow-env examples/image_to_image.ts FOLDER PICTURE PROMPT

import { generateImage, loadImageModel, readPicture, writePng } from "../mod.ts";

const [folder, file, prompt] = Deno.args;
if (prompt === undefined) {
  throw new TypeError("Name the folder of a pipeline and a picture, and say what becomes of it");
}

const init = await readPicture(await Deno.readFile(file!), { file });
using model = await loadImageModel(folder!);
const { picture } = await generateImage(model, prompt, { init, strength: 0.6 });
await Deno.writeFile("changed.png", writePng(picture));
