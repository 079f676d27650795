// Every layout of codes in every kernel that reads weights, beside sums of the numbers that the formats' own decoders
// give. Compiling is what takes time on a software adapter: shaders are small here, and it compiles the large ones
// for one layout of each kind only. The sizes that the engine takes are those of engine/run/gpu/matmul_test.ts.

import { assertEquals } from "@std/assert";
import { createCaseRandom } from "../engine/ops/case_random.ts";
import { formatBytes, formats, getFormat, rowFormatsOf } from "../quant/mod.ts";
import { Q8_GROUP, q8RowBytes } from "../quant/q8_activation.ts";
import { dequantizeQ8Row, quantizeQ8Row } from "../tests/support/q8_row.ts";
import { gpuTest } from "../tests/support/gpu.ts";
import { testGpu } from "../tests/support/gpu_cases.ts";
import { createBufferScope, STORAGE_USAGE } from "./gpu.ts";
import type { GpuSlice, Shader } from "./kernel.ts";
import { EMBED_BLOCK, embedShader } from "./kernels/embed.ts";
import { gemmF32 } from "./kernels/matmul/gemm_f32.ts";
import { gemmQ8 } from "./kernels/matmul/gemm_q8.ts";
import { gemvF32 } from "./kernels/matmul/gemv_f32.ts";
import { gemvQ8 } from "./kernels/matmul/gemv_q8.ts";
import { type RowsShape, workgroupOutputs } from "./kernels/matmul/rows.ts";
import { tileOutputs, tileRows } from "./kernels/matmul/tile.ts";
import { planeNames, unitColumns } from "./kernels/matmul/weight_reader.ts";
import { createProgram, type ProgramDispatch } from "./program.ts";
import { readOnce } from "./readback.ts";
import { gpuLayoutOf, hasGpuIntegerKernel } from "./weight_layout.ts";

/** No multiples of what a team or a tile takes. */
const ROWS = 5;
const OUTPUTS = 19;
const TILE = { blockRows: 4, blockOutputs: 4, across: 2, down: 2, stepGroups: 1 };
const TEAM = { workgroup: 16, lanes: 4, subgroupSize: 0, unroll: 1, bias: false };

/** Formats of codes, with rows of an odd number of groups where blocks allow it. */
const FORMATS: readonly (readonly [format: string, columns: number])[] = [
  ...[...formats.keys()].filter(hasGpuIntegerKernel).map((format) =>
    [format, getFormat(format).blockSize <= 32 ? 96 : 256] as const
  ),
  // No product on 8-bit activations.
  ["Q8_LOG", 96],
  ...rowFormatsOf(96).map(({ name }) => [name, 96] as const),
];

/** What differs in tiles: codes sixteenfold, minima of halves, scales of signs, a scale of several groups. */
const IN_TILES = ["Q4_0", "Q2_K", "Q8_GL_96", "E0M4_G128"];
/** Those that are multiplied as floats there, and read by token. */
const IN_FLOAT_TILES = ["E0M4_G128"];
/** One of each kind of codes, for floats. */
const OF_EACH_KIND = [
  ...new Map(FORMATS.map(([format, columns]) => [
    gpuLayoutOf(format, columns).id.split("_")[0],
    format,
  ])).values(),
  ...["Q2_K", "Q4_K", "E0M4_G128", "NB4"],
];

/** Layouts that differ from a tested one in their number of columns or in a constant only. */
const ON_HARDWARE = /^(E0M4_G(32_N2|64|128_N2|256)|INT4_G(64|256))$/;

/** Numbers that every format can hold, the same each time. */
function someNumbers(count: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = Math.imul(state, 0x915f77f5) + 0x3c6ef372 | 0;
    return (state >>> 8) / 2 ** 24 * 1.5 - 0.7;
  });
}

/** A matrix in a format; of random bytes where there is no encoder. */
function someBlocks(format: string, columns: number): Uint8Array {
  const { encode } = getFormat(format);
  if (!encode) {
    return (createCaseRandom(5).weight(format, [OUTPUTS, columns]) as { bytes: Uint8Array }).bytes;
  }
  const bytes = new Uint8Array(formatBytes(getFormat(format), OUTPUTS * columns));
  encode(someNumbers(OUTPUTS * columns, 5), bytes);
  return bytes;
}

