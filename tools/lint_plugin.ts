// The laws of this repository that a linter can hold, one rule each:
//
//   layers          imports point one way: quant, functions ← gpu, wasm ← engine ← mod.ts, main.ts;
//                   from outside comes only what PACKAGES lists, and what is bundled into the page
//   deno-api        `Deno.*` only where the outside world is touched (see DENO_FILES)
//   no-math-random  randomness comes from explicit seeds
//   no-module-let   no mutable state at module level in the engine
//   no-model-name   no branch on the name of an architecture: differences are data in models/specs
//   short-function  at most 120 lines a function
//   few-positionals at most two positional parameters and an options object of what a file exports; a third one
//                   within a file, and in the loops of number formats (POSITIONAL)
//
// tests/structure_test.ts applies them to every file, beside the rules about files as a whole (size,
// header, cycles). They are not in deno.json's "lint.plugins", because `deno lint` of Deno 2.9.6 crashes
// at its end in one of some twenty runs when it has a plugin. Tests, tools, benches and examples may do
// what they like.

/** The parts of the product, and what each may import from. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  quant: ["quant"],
  functions: ["functions"],
  gpu: ["gpu", "functions", "quant"],
  wasm: ["wasm", "functions", "quant"],
  engine: ["engine", "gpu", "wasm", "functions", "quant"],
  "mod.ts": ["engine", "gpu", "wasm", "quant"],
  // deno.json says the version.
  "main.ts": ["engine", "gpu", "wasm", "quant", "deno.json"],
};

/**
 * What the product takes from outside; all else is its own. No npm package: Deno fetches every package of
 * the lock file when the module graph names one, 140 MB for a user who wants a token.
 */
const PACKAGES: ReadonlySet<string> = new Set([
  "node:crypto",
  "node:module",
  "node:process",
  "node:util",
  "node:worker_threads",
  "node:zlib",
]);

/** What runs in a browser, bundled, and what is bundled with it (tools/build/page.ts). */
const IN_BROWSER = "engine/serve/page/client/";
const BUNDLED = /^(marked|highlight\.js(\/lib\/(core|languages\/[a-z]+))?)$/;

/** What stands for Deno's own files, threads and processes where Node or Bun runs the npm package. */
const FOR_NODE = "engine/platform/node/";

/** Whose types may be named where things are served; what is run comes by engine/npm_packages.ts. */
const TYPES_ONLY = /^(hono|prom-client|@nats-io|@ai-sdk\/provider)(\/|$)/;

/** Files of the product that may use `Deno.*`. */
const DENO_FILES: readonly RegExp[] = [
  /^main\.ts$/,
  /^engine\/(io|file_errors)\.ts$/,
  /^engine\/formats\/hub\//,
  /^engine\/serve\/host\/listen\.ts$/,
  /^engine\/place\/(cards|peer\/sockets)\.ts$/,
  /^engine\/cli\/(terminal|machine)\.ts$/,
  /^engine\/platform\/\w+\/globals\.ts$/,
];

const ROOT = import.meta.dirname!.replace(/\\/g, "/").replace(/\/tools$/, "");

/** Path from the root of the repository, or undefined when the file is not part of the product. */
export function productPath(filename: string): string | undefined {
  const path = filename.replaceAll("\\", "/").replace(`${ROOT}/`, "");
  const layer = path.includes("/") ? path.slice(0, path.indexOf("/")) : path;
  const ours = Object.hasOwn(LAYERS, layer) && !path.endsWith("_test.ts");
  return ours && !path.startsWith("wasm/assembly/") ? path : undefined;
}

/** Where a relative import leads, as a path from the root. */
function resolve(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

function layerOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : path;
}

const SPECS = `${ROOT}/engine/models/specs`;
const NO_SPECS: readonly string[] = ["names.json", "table.gen.json"];

/** Names of architectures: those of the spec files, and what containers call them. Empty before there are any. */
export function familyNames(): ReadonlySet<string> {
  try {
    return new Set(
      [...Deno.readDirSync(SPECS)]
        .filter(({ name }) => name.endsWith(".json") && !NO_SPECS.includes(name))
        .flatMap(({ name }) => {
          const { matches } = JSON.parse(Deno.readTextFileSync(`${SPECS}/${name}`));
          return [name.replace(/\.json$/, ""), ...matches.huggingface, ...matches.gguf];
        }),
    );
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Set();
    throw error;
  }
}

