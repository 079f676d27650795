// What binds one answer of a chat: a schema, behind the thinking with which a template lets it begin, or the notation
// and the schemas of calls.

import { type Constraint, createConstraint } from "../../text/grammar/constraint.ts";
import { compileRegex, inOrder, until } from "../../text/grammar/grammar.ts";
import type { AnswerParts } from "../conversation.ts";
import type { Runtime } from "../runtime.ts";
import type { Structure } from "../structured.ts";
import { CallConstraint } from "./call_constraint.ts";
import type { ReadyTool } from "./tool.ts";

/** See {@linkcode ChatOptions.toolChoice}. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** What may bind an answer. */
export interface RoundRules {
  readonly runtime: Runtime;
  readonly structure: Structure | undefined;
  readonly tools: readonly ReadyTool[];
  /** Of which it has to call one. */
  readonly forced: readonly ReadyTool[] | undefined;
}

/** What binds an answer: its schema behind its thinking, or the notation and schemas of calls. */
export function roundConstraint(
  { format, closes }: AnswerParts,
  { runtime, structure, tools, forced }: RoundRules,
): Constraint | undefined {
  const tokenizer = runtime.tokenizer();
  if (structure) {
    if (closes === undefined) return undefined;
    const grammar = inOrder(until(closes), compileRegex("\\s{0,2}"), structure.grammar);
    return createConstraint(grammar, { tokenizer, leadingBlanks: tokenizer.leadingBlanks });
  }
  const isHeld = forced || format.texts || format.namesFirst;
  // Of a model that gives out its best tokens only, nobody knows the others.
  if (tools.length === 0 || !isHeld || !forced && runtime.candidates !== undefined) {
    return undefined;
  }
  const begin = closes === undefined ? "" : `\n${closes}\n\n`;
  return new CallConstraint({
    ...{ tokenizer, format, tools: forced ?? tools },
    ...forced && { forced: { begin } },
  });
}

/** The tools of which one has to be called; undefined where none has to. */
export function forcedTools(
  tools: readonly ReadyTool[],
  { toolChoice, isBound }: { readonly toolChoice: ToolChoice; readonly isBound: boolean },
): readonly ReadyTool[] | undefined {
  if (isBound && tools.length > 0) {
    throw new RangeError(
      "Cannot use tools and a schema or grammar: what binds an answer leaves no calls",
    );
  }
  if (toolChoice === "auto" || toolChoice === "none") return undefined;
  const called = toolChoice === "required"
    ? tools
    : tools.filter(({ name }) => name === toolChoice.name);
  if (called.length > 0) return called;
  throw new RangeError(
    `Cannot use toolChoice ${JSON.stringify(toolChoice)}: ${
      tools.length === 0
        ? "there are no tools"
        : `tools are ${tools.map(({ name }) => name).join(", ")}`
    }`,
  );
}
