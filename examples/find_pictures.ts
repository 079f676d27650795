// Finds the pictures that a text describes best, by vectors of both in one space (CLIP, SigLIP).
//
//   deno run --allow-read examples/find_pictures.ts MODEL TEXT FILE…

import { embed, embedImage, load, readPicture } from "../mod.ts";

const [name, text, ...files] = Deno.args;
if (!name || !text || files.length === 0) {
  throw new TypeError("Name a model (clip-base), a text and pictures");
}

using model = await load(name);
const pictures = await Promise.all(
  files.map(async (file) => await readPicture(await Deno.readFile(file), { file })),
);
// Vectors of length 1: their product is the cosine. Keep those of pictures to search again.
const vectors = await embedImage(model, pictures);
const [wanted] = await embed(model, [text]);
const ranked = vectors
  .map((vector, i) => ({
    file: files[i]!,
    cosine: vector.reduce((sum, value, at) => sum + value * wanted![at]!, 0),
  }))
  .sort((a, b) => b.cosine - a.cosine);
for (const { file, cosine } of ranked) console.log(`${cosine.toFixed(4)}  ${file}`);
