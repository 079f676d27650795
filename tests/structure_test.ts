// The laws of the repository: those about files as a whole are here, those about single expressions are
// rules of tools/lint_plugin.ts, applied here to every source file.

import { assert, assertEquals } from "@std/assert";
import config from "../deno.json" with { type: "json" };
import { ROOT } from "../tools/support/task.ts";
import plugin, { productPath } from "../tools/lint_plugin.ts";
import { sources } from "../tools/test.ts";

const FIXED_TOP_LEVEL = [
  ".ci",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "LICENSE",
  "README.md",
  "bench",
  "deno.json",
  "deno.lock",
  "docs",
  "engine",
  "examples",
  "functions",
  "gpu",
  "main.ts",
  "mod.ts",
  "quant",
  "tests",
  "tools",
  "wasm",
];

/** What a package of it exports. */
const ENTRIES = new Set<string>(Object.values(config.exports));

const IMPORT =
  /^\s*(?:import|export)\b(?!\()[^"';]*?["'](\.{1,2}\/[^"']+)["']|\bimport\(["'](\.[^"']+)["']\)/gm;

function read(path: string): string {
  return Deno.readTextFileSync(`${ROOT}/${path}`);
}

/** Code without what only looks like an import: comments and template literals. */
function code(path: string): string {
  return read(path).replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

function importsOf(path: string): string[] {
  return [...code(path).matchAll(IMPORT)].map(([, plain, dynamic]) =>
    new URL(plain ?? dynamic!, `file:///${path}`).pathname.slice(1)
  );
}

/** First cycle found by depth-first search, as a path, or undefined. */
function findCycle(edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const stack: string[] = [];
  const visit = (node: string): string[] | undefined => {
    const at = stack.indexOf(node);
    if (at >= 0) return [...stack.slice(at), node];
    if (done.has(node)) return undefined;
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      const cycle = visit(next);
      if (cycle) return cycle;
    }
    stack.pop();
    done.add(node);
    return undefined;
  };
  for (const node of edges.keys()) {
    const cycle = visit(node);
    if (cycle) return cycle;
  }
  return undefined;
}

Deno.test("findCycle() sees a cycle through several files and none in a diamond", () => {
  assertEquals(findCycle(new Map([["a", ["b", "c"]], ["b", ["d"]], ["c", ["d"]]])), undefined);
  assertEquals(findCycle(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]])), ["b", "c", "b"]);
});

Deno.test("every source file keeps the laws of tools/lint_plugin.ts", () => {
  // Of other files the rules ask nothing, and to read them takes as long.
  const product = sources().filter((path) => productPath(path) && !path.endsWith(".gen.ts"));
  assert(product.length > 500, `${product.length} files`);
  const broken = product.flatMap((path) =>
    Deno.lint.runPlugin(plugin, path, read(path)).map(({ message, range: [at] }) =>
      `${path}:${read(path).slice(0, at).split("\n").length}: ${message}`
    )
  );
  assertEquals(broken, []);
});

/** Names that a file takes from another: imported, exported anew, or read off a file that is imported when needed. */
function namesTaken(path: string): (readonly [from: string, name: string])[] {
  const text = code(path);
  const at = (target: string) => new URL(target, `file:///${path}`).pathname.slice(1);
  const lists = text.matchAll(
    /\b(?:import|export)\s+(?:type\s+)?(?:\w+\s*,\s*)?\{([^}]*)\}\s*from\s*"(\.[^"]+)"/g,
  );
  const named = [...lists].flatMap(([, names, target]) =>
    names!.split(",").map((name) =>
      [at(target!), name.trim().replace(/^type\s+/, "").split(/\s/)[0]!] as const
    )
  );
  const whole = text.matchAll(/(?:\bimport\(\s*|\*(?:\s+as\s+\w+)?\s+from\s*)"(\.[^"]+)"/g);
  const words = new Set(text.match(/\w+/g));
  return [
    ...named,
    ...[...whole].flatMap(([, target]) => [...words].map((word) => [at(target!), word] as const)),
  ];
}

/** The checks of a graph, which only tests run as a whole. */
const FOR_TESTS = ["engine/graph/verify.ts verify"];

