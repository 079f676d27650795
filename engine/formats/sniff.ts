// Says what a file really is from its first bytes. Downloads that went wrong leave web pages, error bodies
// and Git LFS pointers under a model's name; a reader that trusts the name then reports nonsense, or takes
// the letters `<!DOCTYP` for a length.

import { type ByteSource, readBytes } from "../byte_source.ts";
import { FormatError, UnsupportedError } from "../errors.ts";
import { isLlama2c } from "./llama2c/llama2c.ts";
import { refuseMisfetched } from "./misfetched.ts";

/** File kinds that are opened here. */
export type ModelKind =
  | "gguf"
  | "safetensors"
  | "safetensors-index"
  | "torch-zip"
  | "torch-legacy"
  | "torch-index"
  | "llama2c"
  | "onnx";

interface Signature {
  /** What it is, ending the sentence "is …". */
  readonly what: string;
  readonly remedy: string;
  /** Well-formed, but of a kind that this build does not open. */
  readonly unsupported?: true;
  matches(head: Uint8Array, text: string): boolean;
}

const HEAD_BYTES = 256;
const FETCH_AGAIN = "Fetch the model file itself again";
const CONVERT = "Use the model as GGUF or safetensors";
/** The magic number that old checkpoints of PyTorch begin with, pickled. */
const TORCH_MAGIC = [0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/** In this order; the first that matches wins. */
const signatures: readonly Signature[] = [
  {
    what: "an XML document, not a model",
    remedy: `${FETCH_AGAIN}: servers send errors this way`,
    matches: (_, text) => /^\s*<(\?xml|Error)\b/.test(text),
  },
  {
    what: "a Python pickle, and no checkpoint of torch.save",
    remedy: CONVERT,
    unsupported: true,
    matches: (head) => head[0] === 0x80 && head[1] >= 2 && head[1] <= 5,
  },
  {
    what: "a llama.cpp file from before GGUF (ggml, ggmf or ggjt)",
    remedy: "Convert it with llama.cpp's convert_llama_ggml_to_gguf.py, or fetch the model as GGUF",
    unsupported: true,
    matches: (_, text) => ["lmgg", "fmgg", "tjgg"].some((magic) => text.startsWith(magic)),
  },
  {
    what: "an HDF5 file (Keras)",
    remedy: CONVERT,
    unsupported: true,
    matches: (head) => startsWith(head, [0x89, 0x48, 0x44, 0x46]),
  },
  {
    what: "compressed (gzip)",
    remedy: "Unpack it first",
    matches: (head) => startsWith(head, [0x1f, 0x8b]),
  },
  {
    what: "compressed (zstd)",
    remedy: "Unpack it first",
    matches: (head) => startsWith(head, [0x28, 0xb5, 0x2f, 0xfd]),
  },
];

/**
 * Finds out how to open a source.
 *
 * @throws {FormatError} If it is no model; the message says what it is.
 * @throws {UnsupportedError} If it is a model of a kind that is not read.
 */
export async function sniffModel(source: ByteSource): Promise<ModelKind> {
  const file = source.name;
  if (source.size === 0) {
    throw new FormatError("is empty (0 bytes)", { file, remedy: FETCH_AGAIN });
  }
  const head = await readBytes(source, { length: Math.min(HEAD_BYTES, source.size) });
  const text = String.fromCharCode(...head);
  if (text.startsWith("GGUF")) return "gguf";
  // Before the rest: old files begin with any number, and are told by their exact length.
  if (isLlama2c(head, source.size)) return "llama2c";
  if (startsWith(head, [0x50, 0x4b, 0x03, 0x04])) return "torch-zip";
  if (isTorchLegacy(head)) return "torch-legacy";
  if (isOnnx(head)) return "onnx";
  refuseMisfetched(text, { file, kind: "model" });
  for (const { what, remedy, unsupported, matches } of signatures) {
    if (!matches(head, text)) continue;
    const message = `is ${what}`;
    throw unsupported
      ? new UnsupportedError(message, { file, remedy })
      : new FormatError(message, { file, remedy });
  }
  if (/^\s*[[{]/.test(text)) return sniffJson(source, text);
  if (isSafetensors(head, source.size)) return "safetensors";
  const isWords = isText(head), what = isWords ? "a text" : "bytes of no known beginning";
  throw new FormatError(`is no model file that we know: it is ${what}`, {
    file,
    remedy: "GGUF, safetensors, ONNX, PyTorch and llama2.c files are opened" +
      (isWords ? "" : "; one of them may be damaged"),
  });
}

function sniffJson(source: ByteSource, text: string): ModelKind {
  const name = source.name.replace(/[?#].*$/, "");
  if (/\.bin\.index\.json$/.test(name)) return "torch-index";
  if (/\.index\.json$/.test(name)) return "safetensors-index";
  throw new FormatError(`is JSON text, not a model: ${show(text)}`, {
    file: source.name,
    remedy: "If it is an error message of a server, follow it and fetch the file again",
  });
}

// The first pickle is one number, behind two bytes of protocol and, from protocol 4 on, nine of a frame.
function isTorchLegacy(head: Uint8Array): boolean {
  const isMagicAt = (at: number) => TORCH_MAGIC.every((byte, i) => head[at + i] === byte);
  return head[0] === 0x80 && (isMagicAt(2) || isMagicAt(11));
}

// Field 1 (ir_version, varint), then field 2 (producer) or another small length-delimited one.
function isOnnx(head: Uint8Array): boolean {
  return head[0] === 0x08 && head[1]! > 0 && head[1]! < 32 && (head[2]! & 0x07) === 2;
}

// A length that fits and the brace of a JSON object. Also true when the length is off but the brace is
// there: the reader then reports the length.
function isSafetensors(head: Uint8Array, size: number): boolean {
  if (head[8] === 0x7b) return true;
  if (head.length < 8) return false;
  const length = new DataView(head.buffer).getBigUint64(0, true);
  return length <= BigInt(size - 8);
}

function startsWith(head: Uint8Array, bytes: readonly number[]): boolean {
  return bytes.every((byte, i) => head[i] === byte);
}

function show(text: string): string {
  return JSON.stringify(text.length > 80 ? text.slice(0, 80) + "…" : text);
}

/** Printable characters and line ends, in any script. */
function isText(head: Uint8Array): boolean {
  return head.every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}
