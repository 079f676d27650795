// Layers with weights: convolutions, products, norms, tables.

import { product } from "../../../graph/dim/mod.ts";
import type { Value } from "../../../graph/graph.ts";
import { type Atom, numberOf, type Part, partOf, type Site, viewed, widthOf } from "./atom.ts";

/** x [N, C, H, W] → [N, to, …], a square window over two dims. */
const conv: Atom = {
  inputs: [1, 1],
  parameters: { to: undefined, kernel: 3, stride: 1, padding: null, ends_only: false },
  build(site, [x]) {
    const to = numberOf(site, "to"), kernel = numberOf(site, "kernel");
    const stride = numberOf(site, "stride");
    const pad = site.given.padding === null
      ? Math.floor((kernel - 1) / 2)
      : numberOf(site, "padding");
    const shape = [to, widthOf(x!, 1), kernel, kernel];
    // Where only ends are padded, as autoencoders do before they halve.
    const begin = site.given.ends_only === true ? 0 : pad;
    const window = { strides: [stride, stride], pads: [begin, begin, pad, pad] };
    const bias = site.find("bias", [to]);
    const y = site.op("conv", [x, site.weight("weight", shape), bias], window);
    return changed(site, y, ({ down, up }) => {
      const rank = down.shape[0]!, name = `${site.path}.low_rank`;
      const narrow = site.builder.weight(down.name, viewed(down, [rank, ...shape.slice(1)]));
      const first = site.builder.op("conv", [x, narrow], window, name)[0]!;
      const wide = site.builder.weight(up.name, viewed(up, [to, rank, 1, 1]));
      return site.builder.op("conv", [first, wide], {}, `${name}.up`)[0]!;
    });
  },
};

/** A convolution of single places where x has another number of channels than is wanted; else x. */
const fit: Atom = {
  inputs: [1, 1],
  parameters: { to: undefined },
  build(site, [x]) {
    if (widthOf(x!, 1) === numberOf(site, "to")) return x!;
    return conv.build({ ...site, given: { ...conv.parameters, ...site.given, kernel: 1 } }, [x!]);
  },
};

/**
 * x […, C] → […, to]; a window of one place is such a product, too. `part` [i, n]: the i-th of n equal parts of the rows
 * that the file has.
 */
const linear: Atom = {
  inputs: [1, 1],
  parameters: { to: null, part: [0, 1] },
  build(site, [x]) {
    const from = widthOf(x!, -1), to = site.given.to === null ? from : numberOf(site, "to");
    const part = site.given.part as Part;
    const bias = site.find("bias", [to], part);
    const y = site.op("matmul", [x, site.weight("weight", [to, from], part), bias]);
    return changed(site, y, ({ down, up }) => {
      const [rank] = down.shape as [number], name = `${site.path}.low_rank`;
      const narrow = site.builder.weight(down.name, viewed(down, [rank, from]));
      const first = site.builder.op("matmul", [x, narrow], {}, name)[0]!;
      const rows = partOf(viewed(up, [to * part[1], rank]), part);
      const wide = site.builder.weight(rows.name, rows);
      return site.builder.op("matmul", [first, wide], {}, `${name}.up`)[0]!;
    });
  },
};

type Change = ReturnType<Site["lowRank"]>[number];

/** y with what adapters add to it. */
function changed(site: Site, y: Value, product: (change: Change) => Value): Value {
  return site.lowRank().reduce((sum, change) => {
    const label = `${site.path}.changed`;
    const scaled = site.builder.op(
      "unary",
      [product(change)],
      { kind: "scale", alpha: change.factor },
      `${label}.scaled`,
    )[0]!;
    return site.builder.op("binary", [sum, scaled], { kind: "add" }, label)[0]!;
  }, y);
}

/** x [N, C, …] → the same, by groups of channels. */
const groupNorm: Atom = {
  inputs: [1, 1],
  parameters: { groups: undefined, epsilon: undefined },
  build(site, [x]) {
    const channels = widthOf(x!, 1);
    const [weight, bias] = ["weight", "bias"].map((name) => site.weight(name, [channels]));
    return site.op("group_norm", [x, weight, bias], {
      groups: numberOf(site, "groups"),
      epsilon: numberOf(site, "epsilon"),
    });
  },
};

/** x […, C] → the same; weight and bias where the file has them. */
const layerNorm: Atom = {
  inputs: [1, 1],
  parameters: { epsilon: 1e-5, plain: false },
  build(site, [x]) {
    const width = widthOf(x!, -1), epsilon = numberOf(site, "epsilon");
    if (site.given.plain === true) return site.op("norm", [x], { centred: true, epsilon });
    const weights = [site.weight("weight", [width]), site.find("bias", [width])];
    return site.op("norm", [x, ...weights], { centred: true, epsilon });
  },
};

/** x […, C] → the same, over the root mean square of each head's numbers, times weight [C / heads]. */
const rmsNorm: Atom = {
  inputs: [1, 1],
  parameters: { epsilon: 1e-6, heads: 1 },
  build(site, [x]) {
    const heads = numberOf(site, "heads"), width = widthOf(x!, -1) / heads;
    const split = site.op("reshape", [x], { shape: [...x!.shape.slice(0, -1), heads, width] });
    const epsilon = numberOf(site, "epsilon");
    const normed = site.op("norm", [split, site.weight("weight", [width])], { epsilon });
    return site.op("reshape", [normed], { shape: [...x!.shape] });
  },
};

/** Ids as floats [N, rows] → rows of the table `weight` [rows, columns]: [N, rows, columns]. */
const lookUp: Atom = {
  inputs: [1, 1],
  parameters: { rows: undefined, columns: undefined },
  build(site, [x]) {
    const columns = numberOf(site, "columns"), shape = [numberOf(site, "rows"), columns];
    const flat = site.op("reshape", [x], { shape: [product(x!.shape)] });
    const ids = site.op("cast", [flat], { to: "i32" });
    const found = site.op("embed", [ids, site.weight("weight", shape)]);
    return site.op("reshape", [found], { shape: [...x!.shape, columns] });
  },
};

/** A table of the file: [1, rows, columns]. */
const parameter: Atom = {
  inputs: [0, 1],
  parameters: { rows: undefined, columns: undefined },
  build(site) {
    const shape = [numberOf(site, "rows"), numberOf(site, "columns")];
    return site.op("reshape", [site.weight("", shape)], { shape: [1, ...shape] });
  },
};

/** Layers by name. */
export const LAYERS: Readonly<Record<string, Atom>> = {
  conv,
  fit,
  linear,
  group_norm: groupNorm,
  layer_norm: layerNorm,
  rms_norm: rmsNorm,
  look_up: lookUp,
  parameter,
};
