// `troodon tokenize`: a text as a model sees it. Only the vocabulary is read, never the weights.

import { closing } from "../../byte_source.ts";
import type { ChatMessage, ChatTemplate } from "../../text/chat_template.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { SOURCE_FLAGS } from "../flags.ts";
import { showTable } from "../format.ts";
import { textOrStdin } from "../stdin.ts";
import { TEMPLATE_FLAGS, templateOption } from "../template_flag.ts";

/** The command. */
export const tokenize: Command = defineCommand({
  name: "troodon tokenize",
  summary: "Shows a text as token ids, or ids as text.",
  positionals: ["[MODEL]", "[TEXT]"],
  flags: {
    text: { type: "string", short: "t", help: "the text; - or nothing: standard input" },
    special: { type: "boolean", help: "texts of control tokens become those tokens" },
    "no-bos": { type: "boolean", help: "add no begin and end tokens" },
    chat: { type: "boolean", help: "the text is a user's message: what generate would make of it" },
    ...TEMPLATE_FLAGS,
    decode: {
      type: "string",
      value: "IDS",
      help: "the other way: ids separated by blanks or commas",
    },
    count: { type: "boolean", help: "only how many" },
    ...SOURCE_FLAGS,
  },
  examples: [
    [
      "troodon tokenize --text 'Hello, world!'",
      "ids and pieces with the default model's vocabulary",
    ],
    ["troodon tokenize gemma3-270m --count < README.md", "how many tokens a file has"],
    ["troodon tokenize --decode '28120 905' --json", "ids to text"],
  ],
}, async (context, { positionals, flags }) => {
  const { terminal } = context;
  const { modelAndText } = await import("../model_or_text.ts");
  const flag = flags.decode === undefined ? "--text" : "--decode";
  const given = flags.decode ?? flags.text;
  const { model: name, text: written } = modelAndText(positionals, { name: flag, given });
  const { fetchModel } = await import("../fetch.ts");
  const { openModel } = await import("../../models/open_model.ts");
  const { readTextParts } = await import("../../text/text_parts.ts");
  const { chatTemplate } = await templateOption(flags, { wanted: flags.chat ?? false });
  const file = await openModel(await fetchModel(name, { flags, pick: context }));
  using _file = closing(file);
  const parts = await readTextParts(file, { template: chatTemplate });
  const tokenizer = parts.tokenizer();
  if (flags.decode !== undefined) {
    const text = tokenizer.decode(parseIds(flags.decode));
    terminal.out(flags.json ? JSON.stringify({ text }) + "\n" : text + "\n");
    return 0;
  }
  const text = await textOrStdin(terminal, { given: written, flag: "--text", model: name });
  const ids = flags.chat
    ? await chatIds(file.name, { tokenizer, template: parts.chatTemplate, content: text })
    : tokenizer.encode(text, { special: flags.special ?? false, addSpecial: !flags["no-bos"] });
  if (flags.count) terminal.out(flags.json ? `{"count":${ids.length}}\n` : `${ids.length}\n`);
  else if (flags.json) {
    const pieces = ids.map((id) => tokenizer.tokenText(id));
    terminal.out(JSON.stringify({ count: ids.length, ids, pieces }) + "\n");
  } else {
    const rows = ids.map((id) => [String(id), JSON.stringify(tokenizer.tokenText(id))]);
    terminal.out(rows.length > 0 ? showTable(rows, [0]) + "\n" : "");
  }
  return 0;
});

async function chatIds(
  name: string,
  { tokenizer, template, content }: {
    readonly tokenizer: Tokenizer;
    readonly template: ChatTemplate | undefined;
    readonly content: string;
  },
): Promise<readonly number[]> {
  if (!template) throw new UsageError(`${name} has no chat template: leave --chat out`);
  const { encodeChat } = await import("../../text/chat_template.ts");
  const messages: ChatMessage[] = [{ role: "user", content }];
  return encodeChat(tokenizer, template, messages, { addGenerationPrompt: true });
}

function parseIds(text: string): number[] {
  const ids = text.split(/[\s,]+/).filter(Boolean).map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id >= 0)) return ids;
  throw new UsageError(`--decode takes token ids separated by blanks or commas: got "${text}"`);
}
