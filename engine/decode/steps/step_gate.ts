// What the queues of a model's lanes (../step_queue.ts) have in common where a device of theirs may go away, a process of its own
// for one: when a step fails because of that, no other begins, those under way are waited for, something is put in its
// place, and all rows of sessions are forgotten. Who has lost rows computes them again from his tokens, as when others
// needed the room, so an answer is the same and only comes later.

import { DeviceError } from "../../errors.ts";
import type { Executable } from "../../run/executable.ts";
import type { CacheRoom } from "../cache_room.ts";

/** So many times in a row, without a step that succeeds, something is put in the place of what is gone. */
const MOST_TRIES = 2;

/** Lets steps begin. */
export class StepGate {
  readonly #replace: () => Promise<boolean>;
  readonly #caches: Pick<CacheRoom, "forgetAll">;
  #underWay = 0;
  #tries = 0;
  #repair: Promise<boolean> | undefined;
  #noneIsUnderWay: (() => void) | undefined;

  constructor(replace: () => Promise<boolean>, caches: Pick<CacheRoom, "forgetAll">) {
    this.#replace = replace;
    this.#caches = caches;
  }

  /** Waits until a step may begin, which then is under way. */
  async enter(): Promise<void> {
    while (this.#repair) await this.#repair;
    this.#underWay++;
  }

  /** It is over. */
  leave(): void {
    if (--this.#underWay === 0) this.#noneIsUnderWay?.();
  }

  /** A step of a whole model has succeeded. */
  succeeded(): void {
    this.#tries = 0;
  }

  /** To be called by who is under way. Whether what failed with this error may be done again: there are no rows any more. */
  async repair(error: unknown): Promise<boolean> {
    if (!(error instanceof DeviceError)) return false;
    this.leave();
    this.#repair ??= this.#repairAll().finally(() => this.#repair = undefined);
    try {
      return await this.#repair;
    } finally {
      this.#underWay++;
    }
  }

  async #repairAll(): Promise<boolean> {
    if (this.#tries === MOST_TRIES) return false;
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#noneIsUnderWay = resolve);
    this.#noneIsUnderWay = undefined;
    if (!await this.#replace()) return false;
    this.#tries++;
    this.#caches.forgetAll();
    return true;
  }
}

/** The gate of an executable; undefined: what is gone stays so, or rows cannot be computed again, as those of a source. */
export function gateOf(
  { replace, sourceLengths }: Pick<Executable, "replace" | "sourceLengths">,
  caches: CacheRoom,
): StepGate | undefined {
  return replace && !sourceLengths ? new StepGate(replace, caches) : undefined;
}
