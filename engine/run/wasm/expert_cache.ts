// Experts in WASM memory, of layers that do not hold all of theirs: a cache of those that were chosen lately, which the
// layers share. A node's kernel sees the cache as its stack of matrices, and instead of the numbers of experts those of
// their places; so no kernel knows of it. When a step's choice is known, what is missing is loaded, for the node and for
// those behind it that follow the same choice; rows that choose more experts than there are places take several passes,
// in each of which the items of the others are nobody's. The place that was used least lately is taken first.

import type { Loaders } from "../../../wasm/loaders.ts";
import type { Pieces, PieceSource } from "../../../wasm/load_pieces.ts";
import type { Machine } from "../../../wasm/machine.ts";
import { type Packed, placeWeight } from "../../../wasm/place_weight.ts";
import { TILE_ROWS } from "../../../wasm/weight_layout.ts";
import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type { ExpertKind } from "../streaming/slots.ts";

/** What a stream gives to the caches when it starts. */
export interface CacheParts {
  readonly pieces: Pieces;
  readonly loaders: Loaders;
  /** Index of the caches' first source among those of the pieces. */
  readonly first: number;
  /** Loads a piece on this thread; more than 0 if that failed. */
  loadHere(piece: number): number;
  /** The bytes of a stack. */
  bytesOf(value: Value): PieceSource["bytes"];
  /** What is said of a stack that cannot be read. */
  unreadable(value: Value): Error;
}

/** Caches of all kinds of experts. */
export interface ExpertCaches {
  /** By value id of a stack, the cache that stands for it. */
  readonly matrices: ReadonlyMap<number, Packed>;
  /** A source for each place. */
  readonly sources: readonly PieceSource[];
  connect(parts: CacheParts): void;
  useOf(node: Node): ExpertUse | undefined;
  /** Counts and time since the last call. */
  take(): { readonly hits: number; readonly misses: number; readonly waitedMs: number };
}

/** A node that chooses from a cache. */
export interface ExpertUse {
  /** Where its kernel finds places instead of experts, and biases by place. */
  readonly chosen: number;
  readonly bias: number;
  /** Runs its program once for each pass. */
  run(
    bindings: DimEnv,
    data: { readonly chosen: HostData; readonly bias: HostData | undefined },
    execute: () => void,
  ): void;
}

/** No place. */
const NOWHERE = 0xffffffff;

interface Cache {
  readonly kind: ExpertKind;
  readonly place: Packed;
  /** Places by stack and expert, what was used last behind. */
  readonly places: Map<number, number>;
  /** Address of two words a place, and by place the pieces handed over. */
  readonly words: number;
  readonly pushed: Uint32Array;
  /** Index of its first source. */
  readonly first: number;
  /** Address of f32[slots, rows], 0 where there are no biases. */
  readonly bias: number;
}

interface Member {
  readonly node: Node;
  readonly cache: Cache;
  /** Of its stack in the cache. */
  readonly stack: number;
  /** Whether another has asked for its experts in this step. */
  requested: boolean;
}

