// `deno task fuzz TARGET`: mutated good inputs against everything that reads what strangers send. Prints
// the seed first; a failing input is written to a file. A hang, a crash and growing memory are failures.

import { UsageError } from "../engine/cli/args.ts";
import { besideInput, besideTargets } from "./fuzz/beside/targets.ts";
import { mutate } from "./fuzz/mutate.ts";
import { targets } from "./fuzz/targets.ts";
import { runWorker } from "./fuzz/supervise.ts";
import { runTask } from "./support/task.ts";

const LINE = {
  name: "deno task fuzz",
  summary:
    "Feeds mutated inputs to a parser and looks for crashes, hangs and memory without bound.",
  positionals: ["TARGET"],
  flags: {
    count: { type: "integer", min: 1, help: "number of inputs (10000)" },
    seed: { type: "integer", min: 0, help: "first number of the generator (from the clock)" },
    from: { type: "integer", min: 0, help: "index of the first input (0), to repeat one" },
    seconds: {
      type: "number",
      min: 0.1,
      help: "longest time for one input (5; 60 for what is compared)",
    },
    memory: { type: "integer", min: 1, help: "most megabytes by which the process may grow (512)" },
    out: {
      type: "string",
      value: "DIR",
      help: "where failing inputs go (the folder for temporary files)",
    },
    device: {
      type: "string",
      value: "D",
      choices: ["wasm", "gpu", "reference"],
      help: "where graphs run (wasm)",
    },
    json: { type: "boolean", help: "the outcome as one JSON line" },
  },
  examples: [
    ["deno task fuzz gguf --count 100000", "a long run"],
    ["deno task fuzz gguf --seed 7 --from 1234 --count 1", "one input again"],
    ["deno task fuzz graphs --device gpu --count 2000", "random ONNX graphs beside the reference"],
  ],
  notes: [
    `Targets: ${Object.keys(targets).join(", ")}, all (of these), and graphs.`,
    "graphs: random ONNX graphs on a device with all passes, beside the reference without any and, " +
    "where Python has it, onnxruntime. A failing graph is made small and written as .onnx, its inputs " +
    "beside it.",
    `Compared with implementations in Python, which must be there: ${
      Object.keys(besideTargets).join(", ")
    }.`,
  ],
} as const;

await runTask(LINE, async ({ positionals: [name], flags }) => {
  const names = name === "all" ? Object.keys(targets) : [name!];
  const seed = flags.seed ?? Date.now() % 0x7fff_ffff;
  const [from, count] = [flags.from ?? 0, flags.count ?? 10_000];
  const out = (flags.out ?? Deno.env.get("TMPDIR") ?? "/tmp").replace(/\/$/, "");
  let failed = 0;
  for (const target of names) {
    const isGraphs = target === "graphs";
    const isBeside = Object.hasOwn(besideTargets, target);
    if (!isGraphs && !isBeside && !Object.hasOwn(targets, target)) {
      const known = [...Object.keys(targets), "graphs", ...Object.keys(besideTargets), "all"]
        .join(", ");
      throw new UsageError(`Unknown target ${target}: ${known}`);
    }
    if (!flags.json) console.log(`target ${target}, seed ${seed}, ${count} inputs from ${from}`);
    const start = performance.now();
    const progress = new Int32Array(new SharedArrayBuffer(8)).fill(from - 1);
    const memory = (flags.memory ?? 512) * 1e6;
    const { device } = flags;
    const order = { target, seed, from, to: from + count, memory, progress, device, out };
    const failures = await runWorker(order, flags.seconds ?? (isGraphs || isBeside ? 60 : 5), {
      note: (message) => flags.json || console.log(message),
    });
    for (const { index, message } of failures) {
      if (isGraphs) {
        console.error(`failing graph ${index}: ${message}`);
        continue;
      }
      if (isBeside) {
        const path = `${out}/fuzz-${target}-${seed}-${index}.txt`;
        await Deno.writeTextFile(path, besideInput(target, seed, index));
        console.error(`failing input ${index} written to ${path}: ${message}`);
        continue;
      }
      const path = `${out}/fuzz-${target}-${seed}-${index}.bin`;
      const { seeds, words } = targets[target]!;
      await Deno.writeFile(path, mutate(seeds(), words, seed, index));
      console.error(`failing input ${index} written to ${path}: ${message}`);
    }
    failed += failures.length;
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    if (flags.json) console.log(JSON.stringify({ target, seed, from, count, failures, seconds }));
    else console.log(`${count} inputs in ${seconds} s, ${failures.length} failures`);
  }
  return failed > 0 ? 1 : 0;
});
