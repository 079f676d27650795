// Chooses the spec of a network by what its config says: `_class_name` of diffusers, `architectures` of
// transformers. A new one is a JSON file and a line here.

import { UnsupportedError } from "../../../errors.ts";
import { type NetworkSpec, readNetworkSpec } from "../network_spec.ts";
import autoencoderKl from "./autoencoder_kl.json" with { type: "json" };
import clipText from "./clip_text.json" with { type: "json" };
import pixartTransformer from "./pixart_transformer.json" with { type: "json" };
import sd3Transformer from "./sd3_transformer.json" with { type: "json" };
import t5Encoder from "./t5_encoder.json" with { type: "json" };
import unet from "./unet.json" with { type: "json" };

const FILES = [unet, autoencoderKl, sd3Transformer, pixartTransformer, clipText, t5Encoder];

/**
 * The spec for a config.
 *
 * @param file For messages.
 * @throws {UnsupportedError} If no spec is for its class.
 */
export function chooseNetworkSpec(
  config: Readonly<Record<string, unknown>>,
  file: string,
): NetworkSpec {
  const [architecture] = Array.isArray(config.architectures) ? config.architectures : [];
  const stated = config._class_name ?? architecture;
  const found = FILES.find(({ classes }) => classes.includes(stated as string));
  if (found) return readNetworkSpec(found, `${found.name}.json`);
  throw new UnsupportedError(`network ${JSON.stringify(stated) ?? "without a name"} is not built`, {
    file,
    place: "_class_name",
    remedy: `Known are ${FILES.flatMap(({ classes }) => classes).join(", ")}`,
  });
}
