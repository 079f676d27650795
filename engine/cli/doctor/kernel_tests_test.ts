import { assert, assertEquals, assertRejects } from "@std/assert";
import { partLine, verdictOf } from "./kernel_health.ts";
import { testKernels } from "./kernel_tests.ts";

/** What a process of some code runs. */
function moduleOf(code: string): URL {
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

const PASSED = { op: "rms_norm", kernel: "gpu_rms_norm_f32", case: "a case", outcome: "passed" };
const BEGINS = `console.log(JSON.stringify({ begins: "gpu_rope_f32" }));`;
const TELLS = `console.log(${
  JSON.stringify(JSON.stringify({ check: { ...PASSED, done: 0.25 } }))
}); ${BEGINS}`;

/** Two such processes; what they are at is drawn until `until` has come, then the time is over. */
function test(code: string, { until, signal = new AbortController().signal }: {
  readonly until?: string;
  readonly signal?: AbortSignal;
} = {}) {
  const said: string[] = [], time = new AbortController();
  const err = (text: string) => {
    said.push(text);
    if (until !== undefined && text.includes(until)) time.abort();
  };
  const done = testKernels({
    ...{ device: "gpu", from: undefined, signal, terminal: { err, progress: true } },
    ...{ seconds: until === undefined ? Infinity : 3600, timer: () => time.signal },
    processes: { count: 2, url: moduleOf(code) },
  });
  return { said, done };
}

Deno.test("checks end when the time is over, also where no process comes back from its driver", async () => {
  const { said, done } = test(`${TELLS} while (true);`, {
    until: "25 %, 2 checks in",
  });
  const { kernels, part } = await done;
  assertEquals([part.device, part.done], ["gpu", 0.25]);
  const verdicts = new Map(kernels.map((health) => [health.kernel, verdictOf(health)]));
  assertEquals(verdicts.get("gpu_rms_norm_f32"), "ok");
  assertEquals(verdicts.get("gpu_rope_f32"), "not reached");
  assert(verdicts.size > 50);
  const left = [...verdicts.values()].filter((verdict) => verdict === "not reached").length;
  assert(left > 50);
  assertEquals(part.left, left);
  assertEquals(
    partLine({ ...part, seconds: 6 }),
    `25 % of the checks of gpu in 6 s, nothing of ${left} kernels: --seconds N goes on for longer.`,
  );
  assert(partLine({ ...part, left: 0 }).includes(" s, of every kernel some: "));
  assertEquals(
    said[0],
    "Testing every kernel of gpu in 2 processes: at most 3600 s; --quick leaves it out.\n",
  );
  assert(said.some((text) => text.endsWith(", testing gpu_rope_f32")), said.join());
  assert(said.at(-1)!.startsWith("gpu: 2 checks in "));
});

Deno.test("what is checked to the end is told so", async () => {
  const { kernels, part } = await test(`${TELLS} console.log('"done"');`).done;
  assertEquals(part.done, 1);
  assertEquals(kernels.find(({ kernel }) => kernel === "gpu_rms_norm_f32")?.passed, 2);
});

Deno.test("behind a kernel that brings its process down not all is checked, and it has failed", async () => {
  const { kernels, part } = await test(`${TELLS} Deno.kill(Deno.pid, "SIGSEGV");`).done;
  assertEquals(part.done, 0.25);
  const failed = kernels.filter((health) => verdictOf(health) === "failed");
  assertEquals(failed.map(({ kernel, op }) => [kernel, op]), [["gpu_rope_f32", "rope"]]);
});

Deno.test("an interrupted check throws", async () => {
  const stop = new AbortController();
  const { done } = test(`${BEGINS} while (true);`, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assertRejects(() => done, Error, "enough");
});
