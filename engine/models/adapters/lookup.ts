// Finds what adapters change in a model, by role. An adapter speaks of the file's tensors; a role may be a part of
// one (a fused projection), and then the rows of B, or the columns of A, are cut as the tensor's are. What
// nothing asked for at the end is a module that the model does not have or that cannot be adapted: an error,
// because an adapter that is applied in part is another model.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Value } from "../../graph/graph.ts";
import type { AdapterInputs, AdapterTerm } from "../blocks/adapted.ts";
import { partOf, type StoredRole, type TensorLookup } from "../tensors.ts";
import { sliceTensor } from "../views/slice.ts";
import type { Adapter } from "./adapter.ts";
import type { LowRankPair } from "./pairs.ts";

/** Adapters over one model's tensors. */
export interface AdapterLookup {
  /**
   * What they change under the names of a part of the model.
   *
   * @param input Makes the input that has an adapter's scales; without it they are constants.
   */
  over(tensors: TensorLookup, input?: (adapter: number) => Value): AdapterInputs;
  /**
   * To be called when the graph is built.
   *
   * @throws {FormatError} If a pair was not asked for.
   */
  checkUsed(): void;
}

/** What adapters are looked up in. */
export interface AdapterLookupOptions {
  readonly params: object;
  /** Container of the model. */
  readonly convention: "gguf" | "huggingface";
  /** The file's own name of its architecture. */
  readonly architecture: string;
}

/**
 * A lookup over adapters.
 *
 * @throws {UnsupportedError} If an adapter was made for another kind of file or architecture.
 */
export function createAdapterLookup(
  adapters: readonly Adapter[],
  { params, convention, architecture }: AdapterLookupOptions,
): AdapterLookup {
  adapters.forEach((adapter) => checkKind(adapter, convention, architecture));
  const used = adapters.map(() => new Set<string>());

  function terms(stored: StoredRole, shape: readonly [number, number]): AdapterTerm[] {
    return adapters.flatMap((adapter, index) => {
      const name = pairName(adapter, stored.tensor.name);
      if (name === undefined) return [];
      used[index]!.add(name);
      const pair = adapter.pairs.get(name)!;
      checkShape(adapter, pair, stored);
      return [{ adapter: index, factor: pair.factor, ...cut(pair, stored, { params, shape }) }];
    });
  }

  return {
    over: (tensors, input) => ({
      scales: adapters.map(({ scale }, index) => input?.(index) ?? scale),
      terms(role, shape, layer) {
        const stored = tensors.stored(role, layer);
        return stored ? terms(stored, shape) : [];
      },
    }),
    checkUsed() {
      for (const [index, { pairs, file }] of adapters.entries()) {
        for (const [name, { down }] of pairs) {
          if (used[index]!.has(name)) continue;
          throw new FormatError(
            `is for ${name}, which the model does not have as a projection that can be adapted`,
            {
              file: file.name,
              place: `tensor ${down.name}`,
              remedy: "Give the adapter with the model that it was made for",
            },
          );
        }
      }
    },
  };
}

function checkKind(adapter: Adapter, convention: string, architecture: string): void {
  const { file } = adapter;
  if (adapter.convention !== convention) {
    throw new UnsupportedError(
      `is an adapter for ${adapter.convention} files, and the model is a ${convention} file`,
      { file: file.name, remedy: "Give model and adapter in the same format" },
    );
  }
  if (adapter.architecture !== undefined && adapter.architecture !== architecture) {
    throw new FormatError(`is "${adapter.architecture}", and the model is "${architecture}"`, {
      file: file.name,
      place: "general.architecture",
      remedy: "Give the adapter with the model that it was made for",
    });
  }
}

// PEFT speaks of modules from the outermost class on; a base model's file may leave its name out, or have more.
function pairName({ pairs }: Adapter, tensor: string): string | undefined {
  if (pairs.has(tensor)) return tensor;
  const parts = tensor.split(".");
  for (let from = 1; from < Math.min(3, parts.length - 1); from++) {
    const inner = parts.slice(from).join(".");
    if (pairs.has(inner)) return inner;
  }
  for (const outer of ["model.", "transformer.", "model.language_model."]) {
    if (pairs.has(outer + tensor)) return outer + tensor;
  }
  return undefined;
}

function isTransposed({ rule }: StoredRole): boolean {
  return typeof rule !== "string" && rule.transposed === true;
}

function checkShape({ file }: Adapter, { down, up }: LowRankPair, stored: StoredRole): void {
  const { name, shape } = stored.tensor;
  const [rows, columns] = isTransposed(stored) ? [shape[1], shape[0]] : shape;
  const rank = down.shape[0];
  for (
    const [half, wanted] of [[down, [rank, columns]], [up, [rows, rank]]] as const
  ) {
    if (half.shape.join() === wanted.join()) continue;
    throw new FormatError(`has shape [${half.shape}] where [${wanted}] is needed for ${name}`, {
      file: file.name,
      place: `tensor ${half.name}`,
      remedy: "Give the adapter with the model that it was made for",
    });
  }
}

function cut(
  { down, up }: LowRankPair,
  { rule, tensor }: StoredRole,
  { params, shape: [rows, columns] }: { params: object; shape: readonly [number, number] },
): { readonly down: TensorInfo; readonly up: TensorInfo } {
  const made = cutPair({ down, up }, rule, params);
  if (made.down.shape[1] === columns && made.up.shape[0] === rows) return made;
  throw new FormatError(`cannot be adapted in parts of [${rows}, ${columns}]`, {
    place: `tensor ${tensor.name}`,
  });
}

function cutPair(
  { down, up }: Pick<LowRankPair, "down" | "up">,
  rule: StoredRole["rule"],
  params: object,
): Pick<LowRankPair, "down" | "up"> {
  if (typeof rule === "string" || !rule.rows) return { down, up };
  const part = partOf(rule.rows, params, rule.name);
  return rule.axis === 1
    ? { down: sliceTensor(down, { axis: 1, ...part }), up }
    : { down, up: sliceTensor(up, { axis: 0, ...part }) };
}
