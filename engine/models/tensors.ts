// Finds a model's tensors by role ("query" of layer 3) under the names of its container, checks their
// shapes, and remembers what was asked for, so that what nobody asked for can be named at the end: a
// forgotten tensor is the commonest way to a model that loads and speaks nonsense.

import { FormatError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Names } from "./spec.ts";

/** Tensors by role. */
export interface TensorLookup {
  /**
   * The tensor of a role.
   *
   * @param layer Layer index, for roles that each layer has.
   * @throws {FormatError} If it is absent or has another shape than `shape`.
   */
  get(role: string, shape: readonly number[], layer?: number): TensorInfo;
  /** The same, or undefined where the file has no such tensor. */
  find(role: string, shape: readonly number[], layer?: number): TensorInfo | undefined;
  /** Whether the file has it. */
  has(role: string, layer?: number): boolean;
  /** First dimension of a role's tensor, for sizes that are written nowhere else. */
  rows(role: string): number | undefined;
  /** Names of tensors that nothing asked for and that are not known to be needless. */
  unused(): string[];
}

/** A lookup over one model file. */
export function createTensorLookup(file: WeightFile, names: Names): TensorLookup {
  const used = new Set<string>();
  const nameWith = (prefix: string, role: string, layer: number | undefined) => {
    const template = Object.hasOwn(names.tensors, role) ? names.tensors[role] : undefined;
    return template?.replace("{prefix}", prefix).replace("{i}", String(layer));
  };
  const prefix =
    names.prefixes.find((candidate) =>
      file.tensors.has(nameWith(candidate, "embedding", undefined) ?? "")
    ) ?? names.prefixes[0] ?? "";
  const nameOf = (role: string, layer?: number) => nameWith(prefix, role, layer);

  function find(role: string, shape: readonly number[], layer?: number): TensorInfo | undefined {
    const tensor = file.tensors.get(nameOf(role, layer) ?? "");
    if (!tensor) return undefined;
    if (tensor.shape.length !== shape.length || tensor.shape.some((d, i) => d !== shape[i])) {
      throw new FormatError(`has shape [${tensor.shape}] where [${shape}] is needed`, {
        file: file.name,
        place: `tensor ${tensor.name}`,
        remedy: "The file and its hyperparameters do not belong together",
      });
    }
    used.add(tensor.name);
    return tensor;
  }

  return {
    find,
    get(role, shape, layer) {
      const tensor = find(role, shape, layer);
      if (tensor) return tensor;
      throw new FormatError(
        `is missing: needed as ${role.replaceAll("_", " ")} with shape [${shape}]`,
        { file: file.name, place: `tensor ${nameOf(role, layer) ?? role}` },
      );
    },
    has: (role, layer) => file.tensors.has(nameOf(role, layer) ?? ""),
    rows: (role) => file.tensors.get(nameOf(role) ?? "")?.shape[0],
    unused: () =>
      [...file.tensors.keys()].filter((name) =>
        !used.has(name) && !names.ignored.some((ending) => name.endsWith(ending))
      ),
  };
}
