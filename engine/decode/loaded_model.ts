// A model in memory. Immutable to its users; what changes are the sessions it hands out. Generations that
// are started on the model itself borrow a session for their time and wait for each other when there are
// fewer places than callers (admission.ts).

import { Admission } from "./admission.ts";
import { type AdapterInfo, checkContinues, type Runtime } from "./runtime.ts";
import type { Session } from "./session.ts";
import { TimelineSession } from "./timeline_session.ts";
import { ResourceError } from "../errors.ts";
import type { DeviceName, StreamingFigures } from "../run/backend.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { ModelMemory } from "./memory.ts";
import type { Model, ModelActivity, ModelInfo, PlanSummary } from "./model.ts";

/** Facts that are not in the runtime. */
export interface ModelFacts {
  readonly info: ModelInfo;
  readonly device: DeviceName;
  /** What is to be said about the device. */
  readonly notes: readonly string[];
}

/** The one implementation of Model. */
export class LoadedModel implements Model {
  readonly runtime: Runtime;
  readonly info: ModelInfo;
  readonly device: DeviceName;
  readonly notes: readonly string[];
  readonly #open = new Set<TimelineSession>();
  readonly #door = new Admission();
  readonly #own = new DisposableStack();
  #borrowed = 0;
  #isDisposed = false;

  constructor(runtime: Runtime, { info, device, notes }: ModelFacts) {
    this.runtime = runtime;
    this.info = info;
    this.device = device;
    this.notes = notes;
    runtime.caches.onChange(() => this.#door.look());
  }

  get name(): string {
    return this.runtime.name;
  }

  get tokenizer(): Tokenizer {
    return this.runtime.tokenizer();
  }

  get chatTemplate(): ChatTemplate | undefined {
    return this.runtime.chatTemplate;
  }

  get threads(): number {
    return this.runtime.executable.threads ?? 1;
  }

  get loadMs(): number {
    return this.runtime.loadMs;
  }

  get memory(): ModelMemory {
    return this.runtime.memory;
  }

  get activity(): ModelActivity {
    const { queue, executable: { rows } } = this.runtime;
    return {
      ...{ running: this.#borrowed, waiting: this.#door.length, ...queue.counts },
      cacheRows: rows.poolTokens - rows.freeTokens,
    };
  }

  get plan(): PlanSummary {
    return this.runtime.executable.plan;
  }

  get adapters(): readonly AdapterInfo[] {
    return this.runtime.adapters;
  }

  streaming(): StreamingFigures | undefined {
    return this.runtime.executable.streaming?.();
  }

  /** Disposes of something with the model. */
  use(own: Disposable): void {
    this.#own.use(own);
  }

  createSession(): Session {
    return this.#createSession();
  }

  /**
   * A session for one generation, when there is a place and room in the caches for its prompt.
   *
   * @param length Tokens of the prompt.
   * @throws {ResourceError} If all places are taken by sessions of the user.
   */
  async borrow(
    length: number,
    options: { readonly priority: number; readonly signal: AbortSignal },
  ): Promise<TimelineSession> {
    const { caches, capacity, executable } = this.runtime;
    const needed = length > Math.min(capacity, executable.rows.poolTokens) ? 0 : length; // a session says what is wrong
    return await this.#door.enter(() => {
      if (!caches.hasRoom(needed)) return undefined;
      try {
        const session = this.#createSession(() => this.#borrowed--);
        this.#borrowed++;
        return session;
      } catch (error) {
        if (!(error instanceof ResourceError) || this.#borrowed === 0) throw error;
      }
      return undefined;
    }, options);
  }

  /** @throws {TypeError} If it is disposed. */
  checkUsable(): void {
    if (this.#isDisposed) throw new TypeError(`Cannot use model ${this.name}: it is disposed`);
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const session of this.#open) session.dispose();
    this.runtime.executable.dispose();
    this.runtime.sight?.dispose();
    this.#own.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #createSession(onDispose: () => void = () => {}): TimelineSession {
    this.checkUsable();
    checkContinues(this.runtime);
    const session = new TimelineSession(this.runtime, () => {
      this.#open.delete(session);
      onDispose();
      this.#door.look();
    });
    this.#open.add(session);
    return session;
  }
}
