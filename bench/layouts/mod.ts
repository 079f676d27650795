// `deno task bench layouts`: attention over the cache in the layouts that were considered for it, on WASM, one thread.
//
//   contiguous        [rows, heads, width], the rows of a session one behind the other
//   position-major    [page, rows, heads, width], pages in any order: the worst case of what the engine does, whose pool
//                     gives a text pages that follow each other where it can, which is the same as contiguous
//   head-major        [page, heads, rows, width]
//   MD-13             K [heads, rows, width], V turned: [heads, width, rows], for all rows that a session may have
//
// All compute the same, which is checked, over caches of so many layers that no processor's cache holds them; they take
// turns in every round.

import { type Figure, machineName, median, ratioOf } from "../support/figures.ts";
import { type Attend, compileAttend } from "./kernel.ts";

/** What to measure. */
export interface LayoutsOptions {
  /** Rounds that count. */
  readonly rounds: number;
  readonly contexts: readonly number[];
}

/** Heads of a model. */
interface Heads {
  readonly name: string;
  readonly kvHeads: number;
  /** Query heads for each. */
  readonly group: number;
  readonly width: number;
}

const MODELS: readonly Heads[] = [
  { name: "3 × 64 (SmolLM2 135M)", kvHeads: 3, group: 3, width: 64 },
  { name: "8 × 128 (Llama 8B)", kvHeads: 8, group: 4, width: 128 },
];
const ROWS = [1, 8];
const PAGE = 64;
/** Bytes of a layout's caches of all layers. */
const ALL_LAYERS = 2 ** 26;
/** Where data begins; what is below is the compiler's. */
const BASE = 2 ** 16;

/** Places of keys or values, in bytes. */
interface Place {
  readonly page: number;
  readonly head: number;
  /** From a row to the next, or, of turned values, from a channel to the next. */
  readonly step: number;
  readonly isTurned?: boolean;
}

interface Layout {
  readonly name: string;
  readonly isShuffled: boolean;
  readonly keys: Place;
  readonly values: Place;
}

function layoutsOf({ kvHeads, width }: Heads, capacity: number): Layout[] {
  const bytes = 2 * width, row = kvHeads * bytes;
  const byPosition: Place = { page: PAGE * row, head: bytes, step: row };
  const byHead: Place = { page: PAGE * row, head: PAGE * bytes, step: bytes };
  const whole: Place = { page: PAGE * bytes, head: capacity * bytes, step: bytes };
  const turned: Place = {
    ...{ page: 2 * PAGE, head: capacity * bytes, step: 2 * capacity, isTurned: true },
  };
  return [
    { name: "contiguous", isShuffled: false, keys: byPosition, values: byPosition },
    { name: "position-major", isShuffled: true, keys: byPosition, values: byPosition },
    { name: "head-major", isShuffled: true, keys: byHead, values: byHead },
    { name: "MD-13", isShuffled: false, keys: whole, values: turned },
  ];
}

/** All figures, handed out as they are measured; the peer is the contiguous cache. */
export async function* layoutsBench(
  { rounds, contexts }: LayoutsOptions,
): AsyncGenerator<Figure> {
  const memory = new WebAssembly.Memory({ initial: 2 ** 15, maximum: 2 ** 16, shared: true });
  const attend = await compileAttend(memory);
  const machine = machineName();
  for (const heads of MODELS) {
    for (const context of contexts) {
      for (const rows of ROWS) {
        const times = measure(attend, memory, { heads, context, rows, rounds });
        const [[, contiguous], ...others] = [...times].map(([name, values]) =>
          [name, median(values)] as const
        ) as [readonly [string, number], ...(readonly [string, number])[]];
        for (const [name, value] of others) {
          yield {
            bench: "layouts",
            case: `${name}, ${rows} rows at ${context}, ${heads.name}`,
            ...{ unit: "µs", value, peer: "contiguous", peerValue: contiguous! },
            ratio: ratioOf("µs", value, contiguous!),
            ...{ share: null, machine },
          };
        }
      }
    }
  }
}

interface Setting {
  readonly heads: Heads;
  readonly context: number;
  readonly rows: number;
  readonly rounds: number;
}

