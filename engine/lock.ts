// First come, first served. A session is one timeline and a model one executable: whoever calls while
// another call runs waits its turn instead of failing or reading foreign logits.

/** Hands the lock to the next in line, as its disposal does. Calling it twice does nothing. */
export type Release = (() => void) & Disposable;

/** A queue for one thing at a time. */
export interface Lock {
  /** Resolves when it is the caller's turn. Rejects with the signal's reason if that fires first. */
  acquire(signal?: AbortSignal): Promise<Release>;
}

/** A free lock. */
export function createLock(): Lock {
  const waiting: (() => void)[] = [];
  let held = false;

  function release(): void {
    const next = waiting.shift();
    if (next) next();
    else held = false;
  }

  function once(): Release {
    let done = false;
    const own = () => {
      if (!done) release();
      done = true;
    };
    return Object.assign(own, { [Symbol.dispose]: own });
  }

  return {
    async acquire(signal) {
      signal?.throwIfAborted();
      if (!held) {
        held = true;
        return once();
      }
      await new Promise<void>((resolve, reject) => {
        const turn = () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        };
        const leave = () => {
          waiting.splice(waiting.indexOf(turn), 1);
          reject(signal!.reason);
        };
        signal?.addEventListener("abort", leave, { once: true });
        waiting.push(turn);
      });
      return once();
    },
  };
}
