// The suffix automaton of a list of tokens (Blumer et al. 1985): the smallest machine that knows all of its substrings,
// made token by token. It is the suffix tree with alike parts put together, at most two states and three transitions a
// token, and says at once which is the longest end of a text that stands in the list, and where. All lies in typed
// arrays, transitions in one hash table, so that a hundred thousand tokens take 6 MB.

/** An automaton over a list of tokens. */
export interface SuffixAutomaton {
  /** Most tokens of the list. */
  readonly capacity: number;
  /** Tokens of the list so far. */
  readonly length: number;
  /** Appends a token. */
  append(token: number): void;
  /** A walk through the list along a text. */
  follow(): Follower;
  /** The token at a place of the list. */
  at(index: number): number;
}

/** Knows the longest end of a text that stands in the list. */
export interface Follower {
  /** Appends a token to the text. */
  push(token: number): void;
  /** Length of that end; 0: not even the last token is there. */
  readonly matched: number;
  /** The place in the list behind its first occurrence. */
  readonly place: number;
}

/** Makes an empty automaton. */
export function createSuffixAutomaton(capacity: number): SuffixAutomaton {
  const states = 2 * capacity + 2;
  const list = new Int32Array(capacity);
  const longest = new Int32Array(states);
  const link = new Int32Array(states).fill(-1);
  /** Place behind the first occurrence of a state's substrings. */
  const place = new Int32Array(states);
  const edges = createEdges(4 * capacity + 8, states);
  let count = 1, last = 0, length = 0;

  function add(length: number, behind: number): number {
    longest[count] = length;
    place[count] = behind;
    return count++;
  }

  function copyOf(state: number, length: number): number {
    const copy = add(length, place[state]!);
    link[copy] = link[state]!;
    edges.copy(state, copy);
    return copy;
  }

  /** Where the substrings of `from`, made longer by the token, are. */
  function targetOf(from: number, token: number): number {
    const next = edges.get(from, token);
    if (longest[next] === longest[from]! + 1) return next;
    const copy = copyOf(next, longest[from]! + 1);
    link[next] = copy;
    for (let at = from; at >= 0 && edges.get(at, token) === next; at = link[at]!) {
      edges.set(at, token, copy);
    }
    return copy;
  }

  return {
    capacity,
    get length() {
      return length;
    },
    at: (index) => list[index]!,
    append(token) {
      list[length++] = token;
      const state = add(length, length);
      let at = last;
      for (; at >= 0 && edges.get(at, token) < 0; at = link[at]!) edges.set(at, token, state);
      link[state] = at < 0 ? 0 : targetOf(at, token);
      last = state;
    },
    follow() {
      let state = 0, matched = 0;
      return {
        push(token) {
          while (state > 0 && edges.get(state, token) < 0) {
            state = link[state]!;
            matched = longest[state]!;
          }
          const next = edges.get(state, token);
          if (next < 0) return;
          state = next;
          matched++;
        },
        get matched() {
          return matched;
        },
        get place() {
          return place[state]!;
        },
      };
    },
  };
}

/** Transitions by state and token, each state's own also as a chain. */
function createEdges(most: number, stateCount: number) {
  let size = 2;
  while (size < 2 * most) size *= 2;
  const mask = size - 1;
  /** By cell: state + 1, token, target, next cell of the state. */
  const states = new Int32Array(size), tokens = new Int32Array(size);
  const targets = new Int32Array(size), nexts = new Int32Array(size);
  const firsts = new Int32Array(stateCount).fill(-1);

  function cellOf(state: number, token: number): number {
    let hash = Math.imul(state, 0x9e3779b1) ^ Math.imul(token, 0x85ebca6b);
    hash ^= hash >>> 15;
    let cell = hash & mask;
    while (states[cell] !== 0 && (states[cell] !== state + 1 || tokens[cell] !== token)) {
      cell = cell + 1 & mask;
    }
    return cell;
  }

  function set(state: number, token: number, target: number): void {
    const cell = cellOf(state, token);
    if (states[cell] === 0) {
      states[cell] = state + 1;
      tokens[cell] = token;
      nexts[cell] = firsts[state]!;
      firsts[state] = cell;
    }
    targets[cell] = target;
  }

  return {
    set,
    get(state: number, token: number): number {
      const cell = cellOf(state, token);
      return states[cell] === 0 ? -1 : targets[cell]!;
    },
    copy(from: number, to: number): void {
      for (let cell = firsts[from]!; cell >= 0; cell = nexts[cell]!) {
        set(to, tokens[cell]!, targets[cell]!);
      }
    },
  };
}
