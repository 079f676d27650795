// Decode and prompts of a model on the CPU by threads, beside llama.cpp's llama-bench on the same cores (taskset), in turns:
// a JSON line a figure, then a table. Models are files, or names of shapes with random weights (support/random_llama.ts).
// Where processors share cores, one of each core comes first. `share` is the part of what those threads could do, by
// reading memory or by multiplying (cpu/bounds.ts).
//
// deno run -A bench/cpu_threads.ts MODEL [--threads 1,2,4,8,16] [--llama-bench PATH] [--prompt 128] [--decode 24]
//   [--vectors 128|256] [--rounds 3] [--seconds 600] [--config deno.json]

import { joiningArguments } from "../wasm/joining_flag.ts";
import { boundsOf } from "./cpu/bounds.ts";
import { type Figure, figureTable, machineName, printFigure, ratioOf } from "./support/figures.ts";
import { machineLimits } from "./support/limits.ts";
import { makeRandomModel, RANDOM_MODELS } from "./support/random_llama.ts";

const PEER = "llama.cpp (llama-bench, built on the machine)";
/** The least seconds that another row may take. */
const LEAST_SECONDS = 8;
/** The prefix of a decode run of `troodon bench`. */
const PREFIX = 32;

function flag(name: string, otherwise: string): string {
  const at = Deno.args.indexOf(`--${name}`);
  return at >= 0 ? Deno.args[at + 1]! : otherwise;
}

const threadCounts = flag("threads", "1,2,4,8,16").split(",").map(Number);
const prompt = flag("prompt", "128"), decode = flag("decode", "24"), rounds = flag("rounds", "3");
const llamaBench = flag("llama-bench", ""), config = flag("config", "");
/** Bits of vectors (docs/tuning.md); limits are those of 128. */
const vectors = flag("vectors", "256"), MAIN = "../main.ts";
const until = Date.now() + 1000 * Number(flag("seconds", "600"));

/** Numbers of processors, one of each core first. */
async function processors(): Promise<readonly number[]> {
  const first: number[] = [], others: number[] = [], cores = new Set<string>();
  for (let i = 0; i < navigator.hardwareConcurrency; i++) {
    const path = `/sys/devices/system/cpu/cpu${i}/topology/thread_siblings_list`;
    const core = await Deno.readTextFile(path).catch(() => `${i}`);
    (cores.has(core) ? others : first).push(i);
    cores.add(core);
  }
  return [...first, ...others];
}

/** What a command prints on some processors, within the time that is left. */
async function ask(on: readonly number[], command: readonly string[]): Promise<string> {
  const left = Math.max(1, Math.round((until - Date.now()) / 1000));
  const { code, stdout, stderr } = await new Deno.Command("timeout", {
    args: [`${left}`, "taskset", "-c", on.join(","), ...command],
    // No card for llama.cpp's builds that have one.
    env: { CUDA_VISIBLE_DEVICES: "" },
    ...{ stdout: "piped", stderr: "piped" },
  }).output();
  const decoder = new TextDecoder();
  if (code) throw new Error(`${command.join(" ")}: exit ${code}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

/** Starts Deno with a script of this repository. */
function deno(script: string, ...args: readonly string[]): readonly string[] {
  const path = new URL(script, import.meta.url).pathname;
  return [
    Deno.execPath(),
    "run",
    "-A",
    "--no-check",
    ...config && ["--config", config],
    ...script === MAIN && vectors === "256" ? joiningArguments(Deno.build.arch) : [],
    path,
    ...args,
  ];
}

/** Tokens a second of both engines and of the machine's limits: decoding, and a prompt. */
async function measure(
  { name, path }: { readonly name: string; readonly path: string },
  on: readonly number[],
): Promise<readonly Figure[]> {
  const threads = `${on.length}`;
  const theirs: readonly { readonly n_prompt: number; readonly avg_ts: number }[] = llamaBench
    ? JSON.parse(
      await ask(on, [
        ...[llamaBench, "-m", path, "-t", threads, "-ngl", "0", "-o", "json"],
        ...["-p", prompt, "-n", decode, "-r", rounds],
      ]),
    )
    : [];
  const text = await ask(
    on,
    deno(MAIN, "bench", path, "--device", "wasm", "--threads", threads, "--json", ...[
      ...["--prompt", prompt, "--decode", decode, "--rounds", rounds],
    ]),
  );
  const ours: readonly Figure[] = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const bounds = JSON.parse(
    await ask(
      on,
      deno("cpu_threads.ts", path, "--bounds", threads, "--prompt", prompt, "--decode", decode),
    ),
  );
  return (["decode", "prefill"] as const).map((kind): Figure => {
    const { value } = ours.find((figure) => figure.case.startsWith(kind))!;
    const peerValue = theirs.find(({ n_prompt }) =>
      n_prompt > 0 === (kind === "prefill")
    )?.avg_ts ??
      null;
    const what = kind === "prefill" ? `prefill ${prompt}` : kind, unit = "tokens/s";
    return {
      ...{ bench: "cpu", case: `${what} ${name} ${threads} thread${on.length === 1 ? "" : "s"}` },
      ...{ unit, value, peer: peerValue === null ? null : PEER, peerValue },
      ...{ ratio: ratioOf(unit, value, peerValue), share: value / bounds[kind] },
      machine: machineName(),
    };
  });
}

/** Limits of these threads for a model, in tokens a second. */
async function printBounds(path: string, threads: number): Promise<void> {
  const bounds = await boundsOf(path, { threads, precision: "fast" }, await machineLimits(threads));
  const { decode: ofDecode, prefill } = bounds;
  const figures = {
    decode: ofDecode(PREFIX + Number(decode) / 2),
    prefill: prefill(Number(prompt)),
  };
  console.log(JSON.stringify(figures));
}

if (import.meta.main) {
  const [name] = Deno.args;
  if (!name) throw new RangeError("Which model? A file, or a name of support/random_llama.ts");
  const bounded = flag("bounds", "");
  if (bounded) {
    await printBounds(name, Number(bounded));
    Deno.exit(0);
  }
  const { path } = RANDOM_MODELS.includes(name) ? await makeRandomModel(name) : { path: name };
  const order = await processors(), figures: Figure[] = [];
  try {
    for (const threads of threadCounts) {
      if (Date.now() > until - 1000 * LEAST_SECONDS) break;
      for (const figure of await measure({ name, path }, order.slice(0, threads))) {
        figures.push(figure);
        printFigure(figure, true);
      }
    }
  } finally {
    console.log(figureTable(figures));
  }
}
