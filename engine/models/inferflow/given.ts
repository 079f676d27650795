// What the parts of the translation are handed, and how they complain.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { NETWORK_KEYS } from "./read.ts";

/** Values of `network_structure`, unchecked keys left out. */
export type Network = { readonly [K in keyof typeof NETWORK_KEYS]?: unknown };

/** A checked description and the names that it leads to. */
export interface Given {
  readonly network: Network;
  readonly isEncoder: boolean;
  /** A decoder behind an encoder; standard names of the latter begin with `enc.`. */
  readonly hasSource: boolean;
  /** Names in the file by standard name. */
  readonly names: ReadonlyMap<string, string>;
  /** Width of the feed-forward block as the file's tensors have it; some configs leave it out. */
  readonly inner: number | undefined;
  readonly file: string;
}

/** A key of a description. */
interface KeyAt {
  readonly file: string;
  readonly key: string;
}

/** A key that contradicts others or the file. */
export function fail({ file, key }: KeyAt, message: string): never {
  throw new FormatError(message, { file, place: `network_structure.${key}` });
}

/** A key that asks for what is not built. */
export function refuse({ file, key }: KeyAt, message: string): never {
  throw new UnsupportedError(message, { file, place: `network_structure.${key}` });
}

/** Standard name of a matrix of a feed-forward block. */
export const FFN = (part: string): string => `dec.{i}.feed_forward.${part}.weight`;

/** Standard name of the matrix behind a stack. */
export const TRANSFORM: string = "output_transform.weight";
