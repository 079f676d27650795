// Cases of matmul: every number format with floats and 8-bit rows, LF8, and what passes put into products.

import { LF8_GROUP, lf8RowBytes, quantizeLf8Row } from "../../quant/lf8_products.ts";
import { getFormat } from "../../quant/mod.ts";
import { ROUNDED_FORMATS } from "../../wasm/int7_layout.ts";
import { ACTIVATION_NAMES } from "./activations.ts";
import { OTHER_FORMATS, ROWS, rowsOfBlocks, WEIGHT_FORMATS } from "./case_sizes.ts";
import type { CaseInput, CaseRandom, OpCase } from "./op_case.ts";

// [rows, outputs, columns in blocks]: tails of every tile of rows and outputs, one and several blocks.
const SIZES = [
  [0, 5, 1],
  [1, 1, 1],
  [1, 8, 2],
  [1, 33, 3],
  [2, 16, 1],
  [3, 9, 2],
  [5, 17, 1],
  [6, 24, 2],
  [7, 31, 1],
  [13, 40, 1],
] as const;

/** All of them. */
export function matmulCases(random: CaseRandom): OpCase[] {
  const cases = [
    ...floatCases(random),
    ...withResidual(random, floatCases(random)),
    ...q8Cases(random),
    ...withResidual(random, q8Cases(random)),
    ...roundedCases(random),
    ...wideCases(random),
    ...LF8_SIZES.map((size) => lf8Case(random, size)),
    ...gatedCases(random),
    ...gatedFloatCases(random),
    ...normedCases(random),
    ...normedCases(random).map((opCase, i) => ({
      ...opCase,
      name: `gated ${opCase.name}`,
      attributes: { ...opCase.attributes, gate: activation(i), to: "q8" },
      tolerance: {
        ofLargest: 1 / 50,
        reason: "one 8-bit step of the result, and those of activations before the gate",
      },
    })),
  ];
  const more = plainCases(random);
  const floats = [...activeCases(random), ...normBehindCases(random)];
  const others = [
    ...floats,
    ...floats.filter(({ name }) => /Q[48]_0/.test(name!)).map((opCase) => ({
      ...quantized(opCase),
      tolerance: { ofLargest: 1e-2, reason: "8-bit steps of some activations" },
    })),
  ];
  return [
    ...cases.toSpliced(1, 0, ...more, ...withResidual(random, more)),
    ...others,
    ...manyRowsCases(random),
    ...centredCases(random),
  ];
}

/** Rows that are normed first: few rows, tiles of one and of several splits, more rows than centre themselves. */
function centredCases(random: CaseRandom): OpCase[] {
  const sizes = [
    ["F16", 3, 20, 64],
    ["F32", 50, 36, 272],
    ["F16", 1, 9, 32],
    ["F16", 19, 72, 160],
    ["BF16", 70, 35, 96],
    ["F32", 33, 20, 48],
  ] as const;
  return sizes.map(([format, rows, outputs, columns], i) => {
    const { inputs: [x, weight, bias], ...rest } = matmulCase(random, {
      ...{ format, rows, outputs, columns },
    });
    const residual = i % 3 === 1 ? random.input([ROWS, outputs], { M: rows }) : undefined;
    const vectors = [3, 4].map((without) =>
      i === without ? undefined : random.weight("F32", [columns])
    );
    return {
      ...rest,
      name: `centred ${rest.name}`,
      inputs: [x, weight, bias, residual, ...vectors],
      attributes: {
        ...{ centred: true, epsilon: 1e-5 },
        ...i % 3 === 2 && { activation: "gelu" },
      },
    };
  });
}

/** Rows enough for matrix units, which must not lose what is left of a float behind its first half. */
function manyRowsCases(random: CaseRandom): OpCase[] {
  const plain = [matmulCase(random, { format: "F16", rows: 70, outputs: 102, columns: 96 })];
  const gated = plain.map(({ name, ...rest }) => ({
    ...rest,
    name: `gated ${name}`,
    attributes: { gate: "gelu" },
  }));
  return [...plain, ...withResidual(random, plain), ...gated];
}

/** [format, rows, outputs, columns]: few rows, tiles of one and of several splits, quads that are not whole. */
const BEHIND_SIZES = [
  ["F32", 1, 9, 20],
  ["F16", 19, 72, 160],
  ["F16", 50, 36, 136],
  ["BF16", 70, 35, 96],
  ["Q8_0", 3, 16, 64],
  ["Q4_0", 33, 20, 96],
] as const;

