// A random graph as a function of (seed, index). It is a chain of 5 to 40 nodes that reads back what it made
// earlier; of its ends some are also results, and now and then an input is one.

import { createDraw, type Draw } from "../../support/draw.ts";
import type { Block } from "./block.ts";
import { elementwiseBlocks } from "./elementwise_blocks.ts";
import { imageBlocks } from "./image_blocks.ts";
import { movingBlocks } from "./moving_blocks.ts";
import { codeBlocks, numberBlocks } from "./number_blocks.ts";
import { productBlocks } from "./product_blocks.ts";
import { rowBlocks } from "./row_blocks.ts";
import { createWriter, type GraphCase, type OpenWriter, type Value } from "./writer.ts";

type Weighted = readonly (readonly [number, Block])[];

/** A kind of graph: how much it has of each table of blocks. */
interface Theme {
  readonly chance: number;
  readonly tables: readonly (readonly [number, Weighted])[];
}

const THEMES: readonly Theme[] = [
  {
    chance: 3,
    tables: [[3, imageBlocks], [2, elementwiseBlocks], [1, movingBlocks], [0.5, rowBlocks]],
  },
  {
    chance: 3,
    tables: [[3, productBlocks], [2, rowBlocks], [2, elementwiseBlocks], [1, movingBlocks]],
  },
  { chance: 2, tables: [[3, elementwiseBlocks], [1, movingBlocks], [1, rowBlocks]] },
  { chance: 1, tables: [[3, numberBlocks], [2, movingBlocks], [1, elementwiseBlocks]] },
  { chance: 1, tables: [[3, codeBlocks], [1, productBlocks], [1, elementwiseBlocks]] },
  {
    chance: 2,
    tables: [
      [1, imageBlocks],
      [1, productBlocks],
      [1, rowBlocks],
      [1, elementwiseBlocks],
      [1, movingBlocks],
      [1, numberBlocks],
      [1, codeBlocks],
    ],
  },
];

const OPSETS = [13, 17, 18, 20, 21, 22, 23, 24];
const PALETTE = [1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17, 31, 32, 33];
const SMALL = [1, 2, 3, 4, 5, 7, 8, 9];

/** What a device asks of its graphs. */
export interface GraphOptions {
  /** Few different sizes: on the GPU each is a shader to compile. */
  readonly few?: boolean;
}

/** Graph number `index` of a seed. */
export function randomGraph(
  seed: number,
  index: number,
  { few = false }: GraphOptions = {},
): GraphCase {
  const draw = createDraw(seed, index);
  const bindings = 1 + draw(3);
  const symbols = bindings === 1 ? [] : Array.from(
    { length: draw(3) },
    () => Array.from({ length: bindings }, () => draw(12) === 0 ? 0 : SMALL[draw(SMALL.length)]!),
  );
  const writer = createWriter({
    draw,
    opset: OPSETS[draw(OPSETS.length)]!,
    float: draw(12) === 0 ? "f16" : "f32",
    symbols,
    bindings,
    palette: few ? [1, 3, 4, 8] : draw(40) === 0 ? [...PALETTE, 0] : PALETTE,
  });
  const theme = weighted(draw, THEMES.map((theme) => [theme.chance, theme] as const));
  const most = writer.float === "f16" ? 10 : few ? 12 : 40;
  grow(writer, theme, 5 + draw(most - 4));
  return writer.finish(results(writer));
}

function grow(writer: OpenWriter, { tables }: Theme, length: number): void {
  for (let steps = 0; steps < length;) {
    const before = writer.values.length;
    const block = weighted(writer.below, weighted(writer.below, tables));
    block(writer);
    steps += Math.max(0.2, writer.values.length - before);
  }
}

/** The last value, others on the way, sometimes an input. */
function results({ values, below, chance }: OpenWriter): Value[] {
  const chosen = new Set([values.at(-1)!]);
  for (let more = below(4); more > 0; more--) chosen.add(values[below(values.length)]!);
  const input = values.find(({ name }) => name.startsWith("x"));
  if (input && chance(0.1)) chosen.add(input);
  return [...chosen];
}

function weighted<T>(draw: Draw, list: readonly (readonly [number, T])[]): T {
  const total = list.reduce((sum, [weight]) => sum + weight, 0);
  let place = draw(1000) / 1000 * total;
  for (const [weight, item] of list) {
    place -= weight;
    if (place < 0) return item;
  }
  return list.at(-1)![1];
}
