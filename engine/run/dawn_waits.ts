// Waiting for Dawn's results. Dawn looks for what has been done in a turn of the event loop and asks `setImmediate` for the next
// one while something is awaited, some 20 µs apart; each look leaves a function behind, and Deno takes a time that grows
// with the square of their number to let go of those that a collection finds, on the main thread: seconds after a few long
// prompts. So looks are few here: the longer a wait has taken, the farther apart, and close to each other about the time
// that the wait before took. Between turns of the loop it naps meanwhile. And who takes the range of a buffer that is still
// being mapped, which is an error elsewhere, gets it as soon as the GPU has done its work, without any turn of the loop, as
// Deno's own WebGPU does it (gpu/readback.ts finds that out).

/** Share of a wait that a nap between turns takes, and its bounds in milliseconds. */
const NAP = { share: 1 / 16, least: 0.1, most: 2 };
/** Milliseconds after which a turn comes if nothing else causes one: Deno's loop has been seen to sleep over such turns. */
const BEAT = 5;
/** The same between looks without turns, and of those about the time that the wait before took. */
const PAUSE = { share: 1 / 12, least: 0.05 }, CLOSE = { share: 1 / 100, least: 0.02 };
/** Where looks are close: parts of the wait before. */
const DUE = { from: 7 / 8, to: 9 / 8 };
/** Milliseconds that a sleep is late at most, usually. */
const LATE = 0.1;

/** A class of buffers that are mapped. */
export interface Mappable {
  readonly prototype: Pick<GPUBuffer, "getMappedRange" | "mapState">;
}

type Task = (...args: unknown[]) => void;

const cell = new Int32Array(new SharedArrayBuffer(4));
/** Milliseconds that the last wait for a buffer took. */
const lastWaits = new WeakMap<object, number>();
/** What Dawn wants to be called in the next turn: one thing of a process, as `setImmediate` is. */
const wanted: { look: Task | undefined; isInstalled: boolean } = {
  look: undefined,
  isInstalled: false,
};

/**
 * Lets a class of buffers be waited for with few looks, from now on.
 *
 * @param isLook Whether what is given to `setImmediate` looks for events.
 */
export function waitWithFewLooks(
  { prototype }: Mappable,
  isLook: (task: Task) => boolean = isNative,
): void {
  if (!wanted.isInstalled) takeTurns(isLook);
  wanted.isInstalled = true;
  const { getMappedRange } = prototype;
  prototype.getMappedRange = function (this: GPUBuffer, ...args) {
    if (this.mapState === "pending") settle(this);
    return getMappedRange.apply(this, args);
  };
}

/** Functions that a library of Node's interface makes: unlike bound ones they have a prototype. */
function isNative(task: Task): boolean {
  return task.name === "" && Object.hasOwn(task, "prototype") && /\[native code\]/.test(`${task}`);
}

/** Keeps looks, and naps before each that a turn is taken for. */
function takeTurns(isLook: (task: Task) => boolean): void {
  const plain = globalThis.setImmediate as (task: Task, ...args: unknown[]) => unknown;
  let isTaken = false, since = 0;
  let beat: ReturnType<typeof setInterval> | undefined;

  function turn(): void {
    const length = Math.max(NAP.least, NAP.share * (performance.now() - since));
    if (wanted.look) Atomics.wait(cell, 0, 0, Math.min(NAP.most, length));
    lookNow();
    isTaken = wanted.look !== undefined;
    if (isTaken) {
      beat ??= setInterval(() => {}, BEAT);
      plain(turn);
    } else {
      clearInterval(beat);
      beat = undefined;
    }
  }

  function setImmediate(task: Task, ...args: unknown[]): unknown {
    if (!isLook(task)) return plain(task, ...args);
    wanted.look = task;
    if (isTaken) return undefined;
    isTaken = true;
    since = performance.now();
    return plain(turn);
  }

  Object.assign(globalThis, { setImmediate });
}

function lookNow(): void {
  const task = wanted.look;
  wanted.look = undefined;
  task?.();
}

/** Waits until a buffer is mapped, or will not be. */
function settle(buffer: GPUBuffer): void {
  const start = performance.now(), expected = lastWaits.get(buffer) ?? 0;
  const due = DUE.from * expected;
  let waited = 0;
  lookNow();
  while (buffer.mapState === "pending" && wanted.look) {
    const { share, least } = waited >= due && waited < DUE.to * expected ? CLOSE : PAUSE;
    const length = Math.max(least, share * waited);
    pause(waited < due ? Math.min(length, due - waited) : length);
    lookNow();
    waited = performance.now() - start;
  }
  lastWaits.set(buffer, waited);
}

function pause(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  if (milliseconds > 2 * LATE) Atomics.wait(cell, 0, 0, milliseconds - LATE);
  while (performance.now() < end);
}
