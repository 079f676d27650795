// What a spec says, its blocks read: every key of every shipped spec is read when the models of its family are built,
// and keys that belong to another kind are refused by their path.

import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";
import { buildParts } from "../../tests/support/key_outcomes.ts";
import { checkpointPath, isSeeded } from "../../tests/support/seeded_weights.ts";
import { FormatError } from "../errors.ts";
import { readModelParts } from "./build.ts";
import { openModel } from "./open_model.ts";
import { resolveSpec } from "./spec.ts";
import { chooseSpec } from "./specs/mod.ts";
import bert from "./specs/bert.json" with { type: "json" };
import deepseek2 from "./specs/deepseek2.json" with { type: "json" };
import gptOss from "./specs/gpt_oss.json" with { type: "json" };
import llama from "./specs/llama.json" with { type: "json" };
import names from "./specs/names.json" with { type: "json" };
import qwen2 from "./specs/qwen2.json" with { type: "json" };
import t5 from "./specs/t5.json" with { type: "json" };

/** A change of a spec and the message about it; `set` takes a path, a value of undefined takes the key away. */
const REFUSED: readonly (readonly [spec: object, path: string, value: unknown, message: RegExp])[] =
  [
    [bert, "norm.base", 1, /norm\.base: is read only where norm\.kind is "rms"/],
    [llama, "attention.ropeTemperature", true, /ropeTemperature: .* attention\.kind is "latent"/],
    [deepseek2, "attention.headNorm", "head", /headNorm: .* attention\.kind is "heads"/],
    [
      deepseek2,
      "attention.kinds.full",
      {},
      /attention\.kinds\.full\.theta: is missing: it is needed/,
    ],
    [bert, "attention.ropeStyle", "half", /attention\.ropeStyle: is read only where a kind/],
    [llama, "attention.ropeStyle", undefined, /attention\.ropeStyle: is missing: it is needed/],
    [bert, "attention.kinds.full.scaling", "ropeScaling", /full\.scaling: .* the kind has theta/],
    [llama, "attention.pattern.others", "full", /others: .*rule is "every", "from" or "listed"/],
    [llama, "attention.pattern.period", "windowPeriod", /period: .*rule is "every"/],
    [llama, "attention.pattern.start", "windowStart", /start: .*rule is "from"/],
    [llama, "attention.pattern.when", "windowEnabled", /when: .*rule is "from"/],
    [qwen2, "attention.pattern.start", undefined, /attention\.pattern\.start: is missing/],
    [qwen2, "attention.pattern.others", undefined, /attention\.pattern\.others: is missing/],
    [qwen2, "attention.pattern.rule", "every", /pattern\.period: is missing|when: is read only/],
    [llama, "feedForward.router", { score: "softmax", bias: "none" }, /router: .* is "mixture"/],
    [llama, "feedForward.shared", { inner: "hidden", gated: false }, /shared: .* is "mixture"/],
    [deepseek2, "feedForward.router", undefined, /feedForward\.router: is missing/],
    [bert, "feedForward.clamped", true, /clamped: .* is "gated" or "mixture"/],
    [gptOss, "feedForward.activation", "silu", /activation: .* is not clamped/],
    [llama, "embedding.types", true, /embedding\.types: .* network is "encoder"/],
    [llama, "classifier", true, /classifier: .* network is "encoder"/],
    [llama, "pairSeparators", 1, /pairSeparators: .* network is "encoder"/],
    [llama, "translation", {}, /translation: .* network is "encoder-decoder"/],
    [llama, "encoder", { layer: [] }, /encoder: .* network is "encoder-decoder"/],
    [t5, "encoder", undefined, /encoder: is missing/],
    [llama, "attention.relativeBias", true, /relativeBias: .* "encoder" or "encoder-decoder"/],
    [bert, "head.norm", false, /head\.norm: .* "decoder" or "encoder-decoder"/],
  ];

function withValue(spec: object, path: string, value: unknown): object {
  const copy = structuredClone(spec) as Record<string, unknown>;
  const steps = path.split(".");
  let at = copy;
  for (const step of steps.slice(0, -1)) at = at[step] as Record<string, unknown>;
  if (value === undefined) delete at[steps.at(-1)!];
  else at[steps.at(-1)!] = value;
  return copy;
}

Deno.test("a key that no block reads is refused with its path, and one that a block needs is asked for", () => {
  for (const [spec, path, value, message] of REFUSED) {
    const changed = withValue(spec, path, value);
    const error = assertThrows(
      () =>
        resolveSpec(changed, {
          common: names,
          context: { convention: "huggingface", file: "toy.json" },
        }),
      FormatError,
      undefined,
      path,
    );
    assertMatch(error.message, message);
  }
});

/** Keys that other stages read, and those that a file may decide by itself: the kinds of its layers. */
const ELSEWHERE =
  /^(\$schema|name|matches|defaults|required|derived|cases|names|network|pairSeparators|translation)\b|^attention\.(pattern|types|kinds|ropeStyle)\b/;

/** Paths of the plain values of a spec. */
function leavesOf(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value)
    .flatMap(([key, one]) => leavesOf(one, path === "" ? key : `${path}.${key}`));
}

/** The same value, and every path that is read of it goes into `seen`. */
function recorded<T>(value: T, seen: Set<string>, path = ""): T {
  if (typeof value !== "object" || value === null) return value;
  const pathOf = (key: string) => path === "" ? key : `${path}.${key}`;
  return new Proxy(value, {
    get(target, key) {
      const found = Reflect.get(target, key);
      if (typeof key === "symbol" || !Object.hasOwn(target, key)) return found;
      seen.add(pathOf(key));
      return recorded(found, seen, pathOf(key));
    },
  });
}

const FOLDERS = [...Deno.readDirSync(fixturePath("models"))].map(({ name }) => name).sort()
  .filter((name) => name !== "llama_formats" && hasConfig(name));

function hasConfig(name: string): boolean {
  try {
    readFixture(`models/${name}/config.json`);
    return true;
  } catch {
    return false;
  }
}

Deno.test("every key of a shipped spec is read when a model of its family is built", async () => {
  const unread = new Map<string, Set<string>>();
  for (const name of FOLDERS) {
    const folder = fixturePath(`models/${name}`);
    const file = await openModel(isSeeded(folder) ? checkpointPath(name) : folder);
    try {
      const { resolved, architecture } = chooseSpec(file);
      const parts = readModelParts(resolved, { stored: file, architecture });
      const { spec } = parts.resolved, seen = new Set<string>();
      await buildParts({ ...parts, resolved: { ...parts.resolved, spec: recorded(spec, seen) } });
      const left = leavesOf(spec).filter((path) => !ELSEWHERE.test(path) && !seen.has(path));
      const before = unread.get(spec.name);
      unread.set(spec.name, before ? before.intersection(new Set(left)) : new Set(left));
    } finally {
      file.close();
    }
  }
  const rows = [...unread].flatMap(([name, paths]) => [...paths].map((path) => `${name}: ${path}`));
  assertEquals(rows, []);
});
