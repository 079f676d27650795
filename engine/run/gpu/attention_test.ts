import { assertEquals } from "@std/assert";
import { attentionInputs, attentionList } from "../../ops/attention_inputs.ts";
import { tensorCases } from "../../ops/attention_tensor_cases.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { gpuWith, testGpu } from "../../../tests/support/gpu_cases.ts";
import type { Gpu } from "../../../gpu/gpu.ts";
import { canWalk } from "../../../gpu/kernels/attention/walk.ts";
import { createCaseRandom, createQuickRandom } from "../../ops/case_random.ts";
import type { CaseInput, OpCase } from "../../ops/op_case.ts";
import { ops } from "../../ops/mod.ts";
import { caseGraph } from "../case_graph.ts";
import { difference, runCase } from "../case_run.ts";
import { chooseKernel } from "../kernel_choice.ts";
import { createGpuBackend } from "./backend.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

const CAPACITY = 150;
const STYLES = ["subgroup", "workgroup"] as const;

interface Step {
  /** Query heads, key heads, channels of keys, of values. */
  readonly shape: readonly [number, number, number, number];
  readonly dtype: "f32" | "f16" | "q8_0";
  /** Position and slot of each row. */
  readonly rows: readonly (readonly [number, number])[];
  readonly window?: number;
  readonly softcap?: number;
  readonly sinks?: boolean;
  readonly slopes?: boolean;
  /** Positions of a cache; above 512 keys are split over workgroups. */
  readonly capacity?: number;
  /** Those of the rows that attend. */
  readonly picked?: readonly number[];
}

function attentionCase({ shape, dtype, rows, window = 0, softcap = 0, ...with_ }: Step): OpCase {
  const [heads, kvHeads, width, valueWidth] = shape;
  const random = createCaseRandom(11);
  const { capacity = CAPACITY } = with_;
  const slots = Math.max(2, ...rows.map(([, slot]) => slot + 1));
  const state = (channels: number): CaseInput => ({
    role: "state",
    dtype,
    shape: [capacity, kvHeads, channels],
    slots: Array.from({ length: slots }, () => random.normal(capacity * kvHeads * channels)),
  });
  return {
    name: `${rows.length} rows`,
    inputs: attentionList<CaseInput>({
      q: random.input([rows.length, heads, width]),
      k: state(width),
      v: state(valueWidth),
      positions: random.indices(rows.map(([position]) => position)),
      slots: random.indices(rows.map(([, slot]) => slot)),
      sinks: with_.sinks ? random.weight("F32", [heads]) : undefined,
      slopes: with_.slopes
        ? {
          role: "constant",
          dtype: "f32",
          shape: [heads],
          data: Float32Array.from({ length: heads }, (_, h) => 2 ** -(h + 1)),
        }
        : undefined,
      rows: with_.picked && random.indices(with_.picked),
    }),
    attributes: { scale: width ** -0.5, window, softcap },
  };
}

async function differs(
  opCase: OpCase,
  kernel: string,
  gpu?: Gpu,
): Promise<string | undefined> {
  const record = ops.get("attention")!;
  const expected = await runCase(createReferenceBackend(), { op: record, opCase });
  const backend = createGpuBackend({ gpu: gpu ?? await testGpu() });
  return difference(
    await runCase(backend, { op: record, opCase, kernel }),
    expected,
    record.tolerance!,
  );
}

function rowsFrom(first: number, count: number, slot = 0): (readonly [number, number])[] {
  return Array.from({ length: count }, (_, i) => [first + i, slot] as const);
}

const CHUNK = rowsFrom(37, 23);
// Runs of one session, alternating ones, and one whose cache is elsewhere.
const MIXED = [...rowsFrom(0, 7), [149, 1], [3, 0], [70, 1], ...rowsFrom(20, 12, 1)] as const;
/** Each of a session of its own. */
const APART = Array.from({ length: 11 }, (_, i) => [(i * 37) % 150, i] as const);

