// What a kernel of the machine is made of; apart from the tables, so that they need not import the sum of
// themselves.

/** How 32 bits of an operand are read: addresses and counts are `u32`. */
export type OperandKind = "u32" | "i32" | "f32";

/** One kernel of the machine. */
export interface OpcodeRecord {
  /** File in wasm/assembly (without `.ts`) that exports the kernel function of the same name. */
  readonly file: string;
  /** Operand names in instruction order. */
  readonly operands: Readonly<Record<string, OperandKind>>;
}
