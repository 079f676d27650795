// Sessions as they are: a slot of the executable, the tokens in it, and the logits of the last of them.
// Rewinding is setting a length: rows beyond it are overwritten before they are attended to. The `…Now`
// verbs are those of session.ts without the queue, for a generation that holds the session.

import { ResourceError } from "../errors.ts";
import type { BestLogits } from "../run/backend.ts";
import { addRows, MOST_BEST, type RowRun, WANTED } from "../run/step.ts";
import { adaptedFingerprint, adapterScales } from "./adapter_scales.ts";
import { requireAllLogits } from "./candidate_limit.ts";
import { createLock, type Release } from "./lock.ts";
import { pause } from "../pause.ts";
import { runStep, type Runtime } from "./runtime.ts";
import type { EvalOptions, Session, StepOptions } from "./session.ts";
import { packSession, unpackSession } from "./session_file.ts";

/** Options of the unqueued verbs. */
interface NowOptions extends EvalOptions {
  /** So many of the best of the last logits will be looked at: `logits()` then needs `settle()` before. Default: all. */
  readonly best?: number | undefined;
  /** See {@linkcode Step.feedback}. */
  readonly feedback?: number | undefined;
}

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
  readonly #lock = createLock();
  readonly #onDispose: () => void;
  #length = 0;
  #isComputed = false;
  #isDisposed = false;
  /** By adapter. */
  #scales: readonly number[];

  constructor(runtime: Runtime, onDispose: () => void = () => {}) {
    this.runtime = runtime;
    this.#slot = runtime.executable.openSlot((logits) => this.#keep(logits));
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
    this.#best = undefined;
    this.#length = length;
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
    const { executable, lock } = this.runtime;
    const fingerprint = await adaptedFingerprint(this.runtime, this.#scales);
    const release = await lock.acquire();
    try {
      const sourceLength = executable.sourceLengths?.[this.#slot] ?? 0;
      const rows = Math.max(this.#length, sourceLength);
      const state = await executable.readState(this.#slot, rows);
      const tokens = this.#tokens.subarray(0, this.#length);
      return await packSession({ fingerprint, tokens, state, sourceLength });
    } finally {
      release();
    }
  }

  async load(bytes: Uint8Array): Promise<void> {
    using _turn = await this.acquire();
    const { executable, lock, vocabulary } = this.runtime;
    const fingerprint = await adaptedFingerprint(this.runtime, this.#scales);
    const { tokens, state, sourceLength } = await unpackSession(bytes, fingerprint);
    const rows = Math.max(tokens.length, sourceLength);
    if (rows > this.capacity) {
      throw new ResourceError(`the saved session has ${rows} tokens, and ${this.capacity} fit`, {
        remedy: `Load the model with contextLength: ${rows} or more`,
      });
    }
    checkTokens(tokens, vocabulary);
    const release = await lock.acquire();
    try {
      this.#isComputed = false;
      this.#best = undefined;
      this.#length = 0;
      this.#setSourceLength(0);
      await executable.writeState(this.#slot, rows, state);
      this.#setSourceLength(sourceLength);
      this.#tokens.set(tokens);
      this.#length = tokens.length;
    } finally {
      release();
    }
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
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
    await runStep(this.runtime, {
      write: (step) => {
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
    let kept = 0;
    while (kept < this.#length && kept < tokens.length && tokens[kept] === this.#tokens[kept]) {
      kept++;
    }
    if (kept === tokens.length && kept > 0) kept--;
    this.rewind(kept);
    await this.#compute(tokens, kept, options);
    return kept;
  }

  /** `eval` for the holder. */
  async evalNow(tokens: ArrayLike<number>, options: NowOptions = {}): Promise<void> {
    if (options.onLogits) requireAllLogits(this.runtime);
    this.#checkRoom(this.#length, tokens.length);
    checkTokens(tokens, this.runtime.vocabulary);
    await this.#compute(tokens, 0, options);
  }

  async #compute(
    tokens: ArrayLike<number>,
    start: number,
    { signal, onLogits, best = WANTED.logits, feedback = 0 }: NowOptions,
  ): Promise<void> {
    const { batch, logitRows } = this.runtime;
    const size = onLogits ? Math.min(batch, logitRows) : batch;
    for (let from = start; from < tokens.length; from += size) {
      signal?.throwIfAborted();
      if (from > start) {
        await pause();
        signal?.throwIfAborted();
      }
      this.#check();
      const to = Math.min(from + size, tokens.length), isLast = to === tokens.length;
      this.#isComputed = false;
      this.#best = undefined;
      await this.#run({
        ...{ tokens, from, to, position: this.#length, slot: this.#slot, scales: this.#scales },
        wanted: isLast ? best : WANTED.logits,
        wantedRows: onLogits ? to - from : isLast ? 1 : 0,
      }, { feedback, onLogits });
      this.#isComputed = isLast;
    }
  }

  async #run(
    run: RowRun & { readonly from: number; readonly to: number },
    { feedback, onLogits }: {
      readonly feedback: number;
      readonly onLogits: EvalOptions["onLogits"] | undefined;
    },
  ): Promise<void> {
    await runStep(this.runtime, {
      write(step) {
        addRows(step, run);
        step.feedback = feedback;
      },
      read: (executable) => {
        const rows = run.to - run.from, last = rows - 1;
        for (let row = 0; row < rows; row++) {
          this.#tokens[this.#length++] = run.tokens[run.from + row]!;
        }
        if (run.wantedRows === 0) return;
        this.#embedding?.set(executable.hidden(last));
        const best = executable.best(last);
        if (best) return this.#keepBest(best);
        for (let row = 0; onLogits && row < rows; row++) {
          onLogits(executable.logits(row), run.from + row);
        }
        this.#logits.set(executable.logits(last));
      },
    });
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
    const left = this.#best && this.runtime.executable.leftLogits(this.#slot);
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
    if (length + count <= this.capacity) return;
    const { name } = this.runtime;
    throw new ResourceError(
      length === 0
        ? `the prompt has ${count} tokens, and the context holds ${this.capacity}`
        : `${count} more tokens do not fit: the session has ${length} of ${this.capacity}`,
      { file: name, remedy: "Shorten it, or load the model with a larger contextLength" },
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
