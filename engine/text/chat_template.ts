// Chat templates: the Jinja text that a model file carries, from messages to a prompt. The interpreter
// in jinja/ is our own: @huggingface/jinja 0.5.11 missed 11 of the 32 public cases (raw blocks, `+`
// signs, line ends, floats, Python's repr, undefined values, the sandbox, errors of parsing without a
// line), and it cannot be bounded: `range(10**9)` in a template took it down after nine seconds.
//
// What users write never becomes control tokens: control_guard.ts hides the texts of control tokens that
// stand in messages and tools, so that only those of the template are found in the prompt.

import { FormatError, ResourceError } from "../errors.ts";
import { createGuard, mapTexts, NO_GUARD } from "./control_guard.ts";
import { TemplateFailure } from "./jinja/failure.ts";
import { parseTemplate } from "./jinja/parse_template.ts";
import { renderTemplate } from "./jinja/render.ts";
import type { EncodeOptions, Tokenizer } from "./tokenizer_types.ts";

/**
 * One part of a message's content: a text, or, for models that see, a picture.
 * @category Tokens and templates
 */
export interface ContentPart {
  /** `text`; `image` with `image`, a path, an address, bytes or pixels; or OpenAI's `image_url`. */
  readonly type: string;
  /** The text of a `text` part. */
  readonly text?: string;
  /** Whatever else the template reads. */
  readonly [key: string]: unknown;
}

