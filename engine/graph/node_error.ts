// Adds a node's path to errors that know only sizes and kinds.

import { TroodonError } from "../errors.ts";

/** `error` with `place` in front of its message; the class stays, because it says what was wrong. */
export function errorAt(error: unknown, place: string): unknown {
  if (error instanceof TroodonError || !(error instanceof Error)) return error;
  const message = `${place}: ${error.message}`;
  if (error instanceof RangeError) return new RangeError(message, { cause: error });
  if (error instanceof TypeError) return new TypeError(message, { cause: error });
  return error;
}
