// What examples/edge is made of: ONNX graphs, tokenizers and files in memory, without language models.

export { loadGraph } from "../../onnx/mod.ts";
export { sentenceVectors } from "../../pipelines/sentence_vectors.ts";
export { tokenizerFromJson } from "../../tokenizers.ts";
export { fileOfBytes, mount } from "./files.ts";
