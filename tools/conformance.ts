// `deno task conformance`: the ONNX backend tests of the PyPI wheel of `onnx`, on any device. A test is in
// the exclusions file with a reason, or it must pass. On a device it says how many tests ran wholly there, why the
// others did not, and fails if they were more before. Counts by op; the last line counts all.

import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { openDevice } from "../engine/run/devices.ts";
import { memorySource } from "../engine/io.ts";
import { readOnnx } from "../engine/onnx/file/open_onnx.ts";
import { readValue, type StoredValue } from "./conformance/read_value.ts";
import type { OnnxType } from "../engine/onnx/file/model.ts";
import { tensorOfFile, valueOfEntry } from "../engine/onnx/derivation/constants.ts";
import type { HostValue } from "../engine/onnx/derivation/tensor.ts";
import { openGraph } from "../engine/onnx/running/open_graph.ts";
import type { Runtime } from "../engine/onnx/running/ready_segment.ts";
import { expectEqual } from "./conformance/compare.ts";
import {
  counting,
  describePlaces,
  noPlaces,
  type Places,
  whyEvaluated,
} from "./conformance/places.ts";
import { type WheelTest, wheelTests } from "./conformance/wheel.ts";
import { givenGpu } from "./support/given_gpu.ts";
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
    gpu: { type: "string", value: "dawn|FILE", help: "who gives the GPU (Deno)" },
    all: { type: "boolean", help: "also run excluded tests" },
    ops: { type: "boolean", help: "print counts by op" },
    json: { type: "boolean", help: "one JSON line a test" },
    quiet: { type: "boolean", help: "only failures and the counts" },
  },
  examples: [
    ["deno task conformance", "all tests on the reference"],
    ["deno task conformance --device wasm --filter test_conv", "convolutions on WASM"],
    ["deno task conformance --gpu dawn", "on the GPU, with Chromium's WebGPU"],
  ],
} as const;

const MOST_BYTES = 2 ** 30;

interface Outcome {
  readonly name: string;
  readonly op: string;
  readonly outcome: "passed" | "failed" | "excluded";
  readonly reason?: string;
  readonly places?: Places;
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
  if (value.kind === "tensor") return valueOfEntry(tensorOfFile(value.tensor))!;
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

/** For JSON. */
function sets(_key: string, value: unknown): unknown {
  return value instanceof Set ? [...value] : value;
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
  const { backend } = runtime.device;
  const op = await opOf(test);
  const places = noPlaces();
  if (exclusion !== undefined) return { name, op, outcome: "excluded", reason: exclusion };
  try {
    await runTest(test, {
      ...runtime,
      device: { ...runtime.device, backend: counting(backend, { device: backend, places }) },
      reference: counting(runtime.reference, { device: backend, places }),
      onHostNode: ({ opType }) => places.elsewhere.add(whyEvaluated(opType)),
    });
    return { name, op, outcome: "passed", places };
  } catch (error) {
    return { name, op, outcome: "failed", reason: firstLine(error), places };
  }
}

function placesOf({ places }: Outcome): string {
  if (!places) return "";
  const elsewhere = places.elsewhere.size > 0
    ? `, elsewhere: ${[...places.elsewhere].join(", ")}`
    : "";
  return ` (${places.device} nodes on the device${elsewhere})`;
}

/** Fewest tests that run wholly on each device: a number that only grows. */
const LEAST = "tests/onnx_on_device.json";

/** Prints where tests were computed; false if fewer of all were on the device than have to be. */
function showPlaces(outcomes: readonly Outcome[], device: "wasm" | "gpu", all: boolean): boolean {
  const { whole, lines } = describePlaces(outcomes.flatMap(({ places }) => places ?? []));
  for (const line of lines) console.log(line);
  const least = JSON.parse(Deno.readTextFileSync(`${ROOT}/${LEAST}`))[device] as number;
  if (!all || whole >= least) return true;
  console.log(`${whole} tests ran wholly on the device: ${LEAST} wants ${least}`);
  return false;
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
  // --gpu alone means the GPU.
  const device = flags.device ?? (flags.gpu === undefined ? "reference" : "gpu");
  const given = await givenGpu({ gpu: flags.gpu, device });
  const runtime = {
    device: await openDevice(device, { threads: 1, shared: true, ...given }),
    reference: createReferenceBackend(),
    maxBytes: MOST_BYTES,
    limits: {},
  };
  const tests = (await wheelTests()).filter(({ name }) => name.includes(flags.filter ?? ""));
  const outcomes: Outcome[] = [];
  for (const test of tests) {
    const result = await runOne(
      test,
      runtime,
      flags.all ? undefined : exclusions[test.name],
    );
    outcomes.push(result);
    if (flags.json) console.log(JSON.stringify(result, sets));
    else if (result.outcome === "failed") console.log(`failed ${result.name}: ${result.reason}`);
    else if (!flags.quiet && flags.filter) {
      console.log(`${result.outcome} ${result.name}${placesOf(result)}`);
    }
  }
  if (flags.ops) showOps(outcomes);
  const isOnDevice = device === "reference" || showPlaces(outcomes, device, !flags.filter);
  const count = (outcome: string) => outcomes.filter((one) => one.outcome === outcome).length;
  console.log(
    `${count("passed")} passed, ${count("failed")} failed, ${count("excluded")} excluded`,
  );
  return count("failed") > 0 || tests.length === 0 || !isOnDevice ? 1 : 0;
});
