// `deno task mutate`: do the tests notice? Each of a table of deliberate faults (tools/mutate/) is put into a copy of
// the tree, one at a time, and the nearest tests are run there; they must fail. Which they must not without the fault:
// that is tried first. A fault whose text is no longer in its file, or is there twice, is an error, because it says
// nothing about the tests any more.

import { deleteAtInterrupt, startChild } from "./support/children.ts";
import { ROOT, runTask } from "./support/task.ts";
import { type Fault, occurrences } from "./mutate/fault.ts";
import { faults } from "./mutate/faults.ts";

const LINE = {
  name: "deno task mutate",
  summary: "Puts deliberate faults into a copy of the tree; the nearest tests must notice each.",
  positionals: ["[FILTER…]"],
  flags: {
    only: { type: "integer", min: 1, max: faults.length, value: "N", help: "this fault alone" },
    list: { type: "boolean", help: "list the faults, run nothing" },
  },
  examples: [
    ["deno task mutate", `all ${faults.length}, many minutes`],
    ["deno task mutate --only 7", "one of them"],
    ["deno task mutate quant/", "those of files whose path contains this"],
  ],
} as const;

/** A fault that makes a loop endless is noticed too. */
const LONGEST_MS = 180_000;

/** How the nearest tests ended. */
type Outcome = "passed" | "failed" | "not run";

interface Tests {
  readonly outcome: Outcome;
  readonly output: string;
}

await runTask(LINE, async ({ positionals, flags }) => {
  const chosen = [...faults.entries()].filter(([index, { file }]) =>
    (flags.only === undefined || flags.only === index + 1) &&
    (positionals.length === 0 || positionals.some((part) => file.includes(part)))
  );
  if (chosen.length === 0) {
    console.error(`error: no fault is in a file whose path has ${positionals.join(" or ")}`);
    return 1;
  }
  const stale = chosen.filter(([, fault]) => occurrences(fault) !== 1);
  for (const [index, fault] of stale) {
    const count = occurrences(fault);
    console.error(`error: fault ${index + 1}: its text is ${count} times in ${fault.file}`);
  }
  if (stale.length > 0) return 1;
  if (flags.list) {
    for (const [index, { file, what }] of chosen) console.log(`${index + 1} ${file}: ${what}`);
    return 0;
  }
  const copy = await copyTree();
  try {
    return await tryAll(copy, chosen);
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
});

/** All files that git knows or would take, in a folder of their own. */
async function copyTree(): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "mutate" });
  deleteAtInterrupt(copy);
  const { stdout } = await new Deno.Command("git", {
    args: ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    cwd: ROOT,
  }).output();
  for (const path of new TextDecoder().decode(stdout).split("\0").filter((name) => name !== "")) {
    const to = `${copy}/${path}`;
    Deno.mkdirSync(to.replace(/\/[^/]*$/, ""), { recursive: true });
    try {
      Deno.copyFileSync(`${ROOT}/${path}`, to);
    } catch (error) {
      // It is deleted and not committed yet.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return copy;
}

async function tryAll(
  copy: string,
  chosen: readonly (readonly [number, Fault])[],
): Promise<number> {
  const sound = new Set<string>();
  let noticed = 0, missed = 0;
  for (const [index, fault] of chosen) {
    const key = JSON.stringify([fault.tests, fault.name]);
    if (!sound.has(key)) {
      const { outcome, output } = await runTests(copy, fault);
      if (outcome !== "passed") {
        console.error(`error: ${fault.tests.join(" ")} must pass without a fault\n${output}`);
        return 1;
      }
      sound.add(key);
    }
    const start = performance.now();
    const isNoticed = await tryFault(copy, fault);
    if (isNoticed === undefined) return 1;
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    if (isNoticed) noticed++;
    else missed++;
    console.log(
      `${isNoticed ? "noticed" : "MISSED"} ${
        index + 1
      } ${fault.file}: ${fault.what} (${seconds} s)`,
    );
  }
  console.log(`${noticed} noticed, ${missed} missed`);
  return missed > 0 ? 1 : 0;
}

/** Whether a test fails with the fault; undefined if no test ran. */
async function tryFault(copy: string, fault: Fault): Promise<boolean | undefined> {
  const changed = [fault.file, ...isKernel(fault) ? await kernels(copy) : []];
  const texts = changed.map((file) => Deno.readTextFileSync(`${copy}/${file}`));
  try {
    Deno.writeTextFileSync(`${copy}/${fault.file}`, texts[0]!.replace(fault.from, () => fault.to));
    if (isKernel(fault)) {
      const built = await run(copy, ["run", "--allow-all", "tools/build.ts", "wasm"]);
      if (built.code !== 0) {
        console.error(`error: ${fault.file}, "${fault.to}" does not compile\n${built.output}`);
        return undefined;
      }
    }
    const { outcome, output } = await runTests(copy, fault);
    if (outcome !== "not run") return outcome === "failed";
    console.error(`error: with "${fault.to}" in ${fault.file} no test runs\n${output}`);
    return undefined;
  } finally {
    changed.forEach((file, i) => Deno.writeTextFileSync(`${copy}/${file}`, texts[i]!));
  }
}

/** What is compiled before it is run. */
function isKernel({ file }: Fault): boolean {
  return file.startsWith("wasm/assembly/");
}

async function kernels(copy: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of Deno.readDir(`${copy}/wasm`)) {
    if (name.endsWith(".gen.json")) found.push(`wasm/${name}`);
  }
  return found;
}

async function runTests(copy: string, { tests, name }: Fault): Promise<Tests> {
  const { code, output } = await run(copy, [
    ...["test", "--allow-all", "--no-check", "--fail-fast", "--quiet"],
    ...name === undefined ? [] : [`--filter=${name}`],
    ...tests,
  ]);
  if (code === undefined) return { outcome: "failed", output };
  const [, passed = "0", failed = "0"] = /\| (\d+) passed[^|]*\| (\d+) failed/.exec(output) ?? [];
  // What does not load at all counts as one failure without a test; no test must not count as passed.
  const isLoaded = !/\(uncaught error\)/.test(output);
  if (code === 0) return { outcome: Number(passed) > 0 ? "passed" : "not run", output };
  return { outcome: Number(failed) > 0 && isLoaded ? "failed" : "not run", output };
}

/** Runs deno in the copy; without a code if it had to be stopped. */
async function run(
  copy: string,
  args: readonly string[],
): Promise<{ readonly code: number | undefined; readonly output: string }> {
  const child = startChild(Deno.execPath(), {
    args: [...args],
    cwd: copy,
    env: { NO_COLOR: "1" },
    ...{ stdin: "null", stdout: "piped", stderr: "piped" },
  });
  let isStopped = false;
  const timer = setTimeout(() => {
    isStopped = true;
    child.kill("SIGKILL");
  }, LONGEST_MS);
  const { code, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const output = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  return { code: isStopped ? undefined : code, output };
}
