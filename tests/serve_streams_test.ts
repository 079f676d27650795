// `troodon serve` under load: 32 clients over HTTP, many of which leave in the middle. What each has read is what it reads
// alone, answers share their steps, and nothing goes on for who has left.

import { assert, assertEquals } from "@std/assert";
import { createRandom, nextDouble } from "../engine/decode/sampling/random.ts";
import { writeLongTiny } from "./support/models.ts";
import { startServe } from "./support/served.ts";

const CLIENTS = 32;

interface Client {
  readonly body: string;
  /** Events after which it leaves; Infinity: it stays. */
  readonly after: number;
}

function randomClients(seed: number): Client[] {
  const random = createRandom(seed);
  const below = (limit: number) => Math.floor(nextDouble(random) * limit);
  return Array.from({ length: CLIENTS }, (_, index) => ({
    body: JSON.stringify({
      ...{ model: "tiny", stream: true, ignore_eos: true, max_tokens: 10 + below(60) },
      prompt: Array.from({ length: 1 + below(40) }, () => 3 + below(280)),
      ...below(2) ? { temperature: 0 } : { temperature: 1, seed: index },
    }),
    after: below(2) ? Infinity : 1 + below(8),
  }));
}

/** The text that a client has read, or so much of it as it wanted. */
async function read(url: string, { body, after }: Client): Promise<string> {
  const leave = new AbortController();
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    body,
    signal: leave.signal,
  });
  let rest = "", text = "", events = 0;
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      text += JSON.parse(line.slice(6)).choices[0]?.text ?? "";
      if (++events < after) continue;
      leave.abort();
      return text;
    }
  }
  return text;
}

async function figure(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^troodon_${name}\\{[^}]*\\} (\\S+)$`, "m").exec(text)![1]);
}

Deno.test("32 clients over HTTP, half of which leave, read what each reads alone; answers share steps, leavers cost none", async () => {
  await using file = await writeLongTiny();
  await using served = await startServe([
    ...[`tiny=${file.path}`, "--device", "wasm", "--threads", "1", "--quiet"],
    ...["--context", "192", "--sessions", "8", "--cache-tokens", "1024"],
  ]);
  const { url } = served;
  const clients = randomClients(7);
  const alone: string[] = [];
  for (const client of clients) alone.push(await read(url, { ...client, after: Infinity }));
  const solo = await figure(url, "steps_total");
  const together = await Promise.all(clients.map((client) => read(url, client)));
  for (const [index, text] of together.entries()) {
    const { after } = clients[index]!;
    if (after === Infinity) assertEquals(text, alone[index]);
    else assert(alone[index]!.startsWith(text), `client ${index}: ${text}`);
  }
  for (let asked = 0; await figure(url, "answers_running") > 0; asked++) {
    assert(asked < 1000, "an answer is stuck");
  }
  assertEquals(await figure(url, "answers_waiting"), 0);
  const steps = await figure(url, "steps_total") - solo;
  assert(steps < solo / 3, `${steps} steps, ${solo} one after the other`);
});
