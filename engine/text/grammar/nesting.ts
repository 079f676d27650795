// Grammars come from whoever asks: schemas, rules and groups within each other as deep as he likes.

import { UnsupportedError } from "../../errors.ts";

/** What engines say where a stack is full: V8 and JavaScriptCore, SpiderMonkey. */
const FULL_STACK = /call stack|too much recursion/i;

/**
 * Reads or compiles a grammar.
 *
 * @throws {UnsupportedError} If it is nested deeper than the stack is. @throws What `compile` throws otherwise.
 */
export function withinStack<T>(what: string, compile: () => T): T {
  try {
    return compile();
  } catch (cause) {
    if (!(cause instanceof Error && FULL_STACK.test(cause.message))) throw cause;
    throw new UnsupportedError(`${what} is nested too deeply, or too long`, { cause });
  }
}
