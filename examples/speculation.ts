// Continues a text that copies, plainly and by prompt lookup: the same text, in fewer steps. It pays where an answer
// repeats what is there already: quotes, corrections, code that is changed. Elsewhere it costs nothing.
//
//   deno run --allow-read --allow-env examples/speculation.ts [MODEL]

import { generate, load } from "../mod.ts";

const RULES =
  "Every book has a place, and every place has a number. Whoever takes a book writes the number " +
  "on a card, and puts the card where the book was. Nobody takes two books of one number on the same day.";

const [name = "smollm2-135m"] = Deno.args;
using model = await load(name);
const prompt = `${RULES}\n\n${RULES}\n\nEvery book has a place`;
for (const draft of [undefined, "lookup"] as const) {
  const options = { maxTokens: 40, ...draft && { draft } };
  const { text, stats } = await generate(model, prompt, options).result;
  const { drafted = 0, accepted = 0 } = stats.speculation ?? {};
  console.log(text);
  console.log(
    `[${draft ?? "plain"}: ${stats.decodePerSecond.toFixed(1)} tokens a second, ` +
      `${accepted} of ${drafted} drafted tokens taken]\n`,
  );
}
