// Caches of q8_0: 32 channels of a head are a scale and 32 codes, rounded as quant/formats/q8_0.ts does, to the bit. Its
// blocks of 34 bytes are no whole words, so codes and scales lie apart on a device: first the codes of all rows, then the
// scales of their blocks, one word each with what its float16 stands for as float32, since two invocations
// cannot write halves of a word. That is 36 bytes a block; sessions are saved in blocks of 34 all the same (`portable`).

import { readF16, writeF16 } from "../../quant/half.ts";
import { wgsl } from "../wgsl.ts";
import { list } from "./matmul/rows.ts";

/** Channels of a block. */
export const CACHE_BLOCK = 32;
/** Bytes of codes and of the scale of a block on the device, and of both as they are saved. */
const CODE_BYTES = CACHE_BLOCK, SCALE_BYTES = 4, SAVED_BYTES = 34;

/** Bytes of codes and of scales of so many saved ones. */
export function blockBytes(saved: number): { readonly codes: number; readonly scales: number } {
  const blocks = saved / SAVED_BYTES;
  return { codes: CODE_BYTES * blocks, scales: SCALE_BYTES * blocks };
}

/** Codes and scales as they are saved. */
export function portable(codes: Uint8Array, scales: Float32Array): Uint8Array {
  const saved = new Uint8Array(SAVED_BYTES * scales.length);
  scales.forEach((scale, block) => {
    writeF16(saved, SAVED_BYTES * block, scale);
    const own = codes.subarray(CODE_BYTES * block, CODE_BYTES * (block + 1));
    saved.set(own, SAVED_BYTES * block + 2);
  });
  return saved;
}

/** What was saved as codes and scales. */
export function fromPortable(
  saved: Uint8Array,
): { readonly codes: Uint8Array<ArrayBuffer>; readonly scales: Float32Array<ArrayBuffer> } {
  const blocks = saved.length / SAVED_BYTES;
  const codes = new Uint8Array(CODE_BYTES * blocks), scales = new Float32Array(blocks);
  for (let block = 0; block < blocks; block++) {
    scales[block] = readF16(saved, SAVED_BYTES * block);
    const own = saved.subarray(SAVED_BYTES * block + 2, SAVED_BYTES * (block + 1));
    codes.set(own, CODE_BYTES * block);
  }
  return { codes, scales };
}

/** Element of a binding of such a cache at which the scales begin. */
export function scalesOf(cache: string): string {
  return `arrayLength(&${cache}) / ${(CODE_BYTES + SCALE_BYTES) / SCALE_BYTES}u * ${
    CODE_BYTES / SCALE_BYTES
  }u`;
}

/** `codes_of(word)`: four codes as floats. */
export const CODES_OF_WORD: string = wgsl`
  fn codes_of(word: u32) -> vec4<f32> {
    let moved = vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u);
    return vec4<f32>(moved >> vec4<u32>(24u));
  }
`;

/**
 * `block_of(peak)`: what makes a block of numbers whose largest magnitude has these bits. Quotients are rounded to
 * nearest even by integers, because WGSL lets a division be off by more; those below 2^-126 count as zero. A scale
 * beyond float16 becomes NaN, as in a float16 cache.
 */
export const ROUND_BLOCK: string = wgsl`
  struct Block { scale: f32, inverse: f32 }

  fn exact_ratio(a: u32, b: u32) -> f32 {
    let top = (a & 0x7fffffu) | 0x800000u;
    let bottom = (b & 0x7fffffu) | 0x800000u;
    // The quotient of the mantissas has 24 bits.
    let shift = select(23u, 24u, top < bottom);
    var ratio = u32(f32(top) / f32(bottom) * f32(1u << shift));
    // Off by a few, so the remainder is right though its terms wrap around.
    var rest = bitcast<i32>((top << shift) - ratio * bottom);
    while (rest < 0) { ratio--; rest += i32(bottom); }
    while (rest >= i32(bottom)) { ratio++; rest -= i32(bottom); }
    let twice = 2u * u32(rest);
    ratio += select(0u, 1u, twice > bottom || (twice == bottom && (ratio & 1u) == 1u));
    let exponent = i32(a >> 23u) - i32(b >> 23u) + select(127, 126, shift == 24u);
    return select(0.0, bitcast<f32>((u32(exponent) << 23u) + ratio - 0x800000u), exponent > 0);
  }

  fn block_of(peak: u32) -> Block {
    let scale = exact_ratio(peak, 0x42fe0000u);
    if (peak >= ${bitsOf(127 * 65520)}) { return Block(bitcast<f32>(peak | 0x7fc00000u), 0.0); }
    let bits = bitcast<u32>(scale);
    let inverse = select(0.0, exact_ratio(0x3f800000u, bits), bits > 0u);
    return Block(unpack2x16float(pack2x16float(vec2<f32>(scale, 0.0))).x, inverse);
  }

  // Four codes: to nearest, halves away from zero.
  fn block_word(quad: vec4<f32>, block: Block) -> u32 {
    let ratio = quad * block.inverse;
    let size = (vec4<u32>(abs(ratio) * 65536.0) + vec4<u32>(0x8000u)) >> vec4<u32>(16u);
    let codes = select(size, vec4<u32>() - size, ratio < vec4<f32>()) & vec4<u32>(0xffu);
    return codes.x | (codes.y << 8u) | (codes.z << 16u) | (codes.w << 24u);
  }

  fn peak_of(quad: vec4<f32>) -> u32 {
    let bits = bitcast<vec4<u32>>(quad) & vec4<u32>(0x7fffffffu);
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
  }
`;

/** `store_block(at, quads)`: writes block number \`at\` of a binding \`array<u32>\`, whole. */
export function storeBlock(cache: string): string {
  return wgsl`
    fn store_${cache}(at: u32, quads: array<vec4<f32>, 8>) {
      ${list(8, (i) => `let peak${i} = peak_of(quads[${i}]);`)}
      let peak = ${list(8, (i) => `peak${i}`).reduce((most, own) => `max(${most}, ${own})`)};
      let block = block_of(peak);
      ${list(8, (i) => `${cache}[8u * at + ${i}u] = block_word(quads[${i}], block);`)}
      ${cache}[${scalesOf(cache)} + at] = bitcast<u32>(block.scale);
    }
  `;
}

function bitsOf(value: number): string {
  return `0x${new Uint32Array(Float32Array.of(value).buffer)[0]!.toString(16)}u`;
}
