// The one place that chooses kernels, for every backend and every front end: of those that a device has for
// an op, the first that takes the node and is not excluded. Callers never ask for features of a device. The tables come
// with the devices, so that a script loads the kernels of those that it uses.

import { product } from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { NodeDraft } from "../plan/passes/pass.ts";

/** Which kernels may be taken. */
export interface KernelWish {
  /**
   * By name of a node, the kernel to take (tests, doctor). `prepare` throws an UnsupportedError for a node for
   * which its `when` does not hold.
   */
  readonly forceKernels?: Readonly<Record<string, string>>;
  /** Names of kernels that must not be taken, because they failed the self-test. */
  readonly excludeKernels?: ReadonlySet<string> | undefined;
  /** Whether products of floats and attention may round what they multiply to float16; default false. */
  readonly roundsToHalves?: boolean | undefined;
  /** By kind of node (`tuningKey`), the kernel to take among those that take it (tuning/table.ts). */
  readonly preferKernels?: Readonly<Record<string, string>> | undefined;
}

/** Kernels by op, best first. */
export type KernelTable<Kernel extends { readonly name: string } = { readonly name: string }> =
  Readonly<Record<string, readonly Kernel[]>>;

/** Names of an op's kernels, best first. */
export function kernelNames(kernels: KernelTable, op: string): string[] {
  return (kernels[op] ?? []).map(({ name }) => name);
}

/** Whether an op has a kernel, for whatever nodes. */
export function hasKernel(
  kernels: KernelTable,
  op: string,
  { excludeKernels }: KernelWish = {},
): boolean {
  return kernelNames(kernels, op).some((name) => !excludeKernels?.has(name));
}

interface Chooser<Context> {
  readonly name: string;
  when(context: Context): boolean;
}

/** The kernel that runs a node; undefined: none does. */
export function chooseKernel<Context extends { readonly node: Node }, K extends Chooser<Context>>(
  kernels: KernelTable<K>,
  context: Context,
  { forceKernels, excludeKernels, preferKernels }: KernelWish = {},
): K | undefined {
  const { op, name } = context.node;
  const forced = forceKernels?.[name];
  const suits = (candidate: K) =>
    (forced === undefined || candidate.name === forced) &&
    !excludeKernels?.has(candidate.name) && candidate.when(context);
  if (!preferKernels) return kernels[op]?.find(suits);
  const able = kernels[op]?.filter(suits) ?? [];
  const preferred = able.length > 1 ? preferKernels[tuningKey(context.node, able)] : undefined;
  return able.find(({ name }) => name === preferred) ?? able[0];
}

/**
 * The kind of a node for who has measured kernels: those that take it, and how large its result and its largest
 * constant or weight are, in powers of four.
 */
export function tuningKey(
  { inputs, outputs }: Node,
  able: readonly { readonly name: string }[],
): string {
  const known = inputs.filter((value) => value?.role === "weight" || value?.role === "constant");
  const size = ({ shape }: Value) => {
    const count = product(shape);
    return typeof count === "number" ? Math.floor(Math.log2(Math.max(1, count)) / 2) : "any";
  };
  const held = known.map((value) => size(value!)).reduce(
    (most, own) =>
      typeof own === "number" && typeof most === "number" ? Math.max(most, own) : "any",
    0 as number | "any",
  );
  return `${able.map(({ name }) => name).join("|")} ${size(outputs[0]!)} ${held}`;
}

/** What passes ask before they make something. */
export interface KernelAnswers {
  /** Whether an op has a kernel, for whatever nodes. */
  hasKernel(op: string): boolean;
  /** Whether there is a kernel for a node that a pass would make. */
  takes(draft: NodeDraft): boolean;
}

/** Answers from a table, for devices of a kind; `least` is what every one of them can do. */
export function answersOf<Context extends { readonly node: Node }>(
  kernels: KernelTable<Chooser<Context>>,
  least: Omit<Context, "node">,
  wish: KernelWish = {},
): KernelAnswers {
  return {
    hasKernel: (op) => hasKernel(kernels, op, wish),
    takes(draft) {
      const node: Node = { id: -1, name: "", ...draft };
      return chooseKernel(kernels, { ...least, node } as Context, wish) !== undefined;
    },
  };
}
