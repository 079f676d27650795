// Models that benches run, with token ids of a real text in their own vocabulary: timings on made-up ids
// would be the same, but the peers must not meet an end token in the middle of a decode run.

import { pullModel } from "../../engine/formats/hub/pull.ts";
import { openModel } from "../../engine/models/open_model.ts";
import { readTextParts } from "../../engine/text/text_parts.ts";
import { makeRandomModel, RANDOM_MODELS } from "./random_llama.ts";

/** A model to measure. */
export interface BenchModel {
  readonly name: string;
  readonly path: string;
  /** At least {@linkcode LONGEST} ids. */
  readonly ids: readonly number[];
  /** A text that a model goes on with by copying: the same one twice, with a word changed, and its beginning. */
  readonly copyIds?: readonly number[];
  /** Has random weights, whose text means nothing. */
  readonly isRandom?: boolean;
  /** Made for this run: `releaseModel` deletes it. */
  readonly isTemporary?: boolean;
  /** In a number format that peers do not read. */
  readonly isOwnFormat?: boolean;
}

const TEXT = "The nature of light has been asked after in many ways. " +
  "Some held that it is a stream of small bodies, others that it is a motion in a medium. " +
  "An experiment with a prism shows that white light is a mixture of colours, each bent by its own " +
  "angle, and that no colour can be changed into another by bending it again. ";

const STORY =
  "The harbour town woke slowly. Fishing boats rocked against the pier while gulls argued over scraps, " +
  "and the smell of salt and tar drifted through the narrow streets. A baker opened her shutters, set out loaves on " +
  "the sill, and wished good morning to the postman, who had walked the same road for thirty years and knew every " +
  "door by its colour. At noon the bell of the old church rang twelve times, and the market filled with people who " +
  "came for fish, onions, candles and news. By evening the square was empty again; only a dog slept on the steps, and " +
  "the last light lay on the water like a sheet of brass that nobody had yet thought of selling. ";
/** It and the same with one word changed. */
export const STORY_TWICE = `${STORY}\n\n${STORY.replace("postman", "milkman")}\n\n`;
const BEGINNING = "The harbour town woke slowly. Fishing boats rocked against the pier";

/** So many tokens a context may be long. */
const LONGEST = 6000;

/** Finds a model (fetching or making it if need be) and prepares the text. */
export async function findBenchModel(name: string): Promise<BenchModel> {
  if (RANDOM_MODELS.includes(name)) return await makeRandomModel(name);
  const path = await pullModel(name);
  const file = await openModel(path);
  try {
    const tokenizer = (await readTextParts(file)).tokenizer();
    const once = tokenizer.encode(TEXT).length;
    const ids = tokenizer.encode(TEXT.repeat(Math.ceil(LONGEST / (once - 2))));
    const copyIds = tokenizer.encode(STORY_TWICE + BEGINNING);
    return { name, path, ids, copyIds };
  } finally {
    file.close();
  }
}

/** Deletes what was made for this run. */
export async function releaseModel({ path, isTemporary }: BenchModel): Promise<void> {
  if (isTemporary) await Deno.remove(path);
}
