// Pipelines of diffusers as data: which parts each has, what its text encoders say to the network, and what it takes for
// granted. A new one of known parts is a row here.

/** How prompts become inputs of the network. Parts are named as folders are. */
export interface TextRule {
  /** Encoders whose states stand side by side, a row a token. */
  readonly beside: readonly string[];
  /** Encoder whose rows come behind those, filled up to as many columns. */
  readonly behind?: { readonly part: string; readonly length: number } | undefined;
  /** Which of their states: the last ones behind a norm, or those in front of the last layer. */
  readonly state: "last" | "before";
  /** Input of vectors of the whole prompt, and the encoders whose vectors it joins. */
  readonly pooled?: { readonly input: string; readonly of: readonly string[] } | undefined;
  /** Input that says which rows are of the prompt, and which fill up. */
  readonly mask?: string | undefined;
  /** Tokens of a prompt, where the tokenizer does not say. */
  readonly length?: number | undefined;
  /** Whether a prompt is written small first. */
  readonly isSmall?: boolean | undefined;
}

/** What a pipeline is made of. */
export interface PipelineRule {
  /** Values of `_class_name` in model_index.json. */
  readonly classes: readonly string[];
  /** The network that tells noise from picture. */
  readonly denoiser: "unet" | "transformer";
  /** Its input for the sample. */
  readonly sample: "sample" | "hidden_states";
  readonly texts: TextRule;
  /** Default of `guidance`, as diffusers has it. */
  readonly guidance: number;
  /** Inputs that say how large the picture is, by the rules of `size_inputs.ts`. */
  readonly sizes?: "time_ids" | "resolution" | undefined;
  /** Fields that the pipeline sets in its scheduler's config whatever the file says. */
  readonly scheduler?: Readonly<Record<string, unknown>> | undefined;
}

const RULES: readonly PipelineRule[] = [
  {
    classes: [
      "StableDiffusionPipeline",
      "StableDiffusionImg2ImgPipeline",
      "StableDiffusionInpaintPipeline",
      "LatentConsistencyModelPipeline",
      "LatentConsistencyModelImg2ImgPipeline",
      "OnnxStableDiffusionPipeline",
      "ORTStableDiffusionPipeline",
    ],
    denoiser: "unet",
    sample: "sample",
    texts: { beside: ["text_encoder"], state: "last" },
    guidance: 7.5,
    scheduler: { steps_offset: 1, clip_sample: false },
  },
  {
    classes: [
      "StableDiffusionXLPipeline",
      "StableDiffusionXLImg2ImgPipeline",
      "StableDiffusionXLInpaintPipeline",
      "ORTStableDiffusionXLPipeline",
    ],
    denoiser: "unet",
    sample: "sample",
    texts: {
      beside: ["text_encoder", "text_encoder_2"],
      state: "before",
      pooled: { input: "text_embeds", of: ["text_encoder_2"] },
    },
    guidance: 5,
    sizes: "time_ids",
  },
  {
    classes: [
      "StableDiffusion3Pipeline",
      "StableDiffusion3Img2ImgPipeline",
      "StableDiffusion3InpaintPipeline",
    ],
    denoiser: "transformer",
    sample: "hidden_states",
    texts: {
      beside: ["text_encoder", "text_encoder_2"],
      behind: { part: "text_encoder_3", length: 256 },
      state: "before",
      pooled: { input: "pooled_projections", of: ["text_encoder", "text_encoder_2"] },
    },
    guidance: 7,
  },
  ...([["PixArtAlphaPipeline", 120], ["PixArtSigmaPipeline", 300]] as const).map((
    [name, length],
  ): PipelineRule => ({
    classes: [name],
    denoiser: "transformer",
    sample: "hidden_states",
    texts: {
      beside: ["text_encoder"],
      state: "last",
      mask: "encoder_attention_mask",
      length,
      isSmall: true,
    },
    guidance: 4.5,
    sizes: "resolution",
  })),
];

/** Names of all pipelines. */
export const PIPELINES: readonly string[] = RULES.flatMap(({ classes }) => classes);

/** The rule of a pipeline; undefined where it is not known. */
export function pipelineRule(name: string): PipelineRule | undefined {
  return RULES.find(({ classes }) => classes.includes(name));
}
