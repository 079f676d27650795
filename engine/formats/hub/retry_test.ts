import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { SourceError } from "../../errors.ts";
import { secondsToWait, TransientFailure } from "./http.ts";
import { retry, retryOrExplain } from "./retry.ts";

Deno.test("work is tried as often as it may be, and progress gives it all tries again", async () => {
  let calls = 0;
  const options = { attempts: 3, backoffMs: 0 };
  const dead = () => Promise.reject(new TransientFailure(`call ${++calls}`));
  await assertRejects(() => retry(dead, options), TransientFailure, "call 3");
  calls = 0;
  const slow = (progress: () => void) => {
    if (calls === 1) progress();
    return dead();
  };
  await assertRejects(() => retry(slow, options), TransientFailure);
  assertEquals(calls, 4);
  const broken = () => Promise.reject(new TypeError(`call ${++calls}`));
  await assertRejects(() => retry(broken, options), TypeError, "call 5");
});

Deno.test("Retry-After is a number of seconds or a date", () => {
  const now = Date.UTC(2026, 0, 1, 12);
  const wait = (header: string | null) => secondsToWait(header, now);
  assertEquals(["120", " 5 ", "0", "-3", "soon", "", null].map(wait), [
    ...[120, 5],
    ...Array<undefined>(5),
  ]);
  assertEquals(wait("Thu, 01 Jan 2026 12:02:30 GMT"), 150);
  assertEquals(wait("Thu, 01 Jan 2026 11:59:00 GMT"), undefined);
});

Deno.test("a server that asks for more patience than ten minutes is not asked again, and the error says when", async () => {
  let calls = 0;
  const busy = () => {
    calls++;
    return Promise.reject(new TransientFailure("the server answers 429", { retryAfter: 3601 }));
  };
  const error = await assertRejects(
    () => retryOrExplain("https://hub.test/m.gguf", busy, { backoffMs: 0 }),
    SourceError,
  );
  assertEquals(calls, 1);
  assertMatch(error.message, /answers 429.*in 61 minutes run the same command again/);
});
