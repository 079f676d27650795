// Reads text in pictures with the three networks of PP-OCR: one finds lines, one tells which are upside
// down, one reads them. Sizes, batches and thresholds are those of RapidOCR 1.4, so that results are the
// same: the reader gets six lines at once, ordered by shape, as wide as the widest of the six.

import { checkPicture, type Picture, withAlpha } from "../../formats/media/picture.ts";
import type { GraphTensor } from "../../onnx/running/graph_tensor.ts";
import type { LoadedGraph } from "../../onnx/running/graph_types.ts";
import { cropBox } from "./crop.ts";
import { decodeCtc, type DecodedText } from "./ctc.ts";
import { padRows, resizeLinear, roundEven, turnAround, turnLeft, writePlanes } from "./picture.ts";
import type { Corners, Point } from "./rectangle.ts";
import { textBoxes } from "./text_boxes.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/**
 * The networks.
 * @category Pictures
 */
export interface TextReaderGraphs {
  /** [1, 3, H, W] → probability of text [1, 1, H, W]. */
  readonly detection: LoadedGraph;
  /** [N, 3, 48, 192] → [N, 2], upright and upside down; without it all lines count as upright. */
  readonly direction?: LoadedGraph | undefined;
  /** [N, 3, 48, W] → [N, columns, letters]; its metadata holds the letters as `character`. */
  readonly recognition: LoadedGraph;
}

/**
 * Options of {@linkcode readText}.
 * @category Pictures
 */
export interface ReadTextOptions {
  /** Lines with a lower score are dropped; default 0.5. */
  readonly minScore?: number | undefined;
  /** Stops between two pieces of a long run of a network, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const KEYS: OptionKeys<ReadTextOptions> = { minScore: true, signal: true };

/**
 * A line of text.
 * @category Pictures
 */
export interface TextLine extends DecodedText {
  /** Corners in the picture: top left, top right, bottom right, bottom left of the text's box. */
  readonly corners: Corners;
}

const LINE_HEIGHT = 48, BATCH = 6;
const DETECTION_SIDE = 736, DETECTION_STEP = 32;
const MOST_SIDE = 2000, LEAST_SIDE = 30, WIDEST = 8;
const DIRECTION_WIDTH = 192, TURN_SCORE = 0.9;
const LEAST_RATIO = 320 / 48;

/**
 * Reads a picture.
 *
 * @returns Lines from the top to the bottom, in a row from the left to the right.
 * @throws {TypeError} If the recognition graph names no letters, or there is no picture.
 *
 * @example
 * ```ts ignore
 * const lines = await readText(graphs, await readPicture(await Deno.readFile("page.png")));
 * console.log(lines.map(({ text }) => text).join("\n"));
 * ```
 * @category Pictures
 */
export async function readText(
  graphs: TextReaderGraphs,
  picture: Picture,
  options: ReadTextOptions = {},
): Promise<TextLine[]> {
  checkOptionKeys(options, { of: "readText()", known: KEYS });
  const { minScore = 0.5, signal } = options;
  checkPicture(picture);
  const letters = lettersOf(graphs.recognition);
  const sized = withinSides(withAlpha(picture, "white"));
  const rows = letterboxRows(sized);
  const page = rows > 0 ? padRows(sized, rows) : sized;
  const { detection, recognition, direction } = graphs;
  const boxes = await findLines({ graph: detection, signal }, page);
  const lines = boxes.map((box) => {
    const line = cropBox(page, box);
    return line.height / line.width >= 1.5 ? turnLeft(line) : line;
  });
  signal?.throwIfAborted();
  if (direction) await turnUpright({ graph: direction, signal }, lines);
  const texts = await recognize({ graph: recognition, signal }, lines, letters);
  const toPicture = ([x, y]: Point): Point => [
    clamp(x * picture.width / sized.width, picture.width),
    clamp((y - rows) * picture.height / sized.height, picture.height),
  ];
  return texts.map((text, i) => ({
    ...text,
    corners: boxes[i]!.map(toPicture) as unknown as Corners,
  })).filter(({ score }) => score >= minScore);
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most);
}

function lettersOf(recognition: LoadedGraph): string[] {
  const text = recognition?.metadata?.get("character");
  if (text === undefined) {
    throw new TypeError('Cannot read text: the recognition graph has no metadata "character"');
  }
  return ["", ...text.replace(/\r?\n$/, "").split(/\r?\n/), " "];
}

