// Runs the calls of one answer. What goes wrong with a call is told to the model as its result, so that it can
// try again: a tool that is not there, arguments that the schema refuses, a handler that throws.

import type { ToolCall } from "../../text/answer/tool_call.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { ToolError } from "../../errors.ts";
import type { ReadyTool } from "./tool.ts";

/** How calls are run. */
export interface RunCallsOptions {
  readonly tools: readonly ReadyTool[];
  readonly onToolError: "tell" | "throw";
  readonly signal: AbortSignal;
}

/**
 * Runs calls side by side.
 *
 * @returns Their results as messages, in order; undefined for a call that is the caller's.
 * @throws {ToolError} If a handler throws and `onToolError` is `throw`. @throws The signal's reason.
 */
export async function runCalls(
  calls: readonly ToolCall[],
  options: RunCallsOptions,
): Promise<(ChatMessage | undefined)[]> {
  const { signal } = options;
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([promise, Promise.all(calls.map((call) => runCall(call, options)))]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

async function runCall(
  call: ToolCall,
  { tools, onToolError, signal }: RunCallsOptions,
): Promise<ChatMessage | undefined> {
  const { id, name } = call;
  const message = (content: string): ChatMessage => ({
    role: "tool",
    tool_call_id: id,
    name: name || "unknown",
    content,
  });
  if (call.problem !== undefined) return message(`Error: ${call.problem}`);
  const { handler, check } = tools.find((tool) => tool.name === name)!;
  const checked = await check(call.arguments);
  if ("problem" in checked) return message(`Error: ${checked.problem}`);
  if (!handler) return undefined;
  try {
    return message(textOf(await handler(checked.value as never, { signal, id })));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const text = error instanceof Error ? error.message : String(error);
    if (onToolError === "tell") return message(`Error: ${text}`);
    throw new ToolError(`tool "${name}" failed: ${text}`, { cause: error });
  }
}

/** What a handler gave, for the model. */
function textOf(result: unknown): string {
  if (typeof result === "string") return result;
  return JSON.stringify(result) ?? "null";
}
