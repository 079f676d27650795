// Inferflow's prompt templates [IF-9, §4.6]: a text with names in braces. `{query}` or `{question}` is the
// text to answer, `{_query}` the same with a blank in front, `{system_prompt}` the instructions; `{bos}`,
// `{eos}`, `{user_token}`, `{assistant_token}`, `{#123}` and `{any token of the vocabulary}` are single
// ids; `{\n}`, `{\t}`, `{\r}` are characters. `{res_prefix}` or `{answer}` ends the prompt of a decoder, and
// the beginning of the answer follows as a text of its own (also where the template does not name it); in
// the input of an encoder it is a text like the others. A brace that is never closed is a brace.
//
// Texts between two ids are encoded as one. Control tokens are found in what the template's author wrote
// and never in what users wrote. A token that does not exist is an error, not left out.

import { FormatError } from "../errors.ts";
import { createGuard } from "./control_guard.ts";
import { PROMPT_TEMPLATES } from "./named_prompt_templates.ts";
import type { Tokenizer } from "./tokenizer_types.ts";

/** A template that was parsed. */
export interface PromptTemplate {
  /** Its name, or where it came from. */
  readonly name: string;
  readonly pieces: readonly TemplatePiece[];
}

/** Text as it stands, or a name in braces. */
export type TemplatePiece = { readonly text: string } | { readonly key: string };

/** What a prompt is made of. */
export interface PromptInput {
  /** The text to answer. */
  readonly query?: string;
  readonly systemPrompt?: string;
  /** Beginning of the answer. */
  readonly answer?: string;
  /** `user_token_id` and `assistant_token_id` of generation_config.json. */
  readonly userTokenId?: number;
  readonly assistantTokenId?: number;
  /** Rows of the embedding, where they are more than the vocabulary has tokens. */
  readonly tokenCount?: number;
  /** Whether the prompt is for an encoder. False by default. */
  readonly isEncoder?: boolean;
}

/** A piece of a prompt: text to be encoded, or an id. */
export type PromptPart = { readonly text: string } | { readonly id: number };

/** What a name needs of a tokenizer. */
export type TokenNames = Pick<Tokenizer, "vocabSize" | "bosId" | "eosId" | "idOf">;

const CHARACTERS: ReadonlyMap<string, string> = new Map([["\\n", "\n"], ["\\t", "\t"], [
  "\\r",
  "\r",
]]);

const TEXTS: ReadonlyMap<string, (input: PromptInput) => string> = new Map([
  ["query", ({ query = "" }: PromptInput) => query],
  ["question", ({ query = "" }: PromptInput) => query],
  ["_query", ({ query = "" }: PromptInput) => ` ${query}`],
  ["_question", ({ query = "" }: PromptInput) => ` ${query}`],
  ["system_prompt", ({ systemPrompt = "" }: PromptInput) => systemPrompt],
]);

const ANSWERS: ReadonlySet<string> = new Set(["res_prefix", "answer"]);

const IDS: ReadonlyMap<string, (input: PromptInput, names: TokenNames) => number | undefined> =
  new Map(
    [
      ["bos", (_input: PromptInput, { bosId }: TokenNames) => bosId],
      ["eos", (_input: PromptInput, { eosId }: TokenNames) => eosId],
      ["user_token", ({ userTokenId }: PromptInput) => userTokenId],
      ["assistant_token", ({ assistantTokenId }: PromptInput) => assistantTokenId],
    ],
  );

/** Parses the text of a template. */
export function parsePromptTemplate(source: string, name = "the prompt template"): PromptTemplate {
  const pieces: TemplatePiece[] = [];
  let text = "";
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf("{", at);
    const close = open < 0 ? -1 : source.indexOf("}", open + 1);
    if (close < 0) break;
    const key = source.slice(open + 1, close);
    text += source.slice(at, open) + (CHARACTERS.get(key) ?? "");
    at = close + 1;
    if (CHARACTERS.has(key)) continue;
    if (text !== "") pieces.push({ text });
    text = "";
    pieces.push({ key });
  }
  text += source.slice(at);
  if (text !== "") pieces.push({ text });
  return { name, pieces };
}

