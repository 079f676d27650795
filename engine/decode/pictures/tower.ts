// An encoder of pictures as pipelines use it: pixels in, a vector and the scores of labels out. What computes them, a
// model that was built from a spec or a graph of ONNX, is behind `encode`.

import type { PixelValues } from "../../pictures/prepare.ts";
import { addRows, type Step, WANTED } from "../../run/step.ts";
import type { StepRunner } from "../step_queue.ts";

/**
 * What is known of one picture; views, valid during the call.
 * @category Pictures
 */
export interface EncodedPicture {
  /** The vector of the whole; empty where the encoder gives none. */
  readonly vector: Float32Array;
  /** By label; empty where it has none. */
  readonly scores: Float32Array;
  /** f32[rows, hidden]: the state of all rows, the learnt ones first; empty where it gives none. */
  readonly states: Float32Array;
}

/**
 * How vectors of texts and pictures are compared: scale · cosine + bias.
 * @category Pictures
 */
export interface MatchRule {
  /** Whether one of several texts belongs to a picture, or each may by itself. */
  readonly kind: "softmax" | "sigmoid";
  /** Factor of the cosine. */
  readonly scale: number;
  /** What is added. */
  readonly bias: number;
}

/**
 * What pixels an encoder takes and what it makes of them.
 * @category Pictures
 */
export interface TowerFacts {
  /** Path or name, for messages. */
  readonly name: string;
  /** Content of preprocessor_config.json; absent: there is none. */
  readonly processor: Readonly<Record<string, unknown>> | undefined;
  /** Channels, height and width of pictures; undefined: any. */
  readonly pixels: readonly [
    channels: number,
    height: number | undefined,
    width: number | undefined,
  ];
  /** Names of the scores. */
  readonly labels: readonly string[];
  /** Labels exclude each other, or each may hold. */
  readonly isMultiLabel: boolean;
  /** Whether it gives vectors. */
  readonly hasVectors: boolean;
  /** Absent: its vectors are not those of texts. */
  readonly match?: MatchRule | undefined;
}

/**
 * How well texts describe pictures.
 * @category Pictures
 */
export interface ComparedTexts {
  /** Whether one of the texts belongs to a picture, or each may by itself. */
  readonly kind: MatchRule["kind"];
  /** A row for each picture, a number for each text. */
  readonly cosines: readonly (readonly number[])[];
  /** Those times the factor of the model, plus its summand. */
  readonly logits: readonly (readonly number[])[];
}

/**
 * An encoder of pictures.
 * @category Pictures
 */
export interface PictureTower extends TowerFacts {
  /** Encodes pictures in order; `read` is called once for each. @throws The signal's reason between two pieces of a long step. */
  encode(pixels: PixelValues, job: EncodeJob): Promise<void>;
  /** Compares pictures with texts, where what encodes texts is not the model's own but comes with the tower. */
  compare?(
    pixels: PixelValues,
    texts: readonly string[],
    signal?: AbortSignal,
  ): Promise<ComparedTexts>;
}

/**
 * Who takes what is made of pictures.
 * @category Pictures
 */
export interface EncodeJob {
  /** Takes what is known of the picture of an index. */
  read(encoded: EncodedPicture, index: number): void;
  /** Stops between two pieces of a long step. */
  readonly signal?: AbortSignal | undefined;
}

/** How a picture becomes rows of a step. */
export interface RowGrid {
  readonly rows: number;
  readonly columns: number;
  /** Learnt rows in front of the patches. */
  readonly leading: number;
  /** Size of a patch, which may be the whole picture. */
  readonly patch: { readonly width: number; readonly height: number };
  readonly channels: number;
}

const NONE = new Float32Array(0);

/** An encoder whose pictures are rows of steps, as many whole ones as a step holds. */
export function rowTower(
  facts: TowerFacts,
  { queue, grid, pictures }: {
    readonly queue: StepRunner;
    readonly grid: RowGrid;
    /** Pictures that a step takes. */
    readonly pictures: number;
  },
): PictureTower {
  const rows = grid.leading + grid.rows * grid.columns;
  const tokens = new Int32Array(rows);
  return {
    ...facts,
    async encode(pixels, { read, signal }) {
      const count = pixels.dims[0];
      // Pixels are long in coming: the texts that are asked for with them are handed over first, and the device works on those.
      await undefined;
      for (let first = 0; first < count; first += pictures) {
        signal?.throwIfAborted();
        const end = Math.min(count, first + pictures);
        await queue.run({
          signal,
          write(step) {
            step.leading = grid.leading;
            for (let i = first; i < end; i++) {
              const row = step.count;
              addRows(step, { tokens, slot: i - first });
              step.wanted[row] = WANTED.logits;
              writePatches(step, pixels, { row: row + grid.leading, picture: i, grid });
            }
          },
          read(executable) {
            const { outputs } = executable.plan.graph;
            const [hasScores, hasStates] = ["scores", "hidden"].map((name) =>
              outputs.some((output) => output.name === name)
            );
            for (let i = first; i < end; i++) {
              const row = (i - first) * rows;
              read({
                vector: executable.vectors?.(row) ?? NONE,
                scores: hasScores ? executable.logits(row) : NONE,
                states: hasStates ? executable.hidden(row, rows) : NONE,
              }, i);
            }
          },
        });
      }
    },
  };
}

/** The numbers of each patch side by side, channel by channel, row by row; learnt rows have zeros. */
function writePatches(
  { patches }: Step,
  { data, dims: [, , height, width] }: PixelValues,
  { row, picture, grid: { rows, columns, leading, patch, channels } }: {
    readonly row: number;
    readonly picture: number;
    readonly grid: RowGrid;
  },
): void {
  const numbers = channels * patch.width * patch.height, first = row * numbers;
  patches.fill(0, first - leading * numbers, first);
  // Bits of two numbers at a time, where rows are whole pairs, take less than half.
  const isPaired = [width, patch.width, first, data.byteOffset / 4, patches.byteOffset / 4]
    .every((count) => count % 2 === 0);
  const [from, into] = isPaired ? [pairsOf(data), pairsOf(patches)] : [data, patches];
  const wide = isPaired ? 2 : 1, own = patch.width / wide, line = width / wide;
  const patchNumbers = numbers / wide, plane = own * patch.height;
  // In the order of the picture: places in patches are written in turns, which takes less than reading in turns.
  for (let channel = 0; channel < channels; channel++) {
    for (let i = 0; i < rows; i++) {
      for (let y = 0; y < patch.height; y++) {
        let at = ((picture * channels + channel) * height + i * patch.height + y) * line;
        for (let j = 0; j < columns; j++, at += own) {
          const to = first / wide + (i * columns + j) * patchNumbers + channel * plane + y * own;
          let x = 0;
          // Four at a time take a third less.
          for (; x + 4 <= own; x += 4) {
            into[to + x] = from[at + x]!;
            into[to + x + 1] = from[at + x + 1]!;
            into[to + x + 2] = from[at + x + 2]!;
            into[to + x + 3] = from[at + x + 3]!;
          }
          for (; x < own; x++) into[to + x] = from[at + x]!;
        }
      }
    }
  }
}

/** Pairs of numbers as numbers of 64 bits. */
function pairsOf({ buffer, byteOffset, length }: Float32Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length >> 1);
}
