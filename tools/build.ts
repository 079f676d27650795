// `deno task build`: writes the files that are made from others, as tools/build/generators.ts lists them; `--check` says
// which are stale, without a network and without compiling anything.

import { UsageError } from "../engine/cli/args.ts";
import { type Generator, GENERATORS } from "./build/generators.ts";
import { compileModule, MODULE_NAMES, sources } from "./build/wasm.ts";
import { runTask } from "./support/task.ts";

const NAMES = GENERATORS.map(({ name }) => name);

const LINE = {
  name: "deno task build",
  summary:
    "Writes the files that are made from others: compiled kernels, the page, tables, a schema.",
  positionals: ["[NAME…]"],
  flags: {
    check: { type: "boolean", help: "write nothing; fail when one is not what its sources say" },
    text: {
      type: "string",
      choices: MODULE_NAMES,
      help: "print the WebAssembly text of a module, for reading",
    },
  },
  examples: [
    [
      "deno task build",
      "after a change in wasm/assembly, the page, a spec, a number format or a sampling step",
    ],
    ["deno task build --check", "what the gate does"],
    ["deno task build families", "the table of families alone"],
    ["deno task build package", "the npm package, in dist/npm"],
  ],
  notes: [GENERATORS.map(({ name, files }) => `${name}: ${files}`).join("; ") + "."],
} as const;

function chosen(names: readonly string[]): readonly Generator[] {
  const unknown = names.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`Nothing is called ${unknown}: ${NAMES.join(", ")}, package`);
  }
  return names.length === 0 ? GENERATORS : GENERATORS.filter(({ name }) => names.includes(name));
}

await runTask(LINE, async ({ positionals, flags: { check, text } }) => {
  if (check && text) throw new UsageError("--check and --text exclude each other");
  if (positionals.includes("package")) {
    if (positionals.length > 1 || check) throw new UsageError("package is built alone");
    // With the compiler of TypeScript, which takes a while.
    const { PACKAGE_FOLDER, writePackage } = await import("./build/package.ts");
    const bytes = await writePackage();
    console.log(`package: written, ${PACKAGE_FOLDER}, ${(bytes / 1e6).toFixed(1)} MB`);
    return 0;
  }
  if (text) {
    console.log(await compileModule(await sources(), text, true));
    return 0;
  }
  let code = 0;
  for (const { name, files, stale, write } of chosen(positionals)) {
    const paths = await stale();
    if (paths.length > 0 && check) {
      console.error(`error: ${paths.join(", ")} is stale. Run: deno task build ${name}`);
      code = 1;
    } else if (paths.length > 0 || (!check && name === "wasm")) {
      await write();
      console.log(`${name}: written, ${files}`);
    } else console.log(`${name}: up to date`);
  }
  return code;
});
