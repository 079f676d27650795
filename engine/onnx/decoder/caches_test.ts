import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Caches, type CacheTensor } from "./caches.ts";

const CAPACITY = 12;

/** Two tensors; rows of a token hold its number, the block and the place in it. */
function tensors(): CacheTensor[] {
  return [[2, 3], [1, 4]].map(([outer, inner]) => ({
    dtype: "f32",
    outer: outer!,
    inner: inner!,
    data: new Float32Array(outer! * inner! * 16),
  }));
}

function rowOf(token: number, block: number, at: number): number {
  return 100 * token + 10 * block + at;
}

const step = fc.record({
  slot: fc.nat(1),
  keep: fc.nat(CAPACITY),
  count: fc.integer({ min: 1, max: 4 }),
});

for (const padTo of [1, 4]) {
  Deno.test(`caches padded to ${padTo} hold what each slot appended, whatever came between`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const all = tensors();
        const heldFor = (length: number) => Math.ceil(length / padTo) * padTo;
        const caches = new Caches(all, { slots: 2, capacity: CAPACITY, heldFor });
        const slots = [caches.open(), caches.open()];
        const timelines: number[][] = [[], []];
        let next = 0;
        for (const { slot, keep, count } of steps) {
          const timeline = timelines[slot]!;
          timeline.length = Math.min(timeline.length, keep, CAPACITY - count);
          const fresh = Array.from({ length: count }, () => next++);
          const held = caches.feed(slots[slot]!, timeline.length);
          all.forEach(({ data, outer, inner }) => {
            const seen = Array.from(
              { length: outer },
              (_, block) =>
                timeline.map((_, row) => data[(block * held + row) * inner + inner - 1]),
            );
            const wanted = Array.from(
              { length: outer },
              (_, block) => timeline.map((token) => rowOf(token, block, inner - 1)),
            );
            assertEquals(seen, wanted);
          });
          caches.append(timeline.length, count, (i) => {
            const { outer, inner } = all[i]!;
            const data = Float32Array.from({ length: outer * (count + 1) * inner }, (_, at) => {
              const row = Math.floor(at / inner) % (count + 1) - 1;
              const block = Math.floor(at / inner / (count + 1));
              return row < 0 ? -1 : rowOf(fresh[row]!, block, at % inner);
            });
            return { data, stride: count + 1, from: 1 };
          });
          timeline.push(...fresh);
        }
        const states = slots.map((slot, i) => caches.read(slot, timelines[i]!.length));
        states.forEach((state, i) => caches.write(slots[1 - i]!, timelines[i]!.length, state));
        assertEquals(
          slots.map((slot, i) => caches.read(slot, timelines[1 - i]!.length)),
          states.toReversed(),
        );
      }),
      { seed: 6, numRuns: 200 },
    );
  });
}

Deno.test("caches refuse slots that are not open and states of another length", () => {
  const caches = new Caches(tensors(), { slots: 1, capacity: 4, heldFor: (length) => length });
  assertThrows(() => caches.feed(0, 0), RangeError, "slot 0");
  caches.open();
  assertThrows(() => caches.write(0, 1, new Uint8Array(3)), RangeError, "expected 40");
});
