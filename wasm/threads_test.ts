import { assertEquals, assertMatch } from "@std/assert";
import { askForThreads, createThread, makeThreadsFor } from "./threads.ts";

Deno.test("threads that another one makes are told, heard, and ended as one's own", async () => {
  const { port1, port2 } = new MessageChannel();
  const stop = askForThreads(port1);
  const end = makeThreadsFor(port2);
  try {
    const heard = Promise.withResolvers<unknown>();
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const double = createThread(
      "onmessage = ({ data: { memory, n } }) => { new Int32Array(memory.buffer)[0] = 2 * n; postMessage(n); }",
      {
        onMessage: heard.resolve,
        onError: heard.reject,
      },
    );
    double.postMessage({ memory, n: 21 });
    assertEquals(await heard.promise, 21);
    assertEquals(new Int32Array(memory.buffer)[0], 42);
    double.terminate();

    const failed = Promise.withResolvers<string>();
    createThread("throw new Error('not today')", { onError: failed.resolve });
    assertMatch(await failed.promise, /not today/);
  } finally {
    end();
    stop();
  }
});

Deno.test("without another one a thread is made here", async () => {
  const heard = Promise.withResolvers<unknown>();
  const thread = createThread("postMessage(7)", {
    onMessage: heard.resolve,
    onError: heard.reject,
  });
  assertEquals(await heard.promise, 7);
  thread.terminate();
});
