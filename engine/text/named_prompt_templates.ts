// The eleven prompt templates that Inferflow's configuration names [IF-9], as texts in the language of
// prompt_template.ts. Its file writes line ends inside a line as `\n`, which nothing there ever turned into
// one; here they are line ends.

const RESPECTFUL =
  "You are a helpful, respectful and honest assistant. Always answer as helpfully as possible, while " +
  "being safe.  Your answers should not include any harmful, unethical, racist, sexist, toxic, " +
  "dangerous, or illegal content. Please ensure that your responses are socially unbiased and positive " +
  "in nature.";
const HONEST =
  "If a question does not make any sense, or is not factually coherent, explain why instead " +
  "of answering something not correct. If you don't know the answer to a question, please don't share " +
  "false information.";
const USER_ASSISTANT = "USER: {query}\nASSISTANT: {res_prefix}";

/** Templates by name. */
export const PROMPT_TEMPLATES: Readonly<Record<string, string>> = {
  "simple": "{query}\n{res_prefix}",
  "llama2_chat.std": "<s>[INST]\n{query}[/INST]",
  "llama2_chat.std.1": "<s>[INST]<<SYS>>\n{system_prompt}\n<</SYS>>\n{query}[/INST]",
  "llama2_chat.std.2": `<s>[INST]<<SYS>>\n${RESPECTFUL}\n${HONEST}\n<</SYS>>\n{query}[/INST]`,
  "llama2_chat.alt": USER_ASSISTANT,
  "llama2_chat.alt.2": `SYSTEM: ${RESPECTFUL} ${HONEST}\n${USER_ASSISTANT}`,
  "vicuna-1.0": "### Human:\n{query}\n### Assistant:\n{res_prefix}",
  "vicuna-1.1": USER_ASSISTANT,
  "llama_cpp_t0": "\n\n### Instruction:\n\n{query}\n\n### Response:\n\n{res_prefix}",
  "llama_cpp_t1": "\n\n### Instruction:\n\n{_query}\n\n### Response:\n\n{res_prefix}",
  "baichuan2_chat": "\n\n{<reserved_106>}{query}{<reserved_107>}\n",
};