const CASES: readonly (readonly [name: string, step: Step])[] = [
  ["a chunk", { shape: [8, 2, 64, 64], dtype: "f16", rows: CHUNK }],
  ["a chunk, float32, loose widths", { shape: [3, 1, 18, 13], dtype: "f32", rows: CHUNK }],
  ["a chunk, float16, loose widths", { shape: [3, 3, 6, 10], dtype: "f16", rows: CHUNK }],
  ["a chunk in a window, capped", {
    ...{ shape: [4, 4, 16, 24], dtype: "f16", rows: CHUNK, window: 9, softcap: 3 },
  }],
  ["rows of several sessions", {
    ...{ shape: [6, 2, 32, 32], dtype: "f16", rows: MIXED, sinks: true, slopes: true },
  }],
  ["many heads of one key head", { shape: [40, 1, 16, 16], dtype: "f32", rows: CHUNK }],
  ["few rows, walked over in splits", {
    ...{ shape: [9, 3, 64, 64], dtype: "f16", rows: [[589, 1], [0, 0], [64, 1]] as const },
    ...{ capacity: 600, sinks: true },
  }],
  ["few rows, split", {
    ...{ shape: [4, 2, 16, 16], dtype: "f32", rows: [[589, 1], [0, 0]] as const, capacity: 600 },
  }],
  ["few rows, walked over", {
    ...{ shape: [9, 3, 64, 64], dtype: "f16", rows: [[149, 1], [0, 0], [64, 1]] as const },
    ...{ window: 120, sinks: true, slopes: true },
  }],
  ["few rows", { shape: [8, 2, 128, 128], dtype: "f16", rows: [[149, 1], [0, 0], [64, 1]] }],
  ["few rows, many heads of one key head", {
    ...{ shape: [20, 1, 24, 16], dtype: "f16", rows: [[149, 1], [31, 0]] as const },
    ...{ window: 100, sinks: true, slopes: true },
  }],
  ["a row of each of many sessions", {
    ...{ shape: [4, 2, 64, 64], dtype: "f16", rows: APART, sinks: true },
  }],
  ["a row of each of many sessions, split", {
    ...{ shape: [4, 2, 64, 64], dtype: "f16", rows: [...APART, [589, 11]], capacity: 600 },
  }],
  ["a row of each of many sessions, walked over in splits", {
    ...{ shape: [4, 2, 64, 64], dtype: "f16", rows: [...APART, [589, 11]], capacity: 600 },
  }],
  // None, few and many of rows that are each of another session.
  ...[[], [10, 0, 3], [9, 8, 7, 6, 5, 4, 3, 2, 1]].flatMap((picked) =>
    STYLES.map((style): readonly [string, Step] => [
      `${picked.length} of the rows of many sessions, by a ${style}`,
      {
        ...{ shape: [4, 2, 64, 64], dtype: "f16", rows: [...APART, [589, 11]] },
        ...{ capacity: 600, picked },
      },
    ])
  ),
  ["few rows in blocks, split", {
    ...{ shape: [6, 2, 96, 64], dtype: "q8_0", rows: [[149, 1], [0, 0], [64, 1]] as const },
    ...{ window: 70 },
  }],
  ["few rows in blocks, walked over", {
    ...{ shape: [9, 3, 64, 64], dtype: "q8_0", rows: [[149, 1], [0, 0], [64, 1]] as const },
    ...{ window: 67, slopes: true },
  }],
  ["a chunk in blocks", { shape: [4, 2, 64, 64], dtype: "q8_0", rows: CHUNK, window: 30 }],
  ["few rows in blocks, walked over in splits", {
    ...{ shape: [4, 2, 128, 128], dtype: "q8_0", rows: [[589, 1], [65, 0]] as const },
    ...{ capacity: 600 },
  }],
  ["a chunk of wide heads", {
    ...{ shape: [6, 2, 128, 128], dtype: "f16", rows: rowsFrom(61, 50), sinks: true, window: 70 },
  }],
  ["a chunk of wide heads, by tiles", {
    ...{ shape: [6, 2, 128, 128], dtype: "f16", rows: rowsFrom(61, 50), sinks: true, window: 70 },
  }],
  ["few rows of two channels, float32", {
    shape: [1, 1, 2, 2],
    dtype: "f32",
    rows: rowsFrom(0, 4),
  }],
  ["few rows of two channels", { shape: [1, 1, 2, 2], dtype: "f16", rows: rowsFrom(0, 4) }],
  ["few rows of fewer channels than walkers", {
    ...{ shape: [2, 1, 4, 4], dtype: "f32", rows: [[589, 1], [3, 0]] as const, capacity: 600 },
  }],
];

