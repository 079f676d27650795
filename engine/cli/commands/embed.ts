// `troodon embed`: vectors of texts, one line each, for scripts that search and compare.

import type { Pooling } from "../../decode/runtime.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { DEFAULT_ENCODER, ENCODER_LOAD_FLAGS, TEXTS_FLAG, textsOrLines } from "../encoder_flags.ts";
import { loadOptions } from "../flags.ts";

/** The command. */
export const embed: Command = defineCommand({
  name: "troodon embed",
  summary: "Turns texts and pictures into vectors that are near each other where they mean alike.",
  positionals: ["[MODEL]"],
  flags: {
    text: TEXTS_FLAG,
    image: {
      type: "string",
      short: "i",
      value: "FILE",
      multiple: true,
      help:
        "a picture, PNG, JPEG or WebP (repeated), before the texts; of CLIP or another such model",
    },
    pooling: {
      type: "string",
      choices: ["mean", "cls", "last", "mask"],
      help: "how rows become one vector (what the model's files say, else mean, of decoders last)",
    },
    raw: { type: "boolean", help: "do not scale vectors to length 1" },
    similarity: { type: "boolean", help: "print the cosine of each with the first instead" },
    ...ENCODER_LOAD_FLAGS,
  },
  examples: [
    ["troodon embed --text 'How do I install Deno?'", "one vector as a JSON array"],
    ["troodon embed minilm --json < sentences.txt > vectors.json", "one vector a line of a file"],
    ["troodon embed -t 'a cat' -t 'a kitten' -t 'a bond' --similarity", "compare texts"],
    [
      "troodon embed ./clip --image cat.jpg -t 'a cat' -t 'a dog' --similarity",
      "compare a picture with texts",
    ],
    ["troodon embed clip/onnx/vision_model.onnx --image cat.jpg", "an ONNX file of pictures"],
  ],
  notes: [`MODEL defaults to ${DEFAULT_ENCODER}.`],
}, async (context, { positionals: [name = DEFAULT_ENCODER], flags }) => {
  const { terminal, signal } = context;
  const { image: files = [] } = flags;
  const texts = files.length > 0 && !flags.text
    ? []
    : await textsOrLines(terminal, { given: flags.text, flag: "--text" });
  const pictures = files.length > 0
    ? await (await import("../media_files.ts")).readPictures(context, files)
    : [];
  // A graph alone takes pictures or texts; those of texts are models to all who embed them.
  const isImageGraph = pictures.length > 0 && name.endsWith(".onnx");
  if (isImageGraph && texts.length > 0) {
    throw new UsageError("--text does not go with pictures and an ONNX file: use classify-image");
  }
  const { openModel } = await import("../open_model.ts");
  const { embed } = await import("../../pipelines/embed.ts");
  const { cosine } = await import("../../pipelines/vectors.ts");
  const options = { ...loadOptions(flags), embeddings: true };
  using graph = isImageGraph
    ? await (await import("../image_graph.ts")).openImageGraph(name, { flags, context })
    : undefined;
  using opened = graph ? undefined : await openModel(name, { flags, options, context });
  const device = graph?.graph.device ?? opened!.model.device;
  const normalize = !flags.raw;
  const seen = pictures.length > 0
    ? await (await import("../../pipelines/images/embed_image.ts")).embedImage(
      graph ?? opened!.model,
      pictures,
      { normalize, signal },
    )
    : [];
  const read = texts.length === 0 ? [] : await embed(opened!.model, texts, {
    ...flags.pooling !== undefined && { pooling: flags.pooling as Pooling },
    ...{ normalize, signal },
  });
  const vectors = [...seen, ...read];
  const cosines = flags.similarity
    ? vectors.map((vector) => cosine(vectors[0]!, vector))
    : undefined;
  if (flags.json) {
    const of = { ...files.length > 0 && { images: files }, texts };
    const result = cosines
      ? { ...of, similarity: cosines }
      : { ...of, width: vectors[0]?.length, vectors: vectors.map((vector) => [...vector]) };
    terminal.out(JSON.stringify({ model: opened?.name ?? name, device, ...result }) + "\n");
  } else if (cosines) {
    for (const [i, of] of [...files, ...texts].entries()) {
      terminal.out(`${cosines[i]!.toFixed(4)}  ${of}\n`);
    }
  } else {
    for (const vector of vectors) terminal.out(JSON.stringify([...vector]) + "\n");
  }
  return 0;
});
