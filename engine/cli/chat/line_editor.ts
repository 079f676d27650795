// A one-line editor with history, as a function of state and key: it knows nothing of a terminal, so
// tests drive it with keys. The screen shows one row; a line longer than the row scrolls sideways.
// Line ends inside a pasted text are kept and shown as ↵.

import type { Key } from "./keys.ts";

/** Text, cursor (in code points) and place in the history. */
export interface EditorState {
  readonly characters: readonly string[];
  readonly cursor: number;
  /** Index in the history, or its length for the line being written. */
  readonly place: number;
  /** The line being written, kept while the history is looked at. */
  readonly draft: string;
}

/** An empty line. */
export function emptyLine(history: readonly string[]): EditorState {
  return { characters: [], cursor: 0, place: history.length, draft: "" };
}

function show(state: EditorState, history: readonly string[], place: number): EditorState {
  if (place < 0 || place > history.length) return state;
  const draft = state.place === history.length ? state.characters.join("") : state.draft;
  const characters = [...(place === history.length ? draft : history[place]!)];
  return { characters, cursor: characters.length, place, draft };
}

function splice(
  state: EditorState,
  { from, to, text = "" }: {
    readonly from: number;
    readonly to: number;
    readonly text?: string | undefined;
  },
): EditorState {
  const insert = [...text];
  const { characters } = state;
  return {
    ...state,
    characters: [...characters.slice(0, from), ...insert, ...characters.slice(to)],
    cursor: from + insert.length,
  };
}

/** Start of the word before the cursor. */
function wordStart({ characters, cursor }: EditorState): number {
  let at = cursor;
  while (at > 0 && characters[at - 1] === " ") at--;
  while (at > 0 && characters[at - 1] !== " ") at--;
  return at;
}

/** The state after a key; keys without an editing meaning change nothing. */
export function edit(
  state: EditorState,
  { key, history }: { readonly key: Key; readonly history: readonly string[] },
): EditorState {
  const { characters, cursor } = state;
  const end = characters.length;
  switch (key.name) {
    case "text":
      return splice(state, { from: cursor, to: cursor, text: key.text });
    case "backspace":
      return cursor > 0 ? splice(state, { from: cursor - 1, to: cursor }) : state;
    case "delete":
      return cursor < end ? { ...splice(state, { from: cursor, to: cursor + 1 }), cursor } : state;
    case "kill-line":
      return splice(state, { from: 0, to: cursor });
    case "kill-rest":
      return splice(state, { from: cursor, to: end });
    case "kill-word":
      return splice(state, { from: wordStart(state), to: cursor });
    case "left":
      return { ...state, cursor: Math.max(0, cursor - 1) };
    case "right":
      return { ...state, cursor: Math.min(end, cursor + 1) };
    case "home":
      return { ...state, cursor: 0 };
    case "end":
      return { ...state, cursor: end };
    case "up":
      return show(state, history, state.place - 1);
    case "down":
      return show(state, history, state.place + 1);
    default:
      return state;
  }
}

/** Columns that a character takes: 2 for East Asian wide ones and emoji, 0 for combining marks. */
export function widthOf(character: string): number {
  if (/^\p{Mn}|^\u200d|^[\ufe00-\ufe0f]/u.test(character)) return 0;
  const code = character.codePointAt(0)!;
  const wide = code >= 0x1100 &&
    (code <= 0x115f || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3) ||
      (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) ||
      (code >= 0xff00 && code <= 0xff60) || (code >= 0x1f300 && code <= 0x1faff) ||
      (code >= 0x20000 && code <= 0x3fffd));
  return wide ? 2 : 1;
}

/** The row to draw (without the prompt) and the column of the cursor in it. */
export function render(
  { characters, cursor }: EditorState,
  columns: number,
): { readonly text: string; readonly column: number } {
  const shown = characters.map((c) => c === "\n" ? "↵" : c);
  let start = 0;
  let column = shown.slice(0, cursor).reduce((sum, c) => sum + widthOf(c), 0);
  while (column >= columns && start < cursor) column -= widthOf(shown[start++]!);
  let text = "";
  let used = 0;
  for (const character of shown.slice(start)) {
    used += widthOf(character);
    if (used > columns) break;
    text += character;
  }
  return { text, column };
}