function activeCases(random: CaseRandom): OpCase[] {
  return [...ACTIVATION_NAMES, "silu", "gelu"].map((name, i) => {
    const [format, rows, outputs, columns] = BEHIND_SIZES[i % BEHIND_SIZES.length]!;
    const alpha = i % 2 && name === "silu" ? 1.702 : 1;
    const opCase = matmulCase(random, { format, rows, outputs, columns });
    return {
      ...opCase,
      name: `${name} at ${alpha} of ${opCase.name}`,
      attributes: { activation: name, alpha },
    };
  });
}

function normBehindCases(random: CaseRandom): OpCase[] {
  return BEHIND_SIZES.map(([format, rows, outputs, columns], i) => {
    const { inputs: [x, weight, bias], ...rest } = matmulCase(random, {
      ...{ format, rows, outputs, columns },
    });
    return {
      ...rest,
      name: `norm behind residual, ${rest.name}`,
      inputs: [
        ...[x, weight, bias, random.input([ROWS, outputs], { M: rows })],
        i % 3 === 2 ? undefined : random.weight("F32", [outputs]),
        i % 3 === 1 ? undefined : random.weight("F32", [outputs]),
      ],
      attributes: { norm_behind: true, epsilon: 1e-5 },
    };
  });
}

/** A GPU has tiles of plain floats for more rows than of blocks. */
function plainCases(random: CaseRandom): OpCase[] {
  return WEIGHT_FORMATS.filter((format) => getFormat(format).blockSize === 1)
    .map((format) => matmulCase(random, { format, rows: 18, outputs: 44, columns: 68 }));
}

function floatCases(random: CaseRandom): OpCase[] {
  const plain = [1, 3, 4, 5, 8, 31, 33, 64, 100, 7];
  const usual = WEIGHT_FORMATS.flatMap((format) =>
    SIZES.map(([rows, outputs, blocks], i) => {
      const { blockSize } = getFormat(format);
      const columns = blockSize === 1 ? plain[i]! : blocks * blockSize;
      return matmulCase(random, { format, rows, outputs, columns });
    })
  );
  return [...usual, ...otherCases(random)];
}

function q8Cases(random: CaseRandom): OpCase[] {
  const usual = WEIGHT_FORMATS.filter((format) => getFormat(format).blockSize >= 32)
    .flatMap((format) =>
      SIZES.map(([rows, outputs, blocks]) => {
        const columns = blocks * getFormat(format).blockSize;
        return matmulCase(random, { format, rows, outputs, columns });
      })
    );
  return [...usual, ...otherCases(random)].map((one) => quantized(one));
}

/** A case of every format that is not among the usual ones. */
function otherCases(random: CaseRandom): OpCase[] {
  return OTHER_FORMATS.map((name, i) =>
    matmulCase(random, { ...rowsOfBlocks(name, 2), rows: 1 + 2 * (i % 2), outputs: 9 })
  );
}

function roundedCases(random: CaseRandom): OpCase[] {
  return ROUNDED_FORMATS.flatMap((format) =>
    [...SIZES, [131, 50, 4] as const].map(([rows, outputs, blocks]) => {
      const size = { format, rows, outputs, columns: 32 * blocks };
      const opCase = quantized(matmulCase(random, size), true);
      return { ...opCase, name: `rounded ${opCase.name}`, attributes: { rounded: true } };
    })
  );
}

/** Rows rounded to 16 bit: tails of every block and tile of rows. */
function wideCases(random: CaseRandom): OpCase[] {
  return WIDE_FORMATS.flatMap((format) => {
    const { blockSize } = getFormat(format);
    return [...SIZES, [18, 25, 2] as const].map(([rows, outputs, blocks]) => {
      const size = { format, rows, outputs, columns: blocks * Math.max(32, blockSize) };
      const opCase = matmulCase(random, size);
      return { ...opCase, name: `16-bit rows, ${opCase.name}`, attributes: { wide: true } };
    });
  });
}