/** Reserves caches. */
export function createExpertCaches(
  machine: Machine,
  { plan, kinds }: { readonly plan: Plan; readonly kinds: readonly ExpertKind[] },
): ExpertCaches {
  const sources: PieceSource[] = [], matrices = new Map<number, Packed>();
  const nodes = new Map(plan.steps.map(({ node }) => [node.inputs[1]?.id ?? -1, node]));
  const caches = kinds.map((kind) => createCache(machine, { kind, nodes, sources, matrices }));
  const members = new Map<Node, Member>();
  /** Nodes that follow one choice, in order. */
  const groups = new Map<number, Member[]>();
  for (const { node } of plan.steps) {
    const id = node.inputs[1]?.id ?? -1;
    const cache = caches.find(({ kind }) => kind.stacks.some((stack) => stack.id === id));
    if (!cache || node.op !== "expert_matmul") continue;
    const stack = cache.kind.stacks.findIndex((stack) => stack.id === id);
    const member: Member = { node, cache, stack, requested: false };
    members.set(node, member);
    const choice = rootOf(plan, node.inputs[2]!).id;
    groups.set(choice, [...groups.get(choice) ?? [], member]);
  }
  /** By expert, of nodes that have run once. */
  const biases = new Map<Node, Float32Array>();
  let parts: CacheParts | undefined;
  let hits = 0, misses = 0, waitedMs = 0;

  function settle(cache: Cache, place: number): void {
    const word = (cache.words >>> 2) + 2 * place;
    if (machine.u32(4 * word, 1)[0] === cache.pushed[place]) return;
    const begin = performance.now();
    parts!.loaders.wait(word, cache.pushed[place]!);
    waitedMs += performance.now() - begin;
  }

  function piecesOf(cache: Cache, place: number): readonly number[] {
    return parts!.pieces.of[parts!.first + cache.first + place]!;
  }

  /** Sees to it that experts of a stack are there or on their way. */
  function request({ node, cache, stack }: Member, wanted: readonly number[]): void {
    const { kind, places } = cache, value = kind.stacks[stack]!;
    const count = value.shape[0] as number, missing: number[] = [];
    for (const expert of wanted) {
      const key = stack * count + expert, place = places.get(key);
      if (place === undefined) missing.push(expert);
      else {
        places.delete(key);
        places.set(key, place);
        hits++;
      }
    }
    misses += missing.length;
    for (const expert of missing) {
      const [[oldest, place] = [-1, places.size]] = places.size < kind.slots ? [] : places;
      if (oldest! >= 0) places.delete(oldest!);
      settle(cache, place!);
      const key = stack * count + expert, own = piecesOf(cache, place!);
      const bytes = parts!.bytesOf(value), { tensor } = value;
      parts!.pieces.move(parts!.first + cache.first + place!, {
        ...bytes,
        offset: bytes.offset + expert * (tensor!.byteLength / count),
      });
      places.set(key, place!);
      for (const piece of own) parts!.loaders.push(piece, true);
      cache.pushed[place!]! += own.length;
      copyBias(cache, { node, expert, place: place! });
    }
  }

  function copyBias(
    { bias, kind }: Cache,
    { node, expert, place }: {
      readonly node: Node;
      readonly expert: number;
      readonly place: number;
    },
  ): void {
    const all = biases.get(node);
    if (!all) return;
    const rows = kind.stacks[0]!.shape[1] as number;
    machine.f32(bias + 4 * rows * place, rows).set(
      all.subarray(rows * expert, rows * (expert + 1)),
    );
  }

  /** Waits for an expert. */
  function placeOf({ cache, stack }: Member, expert: number): number {
    const value = cache.kind.stacks[stack]!, key = stack * (value.shape[0] as number) + expert;
    const place = cache.places.get(key)!;
    settle(cache, place);
    const bad = machine.u32(cache.words + 8 * place + 4, 1);
    if (bad[0] === 0) return place;
    bad[0] = 0;
    if (piecesOf(cache, place).reduce((sum, piece) => sum + parts!.loadHere(piece), 0) === 0) {
      return place;
    }
    // Forgotten, so that it is read again when it is asked for again; its place stays the oldest's.
    cache.places.clear();
    throw parts!.unreadable(value);
  }

  function useOf(node: Node): ExpertUse | undefined {
    const member = members.get(node);
    if (!member) return undefined;
    const { cache } = member, choice = node.inputs[2]!;
    const group = groups.get(rootOf(plan, choice).id)!;
    const most = maximumOf(product(choice.shape), plan.limits),
      count = compile(product(choice.shape));
    const address = machine.allocate(4 * most), translated = machine.u32(address, most);
    const distinct: number[] = [], { slots } = cache.kind;
    const places = new Uint32Array(node.inputs[1]!.shape[0] as number);
    return {
      chosen: address,
      bias: cache.bias,
      run(bindings, { chosen, bias }, execute) {
        if (bias) biases.set(node, bias as Float32Array);
        const items = count(bindings);
        distinct.length = 0;
        places.fill(NOWHERE);
        for (let i = 0; i < items; i++) {
          const expert = chosen[i] as number;
          if (places[expert] !== NOWHERE) continue;
          places[expert] = 0;
          distinct.push(expert);
        }
        // What a step that failed has asked for may be gone.
        if (member === group[0]) { for (const one of group) one.requested = false; }
        if (!member.requested) requestAll(group, member, distinct);
        for (let from = 0; from === 0 || from < distinct.length; from += slots) {
          const own = distinct.length > slots ? distinct.slice(from, from + slots) : distinct;
          if (!member.requested) request(member, own);
          places.fill(NOWHERE);
          for (const expert of own) places[expert] = placeOf(member, expert);
          for (let i = 0; i < items; i++) translated[i] = places[chosen[i] as number]!;
          execute();
        }
        member.requested = false;
      },
    };
  }

  /** Asks for the experts of all nodes that follow a choice, where all find room at once. */
  function requestAll(group: readonly Member[], first: Member, wanted: readonly number[]): void {
    const behind = group.slice(group.indexOf(first));
    const fits = caches.every((cache) =>
      behind.filter((member) => member.cache === cache).length * wanted.length <= cache.kind.slots
    );
    // Biases of those behind are known when they have run once.
    const known = behind.every(({ node }) => !node.inputs[3] || biases.has(node));
    if (!fits || !known) return;
    for (const member of behind) {
      request(member, wanted);
      member.requested = true;
    }
  }

  return {
    ...{ matrices, sources, useOf },
    connect: (given) => parts = given,
    take() {
      const taken = { hits, misses, waitedMs };
      hits = misses = waitedMs = 0;
      return taken;
    },
  };
}

function createCache(
  machine: Machine,
  { kind, nodes, sources, matrices }: {
    readonly kind: ExpertKind;
    readonly nodes: ReadonlyMap<number, Node>;
    readonly sources: PieceSource[];
    readonly matrices: Map<number, Packed>;
  },
): Cache {
  const { stacks, slots } = kind, [value] = stacks as [Value];
  const [, rows, columns] = value.shape as [number, number, number];
  const { format } = value.tensor!;
  const place = placeWeight(machine, { source: { format, rows: slots * rows, columns } });
  const words = machine.allocate(8 * slots);
  machine.u32(words, 2 * slots).fill(0);
  for (const { id } of stacks) matrices.set(id, place);
  const hasBias = stacks.some(({ id }) => nodes.get(id)?.inputs[3]);
  const first = sources.length;
  for (let slot = 0; slot < slots; slot++) {
    sources.push({
      // Where its bytes are is said when an expert comes.
      bytes: { file: value.tensor!.source.file!, offset: 0, readInto: () => {} },
      ...{ shape: { format, rows, columns }, rounded: false },
      place: { ...place, address: place.address + slot * rows / TILE_ROWS * place.tileBytes },
      ...{ done: words + 8 * slot, bad: words + 8 * slot + 4 },
    });
  }
  return {
    ...{ kind, place, places: new Map(), words, first },
    pushed: new Uint32Array(slots),
    bias: hasBias ? machine.allocate(4 * slots * rows) : 0,
  };
}
