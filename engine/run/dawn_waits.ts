// Waiting for Dawn's results. Dawn looks for what has been done in a turn of the event loop and asks `setImmediate` for the next
// one while something is awaited, some 20 µs apart; each look leaves a function behind, and Deno takes a time that grows
// with the square of their number to let go of those that a collection finds, on the main thread: seconds after a few long
// prompts. So looks are few here. Between turns of the loop it naps, the longer the longer it has waited. And who takes the
// range of a buffer that is still being mapped, which is an error elsewhere, gets it as soon as the GPU has done its work,
// without any turn of the loop, as Deno's own WebGPU does it (gpu/readback.ts finds that out): a wait like the one before
// it sleeps until shortly before that was over, and only then looks, at most a hundredth of the wait apart.

/** Share of a wait that a nap between turns takes, and its bounds in milliseconds. */
const NAP = { share: 1 / 16, least: 0.1, most: 2 };
/** Milliseconds after which a turn comes if nothing else causes one: Deno's loop has been seen to sleep over such turns. */
const BEAT = 5;
/** Share of a wait between two looks without turns, and the milliseconds that are least. */
const PACE = { share: 1 / 100, least: 0.02 };
/** Share of the wait before that is slept away. */
const SLEPT = 7 / 8;
/** Milliseconds that a sleep is late at most, usually. */
const LATE = 0.1;

/** A class of buffers that are mapped. */
export interface Mappable {
  readonly prototype: Pick<GPUBuffer, "getMappedRange" | "mapState">;
}

type Task = (...args: unknown[]) => void;

const cell = new Int32Array(new SharedArrayBuffer(4));
/** Milliseconds that the last wait for a buffer took, if it may be relied on. */
const lastWaits = new WeakMap<object, number>();
/** What Dawn wants to be called in the next turn. */
let look: Task | undefined;
let isInstalled = false;

/**
 * Lets a class of buffers be waited for with few looks, from now on.
 *
 * @param isLook Whether what is given to `setImmediate` looks for events.
 */
export function waitWithFewLooks(
  { prototype }: Mappable,
  isLook: (task: Task) => boolean = isNative,
): void {
  if (!isInstalled) takeTurns(isLook);
  isInstalled = true;
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
    if (look) Atomics.wait(cell, 0, 0, Math.min(NAP.most, length));
    lookNow();
    isTaken = look !== undefined;
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
    look = task;
    if (isTaken) return undefined;
    isTaken = true;
    since = performance.now();
    return plain(turn);
  }

  Object.assign(globalThis, { setImmediate });
}

function lookNow(): void {
  const task = look;
  look = undefined;
  task?.();
}

/** Waits until a buffer is mapped, or will not be. */
function settle(buffer: GPUBuffer): void {
  const since = performance.now(), slept = SLEPT * (lastWaits.get(buffer) ?? 0);
  if (slept > LATE) Atomics.wait(cell, 0, 0, slept - LATE);
  let looks = 0;
  while (buffer.mapState === "pending" && look) {
    if (looks++ > 0) pause(Math.max(PACE.least, PACE.share * (performance.now() - since)));
    lookNow();
  }
  // What was over before the first look says nothing of the next one.
  if (looks > 1) lastWaits.set(buffer, performance.now() - since);
  else lastWaits.delete(buffer);
}

function pause(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  if (milliseconds > 2 * LATE) Atomics.wait(cell, 0, 0, milliseconds - LATE);
  while (performance.now() < end);
}
