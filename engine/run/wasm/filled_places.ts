// Places in WASM memory that loaders fill (wasm/loaders.ts): how many pieces of a place were handed over, and how many
// are there. Slots of layers and caches of experts are such places.

import type { Loaders } from "../../../wasm/loaders.ts";
import type { Pieces, PieceSource } from "../../../wasm/load_pieces.ts";
import type { Machine } from "../../../wasm/machine.ts";
import { DeviceError } from "../../errors.ts";

/** Places, by number. */
export class FilledPlaces {
  readonly #machine: Machine;
  /** Address of two words a place: pieces that are there, and what of them could not be read or used. */
  readonly #words: number;
  /** Pieces handed over. */
  readonly #pushed: Uint32Array;
  #pieces: Pieces | undefined;
  #loaders: Loaders | undefined;
  #waitedMs = 0;

  constructor(machine: Machine, count: number) {
    this.#machine = machine;
    this.#words = machine.allocate(8 * count);
    machine.u32(this.#words, 2 * count).fill(0);
    this.#pushed = new Uint32Array(count);
  }

  /** Milliseconds that were waited since the last call. */
  takeWaitedMs(): number {
    const waited = this.#waitedMs;
    this.#waitedMs = 0;
    return waited;
  }

  /** Where pieces of a place say that they are there, or not. */
  wordsOf(place: number): Pick<PieceSource, "done" | "bad"> {
    return { done: this.#words + 8 * place, bad: this.#words + 8 * place + 4 };
  }

  connect(pieces: Pieces, loaders: Loaders): void {
    this.#pieces = pieces;
    this.#loaders = loaders;
  }

  /** Hands over pieces of a place; `urgent`: before others. */
  push(place: number, pieces: readonly number[], urgent = false): void {
    for (const piece of pieces) this.#loaders!.push(piece, urgent);
    this.#pushed[place]! += pieces.length;
  }

  /** Waits until all that was handed over is there. */
  settle(place: number): void {
    const count = this.#pushed[place]!, word = (this.#words >>> 2) + 2 * place;
    if (this.#machine.u32(4 * word, 1)[0] === count) return;
    const begin = performance.now();
    try {
      this.#loaders!.wait(word, count);
    } catch (cause) {
      throw new DeviceError((cause as Error).message, { remedy: "Load the model again", cause });
    }
    this.#waitedMs += performance.now() - begin;
  }

  /**
   * Whether the pieces of a place are right, once they are there. What a thread could not read is tried here: others may
   * not read all that this one may.
   */
  isFilled(place: number, pieces: readonly number[]): boolean {
    const bad = this.#machine.u32(this.#words + 8 * place + 4, 1);
    if (bad[0] === 0) return true;
    bad[0] = 0;
    this.#machine.readFilesBy(this.#pieces!.read);
    try {
      return pieces.every((piece) => this.#machine.exports.packAlone!(piece, 0) === 0);
    } finally {
      this.#machine.readFilesBy(undefined);
    }
  }
}
