// A line a request, as a flat record that becomes one line of JSON: what was asked of whom, how it went, how long it took.
// Texts of prompts and answers are never in it, keys neither; what a client can choose (path, model, field, id) is cut, and
// JSON leaves no line end in it.

import type { Call } from "./call.ts";
import type { LogEntry } from "./app_options.ts";

/** Longest text that a client can put into a line. */
const MOST_CHARACTERS = 200;

/** What an id may look like to be taken over from a client. */
const HARMLESS_ID = /^[\w.:-]{1,64}$/;

/** The client's id for its request where it is harmless in headers and logs, else a new one. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && HARMLESS_ID.test(given) ? given : crypto.randomUUID();
}

/** The line of a call that has ended. */
export function logEntry(call: Call, { status }: { readonly status: number }): LogEntry {
  const { request, options: { id }, notes, ms } = call;
  const entry = {
    time: new Date().toISOString(),
    id,
    method: request.method,
    path: cut(new URL(request.url).pathname),
    status,
    ms: Math.round(ms),
    ...notes,
  };
  for (const name of ["model", "param", "error"] as const) {
    if (entry[name] !== undefined) entry[name] = cut(entry[name]);
  }
  return entry;
}

/** Short, and without characters that terminals act on. */
function cut(text: string): string {
  // deno-lint-ignore no-control-regex
  const plain = text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, " ").toWellFormed();
  return plain.length > MOST_CHARACTERS ? `${plain.slice(0, MOST_CHARACTERS)}…` : plain;
}

/** Writes lines of JSON. */
export function jsonLines(write: (line: string) => void): (entry: LogEntry) => void {
  return (entry) => write(`${JSON.stringify(entry)}\n`);
}
