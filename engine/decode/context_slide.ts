// Making room in a full context. The first tokens stay (a system prompt), the older half of the others is
// dropped, and what is left is computed anew at its new positions. Rotating cached keys instead would be
// cheaper and is what others do, but every cached value was made while attending to the dropped tokens, so
// its logits are those of no text at all; here they equal a fresh evaluation of the kept tokens.

import { ResourceError, UnsupportedError } from "../errors.ts";
import type { TimelineSession } from "./timeline_session.ts";

/** Which tokens are kept and what follows them. */
export interface SlideOptions {
  /** Leading tokens that stay. */
  readonly keep: number;
  /** Tokens to append. */
  readonly next: readonly number[];
  readonly signal: AbortSignal;
}

/** A prompt that fits, by the same rule: the older half of what need not stay is dropped until it does. */
export function slidPrompt(
  tokens: readonly number[],
  { keep, capacity }: { readonly keep: number; readonly capacity: number },
): readonly number[] {
  let rest = tokens.slice(keep);
  if (keep >= capacity) return tokens; // refused with numbers by who computes it
  if (tokens.length > capacity) refusePictures(tokens);
  while (keep + rest.length > capacity) rest = rest.slice(Math.ceil(rest.length / 2));
  return rest.length === tokens.length - keep ? tokens : [...tokens.slice(0, keep), ...rest];
}

/** Half a picture is none. @throws {UnsupportedError} If there is one among the tokens. */
function refusePictures(tokens: readonly number[]): void {
  if (!tokens.some((id) => id < 0)) return;
  throw new UnsupportedError("a context with pictures does not slide", {
    remedy: 'Leave out old turns with onContextFull: "drop", or load with a larger contextLength',
  });
}

/** Drops tokens and appends `next`. @throws {ResourceError} If `keep` leaves nothing to drop. */
export async function slide(
  session: TimelineSession,
  { keep, next, signal }: SlideOptions,
): Promise<void> {
  const tokens = session.tokens;
  refusePictures(tokens);
  const movable = tokens.length - keep;
  const dropped = Math.max(next.length, Math.ceil(movable / 2));
  if (movable < dropped) {
    throw new ResourceError(
      `the context cannot slide: ${keep} of its ${session.capacity} tokens must stay`,
      { file: session.runtime.name, remedy: "Lower `keep` or load with a larger contextLength" },
    );
  }
  await session.syncNow([...tokens.slice(0, keep), ...tokens.slice(keep + dropped), ...next], {
    signal,
  });
}
