// `troodon fill-mask`: words that a masked language model puts in a gap.

import { type Command, defineCommand } from "../command.ts";
import { ENCODER_LOAD_FLAGS } from "../encoder_flags.ts";
import { loadOptions } from "../flags.ts";
import { showTable } from "../format.ts";
import { textOrStdin } from "../stdin.ts";

/** The command. */
export const fillMask: Command = defineCommand({
  name: "troodon fill-mask",
  summary: "Fills the gaps of a text with a masked language model.",
  positionals: ["MODEL"],
  flags: {
    text: {
      type: "string",
      short: "t",
      help: "text with [MASK] (BERT) or <mask> (RoBERTa); - or nothing: standard input",
    },
    top: { type: "integer", value: "N", min: 1, help: "candidates for each gap (5)" },
    ...ENCODER_LOAD_FLAGS,
  },
  examples: [
    ["troodon fill-mask ./bert-base-uncased --text 'Paris is the [MASK] of France.'", "five words"],
    ["troodon fill-mask ./roberta-base -t 'The sky is <mask>.' --top 1 --json", "the best as JSON"],
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  const text = await textOrStdin(terminal, { given: flags.text, flag: "--text" });
  const { openModel } = await import("../open_model.ts");
  const { fillMask } = await import("../../pipelines/fill_mask.ts");
  using opened = await openModel(name, { flags, options: loadOptions(flags), context });
  const { model } = opened;
  const masks = await fillMask(model, text, { top: flags.top ?? 5, signal });
  if (flags.json) {
    terminal.out(JSON.stringify({ model: opened.name, device: model.device, text, masks }) + "\n");
    return 0;
  }
  for (const [index, candidates] of masks.entries()) {
    if (masks.length > 1) terminal.out(`${index === 0 ? "" : "\n"}gap ${index + 1}\n`);
    const rows = candidates.map(({ token, probability }) => [probability.toFixed(4), token]);
    terminal.out(showTable(rows, [0]) + "\n");
  }
  return 0;
});
