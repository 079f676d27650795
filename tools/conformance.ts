// `deno task conformance`: the ONNX backend tests of the PyPI wheel of `onnx`, on any device. A test is in
// the exclusions file with a reason, or it must pass. Counts by op; the last line counts all.

import type { Backend } from "../engine/plan/backend.ts";
import { createReferenceBackend } from "../engine/plan/reference_backend.ts";
import { openDevice } from "../engine/models/devices.ts";
import { memorySource } from "../engine/io.ts";
import { readOnnx } from "../engine/formats/onnx/open_onnx.ts";
import { readValue, type StoredValue } from "../engine/formats/onnx/read_value.ts";
import type { OnnxType } from "../engine/formats/onnx/model.ts";
import { valueOfFile } from "../engine/graph/onnx/stored.ts";
import type { HostValue } from "../engine/graph/onnx/tensor.ts";
import { openGraph } from "../engine/pipelines/graph/open_graph.ts";
import type { Runtime } from "../engine/pipelines/graph/ready_segment.ts";
import { expectEqual } from "./conformance/compare.ts";
import { type WheelTest, wheelTests } from "./conformance/wheel.ts";
import { ROOT, runTask } from "./support/task.ts";

const LINE = {
  name: "deno task conformance",
  summary: "Runs the ONNX backend tests of the PyPI wheel onnx 1.22.0 (fetched into the cache).",
  positionals: [],
  flags: {
    filter: { type: "string", value: "TEXT", help: "only tests whose name has this in it" },
    device: {
      type: "string",
      choices: ["reference", "wasm", "gpu"],
      help: "where tests run (reference)",
    },
    all: { type: "boolean", help: "also run excluded tests" },
    ops: { type: "boolean", help: "print counts by op" },
    json: { type: "boolean", help: "one JSON line a test" },
    quiet: { type: "boolean", help: "only failures and the counts" },
  },
  examples: [
    ["deno task conformance", "all tests on the reference"],
    ["deno task conformance --device wasm --filter test_conv", "convolutions on WASM"],
  ],
} as const;

const MOST_BYTES = 2 ** 30;

interface Outcome {
  readonly name: string;
  readonly op: string;
  readonly outcome: "passed" | "failed" | "excluded";
  readonly reason?: string;
  /** Nodes that the device's own kernels computed, and nodes that the host did. */
  readonly nodes?: NodeCounts;
}

interface NodeCounts {
  device: number;
  host: number;
}

/** Counts the nodes of everything that a backend makes ready. */
function counting(backend: Backend, counts: NodeCounts): Backend {
  return {
    name: backend.name,
    async prepare(plan, options) {
      const executable = await backend.prepare(plan, options);
      const { kernels } = executable as { readonly kernels?: readonly string[] };
      const onHost = kernels?.filter((kernel) => kernel.startsWith("host:")).length ??
        plan.steps.length;
      counts.host += onHost;
      counts.device += plan.steps.length - onHost;
      return executable;
    },
  };
}

async function runTest({ files }: WheelTest, runtime: Runtime): Promise<void> {
  const bytes = await files.get("model.onnx")!();
  const model = readOnnx(memorySource("model.onnx", bytes));
  const graph = openGraph(model, runtime);
  try {
    for (let set = 0; files.has(`test_data_set_${set}/output_0.pb`); set++) {
      const read = async (path: string, type: OnnxType | undefined) => {
        const source = memorySource(path, await files.get(path)!());
        return hostValue(readValue(source, type ?? { kind: "tensor", dtype: "f32" }));
      };
      const folder = `test_data_set_${set}`;
      const inputs = new Map<string, HostValue>();
      for (const [i, { name, type }] of graph.inputs.entries()) {
        const path = `${folder}/input_${i}.pb`;
        if (files.has(path)) inputs.set(name, await read(path, type));
      }
      const results = await graph.run(inputs);
      for (const [i, { name, type }] of graph.outputs.entries()) {
        const expected = await read(`${folder}/output_${i}.pb`, type);
        expectEqual(results.get(name)!, expected, name);
      }
    }
  } finally {
    graph.dispose();
  }
}

