// The prompt of a query in Inferflow's words [§4.6, §4.10]: by the template that it names, else as the model's chat template
// writes a conversation of it, with the beginning of the answer behind.

import { messageForm } from "../../decode/message_form.ts";
import type { Model } from "../../decode/model.ts";
import { UnsupportedError } from "../../errors.ts";
import { encodeChat } from "../../text/chat_template.ts";
import { encodePrompt, findPromptTemplate } from "../../text/prompt_template.ts";
import type { InferflowInput } from "../engine.ts";

/**
 * Ids of the prompt. Control tokens are those of the template; what users wrote is text.
 *
 * @throws {FormatError} If there is no such template, or it names a token that the model has not.
 * @throws {UnsupportedError} If the query has a template for an encoder.
 */
export function inferflowPrompt(
  { tokenizer, chatTemplate, info, name }: Model,
  { query, system, answer, encoderTemplate, decoderTemplate }: InferflowInput,
): readonly number[] {
  if (encoderTemplate !== undefined) {
    throw new UnsupportedError("reads a prompt without an encoder", {
      file: name,
      remedy: "Leave encoder_input_template out",
    });
  }
  if (decoderTemplate !== undefined) {
    const input = { query, systemPrompt: system, answer, tokenCount: info.vocabulary };
    return encodePrompt(findPromptTemplate(decoderTemplate), { input, tokenizer });
  }
  if (!chatTemplate) {
    return tokenizer.encode([system, query].filter((text) => text !== "").join("\n") + answer);
  }
  const messages = [
    ...system === "" ? [] : [{ role: "system", content: system }],
    { role: "user", content: query },
  ];
  const formed = messageForm(chatTemplate, { hasCalls: false })(messages);
  return [
    ...encodeChat(tokenizer, chatTemplate, formed, { addGenerationPrompt: true }),
    ...answer === "" ? [] : tokenizer.encode(answer, { addSpecial: false }),
  ];
}
