// A chat with a model that runs in this page.

import { element, modelOf, shown, showProgress, startEngine } from "./client.ts";

const order = startEngine();
/** `?tokens=` in the address: most tokens of an answer. */
const maxTokens = Number(new URLSearchParams(location.search).get("tokens") ?? 200);
const form = element<HTMLFormElement>("form"), input = element<HTMLInputElement>("text");

function say(who: string, text: string): HTMLElement {
  const line = document.createElement("p");
  line.className = who;
  line.textContent = text;
  element("talk").append(line);
  return line;
}

form.onsubmit = async (event) => {
  event.preventDefault();
  const text = input.value;
  input.value = "";
  say("user", text);
  const line = say("model", "");
  input.disabled = true;
  const onPiece = (piece: string) => void (line.textContent += piece);
  await shown(order({ kind: "chat", text, maxTokens }, { onPiece, onProgress: showProgress }));
  input.disabled = false;
  input.focus();
};

await shown(order(modelOf("/models/chat.gguf"), { onProgress: showProgress }));
input.disabled = false;
