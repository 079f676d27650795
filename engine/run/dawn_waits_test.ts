import { assert, assertEquals, assertRejects } from "@std/assert";
import { napWhileMapping } from "./dawn_waits.ts";

/** Looks for its result in every turn of the event loop, as Dawn does. */
class Polled {
  turns = 0;

  mapAsync(milliseconds: number, error?: Error): Promise<void> {
    const end = performance.now() + milliseconds;
    return new Promise((resolve, reject) => {
      const look = () => {
        this.turns++;
        if (performance.now() < end) setImmediate(look);
        else if (error) reject(error);
        else resolve();
      };
      setImmediate(look);
    });
  }
}

Deno.test("mappings are waited for with few turns, also several at once and one that fails", async () => {
  napWhileMapping(Polled as never);
  napWhileMapping(Polled as never);
  const one = new Polled(), other = new Polled(), wrong = new Polled();
  await Promise.all([
    one.mapAsync(100),
    other.mapAsync(50),
    assertRejects(() => wrong.mapAsync(20, new Error("lost")), Error, "lost"),
  ]);
  // 16 naps of the least length, then each a sixteenth longer, begun anew behind the two that end before.
  const most = 3 * (16 + 16 * Math.log(100 / 1.6));
  assert(one.turns < most, `${one.turns} turns`);
  const before = one.turns;
  await one.mapAsync(0);
  assertEquals(one.turns, before + 1);
});
