// Values in files of their own, as conformance tests keep them: TensorProto, SequenceProto, OptionalProto.

import type { ByteSource } from "../../engine/byte_source.ts";
import type { OnnxTensor, OnnxType } from "../../engine/onnx/file/model.ts";
import { readTensor } from "../../engine/onnx/file/read_tensor.ts";
import { type WireField, WireReader } from "../../engine/onnx/file/wire.ts";

/** A value as a file holds it. */
export type StoredValue =
  | { readonly kind: "tensor"; readonly tensor: OnnxTensor }
  | { readonly kind: "sequence"; readonly items: readonly StoredValue[] }
  | { readonly kind: "optional"; readonly value?: StoredValue };

/**
 * Reads a value of a declared type.
 *
 * @throws {FormatError} If the bytes are not such a value.
 */
export function readValue(source: ByteSource, type: OnnxType): StoredValue {
  const reader = new WireReader(source);
  return readAs(reader, { start: 0, end: source.size }, type.kind);
}

type Range = Pick<WireField, "start" | "end">;

function readAs(reader: WireReader, { start, end }: Range, kind: OnnxType["kind"]): StoredValue {
  if (kind === "tensor") {
    return { kind, tensor: readTensor(reader, { pick: { start, end }, openExternal: refuse }) };
  }
  const items: StoredValue[] = [];
  for (const field of reader.fields(start, end)) {
    const inner = innerKind(kind, field.number);
    if (inner) items.push(readAs(reader, reader.message(field), inner));
  }
  if (kind === "sequence") return { kind, items };
  return { kind: "optional", ...items[0] && { value: items[0] } };
}

// The same numbers mean tensor and sequence in both messages.
function innerKind(kind: OnnxType["kind"], number: number): OnnxType["kind"] | undefined {
  if (number === 3) return "tensor";
  if (number === 5) return "sequence";
  return number === 7 && kind === "sequence" ? "optional" : undefined;
}

function refuse(): never {
  throw new TypeError("a value in a file of its own has no external data");
}
