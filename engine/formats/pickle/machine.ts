// The stack machine of Python's pickle format, protocols 0 to 5 (PEP 307, PEP 3154 and pickletools.py),
// as far as checkpoints need it. Python's own machine imports whatever a GLOBAL names; this one knows an
// allow-list and refuses everything else at once, also names that are never called. Each opcode is a row
// of opcodes.ts.
//
// Bounds: an opcode takes a byte at least and pushes one value at most, texts are slices of the input and
// the memo is a map, so memory stays in proportion to the bytes read. What may blow up is only walking a
// graph whose parts are shared; checkpoint_tensors.ts counts its steps.

import { OPCODES } from "./opcodes.ts";
import { type PickleReader, readUnsigned } from "./reader.ts";
import { machineError, type PickleMachine, type PickleWorld } from "./stack.ts";
import type { PickleValue } from "./values.ts";

const STOP = 0x2e;

/**
 * Runs a pickle from the reader's position; afterwards it stands behind STOP.
 *
 * @throws {FormatError} If an opcode is unknown or misused, or a length runs past the end
 * (`PickleEndError`).
 * @throws {UnsupportedError} If it names a global outside the allow-list, or a protocol above 5.
 */
export function runPickle(reader: PickleReader, world: PickleWorld): PickleValue {
  const machine: PickleMachine = {
    reader,
    world,
    stack: [],
    marks: [],
    memo: new Map(),
    at: reader.pos,
  };
  for (;;) {
    machine.at = reader.pos;
    const opcode = readUnsigned(reader, 1);
    if (opcode === STOP) return finish(machine);
    const step = OPCODES.get(opcode);
    if (step === undefined) {
      throw machineError(machine, `opcode 0x${opcode.toString(16).padStart(2, "0")} is unknown`);
    }
    step(machine);
  }
}

function finish(machine: PickleMachine): PickleValue {
  if (machine.marks.length > 0) throw machineError(machine, "ends with an open mark");
  if (machine.stack.length !== 1) {
    throw machineError(machine, `ends with ${machine.stack.length} values instead of one`);
  }
  return machine.stack[0];
}
