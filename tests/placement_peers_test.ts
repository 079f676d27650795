// Devices in other processes: the same answers over sockets, by layers, heads and both; what is not the same model, key or
// version is refused before a weight is read; a peer that dies fails the request.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { DeviceError } from "../engine/errors.ts";
import type { Model } from "../engine/decode/model.ts";
import { generate } from "../engine/decode/generate.ts";
import { load } from "../engine/models/load.ts";
import { planForPeer } from "../engine/models/peer_plan.ts";
import type { Backend, DeviceName } from "../engine/run/backend.ts";
import { type Device, openDevice } from "../engine/run/devices.ts";
import { Channel, PROTOCOL, shakeHands } from "../engine/place/peer/channel.ts";
import { servePeer } from "../engine/place/peer/serve.ts";
import { connectTo, listen, spawnPeer } from "../engine/place/peer/sockets.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

const KEY = "of the tests";
const MODEL = checkpointPath("llama");
const OPTIONS = { precision: "exact", contextLength: 32, threads: 1 } as const;

async function answer(model: Model): Promise<number[]> {
  using session = model.createSession();
  await session.eval([3, 1, 4, 1, 5, 9]);
  const logits = [...session.logits()];
  await session.eval([2]);
  return [...logits, ...session.logits()];
}

async function answerOn(placement: string): Promise<number[]> {
  using model = await load(MODEL, { ...OPTIONS, placement });
  return await answer(model);
}

function checkClose(actual: readonly number[], expected: readonly number[]): void {
  const off = Math.max(...expected.map((value, i) => Math.abs(value - actual[i]!)));
  assert(off <= 1e-3, `off by ${off}`);
}

/** A peer in this process, for one coordinator. */
async function withPeer(
  use: (address: string) => Promise<void>,
  { key = KEY, model = MODEL, device: kind = "reference" }: {
    readonly key?: string;
    readonly model?: string;
    readonly device?: DeviceName;
  } = {},
): Promise<void> {
  using listener = listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener.connections()) {
      const device = await openDevice(kind, { threads: 1, together: true });
      return await servePeer(connection, {
        device,
        key,
        plan: (_, load) => planForPeer(model, load),
      })
        .catch(() => {});
    }
  })();
  await use(`127.0.0.1:${listener.port}`);
  await serving;
}

Deno.test("processes of this machine compute layers, or heads, of a model", async () => {
  const expected = await answerOn("reference");
  checkClose(await answerOn("reference;spawn-reference"), expected);
  checkClose(await answerOn("spawn-wasm&reference"), expected);
});

gpuTest("processes with an adapter each compute layers of a model", async () => {
  checkClose(await answerOn("spawn-gpu;spawn-gpu1"), await answerOn("reference"));
});

Deno.test("a peer computes over TCP, saves and restores sessions", async () => {
  const expected = await answerOn("reference");
  await withPeer(async (address) => {
    using model = await load(MODEL, {
      ...OPTIONS,
      placement: `${address};reference`,
      peerKey: KEY,
    });
    checkClose(await answer(model), expected);
    using session = model.createSession();
    await session.eval([3, 1, 4, 1, 5, 9]);
    const saved = await session.save();
    using other = model.createSession();
    await other.load(saved);
    await other.eval([2]);
    checkClose([...other.logits()], expected.slice(expected.length / 2));
  });
});

Deno.test("answers at once go through the devices one behind the other", async () => {
  const expected = await answerOn("reference");
  for (const lanes of [undefined, 1, 3]) {
    await withPeer(async (address) => {
      const placed = { placement: `reference;${address}`, peerKey: KEY };
      using model = await load(MODEL, { ...OPTIONS, ...placed, ...lanes && { lanes } });
      const answers = await Promise.all(Array.from({ length: 3 }, () => answer(model)));
      for (const one of answers) checkClose(one, expected);
    });
  }
});

