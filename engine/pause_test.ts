import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { pause, runSteps } from "./pause.ts";

function work(ms: number): void {
  for (const start = performance.now(); performance.now() - start < ms;);
}

Deno.test({
  name: "a signal of the system is seen between steps, long ones and short ones",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    // Left to itself, the loop of events looks for signals every 61st turn.
    for (const [ms, most] of [[1, 3000], [100, 30]] as const) {
      let seen = false;
      const listener = () => void (seen = true);
      Deno.addSignalListener("SIGUSR1", listener);
      try {
        // What runs the loop of events is busy, as it is in the midst of a model.
        for (let i = 0; i < 3; i++) {
          work(ms);
          await pause();
        }
        Deno.kill(Deno.pid, "SIGUSR1");
        for (let turns = 0; !seen && turns < most; turns++) {
          work(ms);
          await pause();
        }
        assert(seen, `${most} turns of ${ms} ms`);
      } finally {
        Deno.removeSignalListener("SIGUSR1", listener);
      }
    }
  },
});

Deno.test("a timer fires between two steps", async () => {
  let fired = false;
  setTimeout(() => fired = true, 0);
  for (let i = 0; i < 1000 && !fired; i++) {
    work(1);
    await pause();
  }
  assert(fired);
});

Deno.test("work in steps ends with its result, and a signal stops it between two of them", async () => {
  let done = 0;
  function* steps() {
    for (; done < 10_000; done++) {
      work(1);
      yield;
    }
    return "result";
  }
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 5);
  await assertRejects(() => runSteps(steps(), controller.signal), Error, "enough");
  assertLess(done, 10_000);
  done = 9_990;
  assertEquals(await runSteps(steps()), "result");
});
