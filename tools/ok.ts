// `deno task ok`: the whole gate, one line a step with its time. All steps run even when one fails, so
// that one call shows everything there is to mend.

import { deno, ROOT, runTask } from "./support/task.ts";
import { sources } from "./test.ts";

const LINE = {
  name: "deno task ok",
  summary: "The whole gate: format, lint, types, generated files, tests with leak tracing.",
  flags: {
    "fail-fast": { type: "boolean", help: "stop at the first step that fails" },
    "no-tests": { type: "boolean", help: "everything but the tests" },
  },
  examples: [["deno task ok", "before every push"]],
  notes: ["Tests take the most of it; `deno task test FILTER` runs some of them."],
} as const;

/** A project with Deno's default options. */
const OUTSIDE = "tests/outside/deno.json";

interface Step {
  readonly name: string;
  readonly args: readonly string[];
}

/** Documents that show programs. */
function documents(): string[] {
  const guides = [...Deno.readDirSync(`${ROOT}/docs`)].map(({ name }) => `docs/${name}`)
    .filter((name) => name.endsWith(".md"));
  return ["README.md", ...guides.sort()];
}

// wasm/assembly is AssemblyScript: its compiler checks its types, in the build step.
function steps(tests: boolean): Step[] {
  const files = sources();
  return [
    { name: "format", args: ["fmt", "--check", "--quiet"] },
    { name: "lint", args: ["lint", "--quiet"] },
    { name: "types", args: ["check", "--doc", "--quiet", ...files] },
    {
      name: "types for users",
      args: ["check", "--quiet", "--config", OUTSIDE, "tests/outside/main.ts"],
    },
    {
      name: "types of what documents show",
      args: ["check", "--doc-only", "--quiet", ...documents()],
    },
    { name: "generated files are up to date", args: ["task", "--quiet", "build", "--check"] },
    ...tests ? [{ name: "tests", args: ["task", "--quiet", "test", "--trace-leaks"] }] : [],
  ];
}

await runTask(LINE, async ({ flags }) => {
  const results: string[] = [];
  let failed = false;
  for (const { name, args } of steps(!flags["no-tests"])) {
    console.log(`\n== ${name}`);
    const start = performance.now();
    const code = await deno(args);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    results.push(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
    console.log(results.at(-1));
    failed ||= code !== 0;
    if (failed && flags["fail-fast"]) break;
  }
  console.log(`\n${results.join("\n")}`);
  return failed ? 1 : 0;
});
