// Lowering of recurrent layers with the usual activations; clips, peepholes, rows that end early and
// other activations are left to the reference.

import type { WasmKernel } from "../kernel.ts";
import { roundUp64 } from "./conv.ts";
import { emit, inputAddress, isStatic, outputAddress } from "./lower.ts";
import { CELL_KINDS, type CellKind, GATES } from "../../../ops/recurrent_cells.ts";

const USUAL: Readonly<Record<CellKind, readonly string[]>> = {
  rnn: ["tanh"],
  gru: ["sigmoid", "tanh"],
  lstm: ["sigmoid", "tanh", "tanh"],
};

/** Float32 layers. */
export const recurrentKernel: WasmKernel = {
  name: "recurrent_f32",
  when({ node: { inputs, attributes } }) {
    const [x, , , , lengths, , , peepholes] = inputs;
    const usual = USUAL[attributes.kind as CellKind];
    const names = (attributes.activations as readonly string[]).map((name) => name.toLowerCase());
    return x!.dtype === "f32" && !lengths && !peepholes && isStatic(x!.shape[2]) &&
      attributes.clip === 0 && !attributes.input_forget &&
      names.every((name, i) => name === usual[i % usual.length]) &&
      (attributes.alphas as readonly number[]).length === 0;
  },
  lower(lowering) {
    const { inputs: [x], outputs: [, lastH, lastC], attributes } = lowering.node;
    const kind = attributes.kind as CellKind, hidden = attributes.hidden as number;
    const batchFirst = attributes.batch_first === true;
    const [first, second, width] = x!.shape;
    // Gates of the input, of the state, and the state times its reset gate.
    const bytes = (2 * GATES[kind] + 1) * hidden * 4;
    emit(lowering, {
      name: "recurrent",
      operands: {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        r: inputAddress(lowering, 2),
        b: inputAddress(lowering, 3),
        h: inputAddress(lowering, 5),
        c: inputAddress(lowering, 6),
        y: outputAddress(lowering),
        last_h: lowering.address(lastH!),
        last_c: lastC ? lowering.address(lastC) : 0,
        kind: CELL_KINDS.indexOf(kind),
        sequence: batchFirst ? second! : first!,
        batch: batchFirst ? first! : second!,
        width: width!,
        hidden,
        directions: attributes.direction === "bidirectional" ? 2 : 1,
        reverse: attributes.direction === "reverse" ? 1 : 0,
        batch_first: batchFirst ? 1 : 0,
        linear: attributes.linear_before_reset ? 1 : 0,
        scratch: lowering.scratch(bytes),
        scratch_bytes: roundUp64(bytes),
      },
    });
  },
};
