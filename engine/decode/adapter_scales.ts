// Which adapters count how much: from names, as users say it, to a list by index.

import type { Runtime } from "./runtime.ts";

/**
 * Scales by index.
 *
 * @param given By name; those not named are 0. Undefined: as when the model was loaded.
 * @throws {RangeError} For a name that is not loaded, or a scale that is no number.
 */
export function adapterScales(
  { adapters, name: model }: Pick<Runtime, "adapters" | "name">,
  given: Readonly<Record<string, number>> | undefined,
): number[] {
  if (given === undefined) return adapters.map(({ scale }) => scale);
  for (const [name, scale] of Object.entries(given)) {
    if (!adapters.some((adapter) => adapter.name === name)) {
      const known = adapters.map((adapter) => adapter.name).join(", ") || "none";
      throw new RangeError(`Cannot use adapter "${name}": ${model} was loaded with ${known}`);
    }
    if (!Number.isFinite(scale)) {
      throw new RangeError(`Cannot use adapter ${name} with scale ${scale}: it is a finite number`);
    }
  }
  return adapters.map(({ name }) => Object.hasOwn(given, name) ? given[name]! : 0);
}

/** The model's fingerprint, or one with the scales in it where there are adapters. */
export async function adaptedFingerprint(
  runtime: Pick<Runtime, "fingerprint">,
  scales: readonly number[],
): Promise<Uint8Array> {
  const fingerprint = await runtime.fingerprint();
  if (scales.length === 0) return fingerprint;
  const numbers = new Uint8Array(Float64Array.from(scales).buffer);
  const bytes = new Uint8Array(fingerprint.length + numbers.length);
  bytes.set(fingerprint);
  bytes.set(numbers, fingerprint.length);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}
