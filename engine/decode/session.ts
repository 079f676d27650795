// What a session is: the one mutable thing, a timeline of tokens with its key/value cache. Everything that
// makes text uses only these verbs, so prefix reuse, rewinding and saving behave the same everywhere. Two
// calls on one session run one after the other, in the order of the calls. The implementation is in
// timeline_session.ts.

/**
 * Options of the verbs that compute.
 * @category Sessions
 */
export interface StepOptions {
  /** Stops between two chunks; what was computed stays valid. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Options of {@linkcode Session.eval}.
 * @category Sessions
 */
export interface EvalOptions extends StepOptions {
  /**
   * Gets the logits after every token, in order. The view is valid during the call only. Chunks are no
   * longer than the model's `logitRows`.
   */
  readonly onLogits?: (logits: Float32Array, index: number) => void;
}

/**
 * One timeline of tokens on a model.
 * @category Sessions
 */
export interface Session {
  /** The tokens so far (a copy). A number below 0 stands for a row of a picture, for this model as long as it is loaded. */
  readonly tokens: readonly number[];
  /** Number of tokens so far. */
  readonly length: number;
  /** Most tokens it can hold. */
  readonly capacity: number;
  /**
   * Makes the timeline equal `tokens`. The common prefix is kept and the rest computed; if all tokens are
   * there already, the last one is computed again, so that the logits are those after `tokens`. Without
   * `tokens` it is the timeline as it is: what `load` and `rewind` leave has logits afterwards.
   *
   * @returns How many tokens were kept.
   * @throws {ResourceError} If they are more than `capacity`. @throws {RangeError} On a bad id.
   */
  sync(tokens?: ArrayLike<number>, options?: StepOptions): Promise<number>;
  /**
   * Appends tokens.
   *
   * @throws {ResourceError} If they do not fit. @throws {RangeError} On a bad id.
   */
  eval(tokens: ArrayLike<number>, options?: EvalOptions): Promise<void>;
  /**
   * Forgets all tokens from `length` on; immediate.
   *
   * @throws {RangeError} If `length` is not between 0 and the present length.
   */
  rewind(length: number): void;
  /**
   * Logits after the last token, `vocabulary` long. The same array each time: the next step
   * overwrites it. Of a model that gives out the best few only, the others are -Infinity.
   *
   * @throws {TypeError} If the last token was not computed in this session (empty, rewound, loaded).
   */
  logits(): Float32Array;
  /**
   * State of the last position after the final norm, `hidden` long; for models loaded with
   * `embeddings: true`. Overwritten by the next step.
   *
   * @throws {TypeError} If the model was loaded without, or as for `logits`.
   */
  embedding(): Float32Array;
  /**
   * Reads a source, for an encoder-decoder: forgets all tokens, runs the encoder once, and keeps what the
   * decoder sees of it. What `sync` and `eval` take afterwards are tokens of the target.
   *
   * @throws {TypeError} If the model has no encoder. @throws {ResourceError} If the source is too long.
   */
  encode(source: ArrayLike<number>, options?: StepOptions): Promise<void>;
  /**
   * Says how much each adapter counts from now on, by name; those not named count nothing. Keys and values
   * depend on it: where it changes something, all tokens are forgotten.
   *
   * @throws {RangeError} If the model was loaded without an adapter of that name.
   */
  useAdapters(scales: Readonly<Record<string, number>>): void;
  /**
   * Tokens and cache, with what an encoder-decoder sees of its source, as bytes that
   * {@linkcode Session.load} takes back on the same model.
   */
  save(): Promise<Uint8Array>;
  /**
   * Puts back what `save` gave. `logits()` is available after the next `sync` or `eval`.
   *
   * @throws {FormatError} If the bytes are cut, changed, or of another model, precision or version.
   * @throws {ResourceError} If they hold more tokens than `capacity`.
   */
  load(bytes: Uint8Array): Promise<void>;
  /** Frees its place in the model. Later calls throw a TypeError. */
  dispose(): void;
  /** The same as `dispose()`. */
  [Symbol.dispose](): void;
}