const layers: Deno.lint.Rule = {
  create(context) {
    const path = productPath(context.filename);
    if (path === undefined) return {};
    const allowed = LAYERS[layerOf(path)]!;
    const check = (
      node: Deno.lint.Node & { readonly importKind?: string },
      source: Deno.lint.Node | null | undefined,
    ): void => {
      const value = (source as { value?: unknown } | null | undefined)?.value;
      if (typeof value !== "string") return;
      if (!value.startsWith(".")) {
        if (layerOf(path) === "engine" && PACKAGES.has(value)) return;
        if (path.startsWith(FOR_NODE) && value.startsWith("node:")) return;
        const isServing = /^engine\/serve\//.test(path) && node.importKind === "type";
        if (isServing && TYPES_ONLY.test(value)) return;
        if (path.startsWith(IN_BROWSER) && BUNDLED.test(value)) return;
        return context.report({ node, message: `${path} imports ${value}, which no rule allows` });
      }
      const target = resolve(path, value);
      if (allowed.includes(layerOf(target))) return;
      context.report({
        node,
        message: `${path} imports ${target}: ${layerOf(path)} may import ${
          allowed.join(", ")
        } only`,
      });
    };
    return {
      ImportDeclaration: (node) => check(node, node.source),
      ExportNamedDeclaration: (node) => check(node, node.source),
      ExportAllDeclaration: (node) => check(node, node.source),
      ImportExpression: (node) => check(node, node.source),
    };
  },
};

const denoApi: Deno.lint.Rule = {
  create(context) {
    const path = productPath(context.filename);
    if (path === undefined || DENO_FILES.some((pattern) => pattern.test(path))) return {};
    return {
      // Also as a whole: `const { env } = Deno`, `globalThis.Deno`. Its types may be named anywhere.
      'Identifier[name="Deno"]'(node: Deno.lint.Identifier) {
        if (node.parent.type === "TSQualifiedName") return;
        context.report({
          node,
          message: "Deno.* belongs in the files that DENO_FILES lists, such as engine/io.ts",
        });
      },
    };
  },
};

const noMathRandom: Deno.lint.Rule = {
  create(context) {
    if (productPath(context.filename) === undefined) return {};
    return {
      'MemberExpression[object.name="Math"][property.name="random"]'(
        node: Deno.lint.MemberExpression,
      ) {
        context.report({ node, message: "Draw from an explicit seed instead of Math.random" });
      },
    };
  },
};

const noModuleLet: Deno.lint.Rule = {
  create(context) {
    if (!productPath(context.filename)?.startsWith("engine/")) return {};
    return {
      VariableDeclaration(node) {
        const parent = node.parent?.type;
        const top = parent === "Program" || parent === "ExportNamedDeclaration";
        if (node.kind === "const" || !top) return;
        context.report({ node, message: "State at module level: put it in a Model or a Session" });
      },
    };
  },
};

const names = [...familyNames()];

/** Methods that ask whether a text is, or is among, their argument. */
const QUESTIONS: ReadonlySet<string> = new Set(["includes", "indexOf", "has", "endsWith"]);

