// Generated AssemblyScript: text made in memory while building, imported by the sources as
// "./generated/<name>". Use a generator where kernels differ in data only; write plain files otherwise.

import { kernelTable, opcodeConstants } from "./opcodes.ts";

/** Source text by module name. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  opcodes: opcodeConstants,
  kernels: kernelTable,
};
