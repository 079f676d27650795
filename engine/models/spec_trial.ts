// Builds what a spec describes, without a file: a small model in which every number that `defaults` names is as it
// says, every other one that its blocks need is small, and every tensor that they ask for is there. So a spec whose
// sizes do not fit together, that leaves out a number or has no name for a tensor is told before there is a
// checkpoint. A number is given only if the spec says where a file would write it. Nothing is computed.

import type { ByteSource } from "../byte_source.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { type FieldName, FIELDS, type FoundHyperparameters } from "./hparam_fields.ts";
import { completeHyperparameters } from "./hparams.ts";
import { buildNetwork } from "./prepare.ts";
import { sizeNames } from "./sizes.ts";
import type { HasRole, ModelSpec, Names, ResolvedSpec } from "./spec.ts";
import type { TensorLookup } from "./tensors.ts";

/** More of them are more of the same. */
const MOST_LAYERS = 128;

/** Numbers that every model has. */
const ALWAYS: readonly FieldName[] = [
  ...["layers", "hidden", "heads", "feedForward", "vocabulary", "context", "normEpsilon"] as const,
];
/** Values by kind; heads of 32 channels are whole blocks of every format of keys and values. */
const BY_KIND = { count: 64, index: 1, positive: 1, flag: false, word: "silu" } as const;
const SMALL: Readonly<Partial<Record<FieldName, number>>> = {
  ...{
    layers: 2,
    encoderLayers: 2,
    heads: 2,
    kvHeads: 1,
    windowPeriod: 2,
    ropePeriod: 2,
    ropeTheta: 1e4,
  },
  ...{ experts: 4, expertsUsed: 2, sharedExperts: 1, keyRank: 32, plainDim: 32, ropeDim: 32 },
};

/** What a file is thought to have: the conditions of a case. */
export interface TrialFile {
  readonly when?: Readonly<Record<string, unknown>>;
  readonly given?: readonly string[];
  readonly absent?: readonly string[];
  readonly has: HasRole;
  /** For messages. */
  readonly file: string;
}

/**
 * Builds a small model of a spec.
 *
 * @param general The spec before its cases.
 * @throws {FormatError | UnsupportedError} If it cannot be built.
 */
export async function tryBuild(
  general: ResolvedSpec,
  { when = {}, given = [], absent = [], has, file }: TrialFile,
): Promise<void> {
  const found = {
    ...Object.fromEntries(given.map((name) => [name, smallNumber(name) || true])),
    ...Object.fromEntries(absent.map((name) => [name, undefined])),
    ...when,
  };
  const plain = { ...numbersOf(general), ...found } as FoundHyperparameters;
  const resolved = general.specialize(plain, has);
  const { spec, names, convention } = resolved;
  const numbers = { ...numbersOf(resolved), ...found } as FoundHyperparameters;
  const weights: WeightFile = {
    ...{ kind: "trial", name: file, metadata: new Map(), tensors: new Map(), close: () => {} },
  };
  const params = completeHyperparameters({
    ...numbers,
    layers: Math.min(numbers.layers ?? 0, MOST_LAYERS),
  }, {
    ...{ file: weights, convention, keyOf: (name: string) => name, vocabulary: undefined },
    ...{ derived: spec.derived ?? {}, required: spec.required ?? [] },
  });
  const tensors = trialTensors(names, file);
  await buildNetwork({ resolved, file: weights, params, tensors }, {
    ...{ capacity: 64, cacheType: "f16", embeddings: false },
  });
}

/** Numbers that a spec's blocks ask for: its defaults, else small ones, where a file has a place for them. */
function numbersOf({ spec, names }: ResolvedSpec): Record<string, unknown> {
  const { defaults = {} } = spec;
  const known = (name: string) => (names.hyperparameters[name]?.length ?? 0) > 0;
  const small = [...ALWAYS, ...askedOf(spec)].filter(known)
    .map((name) => [name, smallNumber(name)]);
  const numbers: Record<string, unknown> = { ...Object.fromEntries(small), ...defaults };
  // What is shared out must be divided by what shares it.
  const { kvHeads, expertGroups, expertsUsed, ropeDim = 32 } = numbers as FoundHyperparameters;
  if (kvHeads && defaults.heads === undefined) numbers.heads = Math.max(2, kvHeads);
  if (defaults.hidden === undefined) numbers.hidden = ropeDim * Number(numbers.heads);
  if (defaults.experts === undefined && numbers.experts !== undefined) {
    numbers.experts = Math.max(4, expertsUsed ?? 0) * (expertGroups || 1);
  }
  return numbers;
}

function smallNumber(name: string): unknown {
  const { kind } = FIELDS[name as FieldName];
  return SMALL[name as FieldName] ?? BY_KIND[kind as keyof typeof BY_KIND] ??
    (kind === "record" ? {} : []);
}

/** Names of hyperparameters that the keys of a spec ask for. */
function askedOf({ attention, feedForward, embedding, ...spec }: ModelSpec): string[] {
  const { pattern } = attention;
  const factors = [embedding.scale, spec.residual, spec.head?.scale]
    .flatMap((factor) => typeof factor === "object" ? Object.keys(factor) : []);
  const kinds = Object.values(attention.kinds).flatMap(({ theta, window }) => [theta, window]);
  const isMixture = feedForward.kind === "mixture";
  const asked = [
    ...spec.required ?? [],
    ...[...kinds, pattern.period, pattern.start, pattern.when, pattern.layers],
    ...factors,
    ...Object.values(spec.derived ?? {}).flatMap(sizeNames),
    ...attention.kind === "latent" ? ["keyRank", "headDim", "plainDim", "ropeDim"] : [],
    ...isMixture ? ["experts", "expertsUsed", "expertFeedForward"] : [],
    ...feedForward.shared ? sizeNames(feedForward.shared.inner) : [],
    ...feedForward.clamped ? ["gluLimit", "gluAlpha"] : ["activation"],
    ...embedding.types ? ["tokenTypes"] : [],
    ...attention.relativeBias ? ["relativeBuckets", "relativeDistance"] : [],
  ];
  // Of two numbers that follow from each other a file has one.
  const { headDim: _one, plainDim: _other, ...derived } = spec.derived ?? {};
  return asked.filter((name) => name !== undefined && !Object.hasOwn(derived, name)) as string[];
}

/** Nothing but zeros. */
const ZEROS: ByteSource = {
  ...{ name: "zeros", size: Infinity, close: () => {} },
  readInto: (_offset: number, target: Uint8Array) => Promise.resolve(void target.fill(0)),
};

/** Whatever has a name is there, in the shape in which it is wanted. */
function trialTensors({ tensors }: Names, file: string): TensorLookup {
  const has = (role: string) =>
    Object.hasOwn(tensors, role) || Object.hasOwn(tensors, role.replace(/_bias$/, ""));
  return {
    has,
    get(role, shape, layer): TensorInfo {
      if (!has(role)) {
        throw new FormatError("has no name for it, and the model cannot be built without it", {
          ...{ file, place: `names.tensors.${role}` },
        });
      }
      const byteLength = 4 * shape.reduce((product, size) => product * size, 1);
      const name = layer === undefined ? role : `${role}.${layer}`;
      return { name, shape, format: "F32", source: ZEROS, offset: 0, byteLength };
    },
    find: () => undefined,
    stored: () => undefined,
    rows: () => 2,
    unused: () => [],
  };
}
