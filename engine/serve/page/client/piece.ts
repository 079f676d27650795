// A chunk of an answer as the page uses it.

import type { AnswerToken, Choice } from "./conversation.ts";

/** What came since the last piece. */
export interface Piece {
  readonly text?: string;
  readonly thinking?: string;
  readonly tokens?: readonly AnswerToken[];
  readonly finish?: string;
  readonly usage?: { readonly completion: number; readonly total: number };
  /** Tokens a second by the server's own clock. */
  readonly perSecond?: number;
  /** The seed that gives the answer again. */
  readonly seed?: number;
}

// deno-lint-ignore no-explicit-any
type Json = any;

function choiceOf({ token, bytes, logprob }: Json): Choice {
  // A part of a character has no text of its own.
  const text = token.includes("\ufffd") && bytes
    ? (bytes as number[]).map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
    : token;
  return { text, probability: Math.exp(logprob) };
}

/** What a chunk of a stream says. */
export function pieceOf({ choices: [choice] = [], usage }: Json): Piece {
  const { delta = {}, logprobs, finish_reason, timings } = choice ?? {};
  const { tokens_per_second: perSecond, seed } = timings ?? {};
  return {
    ...delta.content && { text: delta.content },
    ...delta.reasoning_content && { thinking: delta.reasoning_content },
    ...logprobs?.content && {
      tokens: (logprobs.content as Json[]).map((entry) => ({
        ...choiceOf(entry),
        others: (entry.top_logprobs as Json[] ?? []).map(choiceOf),
      })),
    },
    ...finish_reason && { finish: finish_reason },
    ...usage && {
      usage: { completion: usage.completion_tokens, total: usage.total_tokens },
    },
    ...perSecond > 0 && { perSecond },
    ...seed !== undefined && { seed },
  };
}
