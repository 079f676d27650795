// Splits an answer, while it is being written, into what is said, what is thought and what is called. Marks
// are found across the borders of pieces, and what may be the beginning of one is held back, so the result
// does not depend on how the text was cut. Marks count wherever the model writes them: the texts of control
// tokens are those tokens here, since users' texts never come this way.

import type { CallFormat, Heads, ThinkingMarks } from "./call_formats.ts";
import {
  type CallDraft,
  callOf,
  type ToolCall,
  type ToolCallDelta,
  type ToolShape,
} from "./tool_call.ts";

/**
 * What became certain of an answer.
 * @category Text
 */
export interface AnswerPiece {
  /** What the reader of the answer sees. */
  readonly text: string;
  /** What the model thinks, not yet told. */
  readonly thinking?: string;
  /** Calls that went on. */
  readonly toolCalls?: readonly ToolCallDelta[];
}

/** How an answer is split. */
export interface AnswerOptions {
  readonly thinking?: ThinkingMarks | undefined;
  /** Whether the prompt ends within thinking. */
  readonly beginsThinking?: boolean;
  readonly format?: CallFormat | undefined;
  readonly tools?: readonly ToolShape[];
  /** Gives ids of calls. */
  readonly nextId?: () => string;
}

/** Where an answer stands. `start`: nothing said yet. */
export type AnswerState = "start" | "text" | "thinking" | "call" | "head" | "between";

