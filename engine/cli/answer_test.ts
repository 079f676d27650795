// What a person sees of an answer: thinking dimmed on the screen, and nowhere else.

import { assertEquals } from "@std/assert";
import { streamAnswer } from "./answer.ts";
import {
  createGeneration,
  type GenerationResult,
  type GenerationSteps,
} from "../decode/generation.ts";
import type { Terminal } from "./terminal.ts";

async function* steps(): GenerationSteps {
  for (const piece of [{ thinking: "Hm" }, { thinking: "." }, { text: "Yes" }, { text: "." }]) {
    yield { text: "", tokens: [], ...piece };
  }
  return { finishReason: "eos", isWhole: true, seed: 0, stats: {} as GenerationResult["stats"] };
}

async function shown(isScreen: boolean): Promise<string> {
  let seen = "";
  const write = (text: string) => void (seen += text);
  const terminal = {
    ...{ screen: isScreen, progress: isScreen, colours: { out: isScreen, err: isScreen } },
    ...{ out: write, err: write, columns: () => 80 },
  } as Terminal;
  await streamAnswer(terminal, createGeneration(() => steps()));
  return seen;
}

Deno.test("thinking is dimmed on a screen and left out of a pipe", async () => {
  assertEquals(await shown(true), "\x1b[2mHm\x1b[0m\x1b[2m.\x1b[0m\n\nYes.\n");
  assertEquals(await shown(false), "Yes.\n");
});
