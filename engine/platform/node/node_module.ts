// Node's modules for what stands for Deno: at once, and not at all in Deno, which would load them longer than the engine.

/** Oldest Node, whose V8 has what missing.ts asks for. */
export const LEAST_NODE = 22;

interface NodeProcess {
  readonly versions: { readonly node: string };
  getBuiltinModule(name: string): unknown;
}

const { process } = "Deno" in globalThis
  ? { process: undefined }
  : globalThis as unknown as { readonly process: NodeProcess };

// In place of what V8 says of flags that it lacks.
if (process && parseInt(process.versions.node) < LEAST_NODE) {
  throw new Error(
    `troodon needs Node ${LEAST_NODE} or later, and this is ${process.versions.node}`,
  );
}

/** A module of Node; nothing of it is there in Deno, where nobody asks. */
export function nodeModule<T>(name: string): T {
  return (process?.getBuiltinModule(name) ?? {}) as T;
}
