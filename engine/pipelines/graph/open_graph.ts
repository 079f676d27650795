// An ONNX model as something that runs on host values: checks everything that can be checked before a run
// (ops, versions, attributes, names), then each run's inputs against what the model declares.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxModel, OnnxType, OnnxValueInfo } from "../../formats/onnx/model.ts";
import { checkSupport } from "../../graph/onnx/opset.ts";
import { type ModelContext, prepareGraph } from "../../graph/onnx/prepare.ts";
import type { HostValue } from "../../graph/onnx/tensor.ts";
import { createProgram, type Program, type RunRequest } from "./program.ts";
import type { Runtime } from "./ready_segment.ts";
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
    request?: Partial<RunRequest>,
  ): Promise<Map<string, HostValue>>;
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
  checkSupport(context, graph, opsets);
  const prepared = prepareGraph(context, graph, opsets);
  const program: Program = createProgram(context, prepared, new Map(), runtime);
  const symbolic = createSymbolicProgram(context, prepared, runtime);
  const names = new Set(graph.inputs.map(({ name }) => name));
  const outputNames = graph.outputs.map(({ name }) => name);

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
    async run(inputs, { outputs = outputNames, signal } = {}) {
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
      const given = new Map(inputs);
      for (const { name, type } of graph.inputs) {
        if (!given.has(name) && type?.kind === "optional") given.set(name, { dtype: "optional" });
      }
      return await symbolic.run(given, outputs) ?? await program.run(given, { outputs, signal });
    },
    dispose() {
      program.dispose();
      symbolic.dispose();
      model.close();
    },
  };
}

function checkDeclared(name: string, value: HostValue, type: OnnxType | undefined): void {
  if (!type) return;
  if (type.kind !== "tensor") {
    if (type.kind === "sequence" || type.kind === "optional") return;
    throw new UnsupportedError(`input "${name}" is a ${type.kind}, which is not supported`);
  }
  const { dtype, shape } = type;
  const given = "shape" in value ? value.shape : [];
  const fits = value.dtype === dtype && (!shape || (
    shape.length === given.length &&
    shape.every((dim, axis) => typeof dim !== "number" || dim === given[axis])
  ));
  if (fits) return;
  const message = `Cannot run: input "${name}" is ${value.dtype}[${given.join(", ")}], ` +
    `the model expects ${describeType(type)}`;
  throw value.dtype === dtype ? new RangeError(message) : new TypeError(message);
}

/** `f32[batch, 3, 224, 224]`; `?` for what is not declared. */
export function describeType(type: OnnxType | undefined): string {
  if (!type) return "of no declared type";
  if (type.kind === "tensor") {
    return type.dtype + (type.shape ? `[${type.shape.map((dim) => dim ?? "?").join(", ")}]` : "");
  }
  return "element" in type ? `${type.kind} of ${describeType(type.element)}` : type.kind;
}
