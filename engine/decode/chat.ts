// chat(): answers to a conversation, written as the model's own template wants it. What stands in messages never
// becomes a control token; the template's own are the only ones, and there is one beginning token
// (text/chat_template.ts sees to both). An answer that calls tools is followed by another one to their results;
// between the two nobody holds the session, so a handler may use the model itself.

import { isReasonOf } from "../pause.ts";
import type { AnswerPiece, AnswerReader } from "../text/answer/answer_reader.ts";
import type { ToolCall } from "../text/answer/tool_call.ts";
import type { ChatMessage } from "../text/chat_template.ts";
import { Conversation, type DropMemory } from "./conversation.ts";
import type { GenerateOptions } from "./generate_options.ts";
import {
  type Chunk,
  createGeneration,
  type Generation,
  type GenerationFacts,
  type GenerationResult,
  type GenerationSteps,
  type Structured,
} from "./generation.ts";
import { coreOf, type PreparedRun, prepareRun } from "./generate.ts";
import type { SchemaValue } from "./schema_value.ts";
import type { Model } from "./model.ts";
import { nearest } from "../nearest.ts";
import { checkOptionKinds } from "../option_keys.ts";
import type { Runtime } from "./runtime.ts";
import type { Session } from "./session.ts";
import {
  checkChoice,
  forcedTools,
  roundConstraint,
  type ToolChoice,
} from "./tools/round_constraint.ts";
import { runCalls } from "./tools/run_calls.ts";
import {
  type AnyArguments,
  type FunctionTool,
  type ReadyTool,
  readyTools,
  type Tool,
} from "./tools/tool.ts";

/**
 * Options of {@linkcode chat}.
 * @category Text
 */
export interface ChatOptions<Schemas extends readonly unknown[] = readonly AnyArguments[]>
  extends Omit<GenerateOptions, "onContextFull"> {
  /**
   * What the model may call. A call of a tool with a handler is run and its result given to the model, which
   * then goes on; a call of one without is the caller's, and ends the answer with finishReason `tool_calls`. With a
   * schema the answer is calls, or a text that the schema allows.
   */
  readonly tools?: { readonly [K in keyof Schemas]: Tool<Schemas[K]> | FunctionTool };
  /** How often the model may call tools before it has to leave the calls to the caller. Default 8. */
  readonly maxToolRounds?: number;
  /** Whether the model may call tools, must not, or has to begin with a call, of any of them or of one. Default `auto`. */
  readonly toolChoice?: ToolChoice;
  /** A handler that throws: its error's text is the model's to read (`tell`, the default), or ends the answer. */
  readonly onToolError?: "tell" | "throw";
  /** Switches thinking on or off, of models whose template has a switch. Default: the template's. */
  readonly thinking?: boolean;
  /** More names for the template (`reasoning_effort`, …). */
  readonly templateOptions?: Readonly<Record<string, unknown>>;
  /**
   * What happens when the context is full, before the answer or in the middle of it:
   * - `drop` (default): the oldest turns are left out, each a user's message with all that answers it. The
   *   system message and the newest turn stay; where these alone leave the answer no room, it ends with
   *   finishReason `context`
   * - `error`, `stop`, `slide`: as with `generate`
   */
  readonly onContextFull?: "drop" | NonNullable<GenerateOptions["onContextFull"]>;
}

/**
 * A part of an answer; what is thought and called stands apart from its text.
 * @category Text
 */
export interface ChatChunk extends Chunk, AnswerPiece {
  /** How often tools were called before. */
  readonly round: number;
}

/**
 * A whole answer.
 * @category Text
 */
export interface ChatResult extends GenerationResult {
  /** What the model says in the end; what it said before it called tools stands in `messages`. */
  readonly text: string;
  /** What it thought, of the last round. */
  readonly thinking: string;
  /** Calls that are left to the caller. */
  readonly toolCalls: readonly ToolCall[];
  /** What this answer adds to the conversation: the model's messages and the results of tools. */
  readonly messages: readonly ChatMessage[];
  /** How many messages were left out because the context was too small. */
  readonly droppedMessages: number;
}

/**
 * A running answer.
 * @category Text
 */
export type ChatGeneration<Value = undefined> = Generation<
  ChatChunk,
  ChatResult & Structured<Value>
>;

const CONTEXT_RULES: readonly unknown[] = [undefined, "drop", "error", "stop", "slide"];

/** What was left out of the last conversation of a session. */
const MEMORIES = new WeakMap<object, DropMemory>();

