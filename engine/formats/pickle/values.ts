// What a pickle may build here: plain data, and two records that stand for a storage and a view of one.
// Python's classes are not among them. A global is only a name that passed the allow-list together with
// what calling it means to us; nothing of Python's is ever looked up, imported or run.

/** A storage of a torch checkpoint: elements of one type under a key; the bytes lie elsewhere. */
export interface TorchStorage {
  readonly kind: "storage";
  /** Name of the bytes: a member of the archive, or an entry of a legacy file's key list. */
  readonly key: string;
  /** Name of a plain format (F32, BF16, I64, …). */
  readonly format: string;
  /** Bytes of one element. */
  readonly width: number;
  /** Elements of the stored bytes. */
  readonly stored: number;
  /** First element of the view into them; 0 but for views in legacy files. */
  readonly first: number;
  /** Elements that tensors may use, from `first` on. */
  readonly elements: number;
}

/** A tensor as the pickle describes it, not yet checked against its storage. */
export interface TorchTensor {
  readonly kind: "tensor";
  readonly storage: TorchStorage;
  readonly offset: PickleValue;
  readonly size: PickleValue;
  readonly stride: PickleValue;
}

/** A name from the allow-list. */
export interface PickleGlobal {
  readonly kind: "global";
  /** `module.name`, for messages. */
  readonly name: string;
  /** What a call gives; absent where it must not be called. */
  call?(args: readonly PickleValue[]): PickleValue;
  /** Element type of a storage class. */
  readonly storage?: { readonly format: string; readonly width: number };
}

/** A tuple; its items never change, so parts may be shared. */
export interface PickleTuple {
  readonly kind: "tuple";
  readonly items: readonly PickleValue[];
}

/** A list. */
export interface PickleList {
  readonly kind: "list";
  readonly items: PickleValue[];
}

/** A dict or an OrderedDict. A Map, so a key like `__proto__` is one like any other. */
export interface PickleDict {
  readonly kind: "dict";
  readonly entries: Map<PickleValue, PickleValue>;
  /** Only an OrderedDict takes attributes, and they are dropped. */
  readonly isOrdered: boolean;
}

/** Anything on the stack of the machine. Integers beyond 2^53 are bigints. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleTuple
  | PickleList
  | PickleDict
  | PickleGlobal
  | TorchStorage
  | TorchTensor;

/** The record of a kind, or undefined where the value is another thing. */
export function asKind<K extends "tuple" | "list" | "dict" | "global" | "storage" | "tensor">(
  value: PickleValue | undefined,
  kind: K,
): Extract<PickleValue, { readonly kind: K }> | undefined {
  const isRecord = typeof value === "object" && value !== null && !(value instanceof Uint8Array) &&
    value.kind === kind;
  return isRecord ? value as Extract<PickleValue, { readonly kind: K }> : undefined;
}

/** What a value is, for messages; never its content, which may be as large as the file. */
export function describeValue(value: PickleValue | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "None";
  if (value instanceof Uint8Array) return "bytes";
  if (typeof value === "string") return "a string";
  if (typeof value !== "object") return String(value);
  return value.kind === "global" ? value.name : `a ${value.kind}`;
}
