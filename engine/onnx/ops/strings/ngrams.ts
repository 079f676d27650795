// TfIdfVectorizer: how often runs of words occur in a row of them. The runs that count are a trie, so that a row is
// walked once for each gap between words, however many they are.

import {
  bigints,
  floats,
  int,
  ints,
  type OnnxAttributesOf,
  required,
  text,
  texts,
} from "../../derivation/attributes.ts";
import { type HostCall, type OnnxOp, onnxOp } from "../../derivation/op.ts";
import { isHostTensor } from "../../derivation/tensor.ts";
import { type Element, elementsIn } from "../ml/labels.ts";

/** A run of words; its column if it counts. */
interface Run {
  readonly longer: Map<Element, Run>;
  /** Its number in the lists of columns and weights. */
  place?: number;
}

const attributes = {
  max_gram_length: required(int()),
  max_skip_count: required(int()),
  min_gram_length: required(int()),
  mode: required(text(undefined, { choices: ["TF", "IDF", "TFIDF"] })),
  ngram_counts: required(ints()),
  ngram_indexes: required(ints()),
  pool_int64s: bigints(),
  pool_strings: texts(),
  weights: floats(),
};

const MOST_COLUMNS = 2 ** 28;

/** The pool lists all runs of one word, then those of two, and so on; `counts` says where each length begins. */
function readRuns(pool: readonly Element[], counts: readonly number[]) {
  const root: Run = { longer: new Map() };
  let place = 0;
  counts.forEach((start, i) => {
    const length = i + 1, end = counts[i + 1] ?? pool.length;
    if (!(start >= 0 && start <= end && end <= pool.length) || (end - start) % length !== 0) {
      throw new RangeError(
        `runs of ${length} words from ${start} to ${end} of ${pool.length} words`,
      );
    }
    for (let at = start; at < end; at += length) {
      let run = root;
      for (const word of pool.slice(at, at + length)) {
        const next: Run = run.longer.get(word) ?? { longer: new Map() };
        run.longer.set(word, next);
        run = next;
      }
      run.place = place++;
    }
  });
  return { root, count: place };
}

function prepare(given: OnnxAttributesOf<typeof attributes>) {
  const { pool_int64s: integers, pool_strings: strings, ngram_counts, ngram_indexes } = given;
  if ((integers === undefined) === (strings === undefined)) {
    throw new RangeError("either pool_int64s or pool_strings must be given");
  }
  const { root, count } = readRuns(strings ?? integers!, ngram_counts);
  const { weights } = given;
  if (ngram_indexes.length !== count || weights && weights.length !== count) {
    const found = `${ngram_indexes.length} columns and ${weights?.length ?? 0} weights`;
    throw new RangeError(`${found} for ${count} runs of words`);
  }
  const width = ngram_indexes.reduce((most, column) => Math.max(most, column + 1), 0);
  if (ngram_indexes.some((column) => column < 0) || width > MOST_COLUMNS) {
    throw new RangeError(`columns must be from 0 to ${MOST_COLUMNS - 1}`);
  }
  const { min_gram_length: least, max_gram_length: most, max_skip_count: skips } = given;
  if (!(least >= 1 && most >= least && skips >= 0)) {
    throw new RangeError(`runs of ${least} to ${most} words with gaps of up to ${skips}`);
  }
  return { root, width, least, most, skips, mode: given.mode, weights, columns: ngram_indexes };
}

type Runs = ReturnType<typeof prepare>;

/** How often each run occurs in a row. */
function countRuns(words: readonly Element[], { root, least, most, skips, columns }: Runs) {
  const counts = new Uint32Array(columns.length);
  // A gap that no two words are apart finds nothing.
  for (let skip = 0; skip <= Math.min(skips, Math.max(words.length - 2, 0)); skip++) {
    for (let start = 0; start < words.length; start++) {
      let run: Run | undefined = root;
      for (let length = 1; length <= most; length++) {
        const at = start + (length - 1) * (skip + 1);
        run = at < words.length ? run.longer.get(words[at]!) : undefined;
        if (!run) break;
        // One word has no gaps.
        const counted = length >= least && (length > 1 || skip === 0);
        if (counted && run.place !== undefined) counts[run.place]!++;
      }
    }
  }
  return counts;
}

function wordsOf({ inputs: [x], node }: HostCall<unknown>) {
  if (x?.dtype !== "string" && !isHostTensor(x)) {
    throw new TypeError(`input 0 of ${node.name} must be words`);
  }
  if (x.shape.length !== 1 && x.shape.length !== 2) {
    throw new RangeError(`words must be of shape [C] or [N, C]: it is [${x.shape}]`);
  }
  const words = elementsIn(x);
  return { shape: x.shape, words: x.dtype === "i32" ? words.map(BigInt) : words };
}

/** Ops on runs of words. */
export const ngramOps: readonly OnnxOp[] = [
  onnxOp("TfIdfVectorizer", {
    versions: [9],
    attributes,
    prepare,
    evaluate(call) {
      const runs = call.attributes;
      const { mode, weights, columns, width } = runs;
      const { shape, words } = wordsOf(call);
      const size = shape.at(-1)!, rows = shape.length === 1 ? 1 : shape[0]!;
      const data = new Float32Array(rows * width);
      for (let row = 0; row < rows; row++) {
        countRuns(words.slice(row * size, (row + 1) * size), runs).forEach((count, place) => {
          if (count === 0) return;
          const weight = mode === "TF" ? 1 : weights?.[place] ?? 1;
          data[row * width + columns[place]!]! += mode === "IDF" ? weight : count * weight;
        });
      }
      return [{ dtype: "f32", shape: [...shape.slice(0, -1), width], data }];
    },
  }),
];
