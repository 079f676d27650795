// `troodon serve` as a process: what it says, how it ends, and how it refuses.

import { assertEquals, assertMatch } from "@std/assert";
import { assertRefused, troodon } from "./support/cli.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { startServe } from "./support/served.ts";

Deno.test("serve says where, then ready, answers, and ends with 0 on SIGTERM beside an idle connection", async () => {
  await using served = await startServe([`tiny=${TINY_LLAMA}`, "--device", "wasm"]);
  assertMatch(served.lines[0]!, /^Troodon \S+ serves tiny at http:\/\/127\.0\.0\.1:\d+$/);
  assertEquals(served.lines.at(-1), "ready");
  const { port } = new URL(served.url);
  using idle = await Deno.connect({ port: Number(port) });
  await idle.write(new TextEncoder().encode("GET /health HTTP/1.1\r\nhost: a\r\n\r\n"));
  const buffer = new Uint8Array(12);
  await idle.read(buffer);
  assertEquals(new TextDecoder().decode(buffer), "HTTP/1.1 200");
  const taken = await troodon(["serve", TINY_LLAMA, "--port", port]);
  assertRefused(
    taken,
    1,
    /cannot listen at 127\.0\.0\.1, port \d+: it is in use\. Take another --port/,
  );
  assertEquals((await served.stop()).code, 0);
});

Deno.test("serve refuses what it cannot serve, in a line", async () => {
  assertRefused(
    await troodon(["serve", "--port", "0", "a=minilm", "a=minilm"]),
    2,
    /called a: name one/,
  );
  assertRefused(
    await troodon(["serve", "--port", "0", "--max-memory", "much"]),
    2,
    /--max-memory takes/,
  );
  assertRefused(
    await troodon(["serve", "--port", "0", "/no/model.gguf"]),
    1,
    /\/no\/model\.gguf: no such/,
  );
  assertRefused(await troodon(["serve", "--port", "70000"]), 2, /--port/);
});
