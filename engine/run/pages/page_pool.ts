// The pages of a group: which are free, and how many hold each of the others. A slot holds a page by an entry of its
// table, and what is kept of earlier texts holds one, too. A page that one alone holds may be written; it is free when
// nobody does.

/** Pages 0..count-1. */
export class PagePool {
  readonly count: number;
  readonly #holders: Int32Array;
  /** The lowest is taken first, so that texts lie one page behind the other as long as there is room. */
  readonly #free: number[];

  constructor(count: number) {
    this.count = count;
    this.#holders = new Int32Array(count);
    this.#free = Array.from({ length: count }, (_, i) => count - 1 - i);
  }

  /** Pages that nobody holds. */
  get free(): number {
    return this.#free.length;
  }

  /** How many hold a page. */
  holders(page: number): number {
    return this.#holders[page]!;
  }

  /** A free page, now held. @throws {RangeError} If there is none. */
  take(): number {
    const page = this.#free.pop();
    if (page === undefined) throw new RangeError(`Cannot take a page: all ${this.count} are held`);
    this.#holders[page] = 1;
    return page;
  }

  /** Holds a page once more. */
  hold(page: number): number {
    this.#holders[page]!++;
    return page;
  }

  /** Holds it once less. */
  release(page: number): void {
    if (--this.#holders[page]! === 0) this.#free.push(page);
  }
}
