// The instruction set of the WASM machine, declared once. The build turns this table into AssemblyScript
// constants (operand offsets, the kernel table); lowering turns it into instructions. Neither side spells
// a number itself, so the two cannot drift. An opcode is the record's index; a kernel is the function of
// that name in `wasm/assembly/<file>.ts`. The order of operands is the order in which they are written.

import type { OpcodeRecord } from "./opcode_record.ts";
import { ACTIVATION_OPCODES } from "./opcodes_activation.ts";
import { MATMUL_OPCODES } from "./opcodes_matmul.ts";
import { NN_OPCODES } from "./opcodes_nn.ts";
import { ONNX_OPCODES } from "./opcodes_onnx.ts";

const TABLE = { ...ACTIVATION_OPCODES, ...MATMUL_OPCODES, ...NN_OPCODES, ...ONNX_OPCODES };

/** Name of a kernel. */
export type OpcodeName = keyof typeof TABLE;

/** Operands of a kernel by name. */
export type OperandsOf<Name extends OpcodeName, T> = Readonly<
  Record<keyof (typeof TABLE)[Name]["operands"], T>
>;

/** Every kernel by name, in opcode order. */
export const OPCODES: Readonly<Record<OpcodeName, OpcodeRecord>> = TABLE;

/** Kernel names in opcode order. */
export const OPCODE_NAMES: readonly OpcodeName[] = Object.keys(TABLE) as OpcodeName[];

/** What an instruction of a kernel looks like. */
interface Form {
  readonly opcode: number;
  /** Of its operands, in order. */
  readonly names: readonly string[];
}

const FORMS: ReadonlyMap<OpcodeName, Form> = new Map(
  OPCODE_NAMES.map((name, opcode) => [name, { opcode, names: Object.keys(TABLE[name].operands) }]),
);

/**
 * Arguments for `emit`: the opcode and the operands in instruction order, given by name so that a call
 * reads like documentation.
 *
 * @throws {TypeError} If an operand is missing or unknown.
 */
export function instruction<Name extends OpcodeName, T>(
  name: Name,
  operands: OperandsOf<Name, T>,
): [opcode: number, operands: T[]] {
  const given = operands as Readonly<Record<string, T>>;
  const { opcode, names } = FORMS.get(name)!;
  const values: T[] = [];
  for (const operand of names) {
    const value = given[operand];
    if (value === undefined) throw refused(name, operand, "missing");
    values.push(value);
  }
  const all = Object.keys(given);
  if (all.length === names.length) return [opcode, values];
  throw refused(name, all.find((operand) => !names.includes(operand)), "unknown");
}

function refused(name: OpcodeName, operand: string | undefined, what: string): TypeError {
  return new TypeError(`Cannot emit ${name}: operand ${operand} is ${what}`);
}
