// Our encoders beside those of llama.cpp: every format that ggml stores and we encode, on every matrix of a
// model in floats (MiniLM), both decoded by the same decoder. The error is the root mean square over all
// matrices as a share of that of the weights; a ratio below 1 / 1.02 would be a fault of an encoder.
// Matrices are taken as runs of 256 values, because rows of 384 are no whole blocks of the K formats and
// both sides then choose the same blocks. With importance, rows are 1,536 long (the down matrices), columns count
// as a log-normal variate says, and so does the error.

import type { WeightFile } from "../../engine/formats/source.ts";
import { readTensorRows } from "../../engine/formats/tensor_rows.ts";
import { createRandom, nextDouble } from "../../engine/decode/sampling/random.ts";
import { formatBytes, formats, getFormat, type NumberFormat } from "../../quant/mod.ts";
import { type Figure, machineName } from "../support/figures.ts";
import type { Ggml } from "./ggml.ts";

const ROW = 256;

/** Formats that both sides encode. Floats, and formats that serve as scratch of a product, say nothing of an encoder. */
export function sharedFormats(): NumberFormat[] {
  return [...formats.values()].filter(({ ggmlType, encode, block, use }) =>
    ggmlType !== undefined && encode && block && !use
  );
}

interface Run {
  readonly values: Float32Array<ArrayBuffer>;
  readonly columns: number;
  readonly importance?: Float32Array<ArrayBuffer>;
}

/** A figure a format, handed out as it is measured. */
export async function* encodeBench(
  file: WeightFile,
  { label, ggml, filter }: {
    readonly label: string;
    readonly ggml: Ggml;
    /** Formats, in capitals; none: all. */
    readonly filter: readonly string[];
  },
): AsyncGenerator<Figure> {
  const runs = await matrices(file);
  const weighted = runs.filter(({ columns }) => columns % ROW === 0).map(withImportance);
  const plain = runs.filter(({ values }) => values.length % ROW === 0)
    .map(({ values }) => ({ values, columns: ROW }));
  for (const format of sharedFormats()) {
    if (filter.length > 0 && !filter.includes(format.name)) continue;
    for (const [kind, inputs] of [["", plain], [" with importance", weighted]] as const) {
      const value = errorOf(format, inputs, (run) => encodeOwn(format, run));
      const peerValue = errorOf(
        format,
        inputs,
        ({ values, columns, importance }) => ggml.encode(format, values, columns, importance),
      );
      yield {
        bench: "quality",
        case: `encode ${format.name}${kind} ${label}`,
        unit: "% of rms",
        value: value * 100,
        peer: ggml.name,
        peerValue: peerValue * 100,
        ratio: peerValue / value,
        share: null,
        machine: machineName(),
      };
    }
  }
}

async function matrices(file: WeightFile): Promise<Run[]> {
  const all: Run[] = [];
  for (const tensor of file.tensors.values()) {
    if (tensor.shape.length !== 2 || !["F32", "F16", "BF16"].includes(tensor.format)) continue;
    const [rows, columns] = tensor.shape as [number, number];
    const values = new Float32Array(rows * columns);
    for await (const run of readTensorRows(tensor, { format: getFormat(tensor.format) })) {
      values.set(run.values, run.start);
    }
    all.push({ values, columns });
  }
  return all;
}

function withImportance(run: Run, index: number): Run {
  const random = createRandom(index);
  const importance = Float32Array.from({ length: run.columns }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - nextDouble(random)));
    return Math.exp(radius * Math.cos(2 * Math.PI * nextDouble(random)));
  });
  return { ...run, importance };
}

function encodeOwn(format: NumberFormat, { values, importance }: Run): Uint8Array {
  const out = new Uint8Array(formatBytes(format, values.length));
  format.encode!(values, out, importance && { importance });
  return out;
}

function errorOf(
  format: NumberFormat,
  runs: readonly Run[],
  encode: (run: Run) => Uint8Array,
): number {
  let errors = 0, squares = 0;
  for (const run of runs) {
    const { values, columns, importance } = run;
    const decoded = new Float32Array(values.length);
    format.decode(encode(run), decoded);
    for (let i = 0; i < values.length; i++) {
      const weight = importance?.[i % columns] ?? 1;
      errors += weight * (decoded[i]! - values[i]!) ** 2;
      squares += weight * values[i]! ** 2;
    }
  }
  return Math.sqrt(errors / squares);
}
