// Streams one answer to the terminal and says afterwards how fast it was.

import type { Chunk, Generation, GenerationResult } from "../decode/generation.ts";
import type { AnswerPiece } from "../text/answer/answer_reader.ts";
import { paint, showSeconds } from "./format.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Writes the text as it comes, and on a screen what the model thinks, dimmed; returns when the answer has ended for
 * whatever reason.
 */
export async function streamAnswer<C extends Chunk & AnswerPiece, R extends GenerationResult>(
  terminal: Terminal,
  generation: Generation<C, R>,
): Promise<R> {
  const showsThinking = terminal.screen && terminal.progress;
  let last = "\n", thought = "";
  try {
    for await (const { text, thinking } of generation) {
      if (thinking && showsThinking) {
        terminal.err(paint(terminal.colours.err, { style: "dim", text: thinking }));
        thought = thinking;
      }
      if (text === "") continue;
      if (thought !== "") terminal.err(thought.endsWith("\n") ? "\n" : "\n\n");
      thought = "";
      terminal.out(text);
      last = text;
    }
  } finally {
    // Also before an error, which gets a line of its own.
    if (!last.endsWith("\n")) terminal.out("\n");
    if (thought !== "") terminal.err("\n");
  }
  return await generation.result;
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

/** The line below an answer, on a screen or when asked for. */
export function showStats(terminal: Terminal, result: GenerationResult): void {
  terminal.err(paint(terminal.colours.err, { style: "dim", text: describeStats(result) }) + "\n");
}
