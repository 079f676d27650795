// What streaming takes, by a clock that nobody has to wait for (spec LF-9): loads in the order of use, one after the other,
// each into its slot as soon as the slot's last user is done; products in order, each when its weights are there. Time
// beside the products is spread evenly over them. Figures are those of a step in the steady state.

/** A product and its weights. */
export interface TimedProduct {
  /** Weights of one kind share slots. */
  readonly kind: string;
  /** Seconds of loading; 0 for what stays in memory. */
  readonly load: number;
  /** Seconds of computing, with what else is computed before the next product. */
  readonly compute: number;
}

/** What a step takes. */
export interface StreamTimes {
  /** Seconds a step. */
  readonly seconds: number;
  /** Seconds of loading in it. */
  readonly load: number;
  /** The part of loading during which something was computed. */
  readonly hidden: number;
}

/** Steps until nothing of the start is left, and those that are measured. */
const WARM = 20, MEASURED = 20;

/**
 * Runs the clock.
 *
 * @param depth Layers in memory at once; 0: a product's weights are loaded when it is its turn.
 */
export function streamTimes(
  products: readonly TimedProduct[],
  depth: 0 | 1 | 2,
): StreamTimes {
  const slotFree = new Map<string, number[]>();
  let loader = 0, clock = 0, waited = 0, warm = 0;
  for (let step = 0; step < WARM + MEASURED; step++) {
    if (step === WARM) [warm, waited] = [clock, 0];
    for (const { kind, load, compute } of products) {
      if (load > 0) {
        const ends = slotFree.get(kind) ?? Array.from({ length: Math.max(1, depth) }, () => 0);
        slotFree.set(kind, ends);
        const free = depth === 0 ? clock : ends.shift()!;
        loader = Math.max(loader, free) + load;
        if (loader > clock) waited += loader - clock;
        clock = Math.max(clock, loader);
      }
      clock += compute;
      if (load > 0 && depth > 0) slotFree.get(kind)!.push(clock);
    }
  }
  const load = products.reduce((sum, { load }) => sum + load, 0);
  return {
    seconds: (clock - warm) / MEASURED,
    load,
    hidden: load === 0 ? 1 : Math.max(0, 1 - waited / MEASURED / load),
  };
}
