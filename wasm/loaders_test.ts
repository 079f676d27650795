// How weights that come and go are read: which bytes in which order, and by whom. Where a thread does not read, a test
// waits for good; none looks at a clock.

import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { pack } from "../tests/support/wasm.ts";
import { randomWeight } from "../tests/support/weights.ts";
import { createLoaders, type LoaderOptions, type Loaders, PIECE } from "./loaders.ts";
import { type Pieces, writePieces } from "./load_pieces.ts";
import { createMachine, type Machine } from "./machine.ts";
import { type Packed, packedAt, placeWeight, type WeightShape } from "./place_weight.ts";
import type { FileReader } from "./pool.ts";

/** A matrix of 1 MB in a format whose layout has no byte that means nothing. */
const SHAPE = { format: "Q2_K", rows: 1000, columns: 3072 };
const ROW_BYTES = SHAPE.columns / 256 * 84, BYTES = SHAPE.rows * ROW_BYTES;
const COUNT = 4;

/** What threads read by: `file` is a path. */
const READER: FileReader = `() => (path, offset, target) => {
  const file = Deno.openSync(path);
  file.seekSync(offset, 0);
  const count = file.readSync(target);
  file.close();
  return count === target.length;
}`;

/** KiB of the pieces of a matrix. */
function sizesOf(machine: Machine, shape: WeightShape, bytesPerSecond?: number): number[] {
  const bytes = { file: "", offset: 0, readInto() {} },
    place = packedAt(0, { ...shape, rounded: false });
  const { of: [pieces] } = writePieces(machine, {
    ...{ loaders: 1, bytesPerSecond },
    sources: [{ bytes, shape, rounded: false, place, done: 0, bad: 0 }],
  });
  return pieces!.map((piece) => machine.u32(piece + PIECE.KIB, 1)[0]!);
}

Deno.test("a piece is a whole matrix, in equal parts where that is large or reading is held back", async () => {
  using machine = await createMachine({ threads: 1 });
  assertEquals(sizesOf(machine, SHAPE), [Math.ceil(BYTES / 1024)]);
  const large = { format: "Q4_0", rows: 22_016, columns: 8192 };
  assertEquals(sizesOf(machine, large), [99_072]);
  const parts = sizesOf(machine, { ...large, rows: 2 * large.rows });
  assertEquals(parts.length, 2);
  assertAlmostEquals(parts[0]!, parts[1]!, 512);
  const held = sizesOf(machine, large, 4e6);
  assert(held.length > 20 && held.every((kib) => 1024 * kib < 4.2e6), held.join());
});

interface Case {
  readonly machine: Machine;
  readonly loaders: Loaders;
  readonly pieces: Pieces;
  readonly places: readonly Packed[];
  /** Offsets and sizes that the calling thread has read. */
  readonly reads: [number, number][];
  /** Index of the word that counts. */
  readonly done: number;
}

