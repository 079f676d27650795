import { assert, assertEquals, assertThrows } from "@std/assert";
import { FILE_READER, openFile } from "../io.ts";
import { formatBytes, getFormat } from "../../quant/mod.ts";
import { pack } from "../../tests/support/wasm.ts";
import { randomWeight } from "../../tests/support/weights.ts";
import { createMachine, type Machine } from "../../wasm/machine.ts";
import { createFilePacker, type FileBytes } from "../../wasm/pack_files.ts";
import type { Packed } from "../../wasm/place_weight.ts";
import { WEIGHT_LAYOUTS } from "../../wasm/weight_layout.ts";

const FORMATS = ["Q4_1", "Q8_0", "F16", "F32", "Q6_K", "IQ4_NL", "IQ2_XS"];
const ROWS = 261;
const COLUMNS = 512;
const GAP = 13;

/** A file with a matrix of each format, behind bytes that belong to none. */
function matrices() {
  const all = FORMATS.map((format, i) => randomWeight(format, ROWS, COLUMNS, i + 1).bytes);
  const file = new Uint8Array(all.reduce((sum, { length }) => sum + length + GAP, 0));
  let at = 0;
  const places = all.map((bytes) => {
    file.set(bytes, at += GAP);
    at += bytes.length;
    return at - bytes.length;
  });
  return { all, file, places };
}

/** The bytes of a matrix, those zero that mean nothing. */
function meaningful(machine: Machine, { layout, address, bytes }: Packed): Uint8Array {
  const { blockColumns, cellColumns, headerBytes, cellBytes, spareBytes } = WEIGHT_LAYOUTS[layout]!;
  const copy = machine.u8(address, bytes).slice();
  const blockBytes = headerBytes + blockColumns / cellColumns * cellBytes;
  for (let block = 0; spareBytes && block < bytes; block += blockBytes) {
    for (let end = headerBytes + cellBytes; end <= blockBytes; end += cellBytes) {
      copy.fill(0, block + end - spareBytes, block + end);
    }
  }
  return copy;
}

async function withFile(bytes: Uint8Array, work: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeFile(path, bytes);
    await work(path);
  } finally {
    await Deno.remove(path);
  }
}

function packAll(machine: Machine, path: string, places: readonly number[]) {
  const source = openFile(path);
  const packer = createFilePacker(machine);
  const bytesAt = (offset: number): FileBytes => ({
    file: source.file!,
    offset,
    readInto: (at, target) => void source.readInto(at, target),
  });
  const weights = FORMATS.map((format, i) =>
    packer.add(bytesAt(places[i]!), { format, rows: ROWS, columns: COLUMNS }, false)!
  );
  const copy = machine.allocate(100);
  const plain = packer.addPlain(bytesAt(places[1]!), copy, 100)!;
  packer.start();
  return { source, packer, weights, plain, copy };
}

Deno.test("weights that all threads read are those that one packs", async () => {
  const { all, file, places } = matrices();
  await withFile(file, async (path) => {
    for (const threads of [1, 2]) {
      // With workers that are up, that come late, and that cannot open files.
      for (const options of [{}, { wait: false }, { reader: undefined }]) {
        using machine = await createMachine({ threads, reader: FILE_READER, ...options });
        const { source, packer, weights, plain, copy } = packAll(machine, path, places);
        packer.finish(() => {});
        source.close();
        const failing = "reader" in options && threads > 1;
        for (const [i, { packed, failed }] of weights.entries()) {
          if (failed) {
            assert(failing, `${FORMATS[i]} ${threads} ${JSON.stringify(options)}`);
            continue;
          }
          const wanted = await pack(machine, FORMATS[i]!, ROWS, COLUMNS, all[i]!);
          assertEquals(meaningful(machine, packed!), meaningful(machine, wanted), FORMATS[i]);
        }
        if (!plain.failed) assertEquals(machine.u8(copy, 100).slice(), all[1]!.slice(0, 100));
        assert(failing || !plain.failed);
      }
    }
  });
});

Deno.test("threads that round matrices of different widths at once do not meet in scratch memory", async () => {
  const rows = 264, widths = Array.from({ length: 24 }, (_, i) => i % 2 ? 1536 : 64);
  const all = widths.map((columns, i) => randomWeight("F32", rows, columns, i + 1).bytes);
  const file = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  const places = all.map((_, i) => all.slice(0, i).reduce((sum, { length }) => sum + length, 0));
  all.forEach((bytes, i) => file.set(bytes, places[i]!));
  await withFile(file, async (path) => {
    using machine = await createMachine({ threads: 2, reader: FILE_READER });
    const source = openFile(path), packer = createFilePacker(machine);
    const readInto: FileBytes["readInto"] = (at, target) => void source.readInto(at, target);
    const weights = widths.map((columns, i) =>
      packer.add(
        { file: source.file!, offset: places[i]!, readInto },
        { format: "F32", rows, columns },
        true,
      )!
    );
    packer.start();
    packer.finish(() => {});
    source.close();
    for (const [i, { packed }] of weights.entries()) {
      const wanted = await pack(machine, "F32", rows, widths[i]!, all[i]!, true);
      assertEquals(
        machine.u8(packed!.address, packed!.bytes).slice(),
        machine.u8(wanted.address, wanted.bytes).slice(),
        `${i}`,
      );
    }
  });
});

Deno.test("a weight fails by itself: cut short, or with scales that are not finite", async () => {
  const { file, places } = matrices();
  // A scale of the second matrix.
  file.set([0, 0x7c], places[1]!);
  await withFile(file, async (path) => {
    using machine = await createMachine({ threads: 2, reader: FILE_READER });
    const { source, packer, weights } = packAll(machine, path, places);
    packer.finish(() => {});
    assertEquals(weights.map(({ failed }) => failed), FORMATS.map((_, i) => i === 1));
    source.close();
  });
  await withFile(file.subarray(0, -5), async (path) => {
    using machine = await createMachine({ threads: 2, reader: FILE_READER });
    const { source, packer, weights } = packAll(machine, path, places);
    packer.finish(() => {});
    const bytes = formatBytes(getFormat("IQ2_XS"), ROWS * COLUMNS);
    assert(places.at(-1)! + bytes > source.size);
    assertEquals(weights.map(({ failed }) => failed), FORMATS.map((_, i) => i === 1 || i === 6));
    source.close();
  });
});

Deno.test("progress is told as files are read, and what it throws ends reading", async () => {
  const rows = 8 * 1024;
  const bytes = new Uint8Array(formatBytes(getFormat("Q8_0"), rows * COLUMNS));
  await withFile(bytes, async (path) => {
    for (const stops of [false, true]) {
      using machine = await createMachine({ threads: 1, reader: FILE_READER });
      const source = openFile(path);
      const packer = createFilePacker(machine);
      const readInto: FileBytes["readInto"] = (at, target) => void source.readInto(at, target);
      const shape = { format: "Q8_0", rows, columns: COLUMNS };
      packer.add({ file: source.file!, offset: 0, readInto }, shape, false);
      packer.start();
      const reports: number[] = [];
      const progress = (read: number) => {
        reports.push(read);
        if (stops) throw new RangeError("stopped");
      };
      if (stops) assertThrows(() => packer.finish(progress), RangeError, "stopped");
      else packer.finish(progress);
      source.close();
      assertEquals(reports.length > 2, !stops);
      assertEquals(reports, reports.toSorted((a, b) => a - b));
    }
  });
});