/**
 * Answers a conversation.
 *
 * On a session the conversation so far is found again in its cache: only what is new is computed, so a
 * dialogue costs its new messages each turn. On a model a session is borrowed for the time of the call.
 *
 * @param target A model, or a session of one.
 * @param messages The whole conversation, oldest first.
 * A content may be a list of parts, `{ type: "text", text }` and, for models that see, `{ type: "image", image }`: a path,
 * an address, the bytes of a file or a picture; or OpenAI's `image_url`. Pictures are read and looked at when the answer
 * begins; what is wrong with one rejects it.
 *
 * @throws {UnsupportedError} If the model has no chat template, or one without tools and there are some, or a
 * message holds what it cannot read.
 * @throws {FormatError} If the template refuses the messages; the message is the template's own.
 * @throws {RangeError | TypeError} On a bad option or tool. @throws {ResourceError} As `generate`.
 * @throws {ToolError} While it runs, if a handler throws and `onToolError` is `throw`.
 *
 * @example
 * ```ts
 * import { chat, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf", {
 *   chatTemplate: "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
 * });
 * using session = model.createSession();
 * const messages = [{ role: "user", content: "Hi" }];
 * const { ids } = await chat(session, messages, { maxTokens: 3 }).result;
 * assertEquals(ids.length, 3);
 * ```
 * @category Text
 */
export function chat<const Schemas extends readonly unknown[], const S = undefined>(
  target: Model | Session,
  messages: readonly ChatMessage[],
  options: ChatOptions<Schemas> & { readonly schema?: S } = {},
): ChatGeneration<SchemaValue<S>> {
  checkOptionKinds(options, "chat()");
  const { tools = [], maxToolRounds = 8, onToolError = "tell", ...most } = options;
  const { thinking, templateOptions = {}, onContextFull = "drop", ...others } = most;
  const { toolChoice = "auto", ...rest } = others;
  checkOptions(options);
  checkMessages(messages);
  const core = coreOf(target);
  const ready = toolChoice === "none" ? [] : readyTools(tools);
  const conversation = new Conversation(core.runtime, {
    ...{ messages, tools: ready, templateOptions, thinking },
    special: options.special ?? false,
    dropsTurns: onContextFull === "drop",
    memory: MEMORIES.get(core),
  });
  const run = prepareRun(target, {
    ...rest,
    onContextFull: onContextFull === "drop" ? "stop" : onContextFull,
  });
  const forced = forcedTools(ready, toolChoice);
  if (run.structure && ready.length > 0) checkChoice(conversation.format);
  const isKept = onContextFull === "slide" && options.keep === undefined;
  const keep = isKept ? conversation.systemLength : 0;
  const { maxTokens = 1024, signal } = options;
  const generation = createGeneration((leave) =>
    talk({
      ...{
        conversation,
        run,
        runtime: core.runtime,
        tools: ready,
        forced,
        maxToolRounds,
        onToolError,
        maxTokens,
        keep,
        leave,
      },
      signal: signal ? AbortSignal.any([signal, leave]) : leave,
      remember: (memory) => memory ? MEMORIES.set(core, memory) : MEMORIES.delete(core),
    })
  );
  return generation as ChatGeneration<SchemaValue<S>>;
}

interface Talk {
  readonly conversation: Conversation;
  readonly run: PreparedRun;
  readonly runtime: Runtime;
  /** Of which the first answer has to call one. */
  readonly forced: readonly ReadyTool[] | undefined;
  readonly tools: readonly ReadyTool[];
  readonly maxToolRounds: number;
  readonly onToolError: "tell" | "throw";
  readonly maxTokens: number;
  readonly keep: number;
  readonly leave: AbortSignal;
  readonly signal: AbortSignal;
  remember(memory: DropMemory | undefined): void;
}

