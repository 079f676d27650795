import { assertEquals } from "@std/assert";
import { FIRST_TOKEN, peerFigures, peerValueOf } from "./llama_bench.ts";

/** Answers as llama-bench and llama-batched-bench print them. */
const BENCH = `#!/bin/sh
case "$*" in
  *"-fa 1"*) exit 1 ;;
  *"-d 4096"*) echo '{"n_prompt":0,"n_gen":64,"n_depth":4096,"samples_ts":[7,9,8],"backends":"CUDA"}' ;;
  *"-n 1 "*) echo '{"n_prompt":0,"n_gen":1,"n_depth":0,"samples_ts":[5],"backends":"CUDA"}' ;;
  *) echo '{"n_prompt":512,"n_gen":0,"n_depth":0,"samples_ts":[70,72]}'
     echo 'not JSON'
     echo '{"n_prompt":0,"n_gen":64,"n_depth":0,"samples_ts":[10,12,11],"build_commit":"abc","backends":"CUDA"}' ;;
esac
`;
const BATCHED = `#!/bin/sh
echo '{"pl": 8, "speed_tg": 111.5}'
`;

Deno.test({
  name: "what llama-bench prints stands beside the cases that it is about",
  ignore: Deno.build.os === "windows",
  async fn() {
    const folder = await Deno.makeTempDir(), program = `${folder}/llama-bench`;
    const order = {
      ...{ program, path: "model.gguf", prompts: [512], contexts: [0, 4096], decode: 64 },
      ...{ queries: [8], rounds: 1 },
    };
    assertEquals((await peerFigures(order)).values.size, 0); // there is no such program
    await Deno.writeTextFile(program, BENCH, { mode: 0o755 });
    await Deno.writeTextFile(`${folder}/llama-batched-bench`, BATCHED, { mode: 0o755 });
    const peer = await peerFigures(order);
    const rate = (name: string) => peerValueOf(peer, { case: name, unit: "tokens/s" });
    assertEquals(rate("prefill 512, generate() 1b"), 71);
    assertEquals([rate("decode at 0, 8 ahead 1b"), rate("decode at 4096 1b")], [11, 8]);
    assertEquals([rate("decode of 8 queries 1b"), rate("decode of 32 queries 1b")], [
      111.5,
      undefined,
    ]);
    assertEquals(rate("prefill 5120 1b"), undefined);
    assertEquals(peerValueOf(peer, { case: "decode at 0, step p50 1b", unit: "ms" }), undefined);
    assertEquals(peerValueOf(peer, { case: `${FIRST_TOKEN} 1b`, unit: "ms" })! > 0, true);
    await Deno.remove(folder, { recursive: true });
  },
});
