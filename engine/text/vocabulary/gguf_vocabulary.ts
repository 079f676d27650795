// The `tokenizer.ggml.*` keys, read and checked: lengths must fit the vocabulary, ids must lie in it,
// types must be what the format says. The keys come from a file that anybody may have written.

import { FormatError } from "../../errors.ts";
import type { MetadataValue } from "../../formats/source.ts";
import { LazyMetadata } from "../../formats/lazy_metadata.ts";
import { StringTable } from "../../formats/string_table.ts";
import { stringWithout } from "../../../wasm/strings.ts";
import { createTableIndex } from "./table_index.ts";
import { createTextIndex, type TextIndex } from "./text_index.ts";
import { byteOfToken, createVocabulary, TOKEN_KIND, type Vocabulary } from "./vocabulary.ts";

/** Ids with a meaning. */
export interface Roles {
  bosId?: number;
  eosId?: number;
  unkId?: number;
  padId?: number;
  sepId?: number;
  maskId?: number;
}

/** Checked access to the tokenizer keys of one file. */
export interface GgufVocabulary {
  readonly name: string;
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  readonly vocabulary: Vocabulary;
  readonly roles: Readonly<Roles>;
  /** Ids that the file itself names as ends. */
  readonly endIds: readonly number[];
  readonly warnings: string[];
  /** A boolean key; undefined where it is absent. */
  flag(key: string): boolean | undefined;
  /** Scores, one for each token. */
  scores(): ArrayLike<number | bigint>;
  /** Rank of each merge by its text. */
  merges(): TextIndex;
  /** An array of bytes; empty where the key is absent. */
  bytes(key: string): Uint8Array;
  /** Takes the documented ids of a kind of vocabulary where the file names none, with a warning. */
  assumeRoles(defaults: Readonly<Roles>): void;
  /** An id that the kind cannot do without. */
  need(role: keyof Roles, key: string): number;
}

const PREFIX = "tokenizer.ggml.";
const ROLE_KEYS: readonly (readonly [keyof Roles, string])[] = [
  ["bosId", "bos_token_id"],
  ["bosId", "cls_token_id"], // what older files of BERT call it
  ["eosId", "eos_token_id"],
  ["unkId", "unknown_token_id"],
  ["padId", "padding_token_id"],
  ["sepId", "seperator_token_id"],
  ["sepId", "separator_token_id"],
  ["maskId", "mask_token_id"],
];
const END_KEYS: readonly string[] = ["eot_token_id", "eom_token_id"];

type Refuse = (key: string, message: string) => never;

