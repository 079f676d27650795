// Numbers and places as waves (arXiv 1706.03762, section 3.5): of timesteps, which a run gives, and of the squares of a
// picture, which are known with its size; and what the distance of words adds to scores.

import { type Dim, mul, product } from "../../../graph/dim/mod.ts";
import { bucketOf } from "../../relative_bias.ts";
import { type Atom, numberOf } from "./atom.ts";

const LONGEST = 10_000;

/** numbers [N, …] → [N, … · width]: of each its sines, then its cosines; `flip`: cosines first. */
const waves: Atom = {
  inputs: [1, 1],
  parameters: { width: undefined, flip: false, shift: 0, factor: 1 },
  build(site, [x]) {
    const half = numberOf(site, "width") / 2, shift = numberOf(site, "shift");
    const factor = numberOf(site, "factor");
    const rates = Float32Array.from(
      { length: half },
      (_, i) => factor * Math.exp(-Math.log(LONGEST) * i / (half - shift)),
    );
    const [batch, ...more] = x!.shape as [Dim, ...Dim[]], count = product(more);
    const column = site.op("reshape", [x], { shape: [batch, count, 1] });
    const table = site.builder.constant(`${site.path}.rates`, rates);
    const angles = site.op("binary", [column, table], { kind: "mul" });
    const [sines, cosines] = ["sin", "cos"].map((kind) => site.op("unary", [angles], { kind }));
    const both = site.given.flip === true ? [cosines, sines] : [sines, cosines];
    const joined = site.op("concat", both, { axis: 2 });
    return site.op("reshape", [joined], { shape: [batch, mul(count, 2 * half)] });
  },
};

/** like [N, …, h, w] → [1, h · w, width]: waves of columns, then of rows, as if the picture were `base` squares a side. */
const squares: Atom = {
  inputs: [1, 1],
  parameters: { width: undefined, base: undefined, scale: 1 },
  build(site, [like]) {
    const width = numberOf(site, "width"), quarter = width / 4;
    const [height, columns] = like!.shape.slice(2) as [Dim, Dim];
    if (typeof height !== "number" || typeof columns !== "number") {
      throw new TypeError(`${site.path}: places are known for sizes that are numbers`);
    }
    const base = numberOf(site, "base"), scale = numberOf(site, "scale");
    const table = new Float32Array(height * columns * width);
    for (let place = 0; place < height * columns; place++) {
      const at = [
        (place % columns) * base / columns / scale,
        Math.floor(place / columns) * base / height / scale,
      ];
      for (let i = 0; i < width; i++) {
        const axis = Math.floor(i / (2 * quarter)), within = i % (2 * quarter);
        const angle = at[axis]! / LONGEST ** (within % quarter / quarter);
        table[place * width + i] = within < quarter ? Math.sin(angle) : Math.cos(angle);
      }
    }
    const shape = [1, height * columns, width];
    return site.builder.constant(`${site.path}.squares`, table, shape);
  },
};

/**
 * like [N, rows, …] → summands of scores [1, heads, rows, rows] by the distance of a key (T5, arXiv 1910.10683, §2.1):
 * those of a class of distances are a row of `weight` [buckets, heads].
 */
const distances: Atom = {
  inputs: [1, 1],
  parameters: { buckets: undefined, farthest: undefined, heads: undefined },
  build(site, [like]) {
    const rows = like!.shape[1]!, heads = numberOf(site, "heads");
    if (typeof rows !== "number") {
      throw new TypeError(`${site.path}: distances are known for sizes that are numbers`);
    }
    const rule = {
      buckets: numberOf(site, "buckets"),
      farthest: numberOf(site, "farthest"),
      isBidirectional: true,
    };
    const classes = Int32Array.from(
      { length: rows * rows },
      (_, i) => bucketOf(i % rows - Math.floor(i / rows), rule),
    );
    const ids = site.builder.constant(`${site.path}.classes`, classes);
    const table = site.op("embed", [ids, site.weight("weight", [rule.buckets, heads])]);
    const square = site.op("reshape", [table], { shape: [1, rows, rows, heads] });
    return site.op("transpose", [square], { perm: [0, 3, 1, 2] });
  },
};

/** Positions by name. */
export const POSITIONS: Readonly<Record<string, Atom>> = { waves, squares, distances };
