// Kernels on subgroup matrices, which few cards have: emulated on whatever adapter there is.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { differingRows } from "../../../tests/support/gpu_cases.ts";
import { matrixProvider } from "../../../tests/support/matrix_emulation.ts";
import { openGpu } from "../../../gpu/gpu.ts";
import { attentionMatrix, attentionMatrixBytes } from "../../../gpu/kernels/attention/matrix.ts";
import { MATMUL_TUNING } from "../../../gpu/kernels/matmul/tuning.ts";
import { rowsRule } from "../../../gpu/kernels/attention/spans.ts";
import { matrixSizes } from "../../../gpu/kernels/attention/tuning.ts";
import { textOf } from "../../../tests/support/shader_snapshot.ts";
import { attentionList } from "../../ops/attention_inputs.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { matmulCase, quantized } from "../../ops/matmul_cases.ts";
import type { CaseInput, CaseRandom, OpCase } from "../../ops/op_case.ts";
import { ops } from "../../ops/mod.ts";
import type { Backend } from "../backend.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createGpuBackend } from "./backend.ts";
import { INTEGERS } from "./lower/matmul.ts";
import { selfTested } from "./self_tests.ts";

/** Of attention: roundings to float16, then to 8 bit. */
const IN_BYTES = { ofLargest: 1 / 127, reason: "roundings to float16, then to 8 bit" };

interface Attention {
  /** Query heads, key heads, channels of keys, of values. */
  readonly shape: readonly [number, number, number, number];
  /** Position and slot of each row. */
  readonly rows: readonly (readonly [number, number])[];
  readonly window?: number;
  readonly softcap?: number;
  /** Whether there are sinks and slopes. */
  readonly besides?: boolean;
  /** What queries are multiplied by. */
  readonly loud?: number;
}

function attentionCase(random: CaseRandom, wanted: Attention): OpCase {
  const { shape: [heads, kvHeads, width, valueWidth], rows, loud = 1 } = wanted;
  const { window = 0, softcap = 0, besides = false } = wanted;
  const state = (channels: number): CaseInput => ({
    ...{ role: "state", dtype: "f16", shape: [150, kvHeads, channels] },
    slots: [0, 1].map(() => random.normal(150 * kvHeads * channels)),
  });
  const q = random.input([rows.length, heads, width]) as CaseInput & { data: Float32Array };
  return {
    name: "attention",
    inputs: attentionList<CaseInput>({
      ...{ q: { ...q, data: q.data.map((x) => x * loud) } as CaseInput },
      ...{ k: state(width), v: state(valueWidth) },
      positions: random.indices(rows.map(([position]) => position)),
      slots: random.indices(rows.map(([, slot]) => slot)),
      ...besides && {
        sinks: random.weight("F32", [heads]),
        slopes: {
          ...{ role: "constant", dtype: "f32", shape: [heads] },
          data: Float32Array.from({ length: heads }, (_, h) => 2 ** -(h + 1)),
        },
      },
    }),
    attributes: { scale: width ** -0.5 / loud, window, softcap, to: "q8" },
  };
}

function rowsFrom(first: number, count: number, slot = 0): (readonly [number, number])[] {
  return Array.from({ length: count }, (_, i) => [first + i, slot] as const);
}

const CHUNK = rowsFrom(57, 23);
const MIXED = [...rowsFrom(0, 7), [149, 1], [3, 0], [70, 1], ...rowsFrom(20, 12, 1)] as const;

const ATTENTIONS: readonly Attention[] = [
  { shape: [6, 2, 32, 32], rows: MIXED, besides: true },
  { shape: [3, 3, 16, 64], rows: CHUNK, window: 9, softcap: 3, loud: 1e9 },
];

