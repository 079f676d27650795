// One activation row times eight weight rows that were unpacked (unpack.ts), a block at a time: for points of
// grids, where unpacking is most of the work, so that they need no GEMV each. Sums go on from `out`, float operation for float
// operation like gemv.ts and the register tiles.

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import { cellEpilogue } from "./cells.ts";
import { dotsOf, type DotStyle } from "./dots.ts";
import { simdImports } from "./imports.ts";
import { CODE_LAYOUTS } from "./kernel_layouts.ts";
import { HALVES } from "./scales.ts";

function cell(layout: WeightLayout, style: DotStyle, bits: number): string[] {
  const dots = dotsOf(style, bits);
  const steps = layout.groupColumns / 4, groups = 8 / steps;
  const lines: string[] = [];
  for (let q = 0; q < 8; q++) {
    lines.push(`const x${q} = v128.load32_splat(x, ${4 * q});`, ...dots.operand(`x${q}`));
    const g = Math.floor(q / steps);
    for (const h of HALVES) {
      lines.push(`const w${q}_${h} = v128.load(codes, ${32 * q + 16 * h});`);
      lines.push(...dots.add(`c${g}_${h}`, `x${q}`, `w${q}_${h}`, q % steps, steps));
    }
  }
  for (let g = 0; g < groups; g++) {
    ["d", "m"].forEach((name, i) =>
      HALVES.forEach((h) =>
        lines.push(`const ${name}${g}_${h} = v128.load(scales, ${64 * g + 32 * i + 16 * h});`)
      )
    );
  }
  return [
    ...lines,
    ...cellEpilogue(layout, true),
    `codes += 256; scales += ${64 * groups}; x += 32; scale += 4; sum += 4; halfSum += 4;`,
  ];
}

function kernel(style: DotStyle, group: number): string {
  const layouts = CODE_LAYOUTS.filter(({ points, groupColumns }) =>
    points && groupColumns === group
  );
  const bits = Math.max(...layouts.map(factorBits));
  return [
    `/** \`columns\` from \`x\` on, of a row that keeps \`apart\` bytes of scales; codes and scales as unpacked. */`,
    `export function gemv_unpacked_${style}_g${group}(x: usize, scale: usize, apart: usize, columns: usize, ` +
    "codes: usize, scales: usize, out: usize): void {",
    ...dotsOf(style, bits).constants,
    "let sum = scale + apart, halfSum = sum + apart;",
    "let f0 = v128.load(out), f1 = v128.load(out, 16);",
    "const end = x + columns;",
    "do {",
    ...cell(layouts[0]!, style, bits),
    "} while (x < end);",
    "v128.store(out, f0);",
    "v128.store(out, f1, 16);",
    "}",
  ].join("\n");
}

/** Module `generated/gemv_unpacked_{style}`. */
export function gemvUnpackedModule(style: DotStyle): string {
  return [simdImports(), ...[32, 16].map((group) => kernel(style, group)), ""].join("\n");
}
