// DisposableStack (ECMAScript 2026) for runtimes without it, as far as the engine uses it.

/** What is disposed of together, the last one first. */
export class DisposableStack implements Disposable {
  #resources: Disposable[] = [];

  use<T extends Disposable | null | undefined>(resource: T): T {
    if (resource) this.#resources.push(resource);
    return resource;
  }

  defer(action: () => void): void {
    this.#resources.push({ [Symbol.dispose]: action });
  }

  move(): DisposableStack {
    const other = new DisposableStack();
    [other.#resources, this.#resources] = [this.#resources, []];
    return other;
  }

  dispose(): void {
    for (let one = this.#resources.pop(); one; one = this.#resources.pop()) one[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
