// Turns the tables of wasm/opcodes.ts and wasm/layout.ts into AssemblyScript constants, and lists the
// kernels in the module's function table. Calls go through that table and not through a switch, because
// the optimiser would otherwise inline every kernel into one function too large to compile well.

import { CONTROL, INSTRUCTION, MAX_OPERANDS, PROGRAM } from "../layout.ts";
import { OPCODES } from "../opcodes.ts";

function constants(prefix: string, record: Readonly<Record<string, number>>): string[] {
  return Object.entries(record).map(([key, value]) =>
    `export const ${prefix}_${key}: usize = ${value};`
  );
}

/** Module `generated/opcodes`: operand offsets and layout constants. */
export function opcodeConstants(): string {
  const offsets = Object.entries(OPCODES).flatMap(([name, { operands }]) => {
    const keys = Object.keys(operands);
    if (keys.length > MAX_OPERANDS) {
      throw new RangeError(
        `Cannot encode ${name}: ${keys.length} operands, an instruction holds ${MAX_OPERANDS}`,
      );
    }
    return keys.map((key, index) => {
      const offset = INSTRUCTION.OPERANDS + 4 * index;
      return `export const ${name.toUpperCase()}_${key.toUpperCase()}: usize = ${offset};`;
    });
  });
  return [
    ...constants("INSTRUCTION", INSTRUCTION),
    ...constants("PROGRAM", PROGRAM),
    ...constants("CONTROL", CONTROL),
    ...offsets,
    "",
  ].join("\n");
}

/** Module `generated/kernels`: `kernelIndex`. */
export function kernelTable(): string {
  const entries = Object.entries(OPCODES);
  const files = new Map<string, string[]>();
  for (const [name, { file }] of entries) files.set(file, [...(files.get(file) ?? []), name]);
  return [
    ...[...files].map(([file, names]) => `import { ${names.join(", ")} } from "../${file}";`),
    ...entries.map(([name]) => `const ${name}_kernel: (ip: usize) => void = ${name};`),
    "/** Index in the function table of the kernel of an opcode. */",
    "export function kernelIndex(opcode: u32): u32 {",
    "  switch (opcode) {",
    ...entries.map(([name], index) => `    case ${index}: return ${name}_kernel.index;`),
    "  }",
    "  return unreachable();",
    "}",
    "",
  ].join("\n");
}
