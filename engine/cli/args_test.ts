import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { helpPage, parseLine, UsageError } from "./args.ts";
import { nearest } from "../nearest.ts";

const LINE = {
  name: "troodon demo",
  summary: "Shows how flags are read.",
  positionals: ["MODEL", "[TEXT]"],
  flags: {
    count: { type: "integer", help: "how many", value: "N", min: 1, max: 10 },
    heat: { type: "number", help: "how warm" },
    device: { type: "string", help: "where", choices: ["wasm", "gpu"] },
    stop: { type: "string", help: "where to stop", multiple: true },
    json: { type: "boolean", help: "as JSON" },
  },
  examples: [["troodon demo m --count 2", "two of them"]],
} as const;

function refuses(args: string[], message: RegExp): void {
  const error = assertThrows(() => parseLine(LINE, args), UsageError);
  assertMatch(error.message, message);
  assertEquals(error.message.includes("\n"), false);
}

Deno.test("parseLine() reads numbers, choices, lists, switches and positionals", () => {
  const args = ["m", "--count=3", "--heat", "-0.5", "--stop", "a", "--stop", "b", "--json", "-"];
  const { positionals, flags, help } = parseLine(LINE, args);
  assertEquals(positionals, ["m", "-"]);
  assertEquals({ ...flags }, { count: 3, heat: -0.5, stop: ["a", "b"], json: true });
  assertEquals(help, false);
});

Deno.test("parseLine() takes the least and the greatest number that are allowed", () => {
  for (const count of [1, 10]) {
    assertEquals(parseLine(LINE, ["m", "--count", `${count}`]).flags.count, count);
  }
});

Deno.test("parseLine() refuses what the command does not state", () => {
  refuses(["m", "--cuont", "3"], /Unknown flag --cuont. Did you mean --count\?/);
  refuses(["m", "-x"], /Unknown flag -x. See troodon demo --help/);
  refuses(["m", "--count", "three"], /--count takes a whole number: got "three"/);
  refuses(["m", "--count", "2.5"], /whole number/);
  refuses(["m", "--count", ""], /whole number/);
  refuses(["m", "--count", "0"], /--count takes a whole number, 1 to 10: got 0/);
  refuses(["m", "--count", "1", "--count", "2"], /--count is given twice/);
  refuses(["m", "--device", "cpu"], /--device takes wasm, gpu: got "cpu"/);
  refuses(["m", "--count"], /--count needs a value/);
  refuses(["m", "--device", "--json"], /--device needs a value/);
  refuses(["m", "--json=yes"], /--json takes no value/);
  refuses(["m", "--constructor"], /Unknown flag/);
  refuses([], /troodon demo needs MODEL/);
  refuses(["m", "t", "u"], /does not take "u"\. See troodon demo --help/);
  const flags = { text: { type: "string", help: "the text" } } as const;
  const line = { ...LINE, positionals: ["MODEL"], flags };
  const error = assertThrows(() => parseLine(line, ["m", "a text"]), UsageError);
  assertMatch(error.message, /does not take "a text"\. A text is given by --text/);
});

Deno.test("parseLine() asks for nothing else when --help is given", () => {
  assertEquals(parseLine(LINE, ["--help"]).help, true);
  assertEquals(parseLine(LINE, ["-h"]).help, true);
});

Deno.test("helpPage() names every flag, value and example", () => {
  const page = helpPage(LINE);
  for (const name of Object.keys(LINE.flags)) assertStringIncludes(page, `--${name}`);
  assertStringIncludes(page, "wasm|gpu");
  assertStringIncludes(page, "troodon demo m --count 2");
  for (const line of page.split("\n")) assertEquals(line.length <= 100, true, line);
});

Deno.test("nearest() finds swaps and prefixes and nothing far", () => {
  assertEquals(nearest("chta", ["chat", "pull"]), "chat");
  assertEquals(nearest("chta", ["chtxy", "chat"]), "chat"); // a swap is one mistake
  assertEquals(nearest("gen", ["generate", "pull"]), "generate");
  assertEquals(nearest("spec", ["special", "spec-file"]), "spec-file"); // its first word
  assertEquals(nearest("zzzz", ["generate", "pull"]), undefined);
});