gpuTest("attention on subgroup matrices is the reference's", async () => {
  const op = ops.get("attention")!, gpu = await openGpu({ provider: matrixProvider() });
  const backend = createGpuBackend({ gpu }), random = createCaseRandom(15);
  for (const wanted of ATTENTIONS) {
    const [heads, kvHeads, width, valueWidth] = wanted.shape;
    const shape = { heads, kvHeads, width, valueWidth, dtype: "f16" } as const;
    assert(matrixSizes(shape, gpu.capabilities));
    const opCase = attentionCase(random, wanted);
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    const actual = await runCase(backend, { op, opCase, kernel: "gpu_attention_workgroup" });
    assertEquals(difference(actual, expected, IN_BYTES), undefined, JSON.stringify(wanted));
  }
  gpu.dispose();
});

gpuTest(
  "what is no number in a session's cache leaves other sessions' matrices alone",
  async () => {
    const op = ops.get("attention")!, gpu = await openGpu({ provider: matrixProvider() });
    const rows = [...rowsFrom(30, 6), ...rowsFrom(11, 7, 1), ...rowsFrom(36, 6)];
    const opCase = attentionCase(createCaseRandom(17), { shape: [4, 2, 32, 32], rows });
    const [, , v] = opCase.inputs as readonly (CaseInput & { readonly slots: Float32Array[] })[];
    v!.slots[0]!.fill(NaN, 20 * 64, 21 * 64);
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    const kernel = "gpu_attention_workgroup", backend = createGpuBackend({ gpu });
    const actual = await runCase(backend, { op, opCase, kernel });
    assertEquals(difference(actual, expected, IN_BYTES), undefined);
    gpu.dispose();
  },
);

Deno.test("a tile of attention declares as much workgroup memory as is counted for it", () => {
  for (const [width, valueWidth, block] of [[64, 64, 64], [128, 128, 32], [16, 96, 32]] as const) {
    const size = { width, valueWidth, subgroups: 4, block };
    const text = textOf(attentionMatrix({
      ...{ ...size, heads: 4, kvHeads: 1, tileHeads: 4, dtype: "f16", subgroupSize: 32 },
      ...{ rule: rowsRule({ scale: 1, positions: true }), sinks: false },
    }));
    const bytes = { "vec4<f16>": 8, "vec4<f32>": 16, f32: 4, Span: 16 } as const;
    const arrays = /var<workgroup> \w+: array<(vec4<f16>|vec4<f32>|f32|Span), (\d+)>/g;
    const declared = [...text.matchAll(arrays)].reduce(
      (sum, [, type, count]) => sum + bytes[type as keyof typeof bytes] * Number(count),
      0,
    );
    const counted = attentionMatrixBytes(size);
    assert(declared + 20 <= counted && counted <= declared + 1024, `${declared} of ${counted}`);
  }
});

/** One whole tile, and parts of others; odd outputs are no whole quads, and have a bias. */
const ROWS = 70, OUTPUTS = 68, ODD_OUTPUTS = 67, OF_LARGEST = 2e-3;

/** Of scales for a group, with minima, for halves of a group, with minima, and for both signs. */
const FORMATS = ["Q8_0", "Q4_K", "Q6_K", "Q2_K", "Q8_GL_256"];

/** A product of more rows than teams take, by activations of such a size; `adds`: the last input is added to it. */
function product(
  loudness: number,
  { format = "Q4_0", columns = 96, outputs = OUTPUTS, adds = false } = {},
): OpCase {
  const random = createCaseRandom(16);
  const { inputs: [x, weight, bias], ...rest } = matmulCase(random, {
    ...{ format, columns, rows: ROWS, outputs },
  });
  const louder = (input: CaseInput): CaseInput => {
    const { data } = input as { readonly data: Float32Array };
    return { ...input, data: data.map((value) => loudness * value) } as CaseInput;
  };
  const inputs = adds
    ? [louder(x!), weight, bias, louder(random.input([x!.shape[0]!, outputs], rest.bindings))]
    : [louder(x!), weight, ...bias ? [bias] : []];
  return quantized({ ...rest, inputs });
}