/** Bytes of a row as the GPU has it: scale and sum of a group stand together. */
function gpuRow(row: Uint8Array, columns: number): Uint8Array {
  const groups = columns / Q8_GROUP;
  const from = new Float32Array(row.buffer, row.byteOffset + columns, 2 * groups);
  const halves = new Int16Array(row.buffer, row.byteOffset + columns + 8 * groups, 2 * groups);
  const moved = row.slice();
  const to = new Float32Array(moved.buffer, columns, 3 * groups);
  for (let g = 0; g < groups; g++) {
    to[2 * g] = from[g]!;
    to[2 * g + 1] = from[groups + g]!;
    to[2 * groups + g] = from[g]! * halves[2 * g]!;
  }
  return moved;
}

function products(x: Float32Array, weights: Float32Array, columns: number): Float32Array {
  return Float32Array.from({ length: ROWS * OUTPUTS }, (_, i) => {
    const row = Math.floor(i / OUTPUTS) * columns, line = i % OUTPUTS * columns;
    let sum = 0;
    for (let c = 0; c < columns; c++) sum += x[row + c]! * weights[line + c]!;
    return sum;
  });
}

/** The largest difference, not a number if one of them is none, and the largest number. */
function worst(got: Float32Array, wanted: Float32Array): { error: number; most: number } {
  let error = 0, most = 0;
  wanted.forEach((value, i) => {
    const off = Math.abs(got[i]! - value);
    error = Number.isNaN(off) ? NaN : Math.max(error, off);
    most = Math.max(most, Math.abs(value));
  });
  return { error, most };
}

/** The kernels by name: shader, what it multiplies, and workgroups. */
function kernelsOf(layout: string, columns: number, packedDot: boolean): readonly {
  readonly name: string;
  /** Formats with which a software adapter runs it. */
  readonly least: readonly string[];
  readonly x: "floats" | "bytes" | "tokens";
  readonly shader: () => Shader;
  readonly workgroups: readonly number[];
  readonly uniforms: Readonly<Record<string, number>>;
}[] {
  const few = (rows: number, outputs: number): RowsShape => ({ ...TEAM, columns, rows, outputs });
  const one = few(1, 1), some = few(2, 2);
  const ofShape = (shape: RowsShape) => [
    Math.ceil(ROWS / shape.rows) * Math.ceil(OUTPUTS / workgroupOutputs(shape)),
  ];
  const tiles = [Math.ceil(ROWS / tileRows(TILE)), Math.ceil(OUTPUTS / tileOutputs(TILE)), 1];
  const uniforms = { lines: OUTPUTS, first: 0, outputs: OUTPUTS, rows: ROWS };
  const tileUniforms = { ...uniforms, splits: 1 };
  const units = Math.ceil(columns / unitColumns(layout));
  const of = { layout, columns, packedDot };
  const all = FORMATS.map(([format]) => format).filter((format) => !ON_HARDWARE.test(format));
  return [
    {
      ...{ name: "a row, 8 bit", x: "bytes", uniforms, least: all },
      ...{ shader: () => gemvQ8({ ...one, ...of }), workgroups: ofShape(one) },
    },
    {
      ...{ name: "rows, 8 bit", x: "bytes", uniforms, least: IN_TILES },
      ...{ shader: () => gemvQ8({ ...some, ...of }), workgroups: ofShape(some) },
    },
    {
      ...{ name: "tiles, 8 bit", x: "bytes", uniforms: tileUniforms, least: IN_TILES },
      ...{ shader: () => gemmQ8({ ...TILE, ...of }), workgroups: tiles },
    },
    {
      ...{ name: "a row of floats", x: "floats", uniforms, least: OF_EACH_KIND },
      ...{ shader: () => gemvF32({ ...one, ...of }), workgroups: ofShape(one) },
    },
    {
      ...{ name: "rows of floats", x: "floats", uniforms, least: IN_TILES },
      ...{ shader: () => gemvF32({ ...some, ...of }), workgroups: ofShape(some) },
    },
    {
      ...{ name: "tiles of floats", x: "floats", uniforms: tileUniforms, least: IN_FLOAT_TILES },
      ...{ shader: () => gemmF32({ ...TILE, ...of }), workgroups: tiles },
    },
    {
      ...{
        name: "rows by token",
        x: "tokens",
        shader: () => embedShader(layout),
        least: IN_FLOAT_TILES,
      },
      workgroups: [Math.ceil(OUTPUTS * units / EMBED_BLOCK)],
      uniforms: {
        ...{ count: OUTPUTS * units, units, columns, first: 0, tokens_here: OUTPUTS, scale: 1 },
      },
    },
  ];
}

