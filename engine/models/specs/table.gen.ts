// Every spec file of this folder. Written by tools/families.ts; do not edit.

import type { Convention } from "../spec.ts";
import baichuan from "./baichuan.json" with { type: "json" };
import bert from "./bert.json" with { type: "json" };
import bloom from "./bloom.json" with { type: "json" };
import chatglm from "./chatglm.json" with { type: "json" };
import cohere from "./cohere.json" with { type: "json" };
import cohere2 from "./cohere2.json" with { type: "json" };
import deepseek from "./deepseek.json" with { type: "json" };
import deepseek2 from "./deepseek2.json" with { type: "json" };
import deepseek3 from "./deepseek3.json" with { type: "json" };
import distilbert from "./distilbert.json" with { type: "json" };
import dots1 from "./dots1.json" with { type: "json" };
import ernie45 from "./ernie4_5.json" with { type: "json" };
import exaone4 from "./exaone4.json" with { type: "json" };
import falcon from "./falcon.json" with { type: "json" };
import gemma from "./gemma.json" with { type: "json" };
import gemma2 from "./gemma2.json" with { type: "json" };
import gemma3 from "./gemma3.json" with { type: "json" };
import glm from "./glm.json" with { type: "json" };
import glm4 from "./glm4.json" with { type: "json" };
import glm4Moe from "./glm4_moe.json" with { type: "json" };
import gpt2 from "./gpt2.json" with { type: "json" };
import gptBigcode from "./gpt_bigcode.json" with { type: "json" };
import gptNeox from "./gpt_neox.json" with { type: "json" };
import gptOss from "./gpt_oss.json" with { type: "json" };
import gptj from "./gptj.json" with { type: "json" };
import granite from "./granite.json" with { type: "json" };
import granitemoe from "./granitemoe.json" with { type: "json" };
import helium from "./helium.json" with { type: "json" };
import internlm2 from "./internlm2.json" with { type: "json" };
import llama from "./llama.json" with { type: "json" };
import m2m100 from "./m2m100.json" with { type: "json" };
import minicpm from "./minicpm.json" with { type: "json" };
import ministral from "./ministral.json" with { type: "json" };
import mistral from "./mistral.json" with { type: "json" };
import mixtral from "./mixtral.json" with { type: "json" };
import mpnet from "./mpnet.json" with { type: "json" };
import olmo from "./olmo.json" with { type: "json" };
import olmo2 from "./olmo2.json" with { type: "json" };
import olmo3 from "./olmo3.json" with { type: "json" };
import olmoe from "./olmoe.json" with { type: "json" };
import opt from "./opt.json" with { type: "json" };
import orion from "./orion.json" with { type: "json" };
import phi from "./phi.json" with { type: "json" };
import phi3 from "./phi3.json" with { type: "json" };
import qwen2 from "./qwen2.json" with { type: "json" };
import qwen2Moe from "./qwen2_moe.json" with { type: "json" };
import qwen3 from "./qwen3.json" with { type: "json" };
import qwen3Moe from "./qwen3_moe.json" with { type: "json" };
import roberta from "./roberta.json" with { type: "json" };
import seedOss from "./seed_oss.json" with { type: "json" };
import smollm3 from "./smollm3.json" with { type: "json" };
import stablelm from "./stablelm.json" with { type: "json" };
import starcoder2 from "./starcoder2.json" with { type: "json" };
import t5 from "./t5.json" with { type: "json" };
import yi from "./yi.json" with { type: "json" };

/** The spec files, as far as choosing one needs to know them. */
export const specs: readonly {
  readonly name: string;
  readonly matches: Readonly<Record<Convention, readonly string[]>>;
}[] = [
  baichuan,
  bert,
  bloom,
  chatglm,
  cohere,
  cohere2,
  deepseek,
  deepseek2,
  deepseek3,
  distilbert,
  dots1,
  ernie45,
  exaone4,
  falcon,
  gemma,
  gemma2,
  gemma3,
  glm,
  glm4,
  glm4Moe,
  gpt2,
  gptBigcode,
  gptNeox,
  gptOss,
  gptj,
  granite,
  granitemoe,
  helium,
  internlm2,
  llama,
  m2m100,
  minicpm,
  ministral,
  mistral,
  mixtral,
  mpnet,
  olmo,
  olmo2,
  olmo3,
  olmoe,
  opt,
  orion,
  phi,
  phi3,
  qwen2,
  qwen2Moe,
  qwen3,
  qwen3Moe,
  roberta,
  seedOss,
  smollm3,
  stablelm,
  starcoder2,
  t5,
  yi,
];