gpuTest("products on subgroup matrices are the reference's, of large activations too", async () => {
  const gpu = await openGpu({ provider: matrixProvider({ isSmall: true }) });
  assert(gpu.capabilities.subgroupMatrix);
  for (const what of [{ adds: true }, {}, { outputs: ODD_OUTPUTS }]) {
    const kernel = `gpu_matmul_${"adds" in what ? "add_" : ""}q8_workgroup`;
    const run = { gpu, kernel, rows: [ROWS], ofLargest: OF_LARGEST };
    assertEquals(await differingRows("matmul", product(60_000, what), run), []);
  }
  gpu.dispose();
});

gpuTest("a row that is not finite leaves the others of its matrix as they are", async () => {
  const gpu = await openGpu({ provider: matrixProvider({ isSmall: true }) });
  for (const special of [NaN, Infinity]) {
    const { inputs: [x, ...others], ...rest } = product(1), { data } = x as { data: Float32Array };
    const opCase = {
      ...rest,
      inputs: [{ ...x, data: data.with(2 * 96 + 7, special) } as CaseInput, ...others],
    };
    const run = { gpu, kernel: "gpu_matmul_q8_workgroup", rows: [ROWS], ofLargest: OF_LARGEST };
    assertEquals(await differingRows("matmul", opCase, run), []);
  }
  gpu.dispose();
});

gpuTest(
  "products of codes by few rows have a tile of their own where matrices are large",
  async () => {
    const gpu = await openGpu({ provider: matrixProvider() });
    const size = { layout: "u4_d", format: "Q4_0", columns: 4096, parts: [] };
    const rowsOf = (rows: number) =>
      INTEGERS.many({ ...size, rows }, gpu.capabilities).map(({ most, rows }) => [most, rows]);
    assertEquals(rowsOf(4096), [[16, 16], [32, 32], [Infinity, 128]]);
    assertEquals(rowsOf(14_336), [[16, 16], [32, 32], [Infinity, 128]]);
    const names = (rows: number) =>
      INTEGERS.many({ ...size, rows }, gpu.capabilities).map((tile) => tile.shader().name);
    assertEquals(names(4096), ["matmul_gemm_u4_d", "matmul_gemm_u4_d", "matmul_matrix_u4_d"]);
    assertEquals(names(14_336), ["matmul_gemm_u4_d", "matmul_matrix_u4_d", "matmul_matrix_u4_d"]);
    // As if all were.
    const few = MATMUL_TUNING.fewMatrixTile as { numbers: number }, { numbers } = few;
    try {
      few.numbers = 0;
      for (const outputs of [OUTPUTS, 4 * ODD_OUTPUTS]) {
        const opCase = product(1, { columns: 640, outputs });
        const run = { gpu, kernel: "gpu_matmul_q8_workgroup", ofLargest: OF_LARGEST };
        const rows = [11, 21, 32, ROWS];
        assertEquals(await differingRows("matmul", opCase, { ...run, rows }), []);
      }
    } finally {
      few.numbers = numbers;
    }
    gpu.dispose();
  },
);

gpuTest("numbers of all kinds of scales become halves", async () => {
  const gpu = await openGpu({ provider: matrixProvider({ isSmall: true }) });
  for (const format of FORMATS) {
    const run = { gpu, kernel: "gpu_matmul_q8_workgroup", rows: [ROWS], ofLargest: OF_LARGEST };
    const opCase = product(1, { format, columns: 256, outputs: 20 });
    assertEquals(await differingRows("matmul", opCase, run), [], format);
  }
  gpu.dispose();
});

gpuTest(
  "products of floats by halves on subgroup matrices are as near as those of floats",
  async () => {
    const gpu = await openGpu({ provider: matrixProvider() });
    const opCase = matmulCase(createCaseRandom(18), {
      ...{ format: "F16", columns: 96, rows: 70, outputs: 35 },
    });
    const run = { gpu, kernel: "gpu_matmul_f32_workgroup", rows: [70] };
    assertEquals(await differingRows("matmul", opCase, run), []);
    gpu.dispose();
  },
);

