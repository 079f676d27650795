import { assertEquals, assertStringIncludes } from "@std/assert";
import { runWorker } from "./supervise.ts";

/** Limits that a busy machine does not reach, unless a test is about them. */
async function messagesOf(
  target: string,
  { memory = 512e6, seconds = 1000 } = {},
): Promise<string[]> {
  const progress = new Int32Array(new SharedArrayBuffer(8)).fill(-1);
  const order = { target, seed: 1, from: 0, to: 20, memory, progress };
  const failures = await runWorker(order, seconds);
  return failures.map(({ message }) => message);
}

Deno.test("a target that never ends is stopped and named", async () => {
  assertEquals(await messagesOf("bad-hang", { seconds: 1 }), ["no end after 1 s"]);
});

Deno.test("a target that throws is reported for each input, up to a limit", async () => {
  const messages = await messagesOf("bad-throw");
  assertEquals(messages.length, 10);
  assertStringIncludes(messages[0]!, "as planned");
});

Deno.test("a target that keeps memory is stopped", async () => {
  const messages = await messagesOf("bad-memory", { memory: 100e6 });
  assertEquals(messages.length, 1);
  assertStringIncludes(messages[0]!, "what it holds grew by");
});
