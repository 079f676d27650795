// Holds a model to its tools while it writes: free until it opens a call, then within that call's notation and the
// tool's schema, then free again; or, where a call is asked for, within one from the first token on. What opens a call
// may be a control token, which no grammar of texts knows: those are written token by token.

import type { CallFormat } from "../../text/answer/call_formats.ts";
import { type Constraint, createConstraint } from "../../text/grammar/constraint.ts";
import {
  type Grammar,
  inOrder,
  literal,
  oneOfGrammars,
  repeated,
} from "../../text/grammar/grammar.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { createSequences, type TokenSequences } from "./token_sequences.ts";

/** A tool and what its arguments may be; undefined: anything. */
export interface BoundTool {
  readonly name: string;
  readonly grammar: Grammar | undefined;
}

/** What a model is held to. */
export interface CallRules {
  readonly tokenizer: Tokenizer;
  readonly tools: readonly BoundTool[];
  readonly format: CallFormat;
  /** Where the answer has to begin with a call. */
  readonly forced?: Forced | undefined;
}

/** How an answer begins that has to be a call. */
interface Forced {
  /** What may stand in front of it. */
  readonly begins: readonly string[];
  /** Whether only what opens a call has to be written, and more may follow the call; else one call is the answer. */
  readonly isOpen?: boolean;
  /** Whether nothing was written before. */
  readonly isFirst?: boolean;
}

/** A part of the answer that is bound. */
interface Bound {
  /** Tokens in front of it. */
  readonly start: number;
  readonly constraint: Constraint;
}

/** So much of a call that nothing opens tells that it is one. */
const SURE_OF_CALL = '{"name"'.length;

/** A constraint that leaves most of an answer free. */
export class CallConstraint implements Constraint {
  readonly #rules: CallRules;
  /** What opens calls, a byte a character, as `#raw` is. */
  readonly #opens: readonly string[];
  readonly #all: Uint32Array;
  readonly #bounds: Bound[] = [];
  /** What has to be written first. */
  readonly #begin: Constraint | undefined;
  /** The same where it says which tool is called. */
  readonly #named: TokenSequences | undefined;
  /** The answer, and its length in front of every token. */
  #raw = "";
  readonly #lengths: number[] = [];
  #hasEnded = false;

  constructor(rules: CallRules) {
    const { tokenizer, format, forced } = rules;
    const { open = [], heads } = format;
    this.#rules = rules;
    this.#opens = (heads ? [heads.open] : open).map((mark) =>
      binary(new TextEncoder().encode(mark))
    );
    this.#all = new Uint32Array(Math.ceil(tokenizer.vocabSize / 32)).fill(0xffffffff);
    if (!forced) return;
    const opening = this.#opening(forced);
    const sequences = createSequences(opening ? [] : this.#beginnings(forced), tokenizer);
    const constraint = this.#begin = opening ?? sequences;
    if (format.texts && !forced.isOpen) this.#named = sequences;
    this.#bounds.push({ start: 0, constraint });
  }

  /** Whether any token may follow. */
  get isFree(): boolean {
    return this.#active === undefined && !this.#hasEnded;
  }

  get length(): number {
    return this.#lengths.length;
  }

  get canEnd(): boolean {
    return !this.#hasEnded && (this.#active?.canEnd ?? true);
  }

  get isComplete(): boolean {
    const isOne = this.#begin !== undefined && !this.#rules.forced!.isOpen;
    return this.#hasEnded || isOne && this.#bounds.length > 1 && !this.#active;
  }

  mask(): Uint32Array {
    return this.#active?.mask() ?? this.#all;
  }

  allows(id: number): boolean {
    return this.#active?.allows(id) ?? true;
  }