/**
 * One message of a conversation. Templates may read more fields (`tool_calls`, `name` …).
 * @category Tokens and templates
 */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`, or what the template knows. */
  readonly role: string;
  /** What was said. */
  readonly content?: string | readonly ContentPart[] | null;
  /** Whatever else the template reads. */
  readonly [key: string]: unknown;
}

/**
 * What a template is given.
 * @category Tokens and templates
 */
export interface ChatTemplateInput {
  /** The conversation, oldest message first. */
  readonly messages: readonly ChatMessage[];
  /** Tools as the template wants them, usually OpenAI's function format. */
  readonly tools?: readonly unknown[];
  /** Whether the prompt ends with the beginning of the assistant's answer. */
  readonly addGenerationPrompt?: boolean;
  /** Text of the beginning token, which many templates write themselves. */
  readonly bosToken?: string;
  /** Text of the end token. */
  readonly eosToken?: string;
  /** More names for the template (`enable_thinking` …). */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** What the template takes as now; the present moment by default. */
  readonly now?: Date;
}

/**
 * A template that was parsed.
 * @category Tokens and templates
 */
export interface ChatTemplate {
  /** Where it came from, for messages. */
  readonly name: string;
  /** The template's own text. */
  readonly source: string;
  /** The text of the template that stands in where there are tools. */
  readonly toolSource?: string;
  /**
   * Writes the prompt.
   *
   * @throws {FormatError} If the template refuses the messages (the message is the template's own) or
   * breaks a rule of Jinja; the place is its line.
   * @throws {ResourceError} If it takes too many steps or writes too much.
   * @throws {TypeError} If the input holds values that JSON cannot hold.
   */
  render(input: ChatTemplateInput): string;
}

const MAX_TEMPLATE_LENGTH = 1 << 20;
/** Steps for the template itself, and for each character of its input. */
const BASE_BUDGET = 4_000_000;
const BUDGET_PER_CHARACTER = 64;

/**
 * Parses a template.
 *
 * @param template Jinja source, as in `tokenizer.chat_template` or `chat_template.jinja`.
 * @param name Where it came from, for messages.
 * @throws {FormatError} If it cannot be parsed; the place is the line.
 *
 * @example
 * ```ts
 * import { compileChatTemplate } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const jinja = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}";
 * const template = compileChatTemplate(jinja, "own");
 * assertEquals(template.render({ messages: [{ role: "user", content: "Hi" }] }), "[user] Hi");
 * ```
 * @category Tokens and templates
 */
export function compileChatTemplate(template: string, name: string): ChatTemplate {
  if (template.length > MAX_TEMPLATE_LENGTH) {
    throw new FormatError(
      `the chat template has ${template.length} characters, more than ${MAX_TEMPLATE_LENGTH}`,
      { file: name },
    );
  }
  const body = translate(name, () => parseTemplate(template), "Use another chatTemplate");
  return {
    name,
    source: template,
    render(input) {
      const context = {
        messages: input.messages,
        // Templates test `tools` for truth, or with `is defined`, or against none.
        tools: input.tools ?? null,
        add_generation_prompt: input.addGenerationPrompt ?? false,
        bos_token: input.bosToken ?? "",
        eos_token: input.eosToken ?? "",
        ...input.extra,
      };
      const budget = BASE_BUDGET + BUDGET_PER_CHARACTER * textLength(context);
      return translate(
        name,
        () => renderTemplate(body, context, { budget, now: input.now ?? new Date() }),
      );
    },
  };
}

function translate<T>(name: string, run: () => T, remedy?: string): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof TemplateFailure)) throw error;
    const details = {
      file: name,
      place: error.line > 0 ? `chat template line ${error.line}` : "chat template",
      remedy,
      cause: error,
    };
    const message = error.message.replace(/\s*\n\s*/g, " ");
    throw error.isLimit ? new ResourceError(message, details) : new FormatError(message, details);
  }
}

/** Characters of all texts in a value. */
function textLength(value: unknown): number {
  let length = 0;
  mapTexts(value, { change: (text) => (length += text.length, text) });
  return length;
}

/**
 * Settings of {@linkcode encodeChat}, beside what the template is given.
 * @category Tokens and templates
 */
export interface EncodeChatOptions extends Omit<ChatTemplateInput, "messages"> {
  /**
   * Whether control tokens in the texts of messages and tools become control tokens. False by
   * default; only for text that the caller wrote.
   */
  readonly special?: EncodeOptions["special"];
  /** Changes the prompt that the template wrote, before it is encoded. */
  readonly rewrite?: ((prompt: string) => string) | undefined;
}

/**
 * Renders a conversation and encodes it. Control tokens of the template become control tokens, the
 * same texts inside messages do not. There is one beginning token: the template's own where it writes
 * one, else the tokenizer's where its rule adds one. Nothing is added behind.
 *
 * @throws {FormatError} If the template refuses the messages.
 * @throws {RangeError} If the messages use all 32 noncharacters that could stand in.
 *
 * @example
 * ```ts
 * import { compileChatTemplate, encodeChat, loadTokenizer } from "@troodon/troodon";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const tokenizer = await loadTokenizer("model.gguf");
 * const template = compileChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", "own");
 * const ids = encodeChat(tokenizer, template, [{ role: "user", content: "abc" }]);
 * assertStringIncludes(tokenizer.decode(ids), "abc");
 * ```
 * @category Tokens and templates
 */
export function encodeChat(
  tokenizer: Tokenizer,
  template: ChatTemplate,
  messages: readonly ChatMessage[],
  options: EncodeChatOptions = {},
): number[] {
  const { special = false, rewrite = (prompt) => prompt, ...input } = options;
  const textOf = (id: number | undefined) => id === undefined ? "" : tokenizer.tokenText(id);
  const roles = {
    bosToken: input.bosToken ?? textOf(tokenizer.bosId),
    eosToken: input.eosToken ?? textOf(tokenizer.eosId),
  };
  const guard = special ? NO_GUARD : createGuard(tokenizer, [messages, input.tools, input.extra]);
  const prompt = template.render({
    ...input,
    ...roles,
    ...(input.tools === undefined ? {} : { tools: guard.protect(input.tools) as unknown[] }),
    ...(input.extra === undefined ? {} : {
      extra: Object.fromEntries(guard.protect(input.extra) as Map<string, unknown>),
    }),
    messages: messages.map((message) => guard.protect(message) as ChatMessage),
  });
  const ids = tokenizer.encode(rewrite(prompt), {
    special: true,
    addSpecial: false,
    restore: guard.restore,
  });
  const begins = tokenizer.prefixIds.length === 0 || ids[0] === tokenizer.prefixIds[0];
  return begins ? ids : [...tokenizer.prefixIds, ...ids];
}