/**
 * The template that a configuration means: a text with braces, or the name of one.
 *
 * @param own Templates of the configuration itself, by name; they win over the built-in eleven.
 * @throws {FormatError} If there is none of that name, or it has no place for the query.
 */
export function findPromptTemplate(
  value: string,
  own: Readonly<Record<string, string>> = {},
): PromptTemplate {
  if (value.includes("{")) return parsePromptTemplate(value);
  const all = { ...PROMPT_TEMPLATES, ...own };
  if (!Object.hasOwn(all, value)) {
    throw new FormatError(`no prompt template is named ${JSON.stringify(value)}`, {
      remedy: `Known are ${Object.keys(all).join(", ")}; or give a text with {query} in it`,
    });
  }
  const template = parsePromptTemplate(all[value], value);
  if (template.pieces.some((piece) => "key" in piece && /^_?(query|question)$/.test(piece.key))) {
    return template;
  }
  throw new FormatError("has no place for the query", {
    place: `prompt template ${value}`,
    remedy: "Put {query} or {_query} into it",
  });
}

/**
 * Fills a template in.
 *
 * @throws {FormatError} If a name in braces is neither known nor a token.
 */
export function expandPrompt(
  { name, pieces }: PromptTemplate,
  { input, names }: { readonly input: PromptInput; readonly names: TokenNames },
): PromptPart[] {
  const parts: PromptPart[] = [];
  let text = "";
  const flush = () => {
    if (text !== "") parts.push({ text });
    text = "";
  };
  for (const piece of pieces) {
    if ("text" in piece) {
      text += piece.text;
    } else if (ANSWERS.has(piece.key)) {
      if (!input.isEncoder) break;
      text += input.answer ?? "";
    } else if (TEXTS.has(piece.key)) {
      text += TEXTS.get(piece.key)!(input);
    } else {
      flush();
      parts.push({ id: findId(piece.key, { name, input, names }) });
    }
  }
  flush();
  if (!input.isEncoder && input.answer) parts.push({ text: input.answer });
  return parts;
}

/**
 * Ids of a filled template. Nothing is added around them: a template that wants BOS says so.
 *
 * @throws {FormatError} As `expandPrompt` does.
 */
export function encodePrompt(
  template: PromptTemplate,
  { input, tokenizer }: { readonly input: PromptInput; readonly tokenizer: Tokenizer },
): number[] {
  const { query = "", systemPrompt = "", answer = "" } = input;
  const { protect, restore } = createGuard(tokenizer, [query, systemPrompt, answer]);
  const hidden = {
    query: protect(query) as string,
    systemPrompt: protect(systemPrompt) as string,
    answer: protect(answer) as string,
  };
  const options = { addSpecial: false, special: true, restore };
  return expandPrompt(template, { input: { ...input, ...hidden }, names: tokenizer }).flatMap((
    part,
  ) => "id" in part ? [part.id] : tokenizer.encode(part.text, options));
}

function findId(
  key: string,
  { name, input, names }: {
    readonly name: string;
    readonly input: PromptInput;
    readonly names: TokenNames;
  },
): number {
  const count = Math.max(names.vocabSize, input.tokenCount ?? 0);
  const number = /^#(\d{1,9})$/.exec(key)?.[1];
  const named = IDS.get(key);
  const id = number !== undefined ? Number(number) : named ? named(input, names) : names.idOf(key);
  if (id !== undefined && Number.isInteger(id) && id >= 0 && id < count) return id;
  throw new FormatError(
    id === undefined
      ? `{${key}} is no token of this model`
      : `{${key}} is outside the ${count} tokens`,
    {
      place: name,
      remedy: "Names of texts are query, _query, system_prompt and res_prefix; others are tokens",
    },
  );
}
