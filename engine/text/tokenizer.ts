// Tokenizers: the interface, and the two ways to get one, from the vocabulary inside a GGUF file and from
// Hugging Face's tokenizer.json. Both build the same object over the same merge, Viterbi and word-piece
// cores, so a model gives the same ids whichever file it came from.
//
// tokenizer.json needs a library for its patterns, which takes 50 ms to load: who only reads GGUF files
// imports gguf_tokenizer.ts itself.

export { tokenizerFromGguf } from "./gguf_tokenizer.ts";
export { tokenizerFromJson } from "./tokenizer_json/tokenizer.ts";
export type {
  DecodeOptions,
  EncodeOptions,
  Tokenizer,
  TokenizerAlgorithm,
} from "./tokenizer_types.ts";
