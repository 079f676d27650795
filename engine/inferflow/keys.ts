// Every key of Inferflow's configuration files [§4.1] and what becomes of it. Keys without `quiet` are honoured where
// `use` says; a key with `quiet` has no meaning here, and any value but those is warned of with `use` as the reason.
// Keys that are not in the table are unknown, and warned of too. Upstream's commented-out keys are in it as well.

/** What becomes of a key. */
export interface KeyRule {
  readonly use: string;
  /** Values that ask for nothing. */
  readonly quiet?: readonly string[];
}

const OFF = ["", "0", "false", "no"];
const FEW = ["", "0"];

const ONE_DEVICE = "one device computes all layers";
const AS_STORED = "weights are computed as the file stores them";
const NO_LAYERS_APART = "all layers are computed by the same device";
const NO_TRACE = "`troodon info` and the graph's observed values show what is inside";

const model: Readonly<Record<string, KeyRule>> = {
  model_dir: { use: "path of the model" },
  model_specification_file: { use: "LoadOptions.spec; absent: what the model's own files say" },
  model_spec_file: { use: "the same" },
  device_weight_data_type: { use: "EngineConfig.weights; F16 and F32: as the file stores them" },
  "device_weight_data_type.attn_wq": { use: "the same, of these matrices" },
  "device_weight_data_type.attn_wk": { use: "the same, of these matrices" },
  "device_weight_data_type.attn_wv": { use: "the same, of these matrices" },
  "device_weight_data_type.attn_wo": { use: "the same, of these matrices" },
  "device_weight_data_type.ffn_w1": { use: "the same, of these matrices" },
  "device_weight_data_type.ffn_w2": { use: "the same, of these matrices" },
  "device_weight_data_type.ffn_w3": { use: "the same, of these matrices" },
  device_kv_cache_data_type: {
    use: "LoadOptions.kvFormat; Q8 is Q8_0, and on a GPU F16 with a warning",
  },
  host_weight_data_type: { use: AS_STORED, quiet: ["", "F16"] },
  host_kv_cache_data_type: { use: "keys and values are in one place", quiet: ["", "F16"] },
  host_kv_cache_percent: { use: "keys and values are in one place", quiet: FEW },
  tensor_quant_threshold: { use: "the same: matrices of fewer values are F16; 4000000" },
  delta_tensor_ratio: { use: "the same: share of weights that are kept apart" },
  be_host_embeddings: { use: ONE_DEVICE, quiet: ["", "true", "yes", "1"] },
  devices: { use: ONE_DEVICE, quiet: FEW },
  multi_gpu_strategy: { use: ONE_DEVICE, quiet: ["", "BY_LAYER"] },
  max_context_len: { use: "LoadOptions.contextLength; 16 and less are 1024" },
  decoding_strategy: { use: "GenerateOptions.strategy, a name or JSON; sample.std by default" },
  encoder_input_template: { use: "prompt of the encoder" },
  decoder_input_template: { use: "prompt" },
  prompt_template: { use: "the same" },
};

const environment: Readonly<Record<string, Readonly<Record<string, KeyRule>>>> = {
  "app_env.base": {
    data_root_dir: { use: "the macro of this name" },
    require_enter_key_to_exit: { use: "nothing waits for a key", quiet: [...OFF, "true", "1"] },
  },
  "app_env.logging": {
    enable_logging: { use: "messages go to standard error", quiet: [...OFF, "1", "true"] },
    log_dir: { use: "a place for logs, which are not written" },
    log_name: { use: "the same" },
  },
  "app_env.status_manager": {
    enable_monitoring: { use: "there is no status server", quiet: OFF },
    status_file: { use: "of the status server" },
    listening_port: { use: "the same" },
  },
};

/** Sections by name; `NAME.*` is any section that begins so. */
export const ENGINE_KEYS: Readonly<Record<string, Readonly<Record<string, KeyRule>>>> = {
  ...environment,
  main: {
    http_port: { use: "port of a service" },
    worker_count: { use: "requests are not bound to threads" },
    is_study_mode: { use: NO_TRACE, quiet: OFF },
    global_model_dir: { use: "the macro of this name" },
    default_prompt_template: { use: "prompt of models that name none" },
  },
  transformer_engine: {
    models: { use: "the first is loaded" },
    devices: { use: ONE_DEVICE, quiet: FEW },
    cpu_layer_count: { use: NO_LAYERS_APART, quiet: FEW },
    encoder_cpu_layer_count: { use: NO_LAYERS_APART, quiet: FEW },
    decoder_cpu_layer_count: { use: NO_LAYERS_APART, quiet: FEW },
    cpu_threads: { use: "LoadOptions.threads" },
    max_concurrent_queries: { use: "LoadOptions.sessions" },
    return_output_tensors: { use: NO_TRACE, quiet: [...OFF, "true"] },
    is_study_mode: { use: NO_TRACE, quiet: OFF },
    show_tensors: { use: NO_TRACE, quiet: OFF },
  },
  "model.*": model,
  prompt_templates: {
    prompt_template_count: { use: "how many follow" },
    "prompt_template#": { use: "name of a section prompt_template.NAME" },
  },
  "prompt_template.*": {
    line_count: { use: "how many follow" },
    "line#": { use: "a line of the template" },
  },
  webgpu: {
    device: { use: "LoadOptions.device" },
    precision: { use: "LoadOptions.precision" },
  },
};

/** llm_inference.ini */
export const INFERENCE_KEYS: typeof ENGINE_KEYS = {
  ...environment,
  main: {
    inference_engine_config: { use: "path of the engine's configuration" },
    query_list: { use: "section with the queries" },
    query_random_seed: { use: "GenerateOptions.seed; 0 is from the system" },
    temperature: { use: "GenerateOptions.temperature" },
    long_context_test: { use: "queries are answered as they stand", quiet: OFF },
  },
  "query_list.*": {
    query_count: { use: "how many follow" },
    "query#": { use: "a text, or a JSON object" },
  },
};

/** perplexity.ini */
export const PERPLEXITY_KEYS: typeof ENGINE_KEYS = {
  ...environment,
  main: {
    inference_engine_config: { use: "path of the engine's configuration" },
    test_data_file: { use: "the text" },
    max_length: { use: "PerplexityOptions.window" },
    stride: { use: "PerplexityOptions.stride" },
    temperature: { use: "perplexity is that of the model itself", quiet: ["", "1", "1.0"] },
  },
};

/** inferflow_client.ini */
export const CLIENT_KEYS: typeof ENGINE_KEYS = {
  ...environment,
  main: {
    service: { use: "address to send to" },
    request: { use: "what is sent, JSON" },
  },
};
