// Finds what adapters change in a model, by role. An adapter speaks of the file's tensors; a role may be a part of
// one (a fused projection), and then the rows of B, or the columns of A, are cut as the tensor's are. What
// nothing asked for at the end is a module that the model does not have or that cannot be adapted: an error,
// because an adapter that is applied in part is another model.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Value } from "../../graph/graph.ts";
import type { AdapterInputs, AdapterTerm } from "../blocks/adapted.ts";
import { partOf, type StoredRole, type TensorLookup } from "../tensors.ts";
import { padTensor } from "../derived_tensors/pad.ts";
import { sliceTensor } from "../../formats/tensor_slice.ts";
import { stackTensors } from "../derived_tensors/stack.ts";
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

  function terms(stored: StoredRole, shape: readonly number[], isTable: boolean): AdapterTerm[] {
    return adapters.flatMap((adapter, index) => {
      const found = stored.tensors.flatMap((tensor) => {
        const name = pairName(adapter, tensor.name);
        const pair = adapter.pairs.get(name ?? "");
        if (name === undefined || !pair || pair.isTable !== isTable) return [];
        checkShape(adapter, pair, { ...stored, tensors: [tensor] });
        return [{ name, pair }];
      });
      if (found.length === 0) return [];
      for (const { name } of found) used[index]!.add(name);
      const pair = together(adapter, found.map(({ pair }) => pair), stored);
      return [{ adapter: index, factor: pair.factor, ...cut(pair, stored, { params, shape }) }];
    });
  }

  return {
    over: (tensors, input) => ({
      scales: adapters.map(({ scale }, index) => input?.(index) ?? scale),
      terms(role, shape, layer) {
        const stored = tensors.stored(role, layer);
        return stored ? terms(stored, shape, role === "embedding") : [];
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

/** The pair of a role; of one that is stacked, that of all its matrices. */
function together(
  { file }: Adapter,
  pairs: readonly LowRankPair[],
  { tensors }: StoredRole,
): LowRankPair {
  const [first] = pairs as readonly [LowRankPair, ...LowRankPair[]];
  if (tensors.length === 1) return first;
  const place = `tensor ${first.down.name}`;
  if (pairs.length < tensors.length) {
    throw new UnsupportedError(
      `adapts ${pairs.length} of ${tensors.length} experts, and only all or none is built`,
      { file: file.name, place },
    );
  }
  if (pairs.some(({ factor }) => factor !== first.factor)) {
    throw new UnsupportedError("weighs the experts of a layer differently, which is not built", {
      file: file.name,
      place,
    });
  }
  return {
    ...first,
    down: stackTensors(pairs.map(({ down }) => down)),
    up: stackTensors(pairs.map(({ up }) => up)),
  };
}

function isTransposed({ rule }: StoredRole): boolean {
  return typeof rule !== "string" && rule.transposed === true;
}

function checkShape(
  { file }: Adapter,
  { down, up, isTable }: LowRankPair,
  stored: StoredRole,
): void {
  const [{ name, shape }] = stored.tensors as readonly [TensorInfo];
  const outer = shape.slice(0, -2), inner = shape.slice(-2);
  const [rows, columns] = isTransposed(stored) ? inner.toReversed() : inner;
  const rank = up.shape.at(-1);
  const halves = isTable
    ? [[down, [rows, rank]], [up, [columns, rank]]] as const
    : [[down, [...outer, rank, columns]], [up, [...outer, rows, rank]]] as const;
  for (const [half, wanted] of halves) {
    if (half.shape.join() === wanted.join()) continue;
    throw new FormatError(`has shape [${half.shape}] where [${wanted}] is needed for ${name}`, {
      file: file.name,
      place: `tensor ${half.name}`,
      remedy: "Give the adapter with the model that it was made for",
    });
  }
}

type Matrices = Pick<LowRankPair, "down" | "up">;

function cut(
  { down, up, isTable }: LowRankPair,
  { rule, tensors }: StoredRole,
  { params, shape }: { params: object; shape: readonly number[] },
): Matrices {
  const made = cutPair({ down, up }, rule, params);
  const [rows, columns] = shape.slice(-2);
  const fits = isTable
    ? made.down.shape[0] === rows && made.up.shape[0] === columns
    : made.down.shape.at(-1) === columns && made.up.shape.at(-2) === rows;
  if (fits) return made.down.shape.length === 3 ? padRank(made) : made;
  throw new FormatError(`cannot be adapted in parts of [${shape}]`, {
    place: `tensor ${tensors[0]!.name}`,
  });
}

/** Stacks are multiplied by rows in eights. */
const RANK_STEP = 8;

function padRank({ down, up }: Matrices): Matrices {
  const rank = Math.ceil(up.shape[2]! / RANK_STEP) * RANK_STEP;
  return {
    down: padTensor(down, { axis: 1, size: rank }),
    up: padTensor(up, { axis: 2, size: rank }),
  };
}

function cutPair({ down, up }: Matrices, rule: StoredRole["rule"], params: object): Matrices {
  if (typeof rule === "string" || !rule.rows) return { down, up };
  const part = partOf(rule.rows, { params, name: rule.name });
  // Axes before the last two count matrices; the last but one is that of rows.
  const axis = rule.axis ?? 0, last = down.shape.length - 1;
  return axis === last
    ? { down: sliceTensor(down, { axis, ...part }), up }
    : { down, up: sliceTensor(up, { axis, ...part }) };
}
