// Prompts that are being computed. Who asks for one that begins alike waits until the rows in common are there, and takes
// them over, instead of computing them beside the other: many that arrive together with one system prompt compute it once.

import { PAGE_ROWS } from "../run/pages/groups.ts";

/** A prompt as far as others may begin like it. */
export interface PromptText {
  readonly tokens: Int32Array;
  /** What else rows hang on. */
  readonly key: string;
}

/** A prompt that is being computed. */
class Prompt implements Disposable {
  readonly text: PromptText;
  /** Rows that are there. */
  length = 0;
  #waiting: { readonly length: number; readonly resolve: () => void }[] = [];
  readonly #end: () => void;

  constructor(text: PromptText, end: () => void) {
    this.text = text;
    this.#end = end;
  }

  /** Says that its first `length` rows are there. */
  advance(length: number): void {
    this.length = length;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((one) => one.length > length);
    for (const one of waiting) if (one.length <= length) one.resolve();
  }

  /** Until so many rows are there, or no more will come. Rejects with the signal's reason. */
  until(length: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal!.reason);
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push({
        length,
        resolve() {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
      });
    });
  }

  [Symbol.dispose](): void {
    this.#end();
    this.advance(Infinity);
  }
}

/** Those of a model. */
export class PromptsUnderWay {
  readonly #all = new Set<Prompt>();

  /** To be called when one begins; to be disposed when it ends, however. */
  begin(text: PromptText): Prompt {
    const prompt: Prompt = new Prompt(text, () => this.#all.delete(prompt));
    this.#all.add(prompt);
    return prompt;
  }

  /** Until more than `rows` rows of a text are there that another one is about to compute; undefined if none is. */
  ahead(
    { tokens, key }: PromptText,
    { rows, signal }: { readonly rows: number; readonly signal: AbortSignal | undefined },
  ): Promise<void> | undefined {
    let best: Prompt | undefined, most = rows;
    for (const prompt of this.#all) {
      const { text, length } = prompt;
      if (text.key !== key) continue;
      const common = wholePages(agreeing(text.tokens, tokens));
      if (common > most && common > length) [best, most] = [prompt, common];
    }
    return best?.until(most, signal);
  }
}

function wholePages(rows: number): number {
  return rows - rows % PAGE_ROWS;
}

function agreeing(a: Int32Array, b: Int32Array): number {
  let count = 0;
  while (count < a.length && count < b.length && a[count] === b[count]) count++;
  return count;
}
