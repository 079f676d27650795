// The opcodes of machine.ts, one row each; names and numbers are those of Python's pickletools.py.
// Left out: INST and OBJ, which build instances of any class, EXT1 to EXT4, which name globals by number,
// and out-of-band buffers. They are unknown opcodes here.

import {
  parseDecimal,
  readBytes,
  readLatin1,
  readLength8,
  readLine,
  readLong,
  readSignedLength,
  readText,
  readUnsigned,
  take,
} from "./reader.ts";
import {
  findGlobal,
  machineError,
  peekValue,
  type PickleMachine,
  popToMark,
  popValue,
} from "./stack.ts";
import { asKind, describeValue, type PickleDict, type PickleValue } from "./values.ts";

/** What an opcode does. */
type Step = (machine: PickleMachine) => void;

const MAX_PROTOCOL = 5;

/** The rows, by opcode. */
export const OPCODES: ReadonlyMap<number, Step> = new Map<number, Step>([
  [0x80, readProtocol],
  [0x95, skipFrameHeader],
  // Marks and the stack itself.
  [code("("), (m) => void m.marks.push(m.stack.length)],
  [code("0"), dropTop],
  [code("1"), (m) => void popToMark(m)],
  [code("2"), (m) => void m.stack.push(peekValue(m))],
  // Constants and numbers.
  [code("N"), pushed(() => null)],
  [0x88, pushed(() => true)],
  [0x89, pushed(() => false)],
  [code("J"), pushed(({ reader }) => reader.view.getInt32(take(reader, 4), true))],
  [code("K"), pushed(({ reader }) => readUnsigned(reader, 1))],
  [code("M"), pushed(({ reader }) => readUnsigned(reader, 2))],
  [0x8a, pushed(({ reader }) => readLong(reader, readUnsigned(reader, 1)))],
  [0x8b, pushed(({ reader }) => readLong(reader, readSignedLength(reader)))],
  [code("G"), pushed(({ reader }) => reader.view.getFloat64(take(reader, 8), false))],
  [code("I"), pushed(readIntegerLine)],
  [code("L"), pushed(({ reader }) => parseDecimal(reader, readLine(reader).replace(/L$/, "")))],
  [code("F"), pushed(readFloatLine)],
  // Texts and bytes.
  [code("X"), pushed(({ reader }) => readText(reader, readUnsigned(reader, 4)))],
  [0x8c, pushed(({ reader }) => readText(reader, readUnsigned(reader, 1)))],
  [0x8d, pushed(({ reader }) => readText(reader, readLength8(reader)))],
  [code("V"), pushed(({ reader }) => readLine(reader))],
  [code("T"), pushed(({ reader }) => readLatin1(reader, readSignedLength(reader)))],
  [code("U"), pushed(({ reader }) => readLatin1(reader, readUnsigned(reader, 1)))],
  [code("S"), pushed(readQuotedLine)],
  [code("B"), pushed(({ reader }) => readBytes(reader, readUnsigned(reader, 4)))],
  [code("C"), pushed(({ reader }) => readBytes(reader, readUnsigned(reader, 1)))],
  [0x8e, pushed(({ reader }) => readBytes(reader, readLength8(reader)))],
  [0x96, pushed(({ reader }) => readBytes(reader, readLength8(reader)))],
  // Containers.
  [code(")"), pushed(() => ({ kind: "tuple", items: [] }))],
  [0x85, pushed((m) => tupleOf(m, 1))],
  [0x86, pushed((m) => tupleOf(m, 2))],
  [0x87, pushed((m) => tupleOf(m, 3))],
  [code("t"), pushed((m) => ({ kind: "tuple", items: popToMark(m) }))],
  [code("]"), pushed(() => ({ kind: "list", items: [] }))],
  [code("l"), pushed((m) => ({ kind: "list", items: popToMark(m) }))],
  [code("a"), (m) => append(m, [popValue(m)])],
  [code("e"), (m) => append(m, popToMark(m))],
  [code("}"), pushed(() => ({ kind: "dict", entries: new Map(), isOrdered: false }))],
  [code("d"), pushed((m) => dictOf(m, popToMark(m)))],
  [code("s"), (m) => setItems(m, popValues(m, 2))],
  [code("u"), (m) => setItems(m, popToMark(m))],
  // The memo.
  [code("p"), (m) => remember(m, readIndexLine(m))],
  [code("q"), (m) => remember(m, readUnsigned(m.reader, 1))],
  [code("r"), (m) => remember(m, readUnsigned(m.reader, 4))],
  [0x94, (m) => remember(m, m.memo.size)],
  [code("g"), pushed((m) => recall(m, readIndexLine(m)))],
  [code("h"), pushed((m) => recall(m, readUnsigned(m.reader, 1)))],
  [code("j"), pushed((m) => recall(m, readUnsigned(m.reader, 4)))],
  // What reaches beyond plain data.
  [
    code("c"),
    pushed((m) => findGlobal(m, { module: readLine(m.reader), name: readLine(m.reader) })),
  ],
  [0x93, pushed(stackGlobal)],
  [code("P"), pushed((m) => persistent(m, readLine(m.reader)))],
  [code("Q"), pushed((m) => persistent(m, popValue(m)))],
  [code("R"), pushed(reduce)],
  [0x81, pushed(newObject)],
  [code("b"), build],
]);

