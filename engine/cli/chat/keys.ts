// Turns the bytes that a terminal in raw mode sends into named keys. Bytes of one key may arrive in two
// reads (a long UTF-8 character, a slow escape sequence), so what is not yet a whole key is kept.
// deno-lint-ignore-file no-control-regex -- terminals speak in control characters

/** One key press; `text` carries what was typed or pasted. */
export type Key =
  | { readonly name: "text"; readonly text: string }
  | {
    readonly name:
      | "enter"
      | "tab"
      | "backspace"
      | "delete"
      | "left"
      | "right"
      | "up"
      | "down"
      | "home"
      | "end"
      | "interrupt"
      | "end-of-input"
      | "kill-line"
      | "kill-rest"
      | "kill-word"
      | "clear-screen"
      | "unknown";
  };

type PlainName = Exclude<Key["name"], "text">;

const CONTROL: Readonly<Record<string, PlainName>> = {
  "\x01": "home",
  "\x02": "left",
  "\x03": "interrupt",
  "\x04": "end-of-input",
  "\x05": "end",
  "\x06": "right",
  "\x08": "backspace",
  "\x09": "tab",
  "\x0a": "enter",
  "\x0b": "kill-rest",
  "\x0c": "clear-screen",
  "\x0d": "enter",
  "\x0e": "down",
  "\x10": "up",
  "\x15": "kill-line",
  "\x17": "kill-word",
  "\x7f": "backspace",
};

const SEQUENCES: Readonly<Record<string, PlainName>> = {
  "[A": "up",
  "[B": "down",
  "[C": "right",
  "[D": "left",
  "[H": "home",
  "[F": "end",
  "[1~": "home",
  "[3~": "delete",
  "[4~": "end",
  "OH": "home",
  "OF": "end",
  "OA": "up",
  "OB": "down",
  "OC": "right",
  "OD": "left",
};

const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";
// An escape sequence: ESC, an introducer, parameters, a final letter or tilde.
const SEQUENCE = /^\x1b(\[[0-9;?]*[A-Za-z~]|O[A-Za-z])/;

/** A reader of keys: feed it bytes, get the keys that are complete. */
export interface KeyReader {
  feed(bytes: Uint8Array): Key[];
}

/** Makes a reader with its own memory of half-received keys. */
export function createKeyReader(): KeyReader {
  const decoder = new TextDecoder();
  let pending = "";

  /** First key of `pending` and its length, or undefined when more bytes are needed. */
  function next(): readonly [Key, number] | undefined {
    if (pending.startsWith(PASTE_START)) {
      const end = pending.indexOf(PASTE_END);
      if (end < 0) return undefined;
      const text = pending.slice(PASTE_START.length, end).replace(/\r\n?/g, "\n");
      return [{ name: "text", text }, end + PASTE_END.length];
    }
    if (pending[0] === "\x1b") {
      if (pending.length === 1 || /^\x1b[[O][0-9;?]*$/.test(pending)) {
        return undefined;
      }
      const sequence = SEQUENCE.exec(pending);
      if (!sequence) return [{ name: "unknown" }, 1];
      return [{ name: SEQUENCES[sequence[1]!] ?? "unknown" }, sequence[0].length];
    }
    const control = CONTROL[pending[0]!];
    if (control) return [{ name: control }, 1];
    if (pending[0]! < " ") return [{ name: "unknown" }, 1];
    const text = /^[^\x00-\x1f\x7f]+/.exec(pending)![0];
    return [{ name: "text", text }, text.length];
  }

  return {
    feed(bytes) {
      pending += decoder.decode(bytes, { stream: true });
      const keys: Key[] = [];
      while (pending.length > 0) {
        const found = next();
        if (!found) break;
        keys.push(found[0]);
        pending = pending.slice(found[1]);
      }
      return keys;
    },
  };
}
