// Says what is in a picture: the labels of a classification model, or with CLIP or SigLIP labels of your own.
//
//   deno run --allow-read examples/classify_image.ts MODEL FILE [LABEL…]

import { classifyImage, load, readPicture } from "../mod.ts";

const [name, file, ...labels] = Deno.args;
if (!name || !file) throw new TypeError("Name a model (vit-base, clip-base) and a picture");

using model = await load(name);
const picture = await readPicture(await Deno.readFile(file), { file });
const options = { top: 5, ...labels.length > 0 && { labels } };
const [found] = await classifyImage(model, picture, options);
for (const { label, probability } of found!) {
  console.log(`${probability.toFixed(4)}  ${label}`);
}
