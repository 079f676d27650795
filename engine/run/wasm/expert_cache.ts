// Experts in WASM memory, of layers that do not hold all of theirs: a cache of those that were chosen lately, which the
// layers share. The place that was used least lately is taken first.

import type { Pieces, PieceSource } from "../../../wasm/load_pieces.ts";
import type { Machine } from "../../../wasm/machine.ts";
import { type Packed, placeWeight } from "../../../wasm/place_weight.ts";
import { TILE_ROWS } from "../../../wasm/weight_layout.ts";
import type { Value } from "../../graph/graph.ts";
import { fileBytesOf, unreadable } from "../streaming/files.ts";
import type { ExpertKind } from "../streaming/slots.ts";
import { FilledPlaces } from "./filled_places.ts";

/** Experts of one size. */
export class ExpertCache {
  readonly kind: ExpertKind;
  /** Stands for every stack. */
  readonly matrix: Packed;
  /** Address of f32[slots, rows], biases by place; 0 where there are none. */
  readonly bias: number;
  readonly places: FilledPlaces;
  /** A source for each place. */
  readonly sources: readonly PieceSource[];
  readonly #machine: Machine;
  /** Places by stack and expert, what was used last behind. */
  readonly #held = new Map<number, number>();
  #pieces: Pieces | undefined;
  #first = 0;
  #hits = 0;
  #misses = 0;

  constructor(
    machine: Machine,
    { kind, hasBias }: { readonly kind: ExpertKind; readonly hasBias: boolean },
  ) {
    const { slots } = kind, [value] = kind.stacks as [Value];
    const [, rows, columns] = value.shape as [number, number, number];
    const { format } = value.tensor!;
    this.kind = kind;
    this.#machine = machine;
    this.matrix = placeWeight(machine, { source: { format, rows: slots * rows, columns } });
    this.places = new FilledPlaces(machine, slots);
    this.bias = hasBias ? machine.allocate(4 * slots * rows) : 0;
    const { address, tileBytes } = this.matrix;
    this.sources = Array.from({ length: slots }, (_, place) => ({
      // Which of them is said when an expert comes.
      ...{ bytes: fileBytesOf(value), shape: { format, rows, columns }, rounded: false },
      place: { ...this.matrix, address: address + place * rows / TILE_ROWS * tileBytes },
      ...this.places.wordsOf(place),
    }));
  }

  /** @param first Index of the cache's first source among those of the pieces. */
  connect(pieces: Pieces, first: number): void {
    this.#pieces = pieces;
    this.#first = first;
  }

  /** Experts that were there when they were asked for, and that were not, since the last call. */
  takeCounts(): { readonly hits: number; readonly misses: number } {
    const counts = { hits: this.#hits, misses: this.#misses };
    this.#hits = this.#misses = 0;
    return counts;
  }

  /** Sees to it that experts of a stack, no more than there are places, are there or on their way. */
  request(stack: number, wanted: readonly number[], biases: Float32Array | undefined): void {
    const missing: number[] = [];
    for (const expert of wanted) {
      const key = this.#keyOf(stack, expert), place = this.#held.get(key);
      if (place === undefined) missing.push(expert);
      else {
        this.#held.delete(key);
        this.#held.set(key, place);
      }
    }
    this.#hits += wanted.length - missing.length;
    this.#misses += missing.length;
    for (const expert of missing) this.#load(stack, expert, biases);
  }

  #load(stack: number, expert: number, biases: Float32Array | undefined): void {
    const { tensor, shape } = this.kind.stacks[stack]!;
    const [count, rows] = shape as [number, number];
    const place = this.#freePlace();
    this.places.settle(place);
    const bytes = fileBytesOf(this.kind.stacks[stack]!);
    this.#pieces!.move(this.#first + place, {
      ...bytes,
      offset: bytes.offset + expert * (tensor!.byteLength / count),
    });
    this.#held.set(this.#keyOf(stack, expert), place);
    this.places.push(place, this.#piecesOf(place), true);
    if (!biases) return;
    const own = biases.subarray(rows * expert, rows * (expert + 1));
    this.#machine.f32(this.bias + 4 * rows * place, rows).set(own);
  }

  #freePlace(): number {
    if (this.#held.size < this.kind.slots) return this.#held.size;
    const [oldest, place] = this.#held.entries().next().value!;
    this.#held.delete(oldest);
    return place;
  }

  /** The place of an expert that was asked for, once it is there. @throws As {@linkcode unreadable}. */
  placeOf(stack: number, expert: number): number {
    const place = this.#held.get(this.#keyOf(stack, expert))!;
    this.places.settle(place);
    if (this.places.isFilled(place, this.#piecesOf(place))) return place;
    // Nothing is known of what else was loaded since the file changed.
    this.#held.clear();
    throw unreadable(this.kind.stacks[stack]!);
  }

  #keyOf(stack: number, expert: number): number {
    return stack * (this.kind.stacks[stack]!.shape[0] as number) + expert;
  }

  #piecesOf(place: number): readonly number[] {
    return this.#pieces!.of[this.#first + place]!;
  }
}