function code(character: string): number {
  return character.charCodeAt(0);
}

/** A step that pushes what `make` gives. */
function pushed(make: (machine: PickleMachine) => PickleValue): Step {
  return (machine) => void machine.stack.push(make(machine));
}

function readProtocol(machine: PickleMachine): void {
  const protocol = readUnsigned(machine.reader, 1);
  if (protocol > MAX_PROTOCOL) {
    throw machineError(machine, `protocol ${protocol} is unknown: ${MAX_PROTOCOL} is the latest`);
  }
}

/** Frames only help readers of streams; their length is checked and forgotten. */
function skipFrameHeader(machine: PickleMachine): void {
  const { reader } = machine;
  const length = readLength8(reader);
  const start = take(reader, length);
  reader.pos = start;
}

function dropTop(machine: PickleMachine): void {
  if (machine.marks.at(-1) === machine.stack.length) machine.marks.pop();
  else popValue(machine);
}

function popValues(machine: PickleMachine, count: number): PickleValue[] {
  return Array.from({ length: count }, () => popValue(machine)).reverse();
}

function tupleOf(machine: PickleMachine, count: number): PickleValue {
  return { kind: "tuple", items: popValues(machine, count) };
}

/** `I` also writes the booleans of protocol 0. */
function readIntegerLine({ reader }: PickleMachine): PickleValue {
  const text = readLine(reader);
  if (text === "00" || text === "01") return text === "01";
  return parseDecimal(reader, text);
}

function readFloatLine(machine: PickleMachine): number {
  const text = readLine(machine.reader);
  if (!/^[+-]?(\d|\.\d|inf|nan)/i.test(text)) throw machineError(machine, "a line holds no number");
  return Number(text.replace(/inf$/i, "Infinity"));
}

function readQuotedLine(machine: PickleMachine): string {
  const text = readLine(machine.reader);
  const quote = text[0];
  const isQuoted = text.length >= 2 && (quote === "'" || quote === '"') && text.endsWith(quote);
  if (!isQuoted || text.includes("\\")) throw machineError(machine, "a line holds no plain string");
  return text.slice(1, -1);
}

function readIndexLine(machine: PickleMachine): number {
  const index = parseDecimal(machine.reader, readLine(machine.reader));
  if (typeof index !== "number" || index < 0) throw machineError(machine, "no index of the memo");
  return index;
}

function remember(machine: PickleMachine, index: number): void {
  machine.memo.set(index, peekValue(machine));
}

function recall(machine: PickleMachine, index: number): PickleValue {
  const value = machine.memo.get(index);
  if (value === undefined) throw machineError(machine, `the memo has no entry ${index}`);
  return value;
}

function append(machine: PickleMachine, items: readonly PickleValue[]): void {
  const target = peekValue(machine);
  const list = asKind(target, "list");
  if (!list) throw machineError(machine, `cannot append to ${describeValue(target)}`);
  for (const item of items) list.items.push(item);
}

function fill(machine: PickleMachine, dict: PickleDict, items: readonly PickleValue[]): void {
  if (items.length % 2 !== 0) throw machineError(machine, "a key has no value");
  for (let i = 0; i < items.length; i += 2) dict.entries.set(items[i], items[i + 1]);
}

function setItems(machine: PickleMachine, items: readonly PickleValue[]): void {
  const target = peekValue(machine);
  const dict = asKind(target, "dict");
  if (!dict) throw machineError(machine, `cannot set items of ${describeValue(target)}`);
  fill(machine, dict, items);
}

function dictOf(machine: PickleMachine, items: readonly PickleValue[]): PickleValue {
  const dict: PickleDict = { kind: "dict", entries: new Map(), isOrdered: false };
  fill(machine, dict, items);
  return dict;
}

function stackGlobal(machine: PickleMachine): PickleValue {
  const [module, name] = popValues(machine, 2);
  if (typeof module !== "string" || typeof name !== "string") {
    throw machineError(machine, "a global has no name");
  }
  return findGlobal(machine, { module, name });
}

function persistent(machine: PickleMachine, id: PickleValue): PickleValue {
  const value = machine.world.persistent?.(id);
  if (value === undefined) {
    throw machineError(machine, `the persistent id (${describeValue(id)}) names no storage`);
  }
  return value;
}

function call(machine: PickleMachine, verb: string): PickleValue {
  const [callee, args] = popValues(machine, 2);
  const called = asKind(callee, "global");
  const tuple = asKind(args, "tuple");
  if (!called?.call || !tuple) {
    throw machineError(machine, `cannot ${verb} ${describeValue(callee)}`);
  }
  try {
    return called.call(tuple.items);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw machineError(machine, error.message);
  }
}

function reduce(machine: PickleMachine): PickleValue {
  return call(machine, "call");
}

function newObject(machine: PickleMachine): PickleValue {
  return call(machine, "make an instance of");
}

/** Attributes of an OrderedDict (torch's `_metadata`) hold nothing that a reader of tensors needs. */
function build(machine: PickleMachine): void {
  const state = popValue(machine);
  const target = peekValue(machine);
  const allowed = asKind(target, "dict")?.isOrdered && (state === null || asKind(state, "dict"));
  if (!allowed) throw machineError(machine, `cannot set attributes of ${describeValue(target)}`);
}