function isArrayLike(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function readTexts(
  value: StringTable | MetadataValue | undefined,
  refuse: Refuse,
): readonly string[] | StringTable {
  if (value instanceof StringTable) {
    if (value.length === 0) refuse("tokens", "the vocabulary is empty");
    return value;
  }
  if (!Array.isArray(value)) return refuse("tokens", "must be an array of strings");
  const odd = value.findIndex((text) => typeof text !== "string");
  if (odd >= 0) refuse("tokens", `entry ${odd} is no string`);
  if (value.length === 0) refuse("tokens", "the vocabulary is empty");
  return value as readonly string[];
}

function readKinds(
  value: MetadataValue | undefined,
  texts: readonly string[] | StringTable,
  refuse: Refuse,
): Uint8Array {
  const kinds = new Uint8Array(texts.length).fill(TOKEN_KIND.normal);
  if (value === undefined) {
    // Without types, byte tokens are told by their spelling and control tokens by their roles.
    (texts instanceof StringTable ? texts.all() : texts).forEach((text, id) => {
      if (byteOfToken(text) >= 0) kinds[id] = TOKEN_KIND.byte;
    });
    return kinds;
  }
  if (!isArrayLike(value)) return refuse("token_type", "must be an array of integers");
  if (value.length !== texts.length) {
    refuse("token_type", `holds ${value.length} entries for ${texts.length} tokens`);
  }
  if (value instanceof Int32Array || value instanceof Uint32Array) {
    // What is 0 to 7 has no other bits; the rest is for functions that need no compiler.
    let bits = 0;
    for (let id = 0; id < value.length; id++) bits |= value[id];
    if (bits >>> 3 === 0 && !value.includes(7)) {
      kinds.set(value);
      for (let id = kinds.indexOf(0); id >= 0; id = kinds.indexOf(0, id + 1)) {
        kinds[id] = TOKEN_KIND.normal;
      }
      return kinds;
    }
  }
  const count = kinds.length;
  for (let id = 0; id < count; id++) {
    const given = value[id];
    const kind = typeof given === "number" ? given : Number(given);
    if ((kind | 0) !== kind || kind < 0 || kind > 6) {
      refuse("token_type", `entry ${id} is ${value[id]}; types are 0 to 6`);
    }
    kinds[id] = kind === 0 ? TOKEN_KIND.normal : kind;
  }
  return kinds;
}

function readId(
  value: MetadataValue,
  { key, count, refuse }: { readonly key: string; readonly count: number; readonly refuse: Refuse },
): number {
  const id = typeof value === "bigint" ? Number(value) : value;
  if (typeof id !== "number" || !Number.isInteger(id)) return refuse(key, "must be an integer");
  if (id < 0 || id >= count) refuse(key, `id ${id} is outside the vocabulary of ${count} tokens`);
  return id;
}

function readIds(
  value: MetadataValue,
  { key, count, refuse }: { readonly key: string; readonly count: number; readonly refuse: Refuse },
): number[] {
  return isArrayLike(value)
    ? Array.from(value as ArrayLike<MetadataValue>, (id) => readId(id, { key, count, refuse }))
    : [readId(value, { key, count, refuse })];
}

function readMerges(value: StringTable | MetadataValue | undefined, refuse: Refuse): TextIndex {
  const refuseMerge = (rank: number) =>
    refuse("merges", `merge ${rank} has no blank between two parts`);
  if (value instanceof StringTable) {
    // Behind the first unit; one of several bytes has no blank among them.
    const rank = stringWithout(value, 0x20);
    return rank < 0 ? lazyIndex(value) : refuseMerge(rank);
  }
  if (!Array.isArray(value)) return refuse("merges", "must be an array of strings");
  for (let rank = 0; rank < value.length; rank++) {
    const merge = value[rank];
    if (typeof merge !== "string" || merge.indexOf(" ", 1) < 0) {
      return refuseMerge(rank);
    }
  }
  return createTextIndex(value as readonly string[]);
}

/** Merges are only looked up when texts are encoded, so a model that is given ids does without. */
function lazyIndex(table: StringTable): TextIndex {
  let index: TextIndex | undefined;
  return { get: (text) => (index ??= createTableIndex(table)).get(text) };
}

/**
 * Reads the keys.
 *
 * @throws {FormatError} If a key is missing, of the wrong kind, too short, or an id is out of range.
 */
export function readGgufVocabulary(
  metadata: ReadonlyMap<string, MetadataValue>,
  name: string,
): GgufVocabulary {
  const refuse: Refuse = (key, message) => {
    throw new FormatError(message, { file: name, place: PREFIX + key });
  };
  const get = (key: string) => metadata.get(PREFIX + key);
  const list = (key: string) =>
    metadata instanceof LazyMetadata ? metadata.table(PREFIX + key) ?? get(key) : get(key);
  const texts = readTexts(list("tokens"), refuse);
  const count = texts.length;
  const kinds = readKinds(get("token_type"), texts, refuse);
  const roles: Roles = {};
  let endIds: number[] = [];
  for (const [role, key] of ROLE_KEYS) {
    const value = get(key);
    if (value === undefined) continue;
    const ids = readIds(value, { key, count, refuse });
    if (role !== "eosId" && ids.length !== 1) refuse(key, `names ${ids.length} ids instead of one`);
    if (ids.length > 0) roles[role] ??= ids[0];
    if (role === "eosId") endIds = ids;
  }
  for (const key of END_KEYS) {
    const value = get(key);
    if (value !== undefined) endIds = [...endIds, ...readIds(value, { key, count, refuse })];
  }
  if (get("token_type") === undefined) {
    for (const id of [roles.bosId, roles.padId, roles.sepId, ...endIds]) {
      if (id !== undefined) kinds[id] = TOKEN_KIND.control;
    }
    if (roles.unkId !== undefined) kinds[roles.unkId] = TOKEN_KIND.unknown;
  }
  const vocabulary = createVocabulary(texts, kinds);
  const textOf = (id: number) => vocabulary.texts.get(id)!;
  const warnings: string[] = [];

  return {
    name,
    metadata,
    vocabulary,
    roles,
    endIds,
    warnings,
    flag(key) {
      const value = get(key);
      if (value === undefined || typeof value === "boolean") return value;
      return refuse(key, "must be a boolean");
    },
    scores() {
      const value = get("scores");
      if (!isArrayLike(value)) return refuse("scores", "must be an array of numbers");
      if (value.length !== count) {
        refuse("scores", `holds ${value.length} scores for ${count} tokens`);
      }
      return value as ArrayLike<number | bigint>;
    },
    merges: () => readMerges(list("merges"), refuse),
    bytes(key) {
      const value = get(key);
      if (value === undefined) return new Uint8Array(0);
      if (!isArrayLike(value)) return refuse(key, "must be an array of bytes");
      return Uint8Array.from(value as ArrayLike<number>);
    },
    assumeRoles(defaults) {
      for (const [role, id] of Object.entries(defaults) as [keyof Roles, number][]) {
        const key = ROLE_KEYS.find(([named]) => named === role)?.[1];
        if (roles[role] !== undefined || id >= count) continue;
        const isTyped = kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.unknown;
        // In a file without types, the name of the token must do.
        const isNamed = get("token_type") === undefined && /^(<\/?\w+>|\[\w+\])$/.test(textOf(id));
        if (!isTyped && !isNamed) continue;
        kinds[id] = role === "unkId" ? TOKEN_KIND.unknown : TOKEN_KIND.control;
        roles[role] = id;
        if (role === "eosId") endIds.push(id);
        warnings.push(
          `${name}: ${PREFIX}${key} is missing; ${id} (${textOf(id)}) is taken, the default of ` +
            "this kind of vocabulary",
        );
      }
    },
    need(role, key) {
      return roles[role] ?? refuse(key, "the key is missing");
    },
  };
}
