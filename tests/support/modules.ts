// What Deno has to load, compile and evaluate before the first line of a script runs: the modules that it imports, and
// those that they do, but for `import()`. It stands for the time to start, which only an idle machine tells.

import { ROOT } from "../../tools/support/task.ts";

interface Info {
  readonly roots: readonly string[];
  readonly modules: readonly {
    readonly specifier: string;
    readonly size?: number;
    readonly dependencies?: readonly {
      readonly isDynamic?: boolean;
      readonly code?: { readonly specifier?: string };
    }[];
  }[];
}

/** Number and bytes of a script's modules. */
export async function importedModules(path: string): Promise<{ count: number; bytes: number }> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", path],
    cwd: ROOT,
    stderr: "null",
  }).output();
  const { roots, modules }: Info = JSON.parse(new TextDecoder().decode(stdout));
  const byName = new Map(modules.map((module) => [module.specifier, module]));
  const found = new Set(roots);
  let bytes = 0;
  for (const name of found) {
    const { size = 0, dependencies = [] } = byName.get(name) ?? {};
    bytes += size;
    for (const { isDynamic, code } of dependencies) {
      if (!isDynamic && code?.specifier !== undefined) found.add(code.specifier);
    }
  }
  return { count: found.size, bytes };
}
