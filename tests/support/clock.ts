// Time that stands still unless a test moves it, and turns of the event loop that are counted.

/** A clock in a test's hands. */
export interface Clock {
  /** What `performance.now` says. */
  now: number;
  /** Milliseconds that go by at each look at it. */
  step: number;
  /** Turns that were asked for. */
  turns: number;
  /** Called in each turn. */
  onTurn: () => unknown;
}

/** No clock goes back, also from one test to the next; and between them is a while. */
let latest = 0;

/** Does something by such a clock. */
export async function withClock<T>(action: (clock: Clock) => Promise<T>): Promise<T> {
  const { setImmediate } = globalThis, { now } = performance;
  const start = Math.max(latest, now.call(performance)) + 1000;
  const clock: Clock = { now: start, step: 0, turns: 0, onTurn: () => {} };
  performance.now = () => clock.now += clock.step;
  globalThis.setImmediate = ((callback: () => void) => {
    clock.turns++;
    clock.onTurn();
    return setImmediate(callback);
  }) as typeof setImmediate;
  try {
    return await action(clock);
  } finally {
    latest = clock.now;
    performance.now = now;
    globalThis.setImmediate = setImmediate;
  }
}
