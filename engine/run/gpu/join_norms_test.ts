import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import type { PreparedPlan } from "../backend.ts";
import { tensorInMemory } from "../case_graph.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createGpuBackend, type GpuPlan } from "./backend.ts";

const COLUMNS = 640, BETWEEN = 96, OUTPUTS = 64, MOST_ROWS = 40;

/** Products that add something to their sums, and ones that norm what they are given, block by block: all are results. */
function blocksOf(
  { bias, gain, names = [""] }: {
    readonly bias: boolean;
    readonly gain: boolean;
    /** What the names of each block end in. */
    readonly names?: readonly string[];
  },
) {
  const builder = createGraphBuilder("blocks", getOp), random = createCaseRandom(11);
  const M = symbol("M", { max: MOST_ROWS });
  const weight = (name: string, format: string, ...shape: number[]) => {
    const record = getFormat(format), count = shape.reduce((a, b) => a * b, 1);
    const bytes = new Uint8Array(formatBytes(record, count));
    record.encode!(random.normal(count, shape.length === 1 ? 1 : shape[1]! ** -0.5), bytes);
    return builder.weight(name, tensorInMemory(name, { format, shape, bytes }));
  };
  const x = builder.input("x", [M, COLUMNS], "f32");
  let residual = builder.input("residual", [M, BETWEEN], "f32");
  const [codes] = builder.op("quantize", [x], { format: "q8" }, "codes");
  for (const name of names) {
    const [between] = builder.op(
      "matmul",
      [
        codes,
        weight(`w${name}`, "Q4_0", BETWEEN, COLUMNS),
        bias ? weight(`bias${name}`, "F32", BETWEEN) : undefined,
        residual,
      ],
      {},
      `sum${name}`,
    );
    const [y] = builder.op(
      "matmul",
      [
        between,
        weight(`v${name}`, "Q8_0", OUTPUTS, BETWEEN),
        undefined,
        undefined,
        gain ? weight(`gain${name}`, "F32", BETWEEN) : undefined,
      ],
      { normed: true, epsilon: 1e-5 },
      `behind${name}`,
    );
    builder.output(`between${name}`, between!);
    builder.output(`y${name}`, y!);
    residual = between!;
  }
  return plan(builder.build(), { limits: { M: MOST_ROWS } });
}

/** Results of so many rows of numbers that are the same for each. */
async function resultsOf(executable: PreparedPlan, rows: number) {
  const random = createCaseRandom(5);
  for (const [name, width] of [["x", COLUMNS], ["residual", BETWEEN]] as const) {
    executable.input(name).set(random.normal(rows * width) as never);
  }
  await executable.run({ M: rows });
  return ([["between", BETWEEN], ["y", OUTPUTS]] as const).map(([name, width]) =>
    [...executable.output(name).subarray(0, rows * width)] as number[]
  );
}

/** Names of the shaders that a step takes, with the sizes at hand. */
function shadersOf({ stepParts: { program } }: GpuPlan): string[] {
  const names: string[] = [];
  const pass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
  program.encodeApart((_, index) => {
    names.push(program.dispatches[index]!.shader.name);
    return pass as unknown as GPUComputePassEncoder;
  });
  return names;
}

for (const form of [{ bias: false, gain: true }, { bias: true, gain: false }]) {
  gpuTest(`splits are added up and normed at once, ${JSON.stringify(form)}`, async () => {
    const made = blocksOf(form);
    const executable = await createGpuBackend({ gpu: await testGpu() }).prepare(made, { slots: 1 });
    const reference = await createReferenceBackend().prepare(made, { slots: 1 });
    // One row, few of which no product is split, tiles of each height, and few again.
    for (const [rows, isJoined] of [[1, 0], [5, 0], [9, 1], [33, 1], [MOST_ROWS, 1], [2, 0]]) {
      const actual = await resultsOf(executable, rows!), names = shadersOf(executable);
      for (const [i, expected] of (await resultsOf(reference, rows!)).entries()) {
        const largest = Math.max(...expected.map(Math.abs));
        const off = Math.max(...expected.map((value, j) => Math.abs(value - actual[i]![j]!)));
        assert(off <= 4e-3 * largest, `${rows} rows, result ${i}: off by ${off} of ${largest}`);
      }
      const count = (name: string) => names.filter((one) => one === name).length;
      assertEquals(count("matmul_reduce_norm_q8"), isJoined, `${rows} rows: ${names}`);
      assert(!isJoined || count("rms_norm_q8") + count("matmul_reduce") <= 1, names.join());
    }
    executable.dispose();
    reference.dispose();
  });
}

gpuTest("layers of a kind share the shaders that add up and norm", async () => {
  const backend = createGpuBackend({ gpu: await testGpu() }), counts = [];
  for (const names of [["0", "1"], ["0", "1", "2", "3"]]) {
    const made = blocksOf({ bias: true, gain: true, names });
    const executable = await backend.prepare(made, { slots: 1 });
    const joined = executable.stepParts.program.dispatches.map(({ shader }) => shader)
      .filter(({ name }) => name === "matmul_reduce_norm_q8");
    counts.push({ all: joined.length, shaders: new Set(joined).size });
    executable.dispose();
  }
  const [two, four] = counts;
  assert(two!.all > 0);
  assertEquals(four, { all: 2 * two!.all, shaders: two!.shaders });
});