function withinSides(picture: Picture): Picture {
  const { width, height } = picture;
  const longer = Math.max(width, height), shorter = Math.min(width, height);
  if (longer > MOST_SIDE) return scaled(picture, MOST_SIDE / longer);
  return shorter < LEAST_SIDE ? scaled(picture, LEAST_SIDE / shorter) : picture;
}

// Sides become multiples of what the network halves.
function scaled(picture: Picture, ratio: number): Picture {
  const side = (size: number) =>
    Math.max(1, roundEven(Math.trunc(size * ratio) / DETECTION_STEP)) * DETECTION_STEP;
  return resizeLinear(picture, { width: side(picture.width), height: side(picture.height) });
}

/** Black rows that a flat picture gets above and below. */
function letterboxRows({ width, height }: Picture): number {
  if (height > LEAST_SIDE && width / height <= WIDEST) return 0;
  const wanted = 2 * Math.max(Math.trunc(width / WIDEST), LEAST_SIDE);
  return Math.trunc(Math.abs(wanted - height) / 2);
}

/** A graph, and what stops its runs. */
interface Stage {
  readonly graph: LoadedGraph;
  readonly signal: AbortSignal | undefined;
}

async function findLines(stage: Stage, page: Picture): Promise<Corners[]> {
  const input = scaled(page, Math.max(1, DETECTION_SIDE / Math.min(page.width, page.height)));
  const data = new Float32Array(3 * input.width * input.height);
  writePlanes(input, { target: data });
  const map = await runOne(stage, data, [1, 3, input.height, input.width]);
  const [, , height, width] = map.dims as [number, number, number, number];
  return textBoxes({ width, height, data: map.data as Float32Array }, page);
}

/** Turns those lines around that are upside down. */
async function turnUpright(stage: Stage, lines: Picture[]): Promise<void> {
  for (const batch of batchesByShape(lines)) {
    const { data } = await runLines(stage, batch.map((i) => lines[i]!), DIRECTION_WIDTH);
    batch.forEach((line, i) => {
      const [upright, turned] = (data as Float32Array).subarray(2 * i) as unknown as number[];
      if (turned! > upright! && turned! > TURN_SCORE) lines[line] = turnAround(lines[line]!);
    });
  }
}

async function recognize(
  stage: Stage,
  lines: readonly Picture[],
  letters: readonly string[],
): Promise<DecodedText[]> {
  const texts: DecodedText[] = [];
  for (const batch of batchesByShape(lines)) {
    const members = batch.map((i) => lines[i]!);
    const ratio = Math.max(LEAST_RATIO, ...members.map(({ width, height }) => width / height));
    const result = await runLines(stage, members, Math.trunc(LINE_HEIGHT * ratio));
    const data = result.data as Float32Array, length = data.length / batch.length;
    batch.forEach((line, i) => {
      texts[line] = decodeCtc(data.subarray(i * length, (i + 1) * length), letters);
    });
  }
  return texts;
}

function batchesByShape(lines: readonly Picture[]): number[][] {
  const order = lines.map(({ width, height }, i) => ({ i, ratio: width / height }))
    .sort((a, b) => a.ratio - b.ratio).map(({ i }) => i);
  const count = Math.ceil(order.length / BATCH);
  return Array.from({ length: count }, (_, i) => order.slice(i * BATCH, (i + 1) * BATCH));
}

/** Runs lines at the height of 48, as wide as their shape wants but at most `width`, zeros behind. */
function runLines(
  stage: Stage,
  lines: readonly Picture[],
  width: number,
): Promise<GraphTensor> {
  const size = 3 * LINE_HEIGHT * width;
  const data = new Float32Array(lines.length * size);
  lines.forEach((line, i) => {
    const wanted = Math.min(width, Math.ceil(LINE_HEIGHT * line.width / line.height));
    const resized = resizeLinear(line, { width: wanted, height: LINE_HEIGHT });
    writePlanes(resized, { target: data.subarray(i * size, (i + 1) * size), stride: width });
  });
  return runOne(stage, data, [lines.length, 3, LINE_HEIGHT, width]);
}

async function runOne(
  { graph, signal }: Stage,
  data: Float32Array,
  dims: readonly number[],
): Promise<GraphTensor> {
  const [input] = graph.inputs, [output] = graph.outputs;
  const results = await graph.run(
    { [input!.name]: { data, dims } },
    { ...signal && { signal } },
  );
  return results[output!.name] as GraphTensor;
}
