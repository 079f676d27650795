// Where the nodes of a test were computed, and why not on the device: by what stands in the way first, from
// values that no device holds to a kernel that nobody has written.

import { isInteger, isWide } from "../../engine/ops/data_types.ts";
import type { DataType, Node } from "../../engine/graph/graph.ts";
import { hasKernel } from "../../engine/run/kernel_choice.ts";
import type { Backend } from "../../engine/run/backend.ts";

/** What was computed where. */
export interface Places {
  /** Nodes that the device's own kernels computed. */
  device: number;
  /** Nodes that the reference or another device computed, and ONNX ops that the host evaluated: why, each once. */
  readonly elsewhere: Set<string>;
}

/** No node yet. */
export function noPlaces(): Places {
  return { device: 0, elsewhere: new Set() };
}

/** Why the host evaluates an ONNX op itself; another op has values of no tensor, as strings, here. */
const EVALUATED: readonly (readonly [reason: string, ops: RegExp])[] = [
  ["control flow", /^(If|Loop|Scan|SequenceMap)$/],
  ["results whose size depends on data", /^(Compress|NonMaxSuppression|NonZero|Unique)$/],
  ["sequences and optional values", /Sequence|^Optional|^Identity$/],
  ["trees, labels and maps of classic models", /^Tree|^SVM|^Linear(C|R)|Map$|Encoder$|ectorizer$/],
  ["strings", /./],
];

/** Why the host evaluates an ONNX op. */
export function whyEvaluated(opType: string): string {
  return EVALUATED.find(([, ops]) => ops.test(opType))![0];
}

/** Families of element types that kernels may lack. */
const TYPES: readonly (readonly [reason: string, holds: (dtype: DataType) => boolean])[] = [
  ["floats of 64 bits", (dtype) => dtype === "f64"],
  ["integers of 64 bits", isWide],
  ["floats and integers of up to 16 bits", (dtype) => !/^(f32|i32|u32|bool)$/.test(dtype)],
];

/** Whether a kernel of a node might find out in the middle of a step that it cannot go on: WASM says so, a GPU cannot. */
function mayFail({ op, inputs, attributes }: Node): boolean {
  if (op === "binary") {
    return /^(div|f?mod)$/.test(attributes.kind as string) && isInteger(inputs[0]!.dtype);
  }
  return op.startsWith("gather") && inputs[1]!.role !== "input";
}

/** Why a node has no kernel on a device. */
export function whyElsewhere(node: Node, device: Pick<Backend, "name" | "kernels">): string {
  const { op, inputs, outputs } = node;
  if (device.name === "gpu" && mayFail(node)) {
    return "quotients of whole numbers and computed indices";
  }
  const types = [...inputs, ...outputs].flatMap((value) => value ? [value.dtype] : []);
  const family = TYPES.find(([, holds]) => types.some(holds));
  if (!hasKernel(device.kernels, op)) return `no kernel: ${op}`;
  return family ? family[0] : `no kernel for such shapes or attributes: ${op}`;
}

/** Counts the nodes of everything that a backend makes ready; all of them are `elsewhere` if it is not the device. */
export function counting(
  backend: Backend,
  { device, places }: { readonly device: Backend; readonly places: Places },
): Backend {
  return {
    ...backend,
    async prepare(plan, options) {
      const executable = await backend.prepare(plan, options);
      const nodes = plan.steps.map(({ node }) => node);
      const { hostNodes = nodes } = executable;
      for (const node of hostNodes) places.elsewhere.add(whyElsewhere(node, device));
      places.device += nodes.length - hostNodes.length;
      return executable;
    },
  };
}

/** How many tests ran where, as lines; of those not wholly on the device the reasons, the most frequent first. */
export function describePlaces(
  all: readonly Places[],
): { readonly whole: number; readonly lines: string[] } {
  const isWhole = ({ device, elsewhere }: Places) => device > 0 && elsewhere.size === 0;
  const isEmpty = ({ device, elsewhere }: Places) => device === 0 && elsewhere.size === 0;
  const rest = all.filter((places) => !isWhole(places) && !isEmpty(places));
  const partly = rest.filter(({ device }) => device > 0).length;
  const whole = all.filter(isWhole).length, empty = all.filter(isEmpty).length;
  const counts = new Map<string, number>();
  // A test counts once for each of its reasons.
  for (const reason of rest.flatMap(({ elsewhere }) => [...elsewhere])) {
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return {
    whole,
    lines: [
      `wholly on the device: ${whole}; nothing to compute, all being known from shapes: ${empty}`,
      `in part: ${partly}; not at all: ${
        rest.length - partly
      }; why (a test may have several reasons):`,
      ...[...counts].sort(([, a], [, b]) => b - a).map(([reason, count]) => `  ${count} ${reason}`),
    ],
  };
}
