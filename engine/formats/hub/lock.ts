// One process at a time per model. The lock belongs to the open file, so the system releases it when a
// process ends in whatever way: there are no stale locks. The file itself stays, since removing it would
// let two processes lock two files of the same name.

import { sleep } from "./retry.ts";

const POLL_MS = 200;

/**
 * Waits until no other process holds the lock.
 *
 * @param onWait Called once if somebody else holds it.
 * @returns The lock; disposing of it lets the next one in.
 */
export async function acquireLock(
  path: string,
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly onWait?: (() => void) | undefined;
  } = {},
): Promise<Disposable> {
  const file = await Deno.open(path, { create: true, write: true });
  try {
    for (let tries = 0; !await file.tryLock(true); tries++) {
      if (tries === 0) options.onWait?.();
      await sleep(POLL_MS, options.signal);
    }
  } catch (error) {
    file.close();
    throw error;
  }
  return { [Symbol.dispose]: () => file.close() };
}

/** Takes the lock if it is free. */
export async function tryAcquireLock(path: string): Promise<Disposable | undefined> {
  const file = await Deno.open(path, { create: true, write: true });
  if (await file.tryLock(true)) return { [Symbol.dispose]: () => file.close() };
  file.close();
  return undefined;
}
