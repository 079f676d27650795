// The state of the pickle machine and the moves that opcodes share: taking values with regard to marks,
// and looking a global up in the allow-list.

import { type FormatError, UnsupportedError } from "../../errors.ts";
import { pickleError, type PickleReader } from "./reader.ts";
import type { PickleGlobal, PickleValue } from "./values.ts";

/** What a pickle may refer to outside itself. */
export interface PickleWorld {
  /** The allow-list. */
  readonly globals: ReadonlyMap<string, PickleGlobal>;
  /** What a persistent id stands for; undefined refuses it. */
  persistent?(id: PickleValue): PickleValue | undefined;
}

/** State of a run. */
export interface PickleMachine {
  readonly reader: PickleReader;
  readonly world: PickleWorld;
  readonly stack: PickleValue[];
  /** Heights of the stack at the open marks. */
  readonly marks: number[];
  readonly memo: Map<number, PickleValue>;
  /** Offset of the opcode at work. */
  at: number;
}

/** An error at the opcode at work. */
export function machineError({ reader, at }: PickleMachine, message: string): FormatError {
  return pickleError({ ...reader, pos: at }, message);
}

/** Takes the top value, which must lie above the last mark. */
export function popValue(machine: PickleMachine): PickleValue {
  const floor = machine.marks.at(-1) ?? 0;
  if (machine.stack.length <= floor) throw machineError(machine, "the stack is empty here");
  return machine.stack.pop()!;
}

/** Takes all values above the last mark, and the mark. */
export function popToMark(machine: PickleMachine): PickleValue[] {
  const height = machine.marks.pop();
  if (height === undefined) throw machineError(machine, "there is no mark here");
  return machine.stack.splice(height);
}

/** The top value, left where it is. */
export function peekValue(machine: PickleMachine): PickleValue {
  const value = popValue(machine);
  machine.stack.push(value);
  return value;
}

/**
 * A global by name.
 *
 * @throws {UnsupportedError} If it is not on the allow-list.
 */
export function findGlobal(
  machine: PickleMachine,
  { module, name }: { readonly module: string; readonly name: string },
): PickleGlobal {
  const found = machine.world.globals.get(`${module}.${name}`);
  // A name with a dot would be an attribute of something inside the module.
  if (found !== undefined && !name.includes(".")) return found;
  const shown = JSON.stringify(`${module}.${name}`);
  throw new UnsupportedError(
    `names ${
      shown.length > 120 ? shown.slice(0, 120) + "…" : shown
    }, which is no part of a tensor file`,
    {
      file: machine.reader.file,
      place: `byte ${machine.at}`,
      remedy: "Nothing in it was run. Save only the tensors (the state dict), best as safetensors",
    },
  );
}
