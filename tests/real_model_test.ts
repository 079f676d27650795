// What a user of a real model pays before the first token and for memory, in processes of their own. Work is
// measured, not time, which a busy machine makes longer: the modules that are loaded, and the bytes that are read until
// the first token is printed. `troodon bench` and `deno task bench cpu` tell the time.

import { assert, assertLess } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { modelNeed, modelPath, TINY_LLAMA } from "./support/models.ts";
import { importedModules } from "./support/modules.ts";
import { testWith } from "./support/skip.ts";

const onLinux = {
  what: "/proc/self (Linux)",
  present: Deno.build.os === "linux",
  remedy: "run it on Linux",
};

/** Bytes that a process has read when it has printed more than `before`. */
async function bytesReadAtOutput(args: readonly string[], before: string): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", ...args],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let seen = "";
  let bytes = NaN;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    seen += text;
    if (!Number.isNaN(bytes) || seen.length <= before.length) continue;
    bytes = Number(/rchar: (\d+)/.exec(Deno.readTextFileSync(`/proc/${child.pid}/io`))![1]);
  }
  assert((await child.status).success);
  assert(seen.startsWith(before), `"${seen.slice(0, 80)}" does not begin with the prompt`);
  return bytes;
}

testWith(
  [modelNeed("smollm2-135m"), onLinux],
  "until the first token of an example every weight is read once, and few modules are loaded",
  async () => {
    const prompt = "Once upon a time";
    const model = modelPath("smollm2-135m")!;
    const readWith = (path: string) =>
      bytesReadAtOutput(
        ["--allow-read", "--allow-env", "examples/streaming.ts", path, prompt],
        prompt,
      );
    // What Deno reads of modules and of its caches, which grow with what else has run, is alike for every model.
    const read = await readWith(model) -
      await readWith(TINY_LLAMA);
    const { count, bytes } = await importedModules("examples/streaming.ts");
    const { size } = Deno.statSync(model);
    assert(read > 0.99 * size, `${read} bytes read of a model of ${size}`);
    assertLess(read, 1.05 * size);
    assertLess(count, 800);
    assertLess(bytes, 3.5e6);
  },
);

interface Report {
  readonly peak: number;
  readonly memory: { readonly total: number; readonly weights: number };
}

const OPTIONS = JSON.stringify({ contextLength: 2048, threads: 2 });

for (const name of ["smollm2-135m", "gemma3-270m"]) {
  testWith(
    [modelNeed(name), onLinux],
    `${name} takes no more than 1.15 of its file, what is planned beside the weights, and 120 MB`,
    async () => {
      const model = modelPath(name)!;
      const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
        // Each further thread takes some megabytes of its own.
        args: ["run", "--allow-read", "tests/support/peak_memory.ts", model, OPTIONS],
        cwd: ROOT,
      }).output();
      const decoder = new TextDecoder();
      assert(success, decoder.decode(stderr));
      const { peak, memory }: Report = JSON.parse(decoder.decode(stdout));
      const limit = Deno.statSync(model).size * 1.15 + memory.total - memory.weights + 120e6;
      assert(peak > memory.weights, `a peak of ${peak} bytes cannot be`);
      assertLess(peak, limit);
    },
  );
}
