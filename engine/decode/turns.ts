// Which messages of a conversation stay where it is longer than the context: the instruction at its head and
// the newest turns. A turn is a user's message with all that answers it, calls and results of tools included,
// and is dropped whole, so that what is left still alternates as templates want it.

import type { ChatMessage } from "../text/chat_template.ts";

const INSTRUCTION: ReadonlySet<string> = new Set(["system", "developer"]);

/** Part of a full context that stays filled when turns are dropped, so that the next turn finds room. */
const FILLED = 3 / 4;

/** Messages without the oldest turns. */
export interface Turns {
  /** How many there are; the newest one always stays. */
  readonly count: number;
  /** All messages without the oldest turns. */
  without(turns: number): ChatMessage[];
}

/** Cuts a conversation into turns. */
export function turnsOf(messages: readonly ChatMessage[]): Turns {
  const isHead = ({ role }: ChatMessage) => INSTRUCTION.has(role);
  const head = messages.findIndex((message) => !isHead(message));
  const body = head < 0 ? messages.length : head;
  const starts = messages.flatMap(({ role }, index) =>
    index === body || index > body && role === "user" ? [index] : []
  );
  return {
    count: starts.length,
    without: (turns) => [...messages.slice(0, body), ...messages.slice(starts[turns] ?? body)],
  };
}

/** What is looked for by {@linkcode fitTurns}. */
export interface FitOptions {
  /** Turns that are left out already. */
  readonly dropped: number;
  /** All turns that there are. */
  readonly count: number;
  /** Positions of the context. */
  readonly capacity: number;
  /** How many tokens there are without some turns; less for more turns. */
  readonly length: (dropped: number) => number;
}

/**
 * How many of the oldest turns have to go for the rest to fit with room for one token: none more if it fits
 * already, else so many that a quarter of the context is free, if that can be.
 *
 * @returns undefined if not even the newest turn fits.
 */
export function fitTurns({ dropped, count, capacity, length }: FitOptions): number | undefined {
  if (length(dropped) < capacity) return dropped;
  const last = count - 1;
  if (last <= dropped || length(last) >= capacity) return undefined;
  let [low, high] = [dropped, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (length(middle) <= capacity * FILLED) high = middle;
    else low = middle;
  }
  return high;
}
