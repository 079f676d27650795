// fuse_norm: products of narrow rows normalise their input by themselves, where the device has a kernel for that:
//   matmul_q8(rms_norm_q8(x, g), W, b) → norm_matmul_q8(x, g, W, b), and the same for matmul_glu_q8.
// Every workgroup then normalises the whole row. For rows up to those of an 8B model that costs less than a dispatch of
// its own (bench/results/kernels.md); for a vocabulary of outputs it does not.

import { WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** Widest rows for which it pays. */
const MOST_COLUMNS = 4096;
const MOST_OUTPUTS = 32_768;
/** Rows of weights come in this many, so that results are whole groups. */
const GROUP_ROWS = 64;

/** The form of a product that normalises. */
export const normForms: ReadonlyMap<string, string> = new Map([
  ["matmul_q8", "norm_matmul_q8"],
  ["matmul_glu_q8", "norm_matmul_glu_q8"],
]);

/** Moves norms into the products behind them. */
export const fuseNorm: Pass = definePass({
  name: "fuse_norm",
  reads: { matmul_q8: [], matmul_glu_q8: WHOLE, rms_norm_q8: WHOLE },
  suits: ({ hasKernel }) => [...normForms.values()].some(hasKernel),
  run({ made, readers, rewrite }, { hasKernel }) {
    return rewrite(({ node, inputs, op, moved, copy }) => {
      const form = normForms.get(node.op);
      const value = node.inputs[0];
      const norm = value && made.get(value);
      if (!form || !hasKernel(form) || norm?.op !== "rms_norm_q8") return copy();
      const [rows, columns] = node.inputs[1]!.shape as [number, number];
      const fits = readers.get(value!)!.length === 1 && columns <= MOST_COLUMNS &&
        rows <= MOST_OUTPUTS && columns % GROUP_ROWS === 0 && rows % GROUP_ROWS === 0 &&
        node.inputs[1]!.tensor;
      if (!fits) return copy();
      const [x, gain] = norm.inputs.map((input) => input && moved(input));
      const attributes = { ...norm.attributes, ...node.attributes };
      return op(form, [x, gain, ...inputs.slice(1)], attributes, node.name);
    });
  },
});
