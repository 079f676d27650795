// What moves elements: planes of channels and rows of channels, parts and wholes, patches, sizes.

import { type Dim, exactDiv, floorDiv, mul, product, sub } from "../../../graph/dim/mod.ts";
import type { Value } from "../../../graph/graph.ts";
import { type Atom, numberOf, type Site, widthOf } from "./atom.ts";

/** [N, C, H, W] → [N, H · W, C]. */
const rows: Atom = {
  inputs: [1, 1],
  parameters: {},
  build(site, [x]) {
    const [batch, channels, ...places] = x!.shape as [Dim, Dim, ...Dim[]];
    const flat = site.op("reshape", [x], { shape: [batch, channels, product(places)] });
    return site.op("transpose", [flat], { perm: [0, 2, 1] });
  },
};

/** ([N, H · W, C], like [N, …, H, W]) → [N, C, H, W]. */
const planes: Atom = {
  inputs: [2, 2],
  parameters: {},
  build(site, [x, like]) {
    const [batch, , channels] = x!.shape as [Dim, Dim, Dim];
    const turned = site.op("transpose", [x], { perm: [0, 2, 1] });
    return site.op("reshape", [turned], { shape: [batch, channels, ...like!.shape.slice(2)] });
  },
};

/** Values one behind the other. */
const concat: Atom = {
  inputs: [2, 9],
  parameters: { axis: 1 },
  build: (site, inputs) => site.op("concat", inputs, { axis: numberOf(site, "axis") }),
};

/** As many equal parts of a dim as are named. */
const chunk: Atom = {
  inputs: [1, 1],
  parameters: { axis: 1 },
  build(site, [x]) {
    const axis = numberOf(site, "axis"), size = exactDiv(x!.shape[axis]!, site.results);
    if (size === undefined) throw new RangeError(`${site.path}: not ${site.results} equal parts`);
    return Array.from(
      { length: site.results },
      (_, part) => box(site, x!, { axis, start: mul(part, size), size }),
    );
  },
};

/** (x [N, rows, C], first) → the rows that `first` has, and those behind them. */
const divide: Atom = {
  inputs: [2, 2],
  parameters: {},
  build(site, [x, first]) {
    const count = first!.shape[1]!;
    return [
      box(site, x!, { axis: 1, start: 0, size: count }),
      box(site, x!, { axis: 1, start: count, size: sub(x!.shape[1]!, count) }),
    ];
  },
};

/** (x [N, rows, C], like [N, fewer rows, …]) → the first of its rows, as many as `like` has. */
const first: Atom = {
  inputs: [2, 2],
  parameters: {},
  build(site, [x, like]) {
    const [have, want] = [x!.shape[1]!, like!.shape[1]!];
    if (typeof have === "number" && typeof want === "number" && want > have) {
      throw new RangeError(`${site.path}: ${want} rows are wanted of ${have}`);
    }
    return box(site, x!, { axis: 1, start: 0, size: want });
  },
};

/** (x [N, rows, C], marks [N, rows]: 1 at one row, 0 elsewhere) → that row, [N, C]. */
const chosen: Atom = {
  inputs: [2, 2],
  parameters: {},
  build(site, [x, marks]) {
    const column = site.op("reshape", [marks], { shape: [...marks!.shape, 1] });
    const only = site.op("binary", [x, column], { kind: "mul" });
    return site.op("reduce", [only], { kind: "sum", axes: [1], keep: false });
  },
};

interface Box {
  readonly axis: number;
  readonly start: Dim;
  readonly size: Dim;
}

function box(site: Site, x: Value, { axis, start, size }: Box): Value {
  const rank = x.shape.length;
  return site.op("slice", [x], {
    starts: Array.from({ length: rank }, (_, i) => i === axis ? start : 0),
    sizes: x.shape.map((dim, i) => i === axis ? size : dim),
    steps: new Array<number>(rank).fill(1),
  });
}

/** [N, rows · C] → [N, rows, C]. */
const fold: Atom = {
  inputs: [1, 1],
  parameters: { rows: 1 },
  build(site, [x]) {
    const rows = numberOf(site, "rows"), width = widthOf(x!, 1) / rows;
    return site.op("reshape", [x], { shape: [x!.shape[0]!, rows, width] });
  },
};

