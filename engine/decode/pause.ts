// Lets timers, I/O and other generations run between two steps. A step keeps the thread for
// milliseconds and awaiting a settled promise does not let events through, so an AbortSignal that fires
// from a timer or a closed connection would never be seen. setImmediate costs 11 µs a turn in Deno, a zero
// timeout 2 ms.

type Immediate = (callback: () => void) => unknown;

/** Resolves after pending events have been served. */
export function pause(): Promise<void> {
  const later = (globalThis as { setImmediate?: Immediate }).setImmediate ?? setTimeout;
  return new Promise((resolve) => {
    (later as Immediate)(resolve);
  });
}
