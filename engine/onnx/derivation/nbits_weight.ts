// A weight of MatMulNBits as one matrix in the number format NB4: codes, scales and zero points, three
// tensors of the file, are laid together while the rows stream into device memory, so the 4-bit kernels
// read them and nothing is held as float32.

import { getFormat } from "../../../quant/mod.ts";
import type { ByteSource } from "../../byte_source.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { getElement, type HostTensor } from "../../ops/host_tensor.ts";
import { load } from "./constants.ts";
import { isConstant, type Tensor } from "./tensor.ts";
import type { BlockCodes, NBitsSizes } from "./unpack_blocks.ts";

/** Values of a block of NB4, and its bytes. */
const BLOCK = 32, BLOCK_BYTES = 24;

/**
 * The weight [rows, columns], or undefined where it has to be unpacked: not constant, not of 4 bits, columns in
 * another order than their blocks, or blocks that are no multiples of 32 columns.
 *
 * @param name Of its own in the model: weights of one name are loaded once.
 */
export function nbitsWeight(
  name: string,
  { bits, block, rows, columns }: NBitsSizes,
  { codes, scales, zeros, groups }: BlockCodes,
): Tensor | undefined {
  const parts = [codes, scales, ...zeros ? [zeros] : []];
  if (groups || bits !== 4 || block % BLOCK !== 0 || columns % BLOCK !== 0) return undefined;
  if (!parts.every(isConstant)) return undefined;
  const byteLength = rows * columns / BLOCK * BLOCK_BYTES;
  const source = blockSource({ name, rows, columns, block }, {
    codes,
    factorsOf: () => ({ scales: load(scales), zeros: zeros && load(zeros) }),
    size: byteLength,
  });
  const shape = [rows, columns];
  const tensor: TensorInfo = { name, shape, format: "NB4", source, offset: 0, byteLength };
  const type = { dtype: "f32", shape } as const;
  return { kind: "tensor", type, stored: { load: () => decoded(tensor), tensor } };
}

function decoded({ source, shape, byteLength }: TensorInfo): HostTensor {
  const bytes = new Uint8Array(byteLength);
  source.readInto(0, bytes);
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  getFormat("NB4").decode(bytes, data);
  return { dtype: "f32", shape, data };
}

interface Factors {
  readonly scales: HostTensor;
  readonly zeros: HostTensor | undefined;
}

function blockSource(
  { name, rows, columns, block }: Omit<NBitsSizes, "bits"> & { readonly name: string },
  { codes, factorsOf, size }: {
    readonly codes: Tensor;
    readonly factorsOf: () => Factors;
    readonly size: number;
  },
): ByteSource {
  const perRow = columns / BLOCK, groups = Math.ceil(columns / block);
  const zeroBytes = Math.ceil(groups / 2), rowBytes = groups * block / 2;
  let factors: Factors | undefined;

  // Scale and minimum of a group: x = scale · (code - zero).
  function writeFactors(view: DataView, row: number, group: number): void {
    const { scales, zeros } = factors!;
    const scale = getElement(scales, row * groups + group);
    view.setFloat32(0, scale, true);
    view.setFloat32(4, -scale * zeroOf(zeros, row, group), true);
  }

  function zeroOf(zeros: HostTensor | undefined, row: number, group: number): number {
    if (!zeros) return 8;
    if (zeros.dtype !== "u8") return getElement(zeros, row * groups + group);
    const packed = getElement(zeros, row * zeroBytes + (group >> 1));
    return group % 2 === 0 ? packed & 15 : packed >> 4;
  }

  return {
    name: `codes of ${name}`,
    size,
    readInto(offset, target) {
      factors ??= factorsOf();
      const end = offset + target.length, rowSize = perRow * BLOCK_BYTES;
      const first = Math.floor(offset / rowSize), last = Math.min(rows, Math.ceil(end / rowSize));
      const bytes = codeRows(codes, first * rowBytes, (last - first) * rowBytes);
      const laid = new Uint8Array(BLOCK_BYTES), view = new DataView(laid.buffer);
      const from = Math.floor(offset / BLOCK_BYTES), to = Math.ceil(end / BLOCK_BYTES);
      for (let i = from; i < to; i++) {
        const row = Math.floor(i / perRow), at = i % perRow;
        writeFactors(view, row, Math.floor(at * BLOCK / block));
        layCodes(bytes, (row - first) * rowBytes + at * BLOCK / 2, laid);
        const start = i * BLOCK_BYTES - offset;
        const skip = Math.max(0, -start), keep = Math.min(BLOCK_BYTES, target.length - start);
        target.set(laid.subarray(skip, keep), start + skip);
      }
      // Whoever reads the end has read the rest.
      if (end >= size) factors = undefined;
    },
    close() {},
  };
}

// Codes 2i and 2i + 1 of a byte become those of j and j + 16.
function layCodes(bytes: Uint8Array, at: number, out: Uint8Array): void {
  const code = (i: number) => (bytes[at + (i >> 1)]! >> (i & 1) * 4) & 15;
  for (let j = 0; j < BLOCK / 2; j++) out[8 + j] = code(j) | (code(j + BLOCK / 2) << 4);
}

/** Bytes of the codes, read where they lie. */
function codeRows(tensor: Tensor, offset: number, count: number): Uint8Array {
  const place = tensor.stored?.tensor;
  if (!place) return (load(tensor).data as Uint8Array).subarray(offset, offset + count);
  const bytes = new Uint8Array(count);
  place.source.readInto(place.offset + offset, bytes);
  return bytes;
}