async function differences(format: string, columns: number): Promise<string[]> {
  const device = await testGpu();
  const gpu = createBufferScope(device);
  const layout = gpuLayoutOf(format, columns);
  const bytes = someBlocks(format, columns);
  const weights = new Float32Array(OUTPUTS * columns);
  getFormat(format).decode(bytes, weights);
  const floats = someNumbers(ROWS * columns, 9);
  const stride = q8RowBytes(columns);
  const rowsOfBytes = new Uint8Array(ROWS * stride);
  const rounded = new Float32Array(ROWS * columns);
  for (let row = 0; row < ROWS; row++) {
    const own = new Uint8Array(stride);
    quantizeQ8Row(floats.subarray(row * columns, (row + 1) * columns), own);
    dequantizeQ8Row(own, rounded.subarray(row * columns, (row + 1) * columns));
    rowsOfBytes.set(gpuRow(own, columns), row * stride);
  }
  const upload = (data: Uint8Array | Float32Array | Uint32Array): GpuSlice => {
    const buffer = gpu.createBuffer("test", data.byteLength, STORAGE_USAGE);
    gpu.device.queue.writeBuffer(buffer, 0, data as Uint8Array<ArrayBuffer>);
    return { buffer, offset: 0, bytes: data.byteLength, access: "read_write" };
  };
  try {
    const groups = Math.ceil(OUTPUTS / layout.rowGroup);
    const planes = layout.planeBytes(columns).map((size) => new Uint8Array(groups * size));
    layout.pack(bytes, { format, rows: OUTPUTS, columns }, planes);
    const weight = [...planes, ...layout.table ? [layout.table] : []].map(upload);
    const storage = Object.fromEntries(planeNames(layout.id).map((name, i) => [name, weight[i]!]));
    const inputs = {
      floats: { x: upload(floats) },
      bytes: { x: upload(rowsOfBytes) },
      tokens: { tokens: upload(Uint32Array.from({ length: OUTPUTS }, (_, i) => i)) },
    };
    const results = {
      floats: products(floats, weights, columns),
      bytes: products(rounded, weights, columns),
      tokens: weights,
    };
    const { packedDot, isSoftware } = gpu.capabilities;
    const kernels = kernelsOf(layout.id, columns, packedDot)
      .filter(({ x }) => x !== "bytes" || hasGpuIntegerKernel(format))
      .filter(({ least }) => !isSoftware || least.includes(format));
    const found: string[] = [];
    const ys = kernels.map(({ x }) => upload(results[x].map(() => NaN)));
    const program = await createProgram<object>(
      gpu,
      {
        dispatches: kernels.map((
          { name, x, shader, workgroups, uniforms },
          i,
        ): ProgramDispatch<object> => ({
          ...{ name, shader: shader(), workgroups, uniforms },
          storage: { ...inputs[x], ...storage, y: ys[i]! },
        })),
      },
    );
    program.bind({});
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    program.encode(pass);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    for (const [i, { name, x }] of kernels.entries()) {
      const got = new Float32Array((await readOnce(device, [ys[i]!])).buffer);
      const { error, most } = worst(got, results[x]);
      const allowed = x === "tokens" ? 2 ** -22 : 4e-6;
      if (!(error <= allowed * most)) found.push(`${name}: off by ${error} of ${most}`);
    }
    device.check();
    return found;
  } finally {
    gpu.free();
  }
}

for (const [format, columns] of FORMATS) {
  gpuTest(`kernels of ${gpuLayoutOf(format, columns).id} multiply by ${format}`, async () => {
    assertEquals(await differences(format, columns), []);
  });
}
