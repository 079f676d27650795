// What must hold for headers of weight files: they are accepted exactly when they are valid, and tensors then lie
// where an independent reading says. Files are drawn from the bytes of an input: names, types, widths, alignments,
// the order of keys; and most of them are then damaged, each field in its own way.

import type { ByteSource } from "../../engine/byte_source.ts";
import { FormatError, UnsupportedError } from "../../engine/errors.ts";
import { openGguf } from "../../engine/formats/gguf/gguf.ts";
import { openSafetensors } from "../../engine/formats/safetensors/safetensors.ts";
import type { WeightFile } from "../../engine/formats/source.ts";
import { memorySource } from "../../engine/io.ts";
import { createDraw, type Draw } from "../../tools/support/draw.ts";
import { numberOf } from "./fuzz_sampling.ts";
import { readPlainGguf, Undecided } from "./plain_gguf.ts";
import { type TensorSpec, type Typed, writeGguf, writeSafetensors } from "./write_gguf.ts";

const choose = <T>(draw: Draw, list: readonly T[]): T => list[draw(list.length)]!;

function shuffled<T>(draw: Draw, list: readonly T[]): T[] {
  const rest = [...list], out: T[] = [];
  while (rest.length > 0) out.push(...rest.splice(draw(rest.length), 1));
  return out;
}

/** The opened file, or why it is refused. */
async function outcomeOf(
  open: (source: ByteSource) => Promise<WeightFile>,
  bytes: Uint8Array,
): Promise<WeightFile | string> {
  try {
    return await open(memorySource("fuzz", bytes));
  } catch (error) {
    if (error instanceof FormatError || error instanceof UnsupportedError) return error.message;
    throw error;
  }
}

function agree(ours: WeightFile | string, right: object | string, what: () => string): void {
  if ((typeof ours === "string") === (typeof right === "string")) return;
  const verdict = typeof ours === "string" ? `refused (${ours})` : "accepted";
  const wanted = typeof right === "string" ? `it is invalid (${right})` : "it is valid";
  throw new Error(`A file is ${verdict}, though ${wanted}: ${what()}`);
}

/**
 * A GGUF file, damaged or not, beside a plain reading of it.
 *
 * @throws {Error} If one is accepted and the other refused, or tensors lie elsewhere.
 */
export async function fuzzGgufHeader(input: Uint8Array): Promise<void> {
  const draw = createDraw(numberOf(input), 1);
  const file = damaged(draw, randomGguf(draw));
  let right: ReturnType<typeof readPlainGguf>;
  try {
    right = readPlainGguf(file);
  } catch (error) {
    if (error instanceof Undecided) return;
    throw error;
  }
  const ours = await outcomeOf(openGguf, file);
  agree(ours, right, () => file.toHex());
  if (typeof ours === "string" || typeof right === "string") return;
  const given = [...ours.tensors.values()].map(({ name, shape, offset, byteLength }) =>
    `${name} ${shape} ${offset} ${byteLength}`
  );
  const wanted = right.tensors.map(({ name, dims, offset, bytes }) =>
    `${name} ${dims.toReversed()} ${offset} ${bytes}`
  );
  if (given.join() !== wanted.join() || [...ours.metadata.keys()].join() !== right.keys.join()) {
    throw new Error(`${given} | ${[...ours.metadata.keys()]}, ${wanted} | ${right.keys} wanted`);
  }
}

/** Elements and bytes of a block of what is written. */
const TYPES = [[0, 1, 4], [1, 1, 2], [2, 32, 18], [8, 32, 34], [12, 256, 144], [26, 1, 4]] as const;

