// A config of diffusers beside the spec of its network: what it leaves out is filled in, what nothing here builds is
// refused by its key, and keys that nobody knows are told.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { type Names, valueOf } from "./expression.ts";
import type { NetworkSpec } from "./network_spec.ts";

/** A config that is complete. */
export interface NetworkConfig {
  /** Names that expressions of the spec may use. */
  readonly names: Names;
  /** One sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Completes a config.
 *
 * @param file For messages.
 * @throws {UnsupportedError} If a key has a value that is not built.
 * @throws {FormatError} If a value is missing that the spec computes with.
 */
export function readNetworkConfig(
  spec: NetworkSpec,
  { given, file }: { readonly given: Readonly<Record<string, unknown>>; readonly file: string },
): NetworkConfig {
  const config: Record<string, unknown> = { ...spec.defaults, ...given };
  for (const [key, allowed] of Object.entries(spec.only)) {
    const words = allowed.map((value) => JSON.stringify(value));
    const stated = Array.isArray(config[key]) && !words.includes(JSON.stringify(config[key]))
      ? config[key]
      : [config[key] ?? null];
    const wrong = stated.find((value) => !words.includes(JSON.stringify(value)));
    if (wrong === undefined) continue;
    throw new UnsupportedError(
      `${JSON.stringify(wrong)} is not built: known are ${words.join(", ")}`,
      {
        file,
        place: key,
      },
    );
  }
  const known = [...Object.keys(spec.defaults), ...Object.keys(spec.only), ...spec.harmless];
  const unknown = Object.entries(given).filter(([key, value]) =>
    !key.startsWith("_") && !known.includes(key) && value !== null && value !== false
  ).map(([key]) => key);
  const names: Record<string, unknown> = { ...config };
  for (const [name, text] of Object.entries(spec.values ?? {})) {
    try {
      names[name] = valueOf(text, { names, place: name });
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      throw new FormatError(error.message, { file });
    }
  }
  const warnings = unknown.length === 0
    ? []
    : [`${file}: nobody knows what these keys mean: ${unknown.join(", ")}`];
  return { names, warnings };
}
