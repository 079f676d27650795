// Node's modules for what stands for Deno: at once, and not at all in Deno, which would load them longer than the engine.

/** A module of Node; nothing of it is there in Deno, where nobody asks. */
export function nodeModule<T>(name: string): T {
  if ("Deno" in globalThis) return {} as T;
  const { process } = globalThis as unknown as {
    readonly process: { getBuiltinModule(name: string): unknown };
  };
  return process.getBuiltinModule(name) as T;
}
