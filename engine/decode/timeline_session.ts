// Sessions as they are: a slot of the executable with tokens and rows for them (session_rows.ts), and the logits of the
// last of them. Rewinding is setting a length; rows that are no longer there are computed again with what comes next.
// The `…Now` verbs are those of session.ts without the lock, for a generation that holds the session.

import { ResourceError, UnsupportedError } from "../errors.ts";
import type { BestLogits } from "../run/backend.ts";
import type { Executable } from "../run/executable.ts";
import { addRows, MOST_BEST, WANTED } from "../run/step.ts";
import { adaptedFingerprint, adapterScales } from "./adapter_scales.ts";
import { requireAllLogits } from "./candidate_limit.ts";
import { createLock, type Release } from "../lock.ts";
import type { SeenPicture } from "./pictures/picture_table.ts";
import type { PromptText } from "./prompts_under_way.ts";
import type { Runtime } from "./runtime.ts";
import type { EvalOptions, Session, StepOptions } from "./session.ts";
import { packSession, unpackSession } from "./session_file.ts";
import { createRowResults, type RowResults } from "./speculate/row_results.ts";
import { checkTokens, noRoom, SessionRows, sourceRows } from "./session_rows.ts";
import type { RowsPart, RowsWish, StepJob } from "./step_queue.ts";
import { checkBytes, checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/** Options of the unqueued verbs. */
interface NowOptions extends EvalOptions, Pick<RowsWish, "worth" | "allowed" | "meanwhile"> {
  /** So many of the best of the last logits will be looked at: `logits()` then needs `settle()` before. Default: all. */
  readonly best?: number | undefined;
  /** See {@linkcode Step.feedback}. */
  readonly feedback?: number | undefined;
  /** Gets the hidden state of every token, and nothing else is kept. */
  readonly onHidden?: ((state: Float32Array) => void) | undefined;
  /** Told of each part of the rows when it is computed, before the next step. */
  readonly onPart?: ((executable: Executable, part: RowsPart) => void) | undefined;
  /** See {@linkcode GenerateOptions.priority}; default 0. */
  readonly priority?: number | undefined;
}

/** Fewer new rows are as soon computed as copied. */
const LEAST_NOTED = 16;

const STEP_KEYS: OptionKeys<StepOptions> = { signal: true };
const EVAL_KEYS: OptionKeys<EvalOptions> = { signal: true, onLogits: true };

/** The session and the unqueued verbs that a generation uses while it holds the session. */
export class TimelineSession implements Session {
  /** The model it runs on. */
  readonly runtime: Runtime;
  readonly #rows: SessionRows;
  /** Made when they are first kept: half a megabyte that those never need of whom a device brings the best alone. */
  #logits: Float32Array | undefined;
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
  /** The same, though the session has forgotten them. */
  #behind = 0;
  /** Place of the last token among the rows that were checked. */
  #row = 0;
  #checked: RowResults | undefined;
  readonly #lock = createLock();
  readonly #onDispose: () => void;
  #isComputed = false;
  #isDisposed = false;

  constructor(runtime: Runtime, onDispose: () => void = () => {}) {
    this.runtime = runtime;
    const slot = runtime.executable.openSlot((logits) => {
      // The row that is left there is the last of the step.
      if (this.#behind === 0) this.#keep(logits);
    });
    this.#rows = new SessionRows(runtime, slot);
    this.#embedding = runtime.hidden > 0 ? new Float32Array(runtime.hidden) : undefined;
    this.#onDispose = onDispose;
  }

  get tokens(): readonly number[] {
    return Array.from(this.#rows.tokens.subarray(0, this.#rows.length));
  }

  get length(): number {
    return this.#rows.length;
  }

  get capacity(): number {
    const { capacity, executable } = this.runtime;
    return Math.min(capacity, executable.rows.poolTokens);
  }

  async sync(tokens?: ArrayLike<number>, options: StepOptions = {}): Promise<number> {
    checkOptionKeys(options, { of: "sync()", known: STEP_KEYS });
    using _turn = await this.acquire(options.signal);
    return await this.syncNow(tokens ?? this.tokens, options);
  }

  async eval(tokens: ArrayLike<number>, options: EvalOptions = {}): Promise<void> {
    checkOptionKeys(options, { of: "eval()", known: EVAL_KEYS });
    using _turn = await this.acquire(options.signal);
    await this.evalNow(tokens, options);
  }

  rewind(length: number): void {
    this.#check();
    if (!Number.isInteger(length) || length < 0 || length > this.#rows.length) {
      throw new RangeError(
        `Cannot rewind to ${length}: the session has ${this.#rows.length} tokens`,
      );
    }
    if (length === this.#rows.length && this.#rows.count <= length) return;
    this.#ahead = 0;
    this.#best = undefined;
    this.#rows.length = length;
    this.#isComputed = false;
    this.#rows.truncate(length);
  }

  logits(): Float32Array {
    this.#check();
    this.#readAll();
    this.#checkComputed("logits");
    return this.#logits!;
  }

  embedding(): Float32Array {
    if (!this.#embedding) {
      throw new TypeError("Cannot give an embedding: load the model with embeddings: true");
    }
    this.#checkComputed("an embedding");
    return this.#embedding;
  }

  async encode(source: ArrayLike<number>, options: StepOptions = {}): Promise<void> {
    checkOptionKeys(options, { of: "encode()", known: STEP_KEYS });
    using _turn = await this.acquire(options.signal);
    await this.encodeNow(source, options);
  }

  useAdapters(scales: Readonly<Record<string, number>>): void {
    this.#check();
    this.useScales(adapterScales(this.runtime, scales));
  }

  /** The same by index. */
  useScales(next: readonly number[]): void {
    if (next.every((scale, index) => scale === this.#rows.scales[index])) return;
    this.#rows.scales = next;
    this.rewind(0);
    // What was made of a source was made with other scales.
    this.#setSourceLength(0);
  }

  async save(): Promise<Uint8Array> {
    using _turn = await this.acquire();
    const { executable, queue, source, name } = this.runtime;
    if (source?.sound) {
      throw new UnsupportedError("sessions of models that listen are not saved", {
        ...{ file: name, remedy: "Encode the sound again" },
      });
    }
    const fingerprint = await adaptedFingerprint(this.runtime, this.#rows.scales);
    const sourceLength = executable.sourceLengths?.[this.#rows.slot] ?? 0;
    const rows = Math.max(this.#rows.length, sourceLength);
    let state: Uint8Array | undefined;
    while (!state) {
      await this.#restoreRows();
      state = await queue.between(() => {
        this.#check();
        return this.#rows.count < this.#rows.length
          ? undefined
          : executable.readState(this.#rows.slot, rows);
      });
    }
    const { pictures } = this.#rows, tokens = this.#rows.tokens.subarray(0, this.#rows.length);
    const idOf = (picture: SeenPicture) => this.runtime.sight!.table.add(picture);
    return await packSession({ fingerprint, tokens, state, sourceLength, pictures, idOf });
  }

  async load(bytes: Uint8Array): Promise<void> {
    checkBytes(bytes, "a session");
    using _turn = await this.acquire();
    const { executable, queue, sight, caches } = this.runtime;
    const fingerprint = await adaptedFingerprint(this.runtime, this.#rows.scales);
    const saved = await unpackSession(bytes, { fingerprint, pictures: sight?.table });
    const { tokens, state, sourceLength } = saved, rows = Math.max(tokens.length, sourceLength);
    if (rows > this.capacity) {
      throw new ResourceError(`the saved session has ${rows} tokens, and ${this.capacity} fit`, {
        remedy: `Load the model with contextLength: ${rows} or more`,
      });
    }
    checkTokens(tokens, this.runtime);
    await queue.between(async () => {
      this.#check();
      this.rewind(0);
      this.#setSourceLength(0);
      const { slot } = this.#rows, wish = { slot, length: rows, areRestored: true };
      const hasRoom = caches.reserve({ ...wish, holder: this.#rows });
      if (hasRoom) await executable.writeState(slot, rows, state);
      this.#setSourceLength(sourceLength);
      this.#rows.write(tokens);
      this.#rows.length = tokens.length;
      this.#rows.forget(hasRoom ? tokens.length : 0); // else they are computed when there is room
    });
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#rows.close();
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
    this.#rows.use();
    return { release, [Symbol.dispose]: release };
  }

  /** `encode` for the holder; `read` is told when it is computed, before the next step. */
  async encodeNow(
    source: ArrayLike<number>,
    { read = () => {}, signal }: StepOptions & Partial<Pick<StepJob<void>, "read">> = {},
  ): Promise<void> {
    const { tokens, features } = sourceRows(this.runtime, source);
    this.rewind(0);
    await this.runtime.queue.run({
      write: (step) => {
        this.#check();
        step.isSource = true;
        step.features = features;
        addRows(step, { tokens, slot: this.#rows.slot, scales: this.#rows.scales });
      },
      ...{ read, signal },
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
    this.#rows.truncate(this.#rows.length - 1);
    await this.#restoreRows();
  }

  /** Place of this session in the executable. */
  get slot(): number {
    return this.#rows.slot;
  }

  /** `sync` for the holder. */
  async syncNow(tokens: ArrayLike<number>, options: NowOptions = {}): Promise<number> {
    this.#checkRoom(0, tokens.length);
    checkTokens(tokens, this.runtime);
    this.#dropAhead();
    let kept = 0;
    while (
      kept < this.#rows.length && kept < tokens.length && tokens[kept] === this.#rows.tokens[kept]
    ) {
      kept++;
    }
    if (kept === tokens.length && kept > 0) kept--;
    this.rewind(kept);
    this.#rows.write(tokens);
    const { prompts } = this.runtime, key = this.#rows.scales.join();
    const text = { tokens: this.#rows.tokens.subarray(0, tokens.length), key };
    // Whoever stops meanwhile leaves a session with those rows.
    kept = this.#adopt(tokens.length - 1);
    for (let wait = this.#underWay(text, options); wait; wait = this.#underWay(text, options)) {
      await wait;
      this.#checkStands(kept);
      kept = this.#adopt(tokens.length - 1);
    }
    using prompt = prompts.begin(text);
    this.#rows.prompt = prompt;
    await this.#compute(tokens, kept, { ...options, onRows: (length) => prompt.advance(length) });
    // Whoever asks the same finds the last page too; this session goes on in a copy of it.
    if (tokens.length - kept >= LEAST_NOTED) this.#rows.note(true);
    return kept;
  }

  /** Goes on behind rows that are there for the first tokens at hand; gives how many. */
  #adopt(count: number): number {
    this.#rows.adopt(count);
    if (this.#rows.count === this.#rows.length) return this.#rows.length;
    this.#isComputed = false;
    this.#best = undefined;
    return this.#rows.length = this.#rows.count;
  }

  /** Until rows of a text are there that another session computes; undefined if none does. */
  #underWay(text: PromptText, { signal }: StepOptions): Promise<void> | undefined {
    signal?.throwIfAborted();
    const { source, prompts, executable } = this.runtime;
    if (source || !executable.rows.sharesTexts) return undefined;
    return prompts.ahead(text, { rows: this.#rows.count, signal });
  }

  /** `eval` for the holder. */
  async evalNow(tokens: ArrayLike<number>, options: NowOptions = {}): Promise<void> {
    if (options.onLogits) requireAllLogits(this.runtime);
    this.#checkRoom(this.#rows.length, tokens.length);
    checkTokens(tokens, this.runtime);
    this.#dropAhead();
    await this.#compute(tokens, 0, options);
  }

  /** Forgets what was computed ahead, also by a step that was stopped before all of it was. */
  #dropAhead(): void {
    if (this.#ahead === 0 && this.#rows.count <= this.#rows.length) return;
    this.#ahead = 0;
    this.#rows.forget(this.#rows.length);
  }

  /** Computes rows again that are not there any more. */
  async #restoreRows(): Promise<void> {
    this.#dropAhead();
    if (this.#rows.count === this.#rows.length) return;
    const last = this.#rows.tokens.slice(this.#rows.length - 1, this.#rows.length);
    this.rewind(this.#rows.length - 1);
    await this.#compute(last, 0, {});
  }

  /**
   * Appends a token that was taken and, ahead of it, tokens that may follow, all in one step; for the holder. The
   * session then stands behind the first. `advance` goes on by one that was right; any other verb forgets the rest.
   *
   * @param tokens At most as many as a step may have rows with logits.
   */
  async checkNow(tokens: readonly number[], options: NowOptions = {}): Promise<void> {
    const { signal, best: wanted = WANTED.logits, priority = 0, meanwhile } = options;
    signal?.throwIfAborted();
    const count = tokens.length, position = this.#rows.length;
    this.#checkRoom(position, count);
    checkTokens(tokens, this.runtime);
    this.#dropAhead();
    this.#rows.takeBack();
    const checked = this.#checked ??= createRowResults(this.runtime);
    this.#isComputed = false;
    this.#best = undefined;
    this.#rows.write(tokens, { at: position });
    await this.runtime.queue.compute({
      ...{ tokens: this.#rows.tokens, start: 0, from: this.#rows.count, to: position + count },
      ...{ slot: this.#rows.slot, scales: this.#rows.scales, wanted, wantedRows: count },
      ...{ offsets: this.#rows.offsets, cut: this.#rows.cut },
      ...{ feedback: 0, priority, signal, meanwhile, ...this.#rows.holder },
      check: () => this.#checkStands(position),
      read: (executable, { from, to, row }) => {
        this.#rows.count = to;
        for (let i = Math.max(from, position); i < to; i++) {
          checked.keep(executable, i - position, row + i - from);
        }
      },
    });
    this.#rows.count = position;
    this.#ahead = count;
    this.#row = -1;
    this.advance();
  }

  /** Takes the next token that `checkNow` computed ahead; false if there is none any more. */
  advance(): boolean {
    if (this.#ahead === 0) return false;
    this.#behind = --this.#ahead;
    this.#row++;
    if (this.#rows.count === this.#rows.length) this.#rows.count++; // else others needed their room
    this.#rows.length++;
    this.#rows.noteNew(1);
    const checked = this.#checked!, best = checked.best(this.#row);
    if (best) this.#keepBest(best);
    else this.#keep(checked.logits(this.#row));
    this.#embedding?.set(checked.hidden(this.#row));
    return this.#isComputed = true;
  }

  async #compute(
    tokens: ArrayLike<number>,
    start: number,
    { signal, onLogits, onRows, best = WANTED.logits, ...options }: NowOptions & {
      /** Told how many rows there are. */
      readonly onRows?: (length: number) => void;
    },
  ): Promise<void> {
    const { feedback = 0, worth, allowed, priority = 0, meanwhile, onHidden, onPart } = options;
    const from = this.#rows.length, count = tokens.length - start, to = from + count;
    if (count === 0) return;
    signal?.throwIfAborted();
    this.#rows.write(tokens, { at: from, start });
    this.#isComputed = false;
    this.#best = undefined;
    this.#rows.takeBack();
    let length = from;
    await this.runtime.queue.compute({
      ...{ tokens: this.#rows.tokens, start: 0, from: this.#rows.count, to, slot: this.#rows.slot },
      ...{ scales: this.#rows.scales, wanted: onHidden ? WANTED.hidden : best },
      ...{ offsets: this.#rows.offsets, cut: this.#rows.cut },
      wantedRows: onLogits || onHidden ? count : 1,
      ...{ feedback, worth, allowed, priority, signal, meanwhile, ...this.#rows.holder },
      check: () => this.#checkStands(length),
      read: (executable, part) => {
        // Rows that were computed before have been told of.
        for (let row = Math.max(part.from, length); onLogits && row < part.to; row++) {
          onLogits(executable.logits(part.row + row - part.from), start + row - from);
        }
        for (let row = part.from; onHidden && row < part.to; row++) {
          onHidden(executable.hidden(part.row + row - part.from));
        }
        onPart?.(executable, part);
        this.#rows.count = part.to;
        length = this.#rows.length = Math.max(length, part.to);
        this.#rows.noteNew(part.to - part.from);
        onRows?.(part.to);
        if (part.to === to && !onHidden) this.#take(executable, part);
      },
    });
  }

  #take(executable: Executable, { row, from, to }: RowsPart): void {
    const last = row + to - from - 1;
    this.#isComputed = true;
    this.#behind = 0;
    this.#embedding?.set(executable.hidden(last));
    const best = executable.best(last);
    if (best) this.#keepBest(best);
    else this.#keep(executable.logits(last));
  }

  #keepBest({ ids, logits, count }: BestLogits): void {
    this.#bestRoom.ids.set(ids);
    this.#bestRoom.logits.set(logits);
    this.#bestRoom.count = count;
    this.#best = this.#bestRoom;
  }

  #keep(logits: Float32Array): void {
    this.#logits ??= new Float32Array(this.runtime.vocabulary);
    this.#logits.set(logits);
    this.#best = undefined;
  }

  // A device that has the best logits at once gives the others at once, until another step is run.
  #readAll(): void {
    const { executable } = this.runtime;
    const left = this.#best && executable.leftLogits(this.#rows.slot, this.#behind);
    if (left) this.#keep(left);
  }

  #setSourceLength(length: number): void {
    this.runtime.executable.sourceLengths?.fill(length, this.#rows.slot, this.#rows.slot + 1);
  }

  #check(): void {
    if (this.#isDisposed) throw new TypeError("Cannot use this session: it is disposed");
  }

  #checkStands(length: number): void {
    this.#check();
    if (this.#rows.length === length) return;
    throw new TypeError("Cannot go on: the session was rewound while it computed");
  }

  #checkComputed(what: string): void {
    this.#check();
    if (!this.#isComputed) {
      throw new TypeError(
        `Cannot give ${what}: the last of ${this.#rows.length} tokens has not been computed; call sync() or eval`,
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
    if (length + count > this.capacity) {
      throw noRoom(this.runtime, { length, count, most: this.capacity });
    }
  }
}
