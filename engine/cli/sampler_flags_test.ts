import { assert, assertEquals, assertThrows } from "@std/assert";
import { resolveOptions, STEP_OPTIONS } from "../decode/sampling/options.ts";
import { samplingSteps } from "../decode/sampling/steps/mod.ts";
import type { SamplingStep } from "../decode/sampling/step.ts";
import { parseLine, UsageError } from "./args.ts";
import { SAMPLER_FLAGS, samplerOptions, STEP_FLAGS } from "./sampler_flags.ts";

const LINE = { name: "test", summary: "", flags: SAMPLER_FLAGS, examples: [] } as const;
/** What a number may be, with an order in which the first allowed one switches most steps on. */
const VALUES = [0.5, 2, 1, 3, 0];

function resolved(args: readonly string[]) {
  return resolveOptions(samplerOptions(parseLine(LINE, args).flags)).chain;
}

function chainOf(...args: string[]): string[] {
  return resolved(args).map(({ name }) => name);
}

/** A flag and a value with which its step is on. */
function valueOf(name: string): string {
  const { flag } = STEP_FLAGS.find((one) => one.name === name)!;
  const { min = -Infinity, max = Infinity, type } = flag;
  const value = VALUES.find((one) =>
    one >= min && one <= max && (type === "number" || Number.isInteger(one))
  );
  return String(value);
}

/** Flags of a step. */
function flagsOf(step: SamplingStep): string[] {
  const own = STEP_OPTIONS.filter((one) => one.step.name === step.name).map(({ option }) => option);
  return STEP_FLAGS.filter(({ option }) => own.includes(option)).map(({ name }) => name);
}

Deno.test("--greedy and a flag of any step is refused, or the step is applied and the answer stays greedy", () => {
  for (const step of samplingSteps.values()) {
    for (const name of flagsOf(step)) {
      const args = ["--greedy", `--${name}=${valueOf(name)}`];
      if (step.asksForChance) {
        assertThrows(() => chainOf(...args), UsageError, "--greedy stands for itself", name);
      } else {
        assert(resolved(args).some(({ isGreedy }) => isGreedy), name);
      }
    }
  }
});

Deno.test("every flag of a step reaches it", () => {
  const reached = new Set<string>();
  for (const step of samplingSteps.values()) {
    for (const name of flagsOf(step)) {
      const chain = chainOf(`--${name}=${valueOf(name)}`);
      assertEquals(chain.includes("greedy"), !step.asksForChance, name);
      for (const one of chain) reached.add(one);
    }
  }
  for (const name of ["penalties", "top_k", "top_p", "min_p", "typical", "temperature"]) {
    assert(reached.has(name), name);
  }
  assert(reached.has("mirostat") && reached.has("top_n_sigma"));
});

Deno.test("flags that scripts rely on are there, with their limits", () => {
  assertEquals(Object.keys(SAMPLER_FLAGS).toSorted(), [
    ...["frequency-penalty", "greedy", "min-p", "mirostat", "presence-penalty", "repeat-last-n"],
    ...["repeat-penalty", "sampling", "seed", "temperature", "top-k", "top-n-sigma", "top-p"],
    "typical-p",
  ]);
  assertThrows(() => chainOf("--top-p=2"), UsageError, "--top-p takes a number, 0 to 1: got 2");
  assertThrows(() => chainOf("--top-k=1.5"), UsageError, "--top-k takes a whole number");
  assertThrows(() => chainOf("--mirostat=3"), UsageError, "0 to 2");
  assertThrows(() => chainOf("--temperature=-1"), UsageError, "0 or more");
});

Deno.test("--greedy stands beside a seed, not beside --sampling", () => {
  assert(resolved(["--greedy", "--seed=4"]).some(({ isGreedy }) => isGreedy));
  assertThrows(() => chainOf("--greedy", "--sampling={}"), UsageError, "stands for itself");
  assertThrows(() => chainOf("--sampling=[]"), UsageError, "a JSON object");
  assertEquals(chainOf('--sampling={"minP":0.1}', "--temperature=0.5"), [
    ...["temperature", "min_p", "draw"],
  ]);
});