  accept(id: number): void {
    this.#active?.accept(id);
    const { tokenizer, tools } = this.#rules;
    this.#lengths.push(this.#raw.length);
    this.#raw += binary(tokenizer.tokenBytes(id));
    this.#hasEnded = tokenizer.endOfGenerationIds.has(id);
    if (this.#hasEnded || this.#active) return;
    const isNamed = this.#named && this.#bounds.at(-1)?.constraint === this.#named;
    const next = isNamed
      ? this.#inCall(tools[this.#named!.chosen % tools.length]!, { isForced: true })
      : this.#next();
    if (next) {
      this.#bounds.push({ start: this.length, constraint: createConstraint(next, { tokenizer }) });
    }
  }

  rollback(count: number): void {
    if (!Number.isInteger(count) || count < 0 || count > this.length) {
      throw new RangeError(`Cannot take back ${count} tokens of ${this.length}`);
    }
    if (count === 0) return;
    const length = this.length - count;
    this.#raw = this.#raw.slice(0, this.#lengths[length]);
    this.#lengths.length = length;
    this.#hasEnded = false;
    while (this.#bounds.length > 0 && this.#bounds.at(-1)!.start > length) this.#bounds.pop();
    const last = this.#bounds.at(-1);
    if (last) last.constraint.rollback(Math.max(0, last.constraint.length - (length - last.start)));
  }

  get #active(): Constraint | undefined {
    const last = this.#bounds.at(-1)?.constraint;
    return last?.isComplete === false ? last : undefined;
  }

  // What opens a call, where that is text: in whatever tokens.
  #opening({ begins, isOpen, isFirst }: Forced): Constraint | undefined {
    const { tokenizer, format: { open: [mark] = [] } } = this.#rules;
    if (!isOpen || mark === undefined || tokenizer.findSpecial(mark).length > 0) return undefined;
    const grammar = oneOfGrammars(...begins.map((begin) => literal(begin + mark)));
    const leadingBlanks = isFirst ? tokenizer.leadingBlanks : 0;
    return createConstraint(grammar, { tokenizer, leadingBlanks });
  }

  // How an answer begins that is a call: by what stands in front, and by tool.
  #beginnings({ begins, isOpen }: Forced): number[][] {
    const { tokenizer, tools, format: { open = [], heads, isBare, isList, texts } } = this.#rules;
    // What stands in the prompt already is not written again.
    const first = heads ? heads.isOpened ? "" : heads.open : isBare ? "" : open[0] ?? "";
    const names = texts && !isOpen
      ? tools.map(({ name }) => (isList ? "[" : "") + texts(name).before)
      : [""];
    return begins.flatMap((begin) =>
      names.map((name) =>
        tokenizer.encode(begin + first + name, { special: true, addSpecial: false })
      )
    );
  }

  // What follows in an answer that was free so far; undefined: it stays free.
  #next(): Grammar | undefined {
    const { tools, format } = this.#rules;
    const { texts, namesFirst, isBare, isList } = format;
    if (namesFirst) {
      const ends = this.#opens.map((mark) => [this.#raw.lastIndexOf(mark), mark.length] as const);
      const at = Math.max(
        format.heads?.isOpened ? 0 : -1,
        ...ends.map(([at, length]) => at < 0 ? -1 : at + length),
      );
      const tool = at < 0 ? undefined : this.#toolAt(textOf(this.#raw.slice(at)));
      return tool && this.#inCall(tool);
    }
    if (!texts || tools.some(({ grammar }) => !grammar)) return undefined;
    const isOpen = this.#opens.some((mark) => this.#raw.endsWith(mark));
    const begun = isBare && this.#bounds.length === 0 ? textOf(this.#raw).trimStart() : "";
    if (!isOpen && begun.length < SURE_OF_CALL) return undefined;
    const rest = isOpen ? 0 : begun.length;
    const called = tools.filter(({ name }) => isOpen || texts(name).before.startsWith(begun));
    if (called.length === 0) return undefined;
    const calls = called.map((tool) =>
      inOrder(literal(texts(tool.name).before.slice(rest)), this.#inCall(tool)!)
    );
    const call = oneOfGrammars(...calls);
    if (!isList) return call;
    return inOrder(literal("["), call, repeated(inOrder(literal(", "), call)), literal("]"));
  }

  /** The tool whose name stands at the end of a call as far as it is written, directly before its arguments. */
  #toolAt(body: string): BoundTool | undefined {
    const { tools, format } = this.#rules;
    const [draft] = format.read(body, { tools: [], isWhole: false });
    return draft?.argumentsText === "" ? tools.find(({ name }) => name === draft.name) : undefined;
  }

  #inCall(
    { name, grammar }: BoundTool,
    { isForced = false }: { readonly isForced?: boolean } = {},
  ): Grammar | undefined {
    const { tokenizer, format: { texts, isList } } = this.#rules;
    if (!grammar) return undefined;
    const after = (texts?.(name).after ?? "") + (isForced && isList ? "]" : "");
    const isText = after !== "" && tokenizer.findSpecial(after).length === 0;
    return isText ? inOrder(grammar, literal(after)) : grammar;
  }
}

/** A character a byte. */
export function binary(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function textOf(raw: string): string {
  return new TextDecoder().decode(Uint8Array.from(raw, (char) => char.charCodeAt(0)));
}
