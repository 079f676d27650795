// /tokenize and /detokenize, in the names of llama.cpp and of vLLM.

import { DETOKENIZE_FIELDS, TOKENIZE_FIELDS } from "./answer_fields.ts";
import { badRequest } from "./api_error.ts";
import type { Call } from "./call.ts";
import { readFields, wrong } from "./fields.ts";
import { readMessages } from "./messages.ts";
import { modelOf } from "./model_choice.ts";

/** Token ids of a text, or of a conversation as the model's template writes it. */
export async function tokenize(call: Call): Promise<Response> {
  const unknown = call.noteUnknown;
  const { values, names } = readFields(await call.readJson(), TOKENIZE_FIELDS, { unknown });
  const texts = [values.content, values.text, values.prompt, values.messages]
    .filter((given) => given !== undefined);
  if (texts.length === 0) throw wrong("content", { wanted: "a text", value: undefined });
  if (texts.length > 1) throw badRequest("Give one of content, text, prompt, messages", "content");
  const { messages } = values;
  return await call.naming(names, async () => {
    const model = await modelOf(call, { name: values.model });
    const { ids, pieces } = await call.engine.call("tokenize", {
      model,
      text: messages ? readMessages(messages, { unknown }) : texts[0] as string,
      // vLLM's name has vLLM's default.
      addSpecial: values.add_special ?? values.add_special_tokens ?? values.prompt !== undefined,
      parseSpecial: values.parse_special ?? false,
    }, call.signal);
    const tokens = values.with_pieces ? ids.map((id, i) => ({ id, piece: pieces[i] })) : ids;
    return Response.json({ tokens, count: ids.length });
  });
}

/** Text of token ids. */
export async function detokenize(call: Call): Promise<Response> {
  const { values: { model: name, tokens }, names } = readFields(
    await call.readJson(),
    DETOKENIZE_FIELDS,
    { unknown: call.noteUnknown },
  );
  if (tokens === undefined) {
    throw wrong("tokens", { wanted: "a list of token ids", value: undefined });
  }
  return await call.naming(names, async () => {
    const model = await modelOf(call, { name });
    const { text } = await call.engine.call("detokenize", { model, ids: tokens }, call.signal);
    return Response.json({ content: text, prompt: text });
  });
}
