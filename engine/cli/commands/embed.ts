// `troodon embed`: vectors of texts, one line each, for scripts that search and compare.

import type { Pooling } from "../../decode/runtime.ts";
import { type Command, defineCommand } from "../command.ts";
import { DEFAULT_ENCODER, ENCODER_LOAD_FLAGS, TEXTS_FLAG, textsOrLines } from "../encoder_flags.ts";
import { loadOptions } from "../flags.ts";

/** The command. */
export const embed: Command = defineCommand({
  name: "troodon embed",
  summary: "Turns texts into vectors that are near each other where the texts mean alike.",
  positionals: ["[MODEL]"],
  flags: {
    text: TEXTS_FLAG,
    pooling: {
      type: "string",
      choices: ["mean", "cls", "last", "mask"],
      help: "how rows become one vector (what the model's files say, else mean, of decoders last)",
    },
    raw: { type: "boolean", help: "do not scale vectors to length 1" },
    similarity: { type: "boolean", help: "print the cosine of every text with the first instead" },
    ...ENCODER_LOAD_FLAGS,
  },
  examples: [
    ["troodon embed --text 'How do I install Deno?'", "one vector as a JSON array"],
    ["troodon embed minilm --json < sentences.txt > vectors.json", "one vector a line of a file"],
    ["troodon embed -t 'a cat' -t 'a kitten' -t 'a bond' --similarity", "compare texts"],
  ],
  notes: [`MODEL defaults to ${DEFAULT_ENCODER}.`],
}, async (context, { positionals: [name = DEFAULT_ENCODER], flags }) => {
  const { terminal, signal } = context;
  const texts = await textsOrLines(terminal, { given: flags.text, flag: "--text" });
  const { openModel } = await import("../open_model.ts");
  const { embed } = await import("../../pipelines/embed.ts");
  const { cosine } = await import("../../pipelines/vectors.ts");
  const options = { ...loadOptions(flags), embeddings: true };
  using opened = await openModel(name, { flags, options, context });
  const { model } = opened;
  const vectors = await embed(model, texts, {
    ...flags.pooling !== undefined && { pooling: flags.pooling as Pooling },
    normalize: !flags.raw,
    signal,
  });
  const cosines = flags.similarity
    ? vectors.map((vector) => cosine(vectors[0]!, vector))
    : undefined;
  if (flags.json) {
    const result = cosines
      ? { texts, similarity: cosines }
      : { texts, width: model.info.hidden, vectors: vectors.map((vector) => [...vector]) };
    terminal.out(JSON.stringify({ model: opened.name, device: model.device, ...result }) + "\n");
  } else if (cosines) {
    for (const [i, text] of texts.entries()) terminal.out(`${cosines[i]!.toFixed(4)}  ${text}\n`);
  } else {
    for (const vector of vectors) terminal.out(JSON.stringify([...vector]) + "\n");
  }
  return 0;
});