function randomGguf(draw: Draw): Uint8Array {
  const alignment = choose(draw, [8, 16, 32, 64, 256]);
  const number = (): number => draw(100);
  const values: readonly (() => Typed)[] = [
    ...(["u8", "i8", "u16", "i16", "u32", "i32", "f32", "u64", "i64", "f64"] as const).map(
      (type) => (): Typed => [type, number()],
    ),
    () => ["bool", draw(2)],
    () => ["string", choose(draw, ["", "a", "größer", "\u0000"])],
    () => ["array", Array.from({ length: draw(4) }, number), choose(draw, ["u8", "i32", "f64"])],
    () => ["array", Array.from({ length: draw(4) }, () => choose(draw, ["", "é"])), "string"],
    () => ["array", [["array", [1], "bool"], ["array", [], "u16"]], "array"],
  ];
  const keys = shuffled(draw, ["a", "general.name", "x.y", "ü"]).slice(draw(5));
  const pairs = keys.map((key): [string, Typed] => [key, choose(draw, values)()]);
  if (alignment !== 32 || draw(2) === 0) pairs.push(["general.alignment", ["u32", alignment]]);
  const names = shuffled(draw, ["w", "blk.0.w", "output", "ß"]).slice(draw(5));
  const tensors = names.map((name): TensorSpec => {
    const [type, elements, bytes] = choose(draw, TYPES);
    const rank = draw(5);
    const dims = Array.from(
      { length: rank },
      (_, i) => i === 0 ? elements * (1 + draw(2)) : draw(8) === 0 ? 0 : 1 + draw(3),
    );
    const isScalar = rank === 0 && elements > 1;
    const own = isScalar ? [elements] : dims;
    const count = own.reduce((product, dim) => product * dim, 1);
    return { name, dims: own, type, data: new Uint8Array(count / elements * bytes) };
  });
  return writeGguf(Object.fromEntries(shuffled(draw, pairs)), tensors, alignment);
}

const NUMBERS = [
  0n,
  1n,
  2n,
  5n,
  31n,
  33n,
  1n << 16n,
  (1n << 32n) - 1n,
  1n << 53n,
  (1n << 64n) - 1n,
];

/** Nothing, a byte, a number or the end is another one. */
function damaged(draw: Draw, file: Uint8Array): Uint8Array {
  const out = file.slice();
  for (let times = draw(3); times > 0; times--) {
    const at = draw(out.length);
    const way = draw(5);
    if (way === 0) out[at] = draw(256);
    else if (way === 1) out[at]! ^= 1 << draw(8);
    else if (way === 2) return out.subarray(0, at);
    else if (at + 8 <= out.length) {
      const view = new DataView(out.buffer, out.byteOffset);
      const number = choose(draw, NUMBERS);
      if (way === 3) view.setBigUint64(at, number, true);
      else view.setUint32(at, Number(number & 0xffffffffn), true);
    }
  }
  return out;
}

const WIDTHS: Readonly<Record<string, number>> = {
  ...{ F32: 4, F16: 2, BF16: 2, F64: 8, I64: 8, I32: 4, I16: 2, I8: 1, U8: 1, BOOL: 1 },
};

interface Row {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly unknown[];
  readonly offsets: readonly unknown[];
}

/**
 * A safetensors file of rows that may be damaged, judged by the rows.
 *
 * @throws {Error} If it is accepted though invalid, or the other way round.
 */
export async function fuzzSafetensorsHeader(input: Uint8Array): Promise<void> {
  const draw = createDraw(numberOf(input), 2);
  let end = 0;
  const rows = shuffled(draw, ["a", "b.weight", "ü", "__proto__", "constructor"]).slice(draw(6))
    .map((name): Row => {
      const dtype = choose(draw, Object.keys(WIDTHS));
      const shape = Array.from({ length: draw(4) }, () => draw(8) === 0 ? 0 : 1 + draw(4));
      const begin = end;
      end += shape.reduce((product, dim) => product * dim, WIDTHS[dtype]!);
      return { name, dtype, shape, offsets: [begin, end] };
    });
  const broken = draw(2) === 0
    ? rows
    : rows.map((row) => draw(2) === 0 ? row : damagedRow(draw, row));
  const extra = draw(6) === 0 ? choose(draw, [-1, 1, 8]) : 0;
  const length = Math.max(0, end + extra);
  const noted = choose(draw, [undefined, {}, { format: "pt" }, { n: 1 }, [], "text"]);
  const text = headerText(draw, shuffled(draw, broken), noted);
  const ours = await outcomeOf(openSafetensors, writeSafetensors(text, new Uint8Array(length)));
  const right = wrongIn(broken, length) ?? wrongNote(noted) ?? broken;
  agree(ours, right, () => `${text} and ${length} bytes`);
}