const noModelName: Deno.lint.Rule = {
  create(context) {
    const path = productPath(context.filename);
    if (!path?.startsWith("engine/")) return {};
    const report = (node: Deno.lint.Node, name: string) =>
      context.report({
        node,
        message: `A branch on the model name "${name}": say the difference in its spec`,
      });
    const check = (
      node: Deno.lint.Node | null | undefined,
      isNamed = (text: string) => names.includes(text),
    ): void => {
      if (node?.type !== "Literal" || typeof node.value !== "string" || node.value === "") return;
      if (isNamed(node.value)) report(node, node.value);
    };
    return {
      SwitchCase: (node) => check(node.test),
      BinaryExpression(node) {
        if (!/^[!=]==?$/.test(node.operator)) return;
        check(node.left as Deno.lint.Node);
        check(node.right);
      },
      // `name.startsWith("gemma")`, `["qwen2", "qwen3"].includes(name)`, `/^gemma/.test(name)`.
      CallExpression({ callee, arguments: [first] }) {
        if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
        const method = callee.property.name;
        if (method === "startsWith") {
          check(first, (text) => names.some((name) => name.startsWith(text)) && text.length > 2);
        }
        const pattern = (callee.object as { regex?: { pattern: string } }).regex?.pattern;
        if (pattern !== undefined && (method === "test" || method === "exec")) {
          const words = pattern.toLowerCase().match(/[a-z0-9_-]{4,}/g) ?? [];
          const named = words.find((word) => names.some((name) => name.startsWith(word)));
          if (named !== undefined) report(callee.object, named);
        }
        if (!QUESTIONS.has(method)) return;
        check(first);
        if (callee.object.type === "ArrayExpression") {
          callee.object.elements.forEach((e) => check(e));
        }
      },
      // `new Set(["qwen2", "qwen3"])`.
      NewExpression({ callee, arguments: [first] }) {
        if (callee.type !== "Identifier" || callee.name !== "Set") return;
        if (first?.type === "ArrayExpression") first.elements.forEach((e) => check(e));
      },
    };
  },
};

type Callable =
  | Deno.lint.FunctionDeclaration
  | Deno.lint.FunctionExpression
  | Deno.lint.ArrowFunctionExpression;

const MAX_LINES = 120;

const shortFunction: Deno.lint.Rule = {
  create(context) {
    if (productPath(context.filename) === undefined) return {};
    const { text } = context.sourceCode;
    const check = (node: Callable): void => {
      const lines = text.slice(...node.range).split("\n").length;
      if (lines <= MAX_LINES) return;
      context.report({ node, message: `A function of ${lines} lines: ${MAX_LINES} are the limit` });
    };
    return {
      FunctionDeclaration: check,
      FunctionExpression: check,
      ArrowFunctionExpression: check,
    };
  },
};

/** Where functions are called for every element, block or candidate, so that an object a call is what they would cost. */
const POSITIONAL =
  /^(quant|wasm\/gen|gpu\/layouts)\/|^engine\/(decode\/sampling\/order|text\/vocabulary\/table_index)\.ts$/;

/** What users call by three positional arguments stays as they call it. */
const PUBLISHED: ReadonlySet<string> = new Set(["encodeChat", "rerank"]);

/** Whether a last parameter is an options object, by its pattern, its name or its type. */
function isOptions(parameter: Deno.lint.Parameter | undefined): boolean {
  const plain = parameter?.type === "AssignmentPattern" ? parameter.left : parameter;
  if (plain?.type === "ObjectPattern" || plain?.type === "RestElement") return true;
  if (plain?.type !== "Identifier") return false;
  const type = plain.typeAnnotation?.typeAnnotation;
  const name = type?.type === "TSTypeReference" && type.typeName.type === "Identifier"
    ? type.typeName.name
    : "";
  return /^(options|wish|more)$/.test(plain.name) || /(Options|Limits|Wish)$/.test(name) ||
    type?.type === "TSTypeLiteral";
}

const fewPositionals: Deno.lint.Rule = {
  create(context) {
    const path = productPath(context.filename);
    if (path === undefined || POSITIONAL.test(path)) return {};
    return {
      FunctionDeclaration(node) {
        const most = node.parent.type === "ExportNamedDeclaration" ? 2 : 3;
        const count = node.params.length - (isOptions(node.params.at(-1)) ? 1 : 0);
        if (count <= most || PUBLISHED.has(node.id?.name ?? "")) return;
        context.report({
          node,
          message: `${node.id?.name} has ${count} positional parameters: ${most} and an options ` +
            "object are the limit",
        });
      },
    };
  },
};

/** The plugin. */
const plugin: Deno.lint.Plugin = {
  name: "troodon",
  rules: {
    layers,
    "deno-api": denoApi,
    "no-math-random": noMathRandom,
    "no-module-let": noModuleLet,
    "no-model-name": noModelName,
    "short-function": shortFunction,
    "few-positionals": fewPositionals,
  },
};

export default plugin;