Deno.test("what a file of the product exports is used by another, and not by tests alone", () => {
  const takenBy = (paths: readonly string[]) =>
    new Set(paths.flatMap(namesTaken).map((entry) => entry.join(" ")));
  const taken = takenBy(sources());
  const takenInEarnest = takenBy(sources().filter((path) => !/_test\.ts$/.test(path)));
  const product = sources().filter((path) =>
    /^(engine|functions|quant|wasm|gpu)\//.test(path) && !/_test\.ts$|^wasm\/gen\//.test(path) &&
    // Taken by the bundler, in the place of globals and of other files.
    !/^engine\/platform\/\w+\/(globals|npm_packages)\.ts$/.test(path)
  );
  const idle = product.flatMap((path) =>
    [...code(path).matchAll(/^export (?:async )?(?:function\*?|const|let|class) (\w+)/gm)]
      .filter(([, name]) =>
        !taken.has(`${path} ${name}`) ||
        !takenInEarnest.has(`${path} ${name}`) && !ENTRIES.has(`./${path}`) &&
          code(path).match(new RegExp(`\\b${name}\\b`, "g"))!.length === 1
      ).map(([, name]) => `${path} ${name}`)
  );
  assertEquals(idle, FOR_TESTS);
});

/**
 * The stages of engine/, in order: a file uses its own stage and those before it. What only names types counts too.
 * ARCHITECTURE.md says what each holds.
 */
const STAGES = [
  ...[
    "errors.ts",
    "byte_source.ts",
    "lock.ts",
    "pause.ts",
    "file_errors.ts",
    "percent.ts",
    "io.ts",
  ],
  ...["record.ts", "npm_packages.ts", "builtin.ts", "nearest.ts", "option_keys.ts"],
  ...[
    "formats",
    "pictures",
    "text",
    "tokenizers.ts",
    "graph",
    "ops",
    "plan",
    "run",
    "place",
    "decode",
    "onnx",
  ],
  ...["models", "quantize", "inferflow", "pipelines", "mod.ts", "serve", "cli", "platform"],
];

Deno.test("a stage of engine/ uses only stages before it", () => {
  const stageOf = (path: string) => STAGES.indexOf(path.split("/")[1]!);
  const product = sources().filter((path) =>
    path.startsWith("engine/") && !path.endsWith("_test.ts")
  );
  assertEquals(product.filter((path) => stageOf(path) < 0), [], "of no stage");
  const against = product.flatMap((path) =>
    importsOf(path).filter((to) => to.startsWith("engine/") && stageOf(to) > stageOf(path))
      .map((to) => `${path} → ${to}`)
  );
  assertEquals(against, []);
});

Deno.test("benches use of tools what is in tools/support, and of tools only deno task bench uses benches", () => {
  const against = sources().flatMap((path) =>
    importsOf(path).filter((to) =>
      path.startsWith("bench/") && to.startsWith("tools/") && !to.startsWith("tools/support/") ||
      path.startsWith("tools/") && to.startsWith("bench/") && path !== "tools/bench.ts"
    ).map((to) => `${path} → ${to}`)
  );
  assertEquals(against, []);
});

/** Files that a file reaches by imports that leave something in the code. */
function reachedByValue(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const [, clause, target] of code(path).matchAll(VALUE_IMPORT)) {
    if (
      clause && /^\s*\{/.test(clause) && clause.replace(/[{}]/g, "").split(",").every(isTypeOrBlank)
    ) {
      continue;
    }
    reachedByValue(new URL(target!, `file:///${path}`).pathname.slice(1), seen);
  }
  return seen;
}

