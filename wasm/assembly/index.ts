// Entry point of the module: what JavaScript may call. Kernels are not exported; programs reach them
// through the function table.
export { begin, execute, executeAlone, join, launch, serve, release } from "./machine/program";
export { lookForJoining } from "./machine/joining";
export { kernelIndex } from "./generated/kernels";
/** First address behind the module's static data. */
export function heapBase(): usize { return __heap_base; }
export { elementary } from "./exp";
export { packAlone } from "./pack/weight";
