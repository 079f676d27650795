// Where a tile of attention keeps the keys of a block in workgroup memory, then its values: as floats one behind the other,
// or as halves, where the cache holds halves: nothing is rounded, and half the memory lets more workgroups run beside each
// other. What an invocation reads of halves lies together, on a shelf, so that there is one index to check.

import { wgsl } from "../../wgsl.ts";

/** Sizes of that memory. */
export interface TileMemory {
  readonly halves?: boolean;
  /** Quads of halves on a shelf. */
  readonly shelf: number;
  /** Quads of a key, and of a value. */
  readonly keyQuads: number;
  readonly valueQuads: number;
  /** Keys of a block. */
  readonly block: number;
  /** Invocations that share channels, and those that share keys. */
  readonly across: number;
  readonly keyThreads: number;
}

/** Quads of a shelf: two of halves are a whole vector; else an odd number keeps neighbours in different banks. */
export function shelfOf(threadKeys: number, threadQuads: number): number {
  const most = Math.max(threadKeys, threadQuads);
  return most === 2 ? 2 : most | 1;
}

/** WGSL type of the memory. */
export function keptType(
  { halves, shelf, keyQuads, valueQuads, block, across }: TileMemory,
): string {
  return halves
    ? `array<array<vec2<u32>, ${shelf}>, ${Math.max(keyQuads, block) * across}>`
    : `array<vec4<f32>, ${Math.max(keyQuads * (block + 1), valueQuads * block)}>`;
}

/** Functions between quads and halves. */
export const HALVES: string = wgsl`
  fn halves_of(quad: vec4<f32>) -> vec2<u32> {
    return vec2<u32>(pack2x16float(quad.xy), pack2x16float(quad.zw));
  }

  fn quad_of(halves: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(halves.x), unpack2x16float(halves.y));
  }
`;

/** A quad as it is kept. */
export function kept({ halves }: TileMemory, quad: string): string {
  return halves ? `halves_of(${quad})` : quad;
}

/** A quad of what is kept. */
export function read({ halves }: TileMemory, quad: string): string {
  return halves ? `quad_of(${quad})` : quad;
}

/** Where a quad of the block's key `place` is kept. */
export function placeOfKey({ halves, block, across }: TileMemory, quad: string): string {
  return halves
    ? `kv_tile[${quad} * ${across}u + place % ${across}u][place / ${across}u]`
    : `kv_tile[${quad} * ${block + 1}u + place]`;
}

/** Where a quad of the block's value `place` is kept. */
export function placeOfValue({ halves, across, valueQuads }: TileMemory, quad: string): string {
  return halves
    ? `kv_tile[place * ${across}u + ${quad} % ${across}u][${quad} / ${across}u]`
    : `kv_tile[place * ${valueQuads}u + ${quad}]`;
}

/** A quad of the `j`th key of an invocation. */
export function ownKey(
  { halves, block, across, keyThreads }: TileMemory,
  { quad, j }: { readonly quad: string; readonly j: number },
): string {
  return halves
    ? `kv_tile[${quad} * ${across}u + key_thread][${j}]`
    : `kv_tile[${quad} * ${block + 1}u + key_thread + ${keyThreads * j}u]`;
}

/** The `c`th quad of an invocation of a value; behind the last one any will do. */
export function ownValue(
  { halves, across, valueQuads }: TileMemory,
  { place, c }: { readonly place: string; readonly c: number },
): string {
  if (halves) return `kv_tile[${place} * ${across}u + key_thread][${c}]`;
  const quad = `key_thread + ${across * c}u`;
  const inside = across * (c + 1) <= valueQuads ? quad : `min(${quad}, ${valueQuads - 1}u)`;
  return `kv_tile[${place} * ${valueQuads}u + ${inside}]`;
}