const VALUE_IMPORT = /^\s*(?:import|export)\s+(?!type\b)([^"';]*?)(?:from\s*)?"(\.{1,2}\/[^"]+)"/gm;

function isTypeOrBlank(name: string): boolean {
  return name.trim() === "" || name.trim().startsWith("type ");
}

Deno.test("building a graph loads neither ops nor devices", () => {
  const reached = reachedByValue("engine/graph/builder.ts");
  assertEquals(reached.size <= 40, true, `${reached.size} files`);
});

/** Files that an opener of run/devices.ts imports when its device is chosen, and those that these reach. */
function reachedByDevice(name: string): ReadonlySet<string> {
  const path = "engine/run/devices.ts";
  const opener = new RegExp(`^  ${name}: async [\\s\\S]*?^  },$`, "m").exec(code(path))![0];
  const answers = /^async function answersOfWasm[\s\S]*?^}$/m.exec(code(path))![0];
  const reached = new Set(reachedByValue(path));
  for (const [, , target] of (opener + answers).matchAll(IMPORT)) {
    reachedByValue(new URL(target!, `file:///${path}`).pathname.slice(1), reached);
  }
  return reached;
}

Deno.test("who computes on the CPU loads no code of a GPU", () => {
  const isOfGpu = (path: string) => /^(gpu\/kernels|engine\/run\/gpu)\//.test(path);
  assertEquals([...reachedByDevice("gpu")].filter(isOfGpu).length > 100, true);
  const reached = ["wasm", "reference"].flatMap((name) => [...reachedByDevice(name)]);
  const all = ["mod.ts", "engine/models/load_file.ts"].flatMap((path) => [...reachedByValue(path)]);
  assertEquals([...reached, ...all].filter(isOfGpu), []);
  assertEquals(reached.includes("engine/run/wasm/kernel_table.ts"), true);
});

/** Folders of one record a file, of one kind. */
const TABLES = ["engine/ops/records", "quant/formats"];

/** Paths of all files below a folder; `sources` leaves out what another compiler reads. */
function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(`${ROOT}/${folder}`)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(`${folder}/${name}`) : [`${folder}/${name}`]
  );
}

Deno.test("a folder has at most 40 files, where they are not records of one kind", () => {
  const product = [...sources(), ...filesIn("wasm/assembly")].filter((path) =>
    /^(engine|functions|gpu|quant|wasm)\//.test(path) && !path.endsWith("_test.ts")
  );
  const folders = Map.groupBy(product, (path) => path.slice(0, path.lastIndexOf("/")));
  const full = [...folders].filter(([folder, files]) =>
    files.length > 40 && !TABLES.includes(folder)
  );
  assertEquals(full.map(([folder, files]) => `${folder}: ${files.length}`), []);
});

Deno.test("no file imports itself through others", () => {
  const edges = new Map(sources().map((path) => [path, importsOf(path)]));
  assertEquals(findCycle(edges)?.join(" → "), undefined);
});

Deno.test("no source file is longer than 500 lines", () => {
  const long = sources()
    .filter((path) => !path.endsWith(".gen.ts") && !path.endsWith("_test.ts"))
    .map((path) => `${path}: ${read(path).split("\n").length - 1}`)
    .filter((entry) => Number(entry.split(": ")[1]) > 500);
  assertEquals(long, []);
});

Deno.test("every source file opens with a comment that says what it is", () => {
  const bare = sources().filter((path) =>
    !path.endsWith(".gen.ts") && !path.endsWith("_test.ts") && !/^(#!.*\n)?\/[/*]/.test(read(path))
  );
  assertEquals(bare, []);
});

Deno.test("the top level of the repository is fixed", () => {
  const hidden = new Set([".git", ".gitignore", ".gitattributes", "dist"]);
  const surplus = [...Deno.readDirSync(ROOT)]
    .map(({ name }) => name)
    .filter((name) => !FIXED_TOP_LEVEL.includes(name) && !hidden.has(name));
  assertEquals(surplus, []);
});

Deno.test("fixtures stay small enough to clone: 8 MB", () => {
  const sizeOf = (folder: string): number =>
    [...Deno.readDirSync(folder)].reduce((sum, { name, isDirectory }) => {
      const path = `${folder}/${name}`;
      return sum + (isDirectory ? sizeOf(path) : Deno.statSync(path).size);
    }, 0);
  const bytes = sizeOf(`${ROOT}/tests/fixtures`);
  assertEquals(bytes > 1e6 && bytes < 8e6, true, `${bytes} bytes`);
});

Deno.test("a comment names only source files that are there", () => {
  const paths = [...sources(), ...filesIn("wasm/assembly")].map((path) => `/${path}`);
  const comment = /^\s*(?:\/\/|\/?\*).*$/gm, file = /(?<![\w/.*-])(?:[\w-]+\/)*[\w-]+\.ts\b/g;
  // documents_test.ts speaks of file names as such.
  const missing = sources().filter((path) => path !== "tests/documents_test.ts").flatMap((path) =>
    (read(path).match(comment) ?? []).flatMap((line) => line.match(file) ?? [])
      .filter((name) => !paths.some((known) => known.endsWith(`/${name}`)))
      .map((name) => `${path}: ${name}`)
  );
  assertEquals(missing, []);
});

Deno.test("a test finds fixtures from any working folder", () => {
  const tests = sources().filter((path) => path.endsWith("_test.ts"));
  assertEquals(tests.filter((path) => /["'`]tests\/fixtures/.test(read(path))), []);
});
