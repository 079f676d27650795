// `troodon rerank`: documents in the order in which they answer a query.

import { type Command, defineCommand } from "../command.ts";
import { ENCODER_LOAD_FLAGS, textsOrLines } from "../encoder_flags.ts";
import { loadOptions } from "../flags.ts";
import { UsageError } from "../args.ts";

/** The command. */
export const rerank: Command = defineCommand({
  name: "troodon rerank",
  summary: "Orders documents by how well they answer a query.",
  positionals: ["MODEL"],
  flags: {
    query: { type: "string", short: "q", help: "the query" },
    document: {
      type: "string",
      short: "d",
      multiple: true,
      help: "a document (may be repeated); - or nothing: each line of standard input is one",
    },
    top: { type: "integer", value: "N", min: 1, help: "only the best N (all)" },
    ...ENCODER_LOAD_FLAGS,
  },
  examples: [
    [
      "troodon rerank ./ms-marco-MiniLM-L6-v2 -q 'how tall?' -d 'It is 5 m tall.' -d 'It is red.'",
      "two",
    ],
    [
      "troodon rerank ./reranker -q 'how to install' --top 3 --json < paragraphs.txt",
      "lines of a file",
    ],
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  if (flags.query === undefined) throw new UsageError("Nothing to look for: give --query TEXT");
  const documents = await textsOrLines(terminal, { given: flags.document, flag: "--document" });
  const { openModel } = await import("../open_model.ts");
  const { rerank } = await import("../../pipelines/rerank.ts");
  using opened = await openModel(name, { flags, options: loadOptions(flags), context });
  const { model } = opened;
  const ranked = await rerank(model, flags.query, documents, {
    ...flags.top !== undefined && { top: flags.top },
    signal,
  });
  const results = ranked.map((one) => ({ ...one, document: documents[one.index]! }));
  if (flags.json) {
    const output = { model: opened.name, device: model.device, query: flags.query, results };
    terminal.out(JSON.stringify(output) + "\n");
  } else {
    for (const { score, document } of results) terminal.out(`${score.toFixed(4)}  ${document}\n`);
  }
  return 0;
});
