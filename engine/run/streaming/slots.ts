// Which weights of a plan come and go (spec LF-8): those of which every layer has one of the same shape. They share the
// slots of their kind, one for each layer that is in memory at once, in the order in which layers follow each other;
// everything else, embeddings and the head among it, stays. Where there is room for more than that, some layers stay
// too, evenly spread, so that the others load while they compute.
//
// Stacks of experts are apart: of those only what a row is sent to is loaded, into a cache that all layers share
// (wasm/expert_cache.ts).

import type { Node, Value } from "../../graph/graph.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { readsPacked } from "../plan_weights.ts";

/** How weights are streamed. */
export interface StreamOptions {
  /** Layers whose weights are in memory at once: 1 as in the paper [LF-9], or 2. */
  readonly depth: 1 | 2;
  /** Threads that load, 0 to 16: with 0, nothing is loaded while something computes. */
  readonly loaders?: number | undefined;
  /** Reads no faster than this. */
  readonly bytesPerSecond?: number | undefined;
  /** Bytes for experts that were chosen lately; default: those of one token in all layers. */
  readonly expertCacheBytes?: number | undefined;
}

/** Weights that share slots. */
export interface SlotKind {
  /** Name of the nodes that read them, with # for the layer. */
  readonly name: string;
  /** Those that come and go, in order of use. */
  readonly weights: readonly Value[];
  /** How many are in memory at once. */
  readonly slots: number;
  /** Bytes of a slot: of the largest of them. */
  readonly slotBytes: number;
}

/** Stacks of experts that share a cache: matrices of one size. */
export interface ExpertKind {
  readonly name: string;
  /** f32[experts, rows, columns], by layer. */
  readonly stacks: readonly Value[];
  /** Experts in memory at once, at least as many as a row chooses. */
  readonly slots: number;
  readonly slotBytes: number;
}

/**
 * Streamed weights in bytes.
 * @category Models
 */
export interface StreamedBytes {
  /** Slots that layers share, of the bytes of weights in memory. */
  readonly slots: number;
  /** Caches of experts, of the same. */
  readonly experts: number;
  /** What every step reads of the model's files. */
  readonly stepBytes: number;
  /** What it reads of experts for one row at most. */
  readonly expertBytes: number;
  /** What a device takes that computes the products alone, as LlamaF's does [LF-8]: slots, classifier, results of a row. */
  readonly productDevice: number;
}

/** What of a plan's weights comes and goes. */
export interface StreamPlan {
  readonly kinds: readonly SlotKind[];
  readonly experts: readonly ExpertKind[];
  /** Bytes of all slots, and of the experts' caches. */
  readonly slotBytes: number;
  readonly cacheBytes: number;
  /** Bytes of files that every step reads, experts left out, and those of the experts that one row chooses. */
  readonly stepBytes: number;
  readonly expertBytes: number;
}

/** What has to be known of weights. */
export interface StreamFacts extends StreamOptions {
  /** Bytes of a weight in memory. */
  readonly bytesOf: (value: Value) => number;
  /** Whether it can be loaded beside the rest. */
  readonly loadsAside: (value: Value) => boolean;
  /** What weights of one slot have to have in common beside their shapes; default: nothing. */
  readonly formOf?: (value: Value) => string;
  /** Bytes that all weights may take; absent: as few as possible. */
  readonly room?: number | undefined;
}

/** Weights that every layer has one of. */
interface Family {
  readonly name: string;
  readonly weights: Value[];
  /** Most of them that are read in one wave. */
  readonly together: number;
  readonly bytes: number;
}

