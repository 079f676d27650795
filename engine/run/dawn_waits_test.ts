import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { waitWithFewLooks } from "./dawn_waits.ts";

/** Looks for its result in every turn of the event loop, as Dawn does. */
class Polled {
  looks = 0;
  mapState: GPUBufferMapState = "unmapped";

  /** Is mapped when the event is there. */
  mapAsync(isThere: (looks: number) => boolean, error?: Error): Promise<undefined> {
    this.looks = 0;
    this.mapState = "pending";
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!isThere(++this.looks)) return void setImmediate(look);
        this.mapState = error ? "unmapped" : "mapped";
        if (error) reject(error);
        else resolve(undefined);
      };
      setImmediate(look);
    });
  }

  getMappedRange(): ArrayBuffer {
    if (this.mapState !== "mapped") throw new TypeError(`Cannot get a range: ${this.mapState}`);
    return new ArrayBuffer(4);
  }

  unmap(): void {
    this.mapState = "unmapped";
  }
}

waitWithFewLooks(Polled as never, ({ name }) => name === "look");

/** Whether so many milliseconds have gone by. */
function after(milliseconds: number): () => boolean {
  const end = performance.now() + milliseconds;
  return () => performance.now() >= end;
}

Deno.test("mappings are awaited with few looks, also one that fails", async () => {
  const one = new Polled(), wrong = new Polled();
  await one.mapAsync(after(100));
  // 16 naps of the least length, then each a sixteenth longer.
  const most = 16 + 16 * Math.log(100 / 1.6) + 50;
  assert(one.looks < most, `${one.looks} looks`);
  await assertRejects(() => wrong.mapAsync(after(5), new Error("lost")), Error, "lost");
});

Deno.test("a range of what is being mapped is waited for without a turn of the event loop", async () => {
  const buffer = new Polled();
  let turns = 0;
  const counted = setImmediate(() => turns++);
  const mapped = buffer.mapAsync((looks) => looks === 20);
  assertEquals(buffer.getMappedRange().byteLength, 4);
  assertEquals([buffer.looks, turns], [20, 0]);
  await mapped;
  buffer.unmap();
  clearImmediate(counted);
  // Of a mapping that fails there is no range.
  const lost = buffer.mapAsync(() => true, new Error("lost"));
  assertThrows(() => buffer.getMappedRange(), TypeError, "unmapped");
  await assertRejects(() => lost, Error, "lost");
});

Deno.test("waits look a few times, and a short one behind long ones does so before those were over", async () => {
  const buffer = new Polled();
  async function looksOf(milliseconds: number): Promise<number> {
    const mapped = buffer.mapAsync(after(milliseconds));
    buffer.getMappedRange();
    await mapped;
    buffer.unmap();
    return buffer.looks;
  }
  for (let turn = 0; turn < 3; turn++) {
    const looks = await looksOf(40);
    // 12 of the least length, then each a twelfth longer; and close to each other from 7/8 to 9/8 of it.
    const most = 12 + 12 * Math.log(40 / 0.6) + 100 * Math.log(9 / 7) + 20;
    assert(looks < most, `${looks} looks`);
  }
  assert(await looksOf(5) > 2);
});

Deno.test("tasks of others are called in their turns", async () => {
  const order: string[] = [], { promise, resolve } = Promise.withResolvers<void>();
  setImmediate((text: string) => order.push(text), "first");
  const counted = setImmediate(() => order.push("never"));
  clearImmediate(counted);
  setImmediate(() => resolve());
  await promise;
  assertEquals(order, ["first"]);
});
