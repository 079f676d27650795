import { assert, assertEquals, assertThrows } from "@std/assert";
import { formatBytes, getFormat } from "../quant/mod.ts";
import { CODE_LAYOUTS, type CodeLayout } from "./code_layouts.ts";
import { FLOAT_LAYOUT, gpuLayout, gpuLayoutOf, type GpuWeightLayout } from "./weight_layout.ts";

/** Bytes of a format that stand for ordinary numbers. */
function randomBlocks(name: string, count: number): Uint8Array<ArrayBuffer> {
  const format = getFormat(name);
  const bytes = new Uint8Array(formatBytes(format, count));
  const values = Float32Array.from({ length: count }, (_, i) => Math.sin(i * 1.7) + i % 5 - 2);
  format.encode!(values, bytes);
  return bytes;
}

function decoded(name: string, bytes: Uint8Array, count: number): Float32Array {
  const values = new Float32Array(count);
  getFormat(name).decode(bytes, values);
  return values;
}

function packed(
  layout: GpuWeightLayout,
  format: string,
  [rows, columns]: readonly [number, number],
  bytes: Uint8Array,
): Uint8Array<ArrayBuffer>[] {
  const groups = Math.ceil(rows / layout.rowGroup);
  const planes = layout.planeBytes(columns).map((size) => {
    assertEquals(size % 4, 0);
    return new Uint8Array(size * groups);
  });
  layout.pack(bytes, { format, rows, columns }, planes);
  return planes;
}

/** Reads a group of 32 columns as the file's comment says it lies. */
function readGroup(
  { bits, scales, offset }: CodeLayout,
  planes: readonly Uint8Array<ArrayBuffer>[],
  group: number,
): number[] {
  const [codes, high] = planes as [Uint8Array, Uint8Array];
  const view = new DataView(planes.at(-1)!.buffer);
  const codeOf = (column: number): number => {
    if (bits === 8) return (codes[32 * group + column]! << 24) >> 24;
    const low = (codes[16 * group + column % 16]! >> (column < 16 ? 0 : 4)) & 15;
    const quad = column >> 2, byte = column & 3;
    if (bits === 5) return low | (((high[4 * group + byte]! >> quad) & 1) << 4);
    if (bits === 4) return low;
    const pair = high[8 * group + 4 * (quad >> 2) + byte]! >> (2 * (quad & 3));
    return low | ((pair & 3) << 4);
  };
  const block = 20 * (group >> 3), own = block + 4 + 2 * (group & 7);
  const half = (at: number) => view.getFloat16(at, true);
  const valueOf = {
    d: (code: number) => half(2 * group) * (code - offset),
    dm: (code: number) => half(4 * group) * code + half(4 * group + 2),
    k: (code: number) =>
      half(block) * view.getUint8(own) * code - half(block + 2) * view.getUint8(own + 1),
    k16: (code: number, column: number) =>
      half(block) * view.getInt8(own + (column >> 4)) * (code - offset),
  };
  return Array.from({ length: 32 }, (_, column) => valueOf[scales](codeOf(column), column));
}

for (const [format, layout] of Object.entries(CODE_LAYOUTS)) {
  Deno.test(`planes of ${layout.id} hold exactly the numbers of ${format}`, () => {
    const columns = getFormat(format).blockSize === 32 ? 96 : 256;
    const bytes = randomBlocks(format, 3 * columns);
    const planes = packed(layout, format, [3, columns], bytes);
    const groups = Array.from({ length: 3 * columns / 32 }, (_, g) => readGroup(layout, planes, g));
    assertEquals(Float32Array.from(groups.flat()), decoded(format, bytes, 3 * columns));
  });
}

Deno.test("float layouts pad rows with zeros", () => {
  for (const format of ["F16", "BF16", "F32", "Q2_K"]) {
    const layout = gpuLayoutOf(format, 256);
    const columns = format === "Q2_K" ? 256 : 5;
    const bytes = randomBlocks(format, 2 * columns);
    const [plane] = packed(layout, format, [2, columns], bytes) as [Uint8Array<ArrayBuffer>];
    const stored = layout === FLOAT_LAYOUT ? "F32" : format;
    const stride = plane.length / 2 / getFormat(stored).blockBytes;
    const values = decoded(stored, plane, 2 * stride);
    for (const row of [0, 1]) {
      assertEquals(
        values.slice(row * stride, row * stride + columns),
        decoded(format, bytes, 2 * columns).slice(row * columns, (row + 1) * columns),
      );
      assert(values.slice(row * stride + columns, (row + 1) * stride).every((x) => x === 0));
    }
  }
});

Deno.test("a layout that does not exist is refused by name", () => {
  assertThrows(() => gpuLayout("u3_x"), RangeError, "u3_x");
});
