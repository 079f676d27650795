// Streams one answer to the terminal and says afterwards how fast it was.

import type { Chunk, Generation, GenerationResult, TokenInfo } from "../decode/generation.ts";
import type { AnswerPiece } from "../text/answer/answer_reader.ts";
import { createWordWrap } from "./chat/word_wrap.ts";
import { paint, showSeconds, showTable } from "./format.ts";
import type { Terminal } from "./terminal.ts";

/** How an answer ended, and all of its tokens. */
interface Answer<R> {
  readonly result: R;
  readonly tokens: readonly TokenInfo[];
}

/**
 * Writes the text as it comes, broken at blanks on a screen, and there what the model thinks, dimmed; returns when the answer has ended for
 * whatever reason.
 */
export async function streamAnswer<C extends Chunk & AnswerPiece, R extends GenerationResult>(
  terminal: Terminal,
  generation: Generation<C, R>,
): Promise<Answer<R>> {
  const showsThinking = terminal.screen && terminal.progress;
  const wrap = terminal.screen ? createWordWrap(terminal.columns()) : undefined;
  let last = "\n", thought = "";
  const shown: TokenInfo[] = [];
  const show = (text: string): void => {
    if (text === "") return;
    terminal.out(text);
    last = text;
  };
  try {
    for await (const { text, thinking, tokens } of generation) {
      shown.push(...tokens);
      if (thinking && showsThinking) {
        terminal.err(paint(terminal.colours.err, { style: "dim", text: thinking }));
        thought = thinking;
      }
      if (text === "") continue;
      if (thought !== "") terminal.err(thought.endsWith("\n") ? "\n" : "\n\n");
      thought = "";
      show(wrap ? wrap.push(text) : text);
    }
  } finally {
    if (wrap) show(wrap.end());
    // Also before an error, which gets a line of its own.
    if (!last.endsWith("\n")) terminal.out("\n");
    if (thought !== "") terminal.err("\n");
  }
  return { result: await generation.result, tokens: shown };
}

/** `32 tokens, 85.1 tokens/s, first token after 0.12 s (37 prompt tokens, 410 tokens/s)`. */
export function describeStats({ stats, finishReason }: GenerationResult): string {
  const rate = (value: number): string => Number.isFinite(value) ? value.toFixed(1) : "–";
  const { drafted = 0, accepted = 0 } = stats.speculation ?? {};
  const drafts = drafted > 0 ? `, ${accepted} of ${drafted} drafted tokens taken` : "";
  const why = finishReason === "length" ? ", stopped at --max-tokens" : "";
  return `${stats.decodeTokens} tokens, ${
    rate(stats.decodePerSecond)
  } tokens/s, first token after ` +
    `${showSeconds(stats.firstTokenMs / 1000)} (${stats.prefillTokens} prompt tokens, ` +
    `${rate(stats.prefillPerSecond)} tokens/s)${drafts}${why}`;
}

/** An answer that nobody watches, with its tokens. */
export async function wholeAnswer<C extends Chunk, R extends GenerationResult>(
  generation: Generation<C, R>,
): Promise<Answer<R>> {
  const tokens = [];
  for await (const chunk of generation) tokens.push(...chunk.tokens);
  return { result: await generation.result, tokens };
}

/** The line below an answer, on a screen or when asked for. */
export function showStats(terminal: Terminal, result: GenerationResult): void {
  terminal.err(paint(terminal.colours.err, { style: "dim", text: describeStats(result) }) + "\n");
}

/** The probabilities of an answer's tokens, one a line: text, logarithm, and the best at its place. */
export function showLogprobs(
  terminal: Terminal,
  { tokens, textOf }: {
    readonly tokens: readonly TokenInfo[];
    readonly textOf: (id: number) => string;
  },
): void {
  const label = (id: number): string => JSON.stringify(textOf(id));
  const rows = tokens.map(({ id, logProbability = NaN, alternatives = [] }) => [
    label(id),
    logProbability.toFixed(3),
    alternatives.map((one) => `${label(one.id)} ${one.logProbability.toFixed(3)}`).join("  "),
  ]);
  terminal.out(`\n${showTable([["TOKEN", "LOGPROB", "BEST"], ...rows], [1])}\n`);
}
