// The places of beams in an encoder-decoder. The source is encoded once, into a session of its own, and all
// beams look at it there; each beam has a slot for what it wrote. When beams change parents, a beam stays in
// its parent's slot where it can, and otherwise shares the pages of it. All beams are rows of one step.

import { ResourceError } from "../errors.ts";
import { WANTED } from "../run/step.ts";
import type { LoadedModel } from "./loaded_model.ts";
import type { BeamStep } from "./beam_search.ts";
import type { Runtime } from "./runtime.ts";
import type { TimelineSession } from "./timeline_session.ts";

/** Beams of one source. */
export interface BeamSlots extends Disposable {
  /** Computes the prefix of the target; gives the logits after it. */
  begin(prefix: readonly number[]): Promise<Float32Array>;
  /** Lengthens beams, see `searchBeams`. */
  step(beams: readonly BeamStep[]): Promise<readonly Float32Array[]>;
}

/**
 * Opens places for beams and encodes the source.
 *
 * @throws {ResourceError} If the model has fewer sessions than beams and one, or they are in use.
 */
export async function openBeams(
  model: LoadedModel,
  { tokens, beams, scales, signal }: {
    readonly tokens: readonly number[];
    readonly beams: number;
    /** Of adapters, by index. */
    readonly scales: readonly number[];
    readonly signal: AbortSignal | undefined;
  },
): Promise<BeamSlots> {
  const { runtime } = model;
  if (runtime.memory.sessions < beams + 1) {
    throw new ResourceError(
      `${beams} beams need ${beams + 1} sessions, and the model has ${runtime.memory.sessions}`,
      { file: runtime.name, remedy: `Load it with sessions: ${beams + 1}` },
    );
  }
  const sessions: TimelineSession[] = [];
  let isClosed = false;
  const close = () => {
    isClosed = true;
    sessions.forEach((session) => session.dispose());
  };
  try {
    while (sessions.length <= beams) sessions.push(model.createSession() as TimelineSession);
    sessions.forEach((session) => session.useScales(scales));
    await sessions[0]!.encode(tokens, { signal });
  } catch (error) {
    close();
    throw error;
  }
  const memory = sessions[0]!.slot;
  const slots = sessions.slice(1).map(({ slot }) => slot);
  let places: number[] = []; // slot of each beam
  let length = 0;

  async function begin(prefix: readonly number[]): Promise<Float32Array> {
    places = [slots[0]!];
    const logits = await compute(prefix, { position: 0, slot: slots[0]! });
    length = prefix.length;
    return logits;
  }

  async function step(next: readonly BeamStep[]): Promise<readonly Float32Array[]> {
    const moved = place(next, { places, slots });
    for (const { from, to } of moved.copies) await fork(runtime, { from, to, length });
    places = moved.places;
    const logits = await Promise.all(
      next.map(({ token }, beam) => compute([token], { position: length, slot: places[beam]! })),
    );
    length++;
    return logits;
  }

  /** Logits behind tokens, copied. */
  async function compute(
    tokens: readonly number[],
    { position, slot }: { readonly position: number; readonly slot: number },
  ): Promise<Float32Array> {
    let logits = new Float32Array(0);
    await runtime.queue.compute({
      ...{ tokens, from: 0, to: tokens.length, start: position, slot, source: memory, scales },
      ...{ wanted: WANTED.logits, wantedRows: 1, feedback: 0, priority: 0, signal },
      // Of beams whose step has failed others may wait still, and their slots are somebody else's by then.
      check() {
        if (isClosed) throw new TypeError("Cannot go on: the beams were closed");
      },
      read(executable, { row, from, to }) {
        if (to === tokens.length) logits = executable.logits(row + to - 1 - from).slice();
      },
    });
    return logits;
  }

  return { begin, step, [Symbol.dispose]: close };
}

/** Slots of new beams, and which must be forked first. */
export function place(
  next: readonly BeamStep[],
  { places, slots }: { readonly places: readonly number[]; readonly slots: readonly number[] },
): { places: number[]; copies: { from: number; to: number }[] } {
  const parents = new Set(next.map(({ parent }) => places[parent]!));
  const free = slots.filter((slot) => !parents.has(slot));
  const taken = new Set<number>();
  const copies: { from: number; to: number }[] = [];
  const result = next.map(({ parent }) => {
    const from = places[parent]!;
    if (!taken.has(from)) {
      taken.add(from);
      return from;
    }
    const to = free.pop()!;
    copies.push({ from, to });
    return to;
  });
  return { places: result, copies };
}

async function fork(
  { executable, queue }: Runtime,
  { from, to, length }: { readonly from: number; readonly to: number; readonly length: number },
): Promise<void> {
  await queue.between(() => executable.rows.fork({ slot: from, length }, to));
}
