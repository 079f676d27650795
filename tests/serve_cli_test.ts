// `troodon serve` as a process: what it says, how it ends, and how it refuses.

import { assertEquals, assertMatch } from "@std/assert";
import { assertRefused, troodon } from "./support/cli.ts";
import { TINY_LLAMA, writeLongTiny } from "./support/models.ts";
import { startServe } from "./support/served.ts";

Deno.test("serve says where, then ready, answers, and ends with 0 on SIGTERM beside an idle connection", async () => {
  await using served = await startServe([`tiny=${TINY_LLAMA}`, "--device", "wasm"]);
  assertMatch(served.lines[0]!, /^Troodon \S+ serves tiny at http:\/\/127\.0\.0\.1:\d+$/);
  assertEquals(served.lines.at(-1), "ready");
  const { port } = new URL(served.url);
  const page = await fetch(served.url);
  assertEquals(page.headers.get("content-type"), "text/html; charset=utf-8");
  await page.body!.cancel();
  const answer = await fetch(`${served.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "tiny", prompt: "Once", max_tokens: 3 }),
  });
  assertEquals((await answer.json()).usage.completion_tokens, 3);
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
  const { code, rest } = await served.stop();
  assertEquals([code, rest], [0, "stopping: answers under way have 30 s\n"]);
});

Deno.test("on SIGTERM answers under way finish, new ones are refused, and a second signal ends it at once", async () => {
  await using file = await writeLongTiny();
  const started = () => startServe([`tiny=${file.path}`, "--device", "reference", "--no-page"]);
  await using served = await started();
  const noPage = await fetch(served.url);
  assertEquals([noPage.status, await noPage.json().then(({ error }) => error.code)], [
    404,
    "not_found",
  ]);
  const ask = (url: string, tokens: number) =>
    fetch(`${url}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({
        ...{ model: "tiny", prompt: "Once", max_tokens: tokens },
        ...{ ignore_eos: true, stream: true, stream_options: { include_usage: true } },
      }),
    });
  const { body } = await ask(served.url, 200);
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value!;
  served.signal("SIGTERM");
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  assertMatch(text, /"completion_tokens":200\b/);
  assertMatch(text, /data: \[DONE\]\n\n$/);
  assertEquals((await served.ended).code, 0);

  await using other = await started();
  const endless = await ask(other.url, 4000);
  await endless.body!.getReader().read();
  other.signal("SIGINT");
  // When it accepts nobody any more it has seen the first.
  while (await accepts(other.url));
  other.signal("SIGINT");
  assertEquals((await other.ended).code, 130);
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

async function accepts(url: string): Promise<boolean> {
  try {
    (await Deno.connect({ port: Number(new URL(url).port) })).close();
    return true;
  } catch {
    return false;
  }
}
