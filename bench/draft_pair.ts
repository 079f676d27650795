// A real pair: a model drafts for itself, requantised. Counts by place how many proposals are taken, beside what the two
// distributions say.
//
// deno run -A bench/draft_pair.ts [MODEL] [FORMAT] [TEXTS], for bench/results/speculation.md

import { load } from "../mod.ts";
import { pullModel } from "../engine/formats/hub/pull.ts";
import { openModel } from "../engine/models/open_model.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import { getPolicy } from "../quant/policies.ts";
import { measurePair } from "../tests/support/draft_pair.ts";

const [name = "smollm2-135m", format = "Q4_0", texts = "16"] = Deno.args;
const source = await pullModel(name);
const folder = await Deno.makeTempDir();
const path = `${folder}/draft.gguf`;
try {
  const file = await openModel(source);
  await quantizeModel(file, { path, policy: getPolicy(format) });
  file.close();
  const options = { device: "wasm", contextLength: 256 } as const;
  using target = await load(source, options), draft = await load(path, options);
  const prompt = target.tokenizer.encode("The nature of light has been asked after in many ways.");
  const { judged, expected, accepted } = await measurePair(
    { target, draft },
    // Among 64 tokens: distributions over all of them would take most of the time.
    { prompt, texts: Number(texts), tokens: 100, temperature: 1, topK: 64 },
  );
  for (const [place, count] of accepted.entries()) {
    console.log(
      `place ${place + 1}: ${count} of ${judged[place]} taken, ${
        expected[place]!.toFixed(1)
      } expected ` +
        `(${(count / expected[place]!).toFixed(3)})`,
    );
  }
} finally {
  await Deno.remove(folder, { recursive: true });
}
