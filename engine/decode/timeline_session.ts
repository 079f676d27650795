// Sessions as they are: a slot of the executable, the tokens in it, and the logits of the last of them.
// Rows of a text that another session has computed are taken over (run/pages), and those that a sliding window has left
// behind when a session is rewound far are computed again. The `…Now`
// verbs are those of session.ts without the queue, for a generation that holds the session.

import { ResourceError } from "../errors.ts";
import type { BestLogits } from "../run/backend.ts";
import type { Executable } from "../run/executable.ts";
import { PAGE_ROWS } from "../run/pages/groups.ts";
import { addRows, MOST_BEST, WANTED } from "../run/step.ts";
import { adaptedFingerprint, adapterScales } from "./adapter_scales.ts";
import { requireAllLogits } from "./candidate_limit.ts";
import { createLock, type Release } from "./lock.ts";
import type { PromptText } from "./prompts_under_way.ts";
import type { Runtime } from "./runtime.ts";
import type { EvalOptions, Session, StepOptions } from "./session.ts";
import { packSession, unpackSession } from "./session_file.ts";
import { createRowResults, type RowResults } from "./speculate/row_results.ts";
import type { RowsPart } from "./step_queue.ts";

/** Options of the unqueued verbs. */
interface NowOptions extends EvalOptions {
  /** So many of the best of the last logits will be looked at: `logits()` then needs `settle()` before. Default: all. */
  readonly best?: number | undefined;
  /** See {@linkcode Step.feedback}. */
  readonly feedback?: number | undefined;
  /** See {@linkcode GenerateOptions.priority}; default 0. */
  readonly priority?: number | undefined;
}

/** Fewer new rows are as soon computed as copied. */
const LEAST_NOTED = 16;

