// Targets that compare with other implementations in Python: inputs are made, not mutated, and what differs is a failure.

import { ResourceError } from "../../../engine/errors.ts";
import type { Need } from "../../../tests/support/skip.ts";
import { createDraw, type Draw } from "../../support/draw.ts";
import { compareTemplate, JINJA } from "./compare_templates.ts";
import {
  compareReal,
  compareSentencePiece,
  compareTokenizer,
  TOKENIZERS,
} from "./compare_tokenizers.ts";
import { hasPackages, type Packages, remedyOf } from "./python.ts";
import { randomSentencePiece } from "./random_sentencepiece.ts";
import { randomTemplate } from "./random_template.ts";
import { randomTokenizer, randomUnicode } from "./random_tokenizer.ts";
import { REAL_NAMES, realNeed } from "./real_vocabularies.ts";

/** A comparison. */
export interface BesideTarget {
  readonly packages: Packages;
  /** What is needed beside Python's packages. */
  needs(): readonly Need[];
  /** An input as text, to be kept where it fails. */
  make(draw: Draw): string;
  /** Throws where the two differ. */
  compare(input: string): Promise<void>;
}

const NOTHING = (): readonly Need[] => [];
const TEXTS_OF_A_VOCABULARY = 2;

/** Targets by name. */
export const besideTargets: Readonly<Record<string, BesideTarget>> = {
  templates: { packages: JINJA, needs: NOTHING, make: randomTemplate, compare: compareTemplate },
  tokenizers: {
    packages: TOKENIZERS,
    needs: NOTHING,
    make: (draw) => JSON.stringify(randomTokenizer(draw)),
    compare: (input) => compareTokenizer(JSON.parse(input)),
  },
  "sentencepiece-models": {
    packages: TOKENIZERS,
    needs: NOTHING,
    make: (draw) => JSON.stringify(randomSentencePiece(draw)),
    compare: (input) => compareSentencePiece(JSON.parse(input)),
  },
  vocabularies: {
    packages: TOKENIZERS,
    needs: () => REAL_NAMES.map(realNeed),
    make: (draw) =>
      JSON.stringify({
        name: REAL_NAMES[draw(REAL_NAMES.length)],
        texts: Array.from({ length: TEXTS_OF_A_VOCABULARY }, () => randomUnicode(draw)),
      }),
    compare: (input) => compareReal(JSON.parse(input)),
  },
};

/** Everything a target needs, Python included. */
export function needsOf({ packages, needs }: BesideTarget): readonly Need[] {
  const what = `Python's ${Object.keys(packages).join(", ")}`;
  return [{ what, present: hasPackages(packages), remedy: remedyOf(packages) }, ...needs()];
}

/** Input number `index` of a seed. */
export function besideInput(target: string, seed: number, index: number): string {
  return besideTargets[target]!.make(createDraw(seed, index));
}

/** Refuses a target that has nothing to compare with. */
export function checkNeeds(target: string): void {
  const missing = besideTargets[target]!.needs().find(({ present }) => !present);
  if (missing === undefined) return;
  throw new ResourceError(`the target ${target} needs ${missing.what}`, { remedy: missing.remedy });
}
