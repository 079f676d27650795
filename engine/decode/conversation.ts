// A conversation on its way to a model: messages in the form that the model's template takes, the prompt made
// of them, and the way the answer to it is split. A conversation grows by its own answers and the results of
// tools, and loses its oldest turns where the context is too small for all.

import { ResourceError, UnsupportedError } from "../errors.ts";
import { AnswerReader } from "../text/answer/answer_reader.ts";
import {
  type CallFormat,
  callFormatOf,
  DEFAULT_THINKING,
  thinkingMarksOf,
} from "../text/answer/call_formats.ts";
import { showsTools } from "../text/answer/template_facts.ts";
import type { ToolCall } from "../text/answer/tool_call.ts";
import { type ChatMessage, type ChatTemplate, encodeChat } from "../text/chat_template.ts";
import { checkContents, messageForm, picturesOf } from "./message_form.ts";
import { type PictureSource, readSource } from "./pictures/picture_source.ts";
import type { SeenPicture } from "./pictures/picture_table.ts";
import { checkPlaces, withPictures, withRows } from "./pictures/prompt_pictures.ts";
import type { Prompt } from "./run.ts";
import { checkContinues, type Runtime } from "./runtime.ts";
import { thinkingSwitch } from "./thinking_switch.ts";
import type { ReadyTool } from "./tools/tool.ts";
import { fitTurns, turnsOf } from "./turns.ts";

/** What a conversation is made of. */
export interface ConversationOptions {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ReadyTool[];
  readonly templateOptions: Readonly<Record<string, unknown>>;
  readonly thinking: boolean | undefined;
  readonly special: boolean;
  /** Whether old turns are dropped where there is no room. */
  readonly dropsTurns: boolean;
  /** What was left out when the same conversation was last answered. */
  readonly memory?: DropMemory | undefined;
}

/** How an answer will be split. */
export interface AnswerParts {
  readonly reader: AnswerReader;
  /** How calls are written. */
  readonly format: CallFormat;
  /** What ends the thinking in which the answer begins. */
  readonly closes?: string;
}

/** What a session keeps of a conversation's cut, so that the next answer begins with the same tokens. */
export interface DropMemory {
  dropped: number;
  /** The first message that was kept behind the cut. */
  first: string;
}

/** One conversation and its answers. */
export class Conversation {
  readonly #runtime: Runtime;
  readonly #template: ChatTemplate;
  readonly #options: ConversationOptions;
  readonly #extra: Readonly<Record<string, unknown>>;
  readonly #form: (messages: readonly ChatMessage[]) => ChatMessage[];
  readonly #added: ChatMessage[] = [];
  #dropped: number;
  #ids = 0;
  #whole: number[];
  /** What the model has seen, by where it comes from. */
  readonly #seen = new Map<PictureSource, SeenPicture>();

