// `troodon translate`: a text in another language, by an encoder-decoder.

import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { LOAD_FLAGS, loadOptions } from "../flags.ts";
import { promptOrStdin } from "../stdin.ts";

/** The command. */
export const translate: Command = defineCommand({
  name: "troodon translate",
  summary: "Translates a text with a translation model.",
  positionals: ["MODEL"],
  flags: {
    text: { type: "string", short: "t", help: "the text; - or nothing: standard input" },
    from: { type: "string", value: "LANGUAGE", help: "its language, as the model names it" },
    to: { type: "string", value: "LANGUAGE", help: "the language to translate into" },
    beams: { type: "integer", value: "N", min: 1, max: 64, help: "texts kept in mind (1: greedy)" },
    "length-penalty": { type: "number", help: "with beams: above 0 favours long texts (1)" },
    "max-tokens": {
      ...{ type: "integer", short: "n", value: "N", min: 1 },
      help: "most tokens to write (200)",
    },
    ...LOAD_FLAGS,
  },
  examples: [
    ["troodon translate ./m2m100_418M --from en --to fr --text 'Good morning.'", "M2M100"],
    ["troodon translate ./t5-small --from English --to German --beams 4 < letter.txt", "T5"],
    ["troodon translate ./t5-small --from English --to French -t 'Hi' --json", "as JSON"],
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  const { from, to, beams = 1 } = flags;
  if (from === undefined || to === undefined) throw new UsageError("Give both --from and --to");
  const text = await promptOrStdin(terminal, { given: flags.text, flag: "--text" });
  const { openModel } = await import("../open_model.ts");
  const { translate } = await import("../../pipelines/translate.ts");
  const places = beams > 1 ? { sessions: beams + 1, logitRows: beams } : {};
  using opened = await openModel(name, {
    flags,
    options: { ...loadOptions(flags), ...places },
    context,
  });
  const { model } = opened;
  const translation = await translate(model, text, {
    ...{ from, to, beams, signal },
    ...flags["length-penalty"] !== undefined && { lengthPenalty: flags["length-penalty"] },
    ...flags["max-tokens"] !== undefined && { maxTokens: flags["max-tokens"] },
  });
  const output = { model: opened.name, device: model.device, from, to, text, translation };
  terminal.out(flags.json ? JSON.stringify(output) + "\n" : translation + "\n");
  return 0;
});
