// Waiting for Dawn's results. While one is awaited, Dawn looks for it in every turn of the event loop, some 20 µs apart, and
// leaves a function behind each time. Deno takes a time that grows with the square of their number to let go of those that
// a collection finds, on the main thread: seconds after a few long prompts. So the loop naps between turns, the longer the
// longer it has waited: a sixteenth of that, which is what a result is late at most.

/** Share of a wait that a nap takes, and its bounds in milliseconds. */
const NAP = { share: 1 / 16, least: 0.1, most: 2 };
/** Milliseconds after which a turn comes if nothing else causes one: Deno's loop has been seen to sleep over such turns. */
const BEAT = 5;

/** A class of buffers that are mapped. */
export interface Mappable {
  readonly prototype: { mapAsync(...args: unknown[]): Promise<void> };
}

const known = new WeakSet<Mappable>();

/** Lets mappings of a class of buffers be waited for with few turns of the event loop, from now on. */
export function napWhileMapping(buffers: Mappable): void {
  if (known.has(buffers)) return;
  known.add(buffers);
  const { prototype } = buffers, { mapAsync } = prototype;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let waiting = 0, since = 0, isNapping = false;
  let beat: ReturnType<typeof setInterval> | undefined;

  function nap(): void {
    isNapping = waiting > 0;
    if (!isNapping) return;
    const { share, least, most } = NAP;
    const length = Math.min(most, Math.max(least, share * (performance.now() - since)));
    Atomics.wait(cell, 0, 0, length);
    setImmediate(nap);
  }

  function begin(): void {
    since = performance.now();
    if (waiting++ === 0) beat = setInterval(() => {}, BEAT);
    if (!isNapping) setImmediate(nap);
    isNapping = true;
  }

  function end(): void {
    since = performance.now();
    if (--waiting === 0) clearInterval(beat);
  }

  prototype.mapAsync = function (this: unknown, ...args) {
    const mapped = mapAsync.apply(this as Mappable["prototype"], args);
    begin();
    mapped.then(end, end);
    return mapped;
  };
}
