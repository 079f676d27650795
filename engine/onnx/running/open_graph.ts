// An ONNX model as something that runs on host values: checks everything that can be checked before a run
// (ops, versions, attributes, names), then each run's inputs against what the model declares.

import { UnsupportedError } from "../../errors.ts";
import { createLock } from "../../lock.ts";
import type { OnnxModel, OnnxType, OnnxValueInfo } from "../file/model.ts";
import { describeType } from "../file/type_text.ts";
import { checkSupport } from "../derivation/opset.ts";
import { type ModelContext, prepareGraph } from "../derivation/prepare.ts";
import { type HostValue, isHostTensor } from "../derivation/tensor.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import { heldOf, heldOnHost, readTensor } from "../../run/held.ts";
import { createProgram, type Program, type RunRequest } from "./program.ts";
import {
  arrayFor,
  type ProfileEntry,
  type ResultArrays,
  type ResultPlaces,
  type Runtime,
} from "./ready_segment.ts";
import { createSymbolicProgram } from "./symbolic_program.ts";

/** A model that runs on host values. */
export interface OpenGraph {
  /** Inputs that must be given, and those that may be. */
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  /** Whether an input may be left out. */
  hasDefault(input: string): boolean;
  /**
   * Runs it once.
   *
   * @throws {TypeError | RangeError} If an input is missing, unknown or of another type or shape.
   */
  run(
    inputs: ReadonlyMap<string, HostValue>,
    request?: Partial<RunRequest> & ResultPlaces,
  ): Promise<Map<string, HostValue>>;
  /** Time by kernel since the last call. */
  profile(): ProfileEntry[];
  /** Why the graph is derived for each set of shapes, if it is. */
  readonly reasons: readonly string[];
  /** Frees memory and closes the file. */
  dispose(): void;
}

// A file without any operator set is of the first version of the format.
const FIRST_OPSET: ReadonlyMap<string, number> = new Map([["", 1]]);

/**
 * Makes a model ready.
 *
 * @throws {UnsupportedError} Listing every node that is not served.
 * @throws {FormatError} If the graph breaks a rule of the format.
 */
export function openGraph(model: OnnxModel, runtime: Runtime): OpenGraph {
  const opsets = model.opsets.size > 0 ? model.opsets : FIRST_OPSET;
  const { graph } = model;
  const context: ModelContext = model;
  checkSupport(context, { graph, opsets });
  const prepared = prepareGraph(context, { graph, opsets });
  const program: Program = createProgram(prepared, { context, runtime });
  const outputNames = graph.outputs.map(({ name }) => name);
  const symbolic = createSymbolicProgram(prepared, { context, runtime });
  symbolic.check(graph.inputs.filter(({ name }) => !graph.initializers.has(name)), outputNames);
  const names = new Set(graph.inputs.map(({ name }) => name));
  const optional = graph.inputs.filter(({ type }) => type?.kind === "optional");
  // Plans, values on the device and the memory of activations are one run's at a time.
  const turns = createLock();

  function check(inputs: ReadonlyMap<string, HostValue>): void {
    for (const name of inputs.keys()) {
      if (!names.has(name)) {
        throw new TypeError(
          `Cannot run ${graph.name}: it has no input "${name}" (inputs: ${[...names].join(", ")})`,
        );
      }
    }
    for (const { name, type } of graph.inputs) {
      const value = inputs.get(name);
      if (value) checkDeclared(name, value, type);
      else if (!graph.initializers.has(name) && type?.kind !== "optional") {
        throw new TypeError(
          `Cannot run ${graph.name}: input "${name}" (${describeType(type)}) is missing`,
        );
      }
    }
  }

  return {
    inputs: graph.inputs,
    outputs: graph.outputs,
    hasDefault: (input) => graph.initializers.has(input),
    reasons: symbolic.reasons,
    async run(inputs, { outputs = outputNames, signal, into, keep } = {}) {
      signal?.throwIfAborted();
      for (const name of outputs) {
        if (outputNames.includes(name)) continue;
        throw new TypeError(
          `Cannot run ${graph.name}: it has no output "${name}" (outputs: ${
            outputNames.join(", ")
          })`,
        );
      }
      check(inputs);
      const given = optional.length === 0 ? inputs : new Map(inputs);
      for (const { name } of optional) {
        if (!given.has(name)) (given as Map<string, HostValue>).set(name, { dtype: "optional" });
      }
      using _turn = await turns.acquire(signal);
      const known = await onHost(given, symbolic.deciding);
      const results = await symbolic.run(known, outputs, { into, keep, signal }) ??
        copyInto(
          await program.run(await onHost(known, [...known.keys()]), { outputs, signal }),
          into,
        );
      return keep ? withHeld(results, keep) : results;
    },
    profile: () => sumByName([...program.profile(), ...symbolic.profile()]),
    dispose() {
      program.dispose();
      symbolic.dispose();
      model.close();
    },
  };
}