Deno.test("a prompt alone goes through the devices in chunks, also where rows see a window", async () => {
  const tokens = Array.from({ length: 128 }, (_, i) => 3 + i * i % 90);
  for (const name of ["llama", "mistral_swa"]) {
    const path = checkpointPath(name);
    const logitsOn = async (placement: string) => {
      const options = { ...OPTIONS, contextLength: tokens.length, placement, peerKey: KEY };
      using model = await load(path, options);
      using session = model.createSession();
      await session.eval(tokens);
      return [...session.logits()];
    };
    const expected = await logitsOn("wasm");
    await withPeer(
      async (address) => checkClose(await logitsOn(`wasm;${address}`), expected),
      { model: path, device: "wasm" },
    );
  }
});

Deno.test("greedy answers over peers fetch the best few of each row, and are those of one device", async () => {
  const path = fixturePath("models/llama_formats/llama.Q8_0.gguf"), options = { maxTokens: 8 };
  const idsOf = async (model: Model) =>
    await Promise.all(
      [[3, 4], [5, 6, 7], [8]].map(async (prompt) =>
        (await generate(model, prompt, { ...options, temperature: 0 }).result).ids
      ),
    );
  const loadOn = (placement: string) =>
    load(path, { precision: "exact", contextLength: 64, threads: 1, placement, peerKey: KEY });
  using one = await loadOn("wasm");
  const expected = await idsOf(one);
  await withPeer(
    async (address) => {
      using model = await loadOn(`wasm;${address}`);
      assertEquals(await idsOf(model), expected);
    },
    { model: path, device: "wasm" },
  );
});

Deno.test("another key and another model are refused before weights are read", async () => {
  const open = (placement: string) =>
    load(MODEL, { ...OPTIONS, placement, peerKey: KEY }).then((model) => model.dispose());
  await withPeer(
    (address) =>
      assertRejects(() => open(`reference;${address}`), DeviceError, "has another key").then(
        () => {},
      ),
    { key: "other" },
  );
  await withPeer(
    (address) =>
      assertRejects(() => open(`reference;${address}`), DeviceError, "another model").then(
        () => {},
      ),
    { model: checkpointPath("mistral") },
  );
  await assertRejects(() => open("reference;127.0.0.1:9"), DeviceError, "cannot be reached");
  await assertRejects(
    () => load(MODEL, { ...OPTIONS, placement: "reference;127.0.0.1:9" }),
    DeviceError,
    "wants a key",
  );
});

Deno.test("another version of the protocol is refused by name", async () => {
  using listener = listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener.connections()) {
      const channel = new Channel(connection);
      await channel.send({ protocol: PROTOCOL + 1, nonce: "" });
      while (await channel.receive());
      return channel.close();
    }
  })();
  const channel = new Channel(await connectTo(`127.0.0.1:${listener.port}`));
  const error = await assertRejects(
    () => shakeHands(channel, { key: KEY, role: "coordinator", peer: "peer x" }),
    DeviceError,
    "peer x is of another version",
  );
  assertEquals(error.message.includes(`protocol ${PROTOCOL + 1}`), true);
  channel.close();
  await serving;
});

/** Kills what this process has started and that listens for it. */
async function killPeers(): Promise<number> {
  let count = 0;
  for await (const { name } of Deno.readDir("/proc")) {
    const status = await Deno.readTextFile(`/proc/${name}/stat`).catch(() => "");
    const [, parent] = /\) \S (\d+)/.exec(status) ?? [];
    if (Number(parent) !== Deno.pid) continue;
    const command = await Deno.readTextFile(`/proc/${name}/cmdline`);
    if (!command.includes("\0peer\0")) continue;
    Deno.kill(Number(name), "SIGKILL");
    count++;
  }
  return count;
}