/** Fields in any order, spaces where JSON has them. */
function headerText(draw: Draw, rows: readonly Row[], noted: unknown): string {
  const space = (): string => choose(draw, ["", "", " ", "\n"]);
  const entries = rows.map(({ name, dtype, shape, offsets }) => {
    const fields = shuffled(draw, [
      `"dtype":${space()}${JSON.stringify(dtype)}`,
      `"shape":${JSON.stringify(shape)}`,
      `"data_offsets":${space()}${JSON.stringify(offsets)}`,
    ]);
    return `${JSON.stringify(name)}:${space()}{${fields.join(`,${space()}`)}}`;
  });
  if (noted !== undefined) entries.splice(draw(2), 0, `"__metadata__":${JSON.stringify(noted)}`);
  return `{${entries.join(`,${space()}`)}}${choose(draw, ["", " ", "       "])}`;
}

function damagedRow(draw: Draw, row: Row): Row {
  const odd = (): unknown => choose(draw, [-1, 0.5, 1e300, 2 ** 53, "1", null, [1], 0, 1, 7]);
  const place = draw(2);
  const [begin, end] = row.offsets as readonly [number, number];
  const ways: readonly (() => Row)[] = [
    () => ({ ...row, shape: [...row.shape, odd()] }),
    () => ({ ...row, shape: row.shape.map((dim, i) => i === 0 ? odd() : dim) }),
    () => ({ ...row, offsets: row.offsets.map((at, i) => i === place ? odd() : at) }),
    () => ({ ...row, offsets: [end, begin] }),
    () => ({ ...row, offsets: [begin + 1, end + 1] }),
    () => ({ ...row, offsets: [begin] }),
    () => ({ ...row, dtype: choose(draw, Object.keys(WIDTHS)) }),
    () => ({ ...row, dtype: choose(draw, ["f32", "", "Q4_0", "toString"]) }),
  ];
  return choose(draw, ways)();
}

/** Why rows are no file of so many bytes, by the format's own rules; undefined: they are. */
function wrongIn(rows: readonly Row[], length: number): string | undefined {
  const isSize = (value: unknown): value is number =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  for (const { name, dtype, shape, offsets } of rows) {
    if (!Object.hasOwn(WIDTHS, dtype)) return `${name} has no dtype`;
    if (!shape.every(isSize)) return `${name} has no shape`;
    if (offsets.length !== 2 || !offsets.every(isSize)) return `${name} has no range`;
    const bytes = shape.reduce((product, dim) => product * BigInt(dim), BigInt(WIDTHS[dtype]!));
    if (BigInt(offsets[1]! as number) - BigInt(offsets[0]! as number) !== bytes) {
      return `${name} has another length`;
    }
  }
  // Together they are the data: no byte is left out or stands in two.
  const ranges = rows.map(({ offsets }) => offsets as [number, number])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let at = 0;
  for (const [from, to] of ranges) {
    if (from !== at) return `byte ${at}`;
    at = to;
  }
  return at === length ? undefined : `${length - at} bytes behind`;
}

function wrongNote(noted: unknown): string | undefined {
  if (noted === undefined) return undefined;
  const isObject = typeof noted === "object" && !Array.isArray(noted);
  const isRight = isObject &&
    Object.values(noted as object).every((one) => typeof one === "string");
  return isRight ? undefined : "metadata that is no object of texts";
}
