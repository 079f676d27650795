// Tiny models behind the server, on this thread: `m` answers conversations, also with tools, `e` makes vectors.

import { load } from "../../engine/models/load.ts";
import { LocalEngine } from "../../engine/serve/host/local_engine.ts";
import { fixturePath } from "./fixtures.ts";
import { loadLongTiny, TINY_LLAMA } from "./models.ts";
import { writeWordTokenizer } from "./toy_encoders.ts";

const TEMPLATE =
  "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}{% for m in messages %}" +
  "{% if m.role == 'user' and loop.index0 > 0 and messages[loop.index0 - 1].role == 'user' %}" +
  "{{ raise_exception('Roles must alternate') }}{% endif %}" +
  "{{ m.role }}: {{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}\n" +
  "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

const OPTIONS = { device: "wasm", threads: 1 } as const;

/** An engine with the two models. */
export function servedModels(): LocalEngine {
  return new LocalEngine([
    { name: "m", source: TINY_LLAMA, options: { ...OPTIONS, chatTemplate: TEMPLATE } },
    { name: "e", source: fixturePath("models/bert"), options: OPTIONS },
  ], {
    load: async ({ name, source, options }) => {
      if (name === "m") return await loadLongTiny(options);
      const folder = await encoderFolder(source);
      try {
        return await load(folder, options);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

/** The encoder with a tokenizer, whose words are w0, w1 and so on, but for `a` and `b`. */
async function encoderFolder(fixture: string): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const file of ["config.json", "model.safetensors"]) {
    await Deno.copyFile(`${fixture}/${file}`, `${folder}/${file}`);
  }
  writeWordTokenizer(folder);
  const path = `${folder}/tokenizer.json`;
  const text = (await Deno.readTextFile(path)).replace('"w10"', '"a"').replace('"w11"', '"b"');
  await Deno.writeTextFile(path, text);
  return folder;
}