/** Plans slots and caches. */
export function planStream(plan: Plan, facts: StreamFacts): StreamPlan {
  const { families, stacks } = familiesOf(plan, facts);
  const moving = families.filter(({ weights, together }) =>
    weights.length > facts.depth * together
  );
  const experts = expertKinds(stacks, facts);
  const stay = pinnedLayers(moving, { facts, spare: spareOf(plan, { moving, experts, facts }) });
  const kinds = moving.flatMap((family): SlotKind[] => {
    const { name, together, bytes } = family;
    const weights = withoutSpread(family.weights, pinnedOf(family, stay));
    const slots = Math.min(weights.length, facts.depth * together);
    return weights.length > slots ? [{ name, weights, slots, slotBytes: bytes }] : [];
  });
  const sum = <T>(all: readonly T[], of: (one: T) => number) =>
    all.reduce((total, one) => total + of(one), 0);
  return {
    kinds,
    experts: experts.map(({ chosen: _, ...kind }) => kind),
    slotBytes: sum(kinds, ({ slots, slotBytes }) => slots * slotBytes),
    cacheBytes: sum(experts, ({ slots, slotBytes }) => slots * slotBytes),
    stepBytes: sum(kinds, ({ weights }) => sum(weights, ({ tensor }) => tensor!.byteLength)),
    expertBytes: sum(
      experts,
      ({ stacks, chosen }) =>
        sum(stacks, ({ tensor, shape }) => chosen * tensor!.byteLength / (shape[0] as number)),
    ),
  };
}

/** The bytes of what is streamed of a plan. */
export function streamedBytes(plan: Plan, streamed: StreamPlan): StreamedBytes {
  const { slotBytes: slots, cacheBytes: experts, stepBytes, expertBytes } = streamed;
  const productDevice = productDeviceBytes(plan, streamed);
  return { slots, experts, stepBytes, expertBytes, productDevice };
}

interface Stack {
  readonly node: Node;
  readonly value: Value;
}

function familiesOf(
  { steps }: Plan,
  { bytesOf, loadsAside, formOf = () => "" }: StreamFacts,
): { readonly families: Family[]; readonly stacks: Stack[] } {
  const uses = new Map<Value, number>();
  for (const { node: { inputs } } of steps) {
    for (const value of inputs) {
      if (value?.role === "weight") uses.set(value, (uses.get(value) ?? 0) + 1);
    }
  }
  const found = new Map<string, { weights: Value[]; waves: number[]; bytes: number }>();
  const stacks: Stack[] = [];
  for (const { node, wave } of steps) {
    node.inputs.forEach((value, index) => {
      if (value?.role !== "weight" || uses.get(value) !== 1) return;
      if (!readsPacked(node, index) || !loadsAside(value)) return;
      if (node.op === "expert_matmul") return void stacks.push({ node, value });
      if (value.shape.length !== 2) return;
      const key = `${pattern(node.name)}.${index} ${value.shape.join("×")} ${formOf(value)}`;
      const family = found.get(key) ?? { weights: [], waves: [], bytes: 0 };
      found.set(key, family);
      family.weights.push(value);
      family.waves.push(wave);
      family.bytes = Math.max(family.bytes, bytesOf(value));
    });
  }
  const families = [...found].map(([key, { weights, waves, bytes }]) => ({
    ...{ name: key.split(" ")[0]!, weights, bytes },
    together: Math.max(
      ...[...Map.groupBy(waves, (wave) => wave).values()].map((all) => all.length),
    ),
  }));
  return { families, stacks };
}

/** The name of a node without the number of its layer. */
function pattern(name: string): string {
  return name.replace(/\d+/g, "#");
}