/** Reads one answer. */
export class AnswerReader {
  readonly #options: AnswerOptions;
  readonly #heads: Heads | undefined;
  #state: AnswerState;
  /** What may be the beginning of a mark. */
  #held = "";
  /** Of the call or head under way, or what may become a call. */
  #body = "";
  /** Whether blanks are dropped: behind thinking and calls. */
  #dropsBlanks = false;
  readonly #calls: ToolCall[] = [];
  /** Ids and last told arguments of the calls under way. */
  #open: { readonly id: string; name: string; told: string }[] = [];
  #isTentative = false;
  #hasHead = false;
  #text = "";
  #thinking: string | undefined;
  #deltas: ToolCallDelta[] = [];
  #wholeThinking = "";

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#heads = options.format?.heads;
    this.#state = options.beginsThinking ? "thinking" : this.#first();
  }

  /** Where the answer stands now. */
  get state(): AnswerState {
    return this.#state;
  }

  /** What was written of the call or head under way. */
  get body(): string {
    return this.#body + this.#held;
  }

  /** Calls that are complete; all of them when the answer has ended. */
  get calls(): readonly ToolCall[] {
    return this.#calls;
  }

  /** All that was thought. */
  get thinking(): string {
    return this.#wholeThinking.trim();
  }

  /** Texts by which the answer is split. */
  get marks(): string[] {
    const { thinking, format } = this.#options;
    const { heads, open = [], close = [], silent = [] } = format ?? {};
    return [
      ...thinking ? [thinking.open, thinking.close] : [],
      ...heads ? [heads.open, heads.end, ...heads.closes] : [],
      ...open,
      ...close,
      ...silent,
    ];
  }

  /** Takes a piece of the answer. */
  push(piece: string): AnswerPiece {
    let rest = this.#held + piece;
    this.#held = "";
    for (;;) {
      const marks = this.#marksNow(rest);
      const found = firstMark(rest, marks);
      if (!found) {
        const held = heldLength(rest, marks);
        this.#take(rest.slice(0, rest.length - held));
        this.#held = rest.slice(rest.length - held);
        return this.#give();
      }
      this.#take(rest.slice(0, found.at));
      this.#pass(found.mark);
      rest = rest.slice(found.at + found.mark.length);
    }
  }

  /**
   * Ends the answer.
   *
   * @param isWhole Whether the model ended it; of an answer that was cut, a call that is not closed is none.
   */
  finish(isWhole: boolean): AnswerPiece {
    const held = this.#held;
    this.#held = "";
    this.#take(held);
    // Of a format with heads, an answer without any is all text.
    const isBare = this.#state === "start" || this.#state === "between" && !this.#hasHead;
    if (isBare) this.#text += this.#body;
    if (this.#state === "call") this.#closeCall(isWhole);
    this.#body = "";
    return this.#give();
  }

  #first(): AnswerState {
    if (!this.#heads) return "start";
    return this.#heads.isOpened ? "head" : "between";
  }

  #marksNow(rest: string): readonly string[] {
    const { thinking, format } = this.#options;
    const heads = this.#heads;
    const ends = heads ? [...heads.closes, heads.open] : [];
    switch (this.#state) {
      case "start":
      case "text":
        // Who has begun to speak thinks no more: in the middle of a text the mark is a word like any other.
        return [
          ...this.#mayThink(rest) ? [thinking!.open] : [],
          ...format?.open ?? [],
          ...format?.silent ?? [],
          ...ends,
        ];
      case "thinking":
        return [...thinking ? [thinking.close] : [], ...ends];
      case "call":
        return [...format?.close ?? [], ...format?.close ? [] : format?.open ?? [], ...ends];
      case "head":
        return [heads!.end];
      case "between":
        return [heads!.open, ...thinking ? [thinking.open] : []];
    }
  }

  #mayThink(rest: string): boolean {
    const { open } = this.#options.thinking ?? {};
    if (open === undefined || !(this.#state === "start" || this.#dropsBlanks)) return false;
    const words = rest.trimStart();
    return words.startsWith(open) || open.startsWith(words);
  }

  // What stands between marks.
  #take(text: string): void {
    if (text === "") return;
    switch (this.#state) {
      case "start":
        this.#body += text;
        return this.#begin();
      case "text": {
        const shown = this.#dropsBlanks ? text.trimStart() : text;
        if (shown !== "") this.#dropsBlanks = false;
        this.#text += shown;
        return;
      }
      case "thinking":
        this.#thinking = (this.#thinking ?? "") +
          (this.#wholeThinking === "" ? text.trimStart() : text);
        this.#wholeThinking += text;
        return;
      case "call":
        this.#body += text;
        return this.#follow();
      case "head":
      case "between":
        this.#body += text;
    }
  }

  // The first words of an answer decide whether it is a call without a mark.
  #begin(): void {
    const body = this.#body.trimStart();
    if (body === "") return;
    if (this.#options.format?.isBare && this.#mayBeCall(body)) {
      this.#state = "call";
      this.#isTentative = true;
      return this.#follow();
    }
    this.#say();
  }

  #say(): void {
    const text = this.#body;
    this.#body = "";
    this.#isTentative = false;
    this.#state = "text";
    this.#take(text);
  }

  #mayBeCall(body: string): boolean {
    const bare = body.replace(/\s+/g, "");
    return (this.#options.tools ?? []).some(({ name }) => {
      const word = JSON.stringify(name).replace(/\s+/g, "");
      return [`{"name":${word}`, `[{"name":${word}`, `{"type":"function","name":${word}`]
        .some((head) => head.startsWith(bare) || bare.startsWith(head));
    });
  }

  #pass(mark: string): void {
    const { thinking, format } = this.#options;
    const heads = this.#heads;
    if (this.#state === "start") {
      // Blanks in front of a mark are no text.
      if (this.#body.trim() !== "") this.#text += this.#body;
      this.#body = "";
    }
    if (this.#state === "call") this.#closeCall(true);
    this.#dropsBlanks = true;
    if (this.#state === "head") {
      const head = this.#body;
      const call = heads!.call.exec(head);
      this.#body = call ? head + mark : "";
      this.#state = call ? "call" : heads!.thinking?.test(head) ? "thinking" : "text";
      this.#dropsBlanks = false;
      return;
    }
    // What stood between messages may name whom the next one is to: `<|start|>assistant to=…<|channel|>`.
    const recipient = this.#state === "between" ? / to=[^]*$/.exec(this.#body)?.[0] : undefined;
    this.#body = "";
    if (mark === thinking?.open) this.#state = "thinking";
    else if (format?.open?.includes(mark)) this.#state = "call";
    else if (mark === heads?.open) {
      this.#state = "head";
      this.#hasHead = true;
      if (recipient) this.#body = `${recipient} `;
    } else if (heads?.closes.includes(mark)) this.#state = "between";
    else this.#state = heads && !heads.isOpened ? "between" : "text";
  }

  #drafts(isWhole: boolean): readonly CallDraft[] {
    return this.#options.format!.read(this.#body, { tools: this.#options.tools ?? [], isWhole });
  }

  #follow(): void {
    if (this.#isTentative && !this.#mayBeCall(this.#body.trimStart())) return this.#say();
    this.#drafts(false).forEach(({ name, argumentsText }, i) => {
      const call = this.#openCall(i);
      if (name === "" || (argumentsText === call.told && name === call.name)) return;
      call.name = name;
      call.told = argumentsText;
      const index = this.#calls.length + i;
      this.#deltas = this.#deltas.filter((delta) => delta.index !== index);
      this.#deltas.push({ index, id: call.id, name, argumentsText });
    });
  }

  #openCall(index: number): { readonly id: string; name: string; told: string } {
    return this.#open[index] ??= { id: this.#options.nextId?.() ?? "", name: "", told: "" };
  }

  #closeCall(isWhole: boolean): void {
    const body = this.#body, tools = this.#options.tools ?? [];
    const drafts = isWhole ? this.#drafts(true) : [];
    const calls = drafts.map((draft, i) =>
      callOf(draft, { id: this.#openCall(i).id, body, tools })
    );
    if (isWhole && calls.length === 0 && body.trim() !== "") {
      calls.push(
        callOf({ name: "", argumentsText: "" }, { id: this.#openCall(0).id, body, tools }),
      );
    }
    const isNone = !isWhole || calls.some(({ problem }) => problem !== undefined);
    if (this.#isTentative && isNone) return this.#say();
    this.#calls.push(...calls);
    this.#open = [];
    this.#body = "";
    this.#isTentative = false;
    this.#state = "text";
  }

  #give(): AnswerPiece {
    const piece = {
      text: this.#text,
      ...this.#thinking !== undefined && { thinking: this.#thinking },
      ...this.#deltas.length > 0 && { toolCalls: this.#deltas },
    };
    this.#text = "";
    this.#thinking = undefined;
    this.#deltas = [];
    return piece;
  }
}

/** The mark that begins first; of several there, the longest. */
function firstMark(text: string, marks: readonly string[]) {
  let best: { readonly at: number; readonly mark: string } | undefined;
  for (const mark of marks) {
    const at = text.indexOf(mark);
    if (at < 0) continue;
    if (!best || at < best.at || (at === best.at && mark.length > best.mark.length)) {
      best = { at, mark };
    }
  }
  return best;
}

/** Characters at the end of a text with which a mark may begin. */
function heldLength(text: string, marks: readonly string[]): number {
  let most = 0;
  for (const mark of marks) {
    for (let length = Math.min(mark.length - 1, text.length); length > most; length--) {
      if (text.endsWith(mark.slice(0, length))) most = length;
    }
  }
  return most;
}