/** Microseconds a layer, by layout, of each round. */
function measure(
  attend: Attend,
  memory: WebAssembly.Memory,
  { heads, context, rows, rounds }: Setting,
): Map<string, number[]> {
  const { kvHeads, group, width } = heads, queries = rows * group;
  const pages = Math.ceil(context / PAGE), capacity = pages * PAGE;
  const stateBytes = capacity * kvHeads * width * 2;
  const layers = Math.max(1, Math.ceil(ALL_LAYERS / (2 * stateBytes)));
  let top = BASE;
  const take = (bytes: number) => (top += Math.ceil(bytes / 64) * 64) - Math.ceil(bytes / 64) * 64;
  const q = take(4 * kvHeads * queries * width), y = take(4 * kvHeads * queries * width);
  const scratch = take(2 ** 15 + 8 * kvHeads * queries * (width + 2));
  new Float32Array(memory.buffer, q, kvHeads * queries * width)
    .forEach((_, i, all) => all[i] = Math.sin(i) * 2 ** 100 * width ** -0.5);
  const runs = layoutsOf(heads, capacity).map((layout) => {
    const table = take(4 * pages);
    const order = new Uint32Array(memory.buffer, table, pages);
    order.forEach((_, i) => order[i] = i);
    if (layout.isShuffled) shuffle(order);
    const caches = Array.from(
      { length: layers },
      () => [take(stateBytes), take(stateBytes)] as const,
    );
    for (const [k, v] of caches) {
      fill(memory, { base: k, order, place: layout.keys, heads, capacity, seed: 1 });
      fill(memory, { base: v, order, place: layout.values, heads, capacity, seed: 2 });
    }
    const operands = ({ page, head, step }: Place) => [page, head, step];
    const run = () => {
      for (const [k, v] of caches) {
        attend(
          ...[table, context, kvHeads, queries, width, q, scratch, y],
          ...[k, ...operands(layout.keys), v, ...operands(layout.values)],
          ...[layout.values.isTurned ? 1 : 0, rows === 1 ? 1 : 0],
        );
      }
    };
    return { name: layout.name, run, times: [] as number[] };
  });
  let expected: Float32Array | undefined;
  for (let round = -2; round < rounds; round++) {
    for (const { name, run, times } of round % 2 ? runs.toReversed() : runs) {
      const start = performance.now();
      run();
      if (round >= 0) times.push((performance.now() - start) * 1000 / layers);
      const result = new Float32Array(memory.buffer, y, kvHeads * queries * width);
      expected ??= result.slice();
      const off = result.findIndex((value, i) => !(Math.abs(value - expected![i]!) < 1e-3));
      if (off >= 0) throw new Error(`${name} gives ${result[off]} for ${expected[off]}`);
    }
  }
  return new Map(runs.map(({ name, times }) => [name, times]));
}

/** Pages that sessions give back and take come in any order. */
function shuffle(order: Uint32Array): void {
  let state = 1;
  for (let last = order.length - 1; last > 0; last--) {
    state = Math.imul(state, 0x9e3779b1) + 0x6d2b79f5 >>> 0;
    const other = (state >>> 8) % (last + 1);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
}

/** Writes the same keys or values into any layout. */
function fill(
  memory: WebAssembly.Memory,
  { base, order, place: { page, head, step, isTurned }, heads: { kvHeads, width }, capacity, seed }:
    {
      readonly base: number;
      readonly order: Uint32Array;
      readonly place: Place;
      readonly heads: Heads;
      readonly capacity: number;
      readonly seed: number;
    },
): void {
  const halves = new Uint16Array(memory.buffer);
  for (let row = 0; row < capacity; row++) {
    const from = base + order[Math.floor(row / PAGE)]! * page;
    for (let h = 0; h < kvHeads; h++) {
      const at = from + h * head + (row % PAGE) * (isTurned ? 2 : step);
      for (let d = 0; d < width; d++) {
        // Between 0.5 and 1, the sign mixed.
        const code = Math.imul(row * 131 + h * 31 + d * 7 + seed, 0x9e3779b1);
        halves[(at + d * (isTurned ? step : 2)) >> 1] = 0x3800 | code >>> 22 & 0x3ff |
          code << 15 & 0x8000;
      }
    }
  }
}