/** Stacks by size and format of an expert: what fits one place fits all places of a cache. */
function expertKinds(
  stacks: readonly Stack[],
  { bytesOf, expertCacheBytes }: StreamFacts,
): (ExpertKind & { readonly chosen: number })[] {
  const groups = Map.groupBy(
    stacks,
    ({ value: { shape, tensor } }) => [shape.slice(1).join("×"), tensor!.format].join(" "),
  );
  const kinds = [...groups].map(([name, all]) => {
    const [{ node, value }] = all as [Stack];
    const count = value.shape[0] as number;
    const chosen = node.outputs[0]!.shape[1] as number;
    const bytes = Math.ceil(bytesOf(value) / count);
    const total = all.reduce((sum, { value: { shape } }) => sum + (shape[0] as number), 0);
    return { name, stacks: all.map(({ value }) => value), chosen, bytes, total };
  });
  const usual = kinds.reduce(
    (sum, { bytes, chosen, stacks }) => sum + bytes * chosen * stacks.length,
    0,
  );
  const share = expertCacheBytes === undefined ? 1 : expertCacheBytes / Math.max(1, usual);
  return kinds.map(({ name, stacks, chosen, bytes, total }) => ({
    ...{ name, stacks, chosen, slotBytes: bytes },
    slots: Math.min(total, Math.max(chosen, Math.floor(share * chosen * stacks.length))),
  }));
}

/** Bytes that are left for layers that stay, when slots, caches and what does not move have theirs. */
function spareOf(
  plan: Plan,
  { moving, experts, facts: { room, depth, bytesOf } }: {
    readonly moving: readonly Family[];
    readonly experts: readonly ExpertKind[];
    readonly facts: StreamFacts;
  },
): number {
  if (room === undefined) return 0;
  const moves = new Set([
    ...moving.flatMap(({ weights }) => weights),
    ...experts.flatMap(({ stacks }) => stacks),
  ]);
  const all = new Set(
    plan.steps.flatMap(({ node: { inputs } }) =>
      inputs.filter((value) => value?.role === "weight")
    ) as Value[],
  );
  const still = [...all.difference(moves)].reduce((sum, value) => sum + bytesOf(value), 0);
  const slots = moving.reduce((sum, { bytes, together }) => sum + bytes * together * depth, 0);
  const caches = experts.reduce((sum, { slots, slotBytes }) => sum + slots * slotBytes, 0);
  return room - still - slots - caches;
}

/** How many layers of the deepest family stay. */
function pinnedLayers(
  moving: readonly Family[],
  { facts: { depth }, spare }: { readonly facts: StreamFacts; readonly spare: number },
): number {
  const layers = Math.max(0, ...moving.map(({ weights, together }) => weights.length / together));
  const fits = (stay: number) => {
    const bytes = moving.reduce(
      (sum, family) => sum + pinnedOf(family, stay / layers) * family.bytes,
      0,
    );
    return bytes <= spare;
  };
  let stay = 0;
  while (stay + depth < layers && fits(stay + 1)) stay++;
  return layers === 0 ? 0 : stay / layers;
}

function pinnedOf({ weights }: Family, part: number): number {
  return Math.floor(part * weights.length);
}

/** All but `count` of them, which are spread evenly. */
function withoutSpread(weights: readonly Value[], count: number): Value[] {
  const moving = weights.length - count;
  return weights.filter((_, i) =>
    Math.floor((i + 1) * moving / weights.length) > Math.floor(i * moving / weights.length)
  );
}

/**
 * Bytes that the device of the products takes in the split of LlamaF [LF-8]: the slots as they lie in the file, what
 * stays of the matrices that are multiplied (the classifier), and float32 results of one row.
 */
function productDeviceBytes(plan: Plan, { kinds }: StreamPlan): number {
  const products = plan.steps.filter(({ node: { op } }) => op === "matmul");
  const outputs = new Map<string, number>();
  let still = 0;
  const moving = new Set(kinds.flatMap(({ weights }) => weights.map(({ id }) => id)));
  for (const { node } of products) {
    const weight = node.inputs[1]!;
    const rows = elementCount((weight.shape as readonly number[]).slice(0, -1));
    outputs.set(pattern(node.name), 4 * rows);
    if (!moving.has(weight.id)) still += weight.tensor?.byteLength ?? 0;
  }
  const slots = kinds.reduce(
    (sum, { weights, slots }) =>
      sum + slots * Math.max(...weights.map(({ tensor }) => tensor!.byteLength)),
    0,
  );
  return slots + still + outputs.values().reduce((sum, bytes) => sum + bytes, 0);
}