for (const placement of ["reference;spawn-reference", "spawn-reference&reference"]) {
  Deno.test(`a process of ${placement} that dies is replaced, and answers are the same`, async () => {
    using model = await load(MODEL, { ...OPTIONS, sessions: 3, placement });
    const begin = async (prompt: readonly number[]) => {
      const session = model.createSession();
      await session.eval(prompt);
      return session;
    };
    const prompts = [[3, 1, 4, 1, 5, 9], [2, 6, 5], [3, 5, 8, 9]];
    const sessions = await Promise.all(prompts.map(begin));
    // A slot that is free again is so in the new process.
    sessions[0]!.dispose();
    assertEquals(await killPeers(), 1);
    const others = sessions.slice(1);
    await Promise.all(others.map((session) => session.eval([7])));
    using last = await begin([...prompts[0]!, 7]);
    using whole = await load(MODEL, { ...OPTIONS, sessions: 3, placement: "reference" });
    for (const session of [...others, last]) {
      using expected = whole.createSession();
      await expected.eval(session.tokens);
      checkClose([...session.logits()], [...expected.logits()]);
      session.dispose();
    }
  });
}

Deno.test("a peer that says nothing is refused", async () => {
  using silent = listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of silent.connections()) return connection;
  })();
  const channel = new Channel(await connectTo(`127.0.0.1:${silent.port}`));
  await assertRejects(
    () => shakeHands(channel, { key: KEY, role: "coordinator", peer: "peer x", patience: 50 }),
    DeviceError,
    "peer x says nothing",
  );
  (await serving)?.close();
});

/** The reference, until it is broken. */
async function breakable(): Promise<{ device: Device; break(): void }> {
  const device = await openDevice("reference", { threads: 1, together: true });
  let isBroken = false;
  const backend: Backend = {
    ...device.backend,
    async prepare(plan, options) {
      const prepared = await device.backend.prepare(plan, options);
      return {
        ...prepared,
        run(bindings, wish) {
          if (isBroken) throw new DeviceError("the GPU is lost");
          return prepared.run(bindings, wish);
        },
      };
    },
  };
  return { device: { ...device, backend }, break: () => isBroken = true };
}

for (const fault of ["whose connection ends", "whose device fails"] as const) {
  Deno.test(`a peer ${fault} is connected to again, and its rows are computed again`, async () => {
    using listener = listen({ hostname: "127.0.0.1", port: 0 });
    const connections = listener.connections()[Symbol.asyncIterator]();
    const plan = (_: unknown, load: Readonly<Record<string, unknown>>) => planForPeer(MODEL, load);
    const serve = async () => {
      const { value: connection } = await connections.next(),
        { device, ...peer } = await breakable();
      const done = servePeer(connection, { device, key: KEY, plan }).catch(() => {});
      return { ...peer, connection, done };
    };
    const first = serve(), address = `127.0.0.1:${listener.port}`;
    const placed = { placement: `reference;${address}`, peerKey: KEY };
    const model = await load(MODEL, { ...OPTIONS, ...placed });
    const session = model.createSession();
    await session.eval([3, 1, 4, 1, 5, 9]);
    const again = serve();
    if (fault === "whose device fails") (await first).break();
    else (await first).connection.close();
    await session.eval([2]);
    const expected = await answerOn("reference");
    checkClose([...session.logits()], expected.slice(expected.length / 2));
    model.dispose();
    await Promise.all([(await first).done, (await again).done]);
  });
}

Deno.test("a peer that dies fails the request and all that follow, and nothing hangs", async () => {
  using process = await spawnPeer({ device: "reference", key: KEY, env: {} });
  using model = await load(MODEL, {
    ...OPTIONS,
    ...{ placement: `reference;${process.address}`, peerKey: KEY },
  });
  using session = model.createSession();
  await session.eval([3, 1, 4]);
  const waiting = session.eval([1, 5, 9]);
  process[Symbol.dispose]();
  const error = await assertRejects(
    async () => {
      await waiting;
      for (;;) await session.eval([1]);
    },
    DeviceError,
    "is gone",
  );
  assert(error.message.includes(process.address), error.message);
  await assertRejects(() => session.eval([1]), DeviceError, "is gone");
});
