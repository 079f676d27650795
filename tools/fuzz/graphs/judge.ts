// Judges a graph: the device with all passes beside the reference without any, and beside onnxruntime where it is
// there. Where numbers differ, the reference runs again with every float moved by a last bit or so: what a
// graph itself blows up is no fault of a device.

import { ELEMENT_TYPES } from "../../../engine/onnx/file/data_types.ts";
import { readOnnx } from "../../../engine/onnx/file/open_onnx.ts";
import { numbersOf } from "../../../engine/ops/host_numbers.ts";
import {
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../../../engine/ops/host_tensor.ts";
import { isHostTensor } from "../../../engine/onnx/derivation/tensor.ts";
import { memorySource } from "../../../engine/io.ts";
import { openGraph } from "../../../engine/onnx/running/open_graph.ts";
import { type Device, openDevice } from "../../../engine/run/devices.ts";
import { type Tensor, writeOnnx } from "../../../tests/support/write_onnx.ts";
import { createDraw, type Draw } from "../../support/draw.ts";
import { difference, distance, largestOf } from "./compare.ts";
import type { Peer, Tensors } from "./peer.ts";
import { countOf } from "./sizes.ts";
import { bytesOf, type GraphCase } from "./writer.ts";

/** What came of a graph. */
export type Verdict =
  /** All agree. */
  | { readonly kind: "same" }
  /** All agree, but for onnxruntime, which does not run it. */
  | { readonly kind: "alone"; readonly message: string }
  /** Something is wrong. */
  | {
    readonly kind: "failure";
    /** What disagrees with the reference, or throws. */
    readonly who: "device" | "device error" | "peer" | "reference";
    readonly message: string;
  };

/** Who judges. */
export interface Judges {
  readonly device: Device;
  readonly peer: Peer | undefined;
}

const REFERENCE = await openDevice("reference", {});
const MOST_BYTES = 2 ** 28;
const VERSIONS = { "com.microsoft": 1, "": 0 };

/** The bytes of a case's model. */
export function modelOf({ graph, opset }: GraphCase): Uint8Array<ArrayBuffer> {
  return writeOnnx(graph, { opsets: { ...VERSIONS, "": opset } });
}

/** Runs a case, one binding after another on the same loaded graph. */
export async function runCase(
  given: GraphCase,
  { device, withoutPasses }: { readonly device: Device; readonly withoutPasses?: boolean },
): Promise<Tensors[]> {
  const graph = openGraph(readOnnx(memorySource("fuzz", modelOf(given))), {
    device,
    reference: REFERENCE.backend,
    maxBytes: MOST_BYTES,
    limits: {},
    withoutPasses,
  });
  try {
    const results: Tensors[] = [];
    for (const run of given.runs) {
      const tensors = new Map<string, HostTensor>();
      for (const [name, value] of await graph.run(run)) {
        if (!isHostTensor(value)) throw new TypeError(`${name} is no tensor`);
        // Devices may give a view of memory that the next run writes.
        tensors.set(name, { ...value, data: value.data.slice() } as HostTensor);
      }
      results.push(tensors);
    }
    return results;
  } finally {
    graph.dispose();
  }
}

/** Runs a case on the reference alone. */
export function referenceRun(given: GraphCase): Promise<Tensors[]> {
  return runCase(given, { device: REFERENCE, withoutPasses: true });
}

/** Compares everything that can run a case. */
export async function judge(given: GraphCase, { device, peer }: Judges): Promise<Verdict> {
  const second = await peer?.run(modelOf(given), given.runs);
  let wanted: Tensors[];
  try {
    wanted = await referenceRun(given);
  } catch (error) {
    const message = `the reference refuses: ${textOf(error)}`;
    if (typeof second === "string") return { kind: "alone", message: `${message}; ${second}` };
    return { kind: "failure", who: "reference", message };
  }
  let actual: Tensors[];
  try {
    actual = await runCase(given, { device });
  } catch (error) {
    const message = `${device.backend.name} throws: ${textOf(error)}`;
    return { kind: "failure", who: "device error", message };
  }
  const found = await realDifference(given, actual, wanted);
  if (found) return { kind: "failure", who: "device", message: `${device.backend.name}: ${found}` };
  if (typeof second === "string") return { kind: "alone", message: second };
  const apart = second && await realDifference(given, second, wanted);
  if (apart) {
    return { kind: "failure", who: "peer", message: `onnxruntime: ${apart} by the reference` };
  }
  return { kind: "same" };
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

const TRIES = 3;
// What rounding at each of some tens of nodes may come to, beside a single move of what comes in.
const MOST_TIMES = 16;

async function realDifference(
  given: GraphCase,
  actual: readonly Tensors[],
  expected: readonly Tensors[],
): Promise<string | undefined> {
  if (!difference(actual, expected)) return undefined;
  const room = new Map<string, number>();
  const straight = await referenceRun(given);
  const { nodes, outputs } = given.graph;
  const isHalf = outputs.some(([, type]) => type === HALF) || nodes.some(castsToHalf);
  const coarse = await largestInside(given) * 2 ** (isHalf ? -8 : -22);
  for (let i = 0; i < TRIES; i++) {
    const moved = await referenceRun(nudged(given, createDraw(1, i)));
    for (const [run, tensors] of straight.entries()) {
      for (const [name, tensor] of tensors) {
        const key = `${run} ${name}`;
        const apart = distance(tensor, moved[run]!.get(name)!);
        room.set(key, Math.max(room.get(key) ?? 0, apart));
      }
    }
  }
  return difference(
    actual,
    expected,
    (run, name) => coarse + MOST_TIMES * room.get(`${run} ${name}`)!,
  );
}

const HALF = 10, BFLOAT16 = 16;

function castsToHalf({ op, attributes }: GraphCase["graph"]["nodes"][number]): boolean {
  const { i } = attributes?.to as { readonly i?: number } ?? {};
  return op === "Cast" && (i === HALF || i === BFLOAT16);
}

// Larger ones are what masks hide with.
const LARGEST = 1e5;

/** Largest magnitude on the way through a graph, a last bit of which may be all that a sum leaves. */
async function largestInside({ graph, ...given }: GraphCase): Promise<number> {
  const needed = new Set(graph.nodes.flatMap(({ inputs }) => inputs));
  const names = graph.nodes.flatMap(({ outputs }) => outputs).filter((name) => needed.has(name));
  const outputs = [...graph.outputs, ...names.map((name) => [name, HALF, []] as const)];
  const results = await referenceRun({ ...given, graph: { ...graph, outputs } });
  return Math.max(
    ...results.flatMap((run) => [...run.values()].map((tensor) => largestOf(tensor, LARGEST))),
  );
}

const STEPS: Readonly<Record<string, number>> = { f32: 2 ** -22, f64: 2 ** -22, f16: 2 ** -10 };

/** The case with every float a little off. */
function nudged(given: GraphCase, draw: Draw): GraphCase {
  const { graph, runs } = given;
  return {
    ...given,
    runs: runs.map((run) =>
      new Map([...run].map(([name, tensor]) => [name, nudgedTensor(tensor, draw)]))
    ),
    graph: {
      ...graph,
      initializers: (graph.initializers ?? []).map((tensor) => nudgedConstant(tensor, draw)),
    },
  };
}

function nudgedTensor(tensor: HostTensor, draw: Draw): HostTensor {
  const step = STEPS[tensor.dtype];
  if (step === undefined) return tensor;
  const moved = { ...tensor, data: tensor.data.slice() } as HostTensor;
  for (let i = 0; i < moved.data.length; i++) {
    setElement(moved, { index: i, value: getElement(tensor, i) * (1 + step * (draw(3) - 1)) });
  }
  return moved;
}

// Whole numbers mean what they say: exponents, limits, factors of sizes.
function nudgedConstant(tensor: Tensor, draw: Draw): Tensor {
  const dtype = ELEMENT_TYPES.get(tensor.type)!.dtype;
  if (dtype !== "f32" && dtype !== "f16") return tensor;
  const shape = tensor.dims.map(Number), count = countOf(shape);
  if (count <= 1 || !tensor.raw) return tensor;
  const host = { dtype, shape, data: hostArray(dtype, { count }) };
  bytesOf(host).set(tensor.raw);
  const isWhole = numbersOf(host).every(Number.isInteger);
  return isWhole ? tensor : { ...tensor, raw: bytesOf(nudgedTensor(host, draw)) };
}
