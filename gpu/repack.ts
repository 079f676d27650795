// Weights that the device rearranges itself. A layout (weight_layout.ts) moves bits of a file's blocks to other places and
// turns some of them, as its `pack` does on the host. Where each bit goes is asked of `pack`, so that there is one
// definition; a format for which it does something else stays with the host. One shader serves all formats: every word
// of a plane is made of words of the file, shifted and masked as a table says.

import { formatBytes, type NumberFormat } from "../quant/mod.ts";
import type { Shader } from "./kernel.ts";
import { GROUP_COLUMNS } from "./layouts/code_layout.ts";
import type { GpuWeightLayout } from "./packed_layout.ts";
import { GROUP_MAIN, wgsl } from "./wgsl.ts";

/** How blocks become planes, by units: runs of blocks that are whole words in the file and in every plane. */
export interface Repack {
  /** Columns of a unit. */
  readonly columns: number;
  /** Words of a unit in the file. */
  readonly fileWords: number;
  readonly planes: readonly PlaneRepack[];
}

/** How the words of a plane are made. */
export interface PlaneRepack {
  /** Words of a unit in the plane. */
  readonly words: number;
  /**
   * Where the parts of each word begin in the table, and where those of the last end; bits that are turned, by word; parts,
   * two numbers each: 32 more than the bit of the unit that becomes bit 0, and a mask.
   */
  readonly table: Uint32Array<ArrayBuffer>;
}

/** Invocations of a workgroup, a word each. */
export const REPACK_WORDS = 64;

/**
 * Makes `words` words of a plane from number `first` on, `unit_words` a unit, of words of the file from number `file_first`
 * on, `file_words` a unit.
 */
export const REPACK_SHADER: Shader = {
  name: "repack",
  storage: { file: "array<u32>", table: "array<u32>", plane: "array<u32>" },
  writes: ["plane"],
  uniforms: { words: "u32", first: "u32", unit_words: "u32", file_first: "u32", file_words: "u32" },
  code: wgsl`
    @compute @workgroup_size(${REPACK_WORDS})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${REPACK_WORDS}u + lane;
      if (i >= params.words) { return; }
      let unit = i / params.unit_words;
      let word = i - unit * params.unit_words;
      let base = params.file_first + unit * params.file_words - 1u;
      var value = table[params.unit_words + 1u + word];
      let end = table[word + 1u];
      for (var part = table[word]; part < end; part += 2u) {
        let bit = table[part];
        let at = base + (bit >> 5u);
        let shift = bit & 31u;
        let pair = (file[at] >> shift) | ((file[at + 1u] << 1u) << (31u - shift));
        value ^= pair & table[part + 1u];
      }
      plane[params.first + i] = value;
    }
  `,
};

const known = new Map<string, Repack | undefined>();

/** How a layout rearranges a format; undefined where that is more than moving bits. */
export function repackOf(format: NumberFormat, layout: GpuWeightLayout): Repack | undefined {
  const key = `${format.name} ${layout.id}`;
  if (!known.has(key)) known.set(key, findRepack(format, layout));
  return known.get(key);
}

type Pack = (file: Uint8Array) => Uint8Array[];

function findRepack(format: NumberFormat, layout: GpuWeightLayout): Repack | undefined {
  if (!format.block || format.rowFamily) return undefined;
  const least = Math.max(format.blockSize, GROUP_COLUMNS);
  const planesOf = (columns: number) =>
    layout.planeBytes(columns).map((bytes) => bytes / layout.rowGroup);
  const columns = [least, 2 * least, 4 * least].find((columns) =>
    [formatBytes(format, columns), ...planesOf(columns)].every((bytes) => bytes % 4 === 0)
  );
  if (columns === undefined) return undefined;
  const fileBytes = formatBytes(format, columns);
  const pack: Pack = (file) => {
    const planes = planesOf(columns).map((bytes) => new Uint8Array(bytes));
    layout.pack(file, { format: format.name, rows: 1, columns }, planes);
    return planes;
  };
  const turned = pack(new Uint8Array(fileBytes));
  const sources = sourcesOf(pack, { fileBytes, turned });
  if (!holds(pack, { fileBytes, turned, sources })) return undefined;
  const planes = sources.map((source, i) => planeRepack(source, turned[i]!));
  return { columns, fileWords: fileBytes / 4, planes };
}

interface Moves {
  readonly fileBytes: number;
  /** Planes of a file of zeros. */
  readonly turned: readonly Uint8Array[];
}

/** By bit of each plane, the bit of the file that it is; -1: none. Every bit is asked for by the digits of its number. */
function sourcesOf(pack: Pack, { fileBytes, turned }: Moves): Int32Array<ArrayBuffer>[] {
  const sources = turned.map((plane) => new Int32Array(8 * plane.length));
  const ask = (
    isSet: (bit: number) => boolean,
    found: (source: Int32Array<ArrayBuffer>, at: number) => void,
  ) =>
    pack(bytesOf(fileBytes, isSet)).forEach((plane, i) => {
      for (let at = 0; at < 8 * plane.length; at++) {
        if (bitOf(plane, at) !== bitOf(turned[i]!, at)) found(sources[i]!, at);
      }
    });
  for (let digit = 0; 1 << digit < 8 * fileBytes; digit++) {
    ask((bit) => (bit >> digit & 1) === 1, (source, at) => source[at]! |= 1 << digit);
  }
  const isMoved = sources.map(({ length }) => new Uint8Array(length));
  ask(() => true, (source, at) => isMoved[sources.indexOf(source)]![at] = 1);
  return sources.map((source, i) => source.map((bit, at) => isMoved[i]![at] ? bit : -1));
}

/** Whether bytes without any order go where they should. */
function holds(
  pack: Pack,
  { fileBytes, turned, sources }: Moves & { readonly sources: readonly Int32Array[] },
): boolean {
  let state = 1;
  const file = Uint8Array.from({ length: fileBytes }, () => {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return state >>> 24;
  });
  return pack(file).every((plane, i) =>
    sources[i]!.every((source, at) =>
      bitOf(plane, at) === (bitOf(turned[i]!, at) ^ (source < 0 ? 0 : bitOf(file, source)))
    )
  );
}

function planeRepack(source: Int32Array, turned: Uint8Array): PlaneRepack {
  const words = source.length / 32;
  const table: number[] = Array.from({ length: 2 * words + 1 }, () => 0);
  for (let word = 0; word < words; word++) {
    table[word] = table.length;
    const masks = new Map<number, number>();
    for (let bit = 0; bit < 32; bit++) {
      const from = source[32 * word + bit]!;
      if (bitOf(turned, 32 * word + bit)) table[words + 1 + word]! |= 1 << bit;
      if (from >= 0) masks.set(32 + from - bit, (masks.get(32 + from - bit) ?? 0) | 1 << bit);
    }
    for (const [place, mask] of masks) table.push(place, mask);
  }
  table[words] = table.length;
  return { words, table: Uint32Array.from(table) };
}

function bitOf(bytes: Uint8Array, bit: number): number {
  return bytes[bit >> 3]! >> (bit & 7) & 1;
}

function bytesOf(length: number, isSet: (bit: number) => boolean): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let bit = 0; bit < 8 * length; bit++) if (isSet(bit)) bytes[bit >> 3]! |= 1 << (bit & 7);
  return bytes;
}
