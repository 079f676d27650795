// Reads what a person writes: one line with editing and history on a keyboard, plain lines from a pipe.
// A trailing backslash goes on with the next line; a line of """ starts a text that ends at the next """.

import { createKeyReader, type Key } from "./keys.ts";
import { edit, emptyLine, render } from "./line_editor.ts";
import type { Terminal } from "../terminal.ts";

/** What came from one prompt. */
export type Entry =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "end" };

/** Asks for entries, one after the other. */
export interface Prompter {
  ask(): Promise<Entry>;
  /** Keeps what is typed from now on for the next prompt, unechoed, until what it returns is called. */
  typeAhead(): () => void;
}

const PROMPT = "> ";
const CONTINUED = ". ";
const QUOTES = '"""';

/** Lines of piped input. */
function pipedLines(terminal: Terminal): () => Promise<Entry> {
  const decoder = new TextDecoder();
  let pending = "";
  let ended = false;
  return async () => {
    for (;;) {
      const end = pending.indexOf("\n");
      if (end >= 0) {
        const text = pending.slice(0, end).replace(/\r$/, "");
        pending = pending.slice(end + 1);
        return { kind: "text", text };
      }
      if (ended) {
        const text = pending;
        pending = "";
        return text ? { kind: "text", text } : { kind: "end" };
      }
      const bytes = await terminal.read();
      ended = bytes === undefined;
      pending += decoder.decode(bytes, { stream: !ended });
    }
  };
}

/** Lines of a keyboard, edited in place. */
function editedLines(terminal: Terminal, history: string[]) {
  const reader = createKeyReader();
  const waiting: Key[] = [];

  const nextKey = async (): Promise<Key> => {
    while (waiting.length === 0) {
      const bytes = await terminal.read();
      if (bytes === undefined) return { name: "end-of-input" };
      waiting.push(...reader.feed(bytes));
    }
    return waiting.shift()!;
  };

  // The system keeps what is typed until it is read: in this mode unechoed, and as it was typed.
  const typeAhead = (): () => void => {
    terminal.setRaw(true, true);
    return () => terminal.setRaw(false);
  };

  const ask = async (prompt: string): Promise<Entry> => {
    let state = emptyLine(history);
    const draw = (): void => {
      const { text, column } = render(state, terminal.columns() - prompt.length - 1);
      terminal.out(`\r\x1b[K${prompt}${text}\r\x1b[${prompt.length + column}C`);
    };
    terminal.setRaw(true);
    terminal.out("\x1b[?2004h"); // Pasted text arrives marked as such.
    try {
      draw();
      for (;;) {
        const key = await nextKey();
        if (key.name === "enter") return { kind: "text", text: state.characters.join("") };
        if (key.name === "interrupt") {
          if (state.characters.length === 0) return { kind: "interrupt" };
          state = emptyLine(history);
        } else if (key.name === "end-of-input") {
          if (state.characters.length === 0) return { kind: "end" };
          state = edit(state, { key: { name: "delete" }, history });
        } else if (key.name === "clear-screen") terminal.out("\x1b[H\x1b[2J");
        else state = edit(state, { key, history });
        draw();
      }
    } finally {
      terminal.out("\x1b[?2004l\r\n");
      terminal.setRaw(false);
    }
  };
  return { ask, typeAhead };
}

/** Makes a prompter on the terminal; `history` grows with what is entered. */
export function createPrompter(terminal: Terminal, history: string[]): Prompter {
  const edited = terminal.keyboard && terminal.screen;
  const lines = edited ? editedLines(terminal, history) : undefined;
  const next = lines?.ask ?? pipedLines(terminal);

  /** The rest of a """ text whose first line (after the quotes) is given. */
  async function quoted(first: string): Promise<Entry> {
    const lines: string[] = first === "" ? [] : [first];
    for (;;) {
      const entry = await next(CONTINUED);
      if (entry.kind !== "text") return entry;
      const end = entry.text.trimEnd();
      if (end.endsWith(QUOTES)) {
        const last = end.slice(0, -QUOTES.length);
        if (last !== "") lines.push(last);
        return { kind: "text", text: lines.join("\n") };
      }
      lines.push(entry.text);
    }
  }

  async function whole(): Promise<Entry> {
    const entry = await next(PROMPT);
    if (entry.kind !== "text") return entry;
    let { text } = entry;
    if (text.startsWith(QUOTES)) {
      const rest = text.slice(QUOTES.length);
      const end = rest.trimEnd();
      if (!end.endsWith(QUOTES)) return await quoted(rest);
      return { kind: "text", text: end.slice(0, -QUOTES.length) };
    }
    while (text.endsWith("\\")) {
      const more = await next(CONTINUED);
      if (more.kind === "interrupt") return more;
      text = `${text.slice(0, -1)}\n${more.kind === "text" ? more.text : ""}`;
    }
    return { kind: "text", text };
  }

  return {
    typeAhead: lines?.typeAhead ?? (() => () => {}),
    async ask() {
      const entry = await whole();
      if (entry.kind === "text" && entry.text.trim() !== "" && history.at(-1) !== entry.text) {
        history.push(entry.text);
      }
      return entry;
    },
  };
}
