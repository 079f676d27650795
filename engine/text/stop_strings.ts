// Stop texts in a stream of pieces: found across the borders of pieces, and never shown in part. The
// text ends where the first stop text that is completed begins; of several completed by the same
// character the longest counts. So the result does not depend on how the text was cut into pieces.
//
// An Aho-Corasick automaton (Aho, Corasick 1975) reads each character once. The depth of its state is
// the length of the longest end of the text that could begin a stop text: just that much is held back,
// and released as soon as it turns out to be something else, or when the stream ends for another reason.
// Matching is exact: no case folding, no normalization. Empty stop texts are ignored.

interface State {
  readonly depth: number;
  readonly next: Map<number, State>;
  fail: State | undefined;
  /** Length of the longest stop text that ends here; 0 for none. */
  matched: number;
}

/** Watches one stream for stop texts. */
export interface StopFilter {
  /** Takes the next piece and gives the text that may be shown. After a stop it gives nothing. */
  push(piece: string): string;
  /** Ends the stream and gives what was held back; nothing after a stop. */
  finish(): string;
  /** The stop text that was found. */
  readonly stoppedBy: string | undefined;
}

function createState(depth: number): State {
  return { depth, next: new Map(), fail: undefined, matched: 0 };
}

function buildAutomaton(stops: readonly string[]): State {
  const root = createState(0);
  const queue: State[] = [];
  for (const stop of stops) {
    let state = root;
    for (let i = 0; i < stop.length; i++) {
      const unit = stop.charCodeAt(i);
      let child = state.next.get(unit);
      if (child === undefined) state.next.set(unit, child = createState(i + 1));
      state = child;
    }
    if (state !== root) state.matched = stop.length;
  }
  for (const child of root.next.values()) {
    child.fail = root;
    queue.push(child);
  }
  for (let state = queue.shift(); state !== undefined; state = queue.shift()) {
    for (const [unit, child] of state.next) {
      child.fail = step(state.fail ?? root, unit, root);
      child.matched = Math.max(child.matched, child.fail.matched);
      queue.push(child);
    }
  }
  return root;
}

function step(from: State, unit: number, root: State): State {
  let state: State | undefined = from;
  while (state !== undefined) {
    const next = state.next.get(unit);
    if (next !== undefined) return next;
    state = state.fail;
  }
  return root;
}

/** Starts watching a stream. */
export function createStopFilter(stops: readonly string[]): StopFilter {
  const root = buildAutomaton(stops);
  let state = root;
  let held = "";
  let stoppedBy: string | undefined;

  return {
    push(piece) {
      if (stoppedBy !== undefined) return "";
      for (let i = 0; i < piece.length; i++) {
        state = step(state, piece.charCodeAt(i), root);
        if (state.matched === 0) continue;
        const text = held + piece.slice(0, i + 1);
        stoppedBy = text.slice(text.length - state.matched);
        held = "";
        return text.slice(0, text.length - state.matched);
      }
      const text = held + piece;
      held = text.slice(text.length - state.depth);
      return text.slice(0, text.length - state.depth);
    },
    finish() {
      const rest = held;
      held = "";
      return rest;
    },
    get stoppedBy() {
      return stoppedBy;
    },
  };
}
