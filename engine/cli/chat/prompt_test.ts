import { assertEquals } from "@std/assert";
import { createKeyReader } from "./keys.ts";
import { edit, type EditorState, emptyLine, render } from "./line_editor.ts";
import { createPrompter, type Entry } from "./prompt.ts";
import type { Terminal } from "../terminal.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function fakeTerminal(reads: Uint8Array[], keyboard: boolean): Terminal & { raw: boolean[] } {
  const raw: boolean[] = [];
  return {
    screen: keyboard,
    progress: false,
    keyboard,
    colours: { out: false, err: false },
    columns: () => 40,
    out: () => {},
    err: () => {},
    read: () => Promise.resolve(reads.shift()),
    setRaw: (on) => raw.push(on),
    onInterrupt: () => () => {},
    raw,
  };
}

async function askAll(reads: string[], keyboard: boolean, history: string[] = []) {
  const terminal = fakeTerminal(reads.map(bytes), keyboard);
  const prompter = createPrompter(terminal, history);
  const entries: Entry[] = [];
  for (;;) {
    const entry = await prompter.ask();
    entries.push(entry);
    if (entry.kind === "end") break;
  }
  return { entries: entries.slice(0, -1), raw: terminal.raw, history };
}

const texts = (entries: Entry[]) => entries.map((e) => e.kind === "text" ? e.text : e.kind);

function type(keys: string, history: string[] = []): EditorState {
  return createKeyReader().feed(bytes(keys))
    .reduce((state, key) => edit(state, { key, history }), emptyLine(history));
}

Deno.test("the key reader waits for the rest of a character and of an escape sequence", () => {
  const reader = createKeyReader();
  const [first, rest] = [bytes("é").slice(0, 1), bytes("é").slice(1)];
  assertEquals(reader.feed(first), []);
  assertEquals(reader.feed(rest), [{ name: "text", text: "é" }]);
  assertEquals(reader.feed(bytes("\x1b[")), []);
  assertEquals(reader.feed(bytes("A\x03")), [{ name: "up" }, { name: "interrupt" }]);
  assertEquals(reader.feed(bytes("\x1b[200~a\r\nb")), []);
  assertEquals(reader.feed(bytes("\x1b[201~")), [{ name: "text", text: "a\nb" }]);
});

Deno.test("the line editor inserts, deletes and moves by whole characters", () => {
  assertEquals(type("ab\x1b[Dé").characters.join(""), "aéb");
  assertEquals(type("a👍\x7fb").characters.join(""), "ab");
  assertEquals(type("abc\x01\x1b[3~").characters.join(""), "bc");
  assertEquals(type("one two\x17x").characters.join(""), "one x");
  assertEquals(type("one two\x15").characters.join(""), "");
  assertEquals(type("one\x1b[D\x0b").characters.join(""), "on");
});

Deno.test("the line editor walks the history and comes back to the draft", () => {
  const history = ["first", "second"];
  assertEquals(type("dr\x1b[A", history).characters.join(""), "second");
  assertEquals(type("dr\x1b[A\x1b[A\x1b[A", history).characters.join(""), "first");
  assertEquals(type("dr\x1b[A\x1b[B", history).characters.join(""), "dr");
});

Deno.test("render() scrolls sideways so that the cursor stays in the row", () => {
  assertEquals(render(type("abc"), 10), { text: "abc", column: 3 });
  const { text, column } = render(type("abcdefghijkl"), 5);
  assertEquals([text, column], ["ijkl", 4]);
  assertEquals(render(type("漢字"), 10).column, 4);
});

Deno.test("lines come from a pipe, also the last one without a line end", async () => {
  const { entries } = await askAll(["one\ntw", "o\r\nthree"], false);
  assertEquals(texts(entries), ["one", "two", "three"]);
});

Deno.test("a backslash goes on and three quotes hold many lines", async () => {
  const piped = ["a \\\nb\n", '"""\nc\n\nd\n"""\n', '"""e"""\n', '"""f\ng"""\n'];
  const { entries, history } = await askAll(piped, false);
  assertEquals(texts(entries), ["a \nb", "c\n\nd", "e", "f\ng"]);
  assertEquals(history.length, 4);
});

Deno.test("on a keyboard Ctrl-C clears a line, then interrupts; Ctrl-D ends", async () => {
  const { entries, raw } = await askAll(["abc\x03", "\x03", "hi\r", "\x04"], true);
  assertEquals(texts(entries), ["interrupt", "hi"]);
  assertEquals(raw.filter(Boolean).length, raw.filter((on) => !on).length);
});
