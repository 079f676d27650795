// Dawn, the other WebGPU, through the command line: kernels ask for capabilities, so the same ones run there. Dawn does not
// take Mesa's software adapter; it takes SwiftShader, a library that Chromium brings along. CI unpacks it and says
// where it is; subgroup matrices need a real card (`troodon doctor --device gpu --gpu dawn`).

import { assert, assertEquals, assertMatch } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { type Need, testWith } from "./support/skip.ts";

/** Descriptions of SwiftShader as a Vulkan driver. */
const DRIVERS = [
  Deno.env.get("TROODON_SWIFTSHADER"),
  "/usr/lib/chromium/vk_swiftshader_icd.json",
].filter((path) => path !== undefined);

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

const driver = DRIVERS.find(exists);
const swiftShader: Need = {
  what: "SwiftShader",
  present: driver !== undefined,
  remedy: "apt install chromium, or set TROODON_SWIFTSHADER to its vk_swiftshader_icd.json",
};

const ARGS = ["generate", TINY_LLAMA, "--raw", "-p", "ab", "--max-tokens", "6", "--json"];

testWith([swiftShader], "Dawn computes what the reference does", async () => {
  const env = { VK_ICD_FILENAMES: driver! };
  const script = ["run", "--allow-all", "--no-check", "tests/support/dawn_ids.ts"];
  const child = new Deno.Command(Deno.execPath(), {
    ...{ args: [...script, TINY_LLAMA, "ab", "6"], env, cwd: ROOT, stderr: "inherit" },
  });
  const [{ success, stdout }, reference] = await Promise.all([
    child.output(),
    troodon([...ARGS, "--device", "reference"]),
  ]);
  assert(success);
  const { ids } = JSON.parse(reference.out);
  assertEquals(JSON.parse(new TextDecoder().decode(stdout)), { ids, isImmediate: true });
});

testWith([swiftShader], "--gpu dawn takes Dawn's device", async () => {
  const args = ["doctor", "--quick", "--device", "gpu", "--gpu", "dawn"];
  const { code, out } = await troodon(args, { env: { VK_ICD_FILENAMES: driver! } });
  assertEquals(code, 0);
  assertMatch(out, /^WebGPU +SwiftShader/m);
});

Deno.test("--gpu is refused where no GPU is asked for, and where there is no Dawn", async () => {
  const plain = ARGS.filter((argument) => argument !== "--json");
  const beside = await troodon([...plain, "--device", "wasm", "--gpu", "dawn"]);
  assertRefused(beside, 2, /--gpu dawn does not go with --device wasm/);
  assertRefused(await troodon([...plain, "--gpu", "no/dawn.node"]), 1, /no\/dawn\.node: no such/);
  const other = await troodon([...plain, "--gpu", TINY_LLAMA]);
  assertRefused(other, 1, /llama\.Q8_0\.gguf: cannot open Dawn/);
});

Deno.test("tasks that want a GPU say that there is none before their first case", async () => {
  // A system whose one driver is not there.
  const env = { DENO_WEBGPU_BACKEND: "vulkan", VK_ICD_FILENAMES: "/none" };
  await Promise.all(["fixtures", "conformance"].map(async (name) => {
    const args = ["run", "-A", "--no-check", `tools/${name}.ts`, "--device", "gpu"];
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      ...{ args, env, cwd: ROOT, stdout: "null" },
    }).output();
    assertEquals(code, 2, name);
    assertMatch(
      new TextDecoder().decode(stderr),
      /error: --device gpu: this machine offers no GPU/,
    );
  }));
});