  /**
   * @throws {UnsupportedError} If the model has no template, or none for tools, or messages hold more than text.
   * @throws {FormatError} If the template refuses the messages.
   */
  constructor(runtime: Runtime, options: ConversationOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#template = templateOf(runtime);
    const { messages, tools, thinking, templateOptions } = options;
    checkContents(messages, runtime);
    this.#extra = { ...thinkingSwitch(runtime, thinking), ...templateOptions };
    const hasCalls = tools.length > 0 || messages.some(({ tool_calls }) => tool_calls);
    const hasPictures = picturesOf(messages).length > 0;
    this.#form = messageForm(this.#template, {
      hasCalls,
      placeholder: hasPictures ? runtime.sight?.placeholder : undefined,
    });
    if (tools.length > 0) this.#checkTools();
    this.#whole = this.#encode(0);
    this.#dropped = hasPictures ? 0 : this.#remembered();
  }

  /** Looks at the pictures of the messages, if there are some; to be called before there is a prompt. */
  async look(signal: AbortSignal): Promise<void> {
    const sources = picturesOf(this.#options.messages);
    if (sources.length === 0) return;
    for (const source of sources) {
      if (this.#seen.has(source)) continue;
      signal.throwIfAborted();
      const picture = await readSource(source, signal);
      this.#seen.set(source, await this.#runtime.sight!.look(picture, signal));
    }
    this.#whole = [];
    this.#whole = this.#encode(0);
    this.#dropped = this.#remembered();
  }

  /** How many turns were left out when the same conversation was last answered. */
  #remembered(): number {
    const { memory, dropsTurns } = this.#options;
    const isSame = dropsTurns && memory && this.#whole.length >= this.#runtime.capacity &&
      this.#firstOf(memory.dropped) === memory.first;
    return isSame ? memory.dropped : 0;
  }

  /** Messages that answers and tools have added, and how many of all were left out. */
  get added(): readonly ChatMessage[] {
    return this.#added;
  }

  /** How many messages were left out of the last prompt. */
  get droppedMessages(): number {
    const { without } = this.#turns();
    return without(0).length - without(this.#dropped).length;
  }

  /** Leading tokens that belong to no message but the system's. */
  get systemLength(): number {
    const { messages } = this.#options;
    const first = messages.findIndex(({ role }) => role !== "system");
    if (first < 0) return this.#whole.length;
    // Templates put their own system text in where there is none: their output is asked, not the messages.
    const text = String(messages[first]!.content ?? "");
    const changed = [...messages];
    changed[first] = { ...messages[first]!, content: text.startsWith("0") ? "1" : "0" };
    const other = this.#encodeMessages(changed);
    let length = 0;
    while (length < this.#whole.length && this.#whole[length] === other[length]) length++;
    return length;
  }

  /**
   * The prompt for the next answer, and how that is split.
   *
   * @param options `isPlain`: whether the answer is bound to be text from its first token on.
   * @throws {ResourceError} If turns may be dropped, and not even the newest one fits.
   */
  prompt(keep: number, { isPlain = false } = {}): Prompt & AnswerParts {
    const { dropsTurns } = this.#options;
    if (dropsTurns && !this.#fit(0)) {
      const { capacity, name } = this.#runtime;
      const length = this.#encode(this.#turns().count - 1).length;
      throw new ResourceError(
        `the system message and the newest turn have ${length} tokens, and the context holds ${capacity}`,
        {
          file: name,
          remedy: "Shorten them, or load the model with a larger contextLength",
          tokens: { given: length, room: capacity },
        },
      );
    }
    const tokens = this.#encode(this.#dropped);
    const parts = this.#answerParts(tokens, isPlain);
    return {
      ...{ tokens, keep, continues: false, ...parts },
      answer: { reader: parts.reader, shown: this.#shown(parts.reader) },
      ...dropsTurns && {
        shorten: (answer: readonly number[]) =>
          this.#fit(answer.length) ? [...this.#encode(this.#dropped), ...answer] : undefined,
      },
    };
  }

  /** How the template writes calls. */
  get format(): CallFormat {
    return callFormatOf(sourceOf(this.#template));
  }

  /** Adds an answer, and the results of the tools that it called. */
  add(...messages: readonly ChatMessage[]): void {
    this.#added.push(...messages);
    this.#whole = [];
  }

  /** What a session should remember for the next answer. */
  memory(): DropMemory | undefined {
    if (this.#dropped === 0) return undefined;
    return { dropped: this.#dropped, first: this.#firstOf(this.#dropped) };
  }

  /** An answer as a message, with what was thought where the template speaks of it. */
  answer(text: string, reader: AnswerReader): ChatMessage {
    const { source } = this.#template;
    const fields = ["reasoning_content", "thinking"].filter((field) =>
      new RegExp(`\\.${field}\\b|['"]${field}['"]`).test(source)
    );
    const { thinking } = reader;
    // gpt-oss's template takes either of them beside calls.
    const isEither = thinking !== "" && reader.calls.length > 0 && fields.includes("thinking");
    return {
      role: "assistant",
      content: isEither ? "" : text,
      ...thinking !== "" && Object.fromEntries(fields.map((field) => [field, thinking])),
      ...reader.calls.length > 0 && { tool_calls: reader.calls.map(asToolCall) },
    };
  }

  #fit(answer: number): boolean {
    const { count } = this.#turns();
    const { capacity } = this.#runtime;
    const length = (dropped: number) => this.#encode(dropped).length + answer;
    const dropped = fitTurns({ dropped: this.#dropped, count, capacity, length });
    if (dropped === undefined) return false;
    this.#dropped = dropped;
    return true;
  }

  #turns() {
    return turnsOf([...this.#options.messages, ...this.#added]);
  }

  /** The first message that is kept behind a cut, pictures left out. */
  #firstOf(dropped: number): string {
    const first = this.#turns().without(dropped).find(({ role }) => role === "user");
    return JSON.stringify(first && this.#form([first]));
  }

  #encode(dropped: number): number[] {
    if (dropped === 0 && this.#whole?.length > 0) return this.#whole;
    const tokens = this.#encodeMessages(this.#turns().without(dropped));
    if (dropped === 0) this.#whole = tokens;
    return tokens;
  }

  #encodeMessages(messages: readonly ChatMessage[]): number[] {
    const { tools, special } = this.#options, { sight, name: file } = this.#runtime;
    const sources = picturesOf(messages);
    const pictures = sources.flatMap((source) => this.#seen.get(source) ?? []);
    const isSeen = pictures.length === sources.length;
    // What the model has not looked at has no rows yet, and all that can be told is whether there is a place for it.
    const rewrite = (prompt: string) => {
      if (isSeen) return withPictures(prompt, { sight: sight!, pictures, file });
      checkPlaces(prompt, { sight: sight!, count: sources.length, file });
      return prompt;
    };
    const ids = encodeChat(
      this.#runtime.tokenizer(),
      this.#template,
      this.#form(messages),
      {
        special,
        ...sources.length > 0 && { rewrite },
        addGenerationPrompt: true,
        ...tools.length > 0 && { tools: tools.map(({ definition }) => definition) },
        ...Object.keys(this.#extra).length > 0 && { extra: this.#extra },
      },
    );
    return sources.length > 0 && isSeen ? withRows(ids, { sight: sight!, pictures, file }) : ids;
  }

  #answerParts(tokens: readonly number[], isPlain: boolean): AnswerParts {
    const tokenizer = this.#runtime.tokenizer();
    const { tools, messages } = this.#options;
    const source = sourceOf(this.#template);
    const isToken = (text: string) => tokenizer.idOf(text) !== undefined;
    const thinking = thinkingMarksOf(source, isToken) ?? DEFAULT_THINKING;
    const { format } = this;
    const tail = tokenizer.decode(tokens.slice(-32).filter((id) => id >= 0)).trimEnd();
    const before =
      [...messages, ...this.#added].flatMap(({ tool_calls }) => tool_calls ?? []).length;
    const beginsThinking = tail.endsWith(thinking.open.trimEnd());
    if (isPlain && !beginsThinking) return { reader: new AnswerReader({}), format };
    const reader = new AnswerReader({
      ...{ thinking, beginsThinking, tools },
      ...(tools.length > 0 || format.heads && !format.heads.isOpened) && { format },
      nextId: () => `call${String(before + this.#ids++).padStart(5, "0")}`,
    });
    return { reader, format, ...beginsThinking && { closes: thinking.close } };
  }

  #shown(reader: AnswerReader): Set<number> {
    const tokenizer = this.#runtime.tokenizer();
    const ids = reader.marks.flatMap((mark) =>
      tokenizer.encode(mark, { special: true, addSpecial: false })
    );
    return new Set(ids.filter((id) => tokenizer.isSpecial(id)));
  }

  #checkTools(): void {
    const { tools, messages } = this.#options;
    const input = {
      messages: this.#form(messages),
      tools: tools.map(({ definition }) => definition),
      addGenerationPrompt: true,
      extra: this.#extra,
    };
    if (showsTools(this.#template, input)) return;
    throw new UnsupportedError("the model's chat template has no place for tools", {
      file: this.#runtime.name,
      remedy: "Leave them out, use a model that was trained to call tools, or load it with a " +
        "chatTemplate that writes `tools`",
    });
  }
}

/** A call as messages have it. */
function asToolCall({ id, name, arguments: args }: ToolCall): unknown {
  return { id, type: "function", function: { name: name || "unknown", arguments: args } };
}

function sourceOf({ source, toolSource = "" }: ChatTemplate): string {
  return source + toolSource;
}

function templateOf(runtime: Runtime): ChatTemplate {
  checkContinues(runtime);
  if (runtime.chatTemplate) return runtime.chatTemplate;
  throw new UnsupportedError("the model has no chat template", {
    file: runtime.name,
    remedy: "Use generate(), or load it with a chatTemplate",
  });
}
