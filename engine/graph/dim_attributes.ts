// Dims in attributes: texts such as "sumN - N", because attributes are plain data. Symbols of the inputs'
// shapes keep their bounds; a symbol that no input has (a length that only another part of the graph
// knows) is made anew from its name, which is what makes two dims equal.

import { type Dim, type DimEnv, evaluate, parseDim, symbolDim, symbolsOf } from "./dim.ts";
import type { TensorType } from "./op.ts";

/** Parses dims of an attribute. */
export function parseDims(
  texts: readonly string[],
  inputs: readonly (TensorType | undefined)[],
): Dim[] {
  const known: Record<string, Dim> = {};
  for (const dim of inputs.flatMap((input) => input?.shape ?? [])) {
    for (const [name, atom] of symbolsOf(dim)) known[name] = symbolDim(atom);
  }
  return texts.map((text) => parseDim(text, known));
}

/** Values of dims of an attribute when a reference runs. */
export function evaluateDims(texts: readonly string[], env: DimEnv): number[] {
  return texts.map((text) => evaluate(parseDim(text), env));
}
