// The chunks of an answer as the AI SDK's parts of a stream: blocks of reasoning and text that begin and end, calls of
// tools as they are written, and in the end why it ended and what it cost.

import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { ChatChunk, ChatResult } from "../../decode/chat.ts";
import type { FinishReason } from "../../decode/generation.ts";
import type { GenerationStart } from "../../decode/generate_options.ts";
import type { ToolCallDelta } from "../../text/answer/tool_call.ts";
import { PROVIDER } from "./call_options.ts";

const REASONS: Readonly<Record<FinishReason, LanguageModelV4FinishReason["unified"]>> = {
  eos: "stop",
  stop: "stop",
  length: "length",
  context: "length",
  tool_calls: "tool-calls",
  abort: "other",
};

interface Written {
  readonly id: string;
  /** What was told of its arguments, and what they looked like the last time. */
  told: string;
  last: string;
}

type Part = LanguageModelV4StreamPart;

/** Tells an answer in parts. */
export class AnswerParts {
  readonly #calls = new Map<number, Written>();
  #open: { readonly kind: "reasoning" | "text"; readonly id: string } | undefined;
  #blocks = 0;
  #reasoningTokens = 0;

  /** What a chunk adds. */
  chunk({ text, tokens, thinking, toolCalls }: ChatChunk): Part[] {
    if (thinking && text === "") this.#reasoningTokens += tokens.length;
    return [
      ...this.#block("reasoning", thinking ?? ""),
      ...this.#block("text", text),
      ...(toolCalls ?? []).flatMap((call) => this.#call(call)),
    ];
  }

  /** What is told at the end. */
  end(
    { toolCalls, finishReason, seed }: ChatResult,
    usage: LanguageModelV4Usage,
  ): Part[] {
    const calls = toolCalls.flatMap(({ id: toolCallId, name: toolName, argumentsText }): Part[] => {
      const written = [...this.#calls.values()].find(({ id }) => id === toolCallId);
      const rest = written && argumentsText.startsWith(written.told)
        ? argumentsText.slice(written.told.length)
        : "";
      return [
        ...written && rest !== ""
          ? [{ type: "tool-input-delta", id: toolCallId, delta: rest } as const]
          : [],
        ...written ? [{ type: "tool-input-end", id: toolCallId } as const] : [],
        { type: "tool-call", toolCallId, toolName, input: argumentsText },
      ];
    });
    return [...this.#close(), ...calls, {
      ...{ type: "finish", usage, finishReason: reasonOf(finishReason) },
      providerMetadata: { [PROVIDER]: { seed } },
    }];
  }

  /** What an answer cost. */
  usage(
    { stats: { decodeTokens } }: ChatResult,
    { promptTokens, prefillTokens }: Pick<GenerationStart, "promptTokens" | "prefillTokens">,
  ): LanguageModelV4Usage {
    return {
      inputTokens: {
        ...{ total: promptTokens, noCache: prefillTokens },
        ...{ cacheRead: promptTokens - prefillTokens, cacheWrite: undefined },
      },
      outputTokens: {
        total: decodeTokens,
        text: decodeTokens - this.#reasoningTokens,
        reasoning: this.#reasoningTokens,
      },
    };
  }

  #block(kind: "reasoning" | "text", delta: string): Part[] {
    if (delta === "") return [];
    const opened: Part[] = [];
    if (this.#open?.kind !== kind) {
      opened.push(...this.#close());
      this.#open = { kind, id: `${kind}-${this.#blocks++}` };
      opened.push({ type: `${kind}-start`, id: this.#open.id });
    }
    return [...opened, { type: `${kind}-delta`, id: this.#open!.id, delta }];
  }

  #close(): Part[] {
    const open = this.#open;
    this.#open = undefined;
    return open ? [{ type: `${open.kind}-end`, id: open.id }] : [];
  }

  // Arguments of some notations are written anew at each step, and their end is another one then: only what two of
  // them have in common has come to stay.
  #call({ index, id, name, argumentsText }: ToolCallDelta): Part[] {
    const parts: Part[] = this.#close();
    let written = this.#calls.get(index);
    if (!written) {
      this.#calls.set(index, written = { id, told: "", last: argumentsText });
      return [...parts, { type: "tool-input-start", id, toolName: name }];
    }
    const length = commonLength(written.last, argumentsText);
    written.last = argumentsText;
    const delta = argumentsText.slice(written.told.length, length);
    if (delta === "") return parts;
    written.told += delta;
    return [...parts, { type: "tool-input-delta", id, delta }];
  }
}

function commonLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[length] === b[length]) length++;
  return length;
}

/** Why an answer ended, in the AI SDK's words. */
export function reasonOf(reason: FinishReason): LanguageModelV4FinishReason {
  return { unified: REASONS[reason], raw: reason };
}