/** The session and the unqueued verbs that a generation uses while it holds the session. */
export class TimelineSession implements Session {
  /** The model it runs on. */
  readonly runtime: Runtime;
  readonly #slot: number;
  readonly #tokens: Int32Array;
  readonly #logits: Float32Array;
  readonly #embedding: Float32Array | undefined;
  /** Best logits of the last token, while the others are left on the device; a copy, in arrays made once. */
  #best: BestLogits | undefined;
  readonly #bestRoom = {
    ids: new Uint32Array(MOST_BEST),
    logits: new Float32Array(MOST_BEST),
    count: 0,
  };
  /** Rows of the last step behind the last token: tokens that were computed and that nobody has taken yet. */
  #ahead = 0;
  /** Place of the last token among the rows that were checked. */
  #row = 0;
  #checked: RowResults | undefined;
  readonly #lock = createLock();
  readonly #onDispose: () => void;
  #length = 0;
  /** Leading tokens that have rows in the cache: all, or none. */
  #rows = 0;
  #isComputed = false;
  #isDisposed = false;
  /** By adapter. */
  #scales: readonly number[];

  constructor(runtime: Runtime, onDispose: () => void = () => {}) {
    this.runtime = runtime;
    this.#slot = runtime.executable.openSlot((logits) => {
      // The row that is left there is the last of the step.
      if (this.#ahead === 0) this.#keep(logits);
    });
    this.#scales = runtime.adapters.map(({ scale }) => scale);
    this.#tokens = new Int32Array(runtime.capacity);
    this.#logits = new Float32Array(runtime.vocabulary);
    this.#embedding = runtime.hidden > 0 ? new Float32Array(runtime.hidden) : undefined;
    this.#onDispose = onDispose;
  }

  get tokens(): readonly number[] {
    return Array.from(this.#tokens.subarray(0, this.#length));
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.runtime.capacity;
  }

  async sync(tokens: ArrayLike<number>, options: StepOptions = {}): Promise<number> {
    using _turn = await this.acquire(options.signal);
    return await this.syncNow(tokens, options);
  }

  async eval(tokens: ArrayLike<number>, options: EvalOptions = {}): Promise<void> {
    using _turn = await this.acquire(options.signal);
    await this.evalNow(tokens, options);
  }

  rewind(length: number): void {
    this.#check();
    if (!Number.isInteger(length) || length < 0 || length > this.#length) {
      throw new RangeError(`Cannot rewind to ${length}: the session has ${this.#length} tokens`);
    }
    if (length === this.#length) return;
    this.#ahead = 0;
    this.#best = undefined;
    this.#length = length;
    this.#rows = this.runtime.executable.rows.truncate(this.#slot, Math.min(this.#rows, length));
    this.#isComputed = false;
  }

  logits(): Float32Array {
    this.#check();
    this.#readAll();
    this.#checkComputed("logits");
    return this.#logits;
  }

  embedding(): Float32Array {
    if (!this.#embedding) {
      throw new TypeError("Cannot give an embedding: load the model with embeddings: true");
    }
    this.#checkComputed("an embedding");
    return this.#embedding;
  }

  async encode(source: ArrayLike<number>, options: StepOptions = {}): Promise<void> {
    using _turn = await this.acquire(options.signal);
    await this.encodeNow(source);
  }

  useAdapters(scales: Readonly<Record<string, number>>): void {
    this.#check();
    this.useScales(adapterScales(this.runtime, scales));
  }

  /** The same by index. */
  useScales(next: readonly number[]): void {
    if (next.every((scale, index) => scale === this.#scales[index])) return;
    this.#scales = next;
    this.rewind(0);
    // What was made of a source was made with other scales.
    this.#setSourceLength(0);
  }

  async save(): Promise<Uint8Array> {
    using _turn = await this.acquire();
    const { executable, queue } = this.runtime;
    await this.#recover({});
    const fingerprint = await adaptedFingerprint(this.runtime, this.#scales);
    const sourceLength = executable.sourceLengths?.[this.#slot] ?? 0;
    const rows = Math.max(this.#length, sourceLength);
    const state = await queue.between(() => {
      this.#check();
      return executable.readState(this.#slot, rows);
    });
    const tokens = this.#tokens.subarray(0, this.#length);
    return await packSession({ fingerprint, tokens, state, sourceLength });
  }

  async load(bytes: Uint8Array): Promise<void> {
    using _turn = await this.acquire();
    const { executable, queue, vocabulary } = this.runtime;
    const fingerprint = await adaptedFingerprint(this.runtime, this.#scales);
    const { tokens, state, sourceLength } = await unpackSession(bytes, fingerprint);
    const rows = Math.max(tokens.length, sourceLength);
    if (rows > this.capacity) {
      throw new ResourceError(`the saved session has ${rows} tokens, and ${this.capacity} fit`, {
        remedy: `Load the model with contextLength: ${rows} or more`,
      });
    }
    checkTokens(tokens, vocabulary);
    await queue.between(async () => {
      this.#check();
      this.#isComputed = false;
      this.#best = undefined;
      this.#length = this.#rows = 0;
      this.#setSourceLength(0);
      await executable.writeState(this.#slot, rows, state);
      this.#setSourceLength(sourceLength);
      this.#tokens.set(tokens);
      this.#length = tokens.length;
      this.#rows = executable.rows.truncate(this.#slot, tokens.length);
    });
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (!this.runtime.source) this.#note(true);
    this.runtime.executable.closeSlot(this.#slot);
    this.#onDispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Waits until the session is free; the holder then uses the `…Now` verbs. */
  async acquire(signal?: AbortSignal): Promise<Disposable & { readonly release: Release }> {
    this.#check();
    const release = await this.#lock.acquire(signal);
    if (this.#isDisposed) release();
    this.#check();
    return { release, [Symbol.dispose]: release };
  }

  /** `encode` for the holder. */
  async encodeNow(tokens: ArrayLike<number>): Promise<void> {
    const { source, name, vocabulary } = this.runtime;
    if (!source) throw new TypeError(`Cannot encode a source: ${name} is no encoder-decoder`);
    if (tokens.length === 0) throw new RangeError("Cannot encode an empty source");
    if (tokens.length > source.capacity) {
      throw new ResourceError(
        `the source has ${tokens.length} tokens, and ${source.capacity} fit`,
        { file: name, remedy: "Shorten it, or load the model with a larger contextLength" },
      );
    }
    checkTokens(tokens, vocabulary);
    this.rewind(0);
    await this.runtime.queue.run({
      write: (step) => {
        this.#check();
        step.isSource = true;
        addRows(step, { tokens, slot: this.#slot, scales: this.#scales });
      },
      read: () => {},
    });
  }

  /** Best logits after the last token, if the step was asked for so many and the device brought no others. */
  bestLogits(): BestLogits | undefined {
    return this.#best;
  }

  /** Brings all logits of the last token, where only the best were asked for; for the holder. */
  async settle(): Promise<void> {
    if (this.#isDisposed) return;
    this.#readAll();
    if (!this.#best) return;
    // Another session's step has taken their place: the token is computed again.
    const last = this.#tokens.slice(this.#length - 1, this.#length);
    this.rewind(this.#length - 1);
    await this.#compute(last, 0, {});
  }

  /** Place of this session in the executable. */
  get slot(): number {
    return this.#slot;
  }

  /** `sync` for the holder. */
  async syncNow(tokens: ArrayLike<number>, options: NowOptions = {}): Promise<number> {
    this.#checkRoom(0, tokens.length);
    checkTokens(tokens, this.runtime.vocabulary);
    this.#dropAhead();
    let kept = 0;
    while (kept < this.#length && kept < tokens.length && tokens[kept] === this.#tokens[kept]) {
      kept++;
    }
    if (kept === tokens.length && kept > 0) kept--;
    this.rewind(kept);
    this.#tokens.set(tokens);
    const { prompts } = this.runtime, key = this.#scales.join();
    const text = { tokens: this.#tokens.subarray(0, tokens.length), key };
    this.#adopt(tokens.length - 1);
    for (let wait = this.#underWay(text, options); wait; wait = this.#underWay(text, options)) {
      await wait;
      this.#check();
      this.#adopt(tokens.length - 1);
    }
    kept = this.#rows;
    using prompt = prompts.begin(text);
    await this.#compute(tokens, kept, { ...options, onRows: (length) => prompt.advance(length) });
    // Whoever asks the same finds the last page too; this session goes on in a copy of it.
    if (tokens.length - kept >= LEAST_NOTED && !this.runtime.source) this.#note(true);
    return kept;
  }

  /** Until rows of a text are there that another session computes; undefined if none does. */
  #underWay(text: PromptText, { signal }: StepOptions): Promise<void> | undefined {
    signal?.throwIfAborted();
    const { source, prompts, executable } = this.runtime;
    if (source || !executable.rows.sharesTexts) return undefined;
    return prompts.ahead(text, { rows: this.#rows, signal });
  }

  /** `eval` for the holder. */
  async evalNow(tokens: ArrayLike<number>, options: NowOptions = {}): Promise<void> {
    if (options.onLogits) requireAllLogits(this.runtime);
    this.#checkRoom(this.#length, tokens.length);
    checkTokens(tokens, this.runtime.vocabulary);
    await this.#recover(options);
    await this.#compute(tokens, 0, options);
  }

  /** Takes over rows of the first `count` of the tokens at hand, and the session is as long as those it has then. */
  #adopt(count: number): void {
    const { executable, source } = this.runtime;
    // What is written follows from the source, too.
    if (!source && count > this.#rows) {
      const tokens = this.#tokens.subarray(0, count), key = this.#scales.join();
      this.#rows = Math.max(this.#rows, executable.rows.adopt(this.#slot, { tokens, key }));
    }
    this.#length = this.#rows;
  }

  /** Forgets what was computed ahead. */
  #dropAhead(): void {
    if (this.#ahead === 0) return;
    this.#ahead = 0;
    this.#rows = this.runtime.executable.rows.truncate(this.#slot, this.#length);
  }

  /** Computes rows again that are not there any more. */
  async #recover({ signal }: StepOptions): Promise<void> {
    this.#dropAhead();
    const length = this.#length;
    if (this.#rows === length) return;
    const tokens = this.#tokens.slice(0, length);
    this.#adopt(length);
    await this.#compute(tokens, this.#rows, { signal });
  }

  /**
   * Appends a token that was taken and, ahead of it, tokens that may follow, all in one step; for the holder. The
   * session then stands behind the first. `advance` goes on by one that was right; any other verb forgets the rest.
   *
   * @param tokens At most as many as a step may have rows with logits.
   */
  async checkNow(tokens: readonly number[], options: NowOptions = {}): Promise<void> {
    const { signal, best: wanted = WANTED.logits, priority = 0 } = options;
    signal?.throwIfAborted();
    const count = tokens.length, position = this.#length;
    this.#checkRoom(position, count);
    checkTokens(tokens, this.runtime.vocabulary);
    await this.#recover(options);
    const checked = this.#checked ??= createRowResults(this.runtime);
    this.#isComputed = false;
    this.#best = undefined;
    this.#tokens.set(tokens, position);
    await this.runtime.queue.compute({
      ...{ tokens: this.#tokens, start: 0, from: position, to: position + count },
      ...{ slot: this.#slot, scales: this.#scales, wanted, wantedRows: count },
      ...{ feedback: 0, priority, signal },
      check: () => this.#check(),
      read: (executable, { from, to, row }) => {
        for (let i = from; i < to; i++) checked.keep(executable, i - position, row + i - from);
      },
    });
    this.#ahead = count;
    this.#row = -1;
    this.advance();
  }

  /** Takes the next token that `checkNow` computed ahead; false if there is none any more. */
  advance(): boolean {
    if (this.#ahead === 0) return false;
    this.#ahead--;
    this.#row++;
    this.#rows = ++this.#length;
    this.#noteRows(1);
    const checked = this.#checked!, best = checked.best(this.#row);
    if (best) this.#keepBest(best);
    else this.#keep(checked.logits(this.#row));
    this.#embedding?.set(checked.hidden(this.#row));
    return this.#isComputed = true;
  }

  async #compute(
    tokens: ArrayLike<number>,
    start: number,
    { signal, onLogits, onRows, best = WANTED.logits, feedback = 0, priority = 0 }: NowOptions & {
      /** Told how many rows there are. */
      readonly onRows?: (length: number) => void;
    },
  ): Promise<void> {
    const from = this.#length, count = tokens.length - start, to = from + count;
    if (count === 0) return;
    signal?.throwIfAborted();
    let next = from;
    for (let i = 0; i < count; i++) this.#tokens[from + i] = tokens[start + i]!;
    this.#isComputed = false;
    this.#best = undefined;
    await this.runtime.queue.compute({
      ...{ tokens: this.#tokens, start: 0, from, to, slot: this.#slot, scales: this.#scales },
      ...{ wanted: best, wantedRows: onLogits ? count : 1, feedback, priority, signal },
      check: () => {
        this.#check();
        if (this.#length === next) return;
        throw new TypeError("Cannot go on: the session was rewound while it computed");
      },
      read: (executable, part) => {
        for (let row = part.from; onLogits && row < part.to; row++) {
          onLogits(executable.logits(part.row + row - part.from), start + row - from);
        }
        next = this.#rows = this.#length = part.to;
        this.#noteRows(part.to - part.from);
        onRows?.(part.to);
        if (part.to === to) this.#take(executable, part);
      },
    });
  }

  #take(executable: Executable, { row, from, to }: RowsPart): void {
    const last = row + to - from - 1;
    this.#isComputed = true;
    this.#embedding?.set(executable.hidden(last));
    const best = executable.best(last);
    if (best) this.#keepBest(best);
    else this.#logits.set(executable.logits(last));
  }

  /** Says of what text the rows are, when `count` new ones have filled a page. */
  #noteRows(count: number): void {
    if (!this.runtime.source && this.#length % PAGE_ROWS < count) this.#note(false);
  }

  /** @param isWhole Also of the last page, which is not filled. */
  #note(isWhole: boolean): void {
    const tokens = this.#tokens.subarray(0, this.#rows), key = this.#scales.join();
    this.runtime.executable.rows.note(this.#slot, { tokens, key, isWhole });
  }

  #keepBest({ ids, logits, count }: BestLogits): void {
    this.#bestRoom.ids.set(ids);
    this.#bestRoom.logits.set(logits);
    this.#bestRoom.count = count;
    this.#best = this.#bestRoom;
  }

  #keep(logits: Float32Array): void {
    this.#logits.set(logits);
    this.#best = undefined;
  }

  // A device that has the best logits at once gives the others at once, until another step is run.
  #readAll(): void {
    const left = this.#best && this.#ahead === 0 && this.runtime.executable.leftLogits(this.#slot);
    if (left) this.#keep(left);
  }

  #setSourceLength(length: number): void {
    this.runtime.executable.sourceLengths?.fill(length, this.#slot, this.#slot + 1);
  }

  #check(): void {
    if (this.#isDisposed) throw new TypeError("Cannot use this session: it is disposed");
  }

  #checkComputed(what: string): void {
    this.#check();
    if (!this.#isComputed) {
      throw new TypeError(
        `Cannot give ${what}: the last of ${this.#length} tokens has not been computed; call sync or eval`,
      );
    }
    if (this.#best) {
      throw new TypeError(
        `Cannot give ${what}: another session's step took their place while an answer is being written; ` +
          "ask for logprobs, or wait for its end",
      );
    }
  }

  #checkRoom(length: number, count: number): void {
    this.#check();
    const { name, executable: { rows: { poolTokens } } } = this.runtime;
    const [most, place, option] = poolTokens < this.capacity
      ? [poolTokens, "the caches of all sessions hold", "cacheTokens"]
      : [this.capacity, "the context holds", "contextLength"];
    if (length + count <= most) return;
    throw new ResourceError(
      length === 0
        ? `the prompt has ${count} tokens, and ${place} ${most}`
        : `${count} more tokens do not fit: the session has ${length} of ${most}`,
      { file: name, remedy: `Shorten it, or load the model with a larger ${option}` },
    );
  }
}

function checkTokens(tokens: ArrayLike<number>, vocabulary: number): void {
  for (let index = 0; index < tokens.length; index++) {
    const id = tokens[index]!;
    if (!Number.isInteger(id) || id < 0 || id >= vocabulary) {
      throw new RangeError(
        `Cannot compute token ${id} at index ${index}: ids go from 0 to ${vocabulary - 1}`,
      );
    }
  }
}