/** Matrices that follow each other in a file, each in so many parts. */
async function withCase(
  { parts = 1, ...options }: Partial<LoaderOptions> & { readonly parts?: number },
  use: (all: Case) => Promise<void>,
): Promise<void> {
  const path = await Deno.makeTempFile(),
    { bytes } = randomWeight(SHAPE.format, COUNT * SHAPE.rows, SHAPE.columns, 5);
  try {
    await Deno.writeFile(path, bytes);
    using machine = await createMachine({ threads: 1, reader: READER });
    const places = Array.from({ length: COUNT }, () => placeWeight(machine, { source: SHAPE }));
    const reads: [number, number][] = [],
      done = machine.allocate(8),
      threads = options.threads ?? 0;
    machine.u32(done, 2).fill(0);
    const readInto = (offset: number, target: Uint8Array) => {
      reads.push([offset, target.length]);
      target.set(bytes.subarray(offset, offset + target.length));
    };
    const pieces = writePieces(machine, {
      ...{ loaders: threads, bytesPerSecond: BYTES / parts },
      sources: places.map((place, i) => ({
        ...{ shape: SHAPE, rounded: false, place, done, bad: done + 4 },
        bytes: { file: path, offset: i * BYTES, readInto },
      })),
    });
    const loaders = createLoaders(machine, {
      pieces: parts * COUNT,
      read: pieces.read,
      loaded: pieces.loaded,
      ...options,
      threads,
    });
    try {
      await use({ machine, loaders, pieces, places, reads, done: done >>> 2 });
      for (const [i, place] of places.entries()) {
        const { format, rows, columns } = SHAPE, from = bytes.subarray(i * BYTES);
        const expected = await pack(machine, format, rows, columns, from);
        const used = SHAPE.rows / 8 * place.tileBytes;
        const [own, others] = [place, expected].map(({ address }) => machine.u8(address, used));
        assert(own!.every((byte, at) => byte === others![at]));
      }
    } finally {
      loaders.dispose();
    }
  } finally {
    await Deno.remove(path);
  }
}

Deno.test("pieces are read from end to end in the order they are handed over in, urgent ones first", () =>
  withCase({ threads: 0 }, ({ loaders, pieces: { of }, reads, done }) => {
    for (const index of [0, 1, 2]) loaders.push(of[index]![0]!);
    loaders.push(of[3]![0]!, true);
    loaders.wait(done, COUNT);
    const order = [3, 0, 1, 2];
    for (const index of order) {
      let at = index * BYTES;
      while (at < (index + 1) * BYTES) {
        const [offset, length] = reads.shift()!;
        assertEquals(offset, at);
        assert(length <= 256 * 1024 && length % ROW_BYTES === 0, `${length}`);
        at += length;
      }
      assertEquals(at, (index + 1) * BYTES);
    }
    assertEquals(reads, []);
    return Promise.resolve();
  }));

Deno.test("threads read on while the one that hands over hears nothing, and are replaced when they have retired", () =>
  withCase(
    { threads: 2, retireMs: 1, parts: 2 },
    async ({ machine, loaders, pieces: { of }, reads, done }) => {
      const words = new Int32Array(machine.memory.buffer), all = of.flat();
      assertEquals(all.length, 2 * COUNT);
      for (const count of [COUNT, 2 * COUNT]) {
        for (const piece of all.slice(count - COUNT, count)) loaders.push(piece);
        // No turn of this thread's loop, and no part in it.
        for (let seen = 0; seen < count; seen = Atomics.load(words, done)) {
          if (Atomics.wait(words, done, seen, 100) === "timed-out") loaders.refresh();
        }
        // So that they may end.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assertEquals(reads, []);
    },
  ));

/** How a thread does not start: at once, or later. */
const FAILURES = {
  refused: () => {
    throw new Error("no thread is left");
  },
  dead: (worker: Worker) =>
    queueMicrotask(() => worker.onerror!({ message: "", preventDefault() {} } as ErrorEvent)),
} satisfies Record<string, (worker: Worker) => void>;

for (const [what, fail] of Object.entries(FAILURES)) {
  Deno.test(`where no thread can load (${what}), the one that waits does, also when reading is held back`, async () => {
    const { Worker: real } = globalThis;
    let terminated = 0;
    globalThis.Worker = function () {
      const worker = { terminate: () => terminated++ } as unknown as Worker;
      worker.postMessage = () => fail(worker);
      return worker;
    } as unknown as typeof Worker;
    try {
      await withCase(
        { threads: 1, parts: 1, bytesPerSecond: 1e12 },
        async ({ loaders, pieces: { of }, done }) => {
          await Promise.resolve();
          for (const piece of of.flat()) loaders.push(piece);
          loaders.wait(done, COUNT);
          assertEquals(terminated, 1);
        },
      );
    } finally {
      globalThis.Worker = real;
    }
  });
}
