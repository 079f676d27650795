// Loading is made of promises that the test settles, so every order of events can be had.

import { assertEquals, assertRejects } from "@std/assert";
import type { Model, ModelDescription } from "../../decode/model.ts";
import { ResourceError } from "../../errors.ts";
import { JobError } from "../job_error.ts";
import { Models, type UsedModel } from "./models.ts";

const never = new AbortController().signal;

/** Models of given sizes, whose loads the test ends. */
function shelf(sizes: Readonly<Record<string, number>>, maxMemory?: number) {
  const log: string[] = [];
  const loads = new Map<string, PromiseWithResolvers<void>>();
  const load = async ({ name }: { readonly name: string }, signal: AbortSignal): Promise<Model> => {
    log.push(`load ${name}`);
    const end = Promise.withResolvers<void>();
    loads.set(name, end);
    const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => stop(signal.reason));
    await Promise.race([end.promise, stopped]);
    return {
      memory: { total: sizes[name] },
      activity: { steps: 1, rows: 2 },
      dispose: () => log.push(`unload ${name}`),
    } as unknown as Model;
  };
  const entries = Object.keys(sizes).map((name) => ({ name, source: name, options: {} }));
  const inspect = ({ name }: { readonly name: string }) =>
    Promise.resolve({ info: {}, memory: { total: sizes[name] } } as unknown as ModelDescription);
  return { log, loads, models: new Models(entries, { maxMemory, load, inspect }) };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** Uses a model that nobody has to wait for but its load. */
async function useNow(
  { models, loads }: ReturnType<typeof shelf>,
  name: string,
): Promise<UsedModel> {
  const used = models.use(name, never);
  await settle();
  loads.get(name)?.resolve();
  return await used;
}

Deno.test("all who ask for a model that is being loaded share the load", async () => {
  const { models, log, loads } = shelf({ a: 1 });
  const asked = [models.use("a", never), models.use("a", never), models.use("a", never)];
  await settle();
  assertEquals(models.states().map(({ users, waiting }) => [users, waiting]), [[0, 3]]);
  loads.get("a")!.resolve();
  const used = await Promise.all(asked);
  assertEquals([log, new Set(used.map(({ model }) => model)).size], [["load a"], 1]);
  assertEquals(models.states().map(({ users, waiting }) => [users, waiting]), [[3, 0]]);
  for (const one of used) one[Symbol.dispose]();
  used[0]![Symbol.dispose](); // once is enough
  assertEquals(models.states()[0]!.users, 0);
});

Deno.test("the least recently used model makes room, never one in use", async () => {
  const all = shelf({ a: 4, b: 4, c: 4 }, 8);
  const { models, log } = all;
  const a = await useNow(all, "a");
  (await useNow(all, "b"))[Symbol.dispose]();
  a[Symbol.dispose]();
  (await models.use("b", never))[Symbol.dispose]();
  // a was let go before b.
  const c = await useNow(all, "c");
  assertEquals(log, ["load a", "load b", "unload a", "load c"]);
  // b is idle, c is not.
  await useNow(all, "a");
  assertEquals(log.slice(4), ["unload b", "load a"]);
  c[Symbol.dispose]();
  assertEquals(models.states().map(({ past }) => past.steps), [1, 1, 0]);
});

Deno.test("two models that alternate under a limit for one come in turn, however busy the first is", async () => {
  const all = shelf({ a: 4, b: 4 }, 4);
  const { models, log, loads } = all;
  const first = await useNow(all, "a");
  const b = [models.use("b", never), models.use("b", never)];
  await settle();
  // Whoever comes for a now, while b waits, comes behind it.
  const later = models.use("a", never);
  await settle();
  assertEquals([log, models.states().map(({ waiting }) => waiting)], [["load a"], [1, 2]]);
  first[Symbol.dispose]();
  await settle();
  assertEquals(log, ["load a", "unload a", "load b"]);
  loads.get("b")!.resolve();
  for (const one of await Promise.all(b)) one[Symbol.dispose]();
  await settle();
  loads.get("a")!.resolve();
  await later;
  assertEquals(log.slice(3), ["unload b", "load a"]);
});

Deno.test("a load that fails is told to all who wait, and the next one tries again", async () => {
  const { models, log, loads } = shelf({ a: 1, b: 1 });
  const asked = [models.use("a", never), models.use("a", never)];
  const other = models.use("b", never);
  await settle();
  loads.get("a")!.reject(new ResourceError("no room", { file: "/secret/a.gguf" }));
  for (const one of asked) {
    const { failure } = await assertRejects(() => one, JobError);
    assertEquals(failure, {
      ...{ status: 503, param: "model", code: "model_not_loaded", retryAfter: 10 },
      message: "The model a cannot be loaded: no room",
    });
  }
  await settle();
  loads.get("b")!.resolve();
  await other;
  const again = models.use("a", never);
  await settle();
  loads.get("a")!.resolve();
  await again;
  assertEquals(log, ["load a", "load b", "load a"]);
});

Deno.test("a load goes on while somebody waits for it, and stops when nobody does", async () => {
  const { models, log, loads } = shelf({ a: 1, b: 1 });
  const [one, two] = [new AbortController(), new AbortController()];
  const asked = [models.use("a", one.signal), models.use("a", two.signal)];
  const b = models.use("b", never);
  await settle();
  one.abort(new Error("gone"));
  await assertRejects(() => asked[0]!, Error, "gone");
  await settle();
  assertEquals(log, ["load a"]);
  two.abort(new Error("gone"));
  await assertRejects(() => asked[1]!, Error, "gone");
  await settle();
  assertEquals(log, ["load a", "load b"]);
  loads.get("b")!.resolve();
  await b;
  assertEquals(models.states()[0]!.model, undefined);
});

Deno.test("who leaves the line lets those behind him go on", async () => {
  const all = shelf({ a: 4, b: 4 }, 4);
  await useNow(all, "a");
  const leaver = new AbortController();
  const b = all.models.use("b", leaver.signal);
  await settle();
  const a = all.models.use("a", never);
  await settle();
  leaver.abort();
  await assertRejects(() => b);
  await a; // at once: nobody waits for its room any more
});

Deno.test("a model that can never fit is refused with numbers, without unloading another", async () => {
  const all = shelf({ a: 2 ** 20, b: 2 ** 22 }, 2 ** 21);
  (await useNow(all, "a"))[Symbol.dispose]();
  const { failure } = await assertRejects(() => all.models.use("b", never), JobError);
  assertEquals([failure.status, failure.code], [503, "model_too_large"]);
  assertEquals(
    failure.message,
    "The model b needs 4 MiB of memory, and models may take 2 MiB together",
  );
  assertEquals(all.log, ["load a"]);
});

Deno.test("closing turns away who waits, stops the load and unloads the rest", async () => {
  const all = shelf({ a: 1, b: 1 });
  (await useNow(all, "a"))[Symbol.dispose]();
  const b = all.models.use("b", never);
  await settle();
  const closed = all.models[Symbol.asyncDispose]();
  const { failure } = await assertRejects(() => b, JobError);
  assertEquals([failure.status, failure.code], [503, "closing"]);
  await closed;
  assertEquals(all.log, ["load a", "load b", "unload a"]);
  await assertRejects(() => all.models.use("a", never), JobError, "shutting down");
});
