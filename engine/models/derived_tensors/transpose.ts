// A matrix stored as [in, out], seen as the [out, in] that every other file has; of a tensor of higher
// rank, each of its matrices. Turned in panels of some megabytes while it is read, so a large one costs a few
// passes over the file and never a second copy. Block formats cannot be turned: their blocks run along
// the inputs.

import { getFormat } from "../../../quant/mod.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { derivedTensor } from "../../formats/derived_tensor.ts";

const PANEL_BYTES = 16 << 20;
const BLOCK_BYTES = 1 << 20;

/**
 * A tensor with its last two axes exchanged.
 *
 * @throws {FormatError} If it is no matrix. @throws If its numbers are stored in blocks, too.
 */
export function transposeTensor(tensor: TensorInfo): TensorInfo {
  const { name, shape, source, format } = tensor;
  const { blockSize, blockBytes } = getFormat(format);
  if (shape.length < 2 || blockSize !== 1) {
    throw new FormatError(`cannot be transposed: it is ${format} [${shape}]`, {
      file: source.name,
      place: `tensor ${name}`,
    });
  }
  const [rows, columns] = shape.slice(-2) as [number, number];
  return {
    ...tensor,
    ...derivedTensor(tensor, {
      ...{ name: `${name}ᵀ`, label: `${name} transposed`, format, byteLength: tensor.byteLength },
      shape: [...shape.slice(0, -2), columns, rows],
      readInto: readTurned(tensor, { rows, columns, element: blockBytes }),
    }),
  };
}

interface Matrix {
  readonly rows: number;
  readonly columns: number;
  /** Bytes of a number. */
  readonly element: number;
}

interface Panel {
  /** Range of bytes of the turned tensor. */
  readonly start: number;
  readonly bytes: Uint8Array;
}

function readTurned(tensor: TensorInfo, matrix: Matrix): ByteSource["readInto"] {
  const line = matrix.rows * matrix.element;
  let panel: Panel | undefined;
  return async (start, target) => {
    for (let done = 0; done < target.length;) {
      const at = start + done;
      if (!panel || at < panel.start || at >= panel.start + panel.bytes.length) {
        panel = await readPanel(tensor, matrix, Math.floor(at / line));
      }
      const part = panel.bytes.subarray(at - panel.start).subarray(0, target.length - done);
      target.set(part, done);
      done += part.length;
      if (at + part.length === tensor.byteLength) panel = undefined;
    }
  };
}

/** Lines (old columns) from `first` on, within one matrix. */
async function readPanel(
  { source, offset }: TensorInfo,
  { rows, columns, element }: Matrix,
  first: number,
): Promise<Panel> {
  const column = first % columns, line = rows * element;
  const lines = Math.min(columns - column, Math.max(1, Math.floor(PANEL_BYTES / line)));
  const base = offset + Math.floor(first / columns) * rows * columns * element;
  const bytes = new Uint8Array(lines * line);
  const rowBytes = columns * element;
  const step = Math.max(1, Math.floor(BLOCK_BYTES / rowBytes));
  for (let row = 0; row < rows; row += step) {
    const count = Math.min(step, rows - row);
    const block = new Uint8Array(count * rowBytes);
    await source.readInto(base + row * rowBytes, block);
    for (let r = 0; r < count; r++) {
      for (let c = 0; c < lines; c++) {
        const from = r * rowBytes + (column + c) * element;
        const to = c * line + (row + r) * element;
        for (let i = 0; i < element; i++) bytes[to + i] = block[from + i]!;
      }
    }
  }
  return { start: first * line, bytes };
}
