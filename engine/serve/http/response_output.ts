// The output of /v1/responses while it grows: items (what was thought, said, called) and, for every step of theirs, the
// event that OpenAI's API tells. Whole and streamed responses are made by the same steps.

import type { AnswerEnd, AnswerPart, AnswerToken } from "../engine.ts";
import { CallDeltas, type NewOfCall } from "./call_deltas.ts";
import { chatLogprobs } from "./logprobs.ts";

/** What an event tells, without its number. */
export type ResponseEvent = Readonly<Record<string, unknown>> & { readonly type: string };

interface TextItem {
  readonly kind: "reasoning" | "message";
  readonly id: string;
  text: string;
  readonly tokens: AnswerToken[];
}

interface CallItem {
  readonly kind: "function_call";
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  text: string;
}

type Item = TextItem | CallItem;

/** How an item begins, is told of, and ends. */
interface Words {
  readonly prefix: string;
  readonly delta: string;
}

const WORDS: Readonly<Record<Item["kind"], Words>> = {
  reasoning: { prefix: "rs", delta: "response.reasoning_text" },
  message: { prefix: "msg", delta: "response.output_text" },
  function_call: { prefix: "fc", delta: "response.function_call_arguments" },
};

/** Items of one response. */
export class ResponseOutput {
  readonly #items: Item[] = [];
  readonly #id: string;
  readonly #calls: CallDeltas;
  readonly #hasLogprobs: boolean;
  #isOpen = false;
  thinkingTokens = 0;

  /** @param id Makes ids of items. */
  constructor(
    id: string,
    { mostCalls, hasLogprobs }: { readonly mostCalls: number; readonly hasLogprobs: boolean },
  ) {
    this.#id = id;
    this.#calls = new CallDeltas({ most: mostCalls });
    this.#hasLogprobs = hasLogprobs;
  }

  /** The items as they stand. */
  items(status: "completed" | "incomplete"): unknown[] {
    return this.#items.map((item, i) => {
      const isLast = i === this.#items.length - 1;
      return this.#itemObject(item, isLast ? status : "completed");
    });
  }

  /** Takes a part of the answer. */
  *take({ text, thinking, tokens, calls = [] }: AnswerPart): Generator<ResponseEvent, void, void> {
    if (thinking) {
      if (text === "") this.thinkingTokens += tokens.length;
      yield* this.#write("reasoning", { delta: thinking, tokens: [] });
    }
    const isSaid = text !== "" ||
      this.#hasLogprobs && !thinking && calls.length === 0 && tokens.length > 0;
    if (isSaid) {
      yield* this.#write("message", { delta: text, tokens: this.#hasLogprobs ? tokens : [] });
    }
    for (const call of this.#calls.take(calls)) yield* this.#call(call);
  }

  /** Ends the answer. */
  *finish(
    { toolCalls }: AnswerEnd,
    status: "completed" | "incomplete",
  ): Generator<ResponseEvent, void, void> {
    for (const call of this.#calls.finish(toolCalls)) yield* this.#call(call);
    // Every response says something, if only nothing.
    if (this.#items.length === 0) yield* this.#open(this.#newText("message"));
    yield* this.#close(status);
  }

  *#write(
    kind: TextItem["kind"],
    { delta, tokens }: { readonly delta: string; readonly tokens: readonly AnswerToken[] },
  ): Generator<ResponseEvent, void, void> {
    const last = this.#items.at(-1);
    if (last?.kind !== kind || !this.#isOpen) yield* this.#open(this.#newText(kind));
    const item = this.#items.at(-1) as TextItem;
    item.text += delta;
    item.tokens.push(...tokens);
    yield this.#event(`${WORDS[kind].delta}.delta`, {
      content_index: 0,
      delta,
      ...kind === "message" && { logprobs: chatLogprobs(tokens) },
    });
  }

  *#call(
    { isFirst, id, name, argumentsText: delta }: NewOfCall,
  ): Generator<ResponseEvent, void, void> {
    if (isFirst) {
      yield* this.#open({
        ...{ kind: "function_call", id: this.#newId("function_call"), callId: id, name, text: "" },
      });
    }
    const item = this.#items.find((one) => one.kind === "function_call" && one.callId === id);
    if (!item || delta === "") return;
    item.text += delta;
    yield this.#event(`${WORDS.function_call.delta}.delta`, { delta }, item);
  }

  #newId(kind: Item["kind"]): string {
    return `${WORDS[kind].prefix}_${this.#id}${this.#items.length}`;
  }

  #newText(kind: TextItem["kind"]): TextItem {
    return { kind, id: this.#newId(kind), text: "", tokens: [] };
  }

  *#open(item: Item): Generator<ResponseEvent, void, void> {
    if (this.#isOpen) yield* this.#close("completed");
    this.#items.push(item);
    this.#isOpen = true;
    const { item_id: _, ...added } = this.#event("response.output_item.added", {
      item: this.#itemObject(item, "in_progress"),
    });
    yield added;
    if (item.kind === "function_call") return;
    yield this.#event("response.content_part.added", { content_index: 0, part: this.#part(item) });
  }

  *#close(status: "completed" | "incomplete"): Generator<ResponseEvent, void, void> {
    const item = this.#items.at(-1)!;
    this.#isOpen = false;
    if (item.kind === "function_call") {
      const { name, text } = item;
      yield this.#event(`${WORDS.function_call.delta}.done`, { name, arguments: text });
    } else {
      const part = this.#part(item);
      const logprobs = item.kind === "message" ? { logprobs: chatLogprobs(item.tokens) } : {};
      const more = { content_index: 0, text: item.text, ...logprobs };
      yield this.#event(`${WORDS[item.kind].delta}.done`, more);
      yield this.#event("response.content_part.done", { content_index: 0, part });
    }
    const { item_id: _, ...done } = this.#event("response.output_item.done", {
      item: this.#itemObject(item, status),
    });
    yield done;
  }

  #event(
    type: string,
    more: Readonly<Record<string, unknown>>,
    item: Item = this.#items.at(-1)!,
  ): ResponseEvent & { readonly item_id: string } {
    return { type, item_id: item.id, output_index: this.#items.indexOf(item), ...more };
  }

  #part({ kind, text, tokens }: TextItem): Readonly<Record<string, unknown>> {
    if (kind === "reasoning") return { type: "reasoning_text", text };
    return { type: "output_text", text, annotations: [], logprobs: chatLogprobs(tokens) };
  }

  #itemObject(item: Item, status: string): Readonly<Record<string, unknown>> {
    const { id, kind: type } = item;
    const isBegun = status === "in_progress";
    if (item.kind === "function_call") {
      const { callId, name, text } = item;
      return { id, type, status, call_id: callId, name, arguments: text };
    }
    const content = isBegun ? [] : [this.#part(item)];
    if (item.kind === "reasoning") return { id, type, summary: [], content };
    return { id, type, status, role: "assistant", content };
  }
}
