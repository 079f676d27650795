// The pages of a group: which are free, and how many hold each of the others. A slot holds a page by an entry of its
// table, and what is kept of earlier texts holds one, too. A page that one alone holds may be written; it is free when
// nobody does.

/** Pages 0..count-1. */
export class PagePool {
  readonly count: number;
  readonly #holders: Int32Array;
  #free: number;

  constructor(count: number) {
    this.count = count;
    this.#holders = new Int32Array(count);
    this.#free = count;
  }

  /** Pages that nobody holds. */
  get free(): number {
    return this.#free;
  }

  /** How many hold a page. */
  holders(page: number): number {
    return this.#holders[page]!;
  }

  /**
   * A free page, now held: the one behind `before` if that is free, so that a text is read in the order of memory; else
   * one with as much room behind it as there is.
   *
   * @throws {RangeError} If there is none.
   */
  take(before: number): number {
    if (this.#free === 0) throw new RangeError(`Cannot take a page: all ${this.count} are held`);
    const page = before >= 0 && this.#holders[before + 1] === 0 ? before + 1 : this.#roomiest();
    this.#holders[page] = 1;
    this.#free--;
    return page;
  }

  /** Holds a page once more. */
  hold(page: number): number {
    this.#holders[page]!++;
    return page;
  }

  /** Holds it once less. */
  release(page: number): void {
    if (--this.#holders[page]! === 0) this.#free++;
  }

  /** The middle of the longest run of free pages: who has those before it may go on, too. */
  #roomiest(): number {
    let start = 0, longest = 0;
    for (let from = 0, to = 0; to <= this.count; to++) {
      if (this.#holders[to] === 0) continue;
      if (to - from > longest) [start, longest] = [from, to - from];
      from = to + 1;
    }
    return start === 0 ? 0 : start + (longest >> 1);
  }
}
