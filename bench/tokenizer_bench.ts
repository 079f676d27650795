// Tokenizers: building one, encoding and decoding a book chapter, rendering a chat. The peer is what the
// same job costs with @huggingface/tokenizers and @huggingface/jinja on the same vocabulary and template.
//
//   deno bench -A bench/tokenizer_bench.ts

import { Tokenizer as PeerTokenizer } from "@huggingface/tokenizers";
import { Template as PeerTemplate } from "@huggingface/jinja";
import { openModel } from "../engine/models/open_model.ts";
import { compileChatTemplate } from "../engine/text/chat_template.ts";
import { CHATML_TEMPLATE } from "../tests/support/chatml.ts";
import { createStopFilter } from "../engine/text/stop_strings.ts";
import { createStreamDecoder } from "../engine/text/stream_decoder.ts";
import { tokenizerFromGguf, tokenizerFromJson } from "../engine/text/tokenizer.ts";
import { readFixture } from "../tests/support/fixtures.ts";
import { modelPath } from "../tests/support/models.ts";
import { gpt2Metadata } from "../tests/support/public_vocabularies.ts";

const TEXT = readFixture("text/opticks-book3.txt");
const METADATA = await gpt2Metadata();

/** The same vocabulary as a tokenizer.json document. */
function gpt2Json(): Record<string, unknown> {
  const tokens = METADATA.get("tokenizer.ggml.tokens") as string[];
  return {
    added_tokens: [{ id: 50256, content: "<|endoftext|>", special: true, normalized: false }],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(tokens.map((text, id) => [text, id])),
      merges: METADATA.get("tokenizer.ggml.merges"),
    },
  };
}

const JSON_DOCUMENT = gpt2Json();
const OURS = tokenizerFromGguf(METADATA, "gpt2");
const PEER = new PeerTokenizer(JSON_DOCUMENT, { clean_up_tokenization_spaces: false });
const IDS = OURS.encode(TEXT);

Deno.bench({
  name: "build gpt2 from GGUF keys",
  group: "build gpt2",
  baseline: true,
  fn: () => void tokenizerFromGguf(METADATA, "gpt2"),
});
Deno.bench({
  name: "build gpt2 from tokenizer.json",
  group: "build gpt2",
  fn: () => void tokenizerFromJson(JSON_DOCUMENT, { tokenizerConfig: null, name: "gpt2" }),
});
Deno.bench({
  name: "build gpt2 with @huggingface/tokenizers",
  group: "build gpt2",
  fn: () => void new PeerTokenizer(JSON_DOCUMENT, {}),
});

for (const name of ["smollm2-135m", "gemma3-270m"]) {
  const path = modelPath(name);
  if (path === undefined) {
    console.error(`build ${name} is left out: deno task troodon pull ${name}`);
    continue;
  }
  const file = await openModel(path);
  file.close();
  Deno.bench({
    name: `build ${name} from GGUF keys`,
    group: "build of models",
    baseline: name === "smollm2-135m",
    fn: () => void tokenizerFromGguf(file.metadata, name),
  });
  const tokenizer = tokenizerFromGguf(file.metadata, name);
  const ids = tokenizer.encode(TEXT);
  Deno.bench({
    name: `encode 86 kB of English, ${name}`,
    group: "encode by models",
    baseline: name === "smollm2-135m",
    fn: () => void tokenizer.encode(TEXT),
  });
  Deno.bench({
    name: `decode ${ids.length} ids, ${name}`,
    group: "decode by models",
    baseline: name === "smollm2-135m",
    fn: () => void tokenizer.decode(ids),
  });
}

Deno.bench({
  name: "encode 86 kB of English, a new tokenizer's first text",
  group: "encode",
  fn(b) {
    const fresh = tokenizerFromGguf(METADATA, "gpt2");
    b.start();
    fresh.encode(TEXT);
    b.end();
  },
});
Deno.bench({
  name: "encode 86 kB of English",
  group: "encode",
  baseline: true,
  fn: () => void OURS.encode(TEXT),
});
Deno.bench({
  name: "encode 86 kB of English with @huggingface/tokenizers",
  group: "encode",
  fn: () => void PEER.encode(TEXT),
});

Deno.bench({
  name: "decode at once",
  group: "decode",
  baseline: true,
  fn: () => void OURS.decode(IDS),
});
Deno.bench({
  name: "decode token by token, with stop texts",
  group: "decode",
  fn() {
    const decoder = createStreamDecoder(OURS);
    const filter = createStopFilter(["<|im_end|>", "\n\n\n\n", "User:"]);
    for (const id of IDS) filter.push(decoder.push(id));
  },
});
Deno.bench({
  name: "decode at once with @huggingface/tokenizers",
  group: "decode",
  fn: () => void PEER.decode(IDS),
});

const MESSAGES = Array.from({ length: 50 }, (_, i) => ({
  role: i % 2 === 0 ? "user" : "assistant",
  content: TEXT.slice(i * 1000, i * 1000 + 1000),
}));
const TEMPLATE = compileChatTemplate(CHATML_TEMPLATE, "chatml");
const PEER_TEMPLATE = new PeerTemplate(CHATML_TEMPLATE);

Deno.bench({
  name: "render 50 messages",
  group: "chat template",
  baseline: true,
  fn: () => void TEMPLATE.render({ messages: MESSAGES, addGenerationPrompt: true }),
});
Deno.bench({
  name: "render 50 messages with @huggingface/jinja",
  group: "chat template",
  fn: () => void PEER_TEMPLATE.render({ messages: MESSAGES, add_generation_prompt: true }),
});
