// What the containers of models are called, for people.

const NAMES: Readonly<Record<string, string>> = {
  gguf: "GGUF",
  safetensors: "safetensors",
  pickle: "PyTorch checkpoint",
  llama2c: "llama2.c checkpoint",
  onnx: "ONNX",
};

/** The name of a container, by the `kind` or `container` of a `WeightFile`. */
export function containerName(kind: string): string {
  return NAMES[kind] ?? kind;
}
