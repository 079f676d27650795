"""Encodes texts with Hugging Face's tokenizers, sentencepiece and tiktoken.

{"open": name, "kind", ...} keeps a tokenizer: "tokenizers" has "document", "sentencepiece" has "model" (base64),
"tiktoken" has "ranks" (a path) and "pattern". {"encode": name, "texts"} gives {"ids"}, a list for each text or null
where the reference refuses it. An error of opening is {"error"}.
"""

import base64
import json

from answer import serve


def open_tokenizers(request):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(request["document"]))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def open_sentencepiece(request):
    import sentencepiece

    sentencepiece.set_min_log_level(3)
    processor = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(request["model"]))
    return lambda text: processor.encode(text)


def open_tiktoken(request):
    import tiktoken

    ranks = {}
    with open(request["ranks"]) as lines:
        for line in lines:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(
        name="fuzz", pat_str=request["pattern"], mergeable_ranks=ranks, special_tokens={}
    )
    return lambda text: encoding.encode_ordinary(text)


KINDS = {"tokenizers": open_tokenizers, "sentencepiece": open_sentencepiece, "tiktoken": open_tiktoken}


def answers():
    opened = {}

    def encode(request, text):
        try:
            return opened[request["encode"]](text)
        except BaseException:  # a panic of Rust is none of Exception
            return None

    def answer(request):
        if "open" not in request:
            return {"ids": [encode(request, text) for text in request["texts"]]}
        try:
            opened[request["open"]] = KINDS[request["kind"]](request)
            return {"opened": True}
        except BaseException as error:
            return {"error": str(error)}

    return answer


serve(["tokenizers", "sentencepiece", "tiktoken"], answers)
