// Encoders of pictures in ONNX, as transformers.js and Optimum lay them out: a graph, and config.json and
// preprocessor_config.json in its folder or, where that is called onnx, in the one above. A graph alone, as classifiers are
// handed out, says what its pictures and scores are called and how large they are; the rest is what ImageNet is usual for.

import type { PictureTower } from "../../decode/pictures/tower.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { fetchModel } from "../../formats/hub/pull.ts";
import { asObject, parseJson } from "../../formats/strict_json.ts";
import { pathKind, readTextNow } from "../../io.ts";
import type { GraphTensor } from "../../onnx/running/graph_tensor.ts";
import type { GraphPort, LoadedGraph, LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import { loadGraph } from "../../onnx/running/load_graph.ts";
import type { PixelValues } from "../../pictures/prepare.ts";
import { textsIn } from "../diffusion/diffusers_folder.ts";
import { dot, unitVector } from "../vectors.ts";
import {
  openTextGraph,
  rowsOf,
  textInputs,
  type TextRows,
  textRows,
  textRule,
  textVectors,
} from "./graph_texts.ts";
import type { ImageGraph } from "./image_graph.ts";

/** Outputs with the scores of labels, and with vectors, in order of preference. */
const SCORES = ["logits"], VECTORS = ["image_embeds", "pooler_output", "last_hidden_state"];
/** Labels of ImageNet, by which scores without a name are told from vectors. */
const IMAGENET_LABELS = 1000;
/** How classifiers of ImageNet are trained: of 256 rows the middle 224, by torchvision's means and deviations. */
const IMAGENET = {
  ...{ image_processor_type: "BitImageProcessor", resample: 2 },
  ...{ image_mean: [0.485, 0.456, 0.406], image_std: [0.229, 0.224, 0.225] },
};
const IMAGENET_SIDE = 224, IMAGENET_EDGE = 256;
/** Pictures of a run, where the graph leaves that open. */
const PICTURES = 8;

/** `loadImageGraph`. @throws As it does. */
export async function openImageGraph(
  model: string | URL,
  options: LoadGraphOptions,
): Promise<ImageGraph> {
  const path = await fetchModel(model, options);
  using opened = new DisposableStack();
  const graph = opened.use(await loadGraph(path, options));
  const texts = await openTextGraph(path, options);
  if (texts) opened.use(texts);
  const { notes, ...tower } = towerOfGraph(graph, path);
  const compare = texts || takesTexts(graph)
    ? await comparer(tower, { graph, texts, path })
    : undefined;
  const all = opened.move();
  return {
    tower: { ...tower, ...compare && { compare } },
    ...{ graph, notes },
    [Symbol.dispose]: () => all.dispose(),
  };
}

const takesTexts = ({ inputs }: LoadedGraph) => inputs.some(({ name }) => name === IDS);

/** Compares pictures with texts, by a graph of both or by two. */
async function comparer(
  tower: PictureTower,
  { graph, texts, path }: {
    readonly graph: LoadedGraph;
    readonly texts: LoadedGraph | undefined;
    readonly path: string;
  },
): Promise<PictureTower["compare"]> {
  const folder = placesBeside(path).find((place) =>
    TOKENIZERS.some((name) => pathKind(place + name) === "file")
  );
  if (folder === undefined) return undefined;
  const { tokenizer } = await textsIn(folder);
  const { kind, scale, length } = textRule(readBeside(path, "config.json") ?? {});
  const rowsFor = (of: readonly string[]) => textRows(tokenizer, of, { length, most: MOST_TOKENS });
  return async (pixels, of, signal) => {
    const rows = rowsFor(of);
    if (!texts) return { kind, ...await comparedByOne(graph, { pixels, rows, signal }) };
    const vectors = (await textVectors(texts, { rows, signal })).map(unitVector);
    const cosines: number[][] = [];
    await tower.encode(pixels, {
      read: ({ vector }) => void cosines.push(cosinesOf(unitVector(vector.slice()), vectors)),
      signal,
    });
    return { kind, cosines, logits: cosines.map((row) => row.map((cosine) => scale * cosine)) };
  };
}

/** Files of tokenizers; without one texts cannot be read. */
const TOKENIZERS = ["tokenizer.json", "vocab.json", "spiece.model"];
/** Tokens that CLIP was trained with at most. */
const MOST_TOKENS = 77;
const IDS = "input_ids", PIXELS = "pixel_values";

/** Logits and vectors of a graph that takes pictures and texts. */
async function comparedByOne(
  graph: LoadedGraph,
  { pixels, rows, signal }: {
    readonly pixels: PixelValues;
    readonly rows: TextRows;
    readonly signal: AbortSignal | undefined;
  },
) {
  const inputs = { [PIXELS]: pixels, ...textInputs(graph, rows) };
  const outputs = ["logits_per_image", "image_embeds", "text_embeds"];
  const found = await graph.run(inputs, { outputs, signal }) as Record<string, GraphTensor>;
  const [logits, images, vectors] = outputs.map((name) => rowsOf(found[name]!));
  const units = vectors!.map(unitVector);
  return {
    logits: logits!.map((row) => [...row]),
    cosines: images!.map((image) => cosinesOf(unitVector(image), units)),
  };
}

function cosinesOf(a: Float32Array, others: readonly Float32Array[]): number[] {
  return others.map((b) => dot(a, b));
}

function towerOfGraph(
  graph: LoadedGraph,
  path: string,
): PictureTower & Pick<ImageGraph, "notes"> {
  const hasTexts = takesTexts(graph),
    input = pixelInput(graph, path),
    [count, ...sizes] = input.dims!;
  const [channels, height, width] = sizes.map((size) =>
    typeof size === "number" ? size : undefined
  );
  const config = readBeside(path, "config.json") ?? {};
  const names = asObject(config.id2label as never) ?? {};
  const { scores, vectors, note } = resultsOf(graph, { hasLabels: "id2label" in config });
  if (!scores && !vectors) {
    throw new UnsupportedError(
      `gives ${graph.outputs.map(({ name }) => name).join(", ")}: known are ${
        [...SCORES, ...VECTORS].join(", ")
      }`,
      { file: path, remedy: "Run it with loadGraph() and read its outputs yourself" },
    );
  }
  const columns = scores?.dims?.at(-1);
  const labels = typeof columns === "number" ? columns : Object.keys(names).length;
  const most = typeof count === "number" ? count : PICTURES;
  const given = readBeside(path, PROCESSOR);
  const usual = given || (channels ?? 3) !== 3 ? undefined : usualProcessor({ height, width });
  return {
    ...{ name: path, processor: given ?? usual?.processor },
    notes: [note, usual?.note].filter((text) => text !== undefined),
    pixels: [channels ?? 3, height, width],
    labels: Array.from(
      { length: scores ? labels : 0 },
      (_, i) => String(names[i] ?? `LABEL_${i}`),
    ),
    isMultiLabel: config.problem_type === "multi_label_classification",
    hasVectors: vectors !== undefined,
    async encode(pixels, { read, signal }) {
      const total = pixels.dims[0];
      for (let first = 0; first < total; first += most) {
        signal?.throwIfAborted();
        const part = partOf(pixels, { first, most, isFixed: typeof count === "number" });
        const wanted = [scores, vectors].flatMap((port) => port ? [port.name] : []);
        const found = await graph.run({ [input.name]: part, ...hasTexts && blankText(graph) }, {
          ...{ outputs: wanted, signal },
        }) as Record<string, GraphTensor>;
        for (let i = 0; i < part.dims[0] && first + i < total; i++) {
          read({
            scores: scores ? rowOf(found[scores.name]!, i) : NONE,
            vector: vectors ? rowOf(found[vectors.name]!, i) : NONE,
            states: NONE,
          }, first + i);
        }
      }
    },
  };
}

const NONE = new Float32Array(0), PROCESSOR = "preprocessor_config.json";

/** Outputs of scores and vectors: those of known names, else a row of numbers for each picture that stands alone. */
function resultsOf(
  graph: LoadedGraph,
  { hasLabels }: { readonly hasLabels: boolean },
): {
  readonly scores?: GraphPort | undefined;
  readonly vectors?: GraphPort | undefined;
  readonly note?: string;
} {
  const scores = outputOf(graph, SCORES), vectors = outputOf(graph, VECTORS);
  const [only, ...others] = graph.outputs;
  const isRow = only?.type === "float32" && only.dims?.length === 2 && others.length === 0;
  if (scores || vectors || !isRow) return { scores, vectors };
  const [, columns] = only.dims!, size = typeof columns === "number" ? columns : "?";
  const are = (what: string) => `takes "${only.name}", ${size} numbers a picture, for ${what}`;
  return hasLabels || columns === IMAGENET_LABELS
    ? { scores: only, note: are("the scores of labels") }
    : { vectors: only, note: are("its vector") };
}

/** How pictures are prepared where no file says it, for a graph of such pictures or of any. */
function usualProcessor(
  { height = IMAGENET_SIDE, width = IMAGENET_SIDE }: {
    readonly height: number | undefined;
    readonly width: number | undefined;
  },
): { readonly processor: Readonly<Record<string, unknown>>; readonly note: string } {
  const edge = Math.round(Math.max(height, width) * IMAGENET_EDGE / IMAGENET_SIDE);
  return {
    processor: { ...IMAGENET, size: { shortest_edge: edge }, crop_size: { height, width } },
    note:
      `there is no ${PROCESSOR} beside it, so pictures are prepared as ImageNet's are: the shorter ` +
      `edge ${edge}, of that the middle ${width} × ${height}, means ${
        IMAGENET.image_mean.join(", ")
      }`,
  };
}

/** A text that is given where only pictures are asked for. */
function blankText(graph: LoadedGraph): Record<string, GraphTensor> {
  return textInputs(graph, {
    ids: new BigInt64Array(1),
    mask: new BigInt64Array([1n]),
    dims: [1, 1],
  });
}

const OF_TEXTS = [IDS, "attention_mask"];

/** The input of pictures; beside it there may be those of texts. */
function pixelInput(graph: LoadedGraph, file: string): GraphPort {
  const wanted = graph.inputs.filter(({ name, required }) => required && !OF_TEXTS.includes(name));
  const pictures = wanted.filter(({ type, dims }) => type === "float32" && dims?.length === 4);
  const other = wanted.find((input) => !pictures.includes(input));
  if (pictures.length === 1 && !other) return pictures[0]!;
  throw new UnsupportedError(
    other ? `wants "${other.name}" beside pictures` : "takes no pictures, or several kinds",
    { file, remedy: "Give the file that encodes pictures alone (vision_model.onnx)" },
  );
}

function outputOf({ outputs }: LoadedGraph, names: readonly string[]): GraphPort | undefined {
  const name = names.find((name) => outputs.some((output) => output.name === name));
  return outputs.find((output) => output.name === name);
}

/** So many pictures from one on; a graph of a fixed number gets that many, the last ones blank. */
function partOf(
  { data, dims }: PixelValues,
  { first, most, isFixed }: {
    readonly first: number;
    readonly most: number;
    readonly isFixed: boolean;
  },
): PixelValues {
  const [total, ...sizes] = dims, values = data.length / total;
  const left = Math.min(most, total - first);
  const own = data.subarray(first * values, (first + left) * values);
  if (left === most || !isFixed) return { data: own, dims: [left, ...sizes] };
  const whole = new Float32Array(most * values);
  whole.set(own);
  return { data: whole, dims: [most, ...sizes] };
}

/** Numbers of a picture: of [pictures, width] all, of [pictures, rows, width] those of the first row, the class token's. */
function rowOf({ data, dims }: GraphTensor, picture: number): Float32Array {
  const width = dims.at(-1)!, values = dims.slice(1).reduce((product, size) => product * size, 1);
  return (data as Float32Array).subarray(picture * values, picture * values + width);
}

/** The graph's folder, and the one that the folder `onnx` lies in. */
function placesBeside(path: string): readonly string[] {
  const folder = path.replace(/[^/\\]+$/, "");
  return [folder, ...folder.match(/^(.*[/\\])onnx[/\\]$/)?.slice(1) ?? []];
}

/** A JSON file of the graph's folder, or of the one that the folder `onnx` lies in. */
function readBeside(path: string, name: string): Readonly<Record<string, unknown>> | undefined {
  const file = placesBeside(path).map((place) => place + name).find((file) =>
    pathKind(file) === "file"
  );
  if (file === undefined) return undefined;
  const config = asObject(parseJson(readTextNow(file), { file, place: name }));
  if (config) return config;
  throw new FormatError("is not a JSON object", { file });
}