gpuTest(
  "gated products by halves on subgroup matrices are as near as those of floats",
  async () => {
    const gpu = await openGpu({ provider: matrixProvider() }), random = createCaseRandom(19);
    for (const bias of [true, false]) {
      const { inputs: [x, weight], ...rest } = matmulCase(random, {
        ...{ format: "F16", columns: 64, rows: 70, outputs: 2 * 51 },
      });
      const inputs = [x, weight, ...bias ? [random.weight("F32", [2 * 51])] : []];
      const opCase = { ...rest, inputs, attributes: { ...rest.attributes, gate: "gelu" } };
      const run = { gpu, kernel: "gpu_matmul_glu_f32_workgroup", rows: [70] };
      assertEquals(await differingRows("matmul", opCase, run), []);
    }
    gpu.dispose();
  },
);

/** Windows as networks of pictures have them, with channels, filters and places beside whole tiles. */
const CONVOLUTIONS = [
  [[2, 20, 7, 9], [70, 20, 3, 3], { pads: [1, 1, 1, 1], activation: "silu" }],
  [[1, 64, 20, 21], [150, 64, 3, 3], { strides: [2, 2], pads: [0, 0, 1, 1], dilations: [1, 2] }],
  [[2, 16, 5, 6], [17, 16, 3, 3], { pads: [1, 1, 1, 1], repeats: [2, 3] }],
  [[2, 96, 8, 9], [40, 96, 1, 1], {}],
  [[1, 33, 9, 10], [16, 33, 2, 3], { activation: "relu" }],
] as const;

gpuTest("convolutions by halves on subgroup matrices are as near as those of floats", async () => {
  const op = ops.get("conv")!, gpu = await openGpu({ provider: matrixProvider() });
  const backend = createGpuBackend({ gpu }), random = createCaseRandom(20);
  for (const [i, [shape, w, attributes]] of CONVOLUTIONS.entries()) {
    const [images] = shape, x = random.input(shape), { data } = x as { data: Float32Array };
    // The first image is quiet: each has a divisor of its own.
    const loud = data.map((value, at) => at < data.length / images ? value : 1e6 * value);
    const bias = i % 2 ? undefined : random.weight("F32", [w[0]]);
    const opCase: OpCase = {
      ...{ name: `[${shape}] * [${w}]`, attributes },
      inputs: [{ ...x, data: loud } as CaseInput, random.weight("F16", w), bias],
    };
    const byImage = async (wanted: Backend, kernel?: string) => {
      const [all] = [...(await runCase(wanted, { op, opCase, kernel })).values()];
      const size = all!.length / images;
      return new Map(
        Array.from(
          { length: images },
          (_, n) => [`image ${n}`, all!.slice(n * size, (n + 1) * size)] as const,
        ),
      );
    };
    const actual = await byImage(backend, "gpu_conv_halves_f32");
    const expected = await byImage(createReferenceBackend());
    const found = difference(actual, expected, { ofLargest: 1e-5, reason: "order of sums" });
    assertEquals(found, undefined, opCase.name);
  }
  gpu.dispose();
});

gpuTest("subgroup matrices that compute wrong are left out", async () => {
  const provider = matrixProvider({ areWrong: true, isSmall: true }),
    cacheDir = await Deno.makeTempDir();
  const backend = selfTested(createGpuBackend({ provider }), { provider, cacheDir });
  const op = ops.get("matmul")!, opCase = product(1);
  const expected = await runCase(createReferenceBackend(), { op, opCase });
  const actual = await runCase(backend, { op, opCase });
  assertEquals(difference(actual, expected, { ofLargest: OF_LARGEST, reason: "" }), undefined);
  const found = await Deno.readTextFile(`${cacheDir}/self-tests.json`);
  assertMatch(found, /"gpu_matmul_q8_\w+ Q4_0": false/);
  assertMatch(found, /"gpu_matmul_q8_\w+ Q4_0 without subgroup_matrices": true/);
  await Deno.remove(cacheDir, { recursive: true });
});