/** One matmul case of any format and size; odd numbers of outputs get a bias. */
export function matmulCase(
  random: CaseRandom,
  size: {
    readonly format: string;
    readonly rows: number;
    readonly outputs: number;
    readonly columns: number;
  },
): OpCase {
  const { format, rows, outputs, columns } = size;
  return {
    name: `${format}, [${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      random.input([ROWS, columns], { M: rows }),
      random.weight(format, [outputs, columns]),
      outputs % 2 ? random.weight("F32", [outputs]) : undefined,
    ],
    bindings: { M: rows },
  };
}

/** The same case with 8-bit rows. */
export function quantized(
  { inputs: [x, ...rest], name, ...others }: OpCase,
  isLow = false,
): OpCase {
  return {
    ...others,
    name: `8-bit rows, ${name}`,
    inputs: [{ ...x, role: "quantized", isLow } as CaseInput, ...rest],
    // A rounding tie may fall the other way where a kernel multiplies by 1 / scale.
    tolerance: { ofLargest: 2e-3, reason: "one 8-bit step of one activation" },
  };
}

/** Cases of products, with something to add to them. */
function withResidual(random: CaseRandom, cases: readonly OpCase[]): OpCase[] {
  return cases.map(({ inputs: [x, weight, bias], name, ...rest }) => ({
    ...rest,
    name: `residual, ${name}`,
    inputs: [x, weight, bias, random.input([x!.shape[0]!, weight!.shape[0]!], rest.bindings)],
  }));
}

/** With kernels on 16-bit rows, a scale a cell and a scale a block of cells. */
const WIDE_FORMATS = ["Q8_0", "LF8"] as const;

const LF8_SIZES = [[0, 5, 1], [1, 1, 1], [1, 33, 3], [3, 16, 2], [7, 50, 1]] as const;

function lf8Case(
  random: CaseRandom,
  [rows, outputs, groups]: readonly [rows: number, outputs: number, groups: number],
): OpCase {
  const columns = groups * LF8_GROUP, bytes = lf8RowBytes(columns);
  const x = new Uint8Array(rows * bytes), weight = new Uint8Array(outputs * bytes);
  for (let m = 0; m < rows; m++) quantizeLf8Row(random.normal(columns), x.subarray(m * bytes));
  getFormat("LF8").encode!(random.normal(outputs * columns), weight);
  return {
    name: `LF8 on both sides, [${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      { role: "input", dtype: "u8", shape: [ROWS, bytes], data: x },
      { role: "input", dtype: "u8", shape: [outputs, bytes], data: weight },
      outputs % 2 ? random.weight("F32", [outputs]) : undefined,
    ],
    bindings: { M: rows },
  };
}

function activation(i: number): string {
  return ACTIVATION_NAMES[i % ACTIVATION_NAMES.length]!;
}

function gatedCases(random: CaseRandom): OpCase[] {
  return ["Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"].flatMap((format, f) =>
    ([[0, 32], [1, 32], [1, 96], [3, 64], [6, 32], [13, 64]] as const).map(([rows, width], i) => {
      const columns = getFormat(format).blockSize * (1 + i % 2);
      const x = random.input([ROWS, columns], { M: rows });
      return {
        name: `gated ${format}, [${rows}, ${columns}] · [2 · ${width}, ${columns}]ᵀ`,
        inputs: [
          { ...x, role: "quantized" } as CaseInput,
          random.weight(format, [2 * width, columns]),
          i % 2 ? random.weight("F32", [2 * width]) : undefined,
        ],
        attributes: { gate: activation(f + i), to: "q8" },
        bindings: { M: rows },
        tolerance: {
          ofLargest: 1 / 60,
          reason: "one 8-bit step of the result, and one of an activation before the gate",
        },
      };
    })
  );
}

/** Gates of floats: a unit of each width, few rows and tiles of them, results and columns that end within a tile. */
function gatedFloatCases(random: CaseRandom): OpCase[] {
  return ([["F16", 70, 9, 36], ["F32", 3, 5, 20], ["BF16", 13, 65, 40], [
    "Q4_0",
    9,
    40,
    64,
  ]] as const)
    .map(([format, rows, width, columns], i) => ({
      name: `gated ${format}, floats [${rows}, ${columns}] · [2 · ${width}, ${columns}]ᵀ`,
      inputs: [
        random.input([ROWS, columns], { M: rows }),
        random.weight(format, [2 * width, columns]),
        i % 2 === 0 ? random.weight("F32", [2 * width]) : undefined,
      ],
      attributes: { gate: activation(i) },
      bindings: { M: rows },
    }));
}

/** Outputs are multiples of 64. */
function normedCases(random: CaseRandom): OpCase[] {
  const sizes = [
    ["Q4_0", 64, 128, 0],
    ["Q4_0", 64, 128, 1],
    ["Q4_K", 256, 192, 1],
    ["Q6_K", 512, 64, 3],
    ["Q4_1", 96, 128, 12],
    ["Q8_0", 576, 64, 1],
  ] as const;
  return sizes.map(([format, columns, outputs, rows], i) => ({
    name: `normed ${format}, [${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      random.input([ROWS, columns], { M: rows }),
      random.weight(format, [outputs, columns]),
      i % 3 ? random.weight("F32", [outputs]) : undefined,
      undefined,
      i % 2 ? random.weight("F32", [columns]) : undefined,
    ],
    attributes: { normed: true, epsilon: 1e-5, base: i === 3 ? 1 : 0 },
    bindings: { M: rows },
    tolerance: { ofLargest: 5e-3, reason: "one 8-bit step of some activations" },
  }));
}
