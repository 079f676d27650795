import { assertEquals, assertRejects } from "@std/assert";
import { createLock } from "./lock.ts";

Deno.test("acquire() lets one in at a time, in the order of the calls", async () => {
  const lock = createLock();
  const log: string[] = [];
  const task = async (name: string) => {
    const release = await lock.acquire();
    log.push(`${name} in`);
    await Promise.resolve();
    log.push(`${name} out`);
    release();
    release(); // a second call must not let two in
  };
  await Promise.all([task("a"), task("b"), task("c")]);
  assertEquals(log, ["a in", "a out", "b in", "b out", "c in", "c out"]);
});

Deno.test("an aborted waiter leaves the queue and the next one still gets in", async () => {
  const lock = createLock();
  const release = await lock.acquire();
  const controller = new AbortController();
  const waiting = lock.acquire(controller.signal);
  const next = lock.acquire();
  controller.abort(new Error("gone"));
  await assertRejects(() => waiting, Error, "gone");
  release();
  (await next)();
  await assertRejects(() => lock.acquire(controller.signal), Error, "gone");
});
