import { assertEquals, assertRejects } from "@std/assert";
import { TransientFailure } from "./http.ts";
import { retry } from "./retry.ts";

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