for (const [i, [name, step]] of CASES.entries()) {
  gpuTest(`GPU attention of ${name} is the reference's`, async () => {
    const [heads, kvHeads, width, valueWidth] = step.shape;
    const shape = { heads, kvHeads, width, valueWidth, dtype: step.dtype };
    const { capabilities: { subgroupSize } } = await testGpu();
    const style = canWalk(shape, subgroupSize) ? STYLES[i % 2]! : "workgroup";
    assertEquals(
      await differs(attentionCase(step), `gpu_attention_${style}`),
      undefined,
    );
  });
}

gpuTest(
  "GPU attention of a row from its product, of several heads a workgroup, deals scores out",
  async () => {
    const op = ops.get("attention")!, { capabilities } = await testGpu();
    const cases = op.cases!(createQuickRandom(15)).filter(({ name }) =>
      /^32.(8|16) heads/.test(name!)
    );
    assertEquals(cases.length, 7);
    const kernel = `gpu_attention_${capabilities.subgroupSize < 8 ? "workgroup" : "fresh"}`;
    for (const opCase of cases) {
      const expected = await runCase(createReferenceBackend(), { op, opCase });
      const actual = await runCase(createGpuBackend({ gpu: await testGpu() }), {
        op,
        opCase,
        kernel,
      });
      const tolerance = opCase.tolerance ?? op.tolerance!;
      assertEquals(difference(actual, expected, tolerance), undefined, opCase.name);
    }
  },
);

gpuTest("GPU attention takes smaller tiles where there is less workgroup memory", async () => {
  const gpu = await gpuWith({ maxWorkgroupBytes: 16_384 });
  for (const rows of [CHUNK.slice(0, 12), CHUNK.slice(0, 2)]) {
    const step: Step = { shape: [4, 1, 256, 256], dtype: "f16", rows };
    const kernel = "gpu_attention_workgroup";
    assertEquals(await differs(attentionCase(step), kernel, gpu), undefined);
  }
});

gpuTest("what is no number in a session's cache spoils no other session's rows", async () => {
  const rows = [...rowsFrom(30, 6), ...rowsFrom(11, 7, 1), ...rowsFrom(36, 6)];
  const opCase = attentionCase({ shape: [4, 2, 32, 32], dtype: "f16", rows });
  const [, , v] = opCase.inputs as readonly (CaseInput & { readonly slots: Float32Array[] })[];
  v!.slots[0]!.fill(NaN, 20 * 64, 21 * 64);
  const { capabilities: { subgroupSize } } = await testGpu();
  for (const style of STYLES) {
    if (style === "subgroup" && subgroupSize < 8) continue;
    assertEquals(await differs(opCase, `gpu_attention_${style}`), undefined);
  }
});

gpuTest("spans of many rows are attended to by tiles, empty ones give zeros", async () => {
  const random = createCaseRandom(12);
  const rows = 37, heads = 4, width = 32;
  // Sequences of 1, 19 and 17 rows; some rows see nothing.
  const starts = Array.from({ length: rows }, (_, i) => i < 1 ? 0 : i < 20 ? 1 : 20);
  const ends = starts.map((start, i) =>
    i % 9 === 5 ? start : start === 0 ? 1 : start === 1 ? 20 : 37
  );
  const opCase: OpCase = {
    name: "sequences",
    inputs: attentionList({
      q: random.input([rows, heads, width]),
      k: random.input([rows, heads, width]),
      v: random.input([rows, heads, width]),
      starts: random.indices(starts),
      ends: random.indices(ends),
      positions: random.indices(starts.map((start, i) => i - start)),
      bias: random.input([heads, 11]),
    }),
    attributes: { scale: width ** -0.5 },
  };
  assertEquals(await differs(opCase, "gpu_attention_workgroup"), undefined);
});