function hostValue(value: StoredValue): HostValue {
  if (value.kind === "tensor") return valueOfFile(value.tensor);
  if (value.kind === "sequence") return { dtype: "sequence", items: value.items.map(hostValue) };
  return { dtype: "optional", ...value.value && { value: hostValue(value.value) } };
}

async function opOf({ files }: WheelTest): Promise<string> {
  try {
    const model = readOnnx(memorySource("model.onnx", await files.get("model.onnx")!()));
    return model.graph.nodes[0]?.opType ?? "none";
  } catch {
    return "unreadable";
  }
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 300);
}

async function runOne(
  test: WheelTest,
  runtime: Runtime,
  exclusion: string | undefined,
): Promise<Outcome> {
  const { name } = test;
  const op = await opOf(test);
  const nodes: NodeCounts = { device: 0, host: 0 };
  if (exclusion !== undefined) return { name, op, outcome: "excluded", reason: exclusion };
  try {
    await runTest(test, {
      ...runtime,
      backend: counting(runtime.backend, nodes),
      reference: counting(runtime.reference, nodes),
    });
    return { name, op, outcome: "passed", nodes };
  } catch (error) {
    return { name, op, outcome: "failed", reason: firstLine(error), nodes };
  }
}

function placesOf({ nodes }: Outcome): string {
  return nodes ? ` (${nodes.device} on the device, ${nodes.host} on the host)` : "";
}

/** Where the tests were computed: nodes without a kernel of the device are computed on the host. */
function showPlaces(outcomes: readonly Outcome[]): void {
  const counts = outcomes.flatMap(({ nodes }) => nodes ?? []);
  const tests = (where: (nodes: NodeCounts) => boolean) => counts.filter(where).length;
  const whole = tests(({ device, host }) => device > 0 && host === 0);
  const partly = tests(({ device, host }) => device > 0 && host > 0);
  const onHost = tests(({ device, host }) => device === 0 && host > 0);
  // Folded when they were derived, or run by control flow alone.
  const rest = counts.length - whole - partly - onHost;
  console.log(
    `on the device: ${whole} whole, ${partly} in part; on the host: ${onHost}; without nodes: ${rest}`,
  );
}

function showOps(outcomes: readonly Outcome[]): void {
  const ops = new Map<string, Record<Outcome["outcome"], number>>();
  for (const { op, outcome } of outcomes) {
    const counts = ops.get(op) ?? { passed: 0, failed: 0, excluded: 0 };
    counts[outcome]++;
    ops.set(op, counts);
  }
  for (const [op, { passed, failed, excluded }] of [...ops].sort(([a], [b]) => a < b ? -1 : 1)) {
    console.log(`${op}: ${passed} passed, ${failed} failed, ${excluded} excluded`);
  }
}

await runTask(LINE, async ({ flags }) => {
  const exclusions = JSON.parse(
    Deno.readTextFileSync(`${ROOT}/tests/onnx_exclusions.json`),
  ) as Record<string, string>;
  const tests = (await wheelTests()).filter(({ name }) => name.includes(flags.filter ?? ""));
  const device = flags.device ?? "reference";
  const { backend } = await openDevice(device, { threads: 1, shared: true });
  const runtime = {
    backend,
    reference: createReferenceBackend(),
    maxBytes: MOST_BYTES,
    limits: {},
  };
  const outcomes: Outcome[] = [];
  for (const test of tests) {
    const result = await runOne(test, runtime, flags.all ? undefined : exclusions[test.name]);
    outcomes.push(result);
    if (flags.json) console.log(JSON.stringify(result));
    else if (result.outcome === "failed") console.log(`failed ${result.name}: ${result.reason}`);
    else if (!flags.quiet && flags.filter) {
      console.log(`${result.outcome} ${result.name}${placesOf(result)}`);
    }
  }
  if (flags.ops) showOps(outcomes);
  if (device !== "reference") showPlaces(outcomes);
  const count = (outcome: string) => outcomes.filter((one) => one.outcome === outcome).length;
  console.log(
    `${count("passed")} passed, ${count("failed")} failed, ${count("excluded")} excluded`,
  );
  return count("failed") > 0 || tests.length === 0 ? 1 : 0;
});
