// The cells of recurrent layers and their loop over a sequence, in doubles. Equations: ONNX operators
// RNN, GRU and LSTM; LSTM with peepholes: Gers & Schmidhuber 2000.

import { UNARY } from "../../functions/unary.ts";
import type { Numbers } from "./host_numbers.ts";

/** Kinds of cells. */
export const CELL_KINDS = ["rnn", "gru", "lstm"] as const;

/** Kind of a cell. */
export type CellKind = typeof CELL_KINDS[number];

/** Gates of each kind. */
export const GATES: Readonly<Record<CellKind, number>> = { rnn: 1, gru: 3, lstm: 4 };

type Activation = (x: number, alpha: number, beta: number) => number;

/** The activations that are ONNX operators too, whose defaults are theirs. */
const SHARED = [
  ...["Relu", "Tanh", "Sigmoid", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"],
  ...["Softsign", "Softplus"],
];

/** Activations by the lower case of ONNX's names, with the defaults of alpha and beta. */
const ACTIVATIONS: Readonly<Record<string, readonly [Activation, number, number]>> = {
  ...Object.fromEntries(
    Object.values(UNARY).filter(({ onnx }) => onnx && SHARED.includes(onnx[0]))
      .map(({ float, onnx, parameters: [alpha, beta] = [] }) =>
        [onnx![0].toLowerCase(), [float!, alpha?.[1] ?? 0, beta?.[1] ?? 0]] as const
      ),
  ),
  affine: [(x, a, b) => a * x + b, 1, 0],
  scaledtanh: [(x, a, b) => a * Math.tanh(b * x), 1, 1],
};

/** Whether a name is that of an activation. */
export function isCellActivation(name: string): boolean {
  return Object.hasOwn(ACTIVATIONS, name.toLowerCase());
}

/** One direction of a layer. */
export interface DirectionCall {
  readonly kind: CellKind;
  readonly hidden: number;
  readonly x: Numbers;
  readonly sequence: number;
  readonly batch: number;
  readonly width: number;
  readonly direction: number;
  readonly directions: number;
  readonly reverse: boolean;
  readonly batch_first: boolean;
  readonly w: Numbers;
  readonly r: Numbers;
  readonly bias: Numbers | undefined;
  readonly lengths: Numbers | undefined;
  readonly h: Numbers | undefined;
  readonly c: Numbers | undefined;
  readonly peepholes: Numbers | undefined;
  readonly activations: readonly string[];
  readonly alphas: readonly number[];
  readonly betas: readonly number[];
  readonly clip: number;
  readonly linear_before_reset: boolean;
  readonly input_forget: boolean;
  readonly y: Float64Array;
  readonly lastH: Float64Array;
  readonly lastC: Float64Array | undefined;
}

/** Runs every item of the batch through the sequence. */
export function runDirection(call: DirectionCall): void {
  const { hidden, sequence, batch, batch_first, direction, directions, width } = call;
  const functions = call.activations.map((name, i) => {
    const [apply, alpha, beta] = ACTIVATIONS[name.toLowerCase()]!;
    const a = call.alphas[i] ?? alpha, b = call.betas[i] ?? beta;
    const bound = call.clip > 0 ? call.clip : Infinity;
    return (x: number) => apply(Math.min(bound, Math.max(-bound, x)), a, b);
  });
  const step = STEPS[call.kind];
  for (let b = 0; b < batch; b++) {
    const stateAt = (batch_first ? b * directions + direction : direction * batch + b) * hidden;
    let h = slice(call.h, stateAt, hidden), c = slice(call.c, stateAt, hidden);
    const length = call.lengths?.[b] ?? sequence;
    for (let i = 0; i < length; i++) {
      const t = call.reverse ? length - 1 - i : i;
      const at = (batch_first ? b * sequence + t : t * batch + b) * width;
      [h, c] = step(call, functions, call.x.subarray(at, at + width), h, c);
      const target = batch_first
        ? (b * sequence + t) * directions + direction
        : (t * directions + direction) * batch + b;
      call.y.set(h, target * hidden);
    }
    call.lastH.set(h, stateAt);
    call.lastC?.set(c, stateAt);
  }
}

function slice(values: Numbers | undefined, start: number, count: number): Float64Array {
  return values
    ? Float64Array.from(values.subarray(start, start + count))
    : new Float64Array(count);
}

type Step = (
  call: DirectionCall,
  functions: readonly ((x: number) => number)[],
  x: Numbers,
  h: Float64Array,
  c: Float64Array,
) => [Float64Array, Float64Array];

/** matrix · x + bias of all gates; `part` 0 is the input's side, 1 the state's. */
function gatesOf(call: DirectionCall, part: 0 | 1, x: Numbers): Float64Array {
  const rows = GATES[call.kind] * call.hidden, columns = x.length;
  const matrix = part === 0 ? call.w : call.r;
  const start = call.direction * rows * columns;
  const bias = (2 * call.direction + part) * rows;
  return Float64Array.from({ length: rows }, (_, row) => {
    let sum = call.bias?.[bias + row] ?? 0;
    const at = start + row * columns;
    for (let i = 0; i < columns; i++) sum += matrix[at + i]! * x[i]!;
    return sum;
  });
}

const rnn: Step = (call, [f], x, h, c) => {
  const input = gatesOf(call, 0, x), state = gatesOf(call, 1, h);
  return [h.map((_, i) => f!(input[i]! + state[i]!)), c];
};

const gru: Step = (call, [f, g], x, h, c) => {
  const { hidden } = call;
  const input = gatesOf(call, 0, x), state = gatesOf(call, 1, h);
  const gate = (at: number) => h.map((_, i) => f!(input[at + i]! + state[at + i]!));
  const update = gate(0), reset = gate(hidden);
  // Without linear_before_reset the reset gate multiplies the state before its product.
  const recurrent = call.linear_before_reset
    ? state.map((value, i) => value * reset[i % hidden]!)
    : gatesOf(call, 1, h.map((value, i) => value * reset[i]!));
  return [
    h.map((value, i) => {
      const candidate = g!(input[2 * hidden + i]! + recurrent[2 * hidden + i]!);
      return (1 - update[i]!) * candidate + update[i]! * value;
    }),
    c,
  ];
};

const lstm: Step = (call, [f, g, out], x, h, c) => {
  const { hidden } = call;
  const input = gatesOf(call, 0, x), state = gatesOf(call, 1, h);
  // Peepholes lie as input, output, forget; gates as input, output, forget, cell.
  const peephole = (part: number, i: number) =>
    call.peepholes?.[(call.direction * 3 + part) * hidden + i] ?? 0;
  const sum = (part: number, i: number) => input[part * hidden + i]! + state[part * hidden + i]!;
  const cell = c.map((value, i) => {
    const enter = f!(sum(0, i) + peephole(0, i) * value);
    const keep = call.input_forget ? 1 - enter : f!(sum(2, i) + peephole(2, i) * value);
    return keep * value + enter * g!(sum(3, i));
  });
  return [cell.map((value, i) => f!(sum(1, i) + peephole(1, i) * value) * out!(value)), cell];
};

const STEPS: Readonly<Record<CellKind, Step>> = { rnn, gru, lstm };