gpuTest("rows that have queries, keys and values side by side are attended with", async () => {
  const cases = ops.get("attention")!.cases!(createCaseRandom(13))
    .filter(({ name }) => name!.endsWith("side by side"));
  assertEquals(cases.length, 5);
  const { capabilities: { subgroupSize } } = await testGpu();
  for (const opCase of cases) {
    const [, all, width] = opCase.inputs[0]!.shape as [number, number, number];
    const kvHeads = opCase.attributes!.kv_heads as number, heads = all - 2 * kvHeads;
    const walks = canWalk({ heads, kvHeads, width, valueWidth: width, dtype: "f32" }, subgroupSize);
    for (const style of walks ? STYLES : ["workgroup"]) {
      assertEquals(await differs(opCase, `gpu_attention_${style}`), undefined, opCase.name);
    }
  }
});

gpuTest(
  "heads in tensors are attended with in all their forms, new rows and wide heads too",
  async () => {
    const random = createCaseRandom(14);
    const op = ops.get("attention")!;
    const wide: OpCase = {
      name: "wide heads",
      inputs: [[2, 40, 330], [2, 70, 330], [2, 70, 500]].map((shape) => random.input(shape)),
      attributes: { q_heads: 1, kv_heads: 1, scale: 0.1 },
    };
    const kernel = "gpu_attention_tensors", backend = createGpuBackend({ gpu: await testGpu() });
    const forms =
      /^(planes of heads, mask|one row, cap|5 rows behind|5 new .* mask|41 .* mask|two rows)/;
    const cases = [wide, ...tensorCases(random).filter(({ name }) => forms.test(name!))];
    assertEquals(cases.length, 8);
    for (const opCase of cases) {
      const expected = await runCase(createReferenceBackend(), { op, opCase });
      const actual = await runCase(backend, { op, opCase, kernel });
      assertEquals(difference(actual, expected, op.tolerance!), undefined, opCase.name);
    }
    // Tiles of so wide heads would be of few rows.
    const narrow = await gpuWith({ maxWorkgroupBytes: 16_384 });
    const node = caseGraph("attention", wide).nodes[0]!;
    assertEquals(
      chooseKernel(GPU_KERNELS, { node, capabilities: narrow.capabilities })?.name,
      kernel,
    );
  },
);

gpuTest("GPU attention has no list of rows where a device binds too few for one", async () => {
  const step: Step = { shape: [4, 2, 16, 16], dtype: "f16", rows: CHUNK, sinks: true };
  const { capabilities } = await gpuWith({ maxStorageBindings: 8 });
  const chosen = (more: Partial<Step>) => {
    const node = caseGraph("attention", attentionCase({ ...step, ...more })).nodes[0]!;
    return chooseKernel(GPU_KERNELS, { node, capabilities }) !== undefined;
  };
  const picked = [3, 1], slopes = true;
  assertEquals([{ picked }, { slopes }, { picked, slopes }].map(chosen), [true, true, false]);
});

gpuTest(
  "rotated heads that take more bindings than a device has are stored kind by kind",
  async () => {
    const op = ops.get("attention")!;
    const cases = op.cases!(createCaseRandom(15)).filter(({ name, attributes, inputs }) => {
      const { query_norm, new_k } = attentionInputs(inputs);
      return (attributes?.style ?? "none") !== "none" && (query_norm || new_k) &&
        / rows at (3 4 5|70)/.test(name!);
    });
    const backend = createGpuBackend({ gpu: await gpuWith({ maxStorageBindings: 8 }) });
    for (const opCase of cases) {
      const expected = await runCase(createReferenceBackend(), { op, opCase });
      const actual = await runCase(backend, { op, opCase });
      const tolerance = opCase.tolerance ?? op.tolerance!;
      assertEquals(difference(actual, expected, tolerance), undefined, opCase.name);
    }
    assertEquals(cases.length, 16);
  },
);
