// `troodon classify`: labels of texts, or of pairs of texts, by an encoder with a classification head.

import { type Command, defineCommand } from "../command.ts";
import { ENCODER_LOAD_FLAGS, TEXTS_FLAG, textsOrLines } from "../encoder_flags.ts";
import { loadOptions } from "../flags.ts";
import { showTable } from "../format.ts";

/** The command. */
export const classify: Command = defineCommand({
  name: "troodon classify",
  summary: "Says which of its labels a classification model gives to texts.",
  positionals: ["MODEL"],
  flags: {
    text: TEXTS_FLAG,
    pair: {
      type: "string",
      short: "p",
      help: "second text of each, for models that judge two (does one follow from the other?)",
    },
    top: { type: "integer", value: "N", min: 1, help: "only the best N labels (all)" },
    ...ENCODER_LOAD_FLAGS,
  },
  examples: [
    ["troodon classify ./sst2 --text 'What a lovely day!'", "all labels of a text"],
    ["troodon classify ./nli -t 'It rains.' --pair 'It is wet.' --top 1", "two texts together"],
    ["troodon classify ./sst2 --top 1 --json < reviews.txt", "lines of a file"],
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  const texts = await textsOrLines(terminal, { given: flags.text, flag: "--text" });
  const { openModel } = await import("../open_model.ts");
  const { classify } = await import("../../pipelines/rerank.ts");
  using opened = await openModel(name, { flags, options: loadOptions(flags), context });
  const { model } = opened;
  const { pair } = flags;
  const inputs = pair === undefined ? texts : texts.map((text) => ({ text, pair }));
  const all = await classify(model, inputs, {
    ...flags.top !== undefined && { top: flags.top },
    signal,
  });
  const results = all.map((labels, i) => ({
    text: texts[i]!,
    ...pair !== undefined && { pair },
    labels,
  }));
  if (flags.json) {
    terminal.out(JSON.stringify({ model: opened.name, device: model.device, results }) + "\n");
    return 0;
  }
  for (const [index, { text, labels }] of results.entries()) {
    if (results.length > 1) terminal.out(`${index === 0 ? "" : "\n"}${text}\n`);
    const rows = labels.map(({ label, probability }) => [probability.toFixed(4), label]);
    terminal.out(showTable(rows, [0]) + "\n");
  }
  return 0;
});
