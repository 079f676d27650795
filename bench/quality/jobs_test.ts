// Formats side by side give what they give one after the other, and one that cannot hold the weights says so.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { wideLlama } from "../../tests/support/wide_llama.ts";
import { type DoneTask, measureInJobs } from "./jobs.ts";

const TEXT = "What hinders the fixed stars from falling upon one another? ".repeat(20);

Deno.test("formats give the same perplexity side by side as one after the other", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const model = `${folder}/model.gguf`;
    const bytes = wideLlama();
    // One weight that is out of the range of Q4_B16.
    new DataView(bytes.buffer, bytes.byteOffset).setFloat32(bytes.length - 4, 30, true);
    await Deno.writeFile(model, bytes);
    const tasks = ["Q8_0", "Q4_K", "Q4_B16"].map((format) => ({
      ...{ format, model, folder, text: TEXT, windows: 2, window: 64, threads: 1 },
    }));
    const run = async (jobs: number) => {
      const done: DoneTask[] = [];
      for await (const one of measureInJobs(tasks, jobs)) done.push(one);
      return new Map(done.map(({ task, result }) => [task.format, result]));
    };
    const [alone, together] = [await run(1), await run(2)];
    assertEquals([...together.keys()].sort(), [...alone.keys()].sort());
    for (const [format, result] of alone) assertEquals(together.get(format), result, format);
    const q8 = alone.get("Q8_0");
    assert(typeof q8 === "object");
    assertEquals([q8.bits, q8.loss.windows.length], [8.5, 2]);
    assertMatch(String(alone.get("Q4_B16")), /Cannot store/);
    assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["model.gguf"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("what a format throws ends the run", async () => {
  const task = { format: "Q8_0", model: "missing.gguf", folder: ".", text: TEXT, windows: 1 };
  for (const jobs of [1, 2]) {
    let thrown = "";
    try {
      for await (const _ of measureInJobs([{ ...task, threads: 1 }], jobs));
    } catch (error) {
      thrown = String(error);
    }
    assertMatch(thrown, /missing\.gguf/);
  }
});
