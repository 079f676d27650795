// What binds one answer of a chat: a schema, behind the thinking with which a template lets it begin, or the notation
// and the schemas of calls, or whichever of the two the model begins.

import { UnsupportedError } from "../../errors.ts";
import type { CallFormat } from "../../text/answer/call_formats.ts";
import { type Constraint, createConstraint } from "../../text/grammar/constraint.ts";
import { compileRegex, inOrder, until } from "../../text/grammar/grammar.ts";
import type { AnswerParts } from "../conversation.ts";
import type { Runtime } from "../runtime.ts";
import type { Structure } from "../structured.ts";
import { AnswerChoice } from "./answer_choice.ts";
import { CallConstraint } from "./call_constraint.ts";
import type { ReadyTool } from "./tool.ts";

/**
 * See {@linkcode ChatOptions.toolChoice}.
 * @category Text
 */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** What may bind an answer. */
export interface RoundRules {
  readonly runtime: Runtime;
  readonly structure: Structure | undefined;
  readonly tools: readonly ReadyTool[];
  /** Of which it has to call one. */
  readonly forced: readonly ReadyTool[] | undefined;
}

/** What binds an answer: its schema behind its thinking, the notation and schemas of calls, or one of the two. */
export function roundConstraint(
  { format, closes }: AnswerParts,
  { runtime, structure, tools, forced }: RoundRules,
): Constraint | undefined {
  const tokenizer = runtime.tokenizer();
  if (structure && !forced) {
    if (closes === undefined && tools.length === 0) return undefined;
    const { grammar } = structure;
    const text = createConstraint(
      closes === undefined ? grammar : inOrder(until(closes), compileRegex("\\s{0,2}"), grammar),
      { tokenizer, leadingBlanks: tokenizer.leadingBlanks },
    );
    if (tools.length === 0) return text;
    const isFirst = closes === undefined;
    const begins = isFirst ? [""] : ["", "\n", "\n\n"];
    // A head may also open what is no call; there the names belong to what is told apart.
    const isOpen = format.heads === undefined;
    const startCalls = () =>
      new CallConstraint({ tokenizer, format, tools, forced: { begins, isOpen, isFirst } });
    return new AnswerChoice({ tokenizer, text, startCalls, closes });
  }
  const isHeld = forced || format.texts || format.namesFirst;
  // Of a model that gives out its best tokens only, nobody knows the others.
  if (tools.length === 0 || !isHeld || !forced && runtime.candidates !== undefined) {
    return undefined;
  }
  const begin = closes === undefined ? "" : `\n${closes}\n\n`;
  return new CallConstraint({
    ...{ tokenizer, format, tools: forced ?? tools },
    ...forced && { forced: { begins: [begin] } },
  });
}

/**
 * Refuses tools beside a schema where nothing tells a call from a text: it is bare JSON too, or a text needs a head of
 * its own.
 *
 * @throws {UnsupportedError} Naming the notation.
 */
export function checkChoice({ name, isBare, heads }: CallFormat): void {
  if (!isBare && !heads?.isOpened) return;
  throw new UnsupportedError(
    `tools and a schema do not go together with calls as the model's template writes them (${name}): ` +
      (isBare ? "they begin as the answer does" : "the answer has a head of its own"),
    { remedy: "Leave out one of the two, or give the schema as a tool with toolChoice" },
  );
}

/** The tools of which one has to be called; undefined where none has to. */
export function forcedTools(
  tools: readonly ReadyTool[],
  toolChoice: ToolChoice,
): readonly ReadyTool[] | undefined {
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