/** Values of which some are looked at, and therefore fetched from where they are held. */
async function onHost(
  values: ReadonlyMap<string, HostValue>,
  names: readonly string[],
): Promise<ReadonlyMap<string, HostValue>> {
  const held = names.filter((name) => values.has(name) && heldOf(values.get(name)!));
  if (held.length === 0) return values;
  const read = new Map(values);
  for (const name of held) read.set(name, await readTensor(values.get(name) as HostTensor));
  return read;
}

// What a device did not keep is kept by the host.
function withHeld(
  results: Map<string, HostValue>,
  keep: ReadonlySet<string>,
): Map<string, HostValue> {
  for (const name of keep) {
    const value = results.get(name);
    if (isHostTensor(value) && !heldOf(value)) results.set(name, heldOnHost(value));
  }
  return results;
}

// Results that crossed the host are copied once more.
function copyInto(
  results: Map<string, HostValue>,
  into: ResultArrays | undefined,
): Map<string, HostValue> {
  for (const [name, array] of into ?? []) {
    const value = results.get(name);
    if (!isHostTensor(value)) continue;
    const data = arrayFor(name, { dtype: value.dtype, count: value.data.length, given: array });
    (data as Uint8Array).set(value.data as Uint8Array);
    results.set(name, { ...value, data });
  }
  return results;
}

function sumByName(entries: readonly ProfileEntry[]): ProfileEntry[] {
  const sums = new Map<string, { name: string; calls: number; ms: number }>();
  for (const { name, calls, ms } of entries) {
    const sum = sums.get(name) ?? { name, calls: 0, ms: 0 };
    sum.calls += calls;
    sum.ms += ms;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.ms - a.ms);
}

function checkDeclared(name: string, value: HostValue, type: OnnxType | undefined): void {
  if (!type) return;
  if (type.kind !== "tensor") {
    if (type.kind === "optional" || value.dtype === type.kind) return;
    if (type.kind === "sequence" || type.kind === "map") {
      throw new TypeError(misfit(name, value, type));
    }
    throw new UnsupportedError(`input "${name}" is a ${type.kind}, which is not supported`);
  }
  const { dtype, shape } = type;
  const given = "shape" in value ? value.shape : [];
  const fits = value.dtype === dtype && (!shape || (
    shape.length === given.length &&
    shape.every((dim, axis) => typeof dim !== "number" || dim === given[axis])
  ));
  if (fits) return;
  const message = misfit(name, value, type);
  throw value.dtype === dtype ? new RangeError(message) : new TypeError(message);
}

function misfit(name: string, value: HostValue, type: OnnxType): string {
  const shape = "shape" in value ? `[${value.shape.join(", ")}]` : "";
  const given = `Cannot run: input "${name}" is ${value.dtype}${shape}`;
  return `${given}, the model expects ${describeType(type)}`;
}
