// Workers as processes, and what becomes of answers when one is killed: each is compared with its solo run.

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { AnswerEvent, AnswerJob, Engine } from "../engine/serve/engine.ts";
import { LocalEngine } from "../engine/serve/host/local_engine.ts";
import { QueueEngine } from "../engine/serve/queue/queue_engine.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { TINY_LLAMA, writeLongTiny } from "./support/models.ts";
import { NATS_SERVER, NatsServer } from "./support/nats_server.ts";
import { type Served, startServe, startTroodon } from "./support/served.ts";
import { testWith } from "./support/skip.ts";

const never = new AbortController().signal;
const TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
const schema = { type: "object", properties: { a: { type: "array", items: { type: "integer" } } } };

/** Greedy, drawn and bound answers to prompts and conversations. */
function jobs(count: number): AnswerJob[] {
  return Array.from({ length: count }, (_, i) => {
    const text = `Once upon ${"a time ".repeat(i % 5)}${i}`;
    const drawn = { temperature: 0.5 + i % 3, topP: 0.9, seed: i };
    const options = { maxTokens: 60 + i % 7, ignoreEos: true, ...i % 3 > 0 && drawn };
    return {
      model: "tiny",
      input: i % 4 === 1 ? { messages: [{ role: "user", content: text }] } : { prompt: text },
      options: i % 6 === 5 ? { ...options, ignoreEos: false, schema } : options,
    };
  });
}

/** An answer as a whole, whoever cut it into parts. */
async function whole(engine: Engine, job: AnswerJob, onToken: () => void = () => {}) {
  const ids: number[] = [];
  let text = "", start: AnswerEvent | undefined, end: AnswerEvent | undefined;
  for await (const event of engine.answer(job, never)) {
    if (event.kind === "start") start = event;
    if (event.kind === "end") end = event;
    if (event.kind !== "part") continue;
    assertEquals(event.at, ids.length, "no token is left out or sent twice");
    ids.push(...event.tokens.map(({ id }) => id));
    text += event.text;
    onToken();
  }
  assert(start?.kind === "start" && end?.kind === "end");
  const { promptTokens } = start, { finishReason, answerTokens } = end;
  return { ids, text, promptTokens, finishReason, answerTokens };
}

async function untilWorkers(front: QueueEngine, count: number): Promise<void> {
  while ((await front.call("figures", null, never)).queue?.workers !== count) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

testWith(
  [NATS_SERVER],
  "a worker that is killed in the middle of answers loses none, and no token comes twice",
  async () => {
    await using file = await writeLongTiny();
    await using template = await templateFile();
    await using server = await NatsServer.start();
    const options = { device: "wasm", precision: "exact", threads: 1, contextLength: 256 } as const;
    const startWorker = (): Promise<Served> =>
      startTroodon([
        ...["worker", "--nats", server.url, `tiny=${file.path}`, "--ack-wait", "4"],
        ...["--device", "wasm", "--precision", "exact", "--threads", "1", "--context", "256"],
        ...["--chat-template", template.path, "--sessions", "8"],
      ]);
    const workers = await Promise.all([startWorker(), startWorker()]);
    await using first = workers[0]!;
    await using _second = workers[1]!;
    await using front = new QueueEngine({ url: server.url });
    await untilWorkers(front, 2);
    await using local = new LocalEngine([{
      ...{ name: "tiny", source: file.path },
      options: { ...options, chatTemplate: TEMPLATE },
    }]);
    const all = jobs(20);
    let tokens = 0;
    const answers = all.map((job) =>
      whole(front, job, () => {
        // Both have begun, and neither has ended much.
        if (++tokens === 150) first.signal("SIGKILL");
      })
    );
    const given = await Promise.all(answers);
    assert(tokens > 150);
    for (const [i, job] of all.entries()) {
      assertEquals(given[i], await whole(local, job), `job ${i}`);
    }
  },
);

async function templateFile(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await Deno.makeTempFile({ suffix: ".jinja" });
  await Deno.writeTextFile(path, TEMPLATE);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

testWith(
  [NATS_SERVER],
  "a worker says when it works and is ready, and ends with 0 on SIGTERM",
  async () => {
    await using server = await NatsServer.start();
    await using worker = await startTroodon([
      ...["worker", "--nats", server.url.replace("//", "//name:secret@"), `tiny=${TINY_LLAMA}`],
      ...["--device", "reference"],
    ]);
    assertEquals(worker.lines, [worker.lines[0]!, "ready"]);
    assertEquals(worker.lines[0]!.endsWith(` works on tiny for ${server.url}`), true);
    const { code, err } = await worker.stop();
    assertEquals([code, err], [0, `connected to NATS at 127.0.0.1:${server.port}\n`]);
  },
);

testWith(
  [NATS_SERVER],
  "over HTTP a queue that is gone is 503 with Retry-After, and comes back",
  async () => {
    await using server = await NatsServer.start();
    await using worker = await startTroodon([
      ...["worker", "--nats", server.url, `tiny=${TINY_LLAMA}`, "--device", "reference"],
    ]);
    await using front = await startServe(["--nats", server.url, "--quiet"]);
    assert(front.lines[0]!.includes(` serves workers of ${server.url} at `), front.lines[0]);
    const ask = () =>
      fetch(`${front.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "tiny", prompt: "Once", max_tokens: 5, seed: 1 }),
      });
    const until = async (isSo: () => Promise<boolean>): Promise<void> => {
      while (!await isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    const text = async (path: string) => await (await fetch(`${front.url}${path}`)).text();
    await until(async () => (await text("/metrics")).includes("troodon_queue_workers 1\n"));
    const first = await (await ask()).json();
    assertEquals(first.usage.completion_tokens, 5);
    await server.stop();
    await until(async () => (await fetch(`${front.url}/ready`)).status === 503);
    const refused = await ask();
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "2"]);
    assertEquals((await refused.json()).error.code, "queue_down");
    assertEquals((await fetch(`${front.url}/health`)).status, 200);
    await server.start();
    await until(async () => (await text("/metrics")).includes("troodon_queue_workers 1\n"));
    assertEquals((await (await ask()).json()).choices[0].text, first.choices[0].text);
    const { code, err } = await front.stop();
    assertEquals(code, 0);
    assertMatch(err, /^connected to NATS .*\nNATS .* is gone: trying again\nconnected to NATS/);
    assertEquals((await worker.stop()).code, 0);
  },
);

Deno.test("worker and front refuse what they cannot use, in a line, and tell no password", async () => {
  for (const url of ["http://a:secret@host", "nats://"]) {
    for (const command of ["worker", "serve"]) {
      const outcome = await troodon([command, "--nats", url]);
      assertRefused(outcome, 2, /Cannot use the URL of NATS: it is nats:\/\/HOST:PORT/);
      assertEquals(outcome.err.includes("secret"), false);
    }
  }
  assertRefused(
    await troodon(["serve", "--nats", "nats://a:secret@host", "model.gguf"]),
    2,
    /give model.gguf to troodon worker --nats nats:\/\/host/,
  );
});
