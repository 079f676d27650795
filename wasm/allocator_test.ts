import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ALIGNMENT, createAllocator } from "./allocator.ts";

Deno.test("live blocks never overlap, are aligned, and everything is free in the end", () => {
  const command = fc.record({ bytes: fc.integer({ min: 0, max: 5000 }), release: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      let end = 0;
      const allocator = createAllocator(100, { ensure: (to) => end = to, limit: 2 ** 20 });
      const live: { address: number; bytes: number }[] = [];
      for (const { bytes, release } of commands) {
        if (release < 4 && live.length > release) {
          allocator.release(live.splice(release, 1)[0]!.address);
          continue;
        }
        const address = allocator.allocate(bytes);
        assertEquals(address % ALIGNMENT, 0);
        assert(address >= 100 && address + bytes <= end);
        for (const other of live) {
          assert(address + bytes <= other.address || other.address + other.bytes <= address);
        }
        live.push({ address, bytes });
      }
      for (const { address } of live) allocator.release(address);
      assertEquals(allocator.usedBytes, 0);
      assertEquals(allocator.allocate(2 ** 20 - 128), 128); // one free range again
    }),
    { seed: 1, numRuns: 200 },
  );
});

Deno.test("releasing what is no block is refused", () => {
  const allocator = createAllocator(0, { ensure: () => {} });
  assertThrows(() => allocator.release(64), RangeError, "Cannot release 64");
  assertThrows(() => allocator.allocate(-1), RangeError, "Cannot allocate -1 bytes");
});
