// `deno task test [FILTER]`: the tests whose path matches, with counts as the last line. Types are the
// business of `deno task ok`; here they are left out so that a narrow run starts at once. The examples
// in JSDoc of the matching files are tests too, in a folder of files that they may speak of. Files run side by side, because most of them load modules,
// compile shaders or wait for a process on one processor; those that measure or change their process follow,
// one at a time.

import { makeExampleFolder } from "./support/example_files.ts";
import { deno, ROOT, runTask } from "./support/task.ts";
import { readJunit, type TestOutcome } from "./support/junit.ts";

const LINE = {
  name: "deno task test",
  summary: "Runs the tests, and the examples in the documentation.",
  positionals: ["[FILTER…]"],
  flags: {
    name: { type: "string", value: "TEXT", help: "only tests whose name contains this" },
    strict: { type: "boolean", help: "a skipped test is a failure (always so where CI is set)" },
    "no-docs": { type: "boolean", help: "leave out the examples in JSDoc" },
    "trace-leaks": {
      type: "boolean",
      help: "say where a leaked timer or file was opened (slower)",
    },
    "fail-fast": { type: "boolean", help: "stop at the first failure" },
    slowest: { type: "integer", min: 1, help: "list so many tests that took longest" },
  },
  examples: [
    ["deno task test", "everything"],
    ["deno task test quant gguf", "files whose path contains quant or gguf"],
    ["deno task test session --name rewind", "of those, the tests whose name contains rewind"],
  ],
} as const;

const FOLDERS = [
  "engine",
  "gpu",
  "wasm",
  "quant",
  "functions",
  "tests",
  "tools",
  "bench",
  "examples",
];

