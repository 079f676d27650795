// If, Loop and Scan. An If whose condition is known is derived in place; everything else runs its body
// on the host's call, one program a body. Loops give way to the event loop now and then, stop when told
// to, and end with an error at a stated number of trips, since files come from strangers.

import type { OnnxGraph, OnnxType } from "../file/model.ts";
import { createTurns } from "../../pause.ts";
import { elementCount, getElement, hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import { graph, int, ints, required } from "../derivation/attributes.ts";
import { scalarTensor, singleElement, sliceAt, stack } from "../derivation/host_tensors.ts";
import { type HostCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import { type HostValue, isHostTensor } from "../derivation/tensor.ts";

/** Most trips of a Loop. */
const MOST_TRIPS = 1_000_000;

function isTrue(condition: HostTensor): boolean {
  return singleElement(condition, "the condition") !== 0;
}

function asTensor(value: HostValue): HostTensor {
  if (isHostTensor(value)) return value;
  throw new TypeError("a body gives what is no tensor where a tensor belongs");
}

// No trip at all: the declared type says what an empty result looks like.
function stackRows(
  rows: readonly HostTensor[],
  axis: number,
  type: OnnxType | undefined,
): HostTensor {
  if (rows.length > 0) return stack(rows, axis < 0 ? axis + rows[0]!.shape.length + 1 : axis);
  if (type?.kind !== "tensor" || type.dtype === "string") {
    throw new TypeError("a body that never ran declares no type for its results");
  }
  const inner = (type.shape ?? []).map((dim) => typeof dim === "number" ? dim : 0);
  const shape = inner.toSpliced(axis < 0 ? axis + inner.length + 1 : axis, 0, 0);
  return { dtype: type.dtype, shape, data: hostArray(type.dtype, { count: elementCount(shape) }) };
}

interface ScanOptions {
  readonly body: OnnxGraph;
  /** Inputs that are carried; the others are scanned. */
  readonly states: number;
  readonly axes: readonly number[];
  /** 1: from the end. */
  readonly directions: readonly number[];
  readonly outputAxes: readonly number[];
  readonly outputDirections: readonly number[];
}

async function scanOnce(
  call: HostCall,
  { given, options: { body, states, axes, directions, outputAxes, outputDirections }, length }: {
    readonly given: readonly HostTensor[];
    readonly options: ScanOptions;
    readonly length?: number | undefined;
  },
): Promise<HostTensor[]> {
  let carried = given.slice(0, states);
  const scanned = given.slice(states).map((tensor, i) => {
    const axis = axes[i] ?? 0;
    return {
      tensor,
      axis: axis < 0 ? axis + tensor.shape.length : axis,
      back: directions[i] === 1,
    };
  });
  const lengths = scanned.map(({ tensor, axis }) => tensor.shape[axis]!);
  if (new Set(lengths).size > 1) throw new RangeError(`scanned lengths differ: ${lengths}`);
  const steps = length ?? lengths[0]!;
  const rows: HostTensor[][] = body.outputs.slice(states).map(() => []);
  const turns = createTurns(call.signal);
  for (let step = 0; step < steps; step++) {
    const turn = turns();
    if (turn) await turn;
    const slices = scanned.map(({ tensor, axis, back }) =>
      sliceAt(tensor, { axis, index: back ? steps - 1 - step : step })
    );
    const results = (await call.run(body, [...carried, ...slices])).map(asTensor);
    carried = results.slice(0, states);
    results.slice(states).forEach((row, i) => {
      if (outputDirections[i] === 1) rows[i]!.unshift(row);
      else rows[i]!.push(row);
    });
  }
  const types = body.outputs.slice(states).map(({ type }) => type);
  return [...carried, ...rows.map((row, i) => stackRows(row, outputAxes[i] ?? 0, types[i]))];
}

// Version 8: every input has a batch axis in front, and a length for each entry of it.
async function scanBatches(
  call: HostCall,
  { given, options, lengths }: {
    readonly given: readonly HostTensor[];
    readonly options: ScanOptions;
    readonly lengths: HostTensor | undefined;
  },
): Promise<HostTensor[]> {
  const batches = given[0]?.shape[0] ?? 0;
  const results: HostTensor[][] = [];
  for (let batch = 0; batch < batches; batch++) {
    const inputs = given.map((tensor) => sliceAt(tensor, { axis: 0, index: batch }));
    results.push(
      await scanOnce(call, {
        given: inputs,
        options,
        length: lengths && getElement(lengths, batch),
      }),
    );
  }
  return results[0]?.map((_, i) => stack(results.map((result) => result[i]!), 0)) ?? [];
}

/** Ops with bodies. */
export const controlFlowOps: readonly OnnxOp[] = [
  onnxOp("If", {
    versions: [1, 11, 13, 16, 19, 21, 23, 24, 25],
    attributes: { then_branch: graph(), else_branch: graph() },
    build(call) {
      const { known } = call.input(0);
      if (!known) return call.onHost();
      const { then_branch, else_branch } = call.attributes;
      return call.inline(isTrue(known) ? then_branch : else_branch, []);
    },
    evaluate(call) {
      const { then_branch, else_branch } = call.attributes;
      return call.run(isTrue(call.tensor(0)) ? then_branch : else_branch, []);
    },
  }),
  /** Loop: `for` and `while` in one. */
  onnxOp("Loop", {
    versions: [1, 11, 13, 16, 19, 21, 23, 24, 25],
    attributes: { body: graph() },
    async evaluate(call) {
      const { body } = call.attributes;
      const trips = call.inputs[0] ? singleElement(call.tensor(0), "the trip count") : Infinity;
      let goesOn = call.inputs[1] ? isTrue(call.tensor(1)) : true;
      let carried = call.inputs.slice(2).map((value) => value!);
      const rows: HostTensor[][] = body.outputs.slice(1 + carried.length).map(() => []);
      const turns = createTurns(call.signal);
      for (let trip = 0; goesOn && trip < trips; trip++) {
        if (trip >= MOST_TRIPS) throw new RangeError(`a Loop of more than ${MOST_TRIPS} trips`);
        const turn = turns();
        if (turn) await turn;
        const inputs = [scalarTensor("i64", trip), scalarTensor("bool", 1), ...carried];
        const [condition, ...results] = await call.run(body, inputs);
        goesOn = isTrue(asTensor(condition!));
        carried = results.slice(0, carried.length);
        results.slice(carried.length).forEach((row, i) => rows[i]!.push(asTensor(row)));
      }
      const types = body.outputs.slice(1 + carried.length).map(({ type }) => type);
      return [...carried, ...rows.map((row, i) => stackRows(row, 0, types[i]))];
    },
  }),
  /** Scan, from version 9 on without a batch axis. */
  onnxOp("Scan", {
    versions: [8, 9, 11, 16, 19, 21, 23, 24, 25],
    attributes: {
      body: graph(),
      num_scan_inputs: required(int()),
      directions: ints(undefined, { until: 8 }),
      scan_input_axes: ints(undefined, { since: 9 }),
      scan_input_directions: ints(undefined, { since: 9 }),
      scan_output_axes: ints(undefined, { since: 9 }),
      scan_output_directions: ints(undefined, { since: 9 }),
    },
    evaluate(call) {
      const { attributes, version, inputs } = call;
      const given = inputs.slice(version === 8 ? 1 : 0).map((value) => asTensor(value!));
      const states = given.length - attributes.num_scan_inputs;
      const options: ScanOptions = {
        body: attributes.body,
        states,
        axes: attributes.scan_input_axes ?? [],
        directions: attributes.scan_input_directions ?? attributes.directions ?? [],
        outputAxes: attributes.scan_output_axes ?? [],
        outputDirections: attributes.scan_output_directions ?? [],
      };
      if (version === 8) {
        return scanBatches(call, {
          given,
          options,
          lengths: inputs[0] ? call.tensor(0) : undefined,
        });
      }
      return scanOnce(call, { given, options });
    },
  }),
];
