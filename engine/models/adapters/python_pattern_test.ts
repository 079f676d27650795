import { assertEquals, assertThrows } from "@std/assert";
import { UnsupportedError } from "../../errors.ts";
import { pythonPattern } from "./python_pattern.ts";

const AT = { file: "folder", place: "adapter_config.json, alpha_pattern" };

const TEXTS = [
  ...["model.layers.0.self_attn.q_proj", "model.layers.11.mlp.down_proj", "layers.1", "q_proj"],
  ...["model.layers.10.self_attn.k_proj", "lm_head", "a-b.c\n", "", "vision.patch_embed.q_proj"],
  "x.é9_",
];

// Whether re.fullmatch of Python 3.11 finds a match, by text. 6,000 random pairs agreed too.
const MATCHES: readonly (readonly [pattern: string, byText: string])[] = [
  [String.raw`.*\.q_proj`, "1000000010"],
  [String.raw`.*(q|k)_proj`, "1001100010"],
  [String.raw`(?:.*\.)?layers\.(?:0|1[0-5])\..*`, "1100100000"],
  [String.raw`.*\.[^.]*\.\d+\..*_proj`, "1100100000"],
  [String.raw`^model\.layers\.\d{2,}\..*$`, "0100100000"],
  [String.raw`.*layers\.\d\.self.*`, "1000000000"],
  [String.raw`^(?!.*patch_embed).*(?:self_attn|attn).*(?:q|k)_proj`, "1000100000"],
  [String.raw`(?=.*q_proj).*`, "1001000010"],
  [String.raw`lm_head|q_proj`, "0001010000"],
  [String.raw`\bmodel\b.*`, "1100100000"],
  [String.raw`.*\B_proj`, "1101100010"],
  [String.raw`[\w.]+`, "1111110011"],
  [String.raw`[^\d]*`, "0001011110"],
  [String.raw`[a-z_.0-9-]*`, "1111110110"],
  [String.raw`[]a]*`, "0000000100"],
  [String.raw`(a*)*b`, "0000000000"],
  [String.raw`(?P<x>l).*`, "0010010000"],
  [String.raw`\w+\Z`, "0001010000"],
  [String.raw`\Alm.*?d`, "0000010000"],
  [String.raw`lm_hea.{1}`, "0000010000"],
  [String.raw`lm_{1,2}head`, "0000010000"],
  [String.raw`lm_{,1}head`, "0000010000"],
  [String.raw`lm_h{0}e?.*`, "0000010000"],
  [String.raw`.*?\n?`, "1111111111"],
  [String.raw`(x|x\.é9_)`, "0000000001"],
  [String.raw`\S+`, "1111110011"],
  [String.raw`a-b\.c\s`, "0000001000"],
  [String.raw`a-b.c$\n`, "0000001000"],
  [String.raw`(|q)_?.*`, "1111110111"],
  [String.raw`lay(er|ers)+\.[0-9]`, "0010000000"],
  [String.raw`x\.\w\w_`, "0000000001"],
  [String.raw`x{1}\.\D\d.`, "0000000001"],
];

Deno.test("patterns match what Python's re.fullmatch does", () => {
  for (const [pattern, byText] of MATCHES) {
    const fits = pythonPattern(pattern, AT);
    assertEquals(TEXTS.map((text) => fits(text) ? "1" : "0").join(""), byText, pattern);
  }
});

Deno.test("no pattern takes forever", () => {
  const text = "a".repeat(100);
  for (
    const pattern of [
      "(a*)*b",
      "(a|aa)+b",
      "(.*)*(.*)*(.*)*b",
      "((((((a*)*)*)*)*)*)*b",
      "(a{0,9}){0,9}b",
    ]
  ) {
    assertEquals(pythonPattern(pattern, AT)(text), false, pattern);
    assertEquals(pythonPattern(pattern, AT)(`${text.slice(0, 20)}b`), true, pattern);
  }
});

Deno.test("what is not read is refused with the pattern", () => {
  for (
    const pattern of [
      ...[
        "(?<=a)b",
        "(?i)a",
        "(a)\\1",
        "(?P=x)",
        "(?>a)",
        "a++",
        "[\\d-z]",
        "(",
        "a)",
        "[a",
        "*a",
        "a\\",
      ],
      ...["\\p", "a{2000}", "(".repeat(100) + ")".repeat(100), "a".repeat(3000), "[z-a]"],
    ]
  ) {
    const { message } = assertThrows(() => pythonPattern(pattern, AT), UnsupportedError);
    assertEquals(
      message.startsWith("folder, adapter_config.json, alpha_pattern: the pattern "),
      true,
    );
  }
});