/** [N, rows, C] → [N, rows · C]. */
const unfold: Atom = {
  inputs: [1, 1],
  parameters: {},
  build(site, [x]) {
    const [batch, ...rest] = x!.shape as [Dim, ...Dim[]];
    return site.op("reshape", [x], { shape: [batch, product(rest)] });
  },
};

/** [N, C] → [N, C, 1, 1], for sums with planes. */
const spread: Atom = {
  inputs: [1, 1],
  parameters: {},
  build: (site, [x]) => site.op("reshape", [x], { shape: [...x!.shape, 1, 1] }),
};

/** A mask [N, rows] of ones and zeros → [N, 1, 1, rows], to be added to scores. */
const hide: Atom = {
  inputs: [1, 1],
  parameters: {},
  build(site, [x]) {
    const [batch, count] = x!.shape as [Dim, Dim];
    const one = site.builder.constant(`${site.path}.one`, Float32Array.of(1));
    const less = site.op("binary", [x, one], { kind: "sub" });
    const scores = site.op("unary", [less], { kind: "scale", alpha: HIDDEN });
    return site.op("reshape", [scores], { shape: [batch, 1, 1, count] });
  },
};

/** What diffusers adds to the scores of keys that are not seen. */
const HIDDEN = 10_000;

/** (x [N, C, H, W], like?) → places repeated, twice as many or as many as `like` has. */
const upsample: Atom = {
  inputs: [1, 2],
  parameters: {},
  build(site, [x, like]) {
    const [batch, channels, ...places] = x!.shape as [Dim, Dim, ...Dim[]];
    const wanted = like ? like.shape.slice(2) : places.map((size) => mul(2, size));
    return site.op("resize", [x], {
      sizes: [batch, channels, ...wanted],
      mode: "nearest",
      coordinates: "asymmetric",
      rounding: "floor",
    });
  },
};

/** (rows [N, h · w, p · p · C], like [N, …, h, w]) → [N, C, h · p, w · p]. */
const unpatch: Atom = {
  inputs: [2, 2],
  parameters: { patch: undefined },
  build(site, [x, like]) {
    const patch = numberOf(site, "patch"), channels = widthOf(x!, -1) / patch ** 2;
    const [batch] = x!.shape as [Dim], [height, width] = like!.shape.slice(2) as [Dim, Dim];
    const cut = site.op("reshape", [x], { shape: [batch, height, width, patch, patch, channels] });
    const turned = site.op("transpose", [cut], { perm: [0, 5, 1, 3, 2, 4] });
    return site.op("reshape", [turned], {
      shape: [batch, channels, mul(height, patch), mul(width, patch)],
    });
  },
};

/** (table [1, side², C], like [N, …, h, w]) → the middle of the square as rows [1, h · w, C]. */
const middle: Atom = {
  inputs: [2, 2],
  parameters: { side: undefined },
  build(site, [table, like]) {
    const side = numberOf(site, "side"), width = widthOf(table!, -1);
    const sizes = like!.shape.slice(2) as [Dim, Dim];
    const large = sizes.find((size) => typeof size === "number" && size > side);
    if (large !== undefined) {
      throw new RangeError(
        `${site.path}: ${large} patches a side, and there are places for ${side}`,
      );
    }
    const square = site.op("reshape", [table], { shape: [1, side, side, width] });
    const cut = site.op("slice", [square], {
      starts: [0, ...sizes.map((size) => floorDiv(sub(side, size), 2)), 0],
      sizes: [1, ...sizes, width],
      steps: [1, 1, 1, 1],
    });
    return site.op("reshape", [cut], { shape: [1, product(sizes), width] });
  },
};

/** Moves by name. */
export const SHAPES: Readonly<Record<string, Atom>> = {
  rows,
  planes,
  concat,
  chunk,
  divide,
  first,
  chosen,
  fold,
  unfold,
  spread,
  hide,
  upsample,
  unpatch,
  middle,
};
