import { assert, assertEquals, assertThrows } from "@std/assert";
import { formatBytes, formats, getFormat, rowFormatsOf } from "../quant/mod.ts";
import { E2M1_DOUBLED } from "../quant/e2m1.ts";
import { decodeSmallFloat } from "../quant/small_floats.ts";
import { type CodeLayout, codeLayoutOf, codeLayouts } from "./layouts/code_layout.ts";
import { CODE_KINDS } from "./layouts/code_planes.ts";
import { planeNames } from "./kernels/matmul/weight_reader.ts";
import {
  FLOAT_LAYOUT,
  gpuLayout,
  gpuLayoutOf,
  type GpuWeightLayout,
  hasGpuIntegerKernel,
} from "./weight_layout.ts";

/** Bytes of a format: ordinary numbers, or the same number again and again. */
function randomBlocks(name: string, count: number, constant?: number): Uint8Array<ArrayBuffer> {
  const format = getFormat(name);
  const bytes = new Uint8Array(formatBytes(format, count));
  // Between -1 and 1, which is what Q4_B16 can hold.
  const values = Float32Array.from(
    { length: count },
    (_, i) => constant ?? Math.sin(i * 1.7) / 2 + i % 5 / 10,
  );
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

/** Reads the code of a column as layouts/code_planes.ts says it lies. */
function codeOf(
  { codes, table }: CodeLayout,
  planes: readonly Uint8Array<ArrayBuffer>[],
  group: number,
  column: number,
): number {
  const quad = column >> 2, byte = column & 3;
  const bit = (plane: number) => (planes[plane]![4 * group + byte]! >> quad) & 1;
  const pair = (plane: number) =>
    (planes[plane]![8 * group + 4 * (quad >> 2) + byte]! >> (2 * (quad & 3))) & 3;
  const nibble = () => (planes[0]![16 * group + column % 16]! >> (column < 16 ? 0 : 4)) & 15;
  switch (codes) {
    case "s1":
      return 2 * bit(0) - 1;
    case "u2":
      return pair(0);
    case "u3":
      return pair(0) | (bit(1) << 2);
    case "u4":
      return nibble();
    case "u5":
      return nibble() | (bit(1) << 4);
    case "u6":
      return nibble() | (pair(1) << 4);
    default:
      throw new TypeError(`${codes} are no codes of columns`);
    case "i8":
      return (planes[0]![32 * group + column]! << 24) >> 24;
    case "l4":
      return (table![nibble()]! << 24) >> 24;
    case "f4":
      return 16 + E2M1_DOUBLED[nibble()]!;
  }
}

/** The value of a code by the scales of its group, as layouts/code_layout.ts says they lie. */
function valueOf(
  { scales, span, offset }: CodeLayout,
  plane: Uint8Array<ArrayBuffer>,
  { group, column, groups }: { group: number; column: number; groups: number },
): (code: number) => number {
  const view = new DataView(plane.buffer);
  const at = Math.floor(group / (span === "row" ? groups : span / 32));
  const half = (place: number) => view.getFloat16(place, true);
  const float = (place: number) => view.getFloat32(place, true);
  const [byte, upper] = [view.getUint8.bind(view), column >> 4];
  const block = group >> 3, own = group & 7;
  const level = (step: number) => (code: number) =>
    (16 * step + step * code - half(4 * at + 2)) * half(4 * at);
  switch (scales) {
    case "d":
      return (code) => half(2 * at) * (code - offset);
    case "f":
      return (code) => float(4 * at) * (code - offset);
    case "dm":
      return (code) => half(4 * at) * (code - offset) + half(4 * at + 2);
    case "fm":
      return (code) => float(8 * at) * code + float(8 * at + 4);
    case "dz":
      return (code) => half(4 * at) * (code - view.getInt16(4 * at + 2, true));
    case "e1":
      return level(1 / 8);
    case "e2":
      return level(1 / 4);
    case "sides":
      return (code) => code * float(8 * at + (code < 0 ? 4 : 0));
    case "e8":
      return (code) => 2 ** (byte(group) - 128) * (code - offset);
    case "k":
      return (code) =>
        half(20 * block) * byte(20 * block + 4 + 2 * own) * code -
        half(20 * block + 2) * byte(20 * block + 5 + 2 * own);
    case "k8":
      return (code) => half(12 * block) * view.getInt8(12 * block + 4 + own) * (code - offset);
    case "k16":
      return (code) =>
        half(20 * block) * view.getInt8(20 * block + 4 + 2 * own + upper) * (code - offset);
    case "kn16": {
      const nibbles = byte(20 * block + 4 + 2 * own + upper);
      return (code) =>
        half(20 * block) * (nibbles & 15) * code - half(20 * block + 2) * (nibbles >> 4);
    }
    case "e4m3": {
      const scale = decodeSmallFloat("f8e4m3fn", byte(2 * group + upper));
      return (code) => scale / 2 * (code - offset);
    }
    case "n8":
    case "n16":
      throw new TypeError(`${scales} goes with codes of several columns`);
    case "b16": {
      const place = 4 * group + 2 * upper;
      return (code) => byte(place + 1) / 1000 * code + (byte(place) - 100) / 100;
    }
  }
}

/** Formats of codes, and columns that are a block or an odd number of groups. */
const FORMATS = [
  ...[...formats.keys()].filter(hasGpuIntegerKernel).map((format) =>
    [format, getFormat(format).blockSize <= 32 ? 96 : 256] as const
  ),
  ...rowFormatsOf(96).map(({ name }) => [name, 96] as const),
];

/** Codes of several columns are read by shaders alone, which weight_kernels_test.ts holds against the decoders. */
const isOfColumns = ({ codes }: CodeLayout) => /^[suilf]/.test(codes);

for (const [format, columns] of FORMATS) {
  const layout = codeLayoutOf(format)!;
  if (!isOfColumns(layout)) continue;
  Deno.test(`planes of ${layout.id} hold exactly the numbers of ${format}`, () => {
    // A scale of zero, constant blocks, and steps that are subnormal in 16 bits.
    const rows = [undefined, 0, 0.25, 1e-7].map((value) => randomBlocks(format, columns, value));
    const bytes = new Uint8Array(rows.flatMap((row) => [...row]));
    // Blocks of a file lie where they lie.
    const shifted = new Uint8Array(bytes.length + 1);
    shifted.set(bytes, 1);
    const planes = packed(layout, format, [rows.length, columns], shifted.subarray(1));
    const scales = planes[CODE_KINDS[layout.codes].length]!;
    const groups = columns / 32;
    const values = Float32Array.from({ length: rows.length * columns }, (_, i) => {
      const group = i >> 5, column = i & 31;
      return valueOf(layout, scales, { group, column, groups })(
        codeOf(layout, planes, group, column),
      );
    });
    const wanted = decoded(format, bytes, rows.length * columns);
    // 0 times a negative code is -0 in one of them.
    assertEquals(values.map((x) => x + 0), wanted.map((x) => x + 0));
  });
}

Deno.test("a layout takes at most an eighth more than the format's own bytes", () => {
  for (const [format] of FORMATS) {
    const { rowFamily } = getFormat(format);
    const name = rowFamily ? `${rowFamily}_4096` : format;
    const layout = gpuLayoutOf(name, 4096);
    const bytes = layout.planeBytes(4096).reduce((sum, size) => sum + size, 0);
    const own = formatBytes(getFormat(name), 4096 * layout.rowGroup);
    assert(bytes <= 1.125 * own, `${format}: ${bytes} for ${own}`);
  }
});

Deno.test("no layout takes more bindings than a product has to spare of eight", () => {
  // x, y, a bias, and a residual, a gain or a list of matrices are the other four.
  for (const [format, columns] of FORMATS) {
    const names = planeNames(gpuLayoutOf(format, columns).id);
    assert(names.length <= 4 && new Set(names).size === names.length, `${format}: ${names}`);
  }
});

Deno.test("only formats that files hardly have matrices in are decoded to float32", () => {
  const floats = [...formats.keys()].filter((format) => gpuLayoutOf(format, 4096) === FLOAT_LAYOUT);
  const bytes = ["F8_E4M3", "F8_E5M2"]; // without scales, which few files have
  assertEquals(floats, ["F32", ...bytes, "F64", "I8", "I16", "I32", "I64"]);
});

Deno.test("formats that share a layout agree in all that kernels know", () => {
  const byId = new Map<string, CodeLayout>();
  for (const layout of codeLayouts().values()) {
    const first = byId.get(layout.id) ?? layout;
    byId.set(layout.id, first);
    const facts = ({ codes, scales, span, offset, factor, table }: CodeLayout) => [
      ...[codes, scales, span, offset, factor, table],
    ];
    assertEquals(facts(layout), facts(first));
  }
});

Deno.test("float layouts pad rows with zeros", () => {
  for (const format of ["F16", "BF16", "F32", "I8PC_5"]) {
    const columns = 5, layout = gpuLayoutOf(format, columns);
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

Deno.test("Q8_LOG keeps its bytes, whose values are a table", () => {
  const layout = gpuLayoutOf("Q8_LOG", 20);
  const bytes = randomBlocks("Q8_LOG", 40);
  const [plane] = packed(layout, "Q8_LOG", [2, 20], bytes) as [Uint8Array<ArrayBuffer>];
  const table = new Float32Array(layout.table!.buffer);
  const values = Float32Array.from(
    { length: 40 },
    (_, i) => table[plane[i < 20 ? i : i + 12]!]!,
  );
  assertEquals(values, decoded("Q8_LOG", bytes, 40));
  assertEquals(plane.length, 64);
});

Deno.test("a layout that does not exist is refused by name", () => {
  assertThrows(() => gpuLayout("u3_x"), RangeError, "u3_x");
});
