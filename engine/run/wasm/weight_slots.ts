// Slots in WASM memory that the weights of a kind take turns in. A slot knows what it holds, so a step that fails half-way
// leaves nothing in disorder.

import type { Pieces, PieceSource } from "../../../wasm/load_pieces.ts";
import type { Machine } from "../../../wasm/machine.ts";
import { type Packed, packedAt, packedBytes, placeWeight } from "../../../wasm/place_weight.ts";
import type { Value } from "../../graph/graph.ts";
import { matrixSize } from "../plan_weights.ts";
import { fileBytesOf, unreadable } from "../streaming/files.ts";
import type { SlotKind } from "../streaming/slots.ts";
import { FilledPlaces } from "./filled_places.ts";

interface Line {
  readonly value: Value;
  readonly slot: number;
  /** What comes into the slot behind it. */
  next: Value;
  pieces: readonly number[];
}

/** The slots of a plan. */
export class WeightSlots {
  /** By value id. */
  readonly matrices: ReadonlyMap<number, Packed>;
  /** A source for each weight. */
  readonly sources: readonly PieceSource[];
  readonly places: FilledPlaces;
  readonly #lines = new Map<number, Line>();
  readonly #holders: (Value | undefined)[] = [];

  constructor(
    machine: Machine,
    { kinds, rounded }: {
      readonly kinds: readonly SlotKind[];
      readonly rounded: ReadonlySet<number>;
    },
  ) {
    const matrices = new Map<number, Packed>(), sources: PieceSource[] = [];
    this.places = new FilledPlaces(machine, kinds.reduce((sum, { slots }) => sum + slots, 0));
    for (const kind of kinds) {
      const first = this.#holders.length, own = placesOf(machine, kind, rounded);
      this.#holders.push(...own.map(() => undefined));
      kind.weights.forEach((value, i) => {
        const slot = first + i % own.length, isRounded = rounded.has(value.id);
        const place = packedAt(own[i % own.length]!.address, {
          ...shapeOf(value),
          rounded: isRounded,
        });
        matrices.set(value.id, place);
        this.#lines.set(value.id, { value, slot, next: value, pieces: [] });
        sources.push({
          ...{ bytes: fileBytesOf(value), shape: shapeOf(value), rounded: isRounded, place },
          ...this.places.wordsOf(slot),
        });
      });
    }
    this.matrices = matrices;
    this.sources = sources;
  }

  /**
   * Learns of the pieces of the sources, which are the first of all, and of the order of use.
   *
   * @returns The weights that are the first in their slots.
   */
  connect(pieces: Pieces, sequence: readonly Value[]): readonly Value[] {
    [...this.#lines.values()].forEach((line, i) => line.pieces = pieces.of[i]!);
    const turns = Map.groupBy(sequence, ({ id }) => this.#lines.get(id)!.slot);
    for (const turn of turns.values()) {
      turn.forEach((value, i) => this.#lines.get(value.id)!.next = turn[(i + 1) % turn.length]!);
    }
    const first = new Set([...turns.values()].map(([value]) => value!));
    return sequence.filter((value) => first.has(value));
  }

  has(value: Value): boolean {
    return this.#lines.has(value.id);
  }

  /** Begins to load a weight into its slot, which nobody reads any more. */
  push(value: Value): void {
    const { slot, pieces } = this.#lines.get(value.id)!;
    this.#holders[slot] = value;
    this.places.push(slot, pieces);
  }

  /** Waits for a weight. @throws As {@linkcode unreadable}. */
  need(value: Value): void {
    const { slot, pieces } = this.#lines.get(value.id)!;
    this.places.settle(slot);
    if (this.#holders[slot] !== value) {
      this.push(value);
      this.places.settle(slot);
    }
    if (this.places.isFilled(slot, pieces)) return;
    this.#holders[slot] = undefined;
    throw unreadable(value);
  }

  /** Gives the slot of a weight to what comes next in it. */
  release(value: Value): void {
    const { next } = this.#lines.get(value.id)!;
    if (next !== value) this.push(next);
  }
}

/** Room for the largest weight of a kind, as often as it has slots. */
function placesOf(
  machine: Machine,
  { weights, slots }: SlotKind,
  rounded: ReadonlySet<number>,
): Packed[] {
  const shapes = weights.map((value) => ({ ...shapeOf(value), rounded: rounded.has(value.id) }));
  const sizes = shapes.map((shape) => packedBytes(shape.format, shape));
  const largest = shapes[sizes.indexOf(Math.max(...sizes))]!;
  // Tables of other formats' points come into memory with a place of theirs.
  for (const { format, columns } of new Map(shapes.map((one) => [one.format, one])).values()) {
    machine.release(placeWeight(machine, { source: { format, rows: 1, columns } }).address);
  }
  return Array.from(
    { length: slots },
    () => placeWeight(machine, { source: largest, rounded: largest.rounded }),
  );
}

function shapeOf(value: Value): { format: string; rows: number; columns: number } {
  const [rows, columns] = matrixSize(value);
  return { format: value.tensor!.format, rows, columns };
}
