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
import { CallDeltas, type NewOfCall } from "../http/call_deltas.ts";
import { PROVIDER } from "./call_options.ts";

const REASONS: Readonly<Record<FinishReason, LanguageModelV4FinishReason["unified"]>> = {
  eos: "stop",
  stop: "stop",
  length: "length",
  context: "length",
  tool_calls: "tool-calls",
  abort: "other",
};

type Part = LanguageModelV4StreamPart;

/** Tells an answer in parts. */
export class AnswerParts {
  readonly #calls = new CallDeltas();
  readonly #begun = new Set<string>();
  #open: { readonly kind: "reasoning" | "text"; readonly id: string } | undefined;
  #blocks = 0;
  #reasoningTokens = 0;

  /** What a chunk adds. */
  chunk({ text, tokens, thinking, toolCalls }: ChatChunk): Part[] {
    if (thinking && text === "") this.#reasoningTokens += tokens.length;
    return [
      ...this.#block("reasoning", thinking ?? ""),
      ...this.#block("text", text),
      ...this.#calls.take(toolCalls ?? []).flatMap((call) => this.#call(call)),
    ];
  }

  /** What is told at the end. */
  end(
    { toolCalls, finishReason, seed }: ChatResult,
    usage: LanguageModelV4Usage,
  ): Part[] {
    const rest = this.#calls.finish(toolCalls).flatMap((call) => this.#call(call));
    const calls = toolCalls.flatMap(({ id, name: toolName, argumentsText: input }): Part[] => [
      ...this.#begun.has(id) ? [{ type: "tool-input-end", id } as const] : [],
      { type: "tool-call", toolCallId: id, toolName, input },
    ]);
    return [...this.#close(), ...rest, ...calls, {
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

  #call({ id, name, isFirst, argumentsText }: NewOfCall): Part[] {
    this.#begun.add(id);
    return [
      ...this.#close(),
      ...isFirst ? [{ type: "tool-input-start", id, toolName: name } as const] : [],
      ...argumentsText === ""
        ? []
        : [{ type: "tool-input-delta", id, delta: argumentsText } as const],
    ];
  }
}

/** Why an answer ended, in the AI SDK's words. */
export function reasonOf(reason: FinishReason): LanguageModelV4FinishReason {
  return { unified: REASONS[reason], raw: reason };
}