/** What is in a folder; nothing when it is not there (git keeps no empty folders). */
function entries(path: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(path)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** TypeScript files of the project, as paths from the root, in order. */
export function sources(root: string = ROOT): string[] {
  const found: string[] = [];
  const walk = (folder: string): void => {
    for (const { name, isDirectory } of entries(`${root}/${folder}`)) {
      const path = `${folder}/${name}`;
      if (isDirectory) {
        if (path !== "tests/fixtures" && name !== "node_modules" && name !== "assembly") walk(path);
      } else if (name.endsWith(".ts")) found.push(path);
    }
  };
  for (const folder of FOLDERS) walk(folder);
  for (const { name, isFile } of Deno.readDirSync(root)) {
    if (isFile && name.endsWith(".ts")) found.push(name);
  }
  return found.sort();
}

/** Files with an example to run: a fenced `ts` block in a comment that is not marked `ignore`. */
function withExamples(paths: readonly string[]): string[] {
  return paths.filter((path) =>
    !path.endsWith("_test.ts") && !path.endsWith(".gen.ts") &&
    /^\s*\* ```(ts|js|typescript)\s*$/m.test(Deno.readTextFileSync(`${ROOT}/${path}`))
  );
}

/** What a file looks at or changes that belongs to the process, and so to all files that run in it. */
const OF_THE_PROCESS = /performance\.now\(|memoryUsage\(|env\.(set|delete)\(|addSignalListener\(/;

/** A file whose support measures. */
const ALONE: ReadonlySet<string> = new Set(["tests/onnx_plans_test.ts"]);

function runsAlone(path: string): boolean {
  if (ALONE.has(path)) return true;
  // What stands in templates is code for processes of its own.
  const text = Deno.readTextFileSync(`${ROOT}/${path}`).replace(/`[^`]*`/g, "");
  return OF_THE_PROCESS.test(text);
}

/**
 * Files that take longest, in this order, so that none of them is left when all others are done. Deno begins with the deepest
 * folders and keeps the order that it is given within one depth; groups of short files lie high up.
 */
export const LONG: readonly string[] = [
  ...["browser_engine", "bench", "examples", "package", "gpu", "quality_figures", "near_prompts"],
  ...["dawn", "ops", "golden", "fuzz_beside", "tokenizer_reach", "models", "streaming", "speech"],
  ...["fuzz_graphs", "zero_ops", "structure", "wrong_kernels", "real_model", "guides", "cli"],
  ...["speculation", "lost_devices", "fuzz", "constrained_gpu", "edge", "image_models", "batch"],
].map((name) => `tests/${name}_test.ts`).concat(
  ["engine/serve/page/browser_test.ts", "engine/run/gpu/fused_test.ts"],
);

/** Long files first; the others as they are. */
export function longFirst(paths: readonly string[]): string[] {
  const given = new Set(paths);
  const long = LONG.filter((path) => given.has(path));
  return [...long, ...given.difference(new Set(long))];
}

/** Most files of a group. */
const GROUP = 12;

/**
 * Files that are loaded together, since to load what nearly every file imports takes a processor a third of a second each time,
 * as long as the tests of most files take: long ones by themselves, the others by dozens, or fewer where that leaves
 * too few groups for so many jobs.
 */
export function inGroups(files: readonly string[], jobs: number): readonly (readonly string[])[] {
  const long = files.filter((path) => LONG.includes(path));
  const short = files.filter((path) => !LONG.includes(path));
  const size = Math.min(GROUP, Math.ceil(short.length / (4 * jobs)));
  const groups = Array.from(
    { length: Math.ceil(short.length / (size || 1)) },
    (_, i) => short.slice(i * size, (i + 1) * size),
  );
  return [...long.map((path) => [path]), ...groups];
}

/** Writes a module for each group of several files, named after the first of them; a file alone is its own. */
async function writeGroups(
  groups: readonly (readonly string[])[],
  folder: string,
): Promise<string[]> {
  return await Promise.all(groups.map(async (files) => {
    const [first] = files as [string, ...string[]];
    if (files.length === 1) return first;
    const name = first.replace(/_test\.ts$/, "").replaceAll("/", ".");
    const path = `${folder}/${name}_and_${files.length - 1}_more_test.ts`;
    const imports = files.map((file) => `import "${import.meta.resolve(`../${file}`)}";\n`);
    await Deno.writeTextFile(path, imports.join(""));
    return path;
  }));
}

/**
 * Files at once on each processor: half of the time they wait for processes, browsers and drivers that compile. A few in all
 * are enough: each file may have WASM threads of its own, and the GPU is one.
 */
const JOBS_PER_PROCESSOR = 2, MOST_JOBS = 8;

function mostJobs(): number {
  return Math.min(MOST_JOBS, JOBS_PER_PROCESSOR * navigator.hardwareConcurrency);
}

/**
 * On Linux adapters are Vulkan's alone. Deno asks OpenGL's libraries, too, and libGLdispatch frees what each thread has while
 * the process ends: a thread of a test file that ends at the same time frees it again, and one of twenty runs of GPU tests
 * broke off. Asking both takes longer, besides.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = Deno.build.os === "linux"
  ? { DENO_WEBGPU_BACKEND: Deno.env.get("DENO_WEBGPU_BACKEND") ?? "vulkan" }
  : {};

/** Exit codes of a process that broke off: SIGABRT, SIGSEGV. */
const CRASHES: readonly number[] = [134, 139];

/** What came of some files. */
export interface Part {
  readonly exit: number;
  readonly outcomes: readonly TestOutcome[];
}

/** Files to run, and where. */
interface Batch {
  readonly files: readonly string[];
  readonly jobs: number;
  /** Working folder; default: the root. */
  readonly cwd?: string;
}

/** Runs files, side by side if there are processors; the exit code, and outcomes by test. */
async function runFiles(
  { files, jobs, cwd = ROOT }: Batch,
  flags: readonly string[],
): Promise<Part> {
  const junit = await Deno.makeTempFile({ suffix: ".xml" });
  try {
    const sideBySide = jobs > 1 && files.length > 1;
    const exit = await deno([
      ...["test", "--allow-all", "--no-check", `--junit-path=${junit}`],
      ...sideBySide ? ["--parallel"] : [],
      ...cwd === ROOT ? [] : ["--doc", `--config=${ROOT}/deno.json`],
      ...flags,
      ...files,
    ], { env: { ...ENVIRONMENT, ...sideBySide && { DENO_JOBS: String(jobs) } }, cwd });
    return { exit, outcomes: readJunit(await Deno.readTextFile(junit)) };
  } finally {
    await Deno.remove(junit);
  }
}

/**
 * Whether a process broke off that had written its report, which Deno does when all tests are done: threads of drivers may
 * still be at work when a process takes their libraries down, as those that `ENVIRONMENT` avoids were.
 */
function brokeWhileEnding({ exit, outcomes }: Part): boolean {
  return CRASHES.includes(exit) && outcomes.length > 0;
}

/** What a run comes to: lines to print, the counts last, and the exit code. */
export function report(
  parts: readonly Part[],
  strict: boolean,
): { readonly lines: readonly string[]; readonly exit: number } {
  const outcomes = parts.flatMap((part) => part.outcomes);
  const count = (outcome: string) => outcomes.filter((o) => o.outcome === outcome);
  const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
  // A file that does not load, or a leak found after a test, fails the run without a failed test.
  const unnamed = parts.filter((part) =>
    part.exit !== 0 && !brokeWhileEnding(part) &&
    part.outcomes.every(({ outcome }) => outcome !== "failed")
  ).length;
  const skips = skipped.length > 0 ? `, ${skipped.length} skipped` : "";
  const lines = [
    ...failed.map(({ file, name }) => `failed: ${file}: ${name}`),
    ...skipped.map(({ file, name }) => `skipped: ${file}: ${name}`),
    ...parts.filter(brokeWhileEnding).map(({ exit }) =>
      `note: a process of tests broke off with ${exit} when all of its tests were done`
    ),
    ...unnamed > 0 ? ["failed: a test file did not load, or the run was cut short: see above"] : [],
    `${passed.length} passed, ${failed.length + unnamed} failed${skips}`,
  ];
  const isGood = unnamed + failed.length === 0 && !(strict && skipped.length > 0);
  return { lines, exit: isGood ? 0 : 1 };
}

/** A line for each of the tests that took longest, beside others as it may have been. */
export function slowest(parts: readonly Part[], count: number): string[] {
  return parts.flatMap(({ outcomes }) => outcomes)
    .sort((a, b) => b.seconds - a.seconds).slice(0, count)
    .map(({ seconds, file, name }) => `${seconds.toFixed(1)} s: ${file}: ${name}`);
}

if (import.meta.main) {
  await runTask(LINE, async ({ positionals, flags }) => {
    const matching = sources().filter((path) =>
      positionals.length === 0 || positionals.some((filter) => path.includes(filter))
    );
    const docs = flags["no-docs"] ? [] : withExamples(matching);
    const tests = matching.filter((path) => path.endsWith("_test.ts"));
    if (tests.length + docs.length === 0) {
      console.error(`error: no test file has ${positionals.join(" or ")} in its path`);
      return 1;
    }
    const common = [
      ...flags["trace-leaks"] ? ["--trace-leaks"] : [],
      ...flags["fail-fast"] ? ["--fail-fast"] : [],
      ...flags.name === undefined ? [] : [`--filter=${flags.name}`],
    ];
    const done: Part[] = [];
    const run = async (batch: Batch) => {
      if (batch.files.length === 0) return;
      if (flags["fail-fast"] && done.some(({ exit }) => exit !== 0)) return;
      done.push(await runFiles(batch, common));
    };
    const folder = await makeExampleFolder();
    const groups = await Deno.makeTempDir();
    try {
      const together = longFirst(tests.filter((path) => !runsAlone(path)));
      const jobs = mostJobs();
      await run({ files: await writeGroups(inGroups(together, jobs), groups), jobs });
      await run({ files: tests.filter(runsAlone), jobs: 1 });
      await run({ files: docs.map((path) => `${ROOT}/${path}`), jobs, cwd: folder });
    } finally {
      for (const path of [folder, groups]) await Deno.remove(path, { recursive: true });
    }
    const { lines, exit } = report(done, flags.strict ?? Deno.env.get("CI") === "true");
    for (const line of [...slowest(done, flags.slowest ?? 0), ...lines]) console.log(line);
    return exit;
  });
}
