// Entry point of the module: what JavaScript may call. Kernels are not exported; programs reach them
// through the function table.
export { begin, execute, executeAlone, serve, release } from "./program";
export { kernelIndex } from "./generated/kernels";
export { packRows } from "./pack";
export { packBlocks } from "./pack_blocks";
export { packInt7 } from "./pack_int7";
/** First address behind the module's static data. */
export function heapBase(): usize { return __heap_base; }
export { elementary } from "./exp";
