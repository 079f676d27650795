import { assertEquals } from "@std/assert";
import { COMMANDS } from "./command_line.ts";

Deno.test("a flag for the same kind of value has the same letter in every command", async () => {
  const letters = new Map<string, Map<string, string>>();
  for (const [command, { load }] of Object.entries(COMMANDS)) {
    for (const [name, { type, value, short }] of Object.entries((await load()).line.flags)) {
      // A text and a file of that name are two things: `embed --text`, `perplexity --text FILE`.
      const key = `--${name} ${type} ${value === "FILE" ? value : ""}`;
      const ofFlag = letters.get(key) ?? new Map<string, string>();
      letters.set(key, ofFlag.set(command, short ?? "none"));
    }
  }
  const differing = [...letters].filter(([, ofFlag]) => new Set(ofFlag.values()).size > 1)
    .map(([flag, ofFlag]) => `${flag}: ${JSON.stringify([...ofFlag])}`);
  assertEquals(differing, []);
});