// Rounds: an answer, and where it calls tools their results, until one calls none that is run here.
async function* talk(state: Talk): GenerationSteps<ChatChunk, ChatResult> {
  const { conversation, run, leave, signal } = state;
  let left = state.maxTokens;
  try {
    await conversation.look(signal);
  } catch (error) {
    if (!isReasonOf(signal, error)) throw error;
    const prompt = { tokens: [], keep: 0, continues: false };
    const { value } = await run.start({ prompt, leave }).next(); // ends as it begins
    const facts = value as GenerationFacts;
    return {
      ...{ ...facts, text: "", thinking: "", toolCalls: [], droppedMessages: 0 },
      messages: conversation.added,
    };
  }
  for (let round = 0;; round++) {
    const prompt = conversation.prompt(state.keep, {
      isPlain: run.structure !== undefined && state.tools.length === 0,
    });
    const { reader } = prompt;
    const constraint = roundConstraint(prompt, {
      ...{ runtime: state.runtime, structure: run.structure, tools: state.tools },
      forced: round === 0 ? state.forced : undefined,
    });
    const steps = run.start({ prompt, leave, maxTokens: left, constraint });
    let text = "";
    let facts: GenerationFacts;
    try {
      for (;;) {
        const next = await steps.next();
        if (next.done) {
          facts = next.value;
          break;
        }
        text += next.value.text;
        left -= next.value.tokens.length;
        yield { ...next.value, round };
      }
    } finally {
      state.remember(conversation.memory());
    }
    const said = reader.calls.length > 0 ? text.trimEnd() : text;
    conversation.add(conversation.answer(said, reader));
    const end = (outcome: Partial<ChatResult>) => ({
      ...facts,
      text: said,
      thinking: reader.thinking,
      toolCalls: [],
      messages: conversation.added,
      droppedMessages: conversation.droppedMessages,
      ...outcome,
    });
    if (reader.calls.length === 0 || !isFinished(facts)) {
      const getValue = await run.structure?.getterOf({ text: said, ...facts });
      return { ...end({}), getValue };
    }
    if (round === state.maxToolRounds) return end(leaveCalls(reader, []));
    let results: Awaited<ReturnType<typeof runCalls>>;
    try {
      results = await runCalls(reader.calls, { ...state, signal });
    } catch (error) {
      if (!isReasonOf(signal, error)) throw error;
      return end({ ...leaveCalls(reader, []), finishReason: "abort" });
    }
    conversation.add(...results.filter((message) => message !== undefined));
    if (results.includes(undefined)) return end(leaveCalls(reader, results));
    if (left <= 0) return end({ finishReason: "length" });
  }
}

/** Whether the model itself ended its answer; calls of one that was cut are not run. */
function isFinished({ finishReason }: GenerationFacts): boolean {
  return finishReason === "eos" || finishReason === "stop";
}

function leaveCalls(
  { calls }: AnswerReader,
  results: readonly (ChatMessage | undefined)[],
): Pick<ChatResult, "finishReason" | "toolCalls"> {
  return { finishReason: "tool_calls", toolCalls: calls.filter((_, i) => !results[i]) };
}

/** Roles that templates of all families know; what else one knows is not close to these. */
const ROLES = ["system", "developer", "user", "assistant", "tool"];

/** Refuses what a template would read past, or blame on the model's file. */
function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new TypeError(
      'Cannot chat: messages are a list of at least one, such as [{ role: "user", content: "Hi" }]',
    );
  }
  for (const [i, message] of messages.entries()) {
    const { role, content } = (message ?? {}) as Partial<ChatMessage>;
    if (typeof role !== "string") {
      throw new TypeError(`Cannot chat: message ${i} has no role, such as ${ROLES.join(", ")}`);
    }
    const meant = ROLES.includes(role) ? role : nearest(role, ROLES);
    if (meant !== role && meant !== undefined) {
      throw new RangeError(
        `Cannot chat: message ${i} has role "${role}". Did you mean ${meant}?`,
      );
    }
    const isText = typeof content === "string" || Array.isArray(content);
    // An answer may consist of calls alone, and a role that the template knows of what it likes.
    if (!isText && ["system", "developer", "user"].includes(role)) {
      throw new TypeError(`Cannot chat: message ${i} has no content, a text or a list of parts`);
    }
  }
}

function checkOptions(
  { maxToolRounds = 8, onToolError, onContextFull, thinking, toolChoice = "auto" }: ChatOptions,
): void {
  const isChoice = ["auto", "none", "required"].includes(toolChoice as string) ||
    typeof (toolChoice as { readonly name?: unknown })?.name === "string";
  if (!isChoice) {
    throw new RangeError(
      `Cannot use toolChoice ${JSON.stringify(toolChoice)}: it is auto, none, required or { name }`,
    );
  }
  if (!Number.isInteger(maxToolRounds) || maxToolRounds < 0) {
    throw new RangeError(`Cannot use maxToolRounds ${maxToolRounds}: it is an integer, 0 or more`);
  }
  if (![undefined, "tell", "throw"].includes(onToolError)) {
    throw new RangeError(`Cannot use onToolError "${onToolError}": it is tell or throw`);
  }
  if (!CONTEXT_RULES.includes(onContextFull)) {
    throw new RangeError(
      `Cannot use onContextFull "${onContextFull}": it is drop, error, stop or slide`,
    );
  }
  if (![undefined, true, false].includes(thinking)) {
    throw new TypeError(`Cannot use thinking ${thinking}: it is true or false`);
  }
}
